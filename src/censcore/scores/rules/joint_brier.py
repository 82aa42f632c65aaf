"""Brier score of joint events: either event, all of them, one before the others."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from censcore._arrays import Array, ArrayLike, namespace
from censcore._validation import as_count, as_seed, check_instance, shown
from censcore.distributions import Distribution, Ensemble
from censcore.distributions.joint_events import JointEvent, all_before, either_before
from censcore.distributions.random_draws import SubjectDraws, keys_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored, SemiCompetingRisks, as_followed
from censcore.scores.decorator import score
from censcore.scores.inputs.compatible_times import check_componentwise, subject_keys
from censcore.scores.inputs.known_at import known_at
from censcore.scores.inputs.scoring_inputs import ScoringInputs, check_scale
from censcore.scores.inputs.support import LOCALIZED
from censcore.scores.registry import GRAF

_LATEST = float(np.finfo(np.float32).max)  # later times than t are infinite
NAMED: dict[str, JointEvent] = {"either": either_before(_LATEST), "all": all_before(_LATEST)}
COMMON_DRAWS = 65_536  # at least, of one distribution that serves all subjects
_SAMPLED_ROWS = 256  # subjects that are sampled together


@score(
    title="Brier score",
    formula=r"W(t)\{B(t)-p(t)\}^2,\quad W(t)=1\{y>t\}+\delta\,1\{y\le t\}\frac{G(t)}{G(y-)}",
    reference=GRAF,
    axis="time",
    joint=True,
    causes=None,
    intervals=None,
    univariate=False,
    unit="none (a squared probability)",
    range="0 to 1; slightly below 0 is possible where the probability is estimated from draws",
    proper="Strictly proper for the probability p(t) of the joint event, if P(C > t) > 0.",
    pitfalls=(
        'It is decided later than a single event: "both by t" is known only when the second is seen.',
        "It judges one joint event at one time. The energy score judges the whole distribution.",
    ),
)
def joint_brier_score(
    inputs: ScoringInputs,
    times: Array,
    *,
    event: str | JointEvent = "either",
    scale: str = "localized",
    members: int = 1024,
    seed: int = 0,
    ids: ArrayLike | None = None,
) -> Array:
    r"""Brier score of a joint event by time t: squared error of its forecast probability p(t).

    .. math::
        W(t)\,\{B(t)-p(t)\}^2,\qquad B(t)=\mathbb 1\{T^{(t)}\in A\},\qquad
        T^{(t)}_j=T_j\text{ if }T_j\le t,\text{ else }\infty,

    where A is "either" (some event has happened by t), "all" (all of them have), or any other event, such as
    ``first_is(j)`` (event j has happened by t, before all others), ``in_order(i, j)`` (both have, i before j)
    or ``before(i, j)`` (i has, and j has not by then). :math:`W(t)` is the probability of C > t given the
    observation. For one C shared by the coordinates, with Y the time at which the event is decided
    (the earliest time for "either" and ``first_is``, the last one otherwise, that of the terminal event where
    there is one) and :math:`\Delta` whether it was seen,

    .. math:: W(t)=\mathbb 1\{Y>t\}+\Delta\,\mathbb 1\{Y\le t\}\frac{G(t)}{G(Y-)};

    for one C per coordinate it is the product of these over the coordinates. On the ipcw scale it is divided
    by the probability of C > t. Proper if C is independent of T given the covariates and its distribution is
    right; strictly so for p(t) where P(C > t) > 0.

    Parameters
    ----------
    y : RightCensored, SemiCompetingRisks, structured array or frame
        The outcome of n subjects, k times each.
    forecast : Distribution
        Joint distribution of T. An ``Ensemble`` is scored as the empirical distribution that it is. For
        another distribution ``members`` draws are scored as a fair sample: :math:`p(1-p)/(m-1)`, by which
        sampling increases the expected square, is subtracted. "either" needs no draws.
    censoring : Distribution, optional
        Distribution of C given the covariates: one time shared by all coordinates, or ``Independent`` ones.
        It may be left out only where it is known.
    times : number, (q,) or (n, q) array
        Times t.
    event : "either", "all" or callable
        The joint event. A callable maps times (..., k), infinite where later than t, to booleans (...), as
        those of ``censcore.distributions.joint_events`` do.
    scale : {"localized", "ipcw"}
        Whether losses are those of what is seen, or divided by P(C > t).
    members : int
        Sample size for forecasts that are no ensemble.
    seed : int
        Seed of the draws. Those of a subject follow from the seed and from its times and events, or ``ids``.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon).
    ids : array, (n,), optional
        Numbers or labels that the draws of a subject follow from in place of its times and events.

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per subject and time; lower is better. A fair sample may give values slightly below zero.

    See Also
    --------
    brier_score : For one event time.
    energy_score : The whole joint distribution.
    censcore.compare : Means, errors and differences of these.

    References
    ----------
    .. [1] Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather
       Review 78, 1-3.
    .. [2] Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of
       prognostic classification schemes for survival data. Statistics in Medicine 18, 2529-2545.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions.joint_events import first_is
    >>> y = cs.RightCensored([[0.5, 2.0], [1.0, 1.0], [0.3, 0.2]], [[1, 0], [0, 0], [1, 1]])
    >>> F = cs.Ensemble([[[0.4, 1.5], [2.0, 0.8], [0.9, 3.0], [2.5, 2.6]]])
    >>> cs.joint_brier_score(y, F, cs.Uniform(0.0, 3.0), times=[0.8, 1.5]).round(3)   # either
    array([[0.22 , 0.038],
           [0.25 , 0.   ],
           [0.196, 0.033]])
    >>> cs.joint_brier_score(y, F, cs.Uniform(0.0, 3.0), times=0.8, event=first_is(1)).round(3)
    array([0.055, 0.062, 0.442])
    """
    check_scale(scale)
    members, seed = as_count(members, "members", least=2, most=10**6), as_seed(seed)
    rule = event_rule(event)
    check_componentwise(inputs.C)
    weight = joint_weights(inputs.y, inputs.C, times, event, scale)
    B = _happened(inputs, times, rule)
    if event == "either":
        p, noise = inputs.F.first().cdf_at(times), 0.0
    else:
        p, noise = _probabilities(inputs, times, rule, members, seed, ids)
    return weight * ((inputs.xp.astype(B, p.dtype) - p) ** 2 - noise)


def event_rule(event: str | JointEvent) -> JointEvent:
    """The event as a function of times, which are infinite where nothing has happened."""
    check_instance(event, "event")
    if callable(event):
        return partial(_happened_at, event)
    if not isinstance(event, str) or event not in NAMED:
        raise InvalidInputError(
            f"event: got {shown(event)}, expected 'either', 'all', or a function of times (..., k) such as "
            "censcore.distributions.joint_events.first_is(0)."
        )
    return NAMED[event]


def _happened_at(event: JointEvent, times: Array) -> Array:
    """The event at times (..., k); an error unless it is one boolean for each of (...)."""
    happened = event(times)
    shape, expected = getattr(happened, "shape", None), tuple(times.shape[:-1])
    if shape is None or tuple(shape) != expected or happened.dtype != namespace(times).bool:
        got = shown(happened) if shape is None else f"{happened.dtype} of shape {tuple(shape)}"
        raise InvalidInputError(
            f"event: got a function that returns {got} for times of shape {tuple(times.shape)}, expected "
            f"booleans of shape {expected}, as those of censcore.distributions.joint_events."
        )
    return happened


def decided_outcome(y: RightCensored | SemiCompetingRisks, event: str | JointEvent) -> RightCensored:
    """When a joint event is decided under one shared C, and whether that was seen: an outcome (n,)."""
    if event == "either" or getattr(event, "decided_by_first", False):
        return y.first()
    return as_followed(y.last())


def joint_weights(
    y: RightCensored, C: Distribution, t: Array, event: str | JointEvent, scale: str = "localized"
) -> Array:
    """W(t), (n, q): the product over censoring times of the weights of what is known of the event at t."""
    weight: Any = 1.0
    outcomes = [decided_outcome(y, event)] if C.k == 1 else [y.marginal(j) for j in range(C.k)]
    for outcome, C_j in zip(outcomes, (C.marginal(j) for j in range(C.k)), strict=True):
        decided, undecided = known_at(outcome, C_j, t, scale, remedy=LOCALIZED).weights()
        weight = weight * (decided + undecided)
    return weight


def _happened(inputs: ScoringInputs, t: Array, rule: JointEvent) -> Array:
    """B(t), (n, q)."""
    xp, y = inputs.xp, inputs.y
    time, event = y.time.reshape(inputs.n, 1, -1), y.event.reshape(inputs.n, 1, -1)
    return rule(xp.where(event & (time <= t[:, :, None]), time, np.inf))


def _probabilities(
    inputs: ScoringInputs, t: Array, rule: JointEvent, members: int, seed: int, ids: Any
) -> tuple[Array, Array]:
    """p(t), and by how much sampling increases its expected square, (n or 1, q) each."""
    xp, F = inputs.xp, inputs.F
    if isinstance(F, Ensemble):
        return _shares(F, t, rule), 0.0
    if len(F) == 1:
        members, keys = max(members, COMMON_DRAWS), keys_of([np.zeros(1)], seed)
    else:
        keys = subject_keys(inputs.y, ids, seed)
    p = []
    for start in range(0, len(F), _SAMPLED_ROWS):
        rows = slice(start, min(start + _SAMPLED_ROWS, len(F)))
        drawn = Ensemble(F.take(rows).sample(members, SubjectDraws(keys[rows])))
        p.append(_shares(drawn, t if t.shape[0] == 1 or len(F) == 1 else t[rows], rule))
    share = xp.concat(p)
    return share, share * (1 - share) / (members - 1)


def _shares(ensemble: Ensemble, t: Array, rule: JointEvent) -> Array:
    """The share of members with the event by t, (n, q)."""
    xp = namespace(ensemble.samples)
    z = ensemble.samples if ensemble.samples.ndim == 3 else ensemble.samples[:, :, None]
    never = xp.full_like(z, np.inf)
    columns = []
    for i in range(t.shape[1]):
        by = xp.astype(rule(xp.where(z <= t[:, i, None, None], z, never)), z.dtype)
        w = ensemble.weights
        columns.append(xp.mean(by, axis=1) if w is None else xp.sum(w * by, axis=1))
    return xp.stack(columns, axis=1)
