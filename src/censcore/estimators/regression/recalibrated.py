"""A model updated to new subjects: the rungs of a ladder from one intercept to refitted coefficients."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import brentq

from censcore._arrays import Array, to_numpy
from censcore._validation import as_number, check_option, name_subjects
from censcore.distributions import Distribution
from censcore.distributions.univariate.at_one_time import AtOneTime
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.encoding import Encoding, as_matrix
from censcore.estimators.libraries.adapters import as_forecast
from censcore.estimators.nonparametric.kaplan_meier import KaplanMeier
from censcore.estimators.regression.cox_equations import PartialScore
from censcore.estimators.regression.newton import find_root
from censcore.estimators.regression.published_models import PublishedCox, PublishedModel
from censcore.estimators.regression.ridge import most_likely_penalty
from censcore.estimators.risk import breslow, proportional_hazards
from censcore.estimators.risk_sets import RiskSets
from censcore.estimators.survival_estimator import SurvivalEstimator, one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.plain_text import one_line

#: The rungs of the ladder, from the simplest on, with what each estimates.
RUNGS = {
    "as it is": "nothing",
    "intercept": "one shift of the log cumulative hazard",
    "baseline": "the baseline hazard",
    "slope": "the baseline hazard and the slope of the linear predictor",
    "refit": "the baseline hazard and all coefficients, shrunken towards the model",
}


class Recalibrated(SurvivalEstimator):
    r"""One rung of the ladder of :func:`censcore.update`: a fitted model, updated to other subjects.

    With :math:`\eta(x)=\log\{-\log S(t^*\mid x)\}`, the complementary log-log of the model's risk by the time
    :math:`t^*`, the updated model is

    .. math:: P(T>t\mid x)=\exp\{-H(t)\,e^{a+b\,\eta(x)+\delta^\top z(x)}\}.

    - ``"as it is"``: the model;
    - ``"intercept"``: the risks by :math:`t^*` with :math:`b=1`, :math:`\delta=0` and the shift a whose mean
      risk is the observed one, by Kaplan-Meier;
    - ``"baseline"``: :math:`b=1`, :math:`\delta=0`, and Breslow's H;
    - ``"slope"``: also b, by Cox regression on :math:`\eta`;
    - ``"refit"``: also :math:`\delta`, with the ridge penalty of greatest marginal likelihood, so that the
      coefficients are shrunken towards those of the model times b.

    Follow-up is cut at :math:`t^*`: a rung with a new baseline is a forecast up to there, and the intercept
    one of this time alone unless the model is a :class:`PublishedCox`, whose baseline moves.

    Parameters
    ----------
    model : fitted model
        Anything that :func:`censcore.as_forecast` takes with X. It is never fitted again.
    time : number
        The time :math:`t^*` whose risk is updated.
    rung : str
        One of the names above.

    Attributes
    ----------
    shift_, slope_ : float
        a and b.
    coef_ : array
        :math:`\delta`, by column.
    updated_ : PublishedModel or None
        The updated model with its coefficients, where the model is a :class:`PublishedCox`.
    """

    _encoding: Encoding

    def __init__(self, model: Any, time: float, rung: str = "slope") -> None:
        self.model = model
        self.time = time
        self.rung = rung

    def __sklearn_clone__(self) -> Recalibrated:
        """Make a copy that is not fitted, around the same fitted model."""
        return type(self)(self.model, self.time, self.rung)

    def fit(self, X: Array | None, y: Any, sample_weight: Array | None = None) -> Self:
        """Estimate what the rung changes."""
        check_option(self.rung, "rung", list(RUNGS))
        time = as_number(self.time, "time", above=0.0)
        y = one_event_time(y, "update")
        check_rows(X, len(y))
        weight = check_weights(sample_weight, len(y))
        self.shift_, self.slope_, self.coef_, self.columns_ = 0.0, 1.0, np.zeros(0), list[str]()
        self.times_, self.log_hazard_ = np.zeros(0), np.zeros(0)
        self.updated_ = self.model if isinstance(self.model, PublishedModel) else None
        if self.rung == "as it is":
            return self
        cut = follow_up_until(y, time, weight)
        eta = self._eta(X, len(y))
        if self.rung == "intercept":
            observed = float(KaplanMeier().fit(None, y, weight).predict_distribution().cdf(time)[0])
            self.shift_ = _shift(eta, weight, observed)
        else:
            if self.rung == "refit":
                Z = self.columns(X, reset=True)
            else:
                Z = np.zeros((len(y), 0))
            if self.rung != "baseline":
                self.slope_, self.coef_ = shrunken_coefficients(eta, Z, cut, weight)
            self._mean = np.average(Z, axis=0, weights=weight)
            lp = self.slope_ * eta + (Z - self._mean) @ self.coef_
            self.times_, self.log_hazard_ = breslow(lp, cut, weight)
        if isinstance(self.model, PublishedCox):
            self.updated_ = self._published(X)
        return self

    def predict_distribution(self, X: Array | None = None) -> Distribution:
        """Predict by the updated model."""
        self.check_fitted()
        if self.rung in ("as it is", "intercept") and self.updated_ is not None:
            return self.updated_.predict_distribution(X)
        if self.rung == "as it is":
            return as_forecast(self.model, X=X)
        eta = self._eta(X, None)
        if self.rung == "intercept":
            return AtOneTime(self.time, sf=np.exp(-np.exp(eta + self.shift_)))
        lp = self.slope_ * eta
        if len(self.coef_):
            lp = lp + (self.columns(X, reset=False) - self._mean) @ self.coef_
        return proportional_hazards(self.times_, self.log_hazard_, lp)

    def _eta(self, X: Any, n: int | None) -> np.ndarray:
        """The complementary log-log of the model's risk by the time, (n,)."""
        eta = log_cumulative_hazard(self.model, X, self.time)
        return np.broadcast_to(eta, (n,)) if n is not None and len(eta) == 1 else eta

    def columns(self, X: Any, *, reset: bool = False) -> np.ndarray:
        """Compute the columns whose coefficients are refitted: of the published model, or all of X, (n, p).

        Parameters
        ----------
        X : array or frame
            Covariates.
        reset : bool
            Learn levels and medians from X, as in ``fit``.
        """
        if isinstance(self.model, PublishedModel):
            self.columns_ = self.model.terms_
            return self.model.design(X)
        matrix = as_matrix(self, X, reset=reset)
        if matrix is None:
            raise InvalidInputError("X: got None, expected the covariates whose coefficients are refitted.")
        self.columns_ = [one_line(name) for name in self._encoding.names]
        return matrix

    def _published(self, X: Any) -> PublishedCox:
        """The updated model as a PublishedCox, with the center at the mean linear predictor."""
        model: PublishedCox = self.model
        if self.rung == "intercept":
            return model.with_hazard_ratio(np.exp(self.shift_))
        delta = self.coef_ if len(self.coef_) else np.zeros(len(model.coef_))
        new = model.with_coefficients(self.slope_ * model.coef_ + delta, center=None)
        eta, lp = self._eta(X, None), new.linear_predictor(X)
        own = self.slope_ * eta
        if len(self.coef_):
            own = own + (model.design(X) - self._mean) @ self.coef_
        center = float(np.mean(lp))
        log_hazard = self.log_hazard_ + float(np.mean(own))  # that of the mean linear predictor
        return new.set_params(center=center, baseline=(self.times_, np.exp(-np.exp(log_hazard))))

    @property
    def equation(self) -> str:
        """The updated model in words."""
        self.check_fitted()
        if self.updated_ is not None:
            return self.updated_.equation
        t, eta = f"{self.time:g}", "L(x)"
        where = f"L(x) = log(-log S({t} | x)) of the {type(self.model).__name__}"
        if self.rung == "as it is":
            return f"P(T > {t} | x) = exp(-exp(L(x))), {where}"
        if self.rung == "intercept":
            return f"P(T > {t} | x) = exp(-exp({self.shift_:+.4g} + L(x))), {where}"
        refitted = (
            " ".join(
                f"{d:+.4g} ({name} - {m:.4g})"
                for d, name, m in zip(self.coef_, self.columns_, self._mean, strict=True)
            )
            if len(self.coef_)
            else ""
        )
        sum_ = f"{self.slope_:.4g} {eta} {refitted}".strip()
        return f"P(T > t | x) = exp(-H(t) exp({sum_})), H({t}) = {np.exp(self.log_hazard_[-1]):.4g}, {where}"

    def __str__(self) -> str:
        return f"{self.rung}: {self.equation}"


