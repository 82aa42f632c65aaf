"""Models of lifelines: parametric ones as parametric distributions, Cox models as baseline and risk."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from copy import copy
from typing import Any, Self

import numpy as np

from censcore._arrays import Array, is_torch, to_numpy
from censcore.distributions import (
    Distribution,
    Exponential,
    Grouped,
    LogLogistic,
    LogNormal,
    Mixture,
    PiecewiseExponential,
    PointMass,
    ScipyDistribution,
    Step,
    Univariate,
    Weibull,
)
from censcore.distributions.univariate.univariate import ByLogSurvival
from censcore.estimators.libraries.curves import Curves, from_baseline, monotone, needs_covariates
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import RightCensored, StartStop
from censcore.plain_text import some_values

TIME_VARYING = "CoxTimeVaryingFitter"


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | Curves | None:
    """A fitted univariate or regression fitter; those without a formula here are asked for their hazard.

    Aalen-Johansen is read as the time of its event of interest, infinite where another event comes first.
    Curves for parametric Cox models with strata; None for fitters that are read by their survival curve:
    Kaplan-Meier and others without parameters.
    """
    kinds = [kind.__name__ for kind in type(model).__mro__]
    if "ParametricUnivariateFitter" in kinds:
        return _univariate(model, kinds) if hasattr(model, "_fitted_parameters_") else None
    if "AalenJohansenFitter" in kinds and hasattr(model, "cumulative_density_"):  # never, for other causes
        incidence = incidence_of(model)
        return Step(incidence.index.to_numpy(dtype=np.float64), sf=1 - incidence.to_numpy().T)
    if not any(kind in kinds for kind in ("RegressionFitter", "SemiParametricPHFitter")):
        return None
    if not hasattr(model, "params_") and not hasattr(model, "cumulative_hazards_"):
        return None  # not fitted: the caller says so
    needs_covariates(model, X)
    frame = _as_frame(X, names=_names(model, kinds))
    try:
        return _with_covariates(model, frame, kinds)
    except KeyError as error:
        raise InvalidInputError(
            f"lifelines' {type(model).__name__} misses columns of X: {error.args[0]}. Pass a frame with the "
            "columns that the model was fitted to."
        ) from error


def incidence_of(model: Any) -> Any:
    """The frame of an Aalen-Johansen fitter from the first event on; jitter moves ties at zero below it."""
    curve = model.cumulative_density_
    known = curve.iloc[:, 0] > 0
    known.iloc[-1] = True
    curve = curve[known].set_axis(curve.index[known].to_numpy().clip(min=0.0))
    return curve[~curve.index.duplicated(keep="last")]


def _with_covariates(model: Any, frame: Any, kinds: list[str]) -> Distribution | Curves | None:
    if "CoxPHFitter" in kinds:
        model = model._model
        kinds = [kind.__name__ for kind in type(model).__mro__]
    if "SemiParametricPHFitter" in kinds or TIME_VARYING in kinds:
        return _cox(model, frame)
    if "AalenAdditiveFitter" in kinds:
        curves = model.predict_survival_function(frame)
        times, sf = np.asarray(curves.index, dtype=np.float64), curves.to_numpy(dtype=np.float64).T
        return Step(times, sf=monotone(sf, model))
    return _regression(model, frame, kinds) if "ParametricRegressionFitter" in kinds else None


def fit(model: Any, X: Any, y: RightCensored | StartStop, weight: np.ndarray | None) -> Any:
    """Fit a univariate fitter to times, or a regression to a frame of covariates, times and events."""
    if isinstance(y, StartStop):
        intervals = {"id_col": y.subject, "start_col": y.start, "stop_col": y.stop, "weights_col": weight}
        return _fit_frame(model, X, intervals | {"event_col": y.event})
    if type(model).__name__ == TIME_VARYING:
        raise InvalidInputError(
            f"lifelines' {TIME_VARYING} is fitted to intervals of covariates that change; got one row per "
            "subject. Pass StartStop(id, start, stop, event), or use CoxPHFitter."
        )
    time, event = to_numpy(y.time), to_numpy(y.event)
    entry = to_numpy(y.entry) if y.has_delayed_entry else None
    if "durations" in inspect.signature(model.fit).parameters:
        options = {"weights": weight, "entry": entry}
        model.fit(time, event, **{name: values for name, values in options.items() if values is not None})
        return model
    columns = {"duration_col": time, "event_col": event.astype(int), "weights_col": weight}
    return _fit_frame(model, X, columns | {"entry_col": entry})


def _fit_frame(model: Any, X: Any, columns: dict[str, np.ndarray | None]) -> Any:
    """Fit a regression to a frame of covariates with more columns, by the arguments that name these."""
    if X is None:
        raise InvalidInputError(f"lifelines' {type(model).__name__} is a regression and needs X; got None.")
    frame = _as_frame(X)
    given = {argument: values for argument, values in columns.items() if values is not None}
    names = {argument: _free_name(argument.removesuffix("_col"), frame.columns) for argument in given}
    model.fit(frame.assign(**{names[argument]: values for argument, values in given.items()}), **names)
    return model


def takes_entry(model: Any) -> bool:
    """Whether ``fit`` of the model respects delayed entry."""
    if type(model).__name__ in ("CoxPHFitter", TIME_VARYING):
        return False  # its baseline hazard is computed as if all had entered at zero
    return not {"entry", "entry_col"}.isdisjoint(inspect.signature(model.fit).parameters)


def _free_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name


def _as_frame(X: Any, names: list[str] | None = None) -> Any:
    """Covariates as a pandas frame with rows numbered from 0.

    Columns of arrays are called ``names``, where there are as many, and x0, x1, ... otherwise.
    """
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X.reset_index(drop=True)
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    array = to_numpy(X) if hasattr(X, "shape") else np.asarray(X)
    if names is None or len(names) != array.shape[1]:
        names = [f"x{j}" for j in range(array.shape[1])]
    return pd.DataFrame(array, columns=names)


def _family(kinds: list[str], value: Callable[[str], np.ndarray]) -> Univariate | None:
    """The distribution of a fitter that belongs to a family here, by the values of its parameters."""
    for name, (make, parameters) in _FAMILIES.items():
        if not {f"{name}{word}Fitter" for word in ("", "AFT", "Regression")}.isdisjoint(kinds):
            return make(*map(value, parameters))
    return None


# ---- without covariates -----------------------------------------------------------------------------


def _univariate(model: Any, kinds: list[str]) -> Univariate:
    def value(name: str) -> np.ndarray:
        attribute = name.removeprefix("log ")
        logarithm = getattr(model, f"ln_{attribute}", None)
        return np.atleast_1d(getattr(model, attribute) if logarithm is None else np.exp(logarithm))

    family = _family(kinds, value)
    if family is not None:
        return family
    if "ExponentialFitter" in kinds:
        return Exponential(1 / model.lambda_)
    if "PiecewiseExponentialFitter" in kinds:
        return PiecewiseExponential(_cuts(model.breakpoints), 1 / np.asarray(model._fitted_parameters_))
    if "MixtureCureFitter" in kinds:
        share, base = float(model.cured_fraction_), copy(model._base_fitter)
        base._fitted_parameters_ = np.asarray(model._fitted_parameters_)[1:]
        susceptible = _univariate(base, [kind.__name__ for kind in type(base).__mro__])
        return Mixture([susceptible, PointMass(np.inf)], [1 - share, share])
    parameters = np.asarray(model._fitted_parameters_, dtype=np.float64)

    def hazard(formula: Callable[..., Any], t: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.asarray(formula(parameters, t.reshape(-1))).reshape(t.shape)

    return FittedHazard(model, hazard, np.zeros((1, 1)))


def _cuts(breakpoints: Any) -> np.ndarray:
    cuts = np.asarray(breakpoints, dtype=np.float64)
    return cuts[np.isfinite(cuts)]


def _generalized_gamma(mu: np.ndarray, sigma: np.ndarray, q: np.ndarray) -> Univariate:
    r"""T with log T = mu + sigma log(q^2 G) / q with G a gamma variable of shape 1/q^2; normal for q = 0."""
    if (q == 0).all():
        return LogNormal(mu, sigma)
    if (q == 0).any():
        raise InvalidInputError("Generalized gamma: got lambda = 0 for some subjects, expected none or all.")
    from scipy.stats import gengamma

    c = q / sigma
    return ScipyDistribution(gengamma(a=q**-2.0, c=c, scale=np.exp(mu) * np.abs(q) ** (2 / c)))


#: Families, and their parameters; regressions model the logarithm of some.
_FAMILIES: dict[str, tuple[Callable[..., Univariate], tuple[str, ...]]] = {
    "Weibull": (Weibull, ("log rho_", "log lambda_")),
    "LogNormal": (LogNormal, ("mu_", "log sigma_")),
    "LogLogistic": (LogLogistic, ("log beta_", "log alpha_")),
    "GeneralizedGamma": (_generalized_gamma, ("mu_", "log sigma_", "lambda_")),
}


# ---- with covariates --------------------------------------------------------------------------------


def _regression(model: Any, frame: Any, kinds: list[str]) -> Distribution | Curves:
    import pandas as pd

    if getattr(model, "strata", None):
        return _grid(model, frame)
    design = model.regressors.transform_df(frame.copy())

    def score(name: str) -> np.ndarray:
        values = np.asarray(design[name], dtype=np.float64)
        return values @ np.asarray(model.params_.loc[name], dtype=np.float64).reshape(-1)

    def value(name: str) -> np.ndarray:
        return np.exp(score(name[4:])) if name.startswith("log ") else score(name)

    family = _family(kinds, value)
    if family is not None:
        return family
    if "PiecewiseExponentialRegressionFitter" in kinds:
        rates = np.exp(-np.stack([score(name) for name in model._fitted_parameter_names], axis=1))
        return PiecewiseExponential(_cuts(model.breakpoints), rates)
    if "ParametricPiecewiseBaselinePHFitter" in kinds:
        later = [float(model.params_.loc[name].iloc[0]) for name in model._fitted_parameter_names[1:]]
        rates = np.exp(score("beta_"))[:, None] * np.exp([0.0, *later])
        return PiecewiseExponential(_cuts(model.breakpoints), rates)
    from lifelines.utils import DataframeSlicer

    parameters = {name: model.params_.loc[name].to_numpy() for name in model._fitted_parameter_names}
    columns = design.columns

    def hazard(formula: Callable[..., Any], t: np.ndarray, rows: np.ndarray) -> np.ndarray:
        slicer = DataframeSlicer(pd.DataFrame(rows, columns=columns))
        wide = np.broadcast_to(t, (len(rows), t.shape[1]))
        return np.asarray(formula(parameters, wide.T, slicer)).T

    return FittedHazard(model, hazard, np.asarray(design, dtype=np.float64))


def _grid(model: Any, frame: Any) -> Curves:
    """Survival at the times of the training data; lifelines returns subjects sorted by stratum."""
    curves = model.predict_survival_function(frame)[frame.index]
    return Curves(np.asarray(curves.index, dtype=np.float64), curves.to_numpy(dtype=np.float64).T)


def _names(model: Any, kinds: list[str]) -> list[str] | None:
    """Names of the covariates in the order of the training data, for arrays that have none.

    Cox models keep that order; accelerated failure time models sort by name, so that it is not known.
    """
    if "CoxPHFitter" not in kinds:
        return None
    index = model.params_.index
    names = index.get_level_values(1).unique() if index.nlevels > 1 else index
    return [str(name) for name in names if name != "Intercept"]


def _cox(model: Any, frame: Any) -> Distribution:
    """exp(-r(x) H_0(t)), with a baseline per stratum."""
    baselines = model.baseline_cumulative_hazard_
    if not model.strata:
        return _proportional(baselines.iloc[:, 0], model, frame)
    parts, labels = [], np.empty(len(frame), dtype=np.intp)
    for number, (stratum, rows) in enumerate(frame.groupby(model.strata).indices.items()):
        parts.append(_proportional(_baseline_of(baselines, stratum), model, frame.iloc[rows]))
        labels[rows] = number
    return Grouped(parts, labels)


def _baseline_of(baselines: Any, stratum: Hashable) -> Any:
    for label in (stratum, (stratum,)):
        if label in baselines.columns:
            return baselines[label]
    raise InvalidInputError(
        f"Stratum {stratum!r} of X was not among the strata of the training data: "
        f"{some_values(baselines.columns)}."
    )


def _proportional(baseline: Any, model: Any, frame: Any) -> Univariate:
    eta = np.asarray(model.predict_log_partial_hazard(frame), dtype=np.float64)
    hazard = baseline.to_numpy(dtype=np.float64)
    return from_baseline(np.asarray(baseline.index, dtype=np.float64), hazard, eta)


class FittedHazard(ByLogSurvival):
    """A parametric model of lifelines by the formulas of its own hazard.

    ``evaluate`` maps a formula of the model, times (1 or n, q) and the design (n, p), the covariates as the
    model transforms them, to values (n, q).
    """

    def __init__(self, model: Any, evaluate: Callable[..., np.ndarray], design: Array) -> None:
        self.store(design=design)
        self._model, self._evaluate = model, evaluate

    _design: Array

    def like(self, array: Array) -> Self:
        """The distribution itself; lifelines computes in NumPy."""
        if is_torch(array):
            raise InvalidTypeError(
                f"lifelines' {type(self._model).__name__} computes in NumPy only; got a torch tensor. "
                "Convert the outcome to NumPy."
            )
        return self

    def _hazard_of(self, formula: str, t: Array) -> Array:
        inside = np.where((t > 0) & np.isfinite(t), t, 1.0)
        with np.errstate(all="ignore"):
            return self._evaluate(getattr(self._model, formula), inside, self._design)

    def logsf_at(self, t: Array) -> Array:
        """Return the negative cumulative hazard."""
        value = -self._hazard_of("_cumulative_hazard", t)
        return np.where(t > 0, np.where(np.isfinite(t), value, -np.inf), 0.0)

    def logpdf_at(self, t: Array) -> Array:
        """Return the log hazard less the cumulative hazard."""
        value = self._hazard_of("_log_hazard", t) + self.logsf_at(t)
        return np.where((t > 0) & np.isfinite(t), value, -np.inf)
