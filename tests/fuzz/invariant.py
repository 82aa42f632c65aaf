"""What must hold of every call: a right answer, or an error of the library with words."""

from __future__ import annotations

import dataclasses
import math
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.exceptions import ConvergenceWarning

import censcore as cs
from censcore import exceptions
from censcore.distributions import Univariate

OUR_WARNINGS = (
    ConvergenceWarning,
    *(thing for name in exceptions.__all__ if issubclass(thing := getattr(exceptions, name), Warning)),
)
#: What a call may end in.
GOOD = ("answer", "error")


@dataclasses.dataclass(frozen=True)
class Call:
    """One call: a function, its arguments, and how they were made."""

    label: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    #: The answer expected where the arguments are valid ones written in another way.
    same_as: Any = None
    #: Whether nobody can know what an argument means, so that there is no right answer.
    refused: bool = False
    infinite: bool = True
    nan: bool = False


class Endless(BaseException):
    """A call took longer than its limit."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """End what computes for longer, or waits ten times as long: other processes may take their share.

    In the main thread of a system that has alarms.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: Any) -> None:
        raise Endless

    alarms = (
        (signal.SIGPROF, signal.ITIMER_PROF, seconds),
        (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds),
    )
    before = [signal.signal(number, stop) for number, _, _ in alarms]
    for _, timer, most in alarms:
        signal.setitimer(timer, most)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(alarms, before, strict=True):
            signal.setitimer(timer, 0.0)
            signal.signal(number, handler)


def judge(call: Call, seconds: float = 10.0) -> tuple[str, str]:
    """How a call ends, and in which words: 'answer', 'error', or the way in which it breaks the invariant."""
    before = fingerprint(call.arguments)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            with limit(seconds):
                kind, words = _outcome(call)
        except Endless:
            return "hang", f"no end after {seconds:g} s"
    foreign = [
        str(w.message)
        for w in heard
        if not issubclass(w.category, OUR_WARNINGS) and "fitted without feature names" not in str(w.message)
    ]
    if kind in GOOD and foreign:
        return "warning", foreign[0]
    if kind in GOOD and fingerprint(call.arguments) != before:
        return "changed input", "an argument is not what it was before the call"
    return kind, words


def _outcome(call: Call) -> tuple[str, str]:
    try:
        answer = call.function(**call.arguments)
        found = list(numbers(answer))
    except exceptions.CenscoreError as error:
        words = str(error)
        return ("error", words) if len(words.split()) >= 4 else ("no words", words)
    except Exception as error:
        return "foreign error", f"{type(error).__name__}: {error}"
    if call.refused:
        return "accepted", "an answer where nobody can know what was meant"
    for word, values in found:
        if np.isnan(values).any() and not call.nan:
            return "NaN", word
        if not call.infinite and np.isinf(values).any():
            return "infinite", word
        if word in RANGES and not _within(values, *RANGES[word]):
            return "out of range", f"{word}: {values.min()} to {values.max()}"
    if call.same_as is not None:
        for (word, values), (_, expected) in zip(found, call.same_as, strict=False):
            if values.shape != expected.shape or not np.allclose(values, expected, rtol=1e-9, equal_nan=True):
                return "other answer", word
    return "answer", ""


#: What is known of numbers, by the name under which they are found.
RANGES = {
    "sf": (0.0, 1.0),
    "sf_left": (0.0, 1.0),
    "cdf": (0.0, 1.0),
    "icdf": (0.0, math.inf),
    "mean": (0.0, math.inf),
}


def _within(values: np.ndarray, low: float, high: float) -> bool:
    finite = values[~np.isnan(values)]
    return bool(((finite >= low - 1e-9) & (finite <= high + 1e-9)).all())


T = [[0.0, 1e-300, 0.3, 1.0, 2.5, 1e3, 1e300]]
P = [[1e-9, 0.1, 0.5, 0.9, 1 - 1e-9]]


