r"""Piecewise-linear forecasts: integrals of F² and S² under a weight that is one step function for all.

Between the knots a and b, with :math:`u=(s-a)/h`, a curve is :math:`v+du`, so that

.. math:: \int_a^b(v+du)^2w\,ds=h\,(v^2U_0+2vdU_1+d^2U_2),\qquad U_k=\int_0^1u^kw\,du.

A censoring distribution with thousands of jumps costs no more than one with a few. On one grid the moments U
belong to the grid and the weight and serve all subjects. Where subjects have knots of their own, they come
from :math:`\int_0^tG,\int_0^tsG,\int_0^ts^2G`, read at the knots; an exponential tail adds one exponential
per jump. Differences of these integrals lose digits where knots are much closer to each other than to zero;
how many is known, and such subjects take another route.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeGuard

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
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore._quadrature import area, times_area
from censcore.distributions import Univariate
from censcore.distributions.univariate.piecewise_linear import Polyline
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.integration.shared_panels import Loss, Method, mended

if TYPE_CHECKING:
    from censcore.scores.integration.time_integral import TimeIntegral

CACHED_NUMBERS = 500_000  # a chunk of subjects that stays in the cache
TOLERANCE = 1e-9  # of what rounding does to a loss, relative to it


def lines_method(it: TimeIntegral, otherwise: Loss) -> Method:
    """Losses of piecewise-linear F where one step distribution C serves all.

    ``otherwise`` is the loss of subjects whose error is not small.
    """
    if not isinstance(it.inputs.F, Polyline) or it.inputs.has_never:
        return None
    return by_lines(it) or (_at_own_knots(it.inputs, otherwise) if it.end is None else None)


def are_lines(F: Univariate, C: Univariate | None = None) -> TypeGuard[Polyline]:
    """Whether F is piecewise linear on one grid, C a step function for all subjects, and both are NumPy's."""
    if not (isinstance(F, Polyline) and F.form == "lines"):
        return False
    one_grid = type(F.breaks()) is np.ndarray and F.breaks().shape[0] == 1
    return one_grid and (C is None or (C.form == "steps" and len(C) == 1))


def line_below(F: Polyline, y: Array, C: Univariate | None = None) -> Array:
    r""":math:`\int_0^yF(s)^2/G(s)\,ds` for y (n, 1), with G = 1 where no C is given: (n,)."""
    panels = _panels(F, C, inverse=True)
    return panels.squares(F.knots(cdf=True)[1], y[:, 0], beyond=False).astype(y.dtype)


def line_beyond(F: Polyline, y: Array, C: Univariate) -> Array:
    r""":math:`\int_y^\infty P(T>s)^2\,G(s)\,ds` for y (n, 1): (n,)."""
    panels = _panels(F, C, inverse=False)
    return panels.squares(F.knots()[1], y[:, 0], beyond=True).astype(y.dtype)


def by_lines(it: TimeIntegral) -> Method:
    r""":math:`\int_0^yF^2/G_1\,ds+\frac{\delta}{G(y-)}\int_y^\infty S^2\,G_2\,ds` on one grid, compiled."""
    F, y, below, beyond = it.inputs.F, it.inputs.y.time, it.below, it.beyond
    if not (are_lines(F, below) and are_lines(F, beyond)):
        return None
    times, sf = F.knots()
    kernel = on_cpu(
        "censcore.scores.kernels.panels_numba", "line_losses", y, 8 * it.inputs.n * times.shape[1]
    )
    if kernel is None:
        return None
    reach = inverse_probability_weights(it.inputs)[:, 0]
    weights = tuple(_panels(F, below, inverse=True)), tuple(_panels(F, beyond, inverse=False))

    def part(rows: slice) -> Array:
        return kernel(sf if len(sf) == 1 else sf[rows], y[rows], reach[rows], *weights)

    return lambda: chunked_rows(part, it.inputs.n, times.shape[1], like=y, budget=CACHED_NUMBERS)


def _panels(F: Polyline, C: Univariate | None, inverse: bool) -> _Panels:
    """The panels of the grid of F under the weight G or 1/G, kept by C for the next subjects."""
    grid = F.breaks()[0]
    if C is None:
        return _Panels.of(grid, np.empty(0), np.empty(0))
    made: list[tuple[np.ndarray, _Panels]] = C.remember(f"panels of lines, {inverse=}", list)
    for known, panels in made:
        if np.array_equal(known, grid):
            return panels
    times, G = (values[0] for values in C.steps())
    if inverse:  # finite for the smallest G, and zero where nobody is followed any more
        G = 1 / np.where(G > 0, np.maximum(G, np.finfo(np.float64).tiny), np.inf)
    made.append((grid, _Panels.of(grid, times, G)))
    return made[-1][1]


