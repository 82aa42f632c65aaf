"""The reference of a comparison: what skill is measured against."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from censcore._validation import check_instance
from censcore.distributions import Distribution
from censcore.evaluation.sample import Sample
from censcore.exceptions import CenscoreError, InvalidInputError

if TYPE_CHECKING:
    from censcore.evaluation.kinds import Kind

__all__ = ["AALEN_JOHANSEN", "KAPLAN_MEIER", "add_reference", "check_reference_name"]

#: Names of the default references, of competing risks and of all other outcomes.
AALEN_JOHANSEN, KAPLAN_MEIER = "aalen-johansen", "kaplan-meier"


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
    reference = default if isinstance(reference, str) and reference == KAPLAN_MEIER else reference
    notes += check_reference_name(forecasts, reference, default, train)
    if reference is None or (isinstance(reference, str) and reference in forecasts):
        return reference
    if isinstance(reference, str) and reference != default:
        raise InvalidInputError(
            f"reference: got {reference!r}, expected {default!r}, None, a distribution, or one of the "
            f"forecasts: {', '.join(forecasts)}."
        )
    if isinstance(reference, Distribution):
        forecasts["reference"] = kind.as_forecast(reference, X, len(kind))
        return "reference"
    if train is None and isinstance(reference, str) and scored is not None:
        return _add_null_model(kind, forecasts, scored, X, notes)
    if train is None:
        notes.append("No skill: the reference is fitted on train=(X_train, y_train), which is missing.")
        return None
    if isinstance(reference, str):
        forecasts[default] = kind.fit(kind.reference_model(train.y), train, X)
        return default
    check_instance(reference, "reference")
    forecasts["reference"] = kind.fit(reference, train, X)
    return "reference"


def _add_null_model(
    kind: Kind, forecasts: dict[str, Any], scored: Sample, X: Any, notes: list[str]
) -> str | None:
    """The default reference, fitted to the scored subjects; a note where a kind of outcome has none."""
    try:
        forecasts[kind.reference] = kind.fit(kind.reference_model(scored.y), scored, X)
    except CenscoreError as error:
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
