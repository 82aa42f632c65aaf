"""Energy score of joint event times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import Array, as_loss, convert, detach, is_torch, namespace, requires_grad, to_numpy
from censcore._numerics import chunked_rows
from censcore._validation import as_count, as_number, as_seed, check_flag, check_option
from censcore.distributions import CauseEnsemble, Distribution, Ensemble
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, OutcomeLike, RightCensored, SemiCompetingRisks, as_outcome
from censcore.scores._support import check_infinite
from censcore.scores.compatible_times import (
    RandomNumbers,
    check_componentwise,
    compatible_times,
    known_rows,
    subject_keys,
)
from censcore.scores.competing_risks import check_causes
from censcore.scores.crps import crps
from censcore.scores.energy_pairs import chunk_numbers, energy_loss, fastest_terms
from censcore.scores.inputs import ScoringInputs, _known_or_raise, inverse_probability_weights, scoring_inputs
from censcore.scores.interval import through_visits
from censcore.scores.semi_competing import energy_of_semi_competing

__all__ = ["energy_score"]

# Up to this many members all pairs cost little more than the draws of C that they are averaged over.
_FEW_MEMBERS = 64

# Distributions that are no ensemble are sampled in blocks of this many subjects.
_SAMPLED_ROWS = 256


@as_loss
def energy_score(
    y: OutcomeLike | SemiCompetingRisks,
    forecast: Distribution,
    censoring: Distribution | None = None,
    *,
    beta: float = 1.0,
    pairs: str = "auto",
    fair: bool = False,
    draws: int = 32,
    seed: int = 0,
    mask: Array = None,
    horizon: Array = None,
    members: int = 1024,
    ids: Any = None,
) -> Array:
    r"""Energy score of right-censored event times, joint over their k coordinates.

    .. math::
        \mathbb E\Big[\,\mathbb E\|\psi_C(Z)-y\|^\beta-\tfrac12\mathbb E\|\psi_C(Z)-\psi_C(Z')\|^\beta
        \;\Big|\;C\text{ compatible with the observation}\Big],\qquad \psi_c(z)=\min(z,c),

    with :math:`Z,Z'` independent draws from the forecast: the energy score of :math:`\min(T,C)`, averaged
    over the values of C that the observation allows. One C shared by all coordinates is known where any
    coordinate is censored, and elsewhere has its distribution given :math:`C\ge\max_j y_j`. With one C per
    coordinate (``Independent``) this holds coordinate by coordinate. Proper if C is independent of T given
    the covariates and its distribution is right, for what happens at times t with P(C > t) > 0. For k = 1 and
    :math:`\beta=1` it is :func:`crps`.

    Parameters
    ----------
    y : RightCensored, CompetingRisks, SemiCompetingRisks, IntervalCensored, structured array or frame
        The outcome of n subjects, k times each. An event that never happens, because a terminal event was
        first, is seen as :math:`\min(\infty,C)=C`, and the outcome moves with the values of C. Of
        interval-censored data the detection time is scored.
    forecast : Distribution
        Joint distribution of T; usually ``Ensemble(samples)`` with samples (n, m, k). Of another distribution
        ``members`` draws are scored as a fair sample (for k = 1 and beta = 1 the distribution itself is
        scored, exactly).
    censoring : Distribution, optional
        Distribution of C given the covariates: one time shared by all coordinates, or ``Independent`` ones.
        It may be left out only where it is known: nothing is censored, or ``y.censoring_time`` is given.
    beta : float
        Exponent, 0 < beta < 2.
    pairs : {"auto", "all", "lagged"}
        Which pairs of members enter. ``"all"`` takes all of them for every draw of C. ``"lagged"`` takes for
        every draw the m pairs at one random lag of the shuffled ensemble: m distances instead of m²/2, and an
        error far below that of the ensemble itself. ``"auto"`` takes all pairs where C is known or members
        are few.
    fair : bool
        False scores the ensemble as the empirical distribution that it is. True scores it as a sample from a
        distribution, without the pairs of a member with itself, which is unbiased for the score of that
        distribution.
    draws : int
        Number of compatible values of C per subject, at stratified random levels of its conditional
        distribution (a randomized quasi-Monte Carlo net for one C per coordinate). Where C is known, that
        one is used.
    seed : int
        Seed of draws and lags. The numbers of a subject follow from the seed and from its times and events
        (or ``ids``), so that its loss is the same in any order, company and split of the data. Among subjects
        with equal times and events they also follow from the order, unless there are ``ids``.
    mask : array of bool, (n, k), optional
        False leaves a coordinate of a subject out, from distances and from what is known of C. A subject
        without any coordinate scores zero.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
        count; of discrete times take the first one after those that count (13 to judge month 12).
    members : int
        Sample size for forecasts that are no ensemble.
    ids : array, (n,), optional
        Numbers or labels that random numbers follow from in place of times and events: subjects with the same
        id have the same draws.

    Returns
    -------
    array, (n,)
        One loss per subject; lower is better.

    Notes
    -----
    Draws and lags make the score of subjects with an unknown C random; its mean over seeds is the exact
    value. Subjects are drawn independently, so that averages over them are hardly affected.

    Competing risks: ``y.cause(j)`` and ``forecast.cause(j)`` give the score of cause j. Given
    :class:`CompetingRisks` and a forecast of all causes it is that of the times
    :math:`(\min(T_1,C),\dots,\min(T_m,C))`, of which all but one are C.

    See Also
    --------
    crps : The exact score of one event time.
    censcore.CensoredEngression : Trains a joint model with this score as its loss.

    References
    ----------
    .. [1] Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and estimation.
       Journal of the American Statistical Association 102, 359-378.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> samples = np.random.default_rng(0).exponential(size=(3, 200, 2))
    >>> y = cs.RightCensored([[0.5, 2.0], [1.0, 1.0], [0.3, 0.2]], [[1, 0], [0, 0], [1, 1]])
    >>> cs.energy_score(y, cs.Ensemble(samples), cs.Uniform(0.0, 3.0)).round(2)
    array([0.75, 0.32, 0.43])
    """
    _check_options(beta, pairs, draws, seed, members, fair)
    if isinstance(y, SemiCompetingRisks):
        if mask is not None:
            raise InvalidInputError("mask: not available for SemiCompetingRisks; leave it out.")
        return energy_of_semi_competing(
            y,
            forecast,
            censoring,
            horizon,
            RandomNumbers(int(seed), int(draws), subject_keys(y, ids, seed)),
            beta=float(beta),
            fair=bool(fair),
            lagged=None if pairs == "auto" else pairs == "lagged",
            members=members,
        )
    y, forecast, censoring = through_visits(y, forecast, censoring, horizon, members=True)
    if mask is not None:
        y, censoring, mask = leave_out(as_outcome(y), censoring, mask)  # competing risks have no mask
    if isinstance(y, CompetingRisks):
        random = RandomNumbers(int(seed), int(draws), subject_keys(y.any_cause(), ids, seed))
        method = _Method(float(beta), pairs, bool(fair), random)
        return _of_competing_risks(y, forecast, censoring, horizon, method, members)
    inputs = scoring_inputs(y, forecast, censoring, horizon, joint=True, one_cause=True)
    check_componentwise(inputs.C)
    xp = inputs.xp
    mask = None if mask is None else xp.broadcast_to(mask, (inputs.n, inputs.y.k))
    random = RandomNumbers(int(seed), int(draws), subject_keys(inputs.y, ids, seed))
    method = _Method(float(beta), pairs, bool(fair), random)
    if inputs.y.k == 1 and beta == 1 and (pairs != "lagged" or not isinstance(inputs.F, Ensemble)):
        loss = _of_one_time(inputs, fair)
    elif isinstance(inputs.F, Ensemble):
        loss = _of_ensemble(inputs, mask, method)
    else:
        loss = _of_distribution(inputs, mask, method, members)
    return loss if mask is None else xp.where(xp.any(mask, axis=1), loss, xp.zeros_like(loss))


@dataclass(frozen=True)
class _Method:
    """How the score is computed: the options that concern every subject alike."""

    beta: float
    pairs: str
    fair: bool
    random: RandomNumbers


def _check_options(beta: float, pairs: str, draws: int, seed: int, members: int, fair: bool) -> None:
    as_number(beta, "beta", above=0, below=2)
    check_option(pairs, "pairs", ("auto", "all", "lagged"))
    as_count(draws, "draws", most=10**6)
    as_count(members, "members", least=2, most=10**6)
    as_seed(seed)
    check_flag(fair, "fair")


def leave_out(y: RightCensored, censoring: Any, mask: Array) -> tuple[RightCensored, Any, Array]:
    """The outcome with an event at time zero, which says nothing of C, wherever the mask is False."""
    if censoring is None:
        censoring = _known_or_raise(y)
    xp = namespace(y.time)
    kept = convert(mask, y.time) if is_torch(y.time) else np.asarray(mask)
    if kept.dtype != xp.bool:
        raise InvalidInputError(f"mask must be boolean, True where a time counts; got dtype {kept.dtype}.")
    kept = kept.reshape(-1, 1) if kept.ndim == 1 and y.k == 1 else kept
    if tuple(kept.shape) != (len(y), y.k):
        raise InvalidInputError(
            f"mask must have one entry per subject and coordinate, {(len(y), y.k)}; got {tuple(kept.shape)}."
        )
    seen = kept.reshape(y.shape)
    left = RightCensored(xp.where(seen, y.time, xp.zeros_like(y.time)), y.event | ~seen, y.censoring_time)
    return left._with_entry(y.entry), censoring, kept


def _of_one_time(inputs: ScoringInputs, fair: bool) -> Array:
    """The CRPS; a fair one gives the spread the weight that pairs of different members have."""
    if inputs.y.time.ndim == 2:
        inputs = ScoringInputs(inputs.y.marginal(0), inputs.F.marginal(0), inputs.C.marginal(0))
    loss = crps(inputs.y, inputs.F, inputs.C)
    if not (fair and isinstance(inputs.F, Ensemble)):
        return loss
    same = inputs.xp.sum(_check_fair(_weights(inputs.F)) ** 2, axis=1)
    accuracy = chunked_rows(
        lambda rows: _accuracy(inputs.take(rows)), inputs.n, 4 * inputs.F.m, inputs.y.time
    )
    return loss - (accuracy - loss) * same / (1 - same)


def _accuracy(inputs: ScoringInputs) -> Array:
    r""":math:`\mathbb E|\min(Z,C)-y|`: what lies beyond y counts as far as C reaches."""
    xp, y, z = inputs.xp, inputs.time, inputs.F.samples
    reach = inverse_probability_weights(inputs)
    # members beyond y of a subject censored there add nothing, however far C would have reached
    later = xp.where((z > y) & (reach > 0) & inputs.event, z, y)
    before = xp.where(z < y, y - z, xp.zeros_like(z))
    beyond = inputs.C.integrated_sf(y, later)
    if inputs.has_never:  # what is seen is C, which finite members fall short of
        short = inputs.never & xp.isfinite(z)
        start = xp.where(short & (z > y), z, y)
        beyond = beyond + inputs.C.integrated_sf(start, xp.where(short, xp.full_like(z, np.inf), start))
    return xp.sum(_weights(inputs.F) * (before + beyond * reach), axis=1)


def _check_fair(w: Array) -> Array:
    if not bool((namespace(w).sum(w**2, axis=1) < 1).all()):
        raise InvalidInputError(
            "fair=True compares different members, so it needs at least two of positive weight; got one. "
            "Use fair=False, which scores the ensemble as the distribution it is."
        )
    return w


def _members(ensemble: Ensemble) -> Array:
    """Samples (n or 1, m, k)."""
    return ensemble.samples if ensemble.samples.ndim == 3 else ensemble.samples[:, :, None]


def _weights(ensemble: Ensemble) -> Array:
    """Weights (n or 1, m), equal ones too."""
    z, w = ensemble.samples, ensemble.weights
    return namespace(z).full_like(_members(ensemble)[:1, :, 0], 1 / ensemble.m) if w is None else w


def _of_distribution(inputs: ScoringInputs, mask: Array, method: _Method, members: int) -> Array:
    """Fair score of samples from each distribution, block by block of subjects."""
    losses = []
    for start in range(0, inputs.n, _SAMPLED_ROWS):
        rows = slice(start, min(start + _SAMPLED_ROWS, inputs.n))
        block, random = inputs.take(rows), method.random.take(rows)
        block = replace(block, F=Ensemble(_samples(block, members, random)))
        sampled = replace(method, fair=True, random=random)
        losses.append(_of_ensemble(block, None if mask is None else mask[rows], sampled))
    return inputs.xp.concat(losses)


def _samples(block: ScoringInputs, members: int, random: RandomNumbers) -> Array:
    """(n, members, k) samples, drawn for every subject even where one distribution serves all."""
    one = len(block.F) == 1
    drawn = block.F.sample((block.n if one else 1) * members, random.samples(flat=one))
    return drawn.reshape(block.n, members, block.y.k)


def _of_ensemble(inputs: ScoringInputs, mask: Array, method: _Method) -> Array:
    """Rows with a known C at that C, the others at draws of it."""
    z = _members(inputs.F)
    if method.fair:
        _check_fair(_weights(inputs.F))
    _check_endless(inputs, z, mask)
    unit = _unit(z, inputs.y.time, method.beta)
    known = known_rows(inputs.y, inputs.C)
    exact = z.shape[1] == 1 or method.pairs == "all"
    few = method.pairs == "auto" and z.shape[1] <= _FEW_MEMBERS
    never = to_numpy(inputs.y.never).reshape(inputs.n, -1).any(axis=1)
    sets = [
        _Rows(np.flatnonzero(known & ~never), True, 1, exact or method.pairs == "auto"),
        _Rows(np.flatnonzero(~known & ~never), False, method.random.draws, exact or few),
        _Rows(np.flatnonzero(known & never), True, 1, exact or method.pairs == "auto", never=True),
        _Rows(np.flatnonzero(~known & never), False, method.random.draws, exact or few, never=True),
    ]
    losses = [_of_rows(inputs, mask, method, unit, rows) for rows in sets if rows.index.size]
    back = convert(np.argsort(np.concatenate([rows.index for rows in sets])), inputs.y.time)
    return inputs.xp.concat(losses)[back] * unit**method.beta


@dataclass(frozen=True)
class _Rows:
    """Rows that are scored alike: at so many values of C, by all pairs or by one lag for each draw."""

    index: np.ndarray
    known: bool
    draws: int
    all_pairs: bool
    never: bool = False  # after a competing event what is seen is C itself, at each of its values


def _check_endless(inputs: ScoringInputs, z: Array, mask: Array) -> None:
    """Members that never have the event need a C that ends follow-up."""
    xp, y, C = inputs.xp, inputs.y, inputs.C
    if inputs.has_never:
        endless = inputs.y.never & (C.mass_at_infinity() > 0)
        check_infinite(xp.where(endless, np.inf, xp.zeros_like(y.time)), inputs)
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
        largest = float(xp.max(xp.where(xp.isinf(z), xp.zeros_like(z), z)))
    largest = max(largest, float(xp.max(time)))
    limit = float(xp.finfo(z.dtype).max)
    if largest > limit ** min(1, 1 / beta) / 4:
        raise InvalidInputError(
            f"Times up to {largest:g} to the power beta={beta:g} exceed {z.dtype}; use a larger unit of time."
        )
    return 1.0 if largest == 0 or limit**-0.25 < largest < limit**0.25 else 2.0 ** np.floor(np.log2(largest))


def _of_rows(inputs: ScoringInputs, mask: Array, method: _Method, unit: float, rows: _Rows) -> Array:
    """Losses chunk by chunk."""
    z, w = _members(inputs.F), inputs.F.weights
    m, k = z.shape[1:]
    lags_per_row = 0 if rows.all_pairs else method.random.draws
    order = method.random.order(m)
    pairs = m * lags_per_row or m * (m - 1) // 2 * rows.draws
    terms = fastest_terms(z, w, (m * rows.draws + pairs) * rows.index.size)

    def losses(part: slice) -> Array:
        index = rows.index[part]
        some, random = inputs.take(index), method.random.take(index)
        z, w = _members(some.F), some.F.weights
        y = some.y.time.reshape(some.n, -1)
        middle = namespace(y).full_like(y[:, None, : some.C.k], 0.5)
        levels = middle if rows.known else random.levels(some.C.k, like=y)
        c = compatible_times(some.y, some.C, levels)
        lags = None
        if not rows.all_pairs:
            z, w = z[:, order], None if w is None else w[:, order]
            lags = convert(random.lags(m), y)
        if unit != 1:
            z, y, c = z / unit, y / unit, c / unit
        options: dict[str, Any] = {"beta": method.beta, "fair": method.fair, "terms": terms}
        if rows.never:
            return _seen_at_censoring(z, c, w, lags, options)
        return energy_loss(
            z, y, c, weights=w, mask=None if mask is None else mask[index], lags=lags, **options
        )

    numbers = max(m * max(rows.draws, lags_per_row, k), pairs // 10)
    large = requires_grad(z) and numbers * rows.index.size > chunk_numbers(z)
    return chunked_rows(
        _recomputed(losses) if large else losses, rows.index.size, numbers, z, chunk_numbers(z)
    )


def _seen_at_censoring(z: Array, c: Array, w: Array, lags: Array, options: dict[str, Any]) -> Array:
    """The mean over the values c (n, D, 1) of C of the loss at what is then seen, which is c itself."""
    if c.shape[1] == 1:
        return energy_loss(z, c[:, 0], c, weights=w, lags=lags, **options)
    losses = [
        _seen_at_censoring(z, c[:, d : d + 1], w, None if lags is None else lags[:, d : d + 1], options)
        for d in range(c.shape[1])
    ]
    return sum(losses[1:], losses[0]) / len(losses)


def _of_competing_risks(
    y: CompetingRisks, forecast: Any, censoring: Any, horizon: Array, method: _Method, members: int
) -> Array:
    """The score of the times (min(T_1, C), ..., min(T_m, C)), of which all but one are C.

    Samples of the forecast are scored, those of an ensemble as they are and others as a fair sample.
    """
    F: Any = check_causes(y, forecast)
    inputs = scoring_inputs(y.any_cause(), F.any_cause(), censoring, horizon)
    xp, m, random = inputs.xp, F.n_causes, method.random
    endless = (inputs.C.mass_at_infinity() > 0) & inputs.y.event
    check_infinite(xp.where(endless, np.inf, xp.zeros_like(inputs.y.time)), inputs)
    causes = xp.broadcast_to(convert(to_numpy(y.causes), inputs.y.time), (inputs.n,))
    of_cause = xp.stack([inputs.y.event & (causes == j + 1) for j in range(m)], axis=1)
    as_it_is = isinstance(F, CauseEnsemble) and F.weights is None
    options: dict[str, Any] = {"beta": method.beta, "fair": method.fair or not as_it_is}

    def losses(rows: slice) -> Array:
        some, numbers = inputs.take(rows), random.take(rows)
        time, cause = F.take(rows).samples if as_it_is else _draws_of(F, rows, some.n, members, numbers)
        z = _by_cause(time, cause, m)
        c = compatible_times(some.y, some.C, numbers.levels(1, like=some.y.time))
        lags = None
        if method.pairs == "lagged" or (method.pairs == "auto" and z.shape[1] > _FEW_MEMBERS):
            lags = convert(numbers.lags(z.shape[1]), some.y.time)
        total = xp.zeros_like(some.y.time)
        for d in range(c.shape[1]):
            seen = xp.where(of_cause[rows], some.time, c[:, d])
            lag = None if lags is None else lags[:, d : d + 1]
            total = total + energy_loss(z, seen, c[:, d : d + 1], lags=lag, **options)
        return total / c.shape[1]

    size = F.samples.time.shape[1] if as_it_is else members
    return chunked_rows(losses, inputs.n, 4 * m * size, inputs.y.time)


def _draws_of(F: Any, rows: slice, n: int, members: int, random: RandomNumbers) -> tuple[Array, Array]:
    """Times and causes (n, members), drawn for every subject even where one distribution serves all."""
    one = len(F) == 1
    drawn = F.take(rows).sample((n if one else 1) * members, random.samples(flat=one))
    return drawn.time.reshape(n, members), drawn.cause.reshape(n, members)


def _by_cause(time: Array, cause: Array, m: int) -> Array:
    """The times of all causes, (n, M, m): infinite but for the one that happened."""
    xp = namespace(time)
    never = xp.full_like(time, np.inf)
    return xp.stack([xp.where(cause == j + 1, time, never) for j in range(m)], axis=2)


def _recomputed(losses: Callable[[slice], Array]) -> Callable[[slice], Array]:
    """The same function, whose gradient computes a chunk anew instead of keeping all of its pairs."""
    from torch.utils.checkpoint import checkpoint

    return lambda part: checkpoint(losses, part, use_reentrant=False, preserve_rng_state=False)
