"""Energy score of an ensemble at given censoring times: distances to the outcome, and between members.

All pairs of m members are the pairs (i, i + lag) for the lags 1 to m/2, so exact pairs and a few random lags
are one mechanism. Members keep one array per coordinate, (n, D, m) for n subjects and D censoring times.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from censcore._arrays import Array, is_torch, namespace
from censcore._kernels import on_cpu, on_gpu
from censcore._numerics import CHUNK_NUMBERS

_FEW = 64  # members whose pairs a step of training computes at once

Terms = Callable[[Array, Array, Array, Array, float, Array], tuple[Array, Array]]


def energy_loss(
    samples: Array,
    y: Array,
    c: Array = None,
    *,
    weights: Array = None,
    mask: Array = None,
    beta: float = 1.0,
    fair: bool = True,
    lags: Array = None,
    terms: Terms | None = None,
    branches: int = 1,
) -> Array:
    r"""Energy score of ensembles censored at given times, averaged over those times.

    .. math::
        \frac1D\sum_d\Big[\sum_i w_i\|\psi_{c_d}(z_i)-y\|^\beta
        -\tfrac12\sum_{i,j}w_iw_j\|\psi_{c_d}(z_i)-\psi_{c_d}(z_j)\|^\beta\Big],\qquad \psi_c(z)=\min(z,c).

    Nothing is checked here: :func:`~censcore.energy_score` does that and calls this, and so does a training
    loss. Gradients flow to ``samples``; members beyond c, and coinciding members, give zero.

    Members z are ``samples`` (n or 1, m, k) with ``weights`` (n or 1, m) that sum to one, equal by default.
    Observed times y are (n, k); where the ``mask`` (n, k) is False a coordinate is left out. The exponent
    ``beta`` lies between 0 and 2. ``fair`` leaves out the pairs of a member with itself (a U-statistic:
    members are a sample from the forecast). ``terms`` computes the two sums, see :func:`fastest_terms`.

    Censoring times c compatible with the observation are (n or 1, D, k or 1), or (n or 1, D, m, k or 1) where
    every member brings its own: :math:`\|\psi_{c_i}(z_i)-y\|` and
    :math:`\|\psi_{c_i}(z_i)-\psi_{c_i}(z_j)\|`, which has the same mean over draws of C and gives training m
    draws for the cost of one. By default nothing is censored.

    All pairs enter by default. With ``lags`` (n or 1, L) each member is paired only with the one ``lag``
    places further: lag d for censoring time d (L = D), or several lags for one censoring time (D = 1).

    With B > 1 ``branches`` the members are B blocks of m/B draws each: member i of every block is a possible
    value of draw i, whose probabilities are the weights. Values of one draw form no pair. Then y may lie
    beyond c, for an event that never happens: what is seen of it is c.
    """
    xp = namespace(samples)
    if mask is not None:  # coordinates that are zero on both sides add nothing to a distance
        samples = xp.where(mask[:, None, :], samples, 0.0)
        y = xp.where(mask, y, 0.0)
    if c is None:
        c = xp.full_like(y[:1, :1], xp.inf)[None]
    if branches > 1:
        draws = samples.shape[1] // branches
        distance, spread = energy_terms(samples, weights, y, c, beta, draws=draws)
        return distance - 0.5 * spread * draws / (draws - 1)
    distance, spread = (terms or energy_terms)(samples, weights, y, c, beta, lags)
    if fair:
        same = 1 / samples.shape[1] if weights is None else xp.sum(weights**2, axis=1)
        spread = spread / (1 - same)
    return distance - 0.5 * spread


def fastest_terms(samples: Array, weights: Array, distances: float) -> Terms:
    """What computes ``distances`` distances of these members fastest; all answers agree up to rounding."""
    arrays = (samples,) if weights is None else (samples, weights)
    return (
        on_gpu("censcore.scores.kernels.energy_pairs_triton", "energy_terms", *arrays)
        or on_cpu("censcore.scores.kernels.energy_pairs_numba", "energy_terms", samples, 4 * distances)
        or energy_terms
    )


def energy_terms(
    z: Array, w: Array, y: Array, c: Array, beta: float, lags: Array = None, draws: int | None = None
) -> tuple[Array, Array]:
    """The two sums of the energy score, averaged over the D censoring times: (n,) and (n,).

    Where members are the possible values of ``draws`` draws, values of one draw do not form a pair.
    """
    xp = namespace(z)
    m, k = z.shape[1:]
    w = None if w is None else w[:, None, :]
    members = [z[:, None, :, j] for j in range(k)]
    limits = [c[..., j if c.shape[-1] > 1 else 0] for j in range(k)]
    limits = limits if c.ndim == 4 else [limit[:, :, None] for limit in limits]
    psi = _censor(members, limits)
    observed = [y[:, None, None, j] for j in range(k)]
    observed = observed if draws is None else _censor(observed, limits)
    accuracy = _mean(_distance(psi, observed, beta), w)

    def spread(partner: Callable[[Array], Array]) -> Array:
        """The sum over the m pairs of a member and its partner, (n, D)."""
        if c.ndim == 4:  # partners meet at the censoring time of the member, not at their own
            others = _censor([partner(a) for a in members], limits)
        else:
            others = [partner(a) for a in psi]
        distance = _distance(psi, others, beta)
        return _mean(distance, w) / m if w is None else _mean(partner(w) * distance, w)

    if m == 1:
        between = xp.zeros_like(accuracy)
    elif lags is None and m <= _FEW and getattr(z, "requires_grad", False):  # a step of training
        between = _all_lags(members, psi, limits, w, beta, draws)
    elif lags is None:
        between = _all_pairs(spread, m, draws)
    else:
        index = (xp.arange(m, device=lags.device) + lags[:, :, None]) % m
        between = (m - 1) * spread(lambda a: _take(a, index))
    return xp.mean(accuracy, axis=1), xp.mean(between, axis=1)


def _all_lags(
    members: list[Array], psi: list[Array], limits: list[Array], w: Array, beta: float, draws: int | None
) -> Array:
    """The sum over all pairs as :func:`_all_pairs` has it, for few members: all lags in one step, (n, D)."""
    xp, m = namespace(members[0]), members[0].shape[2]
    far = xp.arange(1, m // 2 + 1, device=members[0].device)
    counts = xp.where(2 * far == m, 1, 2) * (1 if draws is None else far % draws > 0)

    def partners(a: Array) -> Array:
        """The members 1 to m/2 places further, (n, D, lags, m)."""
        return xp.concat([a, a[:, :, : m // 2]], axis=2).unfold(2, m, 1)[:, :, 1:]

    others = _censor([partners(a) for a in members], [limit[:, :, None] for limit in limits])
    distance = _distance([a[:, :, None] for a in psi], others, beta)
    pairs = distance / m**2 if w is None else w[:, :, None] * partners(w) * distance
    return xp.sum(xp.sum(pairs, axis=3) * counts, axis=2)


def _mean(values: Array, w: Array) -> Array:
    """Weighted mean over the members."""
    xp = namespace(values)
    return xp.mean(values, axis=2) if w is None else xp.sum(w * values, axis=2)


def _all_pairs(spread: Callable[[Callable[[Array], Array]], Array], m: int, draws: int | None = None) -> Any:
    """Sum over all ordered pairs: every lag up to m/2 stands for its mirror image too."""
    lags = [lag for lag in range(1, m // 2 + 1) if draws is None or lag % draws]
    return sum((1 if 2 * lag == m else 2) * spread(partial(_roll, lag=lag)) for lag in lags)


def _censor(z: list[Array], c: list[Array]) -> list[Array]:
    """min(z, c), whose gradient is zero from c on."""
    xp = namespace(z[0])
    return [xp.where(a < limit, a, limit) for a, limit in zip(z, c, strict=True)]


def _distance(p: list[Array], q: list[Array], beta: float) -> Array:
    """||p - q||^beta over the coordinates; zero distances have zero gradient."""
    squared: Any = sum((a - b) ** 2 for a, b in zip(p, q, strict=True))
    xp = namespace(squared)
    apart = squared > 0
    inside = xp.where(apart, squared, 1.0)
    power = xp.sqrt(inside) if beta == 1 else inside ** (beta / 2)
    return xp.where(apart, power, 0.0)


def _roll(a: Array, lag: int) -> Array:
    """Member i + lag in the place of member i, counted round."""
    return namespace(a).concat([a[:, :, lag:], a[:, :, :lag]], axis=2)


def _take(a: Array, index: Array) -> Array:
    xp = namespace(a)
    return a.take_along_dim(index, dim=2) if is_torch(a) else xp.take_along_axis(a, index, axis=2)


def chunk_numbers(array: Array) -> int:
    """How many numbers to work on at once: a GPU is worth its overhead only for large pieces."""
    return CHUNK_NUMBERS * (32 if is_torch(array) and array.is_cuda else 1)
