from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.censoring_distributions import N, Thinned, distributions

import censcore as cs
from censcore.distributions import Grouped
from censcore.evaluation import concordance, dynamic_auc
from censcore.evaluation.measures.auc import cases_and_controls
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import Followed, Jumps, pair_statistic
from censcore.evaluation.measures.ranked_sums import RankedSums
from censcore.exceptions import InvalidInputError, PositivityError


def by_pairs(y, risk, censoring, weight, horizon=np.inf) -> float:
    """The definition: all pairs, one by one."""
    won = pairs = 0.0
    G = np.broadcast_to(censoring.sf_left(y.time[None, :]), (len(y), len(y)))
    for i in range(len(y)):
        for j in range(len(y)):
            later = y.time[j] > y.time[i] or (y.time[j] == y.time[i] and not y.event[j])
            if i != j and y.event[i] and y.time[i] < horizon and later:
                share = weight[i] * weight[j] / (G[i, i] * G[j, i])
                pairs += share
                won += share * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


def auc_by_pairs(y, risk, censoring, weight, t) -> float:
    won = pairs = 0.0
    G_y, G_t = (np.broadcast_to(G, (len(y),)) for G in (censoring.sf_left(y.time), censoring.sf(t)))
    for i in np.nonzero(y.event & (y.time <= t))[0]:
        for j in np.nonzero(y.time > t)[0]:
            share = weight[i] * weight[j] / (G_y[i] * G_t[j])
            pairs += share
            won += share * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


def sample(seed: int, tied: bool) -> tuple[cs.RightCensored, np.ndarray]:
    rng = np.random.default_rng(seed)
    T, C, noise = rng.exponential(1.0, N), rng.exponential(1.5, N), rng.normal(size=N)
    risk = noise - T
    if tied:
        T, C, risk = np.ceil(4 * T) / 4, np.ceil(4 * C) / 4, np.round(risk)
    return cs.RightCensored(np.minimum(T, C), T <= C), risk


@pytest.mark.parametrize("kind", distributions(0))
@pytest.mark.parametrize("tied", [False, True])
def test_both_are_their_definition(kind, tied):
    y, risk = sample(3, tied)
    C, weight = distributions(3)[kind], np.random.default_rng(0).integers(0, 4, N).astype(float)
    for horizon in (np.inf, 1.25):
        expected = by_pairs(y, risk, C, weight, horizon)
        assert concordance(y, risk, C, sample_weight=weight, horizon=horizon) == pytest.approx(
            expected, rel=1e-12
        )
    expected = [auc_by_pairs(y, risk, C, weight, t) for t in (0.5, 1.1)]
    np.testing.assert_allclose(
        dynamic_auc(y, risk, C, [0.5, 1.1], sample_weight=weight), expected, rtol=1e-12
    )


@pytest.mark.parametrize("kind", distributions(0))
def test_counts_are_replicated_subjects(kind):
    y, risk = sample(4, tied=True)
    C, count = distributions(4)[kind], np.random.default_rng(1).integers(0, 4, N)
    again = np.repeat(np.arange(N), count)
    copies = C if len(C) == 1 else C.take(again)
    weighted = concordance(y, risk, C, sample_weight=count)
    assert weighted == pytest.approx(concordance(y.take(again), risk[again], copies), rel=1e-13)
    times = [0.5, 1.0]
    np.testing.assert_allclose(
        dynamic_auc(y, risk, C, times, sample_weight=count),
        dynamic_auc(y.take(again), risk[again], copies, times),
        rtol=1e-13,
    )


