"""Forecasts of subjects who enter late, who are in the data because they survived to their entry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.evaluation.measures.case import Case
from censcore.exceptions import ImpossibleForecastError
from censcore.outcomes import RightCensored
from censcore.scores.inputs import known_to_exceed

if TYPE_CHECKING:
    from censcore.evaluation.kinds import Kind

__all__ = ["from_entry_on", "given_entry", "note_on_entry"]

D = TypeVar("D", bound=Distribution)


def from_entry_on(kind: Kind, cases: dict[str, Case], notes: list[str]) -> dict[str, Case]:
    """Cases with the forecasts given survival to the entry, if there is one."""
    case = next(iter(cases.values()))
    y, horizon = case.y, case.horizon
    if not y.has_delayed_entry:
        return cases
    entry = to_numpy(y.entry)
    notes.append(note_on_entry(entry, np.ones(len(entry)), horizon))
    first = min(float(known_to_exceed(entry).min()), horizon)
    return {
        name: replace(case, F=kind.given_entry(name, case.F, horizon), prognosis=case.F.given_survival(first))
        for name, case in cases.items()
    }


def given_entry(name: str, F: D, y: RightCensored, horizon: float) -> D:
    """The forecast given survival to the entry, or to the horizon for those who enter after it."""
    try:
        return cast(D, F.given_survival(known_to_exceed(np.minimum(to_numpy(y.entry), horizon))))
    except ImpossibleForecastError as error:
        raise ImpossibleForecastError(f"Forecast {name!r}: {error}", error.rows) from error


def note_on_entry(entry: np.ndarray, count: np.ndarray, horizon: float) -> str:
    """What delayed entry changes in a comparison, where ``count`` subjects have each of the entries."""
    late = int(count[entry >= horizon].sum())
    return (
        f"Delayed entry in {int(count[entry > 0].sum())} of {int(count.sum())} subjects: forecasts are "
        "judged given survival to the entry."
        + (f" The losses of the {late} who enter at or after the horizon are zero." if late else "")
    )
