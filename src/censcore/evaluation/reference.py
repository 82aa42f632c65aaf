"""The reference of a comparison: what skill is measured against."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from censcore.distributions import Distribution
from censcore.estimators import KaplanMeier, as_forecast
from censcore.estimators.adapted import as_estimator
from censcore.estimators.covariates import fit_weighted
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import InvalidInputError

__all__ = ["AALEN_JOHANSEN", "KAPLAN_MEIER", "add_reference", "check_reference_name", "fitted_reference"]

#: Names of the default references, of competing risks and of all other outcomes.
AALEN_JOHANSEN, KAPLAN_MEIER = "aalen-johansen", "kaplan-meier"


def add_reference(
    distributions: dict[str, Any],
    reference: Any,
    default: str,
    notes: list[str],
    given: Callable[[Any], Any],
    learned: Callable[[Any], Any] | None,
) -> str | None:
    """Put the reference among the forecasts and give its name; None where there is none.

    ``default`` names the estimate that stands for a reference of that name. ``given`` checks a distribution;
    ``learned`` gives the forecast of an estimator fitted to the training subjects, or of the default for
    None, and is None without training subjects.
    """
    if reference is None or (isinstance(reference, str) and reference in distributions):
        return reference
    if isinstance(reference, str) and reference != default:
        raise InvalidInputError(
            f"reference {reference!r} is none of the forecasts: {', '.join(distributions)}."
        )
    if isinstance(reference, Distribution):
        distributions["reference"] = given(reference)
        return "reference"
    if learned is None:
        notes.append("No skill: the reference is fitted on train=(X_train, y_train), which is missing.")
        return None
    name, estimator = (default, None) if isinstance(reference, str) else ("reference", reference)
    distributions[name] = learned(estimator)
    return name


def fitted_reference(estimator: Any, train: Subjects, X: Any, n: int) -> Distribution:
    """The forecast of an estimator, by default Kaplan-Meier, fitted to the training subjects."""
    model = KaplanMeier() if estimator is None else as_estimator(estimator)
    return as_forecast(fit_weighted(model, train.X, train.y, train.weight), X, n=n)


def check_reference_name(forecasts: Iterable[str], reference: Any, default: str, train: Any) -> list[str]:
    """Forecasts with the name that the reference would get: an error, or a note where it is meant by it."""
    if isinstance(reference, str):
        if reference == default and train is not None and default in forecasts:
            return [
                f"The forecast called {default!r} is the reference; no Kaplan-Meier curve was fitted to "
                "train. Rename the forecast to have both."
            ]
        return []
    if reference is not None and "reference" in forecasts:
        raise InvalidInputError(
            "forecasts: got one called 'reference', which is the name of the reference= that was passed. "
            "Rename the forecast."
        )
    return []
