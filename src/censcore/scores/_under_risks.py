r"""Step forecasts on common times under a censoring distribution with proportional hazards.

With :math:`A_r(t)=\int_0^te^{-r\Lambda(s)}\,ds` and the falls :math:`D_j=S_{j-1}^2-S_j^2` of a forecast,

.. math:: \int_y^\infty S^2G\,ds=\sum_{t_j>y}D_j\{A_r(t_j)-A_r(y)\},

a smooth function of :math:`\log r` (:mod:`censcore._risk_tables`): areas at a few risks times the falls of
all subjects are one matrix product, and no subject needs a censoring curve. On the ipcw scale the rises of F²
meet :math:`\int_0^te^{r\Lambda(s)}\,ds` in the same way.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._kernels import on_cpu
from censcore._risk_tables import AreaTable, RiskGroup, interpolation_error, risk_groups
from censcore.distributions import PointMass, ProportionalHazards, Step
from censcore.scores._shared_panels import Loss, accurate
from censcore.scores._squares import as_steps, square_below, square_beyond
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

WORTH_TABLES = 500_000  # jumps of all subjects together from which tables are faster than curves
FEW = 32  # subjects of a group whose own curves cost less than its tables
CHUNK_NUMBERS = 500_000


def are_curves_under_risks(inputs: ScoringInputs) -> bool:
    """Whether C has proportional hazards and a finite end, and F is a step function of common times."""
    F, C = inputs.F, inputs.C
    if not isinstance(C, ProportionalHazards) or len(C) == 1 or F._degree != 0:
        return False
    if type(C._reference) is not np.ndarray or C._reference.dtype != np.float64:
        return False
    times, jumps = F._breaks().shape, C._breaks().shape[1]
    worth = inputs.n * jumps >= WORTH_TABLES and 4 * times[1] <= jumps
    return worth and times[0] == 1 and bool(np.isinf(C._padded()[0, -1]))


def losses_under_risks(inputs: ScoringInputs, end: PointMass | None, otherwise: Loss) -> Array:
    """The CRPS, or the integrated Brier score on the ipcw scale up to an ``end``: (n,).

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    loss, reach = np.empty(inputs.n), inverse_probability_weights(inputs)[:, 0]
    kernel, step = _kernel(inputs), max(1, CHUNK_NUMBERS // int(inputs.F._breaks().shape[1] + 1))
    if kernel is not None and isinstance(inputs.F, Step):  # which makes no curves
        step = inputs.n
    C = inputs.C
    for group in risk_groups(C.risk):
        if len(group.rows) < FEW:
            loss[group.rows] = otherwise(inputs.take(group.rows))
            continue
        areas = AreaTable(C._breaks()[0], C._padded()[0], group.risks, inverse=end is not None)
        for start in range(0, len(group.rows), step):
            part = RiskGroup(group.rows[start : start + step], group.risks, group.mix[start : start + step])
            if kernel is None:
                loss[part.rows], error = _by_formula(
                    inputs.take(part.rows), part, areas, reach[part.rows], end
                )
            else:
                loss[part.rows], error = _by_kernel(inputs, part, areas, reach[part.rows], end, kernel)
            bad = part.rows[~accurate(loss[part.rows], error)]
            if bad.size:
                loss[bad] = otherwise(inputs.take(bad))
    return loss


def _by_formula(
    inputs: ScoringInputs, group: RiskGroup, areas: AreaTable, reach: np.ndarray, end: PointMass | None
) -> tuple[np.ndarray, np.ndarray]:
    F = as_steps(inputs.F)
    value, error = group.read(_weighted(areas, F._steps(), inputs.y.time, beyond=end is None))
    if end is None:
        return square_below(F, inputs.time) + reach * value, reach * error
    last = inputs.of_events(lambda part: square_beyond(as_steps(part.F), part.time, end))
    return value + reach * last, error


def _by_kernel(
    inputs: ScoringInputs,
    group: RiskGroup,
    areas: AreaTable,
    reach: np.ndarray,
    end: PointMass | None,
    kernel: Callable[..., np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Losses from the areas of each subject, and the largest error that those of its areas amount to.

    Falls of S² after y sum to less than one, as do rises of F² before it.
    """
    y, rows = inputs.y.time[group.rows], group.rows
    if isinstance(inputs.F, Step):
        times, sf = inputs.F._steps()
    else:  # curves are made of few subjects at a time
        (times, sf), rows = inputs.F.take(rows)._steps(), np.arange(len(rows))
    at_times = np.ascontiguousarray(areas.up_to(np.append(times[0], np.inf)).T)
    of_y, error = group.read(areas.up_to(y).T)
    error += interpolation_error(at_times[:, :-1].T).max()
    if end is None:
        error += interpolation_error(at_times[:, -1])
    last = np.nan if end is None else float(to_numpy(end.location)[0])
    loss = kernel((times[0], sf, rows), y, (group.mix, at_times, of_y), reach, last)
    return loss, error * (reach if end is None else 1.0)


def _weighted(areas: AreaTable, steps: tuple[Array, Array], y: np.ndarray, *, beyond: bool) -> np.ndarray:
    """The sum over the jumps t > y (``beyond``) or t < y of falls of S² or rises of F² times areas."""
    (t,), S = steps[0], steps[1]
    before = np.concatenate([np.ones_like(S[:, :1]), S[:, :-1]], axis=1)
    if beyond:  # what is left after the last jump falls at infinity
        falls = np.where(t > y[:, None], (before - S) * (before + S), 0.0)
        left = np.broadcast_to(S[:, -1:] ** 2, (len(y), 1))
        falls, t = np.concatenate([falls, left], axis=1), np.append(t, np.inf)
    else:
        falls = np.where(t < y[:, None], (S - before) * (2 - before - S), 0.0)
    return areas.up_to(t).T @ falls.T - areas.up_to(y).T * falls.sum(axis=1)


def _kernel(inputs: ScoringInputs) -> Callable[..., np.ndarray] | None:
    numbers = inputs.n * inputs.F._breaks().shape[1]
    return on_cpu("censcore.scores._crps_numba", "step_under_risks", inputs.y.time, 10 * numbers)
