"""Concordance and AUC with delayed entry and at landmarks: definitions, derivatives, uncensored values."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.censoring_distributions import N, Thinned, distributions

import censcore as cs
from censcore.evaluation import concordance, dynamic_auc
from censcore.evaluation.measures.auc import cases_and_controls
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import Followed, Jumps, pair_statistic

KINDS = list(distributions(0))


def sample(seed: int, tied: bool) -> tuple[cs.CompetingRisks, np.ndarray]:
    """Three causes, and entries before the times, a fifth of them at zero."""
    rng = np.random.default_rng(seed)
    T, C = rng.exponential(1.0, N), rng.exponential(1.5, N)
    risk, cause = rng.normal(size=N) - T, rng.integers(1, 4, N)
    if tied:
        T, C, risk = np.ceil(4 * T) / 4, np.ceil(4 * C) / 4, np.round(risk)
    time = np.minimum(T, C)
    entry = np.where(rng.random(N) < 0.2, 0.0, rng.uniform(0, 1, N) * time)
    if tied:
        entry = np.floor(4 * entry) / 4
        entry = np.where(entry >= time, 0.0, entry)
    return cs.CompetingRisks(time, np.where(T <= C, cause, 0), entry=entry), risk


def of(risks: cs.CompetingRisks, cause: int) -> cs.RightCensored:
    return risks.cause(cause) if cause else risks.any_cause()


def entered(risks, censoring) -> np.ndarray:
    """P(C > a), one for subjects seen from the start."""
    a = np.asarray(risks.entry)
    return np.where(a > 0, np.broadcast_to(censoring.sf(a), a.shape), 1.0)


def by_pairs(risks, cause, risk, censoring, weight, horizon) -> float:
    """The definition, pair by pair: j has entered before the event of i, and survives it or never has it."""
    t, d, a, n = risks.time, risks.causes, np.asarray(risks.entry), len(risks)
    G, G_a = np.broadcast_to(censoring.sf_left(t[None, :]), (n, n)), entered(risks, censoring)
    is_event = d == cause if cause else d > 0
    won = pairs = 0.0
    for i in np.nonzero(is_event & (t < horizon))[0]:
        for j in range(n):
            later = t[j] > t[i] or (t[j] == t[i] and not is_event[j])
            never = cause > 0 and d[j] not in (0, cause) and t[j] < t[i]
            if i != j and ((later and a[j] < t[i]) or never):
                share = weight[i] * weight[j] * G_a[i] * G_a[j] / (G[i, i] * (G[j, j] if never else G[j, i]))
                pairs += share
                won += share * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


def auc_by_pairs(risks, cause, risk, censoring, weight, t) -> float:
    """Cases and controls that enter before t, each with its chance to be seen from the entry on."""
    time, d, a, n = risks.time, risks.causes, np.asarray(risks.entry), len(risks)
    G_y, G_t = (np.broadcast_to(G, (n,)) for G in (censoring.sf_left(time), censoring.sf(t)))
    G_a, is_event = entered(risks, censoring), d == cause if cause else d > 0
    won = pairs = 0.0
    for i in np.nonzero(is_event & (time <= t))[0]:
        for j in np.nonzero((a < t) | (a <= 0))[0]:
            never = cause > 0 and d[j] not in (0, cause) and time[j] <= t
            if time[j] > t or never:
                share = weight[i] * weight[j] * G_a[i] * G_a[j] / (G_y[i] * (G_y[j] if never else G_t[j]))
                pairs += share
                won += share * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("cause", [0, 1])
def test_both_are_their_definition(kind, tied, cause):
    risks, risk = sample(3, tied)
    y, C, weight = of(risks, cause), distributions(3)[kind], np.random.default_rng(0).integers(0, 4, N) * 1.0
    for horizon in (np.inf, 1.25):
        found = concordance(y, risk, C, sample_weight=weight, horizon=horizon)
        assert found == pytest.approx(by_pairs(risks, cause, risk, C, weight, horizon), rel=1e-11)
    found = dynamic_auc(y, risk, C, [0.5, 1.1], sample_weight=weight)
    expected = [auc_by_pairs(risks, cause, risk, C, weight, t) for t in (0.5, 1.1)]
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "none"])
@pytest.mark.parametrize("measure", ["concordance", "auc"])
@pytest.mark.parametrize("cause", [0, 1])
def test_derivatives_are_difference_quotients(kind, measure, cause):
    """By weights of subjects, and by the hazard of C of some: before its entry it moves no weight."""
    risks, risk = sample(5, tied=True)
    y, everyone, weight = of(risks, cause), np.arange(N), np.random.default_rng(2).dirichlet(np.ones(N))

    def pairs_under(C):
        if measure == "auc":
            return cases_and_controls(Followed(y, C, everyone), risk, 1.0)
        return comparable_pairs(Followed(y, C, everyone), risk, horizon=1.3)

    C = distributions(5)[kind]
    found = pair_statistic(pairs_under(C), weight)
    left_out = [pair_statistic(pairs_under(C), np.where(everyone == i, 0.0, weight)) for i in everyone]
    expected = [(found.value - other.value) * np.sqrt(other.total / found.total) for other in left_out]
    np.testing.assert_allclose(weight * found.deviations, expected, atol=1e-12)

    some, u, step = everyone % 3 == 0, np.array([0.0, 0.25, 0.4, 0.5, 0.99, 1.0, 1.3]), 1e-6
    (A,) = found.derivatives(some[:, None].astype(float), Jumps(u))
    for time, expected in zip(u, A, strict=True):
        moved = Thinned(C, np.where(some, 1 + step, 1.0), time)
        quotient = (pair_statistic(pairs_under(moved), weight).value - found.value) / np.log1p(step)
        assert quotient == pytest.approx(expected, abs=2e-6)


def test_no_pair_is_left_where_everybody_else_enters_too_late():
    """The sums of pairs that are too early are taken off those of all: nothing but rounding is left."""
    y = cs.RightCensored([1.0, 2.3, 3.7], [1, 0, 0], entry=[0.0, 1.0, 1.1])
    pairs = comparable_pairs(Followed(y, cs.PointMass(np.inf), np.arange(3)), np.array([0.3, 0.1, 0.7]))
    assert np.isnan(pair_statistic(pairs, np.array([0.1, 0.2, 0.7])).value)


# ---- against uncensored data ---------------------------------------------------------------------------


def seen(n: int, seed: int, cause: bool = False):
    """Subjects with T and C beyond their entries: x, their times, causes, C and entries."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=4 * n)
    T, A = 3 * np.exp(-0.5 * x) * rng.weibull(1.5, 4 * n), rng.uniform(0, 2, 4 * n)
    C, kind = rng.uniform(0, 6, 4 * n), np.where(cause & (rng.random(4 * n) < 0.4), 2, 1)
    rows = np.nonzero((T > A) & (C > A))[0][:n]
    return x[rows], T[rows], kind[rows], C[rows], A[rows]


