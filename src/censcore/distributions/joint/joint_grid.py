"""Joint distributions by the probabilities of the cells of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    as_float,
    common_rows,
    convert,
    detach,
    is_neutral,
    namespace,
    possibly,
    searchsorted,
    surely,
    take_along,
    to_numpy,
)
from censcore._numerics import CHUNK_NUMBERS, safe_log
from censcore._validation import as_list, check_positive, check_probabilities, name_subjects
from censcore.distributions._binned import Binned, decay, place, tail_excess
from censcore.distributions.joint.joint import Joint, logsumexp
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError


class JointGrid(Joint):
    r"""Joint distribution of k event times by the probabilities of the cells of a grid.

    Every axis has the bins :math:`(b_i,b_{i+1}]` and one tail cell :math:`(b_B,\infty)`. Given its
    cell, a time is uniform on its bin, or exponential beyond :math:`b_B` with the declared rate,
    and the coordinates are independent. With one weight vector per coordinate (the density of the
    bin of an event, the share of every bin that lies beyond a censored time) the likelihood is
    :math:`\sum_{i_1,\dots,i_k}P_{i_1\dots i_k}a_{1,i_1}\cdots a_{k,i_k}`, summed in log space.

    Parameters
    ----------
    edges : array (B + 1,), or list of k of them
        Bin edges 0 = b_0 < ... < b_B, shared by all coordinates or one set per coordinate.
    probabilities : array, (n, B_1 + 1, ..., B_k + 1)
        Cell probabilities, the tail cell last on every axis; n = 1 serves all subjects.
    tail : number, array (k,) or (n, k), or "infinity"
        Rate of the exponential tail beyond the last edge; ``"infinity"`` (a rate of zero) says that
        what has not happened by the last edge never happens. There is no default, since the data
        behind a grid have no information about later times.

    Notes
    -----
    Work and memory grow as :math:`B^k` per subject. Draws carry no gradient of the probabilities;
    ``log_likelihood``, ``sf``, ``marginal`` and ``first`` do.

    Examples
    --------
    >>> import censcore as cs
    >>> p = [[[0.3, 0.1, 0.0], [0.1, 0.2, 0.1], [0.0, 0.1, 0.1]]]
    >>> distribution = cs.JointGrid(edges=[0.0, 1.0, 3.0], probabilities=p, tail=0.5)
    >>> distribution.sf([[1.0, 2.0]]).round(3)
    array([0.35])
    >>> distribution.marginal(0).sf([[1.0, 3.0, 5.0]]).round(3)
    array([[0.6  , 0.2  , 0.074]])
    >>> distribution.log_likelihood([[0.5, 2.0]], [[1, 0]]).round(3)
    array([-2.996])
    """

    def __init__(
        self, edges: Sequence[Any] | ArrayLike, probabilities: ArrayLike, tail: ArrayLike | str
    ) -> None:
        values = as_float(probabilities, "probabilities")
        self._set(edges, values, _log_of, tail)
        self._neutral = is_neutral(probabilities)

    def _set(self, edges: Any, values: Array, to_log: Callable[[Array], Array], tail: Array | str) -> None:
        self._edge_names = _store_edges(self, edges, values)
        expected = tuple(int(edges.shape[1]) for edges in self._edges)
        if tuple(values.shape[1:]) != expected or not values.shape[0]:
            raise InvalidInputError(
                f"Cell probabilities must have the shape (n, {', '.join(map(str, expected))}), on every axis "
                f"one cell per bin and one for the tail; got an array of shape {tuple(values.shape)}."
            )
        self._log_p = to_log(values)
        self._rate = _tail_rate(tail, values, self.k)
        self.array_names = ("_log_p", "_rate", *self._edge_names)  # type: ignore[misc]
        common_rows(probabilities=self._log_p.shape[0], tail=self._rate.shape[0])

    @classmethod
    def from_logits(
        cls, edges: Sequence[Any] | ArrayLike, logits: ArrayLike, tail: ArrayLike | str
    ) -> JointGrid:
        """The grid whose cell probabilities are the softmax of ``logits`` over all cells of a subject.

        Parameters
        ----------
        edges, tail
            As in :class:`JointGrid`.
        logits : array, (n, B_1 + 1, ..., B_k + 1)
            Unnormalized log probabilities of the cells.

        Returns
        -------
        JointGrid
            Gradients of the logits are kept.

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> distribution = cs.JointGrid.from_logits([0.0, 1.0, 2.0], np.zeros((1, 3, 3)), tail="infinity")
        >>> distribution.first().mass_at_infinity().round(3)
        array([0.111])
        """
        distribution = cls.__new__(cls)
        distribution._set(edges, as_float(logits, "logits"), _log_softmax, tail)
        return distribution

    @property
    def _edges(self) -> list[Array]:
        return [getattr(self, name) for name in self._edge_names]

    @property
    def k(self) -> int:
        """Number of event times."""
        return len(self._edge_names)

    @property
    def edges(self) -> list[Array]:
        """Bin edges of every coordinate."""
        return [edges[0] for edges in self._edges]

    @property
    def probabilities(self) -> Array:
        """Cell probabilities, (n, B_1 + 1, ..., B_k + 1)."""
        return self.xp.exp(self._log_p)

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``: the cells summed over the other axes."""
        j = self._coordinate(j)
        xp = self.xp
        moved = xp.moveaxis(self._log_p, j + 1, 1)
        log_p = logsumexp(xp.reshape(moved, (*moved.shape[:2], -1)))
        return Binned(self._edges[j], log_p, self._rate[:, j : j + 1])

    @property
    def _log_upper(self) -> Array:
        """Log of P(T_1 > b_{i_1}, ..., T_k > b_{i_k}) at the corners of the grid, flattened to (n, cells)."""
        xp = self.xp

        def make() -> Array:
            table = self.probabilities
            for axis in range(1, self.k + 1):
                table = xp.flip(xp.cumsum(xp.flip(table, axis=axis), axis=axis), axis=axis)
            return xp.reshape(safe_log(table), (table.shape[0], -1))

        return self.remember("log_upper", make)

    @np.errstate(over="ignore")  # sums of log probabilities without digits are minus infinity
    def logsf_at(self, t: Array, left: bool = False) -> Array:
        """Multilinear between the corners around t: a sum over the 2^k of them."""
        xp = self.xp
        sides = [self._corner_sides(t[..., j], j, left) for j in range(self.k)]
        terms = []
        for corner in itertools.product((0, 1), repeat=self.k):
            flat = 0
            weight = 0.0
            for j, side in enumerate(corner):
                index, log_weight = sides[j][side]
                flat = flat * self._edges[j].shape[1] + index
                weight = weight + log_weight
            terms.append(take_along(self._log_upper, flat) + weight)
        return logsumexp(xp.stack(terms, axis=-1))

    def _corner_sides(self, t: Array, j: int, left: bool) -> list[tuple[Array, Array]]:
        """The edges below and above t with their log weights; beyond the last edge the tail decays."""
        xp = self.xp
        bin_, width, rest = place(self._edges[j], t)
        beyond, excess = tail_excess(self._edges[j], t)
        never = xp.full_like(rest, -np.inf)
        low = xp.where(beyond, never, safe_log(rest / width))
        high = xp.where(beyond, -decay(self._rate[:, j : j + 1], excess, left), safe_log(1 - rest / width))
        return [(bin_, low), (bin_ + 1, high)]

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        xp, q = self.xp, t.shape[1]
        event = xp.broadcast_to(event, t.shape)
        numbers = max(len(self), t.shape[0]) * math.prod(self._log_p.shape[1:])
        step = max(1, CHUNK_NUMBERS // numbers)
        columns = [
            self._contract(t[:, i : i + step], event[:, i : i + step]) for i in range(0, max(q, 1), step)
        ]
        return xp.concat(columns, axis=1)

    @np.errstate(over="ignore")
    def _contract(self, t: Array, event: Array) -> Array:
        """Sum the cells against one weight vector per coordinate, last axis first: (n, q, k) -> (n, q)."""
        xp = self.xp
        value = self._log_p[:, None]
        for j in reversed(range(self.k)):
            log_a = self._log_weights(t[..., j], event[..., j], j)
            n, q, cells = log_a.shape
            value = logsumexp(value + xp.reshape(log_a, (n, q, *(1,) * j, cells)))
        return value

    def _log_weights(self, t: Array, event: Array, j: int) -> Array:
        """Log weights of the bins of one axis, (n, q, B + 1): density at an event, share beyond C."""
        xp = self.xp
        edges = self._edges[j]
        bin_, width, rest = place(edges, t)
        beyond, excess = tail_excess(edges, t)
        bin_ = xp.where(beyond, xp.full_like(bin_, edges.shape[1] - 1), bin_)
        cells = xp.arange(edges.shape[1], device=edges.device)
        never = xp.full_like(rest, -np.inf)
        rate = self._rate[:, j : j + 1]
        log_tail = -decay(rate, excess)
        at_event = xp.where(beyond, safe_log(rate) + log_tail, -xp.log(width))
        at_censoring = xp.where(beyond, log_tail, safe_log(rest / width))
        here = xp.where(event, at_event, at_censoring)
        later = xp.where(event, never, xp.zeros_like(never))
        bin_, here, later, never = (part[..., None] for part in (bin_, here, later, never))
        return xp.where(cells == bin_, here, xp.where(cells > bin_, later, never))

    def prob_never(self) -> Array:
        xp = self.xp
        corner = xp.exp(xp.reshape(self._log_p, (self._log_p.shape[0], -1))[:, -1])
        return xp.where(xp.any(self._rate > 0, axis=1), 0.0, corner)

    def _end_of_first(self) -> Array:
        """The latest first event that any possible cell allows."""
        xp = self.xp
        end: Array = xp.full_like(self._log_p[:1], np.inf)
        for j, edges in enumerate(self._edges):
            upper = xp.concat([edges[0, 1:], xp.full_like(edges[0, :1], np.inf)], axis=0)
            end = xp.minimum(end, xp.reshape(upper, (1, *(1,) * j, -1, *(1,) * (self.k - 1 - j))))
        possible = xp.where(self._log_p > -np.inf, end, 0.0)
        return xp.max(xp.reshape(possible, (possible.shape[0], -1)), axis=1)

    def draw(self, m: int, rng: Draws) -> Array:
        """A cell by its probability, then a time within it on every axis."""
        distribution = self.detach()
        xp, n = distribution.xp, len(self)
        flat = xp.astype(
            xp.reshape(distribution.probabilities, (distribution._log_p.shape[0], -1)), xp.float64
        )
        cumulated = xp.cumsum(flat, axis=1)
        u = convert(rng.random((n, m)), cumulated) * cumulated[:, -1:]
        cell = xp.clip(searchsorted(cumulated, u, side="right"), 0, flat.shape[1] - 1)
        times = []
        for j in reversed(range(self.k)):
            cells = distribution._edges[j].shape[1]
            times.append(distribution._draw_within(cell % cells, j, rng))
            cell = cell // cells
        return xp.stack(times[::-1], axis=2)

    def _draw_within(self, bin_: Array, j: int, rng: Draws) -> Array:
        xp, edges, rate = self.xp, self._edges[j], self._rate[:, j : j + 1]
        last = edges.shape[1] - 1
        u = self._uniforms(tuple(bin_.shape), rng)
        inside = xp.clip(bin_, 0, last - 1)
        low, high = take_along(edges, inside), take_along(edges, inside + 1)
        decays = rate > 0
        excess = -xp.log1p(-u) / xp.where(decays, rate, 1.0)
        tail = xp.where(decays, edges[:, -1:] + excess, xp.full_like(excess, np.inf))
        return xp.where(bin_ == last, tail, low + (high - low) * u)


def _store_edges(distribution: JointGrid, edges: Any, values: Array) -> tuple[str, ...]:
    """Keep the edges of every coordinate as (1, B + 1) arrays named ``_edges_j``; return the names."""
    listed = as_list(edges, "edges", "bin edges, or of such lists")
    shared = bool(listed) and np.ndim(listed[0]) == 0
    parts = [edges] * (values.ndim - 1) if shared else listed
    if not listed:
        raise InvalidInputError("edges: got an empty list, expected bin edges that start at 0.")
    if not parts:
        raise InvalidInputError(
            "Cell probabilities need the subjects first, then one axis per event time; "
            f"got shape {tuple(values.shape)}."
        )
    for j, part in enumerate(parts):
        array = as_float(part, "edges")
        _check_edges(array, j)
        setattr(distribution, f"_edges_{j}", convert(array, values)[None, :])
    return tuple(f"_edges_{j}" for j in range(len(parts)))


def _check_edges(edges: Array, j: int) -> None:
    xp = namespace(edges)
    fits = edges.ndim == 1 and edges.shape[0] >= 2
    if fits:
        ascending = xp.all(edges[1:] > edges[:-1]) & xp.all(xp.isfinite(edges))
        fits = possibly(ascending & (edges[0] == 0))
    if not fits:
        shown = np.array2string(to_numpy(edges).reshape(-1)[:6], precision=4)
        raise InvalidInputError(
            f"The edges of coordinate {j} must start at 0 and increase strictly, with at least one bin; "
            f"got {shown} of shape {tuple(edges.shape)}."
        )


def _log_softmax(logits: Array) -> Array:
    xp = namespace(logits)
    flat = xp.reshape(logits, (logits.shape[0], -1))
    if surely(xp.any(xp.isnan(flat) | (flat == np.inf))):
        raise InvalidInputError("logits must be finite (or -inf for impossible cells); got NaN or inf.")
    top = detach(xp.max(flat, axis=1, keepdims=True))
    flat = flat - xp.where(xp.isfinite(top), top, 0.0)  # large logits lose no digits
    return xp.reshape(flat - logsumexp(flat)[:, None], logits.shape)


def _log_of(probabilities: Array) -> Array:
    xp = namespace(probabilities)
    check_probabilities(probabilities, "probabilities")
    total = xp.sum(xp.reshape(probabilities, (probabilities.shape[0], -1)), axis=1)
    tolerance = 1e-3 if total.dtype == xp.float32 else 1e-6
    wrong = np.nonzero(np.abs(to_numpy(total) - 1) > tolerance)[0]
    if wrong.size:
        raise InvalidInputError(
            "The cell probabilities of a subject must sum to 1; they sum to "
            f"{float(to_numpy(total)[wrong[0]]):.6g} in {name_subjects(wrong)}. "
            "Use JointGrid.from_logits for unnormalised values."
        )
    return safe_log(probabilities) - xp.reshape(xp.log(total), (-1, *(1,) * (probabilities.ndim - 1)))


def _tail_rate(tail: Array | str, like: Array, k: int) -> Array:
    if isinstance(tail, str) and tail != "infinity":
        raise InvalidInputError(
            "tail must say what happens beyond the last edge: the rate of an exponential tail (a number or "
            f"one per coordinate), or 'infinity' for events that never happen; got {tail!r}."
        )
    rate = as_float(0.0 if isinstance(tail, str) else tail, "tail", like=like)
    check_positive(rate, "tail", zero=True)
    xp = namespace(like)
    if rate.ndim > 2 or (rate.ndim > 0 and rate.shape[-1] != k):
        raise InvalidInputError(
            f"tail must be a number, one per coordinate ({k},) or (n, {k}); got shape {tuple(rate.shape)}."
        )
    rate = rate if rate.ndim == 2 else xp.broadcast_to(rate, (k,)).reshape(1, k)
    return xp.astype(rate, like.dtype)
