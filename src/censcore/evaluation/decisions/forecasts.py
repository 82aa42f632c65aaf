"""Forecasts and the reference as distributions, from all accepted types; models are fitted here."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from censcore._validation import check_instance, check_kind, shown
from censcore.distributions import Distribution
from censcore.estimators import Adapted, NotFitted
from censcore.estimators.covariates import check_rows, take_rows
from censcore.estimators.libraries.pipelines import accepted, last_estimator, last_step
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError, RiskSetWarning
from censcore.plain_text import some_of

if TYPE_CHECKING:
    from censcore.evaluation.kinds import Kind

#: Names of the default references, of competing risks and of all other outcomes.
AALEN_JOHANSEN, KAPLAN_MEIER = "aalen-johansen", "kaplan-meier"


def check_forecasts(forecasts: Any) -> None:
    """Check that forecasts are named, and that there is one."""
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            "forecasts must be a dictionary of at least one forecast, {'cox': distribution, ...}; got "
            f"{type(forecasts).__name__}."
        )


def as_named(forecasts: Any) -> dict[str, Any]:
    """Forecasts or models by name; of a list, or of one alone, by their class.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation.decisions.forecasts import as_named
    >>> list(as_named([cs.CoxRegression(), cs.KaplanMeier(), cs.CoxRegression(alpha=1.0)]))
    ['CoxRegression', 'KaplanMeier', 'CoxRegression 2']
    """
    single = isinstance(forecasts, Distribution) or hasattr(forecasts, "fit")
    several = isinstance(forecasts, list) and not any(isinstance(F, str) for F in forecasts)
    if not (single or several) or not forecasts:
        check_forecasts(forecasts)
        return {str(name): forecast for name, forecast in forecasts.items()}
    named: dict[str, Any] = {}
    for forecast in [forecasts] if single else forecasts:
        name = kind = type(forecast).__name__
        count = 1
        while name in named:
            count += 1
            name = f"{kind} {count}"
        named[name] = forecast
    return named


def with_covariates(forecast: Any, X: Any, train: Sample | None) -> tuple[Any, Any, Any]:
    """A forecast, the covariates it is asked for, and those of the training subjects."""
    X_train = None if train is None else train.X
    if not isinstance(forecast, tuple) or len(forecast) not in (2, 3) or hasattr(forecast[0], "x"):
        return forecast, X, X_train
    return forecast[0], forecast[1], forecast[2] if len(forecast) == 3 else None


def as_distributions(
    kind: Kind, forecasts: dict[str, Any], X: Any, train: Sample | None
) -> dict[str, Distribution]:
    """Read all forecasts of the subjects as distributions in NumPy."""
    check_forecasts(forecasts)
    read: dict[str, Distribution] = {}
    for name, forecast in forecasts.items():
        model, covariates, X_train = with_covariates(forecast, X, train)
        subjects = None if train is None else (X_train, kind.followed(train.y))
        try:
            read[str(name)] = in_numpy(kind.as_forecast(model, covariates, len(kind.y), subjects))
        except (InvalidInputError, InvalidTypeError, NotFitted) as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
    return read


# ---- models that are fitted ------------------------------------------------------------------------------


def check_model(name: str, model: Any, n: int) -> None:
    """Check that something can be fitted to other subjects, before any time is spent on it."""
    model, X = model_and_covariates(model, None)
    try:
        check_rows(X, n)
    except InvalidInputError as error:
        raise InvalidInputError(f"Model {name!r}: {error}") from error
    if inspect.isclass(model):
        raise InvalidTypeError(
            f"Model {name!r}: got the class {model.__name__}, expected an estimator: pass "
            f"{model.__name__}(...)."
        )
    if isinstance(model, Distribution):
        if len(model) not in (1, n):
            raise InvalidInputError(
                f"Model {name!r}: got a distribution of {len(model)} subjects, expected {n}, or an estimator."
            )
    elif not (hasattr(model, "fit") or callable(model)):
        raise InvalidTypeError(
            f"Model {name!r}: got {type(model).__name__}, expected an estimator that is fitted in every fold "
            "(of this library, a pipeline, scikit-survival, lifelines), or a function f(X_train, y_train, "
            "X_test) that gives a forecast. Forecasts that were made before are compared without cv=."
        )


def forecast_fold(
    kind: Kind, model: Any, subjects: Sample, train: np.ndarray, test: np.ndarray
) -> Distribution:
    """Forecasts of the test subjects by a copy of the model that is fitted to the training subjects.

    ``model`` may be a pair (model, X) with covariates of its own; a distribution was made before, and is
    taken as it is.
    """
    model, X = model_and_covariates(model, subjects.X)
    if isinstance(model, Distribution):
        forecast = model.take(test)
    else:
        fold = replace(subjects, X=X).take(train)
        forecast = forecast_of(kind, model, fold, take_rows(X, test), len(test))
    return in_numpy(forecast)


def forecast_of(kind: Kind, model: Any, train: Sample, X: Any, n: int) -> Distribution:
    """Forecasts of n subjects with covariates X by a model that is fitted to the training subjects.

    A function is called as ``f(X_train, y_train, X)``, and with ``sample_weight=`` where there are weights;
    with ``groups=`` and ``mask=`` where there are labels, or not all subjects are followed for all event
    times, and it takes them.
    """
    if hasattr(model, "fit"):
        return kind.as_forecast(*last_step(_fitted(kind, model, train), X), n)
    return kind.as_forecast(_called(model, train, X), X, n)


def model_and_covariates(model: Any, X: Any) -> tuple[Any, Any]:
    """A model and its covariates: those of all models, or its part of a pair (model, X)."""
    if isinstance(model, tuple):
        if len(model) != 2:
            raise InvalidTypeError(f"A model with covariates is a pair (model, X); got {len(model)} entries.")
        return model
    return model, X


def _called(function: Callable[..., Any], train: Sample, X: Any) -> Any:
    signature = inspect.signature(function)
    try:
        signature.bind(train.X, train.y, X)
    except TypeError as error:
        raise InvalidTypeError(
            f"got a function with the arguments {signature}, expected f(X_train, y_train, X_test) ({error})."
        ) from error
    options = accepted(function, sample_weight=train.weight, groups=train.groups, mask=train.mask)
    if train.weight is not None and "sample_weight" not in options:
        raise InvalidInputError(
            f"{getattr(function, '__name__', 'The function')} takes no sample_weight, and the subjects have "
            "weights. Write it as f(X_train, y_train, X_test, sample_weight=None)."
        )
    return function(train.X, train.y, X, **options)


def _fitted(kind: Kind, model: Any, train: Sample) -> Any:
    """A copy, fitted. Estimators of other libraries receive the outcome in the form they know."""
    ours = hasattr(last_estimator(model), "predict_distribution")
    for_others = None if ours else kind.for_others(train.y)
    try:
        if for_others is not None:
            return replace(train, y=for_others).fit(clone(model))
        return train.fit(clone(model, safe=False) if ours else Adapted(model))
    except (AttributeError, IndexError, KeyError) as error:
        got = "the outcome, with y.time and y.event" if ours else "what its library takes"
        raise InvalidTypeError(
            f"{type(last_estimator(model)).__name__}.fit: {error}. It got {got}: a model with "
            "predict_distribution is fitted to the outcome, one with predict_survival_function to a "
            "structured array with the fields 'event' and 'time', as models of scikit-survival are."
        ) from error


# ---- the reference ---------------------------------------------------------------------------------------

_REFERENCES = (
    "the name of a forecast, a distribution, an estimator or a function f(X_train, y_train, X_test) that is "
    "fitted to train, or None"
)


def add_reference(
    kind: Kind,
    forecasts: dict[str, Any],
    reference: Any,
    train: Sample | None,
    scored: Sample | None,
    X: Any,
    notes: list[str],
) -> str | None:
    """Put the reference among the forecasts and give its name; None where there is none.

    Without training subjects it is the null model of the scored ones. Their curve has the smallest mean of
    all marginal forecasts, so that its mean has, to first order, the error of a fixed forecast.
    """
    default = kind.reference
    if isinstance(reference, str):
        reference = default_or_name(kind, reference, forecasts)
        if reference == default and train is not None and default in forecasts:
            notes.append(
                f"The forecast called {default!r} is the reference; no Kaplan-Meier curve was fitted to "
                "train. Rename the forecast to have both."
            )
    elif reference is not None and "reference" in forecasts:
        raise InvalidInputError(
            "forecasts: got one called 'reference', which is the name of the reference= that was passed. "
            "Rename the forecast."
        )
    if reference is None or (isinstance(reference, str) and reference in forecasts):
        return reference
    if not (reference is None or hasattr(reference, "fit") or callable(reference)):
        check_kind(reference, "reference", (str, Distribution), _REFERENCES)
    if isinstance(reference, Distribution):
        forecasts["reference"] = kind.as_forecast(reference, X, len(kind.y))
        return "reference"
    if train is None and isinstance(reference, str) and scored is not None:
        return _add_null_model(kind, forecasts, scored, X, notes)
    if train is None:
        notes.append("No skill: the reference is fitted on train=(X_train, y_train), which is missing.")
        return None
    if isinstance(reference, str):
        forecasts[default] = forecast_of(kind, kind.reference_model(train.y), train, X, len(kind.y))
        return default
    forecasts["reference"] = forecast_of(kind, reference, train, X, len(kind.y))
    return "reference"


def _add_null_model(
    kind: Kind, forecasts: dict[str, Any], scored: Sample, X: Any, notes: list[str]
) -> str | None:
    """The default reference, fitted to the scored subjects; a note where a kind of outcome has none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RiskSetWarning)  # the reference was not asked for
            model = kind.reference_model(scored.y)
            forecasts[kind.reference] = forecast_of(kind, model, scored, X, len(kind.y))
    except (CenscoreError, RiskSetWarning) as error:
        notes.append(
            f"No skill: the reference {kind.reference!r} of the scored subjects has failed ({error})"
        )
        return None
    notes.append(
        f"The reference {kind.reference!r} is the null model of the scored subjects themselves, since train "
        "is missing: skill is what forecasts add to knowing how many of these have events (IPA, for the "
        "Brier score)."
    )
    return kind.reference


def check_reference(kind: Kind, reference: Any, forecasts: Iterable[str]) -> None:
    """Check that a reference is known, or can be fitted, before any time is spent on it."""
    if isinstance(reference, str):
        default_or_name(kind, reference, forecasts)
    if reference is None or isinstance(reference, str):
        return
    model, _ = model_and_covariates(reference, None)
    check_instance(model, "reference")
    if not (isinstance(model, Distribution) or hasattr(model, "fit") or callable(model)):
        raise InvalidTypeError(f"reference: got {type(model).__name__}, {_references(kind, forecasts)}")
    check_model("reference", reference, len(kind.y))


def default_or_name(kind: Kind, reference: str, forecasts: Iterable[str]) -> str:
    """The name of the reference: the default one of the kind, or one of the forecasts."""
    reference = kind.reference if reference == KAPLAN_MEIER else reference
    if reference != kind.reference and reference not in forecasts:
        raise InvalidInputError(f"reference: got {shown(reference)}, {_references(kind, forecasts)}")
    return reference


def _references(kind: Kind, forecasts: Iterable[str]) -> str:
    names = some_of(list(forecasts))
    return (
        f"expected {kind.reference!r}, None, a distribution, an estimator, or one of the forecasts: {names}."
    )
