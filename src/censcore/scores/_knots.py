r"""Piecewise-linear forecasts with knots of their own, under one step censoring distribution.

Between the knots a and b, with :math:`u=(s-a)/h`, a survival function is :math:`v+du`, so that

.. math:: \int_a^b(v+du)^2G\,ds=h\,(v^2U_0+2vdU_1+d^2U_2),\qquad U_k=\int_0^1u^kG\,du.

The moments come from :math:`\int_0^tG,\int_0^tsG,\int_0^ts^2G`, read at the knots: a censoring distribution
with thousands of jumps costs no more than one with a few. An exponential tail adds one exponential per jump.
Differences of these integrals lose digits where knots are much closer to each other than to zero; how many is
known, and such subjects take another route.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from censcore._arrays import (
    Array,
    convert,
    detach,
    namespace,
    requires_grad,
    searchsorted,
    surely,
    take_along,
    to_numpy,
)
from censcore._numerics import chunked_rows
from censcore.distributions import Univariate
from censcore.distributions.piecewise_linear import Polyline
from censcore.scores._lines import are_lines
from censcore.scores._shared_panels import Loss, Method, mended
from censcore.scores._squares import area, times_area
from censcore.scores._time_integral import TimeIntegral
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

TOLERANCE = 1e-9  # of what rounding does to a loss, relative to it


def knots_method(it: TimeIntegral, otherwise: Loss) -> Method:
    """The CRPS of piecewise-linear F where one step distribution C, without a gradient, serves all.

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    inputs, F, C = it.inputs, it.inputs.F, it.inputs.C
    if C.form != "steps" or len(C) != 1 or are_lines(F, C):
        return None
    if any(requires_grad(array) for array in (inputs.y.time, *C.steps())):
        return None
    numbers = 20 * int(F.breaks().shape[1])
    if F.tail == "exponential":
        numbers += 2 * int(C.steps()[0].shape[1])

    def part(rows: slice) -> Array:
        return _losses(inputs.take(rows), otherwise)

    return lambda: chunked_rows(part, inputs.n, numbers, like=inputs.y.time)


def _losses(inputs: ScoringInputs, otherwise: Loss) -> Array:
    xp, y, F = inputs.xp, inputs.time, inputs.F
    below = F.integrated_square(xp.zeros_like(y), y, cdf=True)
    weight = inverse_probability_weights(inputs)[:, 0]
    inner, slack = _between_knots(F, y, inputs.C)
    beyond = inner + _tail(F, y, inputs.C)
    # the integral beyond a censored time may be infinite, and has no weight
    loss = below + weight * xp.where(weight > 0, beyond, 0.0)
    return mended(loss, to_numpy(weight * slack <= TOLERANCE * detach(loss)), inputs, otherwise)


def _between_knots(F: Polyline, y: Array, C: Univariate) -> tuple[Array, Array]:
    r""":math:`\int_y^{v}S^2G\,ds` up to the last knot v, and a bound of its rounding error: (n,) each."""
    xp = namespace(y)
    t, S = (xp.astype(values, xp.float64) for values in F.knots())
    t, S = xp.concat([xp.zeros_like(t[:, :1]), t], axis=1), xp.concat([xp.ones_like(S[:, :1]), S], axis=1)
    start, stop = t[:, :-1], t[:, 1:]
    width = stop - start
    slope = xp.diff(S, axis=1) / xp.where(width > 0, width, 1.0)
    low = xp.minimum(xp.maximum(start, xp.astype(y, xp.float64)), stop)
    v = S[:, :-1] + slope * (low - start)
    U, apart = _Moments.of(C).between(low, stop)
    square = v * (v * U[0] + 2 * slope * U[1]) + slope * slope * U[2]
    lost = xp.where(apart, detach(slope * stop) ** 2 * detach(U[3]), xp.zeros_like(detach(square)))
    total = xp.astype(xp.sum(square, axis=1), y.dtype)
    return total, xp.astype(8 * np.finfo(np.float64).eps * xp.sum(lost, axis=1), y.dtype)


