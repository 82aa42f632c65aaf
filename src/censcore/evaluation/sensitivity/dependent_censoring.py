"""How a comparison would change if censoring depended on the event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import as_count, as_labels, as_number, as_numbers, check_positive
from censcore.distributions import Univariate
from censcore.evaluation.decisions.forecasts import check_forecasts
from censcore.evaluation.inference.estimates import separate_stream
from censcore.evaluation.sensitivity.copula_graphic import Curve, Generator, copula_graphic_curve, generator
from censcore.evaluation.sensitivity.dependent_censoring_result import DependentCensoringSensitivity
from censcore.exceptions import InvalidInputError, InvalidTypeError, PositivityError
from censcore.outcomes import OutcomeLike, RightCensored, as_outcome
from censcore.scores.integration.areas import squared_cdf_area, squared_sf_area

TAU = (-0.5, -0.25, 0.0, 0.25, 0.5, 0.75)
# Numbers of squared areas that are held at a time.
CHUNK_NUMBERS = 4_000_000


def dependent_censoring_sensitivity(
    forecasts: Mapping[str, Univariate],
    y: OutcomeLike,
    *,
    times: Array | None = None,
    horizon: float | None = None,
    tau: Sequence[float] = TAU,
    copula: str = "frank",
    strata: Array | None = None,
    replicates: int = 200,
    groups: Array | None = None,
    seed: int | None = 0,
) -> DependentCensoringSensitivity:
    r"""Brier scores of forecasts under an assumed dependence of T and C, over a range of Kendall's tau.

    Every score of this library takes C to be independent of T given the covariates, which no data can
    verify. Here T and C are joined by a survival copula with Kendall's tau, their distributions are
    estimated by :func:`copula_graphic`, and each observation is weighted by the inverse of its probability:

    .. math::
        \frac{1\{y\le t,\delta=1\}}{P(C\ge y\mid T=y)}\,S(t)^2+\frac{1\{y>t\}}{P(C>t\mid T>t)}\,(1-S(t))^2

    with the forecast's survival S, and the integral of this over [0, h]. If the copula and tau are right, and
    C depends on the covariates only through T (within strata), the mean is that of uncensored data; at
    tau = 0 it is the inverse-probability-weighted Brier score under Kaplan-Meier. This is an analysis of
    *sensitivity*: tau is not identified, and at a wrong tau the score is not proper.

    Parameters
    ----------
    forecasts : dict of Distribution
        Forecast distributions of T by name, one per subject. Differences are taken from the first.
    y : RightCensored, structured array or frame
        The outcome of n subjects.
    times : array or number, optional
        Evaluation times of the Brier score.
    horizon : float, optional
        End of the integrated Brier score, which is divided by it (times the horizon it is the CRPS of
        uncensored data on [0, h]). At least one of ``times`` and ``horizon`` is needed.
    tau : sequence of float
        Kendall's tau of T and C: positive where subjects at high risk are censored early.
    copula : {"frank", "clayton", "gumbel"}
        The survival copula. Only Frank has negative tau.
    strata : array, (n,), optional
        Labels: T and C are joined within each stratum, with the same tau.
    replicates : int
        Bootstrap samples of subjects for the standard errors, which cover the estimation of the
        distributions of T and C; 0 leaves them out.
    groups : array, (n,), optional
        Labels of subjects that are resampled together.
    seed : int, optional
        Seed of the bootstrap.

    Returns
    -------
    DependentCensoringSensitivity
        With ``frame()``, ``plot()``, ``order_changes()`` and a text.

    See Also
    --------
    copula_graphic : The estimates of the distributions of T and C, with references.

    Examples
    --------
    >>> import numpy as np
    >>> import censcore as cs
    >>> rng = np.random.default_rng(1)
    >>> T, C = rng.exponential(1.0, 300), rng.exponential(1.5, 300)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> forecasts = {"low": cs.Exponential(0.7), "high": cs.Exponential(1.4)}
    >>> cs.dependent_censoring_sensitivity(forecasts, y, times=1.0, tau=[-0.3, 0.0, 0.3])
    Sensitivity to dependent censoring: Frank copula of T and C, 300 subjects (173 events)
    mean loss over Kendall's tau, lower is better; ! marks the best; tau is assumed, not estimated
    <BLANKLINE>
                                      tau = -0.3      tau = 0    tau = 0.3
    Brier score, t = 1  low              0.2496!      0.2491       0.2486
    Brier score, t = 1  high             0.2837       0.2445!      0.2082!
    <BLANKLINE>
    Brier score, t = 1: the order changes between tau = -0.3 (low < high) and 0 (high < low)
    """
    analysis = "The analysis of dependent censoring"
    y = as_outcome(y).require_no_entry(analysis).require_one_time(analysis)
    distributions = _check_forecasts(forecasts, len(y))
    t, h = _check_times(times, horizon)
    levels = np.unique(as_numbers(tau, "tau"))
    phis = [generator(copula, float(level)) for level in levels]
    stratum, weights = _codes(strata, len(y), "strata"), _bootstrap_weights(len(y), replicates, groups, seed)
    subjects = [
        _Stratum(y, np.nonzero(stratum == s)[0], list(distributions.values()), t, h, weights)
        for s in range(int(stratum.max()) + 1)
    ]
    means = np.stack([sum(of.share * of.means(phi) for of in subjects) for phi in phis])
    lines = [("brier_score", float(at)) for at in t] + ([] if h is None else [("integrated_brier_score", h)])
    events = int(to_numpy(y.event).sum())
    return DependentCensoringSensitivity(
        copula, levels, list(distributions), lines, means[:, 0], means[:, 1:], len(y), events, len(subjects)
    )


# ---- the formula -----------------------------------------------------------------------------------


class _Stratum:
    """The losses of the subjects of one stratum, and their means under R sets of weights and a dependence."""

    def __init__(
        self,
        y: RightCensored,
        rows: np.ndarray,
        forecasts: list[Univariate],
        t: np.ndarray,
        h: float | None,
        weights: np.ndarray,
    ) -> None:
        total = weights[:, rows].sum(axis=1, keepdims=True)
        # a bootstrap sample may hold nobody of a small stratum
        self.weights = np.where(total > 0, weights[:, rows], 1.0)
        self.share = (total / len(y))[:, :, None]
        self.time, self.event = to_numpy(y.time)[rows].astype(float), to_numpy(y.event)[rows]
        self.t, self.h = t, h
        last = max([*t.tolist(), *([] if h is None else [np.nextafter(h, 0)])])
        if self.time.max() <= last:
            raise PositivityError(
                f"Nobody{' of a stratum' if len(rows) < len(y) else ''} is followed beyond "
                f"{self.time.max():g}, so P(C > t | T > t) is zero at t = {last:g}; expected times and a "
                f"horizon below {self.time.max():g}.",
                horizon=float(self.time.max()),
            )
        self.forecasts = [F if len(F) == 1 else F.take(rows) for F in forecasts]
        survival = [np.broadcast_to(to_numpy(F.sf(t[None, :])), (len(rows), len(t))) for F in self.forecasts]
        self.S = np.stack(survival, axis=1)  # (n, models, q)
        self._areas = [] if h is None else [self._areas_of(F, h) for F in self.forecasts]

    def _areas_of(self, F: Univariate, h: float) -> tuple[np.ndarray, np.ndarray]:
        r"""Parts without tau: :math:`\int F^2` summed over survivors, :math:`\int_y^hS^2` per subject."""
        starts = self.starts
        ends = np.append(starts[1:], h)
        step = max(1, CHUNK_NUMBERS // len(ends))
        living, after = np.zeros((len(self.weights), len(starts))), np.zeros(len(self.time))
        for first in range(0, len(self.time), step):
            part = slice(first, first + step)
            here = F if len(F) == 1 else F.take(part)
            stop = np.minimum(self.time[part], h)[:, None]
            area = squared_cdf_area(here, np.broadcast_to(ends, (len(stop), len(ends))))
            area = np.diff(area, axis=1, prepend=0.0) * (stop > starts)
            living += self.weights[:, part] @ area
            beyond = squared_sf_area(here, np.concatenate([stop, 0 * stop + h], axis=1))
            after[part] = beyond[:, 1] - beyond[:, 0]
        return living, after

    @property
    def starts(self) -> np.ndarray:
        """Starts of the intervals with a constant risk set: zero and all times below the horizon."""
        times = np.unique(self.time)
        return np.unique(np.append(0.0, times[times < self.h]))

    def means(self, phi: Generator) -> np.ndarray:
        r"""Mean losses, (R, models, lines).

        The weights follow from the estimate itself: :math:`1/P(C\ge y\mid T=y)=P(T=y)/P(Y=y,\Delta=1)` and
        :math:`1/P(C>t\mid T>t)=P(T>t)/P(Y>t)`.
        """
        curve = copula_graphic_curve(self.time, self.event, phi, self.weights)
        total = self.weights.sum(axis=1, keepdims=True)
        share = self.weights / total
        number = np.searchsorted(curve.times, self.time)
        with np.errstate(divide="ignore", invalid="ignore"):
            per_event = np.where(curve.events > 0, (curve.S_before - curve.S) / curve.events, 0.0)
        of_events = share * per_event[:, number] * self.event
        means = []
        for column, t in enumerate(self.t):
            S = self.S[:, :, column]
            dead, alive = of_events * (self.time <= t), share * (self.time > t)
            means.append(dead @ S**2 + self._per_survivor(curve, np.array([t])) * (alive @ (1 - S) ** 2))
        if self.h is not None:
            per_survivor = self._per_survivor(curve, self.starts) / total
            integrals = [
                np.sum(per_survivor * living, axis=1) + of_events @ after for living, after in self._areas
            ]
            means.append(np.stack(integrals, axis=1) / self.h)
        return np.stack(means, axis=2)

    @staticmethod
    def _per_survivor(curve: Curve, t: np.ndarray) -> np.ndarray:
        """P(T > t) / P(Y > t) at times (q,): (R, q); NaN where survivors exist and nobody is followed."""
        index = np.searchsorted(curve.times, t, side="right")
        one = np.ones_like(curve.S[:, :1])
        S, followed = (np.concatenate([one, part], axis=1)[:, index] for part in (curve.S, curve.followed))
        known = followed > 0
        return np.where(known, S / np.where(known, followed, 1.0), np.where(S > 0, np.nan, 0.0))


def _bootstrap_weights(n: int, replicates: int, groups: Any, seed: int | None) -> np.ndarray:
    """Ones, and below how often each subject was drawn, (1 + replicates, n), scaled to sum n."""
    replicates = as_count(replicates, "replicates", least=0, most=10**6)
    if replicates == 1:
        raise InvalidInputError("replicates must be 0 or at least 2; got 1.")
    code = np.arange(n) if groups is None else _codes(groups, n, "groups")
    m = int(code.max()) + 1
    if replicates and m < 2:
        raise InvalidInputError("A bootstrap needs at least 2 groups; got 1. Pass replicates=0 without one.")
    counts = separate_stream(seed).multinomial(m, np.full(m, 1 / m), size=replicates)
    drawn = counts[:, code].astype(float)
    return np.concatenate([np.ones((1, n)), drawn * (n / drawn.sum(axis=1, keepdims=True))])


# ---- checks ----------------------------------------------------------------------------------------


def _check_forecasts(forecasts: Mapping[str, Univariate], n: int) -> dict[str, Univariate]:
    check_forecasts(forecasts)
    for name, F in forecasts.items():
        if not isinstance(F, Univariate):
            raise InvalidTypeError(f"Forecast {name!r} must be a Distribution; got {type(F).__name__}.")
        if len(F) not in (1, n):
            raise InvalidInputError(
                f"Forecast {name!r} is for {len(F)} subjects; expected {n} (or one for all)."
            )
    return {name: F if F.is_neutral else F.like(np.zeros(1)) for name, F in forecasts.items()}


def _check_times(times: Array, horizon: float | None) -> tuple[np.ndarray, float | None]:
    if times is None and horizon is None:
        raise InvalidInputError("Pass times=..., horizon=... or both; got neither.")
    t = np.zeros(0) if times is None else as_numbers(times, "times")
    check_positive(t, "times", zero=True)
    return np.unique(t), None if horizon is None else as_number(horizon, "horizon", above=0)


def _codes(labels: Any, n: int, name: str) -> np.ndarray:
    """Labels of subjects as numbers from 0; None is one label for all."""
    return np.unique(np.zeros(n) if labels is None else as_labels(labels, n, name), return_inverse=True)[1]
