"""Fine and Gray's regression for the cumulative incidence of one cause."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import as_count
from censcore.estimators.cox import CoxRegression
from censcore.estimators.cox_equations import PartialScore
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.risk_sets import RiskSets
from censcore.exceptions import InvalidInputError
from censcore.outcomes import EventOfCause, RightCensored, as_competing_risks


class FineGray(CoxRegression):
    r"""Proportional hazards of the subdistribution of one cause.

    .. math:: F_j(t\mid x)=1-\exp\{-r(x)\Lambda_0(t)\},\qquad r(x)=e^{(x-\bar x)^\top\gamma}.

    Cox's equations for :math:`T_j`, the time of the event if its cause is j and infinite otherwise [1]_. A
    subject with another event at y stays at risk, at time u > y with the probability
    :math:`P(C\ge u\mid C\ge y)=G(u-)/G(y-)` that it would still be followed. G is the Kaplan-Meier estimate
    of the censoring distribution, with events first at ties [2]_, so that censoring is assumed independent of
    time, cause and x. Breslow's rule at ties.

    Models of several causes are fitted one by one, and their incidences may exceed one together. Judge one
    cause at a time: ``compare({"fine-gray": F}, y.cause(1), C)``, or
    ``cross_validate({"fine-gray": FineGray()}, X, y.cause(1))``.

    Parameters
    ----------
    cause : int
        j; for an outcome ``y.cause(j)``, it is the cause of the outcome.
    alpha : float or "auto"
        Ridge penalty, as in :class:`CoxRegression`.

    Attributes
    ----------
    coef_ : array, (p,)
        gamma, logarithms of subdistribution hazard ratios.
    covariance_, standard_errors_ : array, (p, p) and (p,)
        Of ``coef_``: robust, with the estimation of G included.
    baseline_times_, baseline_hazard_, center_, n_features_in_, feature_names_in_
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
    strata = None

    def __init__(self, cause: int = 1, alpha: float | str = 0.0) -> None:
        self.cause = cause
        self.alpha = alpha

    def fit(self, X: Array | None, y: Any, sample_weight: Array | None = None) -> Self:
        """Estimate coefficients and baseline from CompetingRisks, or from ``y.cause(j)`` of one cause."""
        if not isinstance(y, EventOfCause):
            whole = as_competing_risks(y)
            y = whole.cause(as_count(self.cause, "cause", most=whole.n_causes))
        first = y.any_cause().require_no_entry("FineGray")
        covariates, weight = self._check_inputs(X, len(first), sample_weight)
        used = np.nonzero(weight > 0)[0]
        event = to_numpy(y.event)[used]
        if not event.any():
            raise InvalidInputError(
                f"FineGray learns from events of cause {self.cause}; got none among {len(used)} subjects."
            )
        sets = _SubdistributionSets(first.take(used), event, weight[used])
        self._fit_to(covariates, weight, sets, _FineGrayScore)
        self._reference = first.time[:0]
        return self

    def _set_covariance(self) -> None:
        self.covariance_ = self.robust_covariance()
        self.standard_errors_ = np.sqrt(np.diag(self.covariance_))


class _SubdistributionSets(RiskSets):
    """Risk sets in which subjects with another event at y stay, with the share G(u-) / G(y-) at u > y."""

    def __init__(self, first: RightCensored, event: np.ndarray, weight: np.ndarray) -> None:
        super().__init__(to_numpy(first.time), event, weight)
        informs = to_numpy(first.informs_censoring)
        self._place = np.where(informs, np.cumsum(informs) - 1, -1)[self.order]  # among those who inform on C
        self.km = KaplanMeier().fit(None, first.flip(), weight[informs])
        left = self.km.predict_distribution().sf_left(np.concatenate([self.times, self.time])[None, :])[0]
        self.G, before = np.split(to_numpy(left), [len(self.times)])
        self.leaving = self.km.event_table_["time"]  # v, and the number of jumps u <= v
        self.left = np.searchsorted(self.times, self.leaving, side="right")
        other = (to_numpy(first.event) & ~event)[self.order]
        self.share = np.where(other, 1 / np.where(other, before, 1.0), 0.0)  # 1 / G(y-) of those who stay

    @property
    def survived(self) -> np.ndarray:
        return super().survived | (self.stayed(np.ones(len(self.time)), self.times, "left") > 0)

    def stayed(self, values: np.ndarray, t: np.ndarray, side: str) -> np.ndarray:
        """Sums of values / G(y-) over other events before t, or up to t (side "right")."""
        sums = np.cumsum((values.T * self.share).T, axis=0)
        return np.concatenate([np.zeros_like(sums[:1]), sums])[np.searchsorted(self.time, t, side)]  # type: ignore[call-overload]

    def later(self, values: np.ndarray, passed: np.ndarray) -> np.ndarray:
        """Sums of values G(u-) over the jumps but the first ``passed``."""
        sums = np.cumsum((values.T * self.G).T[::-1], axis=0)[::-1]
        return np.concatenate([sums, np.zeros_like(sums[:1])])[passed]

    def through_censoring(self, derivative: np.ndarray) -> np.ndarray:
        """What the weight of each subject moves through G, (n, q), from derivatives by a_v, (V, q)."""
        parts = self.km.influence(derivative)
        return np.concatenate([parts, np.zeros_like(parts[:1])])[self._place] / self.weight[:, None]

    def at_risk(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        total, staying = super().at_risk(values)
        others = (self.stayed(values, self.times, "left").T * self.G).T
        return total + others, staying + others

    def while_at_risk(self, values: np.ndarray) -> np.ndarray:
        return super().while_at_risk(values) + (self.later(values, self.passed).T * self.share).T


class _FineGrayScore(PartialScore):
    r"""Cox's score in these risk sets; its residuals include the estimation of G.

    With :math:`a_v=\log\{1-d\Lambda_C(v)\}` the share of a subject at u is
    :math:`\exp\sum_{y\le v<u}a_v`, so that :math:`\partial S_u/\partial a_v` sums over those who stayed by v.
    """

    sets: _SubdistributionSets

    def score_residuals(self) -> np.ndarray:
        sets, wr = self.sets, self.sets.weight * self.r
        A, B = (sets.stayed(x, sets.leaving, "right") for x in (wr, wr[:, None] * self.Z))
        h, hm = sets.later(self.h, sets.left), sets.later(self.h[:, None] * self.m, sets.left)
        return super().score_residuals() + sets.through_censoring(A[:, None] * hm - B * h[:, None])

    def jump_residuals(self, derivative: np.ndarray) -> np.ndarray:
        sets = self.sets
        A = sets.stayed(sets.weight * self.r, sets.leaving, "right")[:, None]
        through = sets.through_censoring(-A * sets.later(derivative / self.S[:, None], sets.left))
        return super().jump_residuals(derivative) + through
