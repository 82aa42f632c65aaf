"""Models from a paper: coefficients as printed, and the baseline or the scale that goes with them."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from censcore._arrays import Array, Covariates
from censcore._validation import (
    as_number,
    as_numbers,
    check_kind,
    check_option,
    check_probabilities,
    name_subjects,
)
from censcore.distributions import (
    CauseSpecificHazards,
    Distribution,
    Exponential,
    LogLogistic,
    LogNormal,
    ProportionalHazards,
    Weibull,
)
from censcore.estimators.covariates import count_rows
from censcore.estimators.libraries.adapters import as_forecast
from censcore.estimators.regression.published_terms import Term, column
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import ExtrapolationWarning, InvalidInputError, InvalidTypeError

_FARTHEST = 200  # from zero that a linear predictor may be; beyond, forecasts have no digits


def _in_digits(eta: np.ndarray) -> np.ndarray:
    """A linear predictor, (n,); an error names the subjects whose forecast would have no digits."""
    far = np.flatnonzero(~(np.abs(eta) <= _FARTHEST))
    if far.size:
        raise InvalidInputError(
            f"X: got a linear predictor of {eta[far[0]]:.3g} for {name_subjects(far)}, expected one between "
            f"-{_FARTHEST} and {_FARTHEST}. Check the units of the covariates, and the center."
        )
    return eta


class _Known(SurvivalEstimator):
    """Models that have nothing to learn."""

    def fit(self, X: Array | None, y: Any, sample_weight: Array | None = None) -> Self:
        """Return the model as it is: everything is known, so that it can take part in a cross-validation."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True


