"""Questions about several event times, to be asked of samples: either, all, first, before, in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from censcore._arrays import Array, namespace
from censcore.exceptions import InvalidInputError

__all__ = ["JointEvent", "all_before", "before", "either_before", "first_is", "in_order"]

#: Maps times (..., k) to booleans (...).
JointEvent = Callable[[Array], Array]


def either_before(t: float, coordinates: list[int] | None = None) -> JointEvent:
    """At least one of the event times is at or before ``t``.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions.joint_events import either_before
    >>> either_before(24.0)(np.array([[10.0, 90.0], [30.0, 40.0]]))
    array([ True, False])
    """
    return lambda times: namespace(times).any(_chosen(times, coordinates) <= t, axis=-1)


def all_before(t: float, coordinates: list[int] | None = None) -> JointEvent:
    """All of the event times are at or before ``t``.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions.joint_events import all_before
    >>> all_before(50.0)(np.array([[10.0, 90.0], [30.0, 40.0]]))
    array([False,  True])
    """
    return lambda times: namespace(times).all(_chosen(times, coordinates) <= t, axis=-1)


def first_is(j: int) -> JointEvent:
    """Coordinate ``j`` comes first, strictly before all others.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions.joint_events import first_is
    >>> first_is(1)(np.array([[10.0, 90.0], [60.0, 40.0]]))
    array([False,  True])
    """
    return _FirstIs(j)


@dataclass(frozen=True)
class _FirstIs:
    """The event of :func:`first_is`; it is decided as soon as any event has happened."""

    j: int
    decided_by_first: ClassVar[bool] = True

    def __call__(self, times: Array) -> Array:
        k = times.shape[-1]
        others = [i for i in range(k) if i != self.j % k]
        earliest = times[..., self.j % k, None]
        if not others:
            return namespace(times).isfinite(earliest[..., 0])
        return namespace(times).all(earliest < times[..., others], axis=-1)


def before(i: int, j: int) -> JointEvent:
    """Coordinate ``i`` happens, strictly before ``j``; whether ``j`` happens later does not matter.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions.joint_events import before
    >>> before(0, 1)(np.array([[10.0, 90.0], [10.0, np.inf], [60.0, 40.0]]))
    array([ True,  True, False])
    """
    return lambda times: times[..., i] < times[..., j]


def in_order(*coordinates: int) -> JointEvent:
    """The named coordinates all happen, in this order, strictly.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions.joint_events import in_order
    >>> in_order(0, 1)(np.array([[10.0, 90.0], [10.0, np.inf], [60.0, 40.0]]))
    array([ True, False, False])
    """
    if len(coordinates) < 2:
        raise InvalidInputError("in_order needs at least two coordinates.")

    def event(times: Array) -> Array:
        xp, ordered = namespace(times), times[..., list(coordinates)]
        in_turn = xp.all(ordered[..., :-1] < ordered[..., 1:], axis=-1)
        return in_turn & xp.isfinite(ordered[..., -1])  # later than t is infinite, as is never

    return event


def _chosen(times: Array, coordinates: list[int] | None) -> Any:
    return times if coordinates is None else times[..., coordinates]
