r"""Product integration on panels that all subjects share, under weights that are step functions.

A smooth function f on the panel with the half-width h is :math:`\sum_dc_dP_d(x)`, x from -1 to 1, with its
Legendre coefficients from values at Gauss nodes. Under a step function w,

.. math:: \int fw\,ds=h\sum_dc_dM_d,\qquad M_d=\int P_d\,w\,dx,

and the moments M belong to the panel and the weight alone: a censoring distribution with thousands of jumps
costs no more than one with a few, and a forecast is evaluated at the same nodes for all subjects. A family of
K weights, one per Chebyshev node of the risk of proportional hazards, has K sets of moments.

The last coefficients estimate what is left out, and so the error of every subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, to_numpy
from censcore._kernels import on_cpu
from censcore._quadrature import legendre, legendre_antiderivative, to_legendre
from censcore._risk_tables import interpolation_error
from censcore.scores.inputs.scoring_inputs import ScoringInputs

Loss = Callable[[ScoringInputs], Array]
Integral = tuple[Array, Array]  #: an integral per subject and the estimate of its error, both (n,)
Method = Callable[[], Array] | None  #: computes the losses of an input; None where it does not apply

NODES = 14  # per panel
RATIOS = (2.0, 2.0**0.5)  # of the edges of panels, tried in this order
LOWEST = 2.0**-16  # the first panel ends at this share of the last edge
TOLERANCE = 1e-8  # of a loss, relative to it


class Places(NamedTuple):
    """Times (n,) and where they lie: their panels, and the integrals of Legendre polynomials up to them."""

    t: np.ndarray
    panel: np.ndarray
    Q: np.ndarray  #: from the start of the panel on, (n, D)
    sides: np.ndarray  #: one for the panels before that of the time, and for those after it, (2, n, P)
    within: np.ndarray  #: one for its own panel, (n, P)

    def own(self, f: Array) -> Array:
        """Of values f (S, 1 or n, P, NODES) those on the panel of each time, (S, n, NODES)."""
        return f[:, 0, self.panel] if f.shape[1] == 1 else f[:, np.arange(len(self.t)), self.panel]


@dataclass(frozen=True, eq=False)
class Panels:
    """Panels from 0 to an end, whose edges grow by a ratio; break points below the end are edges as well."""

    end: float
    ratio: float
    breaks: tuple[float, ...] = ()

    @cached_property
    def edges(self) -> np.ndarray:
        """Where the panels start, and the end: (P + 1,)."""
        count = int(np.ceil(-np.log(LOWEST) / np.log(self.ratio)))
        edges = self.end * np.geomspace(LOWEST, 1.0, count + 1)
        edges[-1] = self.end
        return np.unique([0.0, *edges, *(t for t in self.breaks if t < self.end)])

    @cached_property
    def half(self) -> np.ndarray:
        """Half the width of each panel."""
        return np.diff(self.edges) / 2

    @cached_property
    def nodes(self) -> np.ndarray:
        """Gauss nodes, (1, P NODES)."""
        return (self.edges[:-1, None] + 2 * self.half[:, None] * legendre(NODES)[0]).reshape(1, -1)

    def place(self, t: np.ndarray) -> Places:
        """Where times (n,) from 0 to the end lie."""
        panel = self.edges[1:-1].searchsorted(t, side="right")
        away = self._number - panel[:, None]
        sides = np.array([away < 0, away > 0], dtype=np.float64)
        return Places(t, panel, self._integrals_to(t, panel), sides, within=(away == 0) * 1.0)

    @cached_property
    def _number(self) -> np.ndarray:
        return np.arange(len(self.half))

    def _integrals_to(self, t: np.ndarray, panel: np.ndarray) -> np.ndarray:
        x = (t - self.edges[panel]) / self.half[panel] - 1
        return _integrated_legendre(np.minimum(np.maximum(x, -1.0), 1.0))


panels_until = lru_cache(maxsize=32)(Panels)


class Pieces:
    """Pieces of panels on which step functions with jumps at ``times`` (J,) are constant."""

    def __init__(self, panels: Panels, times: np.ndarray) -> None:
        self.panels = panels
        times = times[times < panels.end].astype(np.float64)  # infinite ones are no jumps either
        self.start = np.unique(np.concatenate([panels.edges[:-1], times]))
        self.panel = np.searchsorted(panels.edges, self.start, side="right") - 1
        self.passed = np.searchsorted(times, self.start, side="right")  #: jumps up to each piece
        self.Q_start = panels._integrals_to(self.start, self.panel)
        self.Q_stop = np.roll(self.Q_start, -1, axis=0)  # a piece ends where the next starts, or its panel
        self.Q_stop[np.append(np.diff(self.panel) > 0, True)] = _integrated_legendre(np.ones(1))


class StepWeights:
    """Moments of K step functions on panels: ``start`` before the jumps, then ``values`` (K, J).

    ``beyond`` says whether integrals run from a time to the last edge or from zero to a time: sums start at
    the far end, where the weight may be smaller by many powers of ten. ``reads`` are the only times that
    integrals will start from, if they are known.
    """

    def __init__(
        self,
        pieces: Pieces,
        values: np.ndarray,
        *,
        beyond: bool,
        start: float = 1.0,
        reads: np.ndarray | None = None,
    ) -> None:
        self.panels, self.beyond, self._pieces = pieces.panels, beyond, pieces
        self._is_one = values.size == 0 and start == 1.0
        before = np.concatenate([np.full((len(values), 1), start), values], axis=1, dtype=np.float64)
        self._weight = before.T[pieces.passed]
        read = (
            np.arange(len(pieces.start))
            if reads is None
            else np.unique(pieces.start.searchsorted(reads, side="right") - 1)
        )
        self._slot = np.zeros(len(pieces.start), dtype=np.intp)
        self._slot[read] = np.arange(len(read))
        panels = np.arange(len(self.panels.edges))
        first = np.searchsorted(pieces.panel, panels)
        numbers = self._weight.size * pieces.Q_start.shape[1]
        kernel = on_cpu("censcore.scores.kernels.panels_numba", "sum_pieces", self._weight, numbers)
        sums: Callable[..., tuple[np.ndarray, np.ndarray]] = kernel or _sum_pieces
        self.whole, self._aside = sums(self._weight, pieces.Q_start, pieces.Q_stop, first, read, beyond)

    def at(self, y: Places) -> np.ndarray:
        """The moments between each time and the far end of its panel, (n, K, NODES)."""
        if self._is_one:
            way = self._pieces.Q_stop[y.panel] - y.Q if self.beyond else y.Q
            return way[:, None, :NODES]
        piece = self._pieces.start.searchsorted(y.t, side="right") - 1
        way = self._pieces.Q_stop[piece] - y.Q if self.beyond else y.Q - self._pieces.Q_start[piece]
        inside = self._weight[piece, :, None] * way[:, None, :NODES]
        return inside + self._aside[self._slot[piece], :, :NODES]

    @cached_property
    def at_nodes(self) -> np.ndarray:
        """Weights of the values at the nodes in the integral over each panel, (K, P, NODES)."""
        return self.whole[..., :NODES] @ to_legendre(NODES).T * self.panels.half[:, None]

    def mixed(self, y: Places, mix: Array) -> tuple[np.ndarray, np.ndarray]:
        """The same weighed for each subject by ``mix`` (n, K): (n, P, NODES), and the moments, (n, NODES)."""
        if len(self.whole) == 1:
            return self.at_nodes, self.at(y)[:, 0]
        product = mix @ self.at_nodes.reshape(len(self.whole), -1)
        return product.reshape(-1, *self.at_nodes.shape[1:]), (mix[:, None, :] @ self.at(y))[:, 0]

    def between_risks(self, f: Array, y: Places) -> Array | float:
        """The error of weights that are mixed of those at K risks, (n,)."""
        if len(self.whole) == 1:
            return 0.0
        error = self.panels.half * interpolation_error(self.whole[..., 0].T)
        return ((1 - y.sides[1 - self.beyond]) * f.mean(axis=2)) @ error

    @cached_property
    def total(self) -> float:
        """The integral of the largest weight over all panels."""
        return float(self.at_nodes.sum(axis=(1, 2)).max())

    @cached_property
    def size(self) -> np.ndarray:
        """The mean of the largest weight over each panel, (P,)."""
        return np.abs(self.whole[..., 0]).max(axis=0) / 2

    @cached_property
    def left_out(self) -> np.ndarray:
        """How much of the next coefficient each panel leaves out, (P,)."""
        return np.abs(self.whole[..., NODES - 1 :]).max(axis=(0, 2))


def _sum_pieces(
    weight: np.ndarray, start: np.ndarray, stop: np.ndarray, first: np.ndarray, read: np.ndarray, beyond: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Moments of each panel, (K, P, D), and on the far side of the pieces that are read, (m, K, D).

    Pieces have weights (n, K) and integrals of polynomials where they start and stop, (n, D); ``first`` is
    the first piece of each panel, (P + 1,), ``read`` are the places of these pieces, ascending, (m,).
    """
    K, D = weight.shape[1], start.shape[1]
    whole, aside, step = np.empty((K, len(first) - 1, D)), np.empty((len(read), K, D)), -1 if beyond else 1
    first_read = np.searchsorted(read, first)
    for p, ((a, b), (i, j)) in enumerate(zip(pairwise(first), pairwise(first_read), strict=True)):
        gains = weight[a:b, :, None] * (stop[a:b] - start[a:b])[:, None, :]
        sums = np.cumsum(np.concatenate([np.zeros_like(gains[:1]), gains[::step]]), axis=0)
        whole[:, p], aside[i:j] = sums[-1], sums[:-1][::step][read[i:j] - a]
    return whole, aside


