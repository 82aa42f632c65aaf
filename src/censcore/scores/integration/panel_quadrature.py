r"""Smooth forecasts under one step censoring distribution, or under smooth ones: shared panels.

.. math:: \int_0^yF^2w\,ds+\frac{\delta}{G(y-)}\int_y^eS^2v\,ds

with weights w and v of 1, G or 1/G, for all subjects at the same nodes. A step function, one for all, weighs
by its moments, proportional hazards by a mix of those at a few risks (:mod:`censcore._risk_tables`); a smooth
one is part of the integrand. Panels that double in width serve nearly all forecasts;
subjects whose error is not small get narrower ones, and those that need more another route.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, requires_grad, to_numpy
from censcore._numerics import chunked_rows
from censcore._risk_tables import risk_groups
from censcore.distributions import PointMass, ProportionalHazards, Univariate
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.integration.shared_panels import (
    NODES,
    RATIOS,
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
    panels_until,
)
from censcore.scores.integration.time_integral import TimeIntegral

CACHED_NUMBERS = 50_000  # arrays that memory is kept for, and that stay in the cache
MOST_KEPT = 8  # moments that one censoring distribution keeps
FEW_BREAKS = 64  # break points of all subjects that become edges
FEW = 16  # subjects of a group whose own sums cost less than its moments
WORTH_TABLES = 500_000  # jumps of all subjects together from which moments at a few risks are faster
EPS = {kind().itemsize: float(np.finfo(kind).eps) for kind in (np.float32, np.float64)}


@lru_cache(maxsize=32)
def unweighted(panels: Panels) -> Sides:
    """Weights that are one at all times."""
    pieces, none = Pieces(panels, np.empty(0)), np.empty((1, 0))
    return Sides(*(StepWeights(pieces, none, beyond=beyond) for beyond in (False, True)))


def panels_method(it: TimeIntegral, otherwise: Loss) -> Method:
    """Losses on shared panels, F being smooth, and C smooth or steps of one baseline, up to one finite end.

    A few break points that all subjects have in common are allowed. ``otherwise`` is the loss of subjects
    whose error is not small.
    """
    inputs, F, C, ipcw = it.inputs, it.inputs.F, it.inputs.C, it.end is not None
    steps, ends = C.form == "steps", (C if it.end is None else it.end).support_end()
    by_risk, until = steps and has_many_risks(C, inputs.n), one_end(ends)
    if until is None or (steps and len(C) > 1 and not by_risk):
        return None
    fixed = [inputs.y.time, ends]
    breaks: tuple[float, ...] = ()
    for part in (F,) if steps else (F, C):
        times = part.breaks()
        if times is None:
            continue
        fixed.append(times)
        if times.shape[0] > 1 or times.shape[1] > FEW_BREAKS:
            return None
        breaks += tuple(to_numpy(times)[0].tolist())
    if inputs.xp is not np and any(map(requires_grad, [*fixed, *(C.steps() if steps else ())])):
        return None
    panels = panels_until(until, RATIOS[0], breaks)
    if by_risk:
        return partial(_by_risk, inputs, panels, ipcw, otherwise)

    def on_narrow(subjects: ScoringInputs) -> Array:
        return _on_panels(subjects, _sides(C, panels_until(until, RATIOS[1], breaks), ipcw), ipcw, otherwise)

    return partial(_on_panels, inputs, _sides(C, panels, ipcw), ipcw, on_narrow)


def _by_risk(inputs: ScoringInputs, panels: Panels, ipcw: bool, otherwise: Loss) -> Array:
    """Losses under a C with proportional hazards: moments at a few risks, mixed for every subject."""
    loss, C = np.empty(inputs.n), inputs.C
    for group in risk_groups(C.risk):
        subjects = inputs.take(group.rows)
        if len(group.rows) < FEW:
            loss[group.rows] = otherwise(subjects)
            continue
        at_risks = C.with_risks(group.risks)
        # without a name: moments take much memory, and those of the last group are free before the next
        loss[group.rows] = _on_panels(subjects, _sides(at_risks, panels, ipcw), ipcw, otherwise, group.mix)
    return loss


def has_many_risks(C: Univariate, n: int) -> bool:
    """Whether C has proportional hazards, and its jumps for all subjects are many."""
    if C.form != "steps" or len(C) == 1 or not isinstance(C, ProportionalHazards):
        return False
    plain = type(C.reference) is np.ndarray and C.reference.dtype == np.float64
    return plain and n * C.breaks().shape[1] >= WORTH_TABLES


def _on_panels(
    inputs: ScoringInputs, sides: Sides, ipcw: bool, otherwise: Loss, mix: np.ndarray | None = None
) -> Array:
    """Losses on some panels, and by another route where their error is not small."""
    # where 1/G or a square exceeds all floats the error is no number, and another route serves the subject
    losses = np.errstate(over="ignore", invalid="ignore")(_losses)

    def part(rows: slice) -> Array:
        subjects = inputs.take(rows)
        loss, error = losses(subjects, sides, ipcw, None if mix is None else mix[rows])
        return mended(loss, accurate(loss, error), subjects, otherwise)

    return chunked_rows(part, inputs.n, sides.panels.nodes.size, like=inputs.y.time, budget=CACHED_NUMBERS)


def _sides(C: Univariate, panels: Panels, ipcw: bool) -> Sides:
    """The weights of F² and S², 1 and G, or 1/G and 1; of a smooth C one, since G is part of the integrand.

    Those of steps are kept by C: training asks for them in every step. A point mass has none before the end.
    """
    if C.form != "steps" or isinstance(C, PointMass):
        return unweighted(panels)
    by_panels: dict[Any, Sides] = C.remember("moments of steps", dict)
    made = by_panels.get((panels, ipcw))
    if made is None:
        if len(by_panels) >= MOST_KEPT:
            by_panels.clear()
        times, G = (to_numpy(array).astype(np.float64) for array in C.steps())
        values = 1 / np.where(G > 0, np.maximum(G, np.finfo(np.float64).tiny), np.inf) if ipcw else G
        of_C = StepWeights(Pieces(panels, times[0]), values, beyond=not ipcw)
        one = unweighted(panels).weights[ipcw]
        made = by_panels[panels, ipcw] = Sides(of_C, one) if ipcw else Sides(one, of_C)
    return made


def _losses(inputs: ScoringInputs, sides: Sides, ipcw: bool, mix: np.ndarray | None) -> tuple[Array, Array]:
    """Losses and the estimates of their errors, (n,) each."""
    xp, y, C, panels = inputs.xp, inputs.y, inputs.C, sides.panels
    t = convert(panels.nodes, y.time)
    F = inputs.F.cdf_at(t)
    f, g, at_zero = F**2, (1 - F) ** 2, 1.0
    if inputs.has_never:
        g, at_zero = xp.where(y.never[:, None], f, g), ~y.never
    if C.form != "steps":
        G = C.sf_at(t)
        if ipcw:
            f = f / xp.where(G > 0, G, np.inf)  # nobody is followed where G is zero
        else:
            g = g * G
    places = panels.place(to_numpy(y.time).astype(np.float64, copy=False))
    factor = inverse_probability_weights(inputs)[:, 0]
    if mix is None and f.shape == g.shape:
        squares = xp.concat([f[None], g[None]]).reshape(2, f.shape[0], -1, NODES)
        (below, beyond), (error, later) = integral(squares, sides, places)
    else:
        parts = zip((f, g), sides.weights, strict=True)
        ((below,), (error,)), ((beyond,), (later,)) = (
            integral(part.reshape(1, part.shape[0], -1, NODES), Sides(weight), places, mix)
            for part, weight in parts
        )
    loss, error = below + factor * beyond, error + factor * later
    # an error that no coefficient shows: before the first node, f and g may change anywhere
    first, change = float(panels.nodes[0, 0]), f[:, 0]
    if 0 in places.panel:
        begins = convert(places.panel == 0, F)
        change = change + xp.where(begins, factor * abs(at_zero - g[:, 0]), 0.0)
    # S, and 1 - S where it stands for F, are known to eps, their squares to 2 S eps: by Cauchy-Schwarz
    noise = factor * sides.weights[1].total + (0.0 if inputs.F.knows_cdf else y.time)
    rounding = 3 * EPS[F.dtype.itemsize] * xp.sqrt(abs(loss) * noise)
    return loss, error + first * change + rounding
