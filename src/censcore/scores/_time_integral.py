r"""The Brier score integrated over time, on both scales, and the methods that are right for every input.

.. math:: \int_0^y\frac{F(s)^2}{G_1(s)}\,ds+\frac{\delta}{G(y-)}\int_y^\infty G_2(s)\,(1-F(s))^2\,ds

With :math:`G_1=1` and :math:`G_2=G` it is the CRPS; with :math:`G_1=G`, and :math:`G_2=1` up to the horizon,
the score on the ipcw scale. Beyond an event of another cause the integrand is :math:`G_2F^2`.
:mod:`censcore.scores.routes` chooses the method.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore.distributions import PointMass, Step, Univariate
from censcore.scores._squares import (
    area_from,
    as_steps,
    has_common_areas,
    numbers_per_row,
    square_below,
    square_beyond,
    square_of_cdf_beyond,
    weighted_time_of,
)
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

CACHED_NUMBERS = 500_000  # a chunk of subjects that stays in the cache
CELLS_PER_JUMP, MOST_CELLS = 64, 65_536  # of the table that finds a time among the jumps of C

Kernel = Callable[..., np.ndarray]


@dataclass(frozen=True, eq=False)
class TimeIntegral:
    """What is integrated: scoring inputs, and on the ipcw scale the ``end``, a point mass at the horizon."""

    inputs: ScoringInputs
    end: PointMass | None = None

    @property
    def below(self) -> Univariate | None:
        """The distribution of which G_1 is the survival function; None for G_1 = 1."""
        return None if self.end is None else self.inputs.C

    @property
    def beyond(self) -> Univariate:
        """The distribution of which G_2 is the survival function."""
        return self.inputs.C if self.end is None else self.end

    @property
    def one_end(self) -> bool:
        """Whether on the ipcw scale all subjects have one finite end; True on the localized one."""
        return self.end is None or (len(self.end) == 1 and self.has_finite_end)

    @property
    def has_finite_end(self) -> bool:
        """Whether the integral on the ipcw scale ends."""
        return self.end is not None and bool(np.isfinite(to_numpy(self.end.location)).all())

    def take(self, rows: slice) -> TimeIntegral:
        """That of some subjects."""
        return TimeIntegral(self.inputs.take(rows), None if self.end is None else self.end.take(rows))


def squares(integral: TimeIntegral) -> Array:
    """The formula, (n,): sums, closed forms or quadrature, as the distributions allow."""
    inputs = integral.inputs
    below, weighted = square_below(inputs.F, inputs.time, integral.below), inputs
    if integral.end is not None:
        weighted = replace(inputs, C=integral.end)
    beyond = weighted.of_events(lambda part: square_beyond(part.F, part.time, part.C))
    if inputs.has_never:
        beyond = beyond + weighted.of_never(lambda part: square_of_cdf_beyond(part.F, part.time, part.C))
    return below + inverse_probability_weights(inputs)[:, 0] * beyond


def by_formula(integral: TimeIntegral) -> Array:
    """The formula for a few subjects at a time; jumps of a step forecast are found, or sorted, once."""
    numbers, budget = _numbers(integral), {"budget": CACHED_NUMBERS} if integral.end is None else {}

    def part(rows: slice) -> Array:
        subset = integral.take(rows)
        if subset.inputs.F.form == "steps":
            subset = replace(subset, inputs=replace(subset.inputs, F=as_steps(subset.inputs.F)))
        return squares(subset)

    return chunked_rows(part, integral.inputs.n, numbers, like=integral.inputs.y.time, **budget)


def _numbers(integral: TimeIntegral) -> int:
    """How many numbers one subject needs at a time."""
    F, C = integral.inputs.F, integral.inputs.C
    if integral.end is None:
        return numbers_per_row(F, C)
    return 2 * numbers_per_row(F, C) + (0 if len(C) == 1 else numbers_per_row(C, C))


# ---- step forecasts --------------------------------------------------------------------------------


def by_sums(integral: TimeIntegral) -> Array:
    """The score of a step forecast: sums over its jumps, by a kernel where C is a step distribution."""
    inputs, end, numbers, C = integral.inputs, integral.end, _numbers(integral), integral.inputs.C
    common, kernel = has_common_areas(inputs.F, C), None
    if C.form == "steps":
        name = "step_crps" if end is None and not common else "step_in_weighted_time"
        kernel = on_cpu("censcore.scores._crps_numba", name, inputs.y.time, inputs.n * numbers)
    if kernel is None:
        return by_formula(integral)
    if common:
        return _on_common_times(inputs, end, kernel)
    F, y, event, never = inputs.F, inputs.y.time, inputs.y.event, inputs.y.never
    C, reach = as_steps(C) if len(C) == 1 else C, inverse_probability_weights(inputs)[:, 0]

    def crps(rows: slice) -> Array:
        some = as_steps(C.take(rows))
        pieces = some.remember("pieces", lambda: _pieces(some))
        return kernel(F.take(rows).steps(), y[rows], (event[rows], never[rows]), pieces)

    def on_ipcw_scale(rows: slice, h: Array) -> Array:
        weighted_time, (times, sf) = weighted_time_of(C.take(rows)), F.take(rows).steps()
        below = weighted_time(times), weighted_time(y[rows, None])[:, 0]
        return kernel((times, sf), y[rows], below, (times, y[rows], h), reach[rows], never[rows])

    def part(rows: slice) -> Array:
        return crps(rows) if end is None else on_ipcw_scale(rows, end.take(rows).location)

    budget = {"budget": CACHED_NUMBERS} if end is None else {}
    return chunked_rows(part, inputs.n, numbers, like=y, **budget)


def _pieces(C: Step) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    """Step distributions for a kernel: jumps, and G and the area under it as a line between them.

    And where the jumps of one distribution for all are: how many lie before each of many short intervals, and
    how many of these a unit of time has.
    """
    times, G = C.steps()
    finite = np.where(np.isfinite(times), times, 0.0)
    lines = C.areas() - G * finite
    height, lines = (np.pad(part, ((0, 0), (1, 0)), constant_values=at) for part, at in ((G, 1), (lines, 0)))
    jumps = np.pad(times, ((0, 0), (0, 1)), constant_values=np.inf)
    end, cells, per_unit = finite.max(), np.empty(0, dtype=np.int32), 0.0
    if len(C) == 1 and end > 0:
        count = min(CELLS_PER_JUMP * times.size, MOST_CELLS)
        starts = np.linspace(0.0, end, count, endpoint=False) * (1 - 1e-14)  # not after one, by rounding
        cells, per_unit = np.searchsorted(times[0], starts).astype(np.int32), count / float(end)
    return jumps, height, lines, cells, per_unit


def _on_common_times(inputs: ScoringInputs, end: PointMass | None, kernel: Kernel) -> np.ndarray:
    """Losses of step forecasts on common times, (n,), from integrals of the weights of F² and of S².

    They are taken up to those times, (1, J), up to each y, (n,), and up to the end, (1,) or (n,). Areas under
    C are those beyond a time, with the sign changed.
    """
    y, reach, (times, sf) = inputs.y, inverse_probability_weights(inputs)[:, 0], inputs.F.steps()
    if end is None:
        low, low_y, last = times, y.time, np.zeros_like(y.time[:1])
        high, high_y = (-area_from(inputs.C, t) for t in (times, y.time[None, :]))
        high_y = high_y[0]
    else:
        weighted_time = weighted_time_of(inputs.C)
        low, low_y = weighted_time(times), weighted_time(y.time[None, :])[0]
        high, high_y, last = times, y.time, to_numpy(end.location)
    never = y.never

    def part(rows: slice) -> np.ndarray:
        curves = times, sf if len(sf) == 1 else sf[rows]
        until = high, high_y[rows], last if len(last) == 1 else last[rows]
        return kernel(curves, y.time[rows], (low, low_y[rows]), until, reach[rows], never[rows])

    return chunked_rows(part, inputs.n, times.shape[1], like=y.time, budget=CACHED_NUMBERS)