class _Panels(NamedTuple):
    """Panels (a_j, a_j + h_j] from 0 over a grid, the last one open; pieces of them with one weight each."""

    a: np.ndarray
    h: np.ndarray
    whole: np.ndarray  # U_0, U_1, U_2 of every panel, of the open one up to its last piece, (3, panels)
    piece: np.ndarray  # where pieces start
    weight: np.ndarray  # on each piece
    begin: np.ndarray  # u where pieces start
    passed: np.ndarray  # U_0, U_1, U_2 from the start of the panel up to there, (3, pieces)

    @classmethod
    def of(cls, grid: np.ndarray, times: np.ndarray, values: np.ndarray) -> _Panels:
        """For the weight that is 1, then ``values`` from ``times`` on."""
        a = np.concatenate([[0.0], grid.astype(np.float64)])
        h = np.append(np.diff(a), 1.0)  # in the open panel u is the time since its begin
        c, w = times[np.isfinite(times)], np.concatenate([[1.0], values[np.isfinite(times)]])
        piece = np.unique(np.concatenate([a, c]))
        weight = w[np.searchsorted(c, piece, side="right")]
        panel = np.searchsorted(a, piece, side="right") - 1
        begin = (piece - a[panel]) / h[panel]
        end = np.append((piece[1:] - a[panel[:-1]]) / h[panel[:-1]], begin[-1])
        gains = weight * np.stack([(end**k - begin**k) / k for k in (1, 2, 3)])
        passed, whole = np.zeros((3, len(piece))), np.zeros((3, len(a)))
        first = np.searchsorted(panel, np.arange(len(a) + 1))
        for j in range(len(a)):  # each panel has its own scale, so that sums over several would lose digits
            sums = np.cumsum(gains[:, first[j] : first[j + 1]], axis=1)
            if sums.size:
                passed[:, first[j] + 1 : first[j + 1]], whole[:, j] = sums[:, :-1], sums[:, -1]
        return cls(a, h, whole, piece, weight, begin, passed)

    def moments(self, t: np.ndarray, panel: np.ndarray) -> np.ndarray:
        """U_0, U_1, U_2 from the start of the panel of each time t to t, (3, n)."""
        i = np.searchsorted(self.piece, t, side="right") - 1
        u = (t - self.a[panel]) / self.h[panel]
        return self.passed[:, i] + self.weight[i] * np.stack(
            [(u**k - self.begin[i] ** k) / k for k in (1, 2, 3)]
        )

    def squares(self, values: np.ndarray, y: np.ndarray, *, beyond: bool) -> np.ndarray:
        """The integral before y of F², or beyond it of S², with ``values`` (1 or n, J) on the grid."""
        values = np.concatenate([np.full_like(values[:, :1], float(beyond)), values], axis=1)
        last = len(self.a) - 1
        k = np.searchsorted(self.a, y, side="right") - 1
        here = self.moments(y, k)
        d = np.concatenate([np.diff(values, axis=1), np.zeros_like(values[:, :1])], axis=1)
        v_k, d_k = (x[0, k] if len(x) == 1 else x[np.arange(len(y)), k] for x in (values, d))
        whole = _square(values[:, :-1], d[:, :-1], self.h[:-1], self.whole[:, None, :-1])
        counted = np.arange(last) > k[:, None] if beyond else np.arange(last) < k[:, None]
        total = np.where(counted, whole, 0.0).sum(axis=1)
        if not beyond:
            return total + _square(v_k, d_k, self.h[k], here)
        left = np.broadcast_to(values[:, -1] ** 2, y.shape)
        with np.errstate(invalid="ignore"):
            at_last = np.where(left > 0, left * self._rest(np.maximum(y, self.a[-1])), 0.0)
        closing = np.where(k < last, _square(v_k, d_k, self.h[k], self.whole[:, k] - here), 0.0)
        return total + closing + at_last

    def _rest(self, t: np.ndarray) -> np.ndarray:
        """The integral of the weight from t, in the open panel, to infinity."""
        if self.weight[-1] > 0:
            return np.full(len(t), np.inf)
        return self.whole[0, -1] - self.moments(t, np.full(len(t), len(self.a) - 1))[0]


def _square(v: np.ndarray, d: np.ndarray, h: np.ndarray, U: np.ndarray) -> np.ndarray:
    return h * (v**2 * U[0] + 2 * v * d * U[1] + d**2 * U[2])


# ---- knots of their own -----------------------------------------------------------------------------


def _at_own_knots(inputs: ScoringInputs, otherwise: Loss) -> Method:
    """The CRPS where one step distribution C, without a gradient, serves all."""
    F, C = inputs.F, inputs.C
    if C.form != "steps" or len(C) != 1 or are_lines(F, C):
        return None
    if any(requires_grad(array) for array in (inputs.y.time, *C.steps())):
        return None
    numbers = 20 * int(F.breaks().shape[1])
    if F.tail == "exponential":
        numbers += 2 * int(C.steps()[0].shape[1])

    return lambda: chunked_rows(
        lambda rows: _losses(inputs.take(rows), otherwise), inputs.n, numbers, like=inputs.y.time
    )


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
        return C.remember("moments at jumps", lambda: cls._made(C))

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
