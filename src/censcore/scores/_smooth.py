r"""Smooth forecasts under one step censoring distribution, or under smooth ones: shared panels.

.. math:: \int_0^yF^2w\,ds+\frac{\delta}{G(y-)}\int_y^eS^2v\,ds

with weights w and v of 1, G or 1/G, for all subjects at the same nodes. A step function, one for all, weighs
by its moments; a smooth one is part of the integrand. Panels that double in width serve nearly all forecasts;
subjects whose error is not small get narrower ones, and those that need more another route.

Step forecasts with many jumps under smooth censoring distributions,

.. math:: \int_y^\infty S^2G\,ds=\sum_{t_j>y}(S_{j-1}^2-S_j^2)\{A(t_j)-A(y)\},\qquad A(t)=\int_0^tG(s)\,ds,

need the antiderivative A of each subject at all of its jumps: it is a polynomial on each of a few panels,
whose values at the nodes cost less than special functions at a thousand members of an ensemble.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, requires_grad, to_numpy
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore.distributions import Distribution, Univariate
from censcore.scores._shared_panels import (
    NODES,
    Loss,
    Panels,
    Pieces,
    Places,
    StepWeights,
    accurate,
    antiderivatives,
    integral,
    last_coefficients,
    mended,
)
from censcore.scores._squares import as_steps
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

RATIOS = (2.0, 2.0**0.5)  # of the edges of panels, tried in this order
CACHED_NUMBERS = 200_000
MOST_KEPT = 8  # moments that one censoring distribution keeps
FEW_BREAKS = 64  # break points of all subjects that become edges


class Weights(NamedTuple):
    """w and v of F² and S², up to an end: 1 and G, or on the ipcw scale 1/G and 1."""

    ipcw: bool
    end: float

    @classmethod
    def up_to(cls, end: Univariate, *, ipcw: bool = False) -> Weights:
        """To the end that all subjects have in common."""
        return cls(ipcw, float(to_numpy(end._end())[0, 0]))

    def moments(self, C: Univariate, panels: Panels, *, beyond: bool) -> StepWeights:
        """Of a step function, kept by C: a training loss asks for them in every step. Else of 1."""
        if C._degree != 0 or self.ipcw is beyond:
            return _moments_of_one(panels, beyond)
        kept: dict[Any, StepWeights] = C._remember("moments of steps", dict)
        made = kept.get((panels, beyond))
        if made is None:
            if len(kept) >= MOST_KEPT:
                kept.clear()
            times, G = (to_numpy(array)[0].astype(np.float64) for array in C._steps())
            values = 1 / np.where(G > 0, np.maximum(G, np.finfo(np.float64).tiny), np.inf) if self.ipcw else G
            made = kept[panels, beyond] = StepWeights(Pieces(panels, times), values[None], beyond=beyond)
        return made

    def applied(self, squares: Array, C: Univariate, t: Array, *, beyond: bool) -> Array:
        """Values of F² or S² at nodes t, (1 or n, P, NODES), times a weight that is smooth."""
        if C._degree == 0 or self.ipcw is beyond:
            return squares
        G = C._sf(t)
        G = G.reshape(G.shape[0], -1, NODES)
        if not self.ipcw:
            return squares * G
        return squares / namespace(G).where(G > 0, G, np.inf)  # nobody is followed where G is zero


@lru_cache(maxsize=32)
def _moments_of_one(panels: Panels, beyond: bool) -> StepWeights:
    return StepWeights(Pieces(panels, np.empty(0)), np.empty((1, 0)), beyond=beyond)


def are_smooth(inputs: ScoringInputs, end: Univariate) -> bool:
    """Whether F, and C if it is no single step function, are smooth, and there is one finite end.

    A few break points that all subjects have in common are allowed.
    """
    F, C = inputs.F, inputs.C
    if F._degree is not None or (C._degree == 0 and len(C) > 1) or requires_grad(inputs.y.time):
        return False
    if C._degree == 0 and any(requires_grad(array) for array in C._steps()):
        return False
    ends = to_numpy(end._end())
    if not np.isfinite(ends[0, 0]) or not (ends.shape[0] == 1 or (ends == ends[0]).all()):
        return False
    return not requires_grad(end._end()) and all(_has_few_breaks(part) for part in _smooth_parts(inputs))


def _smooth_parts(inputs: ScoringInputs) -> list[Univariate]:
    return [inputs.F] if inputs.C._degree == 0 else [inputs.F, inputs.C]


def _has_few_breaks(distribution: Univariate) -> bool:
    breaks = distribution._breaks()
    if breaks is None:
        return True
    return breaks.shape[0] == 1 and breaks.shape[1] <= FEW_BREAKS and not requires_grad(breaks)


def smooth_losses(inputs: ScoringInputs, weights: Weights, otherwise: Loss) -> Array:
    """One loss per subject, (n,); ``otherwise`` is the loss of subjects whose error is not small."""
    breaks: tuple[float, ...] = ()
    for part in _smooth_parts(inputs):
        if (times := part._breaks()) is not None:
            breaks += tuple(to_numpy(times)[0].tolist())
    for ratio in reversed(RATIOS):
        otherwise = _Route(_panels(weights.end, ratio, breaks), weights, otherwise)
    return otherwise(inputs)


_panels = lru_cache(maxsize=32)(Panels)


class _Route:
    """Losses on some panels, and by another route where their error is not small."""

    def __init__(self, panels: Panels, weights: Weights, otherwise: Loss) -> None:
        self._panels, self._weights, self._otherwise = panels, weights, otherwise

    def __call__(self, inputs: ScoringInputs) -> Array:
        below = self._weights.moments(inputs.C, self._panels, beyond=False)
        beyond = self._weights.moments(inputs.C, self._panels, beyond=True)
        return chunked_rows(
            lambda rows: self._part(inputs.take(rows), below, beyond),
            inputs.n,
            self._panels.nodes.size,
            like=inputs.y.time,
            budget=CACHED_NUMBERS,
        )

    def _part(self, inputs: ScoringInputs, below: StepWeights, beyond: StepWeights) -> Array:
        loss, error = self._losses(inputs, below, beyond)
        return mended(loss, accurate(detach(loss), error), inputs, self._otherwise)

    def _losses(self, inputs: ScoringInputs, below: StepWeights, beyond: StepWeights) -> tuple[Array, Array]:
        """Losses and the estimates of their errors, (n,) each."""
        like, t = inputs.y.time, convert(self._panels.nodes, inputs.y.time)
        F = inputs.F._cdf(t)
        F = F.reshape(F.shape[0], -1, NODES)
        y = self._panels.place(to_numpy(like).astype(np.float64, copy=False))
        f = self._weights.applied(F**2, inputs.C, t, beyond=False)
        loss, error = integral(f, below, y)
        error = error + self._at_zero(f) + self._of_rounding(detach(loss), like, inputs.F)
        events, C, weight = (
            np.nonzero(to_numpy(inputs.y.event))[0],
            inputs.C,
            inverse_probability_weights(inputs),
        )
        if events.size == inputs.n:
            gain, noise = self._beyond(C, weight[:, 0], 1 - F, t, y, beyond)
            return loss + gain, error + noise
        if events.size:
            S = 1 - (F[events] if F.shape[0] > 1 else F)
            seen, C = Places(y.t[events], y.panel[events], y.Q[events]), C if len(C) == 1 else C.take(events)
            gain, noise = self._beyond(C, weight[events, 0], S, t, seen, beyond)
            loss[events], error[events] = loss[events] + gain, error[events] + noise
        return loss, error

    def _beyond(
        self, C: Univariate, weight: Array, S: Array, t: Array, y: Places, moments: StepWeights
    ) -> tuple[Array, Array]:
        """What events of this weight pay beyond y, and the estimate of its error."""
        f = self._weights.applied(S**2, C, t, beyond=True)
        value, error = integral(f, moments, y)
        xp = namespace(S)
        rounding = 2 * float(xp.finfo(S.dtype).eps) * xp.sqrt(xp.abs(detach(value)) * moments.total)
        early = convert(y.panel == 0, S)
        return weight * value, weight * (error + rounding + early * self._at_zero(1 - f))

    def _at_zero(self, f: Array) -> Array:
        """What no coefficient tells: before the first node t, f may fall to zero anywhere."""
        return float(self._panels.nodes[0, 0]) * detach(f[:, 0, 0])

    def _of_rounding(self, loss: Array, y: Array, forecast: Univariate) -> Array | float:
        """F that is only 1 - S is known to eps, F² to 2 F eps: the integral of F is below sqrt(y int F²)."""
        if _has_cdf(forecast):
            return 0.0
        xp = namespace(loss)
        return 2 * float(xp.finfo(loss.dtype).eps) * xp.sqrt(xp.abs(loss) * y)


def _has_cdf(forecast: Distribution) -> bool:
    """Whether the forecast and its parts know small probabilities to all digits."""
    own = not isinstance(forecast, Univariate) or type(forecast)._cdf is not Univariate._cdf
    return own and (not forecast._distributions or all(_has_cdf(part) for part in forecast._parts()))


MANY_JUMPS = 64  # from which the panels cost less than the area at every jump


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
    return Panels(float(ends[0, 0]), RATIOS[0])


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
    return chunked_rows(part, inputs.n, numbers, like=inputs.y.time, budget=500_000)


def _areas(C: Univariate, panels: Panels) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The antiderivative of G, and a bound of the error of its differences, (1 or n,)."""
    G = C._sf(panels.nodes).reshape(-1, len(panels.half), NODES)
    before, powers = antiderivatives(G, panels)
    last, further = last_coefficients(G)
    rounding = 4 * np.finfo(np.float64).eps * (before[:, -1] + panels.half[-1])
    return before, powers, (last * (2 / NODES + further)) @ panels.half + rounding
