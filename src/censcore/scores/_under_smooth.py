r"""Step forecasts with many jumps under smooth censoring distributions.

.. math:: \int_y^\infty S^2G\,ds=\sum_{t_j>y}(S_{j-1}^2-S_j^2)\{A(t_j)-A(y)\},\qquad A(t)=\int_0^tG(s)\,ds

needs the antiderivative A of each subject at all of its jumps: it is a polynomial on each of a few panels,
whose values at the nodes cost less than special functions at a thousand members of an ensemble.
"""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore.distributions import Univariate
from censcore.scores._shared_panels import (
    NODES,
    Loss,
    Panels,
    accurate,
    antiderivatives,
    last_coefficients,
    mended,
)
from censcore.scores._squares import as_steps
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

MANY_JUMPS = 64  # from which the panels cost less than the area at every jump
RATIO = 2.0
CHUNK_NUMBERS = 500_000


def panels_of_smooth(inputs: ScoringInputs) -> Panels | None:
    """Panels for many jumps of F under a smooth C up to one finite end; None where others are called for."""
    F, C = inputs.F, inputs.C
    if F._degree != 0 or C._degree is not None or type(inputs.y.time) is not np.ndarray:
        return None
    if inputs.y.time.dtype != np.float64 or F.take(slice(0, 1))._breaks().shape[1] < MANY_JUMPS:
        return None
    ends, breaks = to_numpy(C._end()), C._breaks()
    one_end = bool(np.isfinite(ends).all() and (ends == ends[0]).all())
    if not one_end or (breaks is not None and bool((breaks != ends[0]).any())):
        return None
    return Panels(float(ends[0, 0]), RATIO)


def losses_under_smooth(inputs: ScoringInputs, panels: Panels | None, otherwise: Loss) -> Array:
    """The CRPS, (n,); ``otherwise`` is the loss of subjects whose error is not small, or without panels."""
    jumps = int(inputs.F.take(slice(0, 1))._breaks().shape[1])
    kernel = on_cpu(
        "censcore.scores._crps_numba", "step_crps_on_panels", inputs.y.time, 20 * inputs.n * jumps
    )
    if kernel is None or panels is None:
        return otherwise(inputs)
    shared = _areas(inputs.C, panels) if len(inputs.C) == 1 else None

    def part(rows: slice) -> Array:
        subjects = inputs.take(rows)
        before, powers, slack = shared or _areas(subjects.C, panels)
        reach = inverse_probability_weights(subjects)[:, 0]
        steps = as_steps(subjects.F)._steps()
        loss = kernel(steps, subjects.y.time, reach, panels.edges, (before, powers))
        return mended(loss, (reach <= 0) | accurate(loss, reach * slack), subjects, otherwise)

    numbers = 2 * jumps + 3 * NODES * len(panels.half)
    return chunked_rows(part, inputs.n, numbers, like=inputs.y.time, budget=CHUNK_NUMBERS)


def _areas(C: Univariate, panels: Panels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The antiderivative of G, and a bound of the error of its differences, (1 or n,)."""
    G = C._sf(panels.nodes).reshape(-1, len(panels.half), NODES)
    before, powers = antiderivatives(G, panels)
    last, further = last_coefficients(G)
    rounding = 4 * np.finfo(np.float64).eps * (before[:, -1] + panels.half[-1])
    return before, powers, (last * (2 / NODES + further)) @ panels.half + rounding
