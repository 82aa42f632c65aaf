"""Fine and Gray's regression for the cumulative incidence of one cause."""

from __future__ import annotations

from functools import partial
from typing import Self

import numpy as np

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import as_count, name_subjects
from censcore.estimators.nonparametric.kaplan_meier import event_table, table_influence
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.regression.cox_equations import PartialScore
from censcore.estimators.risk_sets import RiskSets, without_column
from censcore.exceptions import InvalidInputError
from censcore.outcomes import EventOfCause, OutcomeLike, SemiCompetingRisks, as_competing_risks


class FineGray(CoxRegression):
    r"""Proportional hazards of the subdistribution of one cause.

    .. math:: F_j(t\mid x)=1-\exp\{-r(x)\Lambda_0(t)\},\qquad r(x)=e^{(x-\bar x)^\top\gamma}.

    Cox's equations for :math:`T_j`, the time of the event if its cause is j and infinite otherwise [1]_. A
    subject with another event at y stays at risk, at time u > y with the share [2]_

    .. math:: \frac{P(E<u\le C)}{P(E<y\le C)}=\frac{G(u-)\,H(u-)}{G(y-)\,H(y-)}

    with which it would be followed. G is the Kaplan-Meier estimate of the censoring distribution. With
    delayed entry, H is that of the distribution of the entry E, the product-limit estimate backwards in
    time; without, it is one. Censoring and entry are assumed independent of time, cause and x (within a
    stratum). At ties events come before censored times, a subject is at risk after its entry, and the rule
    of the partial likelihood is Breslow's: the convention of ``finegray`` and ``coxph(ties = "breslow")``
    in R.

    Models of several causes are fitted one by one, and their incidences may exceed one together. Judge one
    cause at a time: ``compare({"fine-gray": F}, y.cause(1), C)``, or
    ``cross_validate({"fine-gray": FineGray()}, X, y.cause(1))``.

    Parameters
    ----------
    cause : int
        j; for an outcome ``y.cause(j)``, it is the cause of the outcome.
    alpha : float or "auto"
        Ridge penalty, as in :class:`CoxRegression`.
    strata : str or int, optional
        Name or number of a column of X. Each of its values has a baseline, a G and an H of its own, and the
        coefficients are shared: ``strata(s)`` in both ``finegray`` and ``coxph``.

    Attributes
    ----------
    coef_ : array, (p,)
        gamma, logarithms of subdistribution hazard ratios.
    covariance_, standard_errors_ : array, (p, p) and (p,)
        Of ``coef_``: robust, with the estimation of G and H included.
    baseline_times_, baseline_hazard_, strata_, baseline_strata_, center_, n_features_in_, feature_names_in_
        As in :class:`CoxRegression`.

    See Also
    --------
    CauseSpecific : Hazards of all causes, whose incidences never exceed one together.
    AalenJohansen : The estimate without covariates.

    References
    ----------
    .. [1] J. P. Fine and R. J. Gray (1999). A proportional hazards model for the subdistribution of a
       competing risk. Journal of the American Statistical Association 94, 496-509.
    .. [2] R. B. Geskus (2011). Cause-specific cumulative incidence estimation and the Fine and Gray model
       under both left truncation and right censoring. Biometrics 67, 39-49.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 1))
    >>> F = cs.CauseSpecificHazards([cs.Exponential(np.exp(X[:, 0])), cs.Exponential(0.5)])
    >>> time, cause = F.sample(1, seed=1)
    >>> y = cs.CompetingRisks(time[:, 0], cause[:, 0]).censor_at(2.0)
    >>> model = cs.FineGray(cause=1).fit(X, y)
    >>> model.predict_distribution([[0.0], [1.0]]).cdf(1.0).round(2)
    array([0.52, 0.78])
    """

    ties = "breslow"
    takes_intervals = False

    def __init__(self, cause: int = 1, alpha: float | str = 0.0, strata: str | int | None = None) -> None:
        self.cause = cause
        self.alpha = alpha
        self.strata = strata

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Estimate coefficients and baseline from CompetingRisks, or from ``y.cause(j)`` of one cause.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : CompetingRisks, frame, or one cause, ``y.cause(j)``
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        if not isinstance(y, EventOfCause):
            whole = as_competing_risks(y)
            y = whole.cause(as_count(self.cause, "cause", most=whole.n_causes))
        first = y.any_cause()
        covariates, weight = self._check_inputs(without_column(X, self.strata), len(first), sample_weight)
        used = np.nonzero(weight > 0)[0]
        event = to_numpy(y.event)[used]
        if not event.any():
            raise InvalidInputError(
                f"FineGray learns from events of cause {self.cause}; got none among {len(used)} subjects."
            )
        time, entry = self._times(X, first, used)
        stratum = np.zeros(len(used), dtype=np.intp) if self.strata is None else self._clock.back(time)[0]
        sets = _SubdistributionSets(time, to_numpy(first.event)[used], event, weight[used], entry, stratum)
        self._fit_to(covariates, weight, sets, _FineGrayScore)
        self._reference = first.time[:0]
        return self

    def _set_covariance(self) -> None:
        self.covariance_ = self.robust_covariance()
        self.standard_errors_ = np.sqrt(np.diag(self.covariance_))