class _Moments(NamedTuple):
    """The integrals of G, sG and s²G up to zero and every jump of C, and G from there on: (1, J + 1) each."""

    jumps: Array
    before: tuple[Array, Array, Array]
    height: Array

    @classmethod
    def of(cls, C: Univariate) -> _Moments:
        """Kept by C, in double precision: a training loss asks for them in every step."""
        made: _Moments = C.remember("moments at jumps", lambda: cls._made(C))
        return made

    @classmethod
    def _made(cls, C: Univariate) -> _Moments:
        times, G = (to_numpy(array)[0].astype(np.float64) for array in C.steps())
        finite = np.isfinite(times)
        t = np.concatenate([[0.0], times[finite]])
        height = np.concatenate([[1.0], G[finite]])
        sums = [np.append(0.0, np.cumsum(height[:-1] * np.diff(t**k) / k)) for k in (1, 2, 3)]
        like = namespace(C.reference).astype(C.reference[:1, :1], namespace(C.reference).float64)
        jumps, height, one, two, three = (convert(array[None], like) for array in (t, height, *sums))
        return cls(jumps, (one, two, three), height)

    def between(self, a: Array, b: Array) -> tuple[list[Array], Array]:
        r""":math:`\int_a^b(s-a)^kG` for k = 0, 1, 2, and :math:`\int_0^bG`; whether G jumps between."""
        xp = namespace(a)
        i, j = (searchsorted(self.jumps, detach(t), "right") - 1 for t in (a, b))
        apart = j > i
        G, h = take_along(self.height, i), b - a
        within = [G * h, G * h * h / 2, G * h * h * h / 3]
        upper, lower = self._up_to(b, j), self._up_to(a, i)
        M = [high - low for high, low in zip(upper, lower, strict=True)]
        across = [M[0], M[1] - a * M[0], M[2] - a * (2 * M[1] - a * M[0])]
        return [*(xp.where(apart, x, z) for x, z in zip(across, within, strict=True)), upper[0]], apart

    def _up_to(self, t: Array, i: Array) -> list[Array]:
        jump, G = take_along(self.jumps, i), take_along(self.height, i)
        one, two, three = (take_along(before, i) for before in self.before)
        t2, jump2 = t * t, jump * jump
        return [one + G * (t - jump), two + G * (t2 - jump2) / 2, three + G * (t2 * t - jump2 * jump) / 3]


def _tail(F: Polyline, y: Array, C: Univariate) -> Array:
    r""":math:`\int_b^\infty S^2G\,ds` from b, the later of y and the last knot, (n,).

    With the hazard r it is the sum over the drops of G of :math:`S(b)^2(1-e^{-2r(t_j-b)})/(2r)`.
    """
    xp = namespace(y)
    if F.tail == "last":
        return xp.zeros_like(y[:, 0])
    last, left = (values[:, -1:] for values in F.knots())
    begin = xp.maximum(y, last)
    if F.tail == "infinity":
        return times_area((left + 0 * begin) ** 2, area(C, begin, xp.full_like(begin, np.inf)))[:, 0]
    rate = F.rate()
    falls = rate > 0
    r = xp.where(falls, rate, 1.0)
    height = left * xp.exp(-r * (begin - last))
    times, G = C.steps()
    endless = G[:, -1:]  # what C has left after its last jump
    drops = xp.concat([xp.ones_like(endless), G[:, :-1]], axis=1) - G
    way = xp.maximum(times - begin, xp.zeros_like(begin))
    decayed = ((0.0 - xp.expm1(-2 * r * way)) @ drops[0])[:, None] + endless
    value = height**2 * decayed / (2 * r)
    if not surely(xp.all(falls)):
        flat = times_area((left + 0 * begin) ** 2, area(C, begin, xp.full_like(begin, np.inf)))
        value = xp.where(falls, value, flat)
    return value[:, 0]
