"""Sums of Brier losses in cells of time, without the losses, where a kernel makes them."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import is_torch
from censcore._kernels import on_cpu
from censcore._numerics import run_threads
from censcore.distributions.piecewise_linear import Polyline
from censcore.scores.inputs import scoring_inputs

if TYPE_CHECKING:
    from censcore.evaluation.measures.case import Case

__all__ = ["cell_sums"]

SUBJECTS = 25_000  # whose sums a thread makes at a time


def cell_sums(case: Case, weight: np.ndarray) -> np.ndarray | None:
    r"""Sums (m, cells + 2, cells) of Brier losses with each column of weights (n, m); None without a kernel.

    The losses :math:`1\{y>t\}F(t)^2+1\{y\le t\}\,\delta\,G(t)/G(y-)\,S(t)^2` in the middle t of each cell,
    of a step or piecewise-linear forecast and one C, are summed over subjects whose time has the same place
    among the edges.
    """
    middle = (case.cells[:-1] + case.cells[1:]) / 2
    kernel = on_cpu(
        "censcore.evaluation.measures._cell_sums_numba",
        "cell_sums",
        weight,
        len(weight) * max(len(middle), 1),
    )
    if kernel is None or case.scored is not case.y or len(case.C) > 1:
        return None
    inputs = scoring_inputs(case.y, case.F, case.C, case.horizon, one_cause=True)
    F, lines = inputs.F, isinstance(inputs.F, Polyline) and inputs.F._degree == 1
    if is_torch(inputs.y.time) or inputs.has_never or not (lines or F._degree == 0):
        return None
    times, sf = (F._times, F._as_sf(F._levels)) if lines else F._steps()
    known = inputs.known_at(middle[None, :].astype(inputs.time.dtype))
    y, reach = inputs.y.time, known.seen
    G = np.ascontiguousarray(known.factors(slice(0, 1))[2][0])
    first = case.first(case.cells)

    def part(start: int) -> np.ndarray:
        rows = slice(start, start + SUBJECTS)
        curves = (values if len(values) == 1 else values[rows] for values in (times, sf))
        return kernel(*curves, lines, y[rows], reach[rows], middle, G, first[rows], weight[rows])

    return reduce(np.add, run_threads(part, list(range(0, len(y), SUBJECTS))))