class _Curve:
    """A product-limit curve that shares follow: W is multiplied by its factors, or divided by them."""

    def __init__(self, sets: RiskSets, power: int) -> None:
        self.sets, self.power, self.times = sets, power, power * sets.times
        self.table = event_table(sets)
        staying = sets.at_risk(sets.weight)[1]
        self.table["sf"] = staying / (staying + sets.d)  # the factors, not their product

    def influence(self, derivative: np.ndarray) -> np.ndarray:
        """Derivatives by the weight of each subject, (n, q), from those by the steps of log W, (V, q)."""
        parts = np.zeros((len(self.sets.order), derivative.shape[1]))
        parts[self.sets.order] = table_influence(self.table, self.sets, self.power * derivative)
        return parts


class _SubdistributionSets(RiskSets):
    r"""Risk sets in which subjects with another event at y stay, with the share W(u-) / W(y-) at u > y.

    W = G H, with G the curve of the censoring times and H that of the entries, a product-limit estimate
    backwards in time. Where a factor is zero, W starts anew: shares do not reach from one such stretch into
    another. Strata are stretches, since all their subjects enter at their beginnings.
    """

    def __init__(
        self,
        time: np.ndarray,
        first: np.ndarray,
        event: np.ndarray,
        weight: np.ndarray,
        entry: np.ndarray | None,
        stratum: np.ndarray,
    ) -> None:
        super().__init__(time, event, weight, entry)
        before = np.nextafter(time, -np.inf)  # a subject with an event at y is not at risk of C = y
        self.curves = [_Curve(RiskSets(np.where(first, before, time), ~first, weight, entry), 1)]
        if entry is not None:
            start = np.where(np.isfinite(entry), entry, -1.0)
            self.curves.append(_Curve(RiskSets(-start, np.ones_like(first), weight, -time), -1))
        self.moves = np.concatenate([curve.times for curve in self.curves])  # v, where W moves
        factor = np.concatenate([curve.table["sf"] for curve in self.curves])
        power = np.repeat([curve.power for curve in self.curves], [len(c.times) for c in self.curves])
        self.ends = np.append(np.sort(self.moves[factor == 0]), np.inf)
        order = np.argsort(self.moves)
        steps = (power * np.log(np.where(factor > 0, factor, 1.0)))[order]
        W = partial(self._curve_at, self.moves[order], np.append(0.0, np.cumsum(steps)))
        other = (first & ~event)[self.order]
        self.W, self.share = W(self.times), np.where(other, 1 / W(self.time), 0.0)
        self._check_shares(other, stratum[self.order])

    def _curve_at(self, moves: np.ndarray, log_w: np.ndarray, t: np.ndarray) -> np.ndarray:
        """W(t-), relative to its value where the stretch of t begins."""
        start = np.searchsorted(moves, self._stretch(t)[0], side="right")
        return np.exp(log_w[np.searchsorted(moves, t)] - log_w[start])

    def _stretch(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The ends of the stretches that times are in: after the first, up to the second."""
        number = np.searchsorted(self.ends, t)
        return np.append(-np.inf, self.ends)[number], self.ends[number]

    def _check_shares(self, other: np.ndarray, stratum: np.ndarray) -> None:
        last = np.full(stratum.max() + 1, -np.inf)
        np.maximum.at(last, stratum[self.failed], self.time[self.failed])
        cut = other & (self._stretch(self.time)[1] < last[stratum])
        if cut.any():
            who = name_subjects(np.sort(self.order[cut]))
            raise InvalidInputError(
                "FineGray needs to know how long subjects with an event of another cause would have been "
                f"followed. This is unknown for {who}: at some time between "
                "theirs and the last event of the cause everybody under observation is censored or has just "
                "entered. With delayed entry early risk sets are small. Fit to the subjects of a later time "
                "s, y.after(s)."
            )

    @property
    def survived(self) -> np.ndarray:
        return super().survived | (self.stayed(np.ones(len(self.time)), self.times, "left") > 0)

    def stayed(self, values: np.ndarray, t: np.ndarray, side: str) -> np.ndarray:
        """Sums of values / W(y-) over other events before t, or up to t (side "right"), of its stretch."""
        sums = np.cumsum((values.T * self.share).T, axis=0)
        sums = np.concatenate([np.zeros_like(sums[:1]), sums])
        until = np.searchsorted(self.time, t, side)  # type: ignore[call-overload]
        return sums[until] - sums[np.searchsorted(self.time, self._stretch(t)[0], side="right")]

    def later(self, values: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Sums of values W(u-) over the jumps u > t of the stretch of t."""
        sums = np.cumsum((values.T * self.W).T[::-1], axis=0)[::-1]
        sums = np.concatenate([sums, np.zeros_like(sums[:1])])
        first, last = (np.searchsorted(self.times, x, side="right") for x in (t, self._stretch(t)[1]))
        return sums[first] - sums[last]

    def through_shares(self, derivative: np.ndarray) -> np.ndarray:
        """What the weight of each subject moves through W, (n, q), from derivatives by log W(v), (V, q)."""
        after = np.cumsum([len(curve.times) for curve in self.curves])[:-1]
        parts = np.split(derivative, after)
        through = [curve.influence(part) for curve, part in zip(self.curves, parts, strict=True)]
        return np.sum(through, axis=0)[self.order]

    def at_risk(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total, staying = super().at_risk(values)
        others = (self.stayed(values, self.times, "left").T * self.W).T
        return total + others, staying + others

    def while_at_risk(self, values: np.ndarray) -> np.ndarray:
        return super().while_at_risk(values) + (self.later(values, self.time).T * self.share).T


class _FineGrayScore(PartialScore):
    r"""Cox's score in these risk sets; its residuals include the estimation of W.

    With :math:`a_v` the step of log W at v the share of a subject at u is :math:`\exp\sum_{y\le v<u}a_v`, so
    that :math:`\partial S_u/\partial a_v` sums over those who stayed by v.
    """

    sets: _SubdistributionSets

    def score_residuals(self) -> np.ndarray:
        sets, v, wr = self.sets, self.sets.moves, self.sets.weight * self.r
        A, B = (sets.stayed(x, v, "right") for x in (wr, wr[:, None] * self.Z))
        h, hm = sets.later(self.h, v), sets.later(self.h[:, None] * self.m, v)
        return super().score_residuals() + sets.through_shares(A[:, None] * hm - B * h[:, None])

    def jump_residuals(self, derivative: np.ndarray) -> np.ndarray:
        sets, v = self.sets, self.sets.moves
        A = sets.stayed(sets.weight * self.r, v, "right")[:, None]
        through = sets.through_shares(-A * sets.later(derivative / self.S[:, None], v))
        return super().jump_residuals(derivative) + through
