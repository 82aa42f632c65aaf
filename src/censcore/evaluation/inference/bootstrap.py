"""Spread over censoring distributions that are fitted again, for estimators without an influence function."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from censcore._validation import as_count
from censcore.distributions import Distribution
from censcore.evaluation.inference.clusters import Clusters
from censcore.evaluation.inference.estimates import separate_stream
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.progress import track

if TYPE_CHECKING:
    from censcore.evaluation.inference.losses import Scope

__all__ = ["spread_over_refits"]

LONG = 10.0  # seconds of refits that are announced
FAR = 5.0  # robust standard deviations from the median, beyond which a refit is pulled in


def spread_over_refits(
    values_under: Callable[[Distribution, np.ndarray], np.ndarray], scope: Scope
) -> tuple[np.ndarray, list[str]]:
    """Entries (refits, columns) whose squares sum to the variance over bootstrap samples, and notes.

    ``values_under`` gives all values, one after the other, under a refitted censoring distribution and the
    weights (n, m) of the drawn subjects.
    """
    censoring, clusters, weight = scope.censoring, scope.clusters, scope.weight
    refit, train = censoring.refit, censoring.train
    assert refit is not None
    assert train is not None
    refits = as_count(refit.count, "refits", least=2, most=10**6)
    of_scored, of_train, count = _numbered(clusters)
    rng = separate_stream(scope.seed)
    drawn: list[np.ndarray] = []
    failures = 0
    started = perf_counter()
    for _ in track(range(refits), "refitting the censoring distribution", refits, show=scope.progress):
        while True:
            times = np.bincount(rng.integers(count, size=count), minlength=count)
            training = np.repeat(np.arange(censoring.n_train), times[of_train])
            w = weight * times[of_scored][:, None] if clusters.overlap else weight
            try:
                drawn.append(values_under(refit(train.take(training), censoring.scored_X), w))
                if len(drawn) == 1 and not scope.progress:
                    _announce((refits - 1) * (perf_counter() - started), refits)
                break
            except CenscoreError as error:
                failures += 1
                if failures > refits:
                    raise InvalidInputError(
                        f"The censoring distribution could not be fitted to bootstrap samples: {error} Pass "
                        "a smaller horizon, a penalty to the estimator, or a distribution taken as known."
                    ) from error
    spread, pulled = _spread(np.stack(drawn))
    notes = []
    if failures:
        notes.append(
            f"{failures} bootstrap samples were drawn again, since no censoring distribution could be fitted."
        )
    if pulled:
        notes.append(
            f"{pulled} of {refits} bootstrap samples gave mean scores more than {FAR:g} robust standard "
            "deviations from the others and were pulled in to that distance: the censoring distribution is "
            "hard to estimate here, and its standard errors are rough."
        )
    return spread, notes


def _announce(seconds: float, refits: int) -> None:
    """Say what the refits will cost, where that is long, once the first of them is known."""
    if seconds >= LONG:
        logging.getLogger("censcore").warning(
            "Standard errors: the censoring distribution is fitted to %d bootstrap samples, about %.0f "
            "seconds. progress=True shows a bar, Censoring(..., refits=) takes fewer samples, and "
            "Censoring(KaplanMeier()) and Censoring(CoxRegression()), also at the end of a pipeline, need "
            "none.",
            refits,
            seconds,
        )


def _numbered(clusters: Clusters) -> tuple[np.ndarray, np.ndarray, int]:
    """The cluster of every scored and training subject and how many are drawn: all, or those that train."""
    n_apart = int(clusters.apart.max(initial=-1)) + 1
    of_scored = np.arange(clusters.n) if clusters.scored is None else clusters.scored
    n_scored = int(of_scored.max()) + 1 if clusters.overlap else 0
    of_train = np.where(clusters.carrier >= 0, of_scored[clusters.carrier], n_scored + clusters.apart)
    return of_scored, of_train, n_scored + n_apart


def _spread(means: np.ndarray) -> tuple[np.ndarray, int]:
    r"""Entries whose sum of squares is the variance over refits (B, columns), and how many were pulled in.

    A refit whose deviation from the median exceeds :math:`c\,\mathrm{IQR}/1.349` in some column is scaled
    as a whole, so that the deviations of different means stay in proportion.
    """
    with np.errstate(invalid="ignore"):
        low, middle, high = np.quantile(means, [0.25, 0.5, 0.75], axis=0)
        deviation = means - middle
        scale = (high - low) / 1.349
        known = np.isfinite(scale) & (scale > 0)
        far = np.max(np.abs(deviation[:, known]) / scale[known], axis=1, initial=0.0)
    shrink = np.where(np.isfinite(far) & (far > FAR), FAR / np.maximum(far, FAR), 1.0)
    pulled = deviation * shrink[:, None]
    with np.errstate(invalid="ignore"):
        return (pulled - pulled.mean(axis=0)) / np.sqrt(len(means) - 1), int((shrink < 1).sum())
