r"""Forecasts, or censoring distributions, with proportional hazards: losses from tables at a few risks.

.. math:: \int_0^yF^2\,dw+\frac{\delta}{G(y-)}\int_y^eS^2\,dv,\qquad S=e^{-rH}

with weights w and v that serve all subjects is the value at r of a function that is summed over the jumps for
a few risks only (:mod:`censcore._risk_tables`). A weight that is a smooth function of its own for every
subject, such as G of a parametric model, is integrated on shared panels under the moments of :math:`F^2` and
:math:`S^2` at these risks (:mod:`censcore.scores.integration.shared_panels`). Where G has
proportional hazards too, the sums are made at each pair of risks.

Step forecasts on common times under a censoring distribution with proportional hazards: with
:math:`A_r(t)=\int_0^te^{-r\Lambda(s)}\,ds` and the falls :math:`D_j=S_{j-1}^2-S_j^2` of a forecast,

.. math:: \int_y^\infty S^2G\,ds=\sum_{t_j>y}D_j\{A_r(t_j)-A_r(y)\}

is a smooth function of :math:`\log r`: areas at a few risks times the falls of all subjects are one matrix
product, and no subject needs a censoring curve. On the ipcw scale the rises of F² meet
:math:`\int_0^te^{r\Lambda(s)}\,ds` in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._kernels import on_cpu
from censcore._quadrature import Function, area, times_area
from censcore._risk_tables import AreaTable, RiskGroup, interpolation_error, risk_groups, weights_at
from censcore.distributions import PointMass, ProportionalHazards, Step, Univariate
from censcore.distributions.univariate.proportional_hazards import area_tables
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.integration.cdf_integrals import as_steps, square_below, square_beyond, weighted_time_of
from censcore.scores.integration.panel_quadrature import has_many_risks
from censcore.scores.integration.shared_panels import (
    NODES,
    RATIOS,
    Integral,
    Loss,
    Method,
    Panels,
    Pieces,
    Sides,
    StepWeights,
    accurate,
    integral,
    mended,
    one_end,
)
from censcore.scores.integration.time_integral import TimeIntegral

WORTH_TABLES = 500_000  # jumps of all subjects together from which tables are faster than sums
FEW = 16  # subjects of a group whose own sums cost less than its tables
CHUNK = 1_000  # subjects with smooth weights at a time
LEBESGUE = 2.6  # by which interpolation at the risks enlarges errors at them, at most


def risk_method(it: TimeIntegral, otherwise: Loss) -> Method:
    """Losses where the forecast, or C, has proportional hazards, and tables at few risks cost less than sums.

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    if it.inputs.has_never:
        return None
    inputs = with_risks(it.inputs)
    if has_risks(inputs, it.below, it.beyond):
        return partial(risk_losses, inputs, it.below, it.beyond, otherwise)
    if it.one_end and are_curves_under_risks(it.inputs):
        return partial(losses_under_risks, it.inputs, it.end, otherwise)
    return None


def has_risks(inputs: ScoringInputs, below: Univariate | None, beyond: Univariate) -> bool:
    """Whether tables serve: many subjects and jumps, and weights that are shared or smooth."""
    F = inputs.F
    if not isinstance(F, ProportionalHazards) or len(F) == 1 or F.reference.dtype != np.float64:
        return False
    if inputs.n * F.breaks().shape[1] < WORTH_TABLES:
        return False
    if np.isfinite(F.baseline()[1][-1]) and not np.isfinite(to_numpy(beyond.support_end())).all():
        return False  # what is left at infinity may make the loss infinite
    one_of_steps = below is None or (below.form == "steps" and len(below) == 1)
    return (one_of_steps or _is_shared(below, inputs.n)) and (
        len(beyond) == 1 or _is_shared(beyond, inputs.n)
    )


def with_risks(inputs: ScoringInputs) -> ScoringInputs:
    """With one step forecast for all subjects as proportional hazards, where C has them and many jumps."""
    F, C = inputs.F, inputs.C
    if len(F) > 1 or F.form != "steps" or not has_many_risks(C, inputs.n) or F.reference.dtype != np.float64:
        return inputs
    times, sf = (array[0] for array in F.steps())
    finite = np.isfinite(times)
    with np.errstate(divide="ignore"):
        hazard = np.maximum.accumulate(-np.log(sf[finite]))
    if not finite.any() or (np.diff(times[finite]) <= 0).any():
        return inputs
    return replace(inputs, F=ProportionalHazards(times[finite], hazard, np.ones(inputs.n)))


def _is_shared(C: Univariate | None, n: int) -> bool:
    """A baseline and a risk of each subject, or a smooth function of each up to one finite end."""
    assert C is not None
    if has_many_risks(C, n):
        return True
    return C.form == "smooth" and one_end(C.support_end()) is not None


