r"""Integrals of F² and S² of piecewise-linear forecasts on one grid, under a weight that is a step function.

On the panel of the grid from :math:`a_j` to :math:`a_{j+1}` a curve is :math:`v+du` with
:math:`u=(s-a_j)/h`, so that

.. math:: \int(v+du)^2w\,ds=h\,(v^2U_0+2vdU_1+d^2U_2),\qquad U_k=\int u^kw\,du.

The moments U belong to the grid and the weight and serve all subjects, so that a censoring distribution with
thousands of jumps costs no more than one with a few.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import numpy as np

from censcore._arrays import Array
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore.distributions import Univariate
from censcore.distributions.piecewise_linear import Polyline
from censcore.scores._shared_panels import Method
from censcore.scores.inputs import ScoringInputs, inverse_probability_weights

CACHED_NUMBERS = 500_000  # a chunk of subjects that stays in the cache


def are_lines(F: Univariate, C: Univariate | None = None) -> TypeGuard[Polyline]:
    """Whether F is piecewise linear on one grid, C a step function for all subjects, and both are NumPy's."""
    if not (isinstance(F, Polyline) and F.form == "lines"):
        return False
    one_grid = type(F.breaks()) is np.ndarray and F.breaks().shape[0] == 1
    return one_grid and (C is None or (C.form == "steps" and len(C) == 1))


def line_below(F: Polyline, y: Array, C: Univariate | None = None) -> Array:
    r""":math:`\int_0^yF(s)^2/G(s)\,ds` for y (n, 1), with G = 1 where no C is given: (n,)."""
    panels = _panels(F, C, inverse=True)
    cdf = F.knots(cdf=True)[1]
    cdf = np.concatenate([np.zeros_like(cdf[:, :1]), cdf], axis=1)
    return panels.squares(cdf, y[:, 0], beyond=False).astype(y.dtype)


def line_beyond(F: Polyline, y: Array, C: Univariate) -> Array:
    r""":math:`\int_y^\infty P(T>s)^2\,G(s)\,ds` for y (n, 1): (n,)."""
    panels = _panels(F, C, inverse=False)
    sf = F.knots()[1]
    sf = np.concatenate([np.ones_like(sf[:, :1]), sf], axis=1)
    return panels.squares(sf, y[:, 0], beyond=True).astype(y.dtype)


def lines_method(inputs: ScoringInputs, below: Univariate | None, beyond: Univariate) -> Method:
    r""":math:`\int_0^yF^2/G_1\,ds+\frac{\delta}{G(y-)}\int_y^\infty S^2\,G_2\,ds` by a kernel.

    G_1 = 1 where ``below`` is None.
    """
    F, y = inputs.F, inputs.y.time
    if not (are_lines(F, below) and are_lines(F, beyond)):
        return None
    times, sf = F.knots()
    kernel = on_cpu("censcore.scores._panels_numba", "line_losses", y, 8 * inputs.n * times.shape[1])
    if kernel is None:
        return None
    reach = inverse_probability_weights(inputs)[:, 0]
    weights = tuple(_panels(F, below, inverse=True)), tuple(_panels(F, beyond, inverse=False))

    def part(rows: slice) -> Array:
        return kernel(sf if len(sf) == 1 else sf[rows], y[rows], reach[rows], *weights)

    return lambda: chunked_rows(part, inputs.n, times.shape[1], like=y, budget=CACHED_NUMBERS)


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
        """The integral of the square of curves with ``values`` (1 or n, panels) at a, before or beyond y."""
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