class PublishedModel(_Known):
    """Base class of models whose coefficients are known: ``fit`` learns nothing.

    Parameters
    ----------
    coefficients : dict
        The linear predictor, as the paper prints it. A key is the name of a column of X (or its number in an
        array), a :func:`censcore.column` with its transformation, or a tuple of these, which is their
        product. A value is the coefficient; for a category a dict with the coefficient of every level, that
        of the reference being 0; for what has several coefficients (splines, bands) their list.
    center : number or dict, optional
        What is subtracted: a number from the linear predictor, or means from columns, by the keys of
        ``coefficients``. 0 if omitted.
    ranges : dict, optional
        Name of a column -> (least, most) value that the model is meant for.
    outside : "warn" or "raise"
        Whether a value outside its range is an :class:`~censcore.exceptions.ExtrapolationWarning` or an
        error; both name the column and the subjects.
    """

    coefficients: Any
    center: Any
    ranges: Any
    outside: str

    def _check(self) -> None:
        """Read all parameters once, so that a mistake is an error before there are data."""
        self._terms()
        self._ends()
        check_option(self.outside, "outside", ("warn", "raise"))

    def _ends(self) -> dict[Any, tuple[float, float]]:
        """The stated ranges, by column."""
        if self.ranges is None:
            return {}
        check_kind(self.ranges, "ranges", Mapping, "a dict, {'age': (18, 90)}")
        ends = {name: as_numbers(pair, f"ranges of {name!r}") for name, pair in self.ranges.items()}
        for name, pair in ends.items():
            if len(pair) != 2 or not pair[0] <= pair[1]:
                raise InvalidInputError(f"ranges of {name!r}: got {pair}, expected (least, most).")
        return {name: (float(pair[0]), float(pair[1])) for name, pair in ends.items()}

    def _terms(self) -> list[Term]:
        given = self.coefficients
        if not isinstance(given, Mapping) or not given:
            raise InvalidTypeError(
                f"coefficients: got {type(given).__name__}, expected a dict of at least one, {{'age': 0.02}}."
            )
        means = self.center if isinstance(self.center, Mapping) else {}
        unknown = [str(key) for key in means if key not in self.coefficients]
        if unknown:
            raise InvalidInputError(
                f"center: got {unknown}, expected keys of coefficients, {[*map(str, self.coefficients)]}."
            )
        if self.center is not None and not means:
            as_number(self.center, "center")
        return [Term.of(key, value, means.get(key)) for key, value in self.coefficients.items()]

    @property
    def terms_(self) -> list[str]:
        """What each coefficient belongs to, in words."""
        return [label for term in self._terms() for label in term.column.labels]

    @property
    def coef_(self) -> np.ndarray:
        """All coefficients, (p,)."""
        return np.concatenate([term.coef for term in self._terms()])

    def design(self, X: Any) -> np.ndarray:
        """Compute the centred columns that the coefficients belong to, (n, p).

        Parameters
        ----------
        X : data frame or array
            With every column that the model names.
        """
        terms = self._terms()
        if X is None:
            raise InvalidInputError("X: got None, expected a data frame with the columns of the model.")
        self._check_ranges(X)
        parts = [term.values(X) for term in terms]
        return np.column_stack(parts) if count_rows(X) else np.zeros((0, sum(len(t.coef) for t in terms)))

    def linear_predictor(self, X: Any) -> np.ndarray:
        """Compute the linear predictor, (n,): coefficients times columns, less the center.

        Parameters
        ----------
        X : data frame or array
            As for :meth:`predict_distribution`.
        """
        shift = 0.0 if self.center is None or isinstance(self.center, Mapping) else float(self.center)
        return _in_digits(self.design(X) @ self.coef_ - shift)

    def _check_ranges(self, X: Any) -> None:
        for name, (least, most) in self._ends().items():
            values = column(name).values(X)[:, 0]
            out = np.flatnonzero((values < least) | (values > most))
            if out.size:
                words = (
                    f"{name!r}: got {values[out[0]]:g} and others outside the range of the model, {least:g} "
                    f"to {most:g}, for {out.size} of {len(values)} subjects ({name_subjects(out)})."
                )
                if self.outside == "raise":
                    raise InvalidInputError(words)
                warnings.warn(words, ExtrapolationWarning, stacklevel=5)

    def with_coefficients(self, coef: Array, **changes: Any) -> Self:
        """Make the same model with other coefficients, for instance after an update.

        Parameters
        ----------
        coef : array, (p,)
            In the order of ``coef_``.
        **changes
            Further parameters to replace.
        """
        numbers = iter(as_numbers(coef, "coef").tolist())
        new: dict[Any, Any] = {}
        for (key, value), term in zip(self.coefficients.items(), self._terms(), strict=True):
            own = [next(numbers) for _ in term.coef]
            if isinstance(value, Mapping):
                new[key] = dict(zip(value, own, strict=True))
            else:
                new[key] = own[0] if np.ndim(value) == 0 else own
        return clone(self, safe=False).set_params(coefficients=new, **changes)

    def _sum_in_words(self) -> str:
        parts = [f"{b:+.4g} {name}" for b, name in zip(self.coef_, self.terms_, strict=True) if b]
        centers = sum(float(term.coef @ term.center) for term in self._terms())
        if self.center is not None and not isinstance(self.center, Mapping):
            centers += float(self.center)
        if centers:
            parts.append(f"{-centers:+.4g}")
        return " ".join(parts).removeprefix("+") or "0"

    @property
    @abstractmethod
    def equation(self) -> str:
        """The model in one line."""

    def __str__(self) -> str:
        return self.equation