def risk_losses(
    inputs: ScoringInputs, below: Univariate | None, beyond: Univariate, otherwise: Loss
) -> Array:
    """One loss per subject, with w = 1/P(``below`` > t) and v = P(``beyond`` > t): (n,).

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    loss, weights = np.empty(inputs.n), inverse_probability_weights(inputs)[:, 0]
    curves = _Curves(inputs.F)
    for group in risk_groups(inputs.F.risk):
        subjects, rows = inputs.take(group.rows), group.rows
        if len(rows) < FEW:
            loss[rows] = otherwise(subjects)
            continue
        first = _below(subjects, None if below is None else below.take(rows), group, curves)
        second = _beyond(subjects, beyond.take(rows), group, curves)
        value, error = (u + weights[rows] * v for u, v in zip(first, second, strict=True))
        loss[rows] = mended(value, accurate(value, error), subjects, otherwise)
    return loss


class _Curves:
    """The baseline of a forecast: pieces that start at ``since`` and end at ``until``, with their hazard."""

    def __init__(self, F: ProportionalHazards) -> None:
        times, self.hazard = F.baseline()
        self.since, self.until = np.append(0.0, times), np.append(times, np.inf)
        self._pieces: Pieces | None = None

    def on_panels(self, end: float) -> Pieces:
        """The pieces of panels up to an end, which is the same for all groups of subjects."""
        if self._pieces is None:
            self._pieces = Pieces(Panels(end, RATIOS[0]), self.since[1:])
        return self._pieces


def _below(inputs: ScoringInputs, C: Univariate | None, group: RiskGroup, curves: _Curves) -> Integral:
    squares = np.expm1(-group.risks[:, None] * curves.hazard) ** 2
    if C is not None and (C.form == "smooth" or len(C) > 1):
        each = _on_panels if C.form == "smooth" else _under_risks
        return each(inputs, C, group, curves, squares, beyond=False)
    weighted: Function = (lambda t: t) if C is None else weighted_time_of(C)
    at, y = weighted(curves.since[None])[0], weighted(inputs.time)[:, 0]
    passed = np.zeros_like(squares)
    np.cumsum(squares[:, :-1] * np.diff(at), axis=1, out=passed[:, 1:])
    observed: np.ndarray = inputs.y.time
    k = np.searchsorted(curves.since[1:], observed, side="left")
    way = y - at[k]
    return group.read_in_parts(lambda i: passed[:, k[i]] + squares[:, k[i]] * way[i])


def _beyond(inputs: ScoringInputs, C: Univariate | None, group: RiskGroup, curves: _Curves) -> Integral:
    assert C is not None
    squares = np.exp(-2 * group.risks[:, None] * curves.hazard)
    if len(C) > 1:
        each = _on_panels if C.form == "smooth" else _under_risks
        return each(inputs, C, group, curves, squares, beyond=True)
    pieces = times_area(squares, area(C, curves.since[None], curves.until[None])[0])
    later = np.zeros_like(squares)
    later[:, :-1] = np.cumsum(pieces[:, :0:-1], axis=1)[:, ::-1]
    observed: np.ndarray = inputs.y.time
    k = np.searchsorted(curves.since[1:], observed, side="right")
    way = area(C, inputs.time, curves.until[k, None])[:, 0]
    return group.read_in_parts(lambda i: later[:, k[i]] + times_area(squares[:, k[i]], way[i]))


def _on_panels(
    inputs: ScoringInputs,
    C: Univariate,
    group: RiskGroup,
    curves: _Curves,
    squares: np.ndarray,
    *,
    beyond: bool,
) -> Integral:
    """Integrals of F²/G or S² G of each subject, G smooth."""
    pieces, y_all = curves.on_panels(float(to_numpy(C.support_end())[0, 0])), inputs.y.time
    panels, start = pieces.panels, float(beyond)
    side = Sides(StepWeights(pieces, squares[:, 1:], beyond=beyond, start=start, reads=y_all))
    value, error = np.empty((2, inputs.n))
    for first in range(0, inputs.n, CHUNK):
        rows = slice(first, first + CHUNK)
        G = C.take(rows).sf_at(panels.nodes).reshape(-1, len(panels.half), NODES)
        with np.errstate(over="ignore", invalid="ignore"):  # where 1/G exceeds all floats the error is NaN
            f = G if beyond else 1 / np.where(G > 0, G, np.inf)
            read = integral(f[None], side, panels.place(y_all[rows]), group.mix[rows])
        value[rows], error[rows] = read[0][0], read[1][0]
    return value, error


def _under_risks(
    inputs: ScoringInputs,
    C: Univariate,
    group: RiskGroup,
    curves: _Curves,
    squares: np.ndarray,
    *,
    beyond: bool,
) -> Integral:
    """Integrals of F²/G or S² G of each subject, where G has proportional hazards as well.

    Between the jumps of both, F² and G are constant at each pair of their risks.
    """
    assert isinstance(C, ProportionalHazards)
    y, (jumps, hazard) = inputs.y.time, C.baseline()
    since = np.unique(np.concatenate([curves.since, jumps]))
    until = np.append(since[1:], np.inf)
    squares = squares[:, np.searchsorted(curves.since[1:], since, side="right")]
    hazard = hazard[np.searchsorted(jumps, since, side="right")]
    piece = np.maximum(np.searchsorted(since, y, side="right" if beyond else "left") - 1, 0)
    way = until[piece] - y if beyond else y - since[piece]
    value, error = np.empty((2, inputs.n))
    for of_C in risk_groups(C.risk):
        rows = of_C.rows
        G = weights_at(hazard, of_C.risks, inverse=not beyond).T
        at_nodes, noise = np.empty((2, len(squares), len(rows)))
        for a, square in enumerate(squares):
            heights = G * square
            areas = times_area(heights, until - since)
            far = np.zeros_like(areas)
            if beyond:
                far[:, :-1] = np.cumsum(areas[:, :0:-1], axis=1)[:, ::-1]
            else:
                np.cumsum(areas[:, :-1], axis=1, out=far[:, 1:])
            own = times_area(heights[:, piece[rows]], way[rows])
            at_nodes[a], noise[a] = of_C.read(far[:, piece[rows]] + own)
        value[rows], error[rows] = group._replace(mix=group.mix[rows]).read(at_nodes)
        error[rows] += LEBESGUE * noise.max(axis=0)
    return value, error


FEW_CURVES = 8  # subjects of a group whose own curves cost less than its tables
CHUNK_NUMBERS = 500_000


def are_curves_under_risks(inputs: ScoringInputs) -> bool:
    """Whether C has proportional hazards and a finite end, and F is a step function of common times."""
    F, C = inputs.F, inputs.C
    if not isinstance(C, ProportionalHazards) or len(C) == 1 or F.form != "steps":
        return False
    if type(C.reference) is not np.ndarray or C.reference.dtype != np.float64:
        return False
    times, jumps = F.breaks().shape[1], C.breaks().shape[1]
    if inputs.n * jumps < WORTH_TABLES or 4 * times > jumps or not np.isinf(C.baseline()[1][-1]):
        return False
    # curves of groups have common breaks, and jumps apart
    return F.breaks().shape[0] == F.take(slice(2)).steps()[0].shape[0] == 1


def losses_under_risks(inputs: ScoringInputs, end: PointMass | None, otherwise: Loss) -> Array:
    """The CRPS, or the integrated Brier score on the ipcw scale up to an ``end``: (n,).

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    loss, jumps, C = np.empty(inputs.n), int(inputs.F.breaks().shape[1]), inputs.C
    step, kernel = max(1, CHUNK_NUMBERS // (jumps + 1)), None
    if end is None:
        numbers = 10 * inputs.n * jumps
        kernel = on_cpu("censcore.scores.kernels.crps_numba", "step_under_risks", inputs.y.time, numbers)
    if kernel is not None and isinstance(inputs.F, Step):  # which makes no curves
        step = inputs.n
    left, reach = [], inverse_probability_weights(inputs)[:, 0]
    for group, areas in area_tables(C, inverse=end is not None):
        if len(group.rows) < FEW_CURVES:
            left.append(group.rows)
            continue
        for start in range(0, len(group.rows), step):
            part = RiskGroup(group.rows[start : start + step], group.risks, group.mix[start : start + step])
            if kernel is None:
                subjects = inputs.take(part.rows)
                loss[part.rows], error = _by_formula(subjects, part, areas, end, reach[part.rows])
            else:
                loss[part.rows], error = _by_kernel(inputs, part, areas, kernel, reach[part.rows])
            left.append(part.rows[(error != 0) & ~accurate(loss[part.rows], error)])  # sums are exact
    rows = np.concatenate(left)
    if rows.size:
        loss[rows] = otherwise(inputs.take(rows))
    return loss


def _by_formula(
    inputs: ScoringInputs, group: RiskGroup, areas: AreaTable, end: PointMass | None, reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    F = as_steps(inputs.F)
    value, error = group.read(_weighted(areas, F.steps(), inputs.y.time, beyond=end is None))
    if end is None:
        return square_below(F, inputs.time) + reach * value, reach * error
    last = inputs.of_events(lambda part: square_beyond(as_steps(part.F), part.time, end))
    return value + reach * last, error


def _by_kernel(
    inputs: ScoringInputs,
    group: RiskGroup,
    areas: AreaTable,
    kernel: Callable[..., np.ndarray],
    reach: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Losses from the areas of each subject, and the largest error that those of its areas amount to.

    Falls of S² after y sum to less than one.
    """
    y, rows = inputs.y.time[group.rows], group.rows
    if isinstance(inputs.F, Step):
        times, sf = inputs.F.steps()
    else:  # curves are made of few subjects at a time
        (times, sf), rows = inputs.F.take(rows).steps(), np.arange(len(rows))
    at_times = np.ascontiguousarray(areas.up_to(np.append(times[0], np.inf)).T)
    of_y, error = group.read(areas.up_to(y).T)
    error += interpolation_error(at_times[:, :-1].T).max() + interpolation_error(at_times[:, -1])
    return kernel((times, sf), rows, y, (group.mix, at_times, of_y), reach), error * reach


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