def in_library_of(f: Array, *arrays: np.ndarray) -> tuple[Array, ...]:
    """Arrays of double precision in the library and precision of f."""
    if type(f) is np.ndarray and f.dtype == np.float64:
        return arrays
    return tuple(convert(array, f) for array in arrays)


class Sides:
    """Weights of integrals up to a time and from it on, or of one of these: S weights side by side."""

    def __init__(self, *weights: StepWeights) -> None:
        self.weights, self.panels = weights, weights[0].panels
        self.left_out = np.array([[weight.left_out] for weight in weights])
        self.size = np.array([[weight.size] for weight in weights])
        self.chosen = slice(int(weights[0].beyond), 1 + int(weights[-1].beyond))

    @cached_property
    def at_nodes(self) -> np.ndarray:
        """Weights of the values at the nodes that serve all subjects, (S, 1, P, NODES)."""
        return np.array([weight.at_nodes for weight in self.weights])

    def read(self, y: Places, mix: Array | None) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the values at the nodes, and the moments at each time, (S, n, NODES).

        ``mix`` (n, K) weighs a family of weights on one side; those of values are then (1, n, P, NODES).
        """
        if mix is None:
            return self.at_nodes, np.array([weight.at(y)[:, 0] for weight in self.weights])
        product, moments = self.weights[0].mixed(y, mix)
        return product[None], moments[None]


def integral(f: Array, sides: Sides, y: Places, mix: Array | None = None) -> Integral:
    r""":math:`\int_0^yfw\,ds` and :math:`\int_y^\infty fw\,ds` by values f (S, 1 or n, P, NODES): (S, n).

    The error is estimated on the panel of y and on each panel that counts.
    """
    xp = np if type(f) is np.ndarray else namespace(f)
    half, (product, moments) = sides.panels.half, sides.read(y, mix)
    fixed = product, moments, to_legendre(NODES), half, half[y.panel], y.sides[sides.chosen], y.within
    parts = in_library_of(f, *fixed, sides.left_out, sides.size)
    product, moments, to_coefficients, half, width, counted, within, left_out, size = parts
    value = xp.vecdot(xp.vecdot(f, product), counted)
    value = value + width * xp.vecdot(y.own(f) @ to_coefficients, moments)
    last, further = last_coefficients(xp, f if xp is np else detach(f))
    error = xp.vecdot(half * last, counted * (left_out + size * further) + within * (2 / NODES + further))
    return value, error if mix is None else error + sides.weights[0].between_risks(f[0], y)


def last_coefficients(xp: Any, f: Array) -> tuple[Array, Array]:
    """The larger of the last two coefficients of every panel, and how much smaller the next are: (n, P).

    At twice the degree, where Gauss quadrature errs, coefficients have fallen by their share in the mean of
    f, or by the square of how they fell since the middle: a narrow hump upon a broad one has a small share.
    """
    sizes = abs(f @ in_library_of(f, _to_estimates())[0])
    last, middle = xp.maximum(sizes[..., 0], sizes[..., 1]), xp.maximum(sizes[..., 2], sizes[..., 3])
    mean, falls = sizes[..., 4], last / (middle + (middle == 0))
    return last, xp.maximum(last / (mean + (mean == 0)), falls * falls)


def one_end(ends: Array) -> float | None:
    """The finite end of follow-up, of ends (1 or n, 1), that all subjects share; None without one."""
    ends = to_numpy(ends)
    return float(ends[0, 0]) if np.isfinite(ends[0, 0]) and (ends == ends[0]).all() else None


def accurate(loss: Array, error: Array) -> np.ndarray:
    """Whether the error of each loss is small, (n,)."""
    relative = TOLERANCE if loss.dtype.itemsize == 8 else 32 * float(np.finfo(np.float32).eps)
    small = error < relative * loss
    return small if type(small) is np.ndarray else to_numpy(small)


def mended(loss: Array, good: np.ndarray, inputs: ScoringInputs, otherwise: Loss) -> Array:
    """The losses (n,), those that are not ``good`` by another route."""
    bad = (~good).nonzero()[0]
    if bad.size == len(good):
        return otherwise(inputs)
    if bad.size:
        loss[bad] = otherwise(inputs.take(bad))
    return loss


def antiderivatives(f: np.ndarray, panels: Panels) -> tuple[np.ndarray, np.ndarray]:
    r""":math:`\int f` before each panel, (n, P), and inside as coefficients of powers of x, (n, P, D)."""
    values = f * panels.half[:, None]
    whole = values @ (2 * legendre(NODES)[1])
    return np.cumsum(whole, axis=1) - whole, values @ _to_powers()


def _integrated_legendre(x: np.ndarray) -> np.ndarray:
    r""":math:`\int_{-1}^xP_d` for d up to NODES + 1, (n, D), from :math:`T_k(x)=\cos(k\arccos x)`."""
    k = np.arange(NODES + 3)
    return np.cos(np.arccos(x)[:, None] * k) @ _from_chebyshev()


@cache
def _from_chebyshev() -> np.ndarray:
    """Takes Chebyshev polynomials up to NODES + 2 to the integrals of Legendre polynomials."""
    integrals = (np.polynomial.Legendre.basis(d).integ(lbnd=-1) for d in range(NODES + 2))
    columns = [integral.convert(kind=np.polynomial.Chebyshev).coef for integral in integrals]
    return np.column_stack([np.pad(column, (0, NODES + 3 - len(column))) for column in columns])


@cache
def _to_estimates() -> np.ndarray:
    """Takes values at the nodes to the last two Legendre coefficients, two of the middle and the mean."""
    columns = to_legendre(NODES)[:, [-2, -1, NODES // 2 - 1, NODES // 2]]
    return np.column_stack([columns, legendre(NODES)[1]])


@cache
def _to_powers() -> np.ndarray:
    """Takes values at the nodes to the integral from -1 to x as coefficients of powers of x."""
    powers = [np.polynomial.legendre.leg2poly(unit) for unit in np.eye(NODES + 1)]
    return 2 * legendre_antiderivative(NODES) @ [np.pad(row, (0, NODES + 1 - len(row))) for row in powers]
