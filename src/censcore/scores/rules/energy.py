"""Energy score of joint event times."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from censcore._arrays import Array, ArrayLike
from censcore._validation import as_count, as_number, as_seed, check_flag, check_option
from censcore.distributions import Ensemble
from censcore.scores.decorator import score
from censcore.scores.inputs.compatible_times import RandomNumbers, check_componentwise, subject_keys
from censcore.scores.inputs.scoring_inputs import ScoringInputs
from censcore.scores.kernels.energy_ensembles import (
    Method,
    score_of_causes,
    score_of_ensemble,
    score_of_samples,
)
from censcore.scores.registry import GNEITING, SCORES, register
from censcore.scores.rules.crps import crps
from censcore.scores.rules.over_causes import InputsOfCauses


def _of_causes(
    inputs: InputsOfCauses, *, members: int = 1024, ids: Any = None, mask: None = None, **options: Any
) -> Array:
    """The score of the times (min(T_1, C), ..., min(T_m, C)), of which all but one are C."""
    method = _method(inputs.causes.any_cause(), members, ids, **options)
    return score_of_causes(inputs, method, members)


@score(
    title="energy score",
    formula=r"E\|\psi_C(Z)-y\|-\tfrac12E\|\psi_C(Z)-\psi_C(Z')\|,\quad\psi_c(z)=\min(z,c)",
    reference=GNEITING,
    joint=True,
    causes=_of_causes,
    univariate=False,
    unit="the unit of time",
    range="0 or more",
    proper="Strictly proper for the joint distribution at times t with P(C > t) > 0.",
    pitfalls=(
        "The coordinate with the longest times dominates. Scale the times if all should count.",
        "It is less sensitive to wrong dependence than to wrong margins. Add a joint Brier score.",
        "A small ensemble is scored as the empirical distribution that it is, and loses by its size. "
        "For a sample from a model take the fair version.",
    ),
)
def energy_score(
    inputs: ScoringInputs,
    *,
    beta: float = 1.0,
    pairs: str = "auto",
    fair: bool = False,
    draws: int = 32,
    seed: int = 0,
    mask: ArrayLike | None = None,
    members: int = 1024,
    ids: ArrayLike | None = None,
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
        first, is seen as :math:`\min(\infty,C)=C`, and the outcome moves with the values of C. For
        interval-censored data the detection time is scored.
    forecast : Distribution
        Joint distribution of T; usually ``Ensemble(samples)`` with samples (n, m, k). For other distributions
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
    method = _method(inputs.y, members, ids, beta=beta, pairs=pairs, fair=fair, draws=draws, seed=seed)
    check_componentwise(inputs.C)
    xp = inputs.xp
    mask = None if mask is None else xp.broadcast_to(mask, (inputs.n, inputs.y.k))
    if inputs.y.k == 1 and beta == 1 and (pairs != "lagged" or not isinstance(inputs.F, Ensemble)):
        loss = _of_one_time(inputs, fair)
    elif isinstance(inputs.F, Ensemble):
        loss = score_of_ensemble(inputs, mask, method)
    else:
        loss = score_of_samples(inputs, mask, method, members)
    return loss if mask is None else xp.where(xp.any(mask, axis=1), loss, 0.0)


def _method(
    y: Any,
    members: int,
    ids: Any,
    *,
    beta: float = 1.0,
    pairs: str = "auto",
    fair: bool = False,
    draws: int = 32,
    seed: int = 0,
) -> Method:
    """The options, checked, and the random numbers of the subjects of an outcome."""
    as_number(beta, "beta", above=0, below=2)
    check_option(pairs, "pairs", ("auto", "all", "lagged"))
    as_count(draws, "draws", most=10**6)
    as_count(members, "members", least=2, most=10**6)
    as_seed(seed)
    check_flag(fair, "fair")
    random = RandomNumbers(int(seed), int(draws), subject_keys(y, ids, seed))
    return Method(float(beta), pairs, bool(fair), random)


def _of_one_time(inputs: ScoringInputs, fair: bool) -> Array:
    """The CRPS, exact where ``draws`` would be random."""
    if inputs.y.time.ndim == 2:
        inputs = ScoringInputs(inputs.y.marginal(0), inputs.F.marginal(0), inputs.C.marginal(0))
    return crps(inputs.y, inputs.F, inputs.C, fair=fair)


register(
    replace(
        SCORES["energy_score"],
        name="energy_score:fair",
        title="energy score, fair",
        formula=r"E\|\psi_C(Z)-y\|-\tfrac12E_{Z\ne Z'}\|\psi_C(Z)-\psi_C(Z')\|,\quad\psi_c(z)=\min(z,c)",
        reference="Ferro, C. A. T. (2014). Fair scores for ensemble forecasts. Quarterly Journal of the "
        "Royal Meteorological Society 140, 1917-1923.",
        options=(("fair", True),),
        range="may be slightly negative for a small ensemble",
        proper="Strictly proper for the joint distribution from which the members are drawn.",
        pitfalls=("Members must be independent draws. For selected members take the other version.",),
    )
)
