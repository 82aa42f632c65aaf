"""Run the cases on a library and say what came out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore.exceptions import InvalidInputError
from conformance.case import Case, cases

__all__ = ["STATUSES", "Adapter", "NotOffered", "Result", "Results", "run"]

#: Functions by quantity; each receives a case and gives its numbers.
Adapter = Mapping[str, Callable[[Case], Any]]

#: What the outcome of a case is called, and what that means.
STATUSES = {
    "right": "the expected number; where there is no answer, an error, NaN or infinity",
    "convention": "the number of another convention, which is named",
    "wrong": "another number, and by how much",
    "error": "an error where there is an answer",
    "warned": "a number with a warning, where there is no answer",
    "silent": "a number without a warning, where there is no answer",
    "not offered": "the library does not compute this",
}


class NotOffered(Exception):
    """Raised by a function of an adapter for a case that the library has no means for, such as weights."""


@dataclass(frozen=True)
class Result:
    """What a library gave for one case.

    Attributes
    ----------
    case : Case
        The case.
    status : str
        A key of ``STATUSES``.
    detail : str
        The convention, the difference or the message.
    value : array or None
        The number that was given.

    Examples
    --------
    >>> from conformance import run
    >>> run({"concordance": lambda case: 0.75}, "harrell-simple")[0]
    Result(harrell-simple: wrong, off by -0.05 (0.75 instead of 0.8))
    """

    case: Case
    status: str
    detail: str = ""
    value: np.ndarray | None = None

    def __repr__(self) -> str:
        detail = f", {self.detail}" if self.detail else ""
        return f"Result({self.case.id}: {self.status}{detail})"


@dataclass(frozen=True)
class Results:
    """What a library gave for all cases.

    Attributes
    ----------
    results : tuple of Result
        One for each case.

    Examples
    --------
    >>> from conformance import run
    >>> run({"concordance": lambda case: 0.8}, "harrell-simple").counts()
    {'right': 1}
    """

    results: tuple[Result, ...]

    def __iter__(self) -> Iterator[Result]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, place: int) -> Result:
        return self.results[place]

    def counts(self) -> dict[str, int]:
        """Number of cases of each status that occurs."""
        found = [result.status for result in self.results]
        return {status: found.count(status) for status in STATUSES if status in found}

    def __str__(self) -> str:
        lines = [f"{status}: {count}" for status, count in self.counts().items()]
        notable = [result for result in self.results if result.status not in ("right", "not offered")]
        return "\n".join([", ".join(lines), *(f"  {result!r}" for result in notable)])


def run(adapter: Adapter, *chosen: str, suite: Iterable[Case] | None = None) -> Results:
    """Run cases on a library.

    Parameters
    ----------
    adapter : dict
        For each quantity that the library offers, a function that receives a :class:`Case` and returns its
        numbers: means over subjects, one for each time, level or bin. It may raise :class:`NotOffered` for a
        case that the library has no means for.
    *chosen : str
        Ids or quantities; all cases if left out.
    suite : iterable of Case, optional
        Other cases than those of the package.

    Returns
    -------
    Results

    See Also
    --------
    cases : What is run.
    library : Adapters of other libraries.

    Examples
    --------
    >>> import numpy as np
    >>> from conformance import run
    >>> def harrell(case):
    ...     t, d, r = case.outcome.time, case.outcome.event, np.asarray(case.forecast["values"])
    ...     pair = d[:, None] & (t[:, None] < t)          # overlooks ties with censorings
    ...     return (pair * (r[:, None] > r)).sum() / pair.sum()
    >>> print(run({"concordance": harrell}, "harrell-simple", "harrell-censored-at-event"))
    right: 1, convention: 1
      Result(harrell-censored-at-event: convention, ties not comparable)
    """
    if not isinstance(adapter, Mapping):
        raise InvalidInputError(
            f"adapter: got {type(adapter).__name__}, expected a dictionary from quantities to functions of a "
            "case."
        )
    everything = cases(*chosen) if suite is None else tuple(suite)
    return Results(tuple(_result(adapter, case) for case in everything))


def _result(adapter: Adapter, case: Case) -> Result:
    function = adapter.get(case.quantity)
    if function is None:
        return Result(case, "not offered")
    with warnings.catch_warnings(record=True) as said, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            value = np.atleast_1d(np.asarray(function(case), dtype=np.float64))
        except NotOffered as reason:
            return Result(case, "not offered", str(reason))
        except Exception as error:
            return _raised(case, error)
    if case.expected is None:
        return _without_answer(case, value, bool(said))
    return _compared(case, value)


def _raised(case: Case, error: Exception) -> Result:
    message = " ".join(f"{type(error).__name__}: {error}".split())
    return Result(case, "right" if case.expected is None else "error", message[:160])


def _without_answer(case: Case, value: np.ndarray, warned: bool) -> Result:
    if not np.isfinite(value).any():
        return Result(case, "right", f"gives {_text(value)}", value)
    names = _convention(case, value)
    detail = f"gives {_text(value)}" + (f": {names}" if names else "")
    return Result(case, "warned" if warned else "silent", detail, value)


def _compared(case: Case, value: np.ndarray) -> Result:
    assert case.expected is not None
    if value.shape != case.expected.shape:
        return Result(case, "wrong", f"got {value.size} numbers, expected {case.expected.size}", value)
    if _agree(value, case.expected, case.tolerance):
        return Result(case, "right", "", value)
    if names := _convention(case, value):
        return Result(case, "convention", names, value)
    if np.isnan(value).any():
        return Result(case, "wrong", f"gives {_text(value)}", value)
    gap = np.where(value == case.expected, 0.0, value - case.expected)
    k = int(np.argmax(np.abs(gap)))
    return Result(
        case, "wrong", f"off by {gap[k]:.6g} ({value[k]:.6g} instead of {case.expected[k]:.6g})", value
    )


def _convention(case: Case, value: np.ndarray) -> str:
    for variant in case.variants:
        if value.shape == variant.value.shape and _agree(value, variant.value, case.tolerance):
            return "; ".join(variant.names)
    return ""


def _agree(value: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    return bool(np.allclose(value, expected, rtol=tolerance, atol=tolerance, equal_nan=True))


def _text(value: np.ndarray) -> str:
    return ", ".join(f"{number:.4g}" for number in value)