def test_large_samples_in_blocks_equal_groups():
    rng = np.random.default_rng(2)
    n, group = 3000, rng.integers(0, 4, 3000)
    rate = np.array([0.1, 0.3, 0.5, 0.9])
    T, C = np.ceil(50 * rng.exponential(1, n)) / 50, np.ceil(50 * rng.exponential(1 / rate[group])) / 50
    y, risk = cs.RightCensored(np.minimum(T, C), T <= C), np.round(rng.normal(size=n) - T, 1)
    groups = Grouped([cs.Exponential(float(r)) for r in rate], group)
    subject = cs.Exponential(rate[group])
    assert concordance(y, risk, groups) == pytest.approx(concordance(y, risk, subject), rel=1e-11)
    load = rng.uniform(size=(n, 2))
    found = []
    for C in (groups, subject):
        pairs = comparable_pairs(Followed(y, C, np.arange(n)), risk, horizon=2.0)
        statistic = pair_statistic(pairs, np.full(n, 1 / n))
        found.append((statistic.deviations, *statistic.derivatives(load, Jumps(np.linspace(0, 3, 9)))))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)


def test_agreement_with_scikit_survival_on_untied_data():
    metrics, util = pytest.importorskip("sksurv.metrics"), pytest.importorskip("sksurv.util")
    y, risk = sample(1, tied=False)
    theirs = util.Surv.from_arrays(y.event, y.time)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    assert concordance(y, risk) == pytest.approx(metrics.concordance_index_censored(y.event, y.time, risk)[0])
    uno = metrics.concordance_index_ipcw(theirs, theirs, risk, tau=1.0)[0]
    assert concordance(y, risk, C, horizon=1.0) == pytest.approx(uno, rel=1e-10)
    assert concordance(y, risk, C.take(np.zeros(1, int)), horizon=1.0) == pytest.approx(uno, rel=1e-10)
    times = np.array([0.3, 0.6, 0.9])
    auc = metrics.cumulative_dynamic_auc(theirs, theirs, risk, times)[0]
    np.testing.assert_allclose(dynamic_auc(y, risk, C, times), auc, rtol=1e-10)


