r"""Forecasts with proportional hazards: their losses from tables at a few risks.

.. math:: \int_0^yF^2\,dw+\frac{\delta}{G(y-)}\int_y^eS^2\,dv,\qquad S=e^{-rH}

with weights w and v that serve all subjects is the value at r of a function that is summed over the jumps for
a few risks only (:mod:`censcore._risk_tables`). A weight that is a smooth function of its own for every
subject, such as G of a parametric model, is integrated on shared panels under the moments of :math:`F^2` and
:math:`S^2` at these risks (:mod:`censcore.scores._shared_panels`).
"""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._quadrature import Function
from censcore._risk_tables import RiskGroup, interpolation_error, risk_groups
from censcore.distributions import ProportionalHazards, Univariate
from censcore.scores._shared_panels import (
    NODES,
    Integral,
    Loss,
    Panels,
    Pieces,
    StepWeights,
    accurate,
    integral,
)
from censcore.scores._squares import area, weighted_time_of
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

WORTH_TABLES = 500_000  # jumps of all subjects together from which tables are faster than sums
FEW = 16  # subjects of a group whose own sums cost less than its tables
CHUNK = 1_000  # subjects with smooth weights at a time
RATIO = 2.0


def has_risks(inputs: ScoringInputs, below: Univariate | None, beyond: Univariate) -> bool:
    """Whether tables serve: many subjects and jumps, and weights that are shared or smooth."""
    F = inputs.F
    if not isinstance(F, ProportionalHazards) or len(F) == 1 or F._reference.dtype != np.float64:
        return False
    if inputs.n * F._breaks().shape[1] < WORTH_TABLES:
        return False
    if np.isfinite(F._padded()[0, -1]) and not np.isfinite(to_numpy(beyond._end())).all():
        return False  # what is left at infinity may make the loss infinite
    one_of_steps = below is None or (below._degree == 0 and len(below) == 1)
    return (one_of_steps or _is_smooth(below)) and (len(beyond) == 1 or _is_smooth(beyond))


def _is_smooth(C: Univariate | None) -> bool:
    """A smooth function of each subject up to one finite end."""
    assert C is not None
    ends = to_numpy(C._end())
    return C._degree is None and bool(np.isfinite(ends).all() and (ends == ends[0]).all())


def risk_losses(
    inputs: ScoringInputs, below: Univariate | None, beyond: Univariate, otherwise: Loss
) -> Array:
    """One loss per subject, with w = 1/P(``below`` > t) and v = P(``beyond`` > t): (n,).

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    loss, weights = np.empty(inputs.n), inverse_probability_weights(inputs)[:, 0]
    curves = _Curves(inputs.F)
    for group in risk_groups(inputs.F.risk):
        some, rows = inputs.take(group.rows), group.rows
        if len(rows) < FEW:
            loss[rows] = otherwise(some)
            continue
        first = _below(some, None if below is None else below.take(rows), group, curves)
        second = _beyond(some, beyond.take(rows), group, curves)
        loss[rows] = first.value + weights[rows] * second.value
        bad = rows[~accurate(loss[rows], first.error + weights[rows] * second.error)]
        if bad.size:
            loss[bad] = otherwise(inputs.take(bad))
    return loss


class _Curves:
    """The baseline of a forecast: pieces that start at ``since`` and end at ``until``, with their hazard."""

    def __init__(self, F: ProportionalHazards) -> None:
        times, self.hazard = F._breaks()[0], F._padded()[0]
        self.since, self.until = np.append(0.0, times), np.append(times, np.inf)
        self._pieces: Pieces | None = None

    def on_panels(self, end: float) -> Pieces:
        """The pieces of panels up to an end, which is the same for all groups of subjects."""
        if self._pieces is None:
            self._pieces = Pieces(Panels(end, RATIO), self.since[1:])
        return self._pieces


def _below(inputs: ScoringInputs, C: Univariate | None, group: RiskGroup, curves: _Curves) -> Integral:
    squares = np.expm1(-group.risks[:, None] * curves.hazard) ** 2
    if C is not None and C._degree is None:
        return _on_panels(inputs, C, group, curves, squares, beyond=False)
    weighted: Function = (lambda t: t) if C is None else weighted_time_of(C)
    at, y = weighted(curves.since[None])[0], weighted(inputs.time)[:, 0]
    passed = np.zeros_like(squares)
    np.cumsum(squares[:, :-1] * np.diff(at), axis=1, out=passed[:, 1:])
    observed: np.ndarray = inputs.y.time
    k = np.searchsorted(curves.since[1:], observed, side="left")
    way = y - at[k]
    return Integral(*group.read_in_parts(lambda some: passed[:, k[some]] + squares[:, k[some]] * way[some]))


def _beyond(inputs: ScoringInputs, C: Univariate | None, group: RiskGroup, curves: _Curves) -> Integral:
    assert C is not None
    squares = np.exp(-2 * group.risks[:, None] * curves.hazard)
    if len(C) > 1:
        return _on_panels(inputs, C, group, curves, squares, beyond=True)
    pieces = _product(squares, area(C, curves.since[None], curves.until[None])[0])
    later = np.zeros_like(squares)
    later[:, :-1] = np.cumsum(pieces[:, :0:-1], axis=1)[:, ::-1]
    observed: np.ndarray = inputs.y.time
    k = np.searchsorted(curves.since[1:], observed, side="right")
    way = area(C, inputs.time, curves.until[k, None])[:, 0]
    return Integral(
        *group.read_in_parts(lambda some: later[:, k[some]] + _product(squares[:, k[some]], way[some]))
    )


def _product(heights: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Their product, zero where the height is, however wide."""
    return np.multiply(heights, widths, out=np.zeros_like(heights), where=heights > 0)


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
    pieces, y_all = curves.on_panels(float(to_numpy(C._end())[0, 0])), inputs.y.time
    panels, start = pieces.panels, float(beyond)
    weights = StepWeights(pieces, squares[:, 1:], beyond=beyond, start=start, reads=y_all)
    between_risks = panels.half * interpolation_error(weights.whole[..., 0].T)
    parts = []
    for first in range(0, inputs.n, CHUNK):
        rows = slice(first, first + CHUNK)
        G = C.take(rows)._sf(panels.nodes).reshape(-1, len(panels.half), NODES)
        f = G if beyond else 1 / np.where(G > 0, G, np.inf)
        y = y_all[rows]
        value, error = integral(f, weights, panels.place(y), group.mix[rows])
        counted = panels.edges[1:] > y[:, None] if beyond else panels.edges[:-1] < y[:, None]
        parts.append((value, error + (counted * f.mean(axis=2)) @ between_risks))
    return Integral(*(np.concatenate(part) for part in zip(*parts, strict=True)))
