"""Means under censoring distributions that are fitted again, for estimators without an influence function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from censcore.distributions import Distribution
from censcore.evaluation.case_scores import Case
from censcore.evaluation.inference import Estimate, row_influence
from censcore.evaluation.losses import Losses, Means, Subset, track
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.evaluation.subjects import Clusters
from censcore.exceptions import CenscoreError, InvalidInputError

__all__ = ["means_by_refitting", "spread_over_refits"]

FAR = 5.0  # robust standard deviations from the median, beyond which a refit is pulled in

Key = tuple[int, str, str]


def means_by_refitting(
    losses: Losses,
    cases: dict[str, Case],
    subsets: list[Subset],
    censoring: ResolvedCensoring,
    clusters: Clusters,
    refits: int,
    seed: int,
    progress: bool,
) -> Means:
    """The censoring distribution is fitted to bootstrap samples, and all means are taken again.

    Training subjects are drawn with replacement in their clusters. Where some of them are scored, all clusters are
    drawn, and the means of a draw show all there is; where none is, the scored subjects stay as they are
    and their influences are added.
    """
    weight = np.column_stack([subset.weight for subset in subsets])

    def means_under(C: Distribution, weight: np.ndarray) -> np.ndarray:
        return _means(losses, cases, C, weight)

    spread, notes = spread_over_refits(means_under, weight, censoring, clusters, refits, seed, progress)
    values: dict[Key, Estimate] = {}
    start = 0
    for (model, name), found in losses.values.items():
        q = found.shape[1]
        for s, subset in enumerate(subsets):
            mean = row_influence(found, subset.weight, clusters.scored)
            of_mean = spread[:, start + s * q : start + (s + 1) * q]
            influence = of_mean if clusters.overlap else np.concatenate([mean.influence, of_mean])
            values[s, model, name] = Estimate(mean.value, influence)
        start += q * len(subsets)
    what = "all subjects" if clusters.overlap else "the training subjects"
    method = f"bootstrap: the censoring distribution fitted again to {refits} samples of {what}"
    return Means(values, method, notes)


def spread_over_refits(
    values_under: Callable[[Distribution, np.ndarray], np.ndarray],
    weight: np.ndarray,
    censoring: ResolvedCensoring,
    clusters: Clusters,
    refits: int,
    seed: int,
    progress: bool = False,
) -> tuple[np.ndarray, list[str]]:
    """Entries (refits, columns) whose squares sum to the variance over bootstrap samples, and notes.

    ``values_under`` gives all values, one after the other, under a refitted censoring distribution and the
    weights (n, m) of the drawn subjects.
    """
    if refits < 2:
        raise InvalidInputError(
            f"refits, the number of bootstrap samples: got {refits}, expected at least 2."
        )
    refit = _refitter(censoring)
    of_scored, of_train, count = _numbered(clusters)
    rng = np.random.default_rng(seed)
    drawn: list[np.ndarray] = []
    failures = 0
    for _ in track(range(refits), "refitting the censoring distribution", progress):
        while True:
            times = np.bincount(rng.integers(count, size=count), minlength=count)
            training = np.repeat(np.arange(censoring.n_train), times[of_train])
            w = weight * times[of_scored][:, None] if clusters.overlap else weight
            try:
                drawn.append(values_under(refit(training), w))
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


def _numbered(clusters: Clusters) -> tuple[np.ndarray, np.ndarray, int]:
    """The cluster of every scored and training subject and how many are drawn: all, or those that train."""
    n_apart = int(clusters.apart.max(initial=-1)) + 1
    of_scored = np.arange(clusters.n) if clusters.scored is None else clusters.scored
    n_scored = int(of_scored.max()) + 1 if clusters.overlap else 0
    of_train = np.where(clusters.carrier >= 0, of_scored[clusters.carrier], n_scored + clusters.apart)
    return of_scored, of_train, n_scored + n_apart


def _refitter(censoring: ResolvedCensoring) -> Callable[[np.ndarray], Distribution]:
    assert censoring.refit is not None
    assert censoring.train is not None
    refit, train, X = censoring.refit, censoring.train, censoring.scored_X
    return lambda subjects: refit(train.take(subjects), X)


def _means(losses: Losses, cases: dict[str, Case], C: Distribution, weight: np.ndarray) -> np.ndarray:
    """All means, one after the other, under a censoring distribution."""
    means = []
    for model, case in cases.items():
        again = replace(case, C=C)
        for score in losses.scores:
            if (model, score.name) in losses.values:
                values = score.losses(again)
                for w in weight.T:
                    with np.errstate(invalid="ignore", divide="ignore"):
                        means.append(w[w > 0] @ values[w > 0] / w.sum())
    return np.concatenate(means)


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
    kept = deviation * shrink[:, None]
    with np.errstate(invalid="ignore"):
        return (kept - kept.mean(axis=0)) / np.sqrt(len(means) - 1), int((shrink < 1).sum())