def log_cumulative_hazard(model: Any, X: Any, time: float) -> np.ndarray:
    """The complementary log-log of a model's risk by a time, one per subject or one for all."""
    F = as_forecast(model, X=X).marginal(0)
    risk, sf = (to_numpy(part).astype(np.float64) for part in (F.cdf(time), F.sf(time)))
    bad = np.flatnonzero(~((risk > 0) & (sf > 0)))
    if bad.size:
        raise InvalidInputError(
            f"The model: got a risk of 0 or 1 by time {time:g} for {name_subjects(bad)}, expected risks "
            "strictly between, which an update can move. Leave these subjects out."
        )
    return np.log(np.where(risk < 0.5, -np.log1p(-np.minimum(risk, 0.5)), -np.log(sf)))


def follow_up_until(y: RightCensored, time: float, weight: np.ndarray) -> RightCensored:
    """The outcome with follow-up cut at a time; an error where too little is known of it."""
    last = float(to_numpy(y.time)[weight > 0].max(initial=0.0))
    if last < time:
        raise InvalidInputError(
            f"time: got {time:g}, expected one that follow-up reaches; the last observed time is {last:g}."
        )
    cut = y.censor_at(time)
    if not to_numpy(cut.event)[weight > 0].any():
        raise InvalidInputError(f"y: got no event by time {time:g}, expected at least one to update with.")
    return cut


