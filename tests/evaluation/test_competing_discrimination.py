"""Concordance and AUC of one of several causes, where another event means never."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.censoring_distributions import N, Thinned, distributions

import censcore as cs
from censcore.evaluation import concordance, concordance_estimate, dynamic_auc, dynamic_auc_estimate
from censcore.evaluation.measures.auc import cases_and_controls
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import Followed, Jumps, pair_statistic
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError


def sample(seed: int, tied: bool) -> tuple[cs.CompetingRisks, np.ndarray]:
    rng = np.random.default_rng(seed)
    T, C, noise = rng.exponential(1.0, N), rng.exponential(1.5, N), rng.normal(size=N)
    risk, cause = noise - T, rng.integers(1, 4, N)
    if tied:
        T, C, risk = np.ceil(4 * T) / 4, np.ceil(4 * C) / 4, np.round(risk)
    return cs.CompetingRisks(np.minimum(T, C), np.where(T <= C, cause, 0)), risk


def by_pairs(risks, cause, risk, censoring, weight, horizon=np.inf) -> float:
    """Definition of Wolbers and others: pair by pair, with the probability that it is seen."""
    t, d, n = risks.time, risks.causes, len(risks)
    G = np.broadcast_to(censoring.sf_left(t[None, :]), (n, n))
    won = pairs = 0.0
    for i in range(n):
        for j in range(n):
            if i == j or d[i] != cause or not t[i] < horizon:
                continue
            followed = t[j] > t[i] or (t[j] == t[i] and d[j] == 0)
            never = d[j] not in (0, cause) and t[j] <= t[i]
            if followed or never:
                share = weight[i] * weight[j] / (G[i, i] * (G[j, i] if followed else G[j, j]))
                pairs += share
                won += share * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


def auc_by_pairs(risks, cause, risk, censoring, weight, t, controls) -> float:
    """Both definitions of Blanche and others."""
    time, d, n = risks.time, risks.causes, len(risks)
    G_y, G_t = (np.broadcast_to(G, (n,)) for G in (censoring.sf_left(time), censoring.sf(t)))
    won = pairs = 0.0
    for i in np.nonzero((d == cause) & (time <= t))[0]:
        for j in range(n):
            never = controls == "cause-free" and d[j] not in (0, cause) and time[j] <= t
            if time[j] > t or never:
                share = weight[i] * weight[j] / (G_y[i] * (G_y[j] if never else G_t[j]))
                pairs += share
                won += share * ((risk[j] < risk[i]) + 0.5 * (risk[j] == risk[i]))
    return won / pairs


@pytest.mark.parametrize("kind", distributions(0))
@pytest.mark.parametrize("tied", [False, True])
def test_both_are_their_definition(kind, tied):
    risks, risk = sample(3, tied)
    C, weight = distributions(3)[kind], np.random.default_rng(0).integers(0, 4, N).astype(float)
    for cause, horizon in ((1, np.inf), (1, 1.25), (3, 1.25)):
        found = concordance(risks.cause(cause), risk, C, sample_weight=weight, horizon=horizon)
        assert found == pytest.approx(by_pairs(risks, cause, risk, C, weight, horizon), rel=1e-12)
    for controls in ("cause-free", "event-free"):
        expected = [auc_by_pairs(risks, 2, risk, C, weight, t, controls) for t in (0.5, 1.1)]
        found = dynamic_auc(risks.cause(2), risk, C, [0.5, 1.1], sample_weight=weight, controls=controls)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_without_weights_it_is_harrells_index_of_one_cause():
    risks, risk = sample(3, tied=True)
    expected = by_pairs(risks, 1, risk, cs.PointMass(np.inf), np.ones(N))
    assert concordance(risks.cause(1), risk) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", ["shared with atoms", "groups with atoms", "per subject"])
def test_counts_are_replicated_subjects(kind):
    risks, risk = sample(4, tied=True)
    y, C, count = risks.cause(1), distributions(4)[kind], np.random.default_rng(1).integers(0, 4, N)
    again = np.repeat(np.arange(N), count)
    copies = C if len(C) == 1 else C.take(again)
    weighted = concordance(y, risk, C, sample_weight=count)
    assert weighted == pytest.approx(concordance(y.take(again), risk[again], copies), rel=1e-12)
    one = dynamic_auc(y, risk, C, [0.5, 1.0], sample_weight=count)
    np.testing.assert_allclose(one, dynamic_auc(y.take(again), risk[again], copies, [0.5, 1.0]), rtol=1e-12)


@pytest.mark.parametrize("kind", ["shared with atoms", "groups with atoms", "per subject with atoms"])
@pytest.mark.parametrize("measure", ["concordance", "auc"])
def test_derivatives_are_difference_quotients(kind, measure):
    """By weights of subjects, and by the hazard of C of some subjects."""
    risks, risk = sample(5, tied=True)
    y, weight, everyone = risks.cause(1), np.random.default_rng(2).dirichlet(np.ones(N)), np.arange(N)

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

    loads, u, step = 1.0 * (everyone % 3 == 0), np.array([0.0, 0.25, 0.4, 0.5, 0.99, 1.0, 1.3]), 1e-6
    both = found.derivatives(np.column_stack([loads, np.ones(N)]), Jumps(u))
    for A, load in zip(both, (loads, np.ones(N)), strict=True):
        for time, expected in zip(u, A, strict=True):
            moved = Thinned(C, (1 + step) ** load, time)
            quotient = (pair_statistic(pairs_under(moved), weight).value - found.value) / np.log1p(step)
            assert quotient == pytest.approx(expected, abs=2e-6)


def drawn(n: int, seed: int):
    """Two causes that covariates move in opposite directions; C depends on a covariate."""
    rng = np.random.default_rng(seed)
    x, z = rng.normal(size=n), rng.integers(0, 2, n)
    both = np.stack(
        [rng.exponential(np.exp(-0.8 * x)), rng.exponential(np.exp(0.5 * x) * np.where(z, 0.7, 2))]
    )
    T, cause = both.min(axis=0), both.argmin(axis=0) + 1
    rate = np.where(z == 1, 0.9, 0.2)
    return x, z, T, cause, rng.exponential(1 / rate), cs.Exponential(rate)


def test_the_uncensored_values_are_recovered_under_censoring_that_depends_on_covariates():
    x, z, T, cause, c, C = drawn(3000, 0)
    risk, h, t = x + 1.5 * z, 1.0, 0.7
    # the definition itself: T_1 is infinite after an event of cause 2
    T_1 = np.where(cause == 1, T, np.inf)
    i, j = np.nonzero((h > T_1)[:, None] & (T_1[:, None] < T_1[None, :]))
    truth = [np.mean(risk[i] > risk[j]), np.mean(risk[t >= T_1][:, None] > risk[t < T_1][None, :])]
    full = cs.CompetingRisks(T, cause).cause(1)
    uncensored = [concordance(full, risk, horizon=h), dynamic_auc(full, risk, cs.PointMass(np.inf), [t])[0]]
    np.testing.assert_allclose(uncensored, truth, atol=1e-12)
    seen = cs.CompetingRisks(np.minimum(T, c), np.where(c >= T, cause, 0)).cause(1)
    weighted = [concordance(seen, risk, C, horizon=h), dynamic_auc(seen, risk, C, [t])[0]]
    assert np.abs(np.subtract(weighted, truth)).max() < 0.008
    # subjects with the other event are not censored
    censored = cs.RightCensored(seen.time, seen.event)
    wrong = [concordance(censored, risk, C, horizon=h), dynamic_auc(censored, risk, C, [t])[0]]
    assert np.abs(np.subtract(wrong, truth)).min() > 0.01


@pytest.mark.parametrize("measure", ["concordance", "auc"])
def test_weights_are_unbiased_where_events_and_censoring_tie(measure):
    """Over draws of C the weighted pairs, and those won, have the mean of the uncensored ones."""
    x, z, T, cause, _, _ = drawn(40, 5)
    T, risk, everyone = np.ceil(4 * T) / 4, np.round(2 * x), np.arange(40)
    often, seldom = [[0.6, 0.4, 0.3, 0.2]], [[0.9, 0.8, 0.7, 0.6]]
    censoring = cs.Step([0.25, 0.5, 1.0, 2.0], sf=np.where(z[:, None] == 1, often, seldom))

    def pairs_and_won(C):
        y = cs.CompetingRisks(np.minimum(T, C), np.where(C >= T, cause, 0)).cause(1)
        G = censoring if np.isfinite(C).any() else cs.PointMass(np.inf)
        if measure == "auc":
            pairs = cases_and_controls(Followed(y, G, everyone), risk, 1.0)
        else:
            pairs = comparable_pairs(Followed(y, G, everyone), risk, horizon=1.6)
        won, met = pairs.over_later(np.ones((40, 1)))
        return pairs.earlier @ met[:, 0], pairs.earlier @ won[:, 0]

    draws = censoring.sample(400, seed=6)
    found = np.array([pairs_and_won(C) for C in draws.T])
    error = (found.mean(axis=0) - pairs_and_won(np.full(40, np.inf))) / (found.std(axis=0) / 20)
    assert np.abs(error).max() < 3


def test_agreement_with_hazardous():
    metrics = pytest.importorskip("hazardous.metrics")
    x, _, T, cause, c, _ = drawn(300, 1)
    time, d = np.minimum(T, c), np.where(c >= T, cause, 0)
    frame = pd.DataFrame({"event": d, "duration": time})
    y, tau = cs.CompetingRisks(time, d).cause(1), 1.2
    incidence = np.repeat((1 / (1 + np.exp(-x)))[:, None], 2, axis=1)
    options = {"time_grid": np.array([0.0, 10.0]), "taus": [tau]}
    theirs = metrics.concordance_index_incidence(frame, incidence, ipcw_estimator=None, **options)
    assert concordance(y, x, horizon=tau) == pytest.approx(theirs[0], rel=1e-10)
    theirs = metrics.concordance_index_incidence(frame, incidence, y_train=frame, **options)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, cs.CompetingRisks(time, d)).predict_distribution()
    assert concordance(y, x, C, horizon=tau) == pytest.approx(theirs[0], rel=1e-6)


def test_one_cause_alone_is_one_event_time():
    risks, risk = sample(2, tied=True)
    risks = cs.CompetingRisks(risks.time, 1 * (risks.causes > 0))
    C, plain = cs.Exponential(0.4), risks.any_cause()
    assert concordance(risks.cause(1), risk, C) == concordance(plain, risk, C)
    np.testing.assert_array_equal(
        dynamic_auc(risks.cause(1), risk, C, [1.0]), dynamic_auc(plain, risk, C, [1.0])
    )


def test_what_cannot_be_ranked_says_so():
    risks, risk = sample(1, tied=False)
    with pytest.raises(UnsupportedOutcomeError, match=r"y\.cause\(j\)"):
        concordance(risks, risk)
    with pytest.raises(InvalidInputError, match="controls must be 'cause-free' or 'event-free'"):
        dynamic_auc(risks.cause(1), risk, cs.Exponential(0.4), [1.0], controls="free")
    alone = cs.CompetingRisks([2.0, 1.0], [1, 2]).cause(1)
    assert concordance(alone, [1.0, 0.0]) == 1.0  # a subject who never has the event is later
    assert dynamic_auc(alone, [1.0, 0.0], cs.PointMass(np.inf), [2.5])[0] == 1.0
    with pytest.raises(InvalidInputError, match="no pair of subjects can be compared"):
        dynamic_auc(alone, [1.0, 0.0], cs.PointMass(np.inf), [2.5], controls="event-free")


# ---- in a comparison -------------------------------------------------------------------------------

KM = cs.Censoring(cs.KaplanMeier())
STRATA = cs.Censoring(cs.KaplanMeier(stratify=1))


def observed(n: int, seed: int):
    x, z, T, cause, c, _ = drawn(n, seed)
    X = np.column_stack([x, z])
    return X, cs.CompetingRisks(np.minimum(T, c), np.where(c >= T, cause, 0), names=["relapse", "death"])


GRID = np.linspace(0.0, 1.2, 13)[1:]


def forecasts(X: np.ndarray) -> dict[str, cs.CumulativeIncidence]:
    """The true cumulative incidences of constant hazards, and blunt ones of relapse."""
    x, death = X[:, 0], np.exp(-0.5 * X[:, 0]) / np.where(X[:, 1], 0.7, 2)
    found = {}
    for name, relapse in {"truth": np.exp(0.8 * x), "blunt": np.exp(0.4 * np.sin(3 * x))}.items():
        total = relapse + death
        happened = 1 - np.exp(-total[:, None] * GRID)
        curves = np.stack([(rate / total)[:, None] * happened for rate in (relapse, death)], axis=1)
        found[name] = cs.CumulativeIncidence(GRID, curves, names=["relapse", "death"], interpolation="linear")
    return found


def compare(X, y, censoring=STRATA, **options):
    given = {"scores": "brier_score", "times": [0.4, 0.8], "horizon": 1.0, "reference": None, "X": X}
    return cs.compare(forecasts(X), y, censoring, **(given | options))


def described(comparison) -> pd.DataFrame:
    frame = comparison.frame()
    return frame[~frame.proper].set_index(["score", "outcome", "at", "model"]).sort_index()


def test_a_comparison_ranks_every_cause_and_any():
    X, y = observed(200, 2)
    C = cs.Exponential(np.where(X[:, 1] == 1, 0.9, 0.2))
    groups, weight = np.arange(200) // 4, np.random.default_rng(0).uniform(0.5, 2.0, 200)
    found = compare(X, y, C, groups=groups, sample_weight=weight)
    table = described(found)
    assert set(table.index.get_level_values("outcome")) == {"relapse", "death", "any cause"}
    F = forecasts(X)["truth"]
    for j, name in enumerate(("relapse", "death"), start=1):
        expected_time = F.cause(j).integrated_sf(0.0, 1.0)
        c = concordance_estimate(
            y.cause(j), -expected_time, C, horizon=1.0, groups=groups, sample_weight=weight
        )
        a = dynamic_auc_estimate(
            y.cause(j), F.cause(j).cdf([[0.4, 0.8]]), C, [0.4, 0.8], groups=groups, sample_weight=weight
        )
        rows = table.xs((name, "truth"), level=("outcome", "model"))
        for column, of in (("mean", "value"), ("standard_error", "standard_error")):
            assert rows.loc["concordance:uno", column].item() == pytest.approx(getattr(c, of)[0], rel=1e-9)
            np.testing.assert_allclose(rows.loc["auc", column], getattr(a, of), rtol=1e-9)
    assert "concordance" in repr(found)
    assert "<html" in found.to_html().lower()
    higher = found.differences().query("better == 'higher' and outcome == 'relapse'")
    assert (higher.difference > 0).all()


@pytest.mark.parametrize("censoring", [STRATA, cs.Censoring(cs.CoxRegression())], ids=["strata", "Cox"])
def test_influence_of_training_subjects_is_what_leaving_them_out_does(censoring):
    (X, y), (X_train, y_train) = observed(120, 3), observed(200, 4)
    found = compare(X, y, censoring, train=(X_train, y_train)).pair_measures
    keys = [
        k
        for k, measure in enumerate(found.measures)
        if measure.outcome != "any cause" and "harrell" not in measure.name
    ]
    influence = np.column_stack([found.values[0, "truth", k].influence[:, 0] for k in keys])
    xi, some, left_out = influence[-200:], np.arange(0, 200, 40), []
    for r in some:
        others = np.delete(np.arange(200), r)
        again = compare(X, y, censoring, train=(X_train[others], y_train.take(others))).pair_measures
        left_out.append([again.values[0, "truth", k].value[0] for k in keys])
    effect = np.array([found.values[0, "truth", k].value[0] for k in keys]) - np.array(left_out)
    for k in range(len(keys)):
        largest = np.abs(effect[:, k]).max()
        np.testing.assert_allclose(xi[some, k], effect[:, k], rtol=0.15, atol=0.1 * largest)


def test_pairs_of_a_cross_validation_are_those_within_folds():
    X, y = observed(150, 6)
    folds = [(np.arange(75, 150), np.arange(75)), (np.arange(75), np.arange(75, 150))]
    found = cs.cross_validate(
        {"cox": cs.CauseSpecific(cs.CoxRegression(alpha=1.0))},
        X,
        y,
        cv=folds,
        scores="brier_score",
        times=[0.4],
        horizon=0.8,
        reference=None,
        censoring=KM,
    )
    values = []
    for train, test in folds:
        F = (
            cs.CauseSpecific(cs.CoxRegression(alpha=1.0))
            .fit(X[train], y[train])
            .predict_distribution(X[test])
        )
        C = KM.fit(X[train], y[train]).predict_distribution(X[test])
        values.append(concordance(y[test].cause(2), -F.cause(2).integrated_sf(0.0, 0.8), C, horizon=0.8))
    row = described(found).loc["concordance:uno", "death"]
    assert row["mean"].item() == pytest.approx(np.mean(values), rel=1e-9)
    assert 0 < row["standard_error"].item() < 0.2
    alone = found.of("death").frame().set_index("score")
    assert alone.loc["concordance:uno", "mean"] == pytest.approx(np.mean(values), rel=1e-9)


@pytest.mark.slow
def test_standard_errors_are_the_spread_over_data_sets():
    values, errors = [], []
    for seed in range(200):
        table = described(compare(*observed(150, 1000 + seed), horizon=0.8, times=[0.4]))
        values.append(table["mean"].to_numpy())
        errors.append(table["standard_error"].to_numpy())
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0, ddof=1)
    assert 0.95 < ratio.mean() < 1.07
    assert ((ratio > 0.85) & (ratio < 1.2)).all()
