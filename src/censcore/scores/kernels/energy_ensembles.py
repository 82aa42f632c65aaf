"""Energy score of ensembles, of samples from other distributions and of competing risks, over draws of C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, requires_grad, to_numpy
from censcore._numerics import chunked_rows
from censcore.distributions import CauseEnsemble, Ensemble
from censcore.exceptions import InvalidInputError
from censcore.scores.inputs.compatible_times import RandomNumbers, compatible_times, known_rows
from censcore.scores.inputs.scoring_inputs import ScoringInputs
from censcore.scores.inputs.support import check_infinite
from censcore.scores.kernels.energy_pairs import chunk_numbers, energy_loss, fastest_terms
from censcore.scores.rules.over_causes import InputsOfCauses

# Up to this many members all pairs cost little more than the draws of C that they are averaged over.
FEW_MEMBERS = 64

# Distributions that are no ensemble are sampled in blocks of this many subjects.
_SAMPLED_ROWS = 256


@dataclass(frozen=True)
class Method:
    """How the score is computed: the options that concern every subject alike."""

    beta: float
    pairs: str
    fair: bool
    random: RandomNumbers


def members_of(ensemble: Ensemble) -> Array:
    """Samples (n or 1, m, k)."""
    return ensemble.samples if ensemble.samples.ndim == 3 else ensemble.samples[:, :, None]


def score_of_samples(inputs: ScoringInputs, mask: Array, method: Method, members: int) -> Array:
    """Fair score of samples from each distribution, block by block of subjects."""
    losses = []
    for start in range(0, inputs.n, _SAMPLED_ROWS):
        rows = slice(start, min(start + _SAMPLED_ROWS, inputs.n))
        block, random = inputs.take(rows), method.random.take(rows)
        block = replace(block, F=Ensemble(_samples(block, members, random)))
        sampled = replace(method, fair=True, random=random)
        losses.append(score_of_ensemble(block, None if mask is None else mask[rows], sampled))
    return inputs.xp.concat(losses)


def _samples(block: ScoringInputs, members: int, random: RandomNumbers) -> Array:
    """(n, members, k) samples, drawn for every subject even where one distribution serves all."""
    one = len(block.F) == 1
    drawn = block.F.sample((block.n if one else 1) * members, random.samples(flat=one))
    return drawn.reshape(block.n, members, block.y.k)


def score_of_ensemble(inputs: ScoringInputs, mask: Array, method: Method) -> Array:
    """Rows with a known C at that C, the others at draws of it."""
    z, w = members_of(inputs.F), inputs.F.weights
    alone = z.shape[1] == 1 if w is None else bool((inputs.xp.sum(w**2, axis=1) >= 1).any())
    if method.fair and alone:
        raise InvalidInputError(
            "fair=True compares different members, so it needs at least two of positive weight; got one. "
            "Use fair=False, which scores the ensemble as the distribution it is."
        )
    _check_endless(inputs, z, mask)
    unit = _unit(z, inputs.y.time, method.beta)
    known = known_rows(inputs.y, inputs.C)
    exact = z.shape[1] == 1 or method.pairs == "all"
    few = method.pairs == "auto" and z.shape[1] <= FEW_MEMBERS
    never = to_numpy(inputs.y.never).reshape(inputs.n, -1).any(axis=1)
    sets = [
        _ScoredAlike(np.flatnonzero(known & ~never), True, 1, exact or method.pairs == "auto"),
        _ScoredAlike(np.flatnonzero(~known & ~never), False, method.random.draws, exact or few),
        _ScoredAlike(np.flatnonzero(known & never), True, 1, exact or method.pairs == "auto", never=True),
        _ScoredAlike(np.flatnonzero(~known & never), False, method.random.draws, exact or few, never=True),
    ]
    losses = [_of_rows(inputs, mask, method, unit, rows) for rows in sets if rows.index.size]
    back = convert(np.argsort(np.concatenate([rows.index for rows in sets])), inputs.y.time)
    return inputs.xp.concat(losses)[back] * unit**method.beta


@dataclass(frozen=True)
class _ScoredAlike:
    """Subjects that are scored alike: at so many values of C, by all pairs or by one lag for each draw."""

    index: np.ndarray
    known: bool
    draws: int
    all_pairs: bool
    never: bool = False  # with events that never happen: C itself is observed, at each of its values


def _check_endless(inputs: ScoringInputs, z: Array, mask: Array) -> None:
    """Members that never have the event need a C that ends follow-up."""
    xp, y, C = inputs.xp, inputs.y, inputs.C
    known_never = xp.any(y.never.reshape(inputs.n, -1), axis=1)
    if bool(known_never.any()):
        endless = known_never & (C.mass_at_infinity() > 0)
        check_infinite(xp.where(endless, np.inf, xp.zeros_like(C.mass_at_infinity())), inputs)
    if np.isfinite(float(xp.max(detach(z)))):
        return
    never = xp.any(xp.isinf(z), axis=1)
    never = never if mask is None else never & mask
    event = y.event.reshape(inputs.n, -1)
    event = event if C.k > 1 else xp.all(event, axis=1)[:, None]
    endless = [C.marginal(j).mass_at_infinity() > 0 for j in range(C.k)]
    endless = xp.stack(xp.broadcast_arrays(*endless), axis=1)
    infinite = xp.any(never & event & endless, axis=1)
    check_infinite(xp.where(infinite, np.inf, xp.zeros_like(y.time.reshape(inputs.n, -1)[:, 0])), inputs)


def _unit(z: Array, time: Array, beta: float) -> float:
    """A power of two to divide times by, so that their squares neither overflow nor vanish; mostly one."""
    xp, z = namespace(z), detach(z)
    largest = float(xp.max(z))
    if largest == np.inf:
        largest = float(xp.max(xp.where(xp.isinf(z), 0.0, z)))
    largest = max(largest, float(xp.max(time)))
    limit = float(xp.finfo(z.dtype).max)
    if largest > limit ** min(1, 1 / beta) / 4:
        raise InvalidInputError(
            f"Times up to {largest:g} to the power beta={beta:g} exceed {z.dtype}; use a larger unit of time."
        )
    return 1.0 if largest == 0 or limit**-0.25 < largest < limit**0.25 else 2.0 ** np.floor(np.log2(largest))


def _of_rows(inputs: ScoringInputs, mask: Array, method: Method, unit: float, rows: _ScoredAlike) -> Array:
    """Losses chunk by chunk."""
    z, w = members_of(inputs.F), inputs.F.weights
    m, k = z.shape[1:]
    lags_per_row = 0 if rows.all_pairs else method.random.draws
    order = method.random.order(m)
    pairs = m * lags_per_row or m * (m - 1) // 2 * rows.draws
    terms = fastest_terms(z, w, (m * rows.draws + pairs) * rows.index.size)

    def losses(part: slice) -> Array:
        index = rows.index[part]
        subset, random = inputs.take(index), method.random.take(index)
        z, w = members_of(subset.F), subset.F.weights
        y = subset.y.time.reshape(subset.n, -1)
        middle = namespace(y).full_like(y[:, None, : subset.C.k], 0.5)
        levels = middle if rows.known else random.levels(subset.C.k, like=y)
        c = compatible_times(subset.y, subset.C, levels)
        lags = None
        if not rows.all_pairs:
            z, w = z[:, order], None if w is None else w[:, order]
            lags = convert(random.lags(m), y)
        if unit != 1:
            z, y, c = z / unit, y / unit, c / unit
        options: dict[str, Any] = {"beta": method.beta, "fair": method.fair, "terms": terms}
        if rows.never:
            return _moving_with_c(z, y, subset.y.never.reshape(subset.n, -1), c, w, lags, options)
        return energy_loss(
            z, y, c, weights=w, mask=None if mask is None else mask[index], lags=lags, **options
        )

    numbers = max(m * max(rows.draws, lags_per_row, k), pairs // 10)
    large = requires_grad(z) and numbers * rows.index.size > chunk_numbers(z)
    return chunked_rows(
        _recomputed(losses) if large else losses, rows.index.size, numbers, z, chunk_numbers(z)
    )


def _moving_with_c(
    z: Array, y: Array, never: Array, c: Array, w: Array, lags: Array, options: dict[str, Any]
) -> Array:
    """The mean over the values c (n, D, 1) of C of the loss of what is observed: c without an event."""
    xp = namespace(y)
    if c.shape[1] == 1:
        return energy_loss(z, xp.where(never, c[:, 0], y), c, weights=w, lags=lags, **options)
    losses = []
    for d in range(c.shape[1]):
        lag = None if lags is None else lags[:, d : d + 1]
        losses.append(_moving_with_c(z, y, never, c[:, d : d + 1], w, lag, options))
    return sum(losses[1:], losses[0]) / len(losses)


def _recomputed(losses: Callable[[slice], Array]) -> Callable[[slice], Array]:
    """The same function, whose gradient computes a chunk anew instead of keeping all of its pairs."""
    from torch.utils.checkpoint import checkpoint

    return lambda part: checkpoint(losses, part, use_reentrant=False, preserve_rng_state=False)


def score_of_causes(inputs: InputsOfCauses, method: Method, members: int) -> Array:
    """The score of the times (min(T_1, C), ..., min(T_m, C)), of which all but one are C.

    Samples of the forecast are scored, those of an ensemble as they are and others as a fair sample.
    """
    xp, F, random = inputs.xp, inputs.by_cause, method.random
    m = F.n_causes
    endless = (inputs.C.mass_at_infinity() > 0) & inputs.y.event
    check_infinite(xp.where(endless, np.inf, xp.zeros_like(inputs.y.time)), inputs)
    causes = xp.broadcast_to(convert(to_numpy(inputs.causes.causes), inputs.y.time), (inputs.n,))
    of_cause = xp.stack([inputs.y.event & (causes == j + 1) for j in range(m)], axis=1)
    as_it_is = isinstance(F, CauseEnsemble) and F.weights is None
    options: dict[str, Any] = {"beta": method.beta, "fair": method.fair or not as_it_is}

    def losses(rows: slice) -> Array:
        subset, numbers = inputs.take(rows), random.take(rows)
        z = _by_cause(F.take(rows), members, numbers, as_it_is)
        c = compatible_times(subset.y, subset.C, numbers.levels(1, like=subset.y.time))
        lags = None
        if method.pairs == "lagged" or (method.pairs == "auto" and z.shape[1] > FEW_MEMBERS):
            lags = convert(numbers.lags(z.shape[1]), subset.y.time)
        return _moving_with_c(z, subset.time, ~of_cause[rows], c, None, lags, options)

    size = F.samples.time.shape[1] if as_it_is else members
    return chunked_rows(losses, inputs.n, 4 * m * size, inputs.y.time)


def _by_cause(F: Any, members: int, random: RandomNumbers, as_it_is: bool) -> Array:
    """The times of all causes, (n, M, m), infinite but for the one that happened; drawn for every subject."""
    n, one = len(random.keys), len(F) == 1
    drawn = F.samples if as_it_is else F.sample((n if one else 1) * members, random.samples(flat=one))
    time, cause = drawn if as_it_is else (part.reshape(n, members) for part in drawn)
    xp = namespace(time)
    never = xp.full_like(time, np.inf)
    return xp.stack([xp.where(cause == j + 1, time, never) for j in range(F.n_causes)], axis=2)