def numbers(answer: Any, word: str = "answer", depth: int = 0) -> Iterator[tuple[str, np.ndarray]]:
    """All numbers that a caller finds in an answer, by name; a distribution is asked for some."""
    if isinstance(answer, cs.Distribution):
        yield from _of_distribution(answer)
    elif isinstance(answer, torch.Tensor | np.ndarray | float | int):
        array = answer.detach().numpy() if isinstance(answer, torch.Tensor) else np.asarray(answer)
        if array.dtype.kind in "fiub":
            yield word, array.astype(np.float64)
    elif isinstance(answer, pd.DataFrame) or depth > 4:
        return
    elif isinstance(answer, Mapping):
        for name, value in answer.items():
            yield from numbers(value, str(name), depth + 1)
    elif isinstance(answer, tuple | list):
        for value in answer:
            yield from numbers(value, word, depth + 1)
    elif type(answer).__module__.startswith("censcore.outcomes"):
        for name in ("time", "lower"):
            if hasattr(answer, name):
                yield from numbers(getattr(answer, name), name, depth + 1)
    elif isinstance(answer, cs.Comparison):
        lines = answer.frame()
        told = lines["note"].str.startswith("not available")  # which says why there is no mean
        yield "means", lines.loc[~told, "mean"].to_numpy(dtype=float)


def _of_distribution(distribution: cs.Distribution) -> Iterator[tuple[str, np.ndarray]]:
    one = distribution if isinstance(distribution, Univariate) else distribution.first()
    if not isinstance(one, Univariate):
        return
    asked = {
        "sf": one.sf(_like(one, T)),
        "sf_left": one.sf_left(_like(one, T)),
        "cdf": one.cdf(_like(one, T)),
        "logsf": one.logsf(_like(one, T)),
        "icdf": one.icdf(_like(one, P)),
        "area": one.integrated_sf(0.0, 2.5),
        "mean": one.mean(),
    }
    for word, values in asked.items():
        yield from numbers(values, word, 1)


def _like(distribution: Univariate, values: Any) -> Any:
    return values


def fingerprint(value: Any, depth: int = 0) -> Any:
    """What of an argument must not change."""
    if depth > 5:
        return None
    if isinstance(value, torch.Tensor):
        dense = value.detach() if value.layout is torch.strided else value.detach().to_dense()
        dense = dense.float() if dense.dtype is torch.bfloat16 else dense  # which NumPy does not have
        return ("tensor", tuple(value.shape), None if value.is_meta else dense.numpy().tobytes())
    if isinstance(value, np.ma.MaskedArray):
        return fingerprint([np.ma.getdata(value), np.ma.getmaskarray(value)], depth + 1)
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "O":
            return ("objects", value.shape)
        return ("array", value.shape, str(value.dtype), value.tobytes(), value.flags.writeable)
    if isinstance(value, pd.DataFrame | pd.Series):
        return ("frame", value.to_csv())
    if isinstance(value, Mapping):
        return tuple((name, fingerprint(part, depth + 1)) for name, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(fingerprint(part, depth + 1) for part in value[:50])
    if isinstance(value, cs.Distribution):
        return tuple(fingerprint(getattr(value, name), depth + 1) for name in value.array_names)
    if type(value).__module__.startswith("censcore.outcomes"):
        return fingerprint({k: v for k, v in vars(value).items() if not k.startswith("_")}, depth + 1)
    return None


@dataclasses.dataclass
class Count:
    """How the calls of a run ended, and one example of each way in which the invariant broke."""

    kinds: Counter[str] = dataclasses.field(default_factory=Counter)
    broken: dict[tuple[str, str, str], str] = dataclasses.field(default_factory=dict)
    times: Counter[tuple[str, str, str]] = dataclasses.field(default_factory=Counter)

    def add(self, name: str, call: Call, kind: str, words: str) -> None:
        """Count one call."""
        self.kinds[kind] += 1
        if kind not in GOOD:
            key = (name, kind, words.split("\n")[0][:90])
            self.times[key] += 1
            self.broken.setdefault(key, call.label)

    @property
    def calls(self) -> int:
        """Number of calls."""
        return self.kinds.total()

    @property
    def failures(self) -> int:
        """Number of calls that broke the invariant."""
        return sum(count for kind, count in self.kinds.items() if kind not in GOOD)

    def lines(self) -> list[str]:
        """One line for each way in which the invariant broke: how often, of which names, and an example."""
        together: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for key in self.broken:
            together.setdefault(key[1:], []).append(key)
        return [
            f"{sum(self.times[key] for key in keys):5d}  {kind}: {words}  <- {self.broken[keys[0]]}"
            + (f" and {len(keys) - 1} more names" if len(keys) > 1 else "")
            for (kind, words), keys in together.items()
        ]

    def __str__(self) -> str:
        parts = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))
        return f"{self.calls:,} calls: {parts}"