class PublishedCox(PublishedModel):
    r"""A proportional-hazards model from a paper: coefficients and baseline survival.

    .. math:: P(T>t\mid x)=S_0(t)^{\exp\{\beta^\top z(x)-c\}}

    with columns z(x) and a center c as printed. A baseline that is known at one time gives a forecast of that
    time alone: it has a Brier score, an AUC, calibration and net benefit there, and no curve.

    Parameters
    ----------
    coefficients : dict
        The linear predictor, as the paper prints it. A key is the name of a column of X (or its number in an
        array), a :func:`censcore.column` with its transformation, or a tuple of these, which is their
        product. A value is the coefficient; for a category a dict with the coefficient of every level, that
        of the reference being 0; for what has several coefficients (splines, bands) their list.
    baseline : dict, pair of arrays, or distribution
        :math:`S_0`: {time: survival} at one time or several; a curve (times, survival) with all its jumps,
        as Breslow's estimate has them; or a :class:`~censcore.Weibull` or :class:`~censcore.Exponential`
        distribution. Of a cumulative hazard H pass exp(-H).
    interpolation, tail : str
        How a baseline at several times is read between and beyond them, as in :func:`censcore.as_forecast`.
    center : number or dict, optional
        What is subtracted: a number from the linear predictor, or means from columns, by the keys of
        ``coefficients``. 0 if omitted.
    ranges : dict, optional
        Name of a column -> (least, most) value that the model is meant for.
    outside : "warn" or "raise"
        Whether a value outside its range is an :class:`~censcore.exceptions.ExtrapolationWarning` or an
        error; both name the column and the subjects.

    Notes
    -----
    A model of the subdistribution hazard (Fine and Gray) forecasts the time of one cause: its risks are
    scored against ``y.cause(name)``. Models of all cause-specific hazards are :class:`PublishedCauses`.

    See Also
    --------
    column : Transformations of a covariate: caps, logarithms, bands, restricted cubic splines.
    PublishedAFT : Weibull, log-normal and log-logistic models of the logarithm of time.
    PublishedCauses : Competing risks.
    censcore.update : Recalibrate a model to new subjects.

    References
    ----------
    .. [1] McLernon, D. J., Giardiello, D., Van Calster, B., Wynants, L., van Geloven, N., van Smeden, M.,
       Therneau, T. and Steyerberg, E. W. (2023). Assessing performance and clinical usefulness in prediction
       models with survival outcomes. Annals of Internal Medicine 176, 105-114.

    Examples
    --------
    The five-year model of McLernon et al. [1]_, as they print it:

    >>> import pandas as pd, censcore as cs
    >>> nodes = cs.column("nodes").capped(high=19)
    >>> model = cs.PublishedCox(
    ...     {
    ...         cs.column("size").bands(20, 50): [0.342, 0.574],
    ...         nodes.spline(0, 1, 9): [0.304, -0.811],
    ...         "grade": {1: 0.0, 2: 0.0, 3: 0.362},
    ...     },
    ...     baseline={5.0: 0.804},
    ... )
    >>> X = pd.DataFrame({"size": [18, 55], "nodes": [2, 16], "grade": [2, 3]})
    >>> model.predict_distribution(X).cdf(5.0).round(3)
    array([0.312, 0.904])
    >>> print(model)
    P(T > t | x) = S0(t)^exp(L), S0(5) = 0.804, L = 0.342 [20 < size <= 50] +0.574 [size > 50]
    +0.304 min(nodes, 19) -0.811 rcs1(min(nodes, 19); 0, 1, 9) +0.362 [grade = 3]
    """

    def __init__(
        self,
        coefficients: Mapping[Any, Any],
        baseline: Any,
        center: float | Mapping[Any, Any] | None = None,
        *,
        ranges: Mapping[Any, Sequence[float]] | None = None,
        outside: str = "warn",
        interpolation: str = "auto",
        tail: str = "auto",
    ) -> None:
        self.coefficients = coefficients
        self.baseline = baseline
        self.center = center
        self.ranges = ranges
        self.outside = outside
        self.interpolation = interpolation
        self.tail = tail
        self._check()
        self._survival()

    def _survival(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Times and survival of the baseline, in the order of time; None of a distribution."""
        given = self.baseline
        if isinstance(given, Weibull | Exponential) and len(given) == 1:
            return None
        if isinstance(given, Mapping) and given:
            times, S = as_numbers(list(given), "baseline"), as_numbers(list(given.values()), "baseline")
        elif isinstance(given, tuple) and len(given) == 2:
            times, S = as_numbers(given[0], "Times of baseline"), as_numbers(given[1], "baseline")
        else:
            raise InvalidTypeError(
                f"baseline: got {given!r:.80}, expected the survival at one time, {{5.0: 0.8}}, at several, "
                "a curve (times, survival), or a Weibull or Exponential distribution of one subject."
            )
        check_probabilities(S, "baseline")
        order = np.argsort(times)
        times, S = times[order], S[order] if len(S) == len(times) else S
        if len(S) != len(times) or (times < 0).any() or (np.diff(times) <= 0).any() or (np.diff(S) > 0).any():
            raise InvalidInputError(
                f"baseline: got {len(times)} times and {len(S)} survival probabilities, expected as many of "
                "both, at different times from 0 on, with survival that does not rise."
            )
        if not isinstance(given, tuple) and not ((S > 0) & (S < 1)).all():
            raise InvalidInputError(
                "baseline: got a survival probability of 0 or 1, from which the covariates cannot move it; "
                "expected numbers strictly between."
            )
        return times, S

    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the distribution of the event time; at one time where the baseline is known there alone."""
        risk = np.exp(self.linear_predictor(X))
        known = self._survival()
        if known is None:
            shape, scale = _weibull_parameters(self.baseline)
            return Weibull(shape, scale * risk ** (-1 / shape))
        times, S = known
        with np.errstate(divide="ignore"):
            hazard = -np.log(S)
        if isinstance(self.baseline, tuple):
            return ProportionalHazards(times, hazard, risk)
        sf = np.exp(-risk[:, None] * hazard)
        return as_forecast(sf, times=times, interpolation=self.interpolation, tail=self.tail)

    def with_hazard_ratio(self, ratio: float) -> Self:
        """Make the same model with a baseline hazard that is multiplied by a number.

        Parameters
        ----------
        ratio : float
            What the cumulative hazard is multiplied by.
        """
        ratio, known = as_number(ratio, "ratio", above=0.0), self._survival()
        if known is None:
            shape, scale = _weibull_parameters(self.baseline)
            return clone(self, safe=False).set_params(baseline=Weibull(shape, scale * ratio ** (-1 / shape)))
        times, S = known[0], known[1] ** ratio
        curve = isinstance(self.baseline, tuple)
        baseline = (times, S) if curve else dict(zip(times.tolist(), S.tolist(), strict=True))
        return clone(self, safe=False).set_params(baseline=baseline)

    @property
    def equation(self) -> str:
        """The model in one line."""
        known = self._survival()
        if known is None:
            shape, scale = _weibull_parameters(self.baseline)
            S0 = f"S0(t) = exp(-(t/{scale:.4g})^{shape:.4g})"
        else:
            shown = list(zip(*known, strict=True))
            S0 = ", ".join(f"S0({t:g}) = {S:.4g}" for t, S in (shown if len(shown) <= 6 else shown[-1:]))
            S0 += f" after {len(shown)} steps" if len(shown) > 6 else ""
        return f"P(T > t | x) = S0(t)^exp(L), {S0}, L = {self._sum_in_words()}"


def _weibull_parameters(F: Weibull | Exponential) -> tuple[float, float]:
    """Shape and scale, from the cumulative hazards at the median and at twice the median."""
    median = float(F.icdf(0.5)[0])
    shape = float(np.log2(F.logsf(2 * median)[0] / F.logsf(median)[0]))
    return shape, median / np.log(2) ** (1 / shape)


#: What each distribution is made of, from the mean and the scale of log T.
_OF_LOG_TIME: dict[str, Callable[[np.ndarray, float], Distribution]] = {
    "weibull": lambda mean, scale: Weibull(1 / scale, np.exp(mean)),
    "log-normal": LogNormal,
    "log-logistic": lambda mean, scale: LogLogistic(1 / scale, np.exp(mean)),
}


class PublishedAFT(PublishedModel):
    r"""A Weibull, log-normal or log-logistic model from a paper, as a regression of the logarithm of time.

    .. math:: \log T=\beta_0+\beta^\top z(x)-c+\sigma\varepsilon

    The parameters are those of R's ``survreg`` and of most tables of accelerated-failure-time models; a
    positive coefficient means later events. A Weibull model that is printed as proportional hazards is a
    :class:`PublishedCox` with a Weibull baseline.

    Parameters
    ----------
    coefficients : dict
        The linear predictor, as the paper prints it. A key is the name of a column of X (or its number in an
        array), a :func:`censcore.column` with its transformation, or a tuple of these, which is their
        product. A value is the coefficient; for a category a dict with the coefficient of every level, that
        of the reference being 0; for what has several coefficients (splines, bands) their list.
    intercept : number
        :math:`\beta_0`.
    scale : number
        :math:`\sigma`; for Weibull and log-logistic 1 / shape.
    distribution : {"weibull", "log-normal", "log-logistic"}
        Of T.
    center : number or dict, optional
        What is subtracted: a number from the linear predictor, or means from columns, by the keys of
        ``coefficients``. 0 if omitted.
    ranges : dict, optional
        Name of a column -> (least, most) value that the model is meant for.
    outside : "warn" or "raise"
        Whether a value outside its range is an :class:`~censcore.exceptions.ExtrapolationWarning` or an
        error; both name the column and the subjects.

    See Also
    --------
    PublishedCox : Proportional hazards.
    WeibullRegression, LogNormalRegression : The same models, fitted.

    References
    ----------
    .. [1] J. D. Kalbfleisch and R. L. Prentice (2002). The Statistical Analysis of Failure Time Data, second
       edition. Wiley, Hoboken.

    Examples
    --------
    >>> import pandas as pd, censcore as cs
    >>> model = cs.PublishedAFT({"age": -0.03}, intercept=4.0, scale=0.8, distribution="log-normal")
    >>> model.predict_distribution(pd.DataFrame({"age": [50, 70]})).sf(5.0).round(3)
    array([0.867, 0.642])
    """

    def __init__(
        self,
        coefficients: Mapping[Any, Any],
        intercept: float,
        scale: float,
        distribution: str = "weibull",
        center: float | Mapping[Any, Any] | None = None,
        *,
        ranges: Mapping[Any, Sequence[float]] | None = None,
        outside: str = "warn",
    ) -> None:
        self.coefficients = coefficients
        self.intercept = intercept
        self.scale = scale
        self.distribution = distribution
        self.center = center
        self.ranges = ranges
        self.outside = outside
        self._check()
        as_number(intercept, "intercept")
        as_number(scale, "scale", above=0.0)
        check_option(distribution, "distribution", list(_OF_LOG_TIME))

    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the distribution of the event time."""
        mean = _in_digits(self.intercept + self.linear_predictor(X))
        return _OF_LOG_TIME[self.distribution](mean, self.scale)

    @property
    def equation(self) -> str:
        """The model in one line."""
        words = self._sum_in_words()
        words = words if words.startswith("-") else f"+{words}"
        return f"log T = {self.intercept:.4g} {words} + {self.scale:.4g} e, T {self.distribution}"


class PublishedCauses(_Known):
    """Competing risks from a paper: one published model of the hazard of each cause.

    Cumulative incidences follow from the hazards of all causes over time, so every model must have a
    baseline that is a curve, or a parametric distribution.

    Parameters
    ----------
    models : dict
        Name of a cause -> :class:`PublishedCox` or :class:`PublishedAFT` of its hazard, in the order of the
        causes.

    See Also
    --------
    CauseSpecific : The same, fitted.
    PublishedCox : Also for one cause by its subdistribution hazard.

    References
    ----------
    .. [1] van Geloven, N., Giardiello, D., Bonneville, E. F., Teece, L., Ramspek, C. L., van Smeden, M.,
       Snell, K. I. E., van Calster, B., Pohar-Perme, M., Riley, R. D., Putter, H. and Steyerberg, E. (2022).
       Validation of prediction models in the presence of competing risks: a guide through modern methods. BMJ
       377, e069249.

    Examples
    --------
    >>> import pandas as pd, censcore as cs
    >>> times = [1.0, 2.0, 5.0]
    >>> model = cs.PublishedCauses({
    ...     "relapse": cs.PublishedCox({"nodes": 0.05}, baseline=(times, [0.97, 0.92, 0.80])),
    ...     "death": cs.PublishedCox({"age": 0.06}, baseline=(times, [0.99, 0.98, 0.94]), center={"age": 60}),
    ... })
    >>> X = pd.DataFrame({"nodes": [0, 6], "age": [50, 75]})
    >>> model.predict_distribution(X).cif(5.0).round(3)
    array([[0.198, 0.031],
           [0.251, 0.13 ]])
    """

    def __init__(self, models: Mapping[str, Any]) -> None:
        self.models = models
        if not isinstance(models, Mapping) or not models:
            raise InvalidTypeError(f"models: got {type(models).__name__}, expected a dict, cause -> model.")
        for name, model in models.items():
            if not isinstance(model, PublishedModel):
                raise InvalidTypeError(
                    f"models: got {type(model).__name__} for {name!r}, expected a PublishedCox or "
                    "PublishedAFT."
                )
            if isinstance(getattr(model, "baseline", None), Mapping) and len(model.baseline) == 1:
                raise InvalidInputError(
                    f"models: got a baseline of {name!r} at one time, expected a curve. A cumulative "
                    "incidence depends on the hazards of all causes until then."
                )

    def predict_distribution(self, X: Covariates | None = None) -> CauseSpecificHazards:
        """Predict the distribution of time and cause."""
        parts: list[Any] = [model.predict_distribution(X) for model in self.models.values()]
        return CauseSpecificHazards(parts, names=list(self.models))

    def __str__(self) -> str:
        return "\n".join(f"{name}: {model.equation}" for name, model in self.models.items())
