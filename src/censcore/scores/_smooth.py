r"""Smooth forecasts under one step censoring distribution: product integration on shared panels.

.. math:: \int_0^yF^2w\,ds+\frac{\delta}{G(y-)}\int_y^eS^2v\,ds

with step functions w and v, for all subjects at the same nodes. Panels that double in width serve nearly all
forecasts; subjects whose error is not small get narrower ones, and those that need more another route.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, requires_grad, to_numpy
from censcore._numerics import chunked_rows
from censcore.distributions import Distribution, Univariate
from censcore.scores._shared_panels import (
    NODES,
    Panels,
    StepWeights,
    accurate,
    integral_below,
    integral_beyond,
)
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

__all__ = ["Weight", "are_smooth", "smooth_losses"]

RATIOS = (2.0, 2.0**0.5)  # of the edges of panels, tried in this order
CACHED_NUMBERS = 200_000
FEW_SUBJECTS = 32  # up to here the moments cost more than they save
MOST_KEPT = 8  # moments that one censoring distribution keeps
FEW_BREAKS = 64  # break points of all forecasts that become edges

Loss = Callable[[ScoringInputs], Array]


class Weight(NamedTuple):
    """A step function: 1 before the times (J,), then values (J,)."""

    times: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, C: Univariate | None) -> Weight:
        """P(C > t) of one step distribution for all subjects; 1 where there is none."""
        if C is None:
            return cls(np.empty(0), np.empty(0))
        times, G = C._steps()
        return cls(to_numpy(times)[0].astype(np.float64), to_numpy(G)[0].astype(np.float64))

    def inverse(self) -> Weight:
        """1/G, finite for the smallest G and zero where nobody is followed any more."""
        G = self.values
        return Weight(self.times, 1 / np.where(G > 0, np.maximum(G, np.finfo(np.float64).tiny), np.inf))


def are_smooth(inputs: ScoringInputs, end: Univariate) -> bool:
    """Whether forecasts are smooth, but for few common break points, and weights end at a finite time."""
    F, C = inputs.F, inputs.C
    if (
        inputs.n <= FEW_SUBJECTS
        or F._degree is not None
        or any(D._degree != 0 or len(D) != 1 for D in (C, end))
    ):
        return False
    if any(requires_grad(array) for array in (inputs.y.time, *C._steps())):
        return False
    breaks = F._breaks()
    common = breaks is None or (breaks.shape[0] == 1 and breaks.shape[1] <= FEW_BREAKS)
    return common and not requires_grad(breaks) and bool(np.isfinite(to_numpy(end._end())).all())


def smooth_losses(inputs: ScoringInputs, below: Weight, beyond: Weight, end: float, otherwise: Loss) -> Array:
    """One loss per subject, (n,); ``otherwise`` is the loss of subjects whose error is not small."""
    breaks = inputs.F._breaks()
    breaks = None if breaks is None else to_numpy(breaks)[0].astype(np.float64)
    for ratio in reversed(RATIOS):
        otherwise = _Route(Panels.up_to(end, ratio, breaks), below, beyond, otherwise)
    return otherwise(inputs)


class _Route:
    """Losses on some panels, and by another route where their error is not small."""

    def __init__(self, panels: Panels, below: Weight, beyond: Weight, otherwise: Loss) -> None:
        self._panels, self._steps, self._otherwise = panels, (below, beyond), otherwise
        self._nodes = panels.nodes()
        self._weights: tuple[StepWeights, StepWeights] | None = None

    def __call__(self, inputs: ScoringInputs) -> Array:
        if self._weights is None:
            below, beyond = self._steps
            self._weights = (
                _moments(inputs.C, self._panels, below, beyond=False),
                _moments(inputs.C, self._panels, beyond, beyond=True),
            )
        numbers = NODES * len(self._panels.half)
        return chunked_rows(
            lambda rows: self._part(inputs.take(rows)),
            inputs.n,
            numbers,
            like=inputs.y.time,
            budget=CACHED_NUMBERS,
        )

    def _part(self, inputs: ScoringInputs) -> Array:
        loss, error = self._losses(inputs)
        rest = np.nonzero(~accurate(detach(loss), error))[0]
        if rest.size == inputs.n:
            return self._otherwise(inputs)
        if rest.size:
            loss[rest] = self._otherwise(inputs.take(rest))
        return loss

    def _losses(self, inputs: ScoringInputs) -> tuple[Array, Array]:
        assert self._weights is not None
        xp, like = inputs.xp, inputs.y.time
        F = inputs.F._cdf(convert(self._nodes, like))
        F = F.reshape(F.shape[0], -1, NODES)
        y = to_numpy(like).astype(np.float64)
        loss, error = integral_below(F**2, self._weights[0], y)
        error = error + self._unseen(detach(F), detach(loss), like, inputs.F)
        events = np.nonzero(to_numpy(inputs.y.event))[0]
        if not events.size:
            return loss, error
        S = 1 - (F[events] if F.shape[0] > 1 else F)
        value, slack = integral_beyond(S**2, self._weights[1], y[events])
        eps = float(xp.finfo(like.dtype).eps)
        slack = slack + 2 * eps * xp.sqrt(xp.abs(detach(value)) * self._weights[1].total)
        weight = inverse_probability_weights(inputs)[:, 0][events]
        gain, noise = xp.zeros_like(loss), xp.zeros_like(error)
        gain[events], noise[events] = weight * value, weight * slack
        return loss + gain, error + noise

    def _unseen(self, F: Array, loss: Array, y: Array, forecast: Univariate) -> Array:
        """Errors that no coefficient tells, (n,).

        Where F is only 1 - S it is known to eps, F² to 2 F eps, and the integral of F is at most
        sqrt(y int F²). Before the first node t, F² may fall to zero anywhere: by less than t F(t)², S² by
        less than 2 t F(t).
        """
        xp, eps = namespace(F), float(namespace(F).finfo(F.dtype).eps)
        t, first = float(self._nodes[0, 0]), F[:, 0, 0]
        end = t * first * xp.where(y < float(self._panels.edges[1]), 2 + 0 * first, first)
        return end if _has_cdf(forecast) else end + 2 * eps * xp.sqrt(xp.abs(loss) * y)


def _has_cdf(forecast: Distribution) -> bool:
    """Whether the forecast and its parts know small probabilities to all digits."""
    own = not isinstance(forecast, Univariate) or type(forecast)._cdf is not Univariate._cdf
    return own and all(_has_cdf(part) for part in forecast._parts())


def _moments(C: Univariate, panels: Panels, weight: Weight, *, beyond: bool) -> StepWeights:
    """The moments of a step function, kept by C: a training loss asks for them in every step."""
    kept: dict[Any, StepWeights] = C._remember("moments of steps", dict)
    key = (panels.edges.tobytes(), weight.times.tobytes(), weight.values.tobytes(), beyond)
    if key not in kept:
        if len(kept) >= MOST_KEPT:
            kept.clear()
        kept[key] = StepWeights(panels, weight.times, weight.values[None], beyond=beyond)
    return kept[key]
