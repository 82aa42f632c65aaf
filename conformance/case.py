"""One case of the suite: what was observed, what was forecast, and the number that follows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from censcore.exceptions import InvalidInputError

__all__ = ["Case", "Observed", "Variant", "cases", "conventions", "schema"]

FILES = (
    "kaplan_meier",
    "brier",
    "integrated",
    "log",
    "quantiles_and_ensembles",
    "discrimination",
    "calibration",
)


@dataclass(frozen=True)
class Observed:
    """What was observed of the subjects.

    Attributes
    ----------
    time : array, (n,) or (n, k)
        Times of events or censorings.
    event : array of bool, (n,) or (n, k)
        True for an event of any cause, False for a censoring.
    cause : array of int, (n,), or None
        With competing risks, the cause of the event; 0 for a censoring.
    entry, weight, censoring_time : array, (n,), or None
        Times of delayed entry, weights of the subjects, and censoring times where they are known.

    Examples
    --------
    >>> from conformance import cases
    >>> cases("harrell-simple")[0].outcome.time
    array([1., 2., 3., 4.])
    """

    time: np.ndarray
    event: np.ndarray
    cause: np.ndarray | None = None
    entry: np.ndarray | None = None
    weight: np.ndarray | None = None
    censoring_time: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.time)

    @property
    def is_plain(self) -> bool:
        """Whether there is neither delayed entry nor a weight."""
        return self.entry is None and self.weight is None


@dataclass(frozen=True)
class Variant:
    """The number that other conventions give.

    Attributes
    ----------
    names : tuple of str
        Names of the conventions, keys of :func:`conventions`.
    value : array, (q,)
        The number.
    exact : tuple of str
        The same as arithmetic.

    Examples
    --------
    >>> from conformance import cases
    >>> [variant.names for variant in cases("brier-ipcw-tie")[0].variants][0]
    ('events over G(y)',)
    """

    names: tuple[str, ...]
    value: np.ndarray
    exact: tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """One case of the suite.

    Attributes
    ----------
    id, title, topic : str
        What the case is about; ``topic`` is shared by the cases of one question, such as ties.
    quantity : str
        What is to be computed, a key of the dictionary that :func:`run` receives.
    outcome : Observed
        The subjects that are scored.
    train : Observed
        The subjects that the censoring distribution is estimated from; the outcome itself unless the case
        says otherwise.
    forecast : dict or None
        ``kind`` and its numbers: "steps" (``times``, ``sf`` with one row for each subject or one for all),
        "exponential" (``rate``), "uniform" (``high``), "ensemble" (``members``), "risk" (``values``),
        "cumulative incidence" (``times``, ``cif`` of each cause).
    censoring : dict or None
        ``kind`` and its numbers: "kaplan-meier" (to be estimated from ``train``), "known" (``time``), "steps"
        (``times``, ``sf``), "uniform" (``high``), "none" (nothing can be censored).
    arguments : dict
        ``times``, ``levels``, ``horizon``, ``cause``, ``bins``, as far as the quantity has them.
    expected : array, (q,), or None
        The number: means over subjects (weighted where there are weights), one for each time, level or bin.
        None if there is no answer, and a library should say so.
    exact, derivation : tuple of str, str
        The same number as arithmetic, and in words.
    variants : tuple of Variant
        Numbers of other conventions.
    tolerance : float
        Largest difference, absolute and relative, that counts as agreement.

    See Also
    --------
    cases : All of them.

    Examples
    --------
    >>> from conformance import cases
    >>> case = cases("brier-ipcw-tie")[0]
    >>> case.quantity, case.survival().shape
    ('brier_score_ipcw', (4, 1))
    """

    id: str
    title: str
    topic: str
    quantity: str
    outcome: Observed
    train: Observed
    forecast: Mapping[str, Any] | None
    censoring: Mapping[str, Any] | None
    arguments: Mapping[str, Any]
    expected: np.ndarray | None
    exact: tuple[str, ...]
    derivation: str
    variants: tuple[Variant, ...]
    tolerance: float

    @property
    def times(self) -> np.ndarray:
        """Evaluation times, (q,), in the order given."""
        return np.asarray(self.arguments.get("times", []), dtype=np.float64)

    def forecast_is(self, kind: str) -> bool:
        """Whether the forecast is of this kind."""
        return self.forecast is not None and self.forecast["kind"] == kind

    def censoring_is(self, kind: str) -> bool:
        """Whether the censoring distribution is of this kind."""
        return self.censoring is not None and self.censoring["kind"] == kind

    def survival(self, times: Any = None) -> np.ndarray:
        """S(t) of a step forecast, (n, q): right-continuous, one before the first jump.

        Parameters
        ----------
        times : array, (q,), optional
            Those of the case if left out.

        Returns
        -------
        array, (n, q)
        """
        if not self.forecast_is("steps"):
            raise InvalidInputError(f"case {self.id!r} has no step forecast, so no survival matrix.")
        assert self.forecast is not None
        at = self.times if times is None else np.asarray(times, dtype=np.float64)
        sf = np.atleast_2d(numbers(self.forecast["sf"]))
        place = np.searchsorted(numbers(self.forecast["times"]), at, side="right")
        curve = np.hstack([np.ones((len(sf), 1)), sf])[:, place]
        return np.broadcast_to(curve, (len(self.outcome), len(at))).copy()

    def incidence(self, times: Any = None) -> np.ndarray:
        """F_j(t) of a forecast of competing risks, (causes, n, q), right-continuous.

        Parameters
        ----------
        times : array, (q,), optional
            Those of the case if left out.

        Returns
        -------
        array, (causes, n, q)
        """
        if not self.forecast_is("cumulative incidence"):
            raise InvalidInputError(f"case {self.id!r} has no forecast of competing risks.")
        assert self.forecast is not None
        at = self.times if times is None else np.asarray(times, dtype=np.float64)
        cif = numbers(self.forecast["cif"])
        place = np.searchsorted(numbers(self.forecast["times"]), at, side="right")
        curve = np.hstack([np.zeros((len(cif), 1)), cif])[:, None, place]
        return np.broadcast_to(curve, (len(cif), len(self.outcome), len(at))).copy()


def numbers(values: Any) -> np.ndarray:
    """An array of numbers; the strings "inf" and fractions such as "1/3" are read."""
    if isinstance(values, str):
        top, _, bottom = values.partition("/")
        return np.asarray(float(top) / float(bottom) if bottom else float(top))
    if isinstance(values, Iterable):
        return np.asarray([numbers(value) for value in values], dtype=np.float64)
    return np.asarray(values, dtype=np.float64)


def cases(*chosen: str) -> tuple[Case, ...]:
    """The cases of the suite.

    Parameters
    ----------
    *chosen : str
        Ids or quantities; all cases if left out.

    Returns
    -------
    tuple of Case

    See Also
    --------
    run : Runs them on a library.

    Examples
    --------
    >>> from conformance import cases
    >>> case = cases("harrell-simple")[0]
    >>> print(case.derivation)
    Events at 1, 2 and 4; the censoring at 3 is later than two of them. ...
    >>> len(cases()) > 60
    True
    """
    found = _all_cases()
    known = {case.id for case in found} | {case.quantity for case in found}
    if unknown := sorted(set(chosen) - known):
        raise InvalidInputError(f"got {unknown}, expected ids or quantities of cases: {sorted(known)}.")
    return tuple(case for case in found if not chosen or {case.id, case.quantity} & set(chosen))


def conventions() -> dict[str, str]:
    """What is meant by the names of conventions.

    Returns
    -------
    dict
        A sentence for each name.

    Examples
    --------
    >>> from conformance import conventions
    >>> conventions()["events over G(y)"]
    'An event at y is divided by P(C > y) instead of P(C >= y).'
    """
    return dict(_read("conventions"))


def schema() -> dict[str, Any]:
    """The JSON schema of a file of cases.

    Returns
    -------
    dict

    Examples
    --------
    >>> from conformance import schema
    >>> schema()["title"]
    'Conformance cases for scores of censored event times'
    """
    return dict(_read("schema"))


def _read(name: str) -> Any:
    folder = resources.files("conformance") / "cases"
    return json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))


@cache
def _all_cases() -> tuple[Case, ...]:
    return tuple(read_case(entry) for name in FILES for entry in _read(name)["cases"])


def read_case(entry: Mapping[str, Any]) -> Case:
    """A case from its entry in a file."""
    expected = entry["expected"]
    outcome = _observed(entry["outcome"])
    return Case(
        entry["id"],
        entry["title"],
        entry["topic"],
        entry["quantity"],
        outcome,
        _observed(entry["train"]) if "train" in entry else outcome,
        entry.get("forecast"),
        entry.get("censoring"),
        entry.get("arguments", {}),
        numbers(expected["value"]) if "value" in expected else None,
        tuple(expected.get("exact", ())),
        expected["derivation"],
        tuple(
            Variant(tuple(variant["names"]), numbers(variant["value"]), tuple(variant["exact"]))
            for variant in entry.get("variants", ())
        ),
        float(entry.get("tolerance", 1e-6)),
    )


def _observed(entry: Mapping[str, Any]) -> Observed:
    floats = {name: numbers(entry[name]) for name in ("entry", "weight", "censoring_time") if name in entry}
    cause = np.asarray(entry["cause"], dtype=np.int64) if "cause" in entry else None
    event = np.asarray(entry["event"], dtype=bool) if cause is None else cause > 0
    return Observed(numbers(entry["time"]), event, cause, **floats)