@pytest.mark.parametrize("cause", [False, True])
def test_censoring_does_not_move_either(cause):
    """Over data sets: the estimate less that of the same subjects without censoring has mean zero."""
    differences, C = [], cs.Uniform(0.0, 6.0)
    for seed in range(12):
        x, T, kind, c, a = seen(1500, seed, cause)
        full = cs.CompetingRisks(T, kind, entry=a).cause(1)
        y = cs.CompetingRisks(np.minimum(T, c), np.where(c >= T, kind, 0), entry=a).cause(1)
        never = cs.PointMass(np.inf)
        differences.append(
            [
                concordance(y, x, C, horizon=4.0) - concordance(full, x, horizon=4.0),
                dynamic_auc(y, x, C, [3.0])[0] - dynamic_auc(full, x, never, [3.0])[0],
                concordance(y, x, horizon=4.0) - concordance(full, x, horizon=4.0),
            ]
        )
    mean, error = np.mean(differences, axis=0), np.std(differences, axis=0, ddof=1) / np.sqrt(12)
    assert (np.abs(mean[:2]) < 4 * error[:2]).all()
    assert (error[:2] < 0.004).all()


def test_at_a_landmark_they_are_those_of_the_subjects_at_risk():
    """A common entry cancels in the weights, and the forecast ranks given survival to it."""
    x, T, _, c, _ = seen(400, 1)
    y, F = cs.RightCensored(np.minimum(T, c), c >= T), cs.Weibull(1.5, 3 * np.exp(-0.5 * x))
    models = {"F": F, "flat": cs.Weibull(1.5, 3.0)}
    options = {"scores": "brier_score", "horizon": 4.0, "reference": None}
    found = cs.compare_landmarks(models, y, cs.Uniform(0.0, 6.0), landmarks=[1.0], window=1.5, **options)[0]
    here = np.nonzero(y.time > 1.0)[0]
    plain = cs.RightCensored(y.time[here] - 1.0, y.event[here])
    left, shifted = F.take(here).given_survival(1.0), cs.Uniform(0.0, 5.0)
    expected = {
        "concordance:harrell": concordance(plain, x[here], horizon=3.0),
        "concordance:uno": concordance(plain, x[here], shifted, horizon=3.0),
        "auc": dynamic_auc(plain, left.cdf(2.5), shifted, [1.5])[0],
    }
    table = found.frame().query("not proper").set_index(["score", "model"])["mean"]
    for name, value in expected.items():
        assert table[name, "F"] == pytest.approx(value, rel=1e-10)
        assert table[name, "flat"] == 0.5


def test_concordance_of_a_comparison_does_not_rank_by_the_entries():
    """A forecast that is the same for all says nothing, also given survival to different entries."""
    x, T, _, c, a = seen(300, 2)
    y = cs.RightCensored(np.minimum(T, c), c >= T, entry=a)
    F = cs.Weibull(1.5, 3 * np.exp(-0.5 * x))
    found = cs.compare(
        {"F": F, "flat": cs.Weibull(1.5, 3.0)}, y, cs.Uniform(0.0, 6.0), horizon=4.0, times=[3.0]
    )
    table = found.frame().query("not proper").set_index(["score", "model"])["mean"]
    assert table["concordance:uno", "flat"] == 0.5
    assert table["concordance:uno", "F"] == pytest.approx(
        concordance(y, x, cs.Uniform(0.0, 6.0), horizon=4.0)
    )
    risk = F.given_survival(y.entry).cdf(3.0)
    assert table["auc", "F"] == pytest.approx(dynamic_auc(y, risk, cs.Uniform(0.0, 6.0), [3.0])[0])
