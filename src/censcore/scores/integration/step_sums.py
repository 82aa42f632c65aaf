r"""The integrated Brier score of step forecasts: sums over the jumps, of areas under C.

With the antiderivative A of G, the part beyond y is

.. math:: \int_y^\infty S^2G\,ds=\sum_{t_j>y}(S_{j-1}^2-S_j^2)\{A(t_j)-A(y)\},\qquad A(t)=\int_0^tG(s)\,ds,

and the part below y is such a sum of rises of F² and the time since each jump. A is exact for every C. Where
a smooth C meets many jumps it is a polynomial on each of a few panels, whose values at the nodes cost less
than special functions at a thousand members of an ensemble. One curve for all needs one antiderivative.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._kernels import on_cpu
from censcore._numerics import CHUNK_NUMBERS, chunked_rows
from censcore.distributions import PointMass, Step, Univariate
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.integration.cdf_integrals import (
    area_from,
    as_steps,
    has_common_areas,
    is_shared,
    jumps_of,
    weighted_time_of,
)
from censcore.scores.integration.shared_panels import (
    NODES,
    RATIOS,
    Loss,
    Method,
    Panels,
    accurate,
    antiderivatives,
    last_coefficients,
    mended,
    one_end,
    panels_until,
)
from censcore.scores.integration.time_integral import (
    CACHED_NUMBERS,
    TimeIntegral,
    by_formula,
    numbers_per_subject,
    squares,
)

CELLS_PER_JUMP, MOST_CELLS = 64, 65_536  # of the table that finds a time among the jumps of C

Kernel = Callable[..., np.ndarray]


def sums_method(it: TimeIntegral, otherwise: Loss) -> Method:
    """Losses of step forecasts; ``otherwise`` is that of subjects whose error is not small."""
    F, C = it.inputs.F, it.inputs.C
    if is_shared(F, C) and (it.end is None or (len(C) == 1 and C.form == "steps")):
        return lambda: squares(replace(it, inputs=replace(it.inputs, F=as_steps(F))))
    on_panels = it.end is None and not it.inputs.has_never
    return (jumps_on_panels(it, otherwise) if on_panels else None) or by_sums(it)


def by_sums(it: TimeIntegral) -> Method:
    """Losses of step forecasts as finite sums; None on the ipcw scale where there are none."""
    fits = it.end is None or (it.inputs.C.form == "steps" and it.has_finite_end)
    return partial(_sums, it) if fits else None


def _sums(integral: TimeIntegral) -> Array:
    """The score of a step forecast: sums over its jumps, by a kernel where C is a step distribution."""
    inputs, end, numbers, C = integral.inputs, integral.end, numbers_per_subject(integral), integral.inputs.C
    common, kernel = has_common_areas(inputs.F, C), None
    if C.form == "steps":
        name = "step_crps" if end is None and not common else "step_in_weighted_time"
        kernel = on_cpu("censcore.scores.kernels.crps_numba", name, inputs.y.time, inputs.n * numbers)
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

    return chunked_rows(part, inputs.n, numbers, y, CACHED_NUMBERS if end is None else CHUNK_NUMBERS)


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


# ---- many jumps, and a smooth C ----------------------------------------------------------------------

MANY_JUMPS = 64  # from which the panels cost less than the area at every jump
AREA_NUMBERS = 500_000


def jumps_on_panels(it: TimeIntegral, otherwise: Loss) -> Method:
    """The CRPS of forecasts with many jumps under a smooth C that does not bend before one finite end.

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    inputs, F, C, y = it.inputs, it.inputs.F, it.inputs.C, it.inputs.y.time
    if C.form == "steps" or type(y) is not np.ndarray or y.dtype != np.float64:
        return None
    jumps = jumps_of(F)
    until, breaks = one_end(C.support_end()), C.breaks()
    bends = breaks is not None and bool(((breaks > 0) & (breaks != until)).any())
    if jumps < MANY_JUMPS or until is None or bends:
        return None
    kernel = on_cpu("censcore.scores.kernels.crps_numba", "step_crps_on_panels", y, 20 * inputs.n * jumps)
    if kernel is None:
        return partial(otherwise, inputs)
    panels = panels_until(until, RATIOS[0] if C.form == "smooth" else np.inf, ())
    shared = _areas(C, panels) if len(C) == 1 else None
    reach, good = inverse_probability_weights(inputs)[:, 0], np.empty(inputs.n, dtype=bool)

    def part(rows: slice) -> Array:
        before, powers, slack = shared or _areas(C.take(rows), panels)
        loss = kernel(F.take(rows).steps(), y[rows], reach[rows], panels.edges, (before, powers))
        good[rows] = (reach[rows] <= 0) | accurate(loss, reach[rows] * slack)
        return loss

    numbers = 2 * jumps + 3 * NODES * len(panels.half)
    return lambda: mended(chunked_rows(part, inputs.n, numbers, y, AREA_NUMBERS), good, inputs, otherwise)


def _areas(C: Univariate, panels: Panels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The antiderivative of G, and a bound of the error of its differences, (1 or n,)."""
    G = C.sf_at(panels.nodes).reshape(-1, len(panels.half), NODES)
    before, powers = antiderivatives(G, panels)
    last, further = last_coefficients(np, G)
    rounding = 4 * np.finfo(np.float64).eps * (before[:, -1] + panels.half[-1])
    return before, powers, (last * (2 / NODES + further)) @ panels.half + rounding
