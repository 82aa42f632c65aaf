"""Survival probabilities on a grid of times: what is taken to hold between the times, and beyond the last."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, convert, detach, to_numpy
from censcore._validation import check_option
from censcore.distributions.derived.truncated import GivenSurvival
from censcore.distributions.univariate.at_one_time import AtOneTime
from censcore.distributions.univariate.curve import in_time_order
from censcore.distributions.univariate.monotone import Repair, monotone
from censcore.distributions.univariate.piecewise_linear import TAILS, PiecewiseLinear
from censcore.distributions.univariate.step import Step
from censcore.exceptions import ImpossibleForecastError, InvalidInputError, RepairWarning

INTERPOLATIONS = ("auto", "step", "linear")
COVERED = 0.95  # share of the events that are at times of the matrix where these are the times of its jumps
DIGITS = 1e-5  # relative: times in names of columns often have six digits
KNOTS = 128  # of an exponential tail between the last time and the horizon
GAP = 0.01  # of the distance to the next time: closer is the same time


@dataclass(frozen=True)
class Reading:
    """How a matrix of survival probabilities was read.

    Attributes
    ----------
    interpolation : {"step", "linear"}
        What holds between the times.
    tail : {"exponential", "infinity", "last"}
        What holds beyond the last.
    reason : str
        Why.
    settled : bool
        Whether event times cannot change the reading any more.
    exact : bool
        Whether the curves are known to be steps at these times, so that no other reading is possible.
    size : int
        How many times the matrix has.
    repair : Repair or None
        What was changed to make the curves monotone, if more than rounding.
    """

    interpolation: str
    tail: str
    reason: str
    settled: bool
    exact: bool = False
    size: int = 0
    repair: Repair | None = None

    def __str__(self) -> str:
        between = "steps" if self.interpolation == "step" else "linear between the times"
        beyond = {
            "exponential": "constant hazard beyond the last",
            "infinity": "no event beyond the last",
            "last": "all events by the last",
        }[self.tail]
        return f"{between}, {beyond} ({self.reason})"


@dataclass(frozen=True)
class MatrixReader:
    r"""Options for reading survival probabilities given at times :math:`t_1<\dots<t_J`.

    A matrix does not say what happens between two columns. Two readings are right for what matrices are:

    - ``"step"``: :math:`P(T>t)` keeps its value up to the next column. This is exact for a model whose curves
      are step functions (Kaplan-Meier, Cox, forests), if the columns are the times of all its jumps. On any
      other grid it delays every event to the next column, which biases the comparison in favour of forecasts
      that are too early.
    - ``"linear"``: straight lines between the columns, from 1 at time 0. The error is of second order in the
      distance of the columns.

    ``"auto"`` takes steps where the model is known to be a step function, and where at least 95 % of the
    ``events`` up to the last column are at a column: the columns then are the times of the jumps, or time
    itself is as discrete as the grid. Otherwise it takes lines.

    Parameters
    ----------
    interpolation : {"auto", "step", "linear"}
        What holds between the columns.
    tail : {"auto", "exponential", "infinity", "last"}
        What holds beyond the last column, see :class:`~censcore.PiecewiseLinear`; by default no event after
        steps, and a constant hazard after lines.
    repair : bool
        Whether curves that turn back by more than rounding are replaced by the nearest monotone ones.
    events : array, (m,), optional
        Event times, of the training subjects where they are at hand.
    steps : bool
        Whether the curves are known to be step functions, given at the times of their jumps.
    """

    interpolation: str = "auto"
    tail: str = "auto"
    repair: bool = False
    events: Array | None = None
    steps: bool = False

    def __post_init__(self) -> None:
        check_option(self.interpolation, "interpolation", INTERPOLATIONS)
        check_option(self.tail, "tail", ("auto", *TAILS))
        if (self.interpolation, self.tail) == ("step", "exponential"):
            raise InvalidInputError(
                "tail: got 'exponential' with interpolation='step', expected 'infinity' or 'last': steps "
                "have no hazard to continue."
            )

    def curves(self, times: Array, sf: Array) -> Step | PiecewiseLinear | AtOneTime:
        """Distributions with survival probabilities ``sf`` (n, J) at ``times`` (J,) or (n, J), in any order.

        :func:`reading_of` says how the matrix was read. One time is no curve, unless the caller says how to
        read it.
        """
        if not self.repair:
            return self._read(times, sf, None)
        times, sf = as_float(times, "times"), as_float(sf, "sf")
        if times.ndim in (1, 2) and times.shape == sf.shape[-times.ndim :]:
            times, sf = in_time_order(times, sf)  # other shapes are an error of the distribution
        sf, repair = monotone(sf, falls=True, repair=True)
        if repair is not None:
            warnings.warn(f"Survival probabilities: {repair}.", RepairWarning, stacklevel=2)
        return self._read(times, sf, repair)

    def _read(self, times: Array, sf: Array, repair: Repair | None) -> Step | PiecewiseLinear | AtOneTime:
        if (self.interpolation, self.tail, self.steps) == ("auto", "auto", False):
            at = to_numpy(times).reshape(-1)
            if len(at) == 2 and sf.ndim == 2 and sf.shape[1] == 2 and (sf[:, at == 0] == 1).all():
                at, sf = at[at > 0], sf[:, at > 0]  # that survival is one at time 0 is no more knowledge
            if len(at) == 1:
                return AtOneTime(at[0], sf=sf)
        if self.interpolation != "auto":
            chosen = Reading(self.interpolation, self.tail, "as asked", settled=True)
        elif self.tail == "exponential":
            chosen = Reading("linear", self.tail, "steps have no such tail", settled=True)
        elif self.steps:
            chosen = Reading("step", self.tail, "the model is a step function", settled=True, exact=True)
        else:
            reason = "there are no event times to tell whether these are the times of its jumps"
            chosen = Reading("linear", self.tail, reason, settled=False)
        F = _curves(times, sf, replace(chosen, repair=repair))
        return F if self.events is None else settled(F, self.events)


def _curves(times: Array, sf: Array, reading: Reading) -> Step | PiecewiseLinear:
    """Curves that remember how they were read; the tail "auto" is the usual one of the interpolation."""
    steps = reading.interpolation == "step"
    tail = reading.tail if reading.tail != "auto" else "infinity" if steps else "exponential"
    F: Step | PiecewiseLinear
    if steps:
        F = Step(times, sf=sf)
        if tail == "last":
            gone = F.xp.zeros_like(F._levels[:, -1:])
            F._levels = F.xp.concat([F._levels[:, :-1], gone], axis=1)
    else:
        F = PiecewiseLinear(times, sf=sf, tail=tail)
    F.reading = replace(reading, tail=tail, size=F._times.shape[1] - (not steps and tail == "last"))
    return F


def _matrix(F: Any) -> Any:
    """The curves of a matrix, which a distribution given survival to an entry still rests on."""
    return F._distribution if isinstance(F, GivenSurvival) else F


def _changed(F: Any, other: Any) -> Any:
    """Other curves in place of those of a matrix: given survival to the entry where F is."""
    return other.given_survival(F._entry[:, 0]) if isinstance(F, GivenSurvival) else other


def reading_of(F: Any) -> Reading | None:
    """How the matrix behind a distribution was read; None for a distribution that was given as one."""
    return getattr(_matrix(F), "reading", None)


def columns_of(F: Any) -> np.ndarray:
    """The times of a matrix of survival probabilities, (1 or n, J)."""
    F = _matrix(F)
    return to_numpy(F._times[:, : F.reading.size])


def reread(F: Any, interpolation: str, tail: str = "auto", **changes: Any) -> Any:
    """The same matrix, read in another way."""
    if _matrix(F) is not F:
        return _changed(F, reread(_matrix(F), interpolation, tail, **changes))
    reading = replace(F.reading, interpolation=interpolation, tail=tail, **changes)
    if (F.reading.interpolation, F.reading.tail) == (interpolation, tail):
        return F.replaced(reading=reading)
    J = F.reading.size
    other = _curves(F._times[:, :J], F._levels[:, :J], reading)
    other._neutral = F._neutral
    return other


def up_to(F: Any, horizon: float) -> Any:
    """A matrix with a tail that is exponential, with lines instead up to the horizon; others as they are.

    Times beyond the horizon do not matter, and lines have integrals in closed form. Where the matrix ends
    before the horizon they join ``KNOTS`` points of the tail.
    """
    reading = reading_of(F)
    if reading is None or reading.tail != "exponential":
        return F
    if _matrix(F) is not F:
        return _changed(F, up_to(_matrix(F), horizon))
    last, xp = F._last, F.xp
    ahead = xp.where(last < horizon, horizon - last, xp.zeros_like(last))
    times, levels = F._times, F._levels
    if float(xp.max(ahead)) > 0:
        share = convert(np.arange(1, KNOTS + 1)[None, :] / KNOTS, last)
        more = last + share * xp.where(ahead > 0, ahead, 1.0)
        tail = F.sf_at(more) if F._falls else F.cdf_at(more)
        if times.shape[0] < more.shape[0]:
            times = xp.broadcast_to(times, (more.shape[0], times.shape[1]))
        times, levels = xp.concat([times, more], axis=1), xp.concat([levels, tail], axis=1)
    return F.replaced(_times=times, _levels=levels, tail="infinity")


def other_readings(F: Any) -> dict[str, Any]:
    """The same matrix with lines, late steps and early steps between its times, less the reading it has.

    Late steps keep the survival up to the next time, and beyond the last; early ones drop at once. Every
    curve through the points lies between the two. A reading that rules out survival to the entry is left out.
    """
    if _matrix(F) is not F:
        readings = {}
        for name, other in other_readings(_matrix(F)).items():
            try:
                readings[name] = _changed(F, other)
            except ImpossibleForecastError:
                continue
        return readings
    times, sf = F._times[:, : F.reading.size], F._levels[:, : F.reading.size]
    xp = F.xp
    linear = F.reading.interpolation == "linear"
    other = {"late steps": reread(F, "step")} if linear else {"lines": reread(F, "linear")}
    starts = xp.concat([xp.zeros_like(times[:, :1]), times], axis=1)
    after = xp.concat([sf, xp.zeros_like(sf[:, :1])], axis=1)
    from_zero = bool(xp.any(times[:, 0] == 0))  # the survival at time 0 is given and nothing drops before
    early = (times, after[:, 1:]) if from_zero else (starts, after)
    return other | {"early steps": Step(early[0], sf=early[1])}


def settled(F: Any, events: Array, whose: str = "training events", count: Array | None = None) -> Any:
    """A distribution whose reading, if that is still open, is settled by event times (m,).

    It is returned as it is unless it is a matrix that was read by ``interpolation="auto"`` without event
    times. The reason calls the events ``whose``; ``count`` says how often each of the times was seen.
    """
    reading = reading_of(F)
    if reading is None or reading.settled:
        return F
    share = on_columns(columns_of(F), events, count)
    known = f"{100 * share:.0f} % of the {whose} up to its last time are at one of its times"
    if share >= COVERED:
        tail = "auto" if reading.tail == "exponential" else reading.tail
        return reread(F, "step", tail, reason=known, settled=True, exact=True)
    return reread(F, "linear", reading.tail, reason=known, settled=True)


def on_columns(times: np.ndarray, events: Array, count: Array | None = None) -> float:
    """The share of the events up to the last time that are at one of the times; zero without events."""
    t = np.unique(to_numpy(times))
    events = to_numpy(detach(events)).ravel()
    in_range = (events > 0) & (events <= t[-1] * (1 + DIGITS))
    events, count = events[in_range], None if count is None else to_numpy(count)[in_range]
    if not len(events) or (np.ndim(times) == 2 and len(times) > 1):
        return 0.0  # also where subjects have times of their own
    near = np.clip(np.searchsorted(t, events), 1, max(len(t) - 1, 1))
    below, above = t[near - 1], t[np.minimum(near, len(t) - 1)]
    distance = np.minimum(np.abs(events - below), np.abs(events - above))
    gap = np.where(above > below, above - below, np.inf)
    return float(np.average(distance <= np.minimum(DIGITS * events, GAP * gap), weights=count))