def _shift(eta: np.ndarray, weight: np.ndarray, observed: float) -> float:
    """The a whose mean risk, of 1 - exp(-exp(eta + a)), is the observed one."""
    if not 0 < observed < 1:
        raise InvalidInputError(
            f"y: got an observed risk of {observed:g}, expected one strictly between 0 and 1 to update with."
        )
    share = weight / weight.sum()

    def excess(a: float) -> float:
        return float(share @ -np.expm1(-np.exp(eta + a))) - observed

    middle = np.log(-np.log1p(-observed))
    return float(brentq(excess, middle - eta.max() - 1e-9, middle - eta.min() + 1e-9, xtol=1e-13))


def shrunken_coefficients(
    eta: np.ndarray, Z: np.ndarray, y: RightCensored, weight: np.ndarray
) -> tuple[float, np.ndarray]:
    """The slope of eta and penalised coefficients of Z (n, p), by Cox's partial likelihood.

    The slope has no penalty. The penalty of the standardised columns of Z has the greatest marginal
    likelihood. A slope that the data do not determine, of a constant eta, is one.
    """
    used = weight > 0
    w = weight[used] / weight[used].mean()  # the penalty counts subjects
    sets = RiskSets(to_numpy(y.time)[used].astype(np.float64), to_numpy(y.event)[used], w)
    spread = Z[used].std(axis=0)
    kept = spread > 1e-12 * np.maximum(np.abs(Z[used]).max(axis=0, initial=0.0), np.finfo(float).tiny)
    scale = spread[kept]
    varies = float(np.ptp(eta[used])) > 1e-12
    free = (eta[used] - eta[used].mean())[:, None][:, : int(varies)]
    W = np.column_stack([free, (Z[used][:, kept] - Z[used][:, kept].mean(axis=0)) / scale])[sets.order]
    start = np.append(np.ones(int(varies)), np.zeros(len(scale)))

    def solve(penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        ridge = np.append(np.zeros(int(varies)), penalty)

        def equations(gamma: np.ndarray) -> Any:
            score = PartialScore(sets, W, gamma)
            if not score.valid:
                return None
            return score.gradient - ridge * gamma, lambda: score.information() + np.diag(ridge)

        return find_root(equations, start)

    if not W.shape[1]:
        return 1.0, np.zeros(Z.shape[1])
    alpha = most_likely_penalty(solve, len(scale)) if len(scale) else 0.0
    gamma, _ = solve(np.full(len(scale), alpha))
    delta = np.zeros(Z.shape[1])
    delta[kept] = gamma[int(varies) :] / scale
    return float(gamma[0]) if varies else 1.0, delta