def dependent_censoring(n: int, tied: bool):
    """T and C depend on x, and so does the risk; on a grid both are discrete, with atoms that coincide."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=n)
    T, rate = rng.exponential(np.exp(-0.7 * x)), 0.5 * np.exp(x)
    C = rng.exponential(1 / rate)
    censoring: cs.Distribution = cs.Exponential(rate)
    if tied:
        T, C = np.ceil(3 * T) / 3, np.ceil(3 * C) / 3
        grid = np.arange(1, 31) / 3
        censoring = cs.Step(grid, sf=np.exp(-rate[:, None] * grid))
    return x, T, C, censoring


@pytest.mark.parametrize("tied", [False, True])
def test_a_censoring_distribution_that_depends_on_covariates_gives_the_uncensored_value(tied):
    x, T, C, censoring = dependent_censoring(4000, tied)
    y, full = cs.RightCensored(np.minimum(T, C), T <= C), cs.RightCensored(T, np.ones(len(T)))
    none, h, t = cs.PointMass(np.inf), 1.2, [1.0]
    truth = concordance(full, x, horizon=h), dynamic_auc(full, x, none, t)[0]
    right = concordance(y, x, censoring, horizon=h), dynamic_auc(y, x, censoring, t)[0]
    assert np.abs(np.subtract(right, truth)).max() < 0.01
    # G of the earlier subject does not stand for that of the later one
    wrong = of_earlier_subjects_alone(y, x, censoring, h, t[0])
    assert np.abs(np.subtract(wrong, truth)).min() > 0.01


def of_earlier_subjects_alone(y, risk, censoring, horizon, t) -> list[float]:
    G, everyone = censoring.sf_left(y.time), np.arange(len(y))
    counted = y.event & (y.time < horizon)
    uncensored = Followed(y, cs.PointMass(np.inf), everyone)
    harrell = comparable_pairs(uncensored, risk, horizon=horizon)
    auc = cases_and_controls(uncensored, risk, t)
    values = []
    for pairs, weight in ((harrell, counted / np.where(counted, G, 1.0) ** 2), (auc, auc.earlier / G)):
        won, met = pairs.over_later(np.ones((len(y), 1)))
        values.append(float(weight @ won[:, 0] / (weight @ met[:, 0])))
    return values


def test_weights_are_unbiased_where_events_and_censoring_tie():
    """Over draws of C the weighted pairs, and those won, have the mean of the uncensored ones."""
    x, T, _, censoring = dependent_censoring(40, tied=True)
    rng, everyone = np.random.default_rng(6), np.arange(40)

    def pairs_and_won(C):
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        G = censoring if np.isfinite(C[0]) else cs.PointMass(np.inf)
        pairs = comparable_pairs(Followed(y, G, everyone), x, horizon=1.1)
        won, met = pairs.over_later(np.ones((40, 1)))
        return pairs.earlier @ met[:, 0], pairs.earlier @ won[:, 0]

    draws = censoring.sample(400, seed=rng)
    found = np.array([pairs_and_won(C) for C in draws.T])
    z = (found.mean(axis=0) - pairs_and_won(np.full(40, np.inf))) / (found.std(axis=0) / 20)
    assert np.abs(z).max() < 3


@pytest.mark.parametrize("kind", [k for k in distributions(0) if k != "none"])
@pytest.mark.parametrize("measure", ["concordance", "auc"])
def test_derivatives_are_difference_quotients(kind, measure):
    """By weights of subjects, and by the hazard of C of some subjects."""
    y, risk = sample(5, tied=True)
    weight = np.random.default_rng(2).dirichlet(np.ones(N))
    everyone = np.arange(N)

    def pairs_under(C):
        if measure == "auc":
            return cases_and_controls(Followed(y, C, everyone), risk, 1.0)
        return comparable_pairs(Followed(y, C, everyone), risk, horizon=1.3)

    C = distributions(5)[kind]
    pairs = pairs_under(C)
    found = pair_statistic(pairs, weight)
    left_out = [pair_statistic(pairs, np.where(everyone == i, 0.0, weight)) for i in everyone]
    expected = [(found.value - other.value) * np.sqrt(other.total / found.total) for other in left_out]
    np.testing.assert_allclose(weight * found.deviations, expected, atol=1e-12)

    some, u, step = everyone % 3 == 0, np.array([0.0, 0.4, 0.5, 0.99, 1.0, 1.3]), 1e-6
    (A,) = found.derivatives(some[:, None].astype(float), Jumps(u))
    for time, expected in zip(u, A, strict=True):
        moved = Thinned(C, np.where(some, 1 + step, 1.0), time)
        quotient = (pair_statistic(pairs_under(moved), weight).value - found.value) / np.log1p(step)
        assert quotient == pytest.approx(expected, abs=2e-6)


def test_one_risk_for_all_is_a_half():
    y, _ = sample(0, tied=True)
    assert concordance(y, np.zeros(N)) == 0.5
    np.testing.assert_allclose(dynamic_auc(y, np.zeros(N), cs.Exponential(0.4), [0.5]), [0.5])


def test_nothing_to_compare_is_an_error():
    y = cs.RightCensored([1.0, 2.0], [0, 0])
    with pytest.raises(InvalidInputError, match="no pair of subjects can be compared"):
        concordance(y, [0.1, 0.2])
    with pytest.raises(InvalidInputError, match="no pair of subjects can be compared"):
        concordance(y, [0.1, 0.2], cs.Exponential([1.0, 2.0]))
    with pytest.raises(InvalidInputError, match=r"Up to t = 1.5 no pair"):
        dynamic_auc(y, [0.1, 0.2], cs.Exponential(1.0), [1.5])


def test_one_event_has_no_standard_error():
    y = cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 0])
    pairs = comparable_pairs(Followed(y, cs.PointMass(np.inf), np.arange(3)), np.array([0.5, 0.1, 0.9]))
    found = pair_statistic(pairs, np.full(3, 1 / 3))
    assert found.value == pytest.approx(0.5)
    assert np.isnan(found.deviations[0])


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"risk": np.zeros(3)}, InvalidInputError, r"got shape \(3,\), expected \(80,\)"),
        ({"risk": np.full(N, np.nan)}, InvalidInputError, "got NaN in 80"),
        ({"horizon": np.nan}, InvalidInputError, "horizon must be a number above 0; got nan"),
        ({"horizon": -1.0}, InvalidInputError, "horizon must be a number above 0; got -1.0"),
        ({"censoring": cs.Uniform(0.0, 0.3)}, PositivityError, "below 0.3"),
        ({"censoring": cs.Uniform(0.0, np.linspace(1, 9, N))}, PositivityError, "below 1"),
        ({"sample_weight": -np.ones(N)}, InvalidInputError, "weight"),
    ],
)
def test_concordance_says_what_is_wrong(change, error, match):
    y, risk = sample(0, tied=False)
    with pytest.raises(error, match=match):
        concordance(y, **({"risk": risk, "censoring": cs.Exponential(0.4)} | change))


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        (
            {"risk": np.zeros((N, 3))},
            InvalidInputError,
            r"got shape \(80, 3\), expected \(80,\) or \(80, 1\)",
        ),
        ({"times": [np.nan]}, InvalidInputError, "got NaN in entry 0, expected numbers"),
        ({"times": [-1.0]}, InvalidInputError, "finite, non-negative"),
        ({"horizon": np.nan}, InvalidInputError, "horizon must be a number above 0; got nan"),
        ({"horizon": 0.4}, InvalidInputError, "below the horizon"),
        ({"censoring": cs.Uniform(0.0, 0.5)}, PositivityError, "below 0.5"),
        ({"censoring": cs.PointMass(np.linspace(0.2, 3, N))}, PositivityError, "below 0.2"),
    ],
)
def test_auc_says_what_is_wrong(change, error, match):
    y, risk = sample(0, tied=False)
    given = {"risk": risk, "censoring": cs.Exponential(0.4), "times": [0.5]} | change
    with pytest.raises(error, match=match):
        dynamic_auc(y, **given)


@pytest.mark.parametrize("estimator", [cs.KaplanMeier(), cs.CoxRegression()], ids=["Kaplan-Meier", "Cox"])
@pytest.mark.parametrize("tied", [False, True])
def test_errors_in_a_comparison_are_those_of_the_jackknife(estimator, tied):
    """Leaving out a subject takes its pairs and its part of the estimated distribution of C."""
    rng, n = np.random.default_rng(8), 120
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(-0.7 * x)), rng.exponential(1.5 * np.exp(-0.4 * x))
    risk = x + 0.5 * rng.normal(size=n)
    if tied:
        T, C, risk = np.ceil(5 * T) / 5, np.ceil(5 * C) / 5, np.round(risk, 1)
    y, X, rate = cs.RightCensored(np.minimum(T, C), T <= C), x[:, None], np.exp(0.7 * risk)

    def found(rows):
        frame = cs.compare(
            {"model": cs.Exponential(rate[rows])}, y[rows], cs.Censoring(estimator), X=X[rows],
            scores="brier_score", times=[0.3, 0.6], horizon=0.8, reference=None,
        ).frame()  # fmt: skip
        return frame[~frame.proper]

    whole, everyone = found(np.arange(n)), np.arange(n)
    assert list(whole.score) == ["concordance:harrell", "concordance:uno", "auc", "auc"]
    left_out = np.array([found(np.delete(everyone, i))["mean"] for i in everyone])
    jackknife = np.sqrt((n - 1) / n * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    np.testing.assert_allclose(whole.standard_error, jackknife, rtol=0.03)


def test_sums_over_pairs_are_those_of_a_matrix():
    rng = np.random.default_rng(9)
    for n in (1, 2, 7, 8, 9, 33, 150):
        for digits in (0, 8):  # with and without ties
            risk, starts, places = np.round(rng.normal(size=(3, n)), digits)
            starts[rng.random(n) < 0.3], places[rng.random(n) < 0.2] = np.inf, -np.inf
            met = (starts[:, None] <= places) & np.isfinite(starts)[:, None] & np.isfinite(places)
            won = met * ((risk[:, None] > risk) + 0.5 * (risk[:, None] == risk))
            values, sums = rng.normal(size=(n, 2)), RankedSums(risk, starts, places)
            for found, matrix in ((sums.over_later, (won, met)), (sums.over_earlier, (won.T, met.T))):
                for part, expected in zip(found(values), matrix, strict=True):
                    np.testing.assert_allclose(part, expected @ values, atol=1e-13)
