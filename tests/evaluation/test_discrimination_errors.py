"""Standard errors of concordance and AUC in a comparison."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.evaluation import concordance_estimate, dynamic_auc_estimate
from censcore.evaluation.measures.auc import cases_and_controls
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import Followed, pair_statistic

KM = cs.Censoring(cs.KaplanMeier())
STRATA = cs.Censoring(cs.KaplanMeier(stratify=1))
COX = cs.Censoring(cs.CoxRegression())
MEASURES = ["concordance:harrell", "concordance:uno", "auc"]


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored]:
    x = np.column_stack([rng.normal(size=n), rng.integers(0, 2, n)])
    T, C = rng.weibull(1.3, n) * np.exp(0.6 * x[:, 0]), rng.exponential(np.where(x[:, 1] == 1, 1.0, 3.0), n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def forecasts(x: np.ndarray) -> dict[str, cs.Distribution]:
    blunt = 0.3 * x[:, 0] + 0.5 * np.sin(3 * x[:, 0])
    return {"sharp": cs.Weibull(1.3, np.exp(0.6 * x[:, 0])), "blunt": cs.Weibull(1.3, np.exp(blunt))}


def compare(x, y, censoring, **options):
    given = {
        "scores": "brier_score",
        "times": [0.5, 1.0],
        "horizon": 1.2,
        "reference": None,
        "X": x,
    } | options
    return cs.compare(forecasts(x), y, censoring, **given)


def described(comparison) -> np.ndarray:
    frame = comparison.frame()
    return frame[~frame.proper]["mean"].to_numpy()


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return draw(200, rng), draw(150, rng)


def test_tables_have_errors_intervals_and_paired_differences(data):
    (x, y), train = data
    found = compare(x, y, KM, train=train, by={"half": x[:, 1]})
    frame = found.frame()
    frame = frame[~frame.proper]
    assert set(frame.score) == set(MEASURES)
    assert len(frame) == 3 * 4 * 2  # subsets, measures, models
    assert (frame.standard_error > 0).all()
    assert (
        (frame.low > 0) & (frame.low < frame["mean"]) & (frame["mean"] < frame.high) & (frame.high < 1)
    ).all()
    pairs = found.differences()
    assert set(pairs[pairs.better == "lower"].score) == {"brier_score"}
    higher = pairs[pairs.better == "higher"]
    assert set(higher.score) == set(MEASURES)
    assert not higher.proper.any()
    value = {f"{row.group}/{row.score}/{row.at}/{row.model}": row.mean for row in frame.itertuples()}
    for row in higher.itertuples():
        a, b = (value[f"{row.group}/{row.score}/{row.at}/{model}"] for model in (row.model, row.versus))
        assert row.difference == pytest.approx(a - b, abs=1e-14)
    # the sharp forecast is the better one, so that model - versus is positive
    assert (higher[(higher.group == "all")].difference > 0).all()
    assert len(found.differences(discrimination=False)) == (pairs.better == "lower").sum()


@pytest.mark.parametrize("censoring", [KM, STRATA, COX], ids=["pooled", "strata", "Cox"])
def test_counts_are_replicated_subjects(data, censoring):
    (x, y), _ = data
    count = np.random.default_rng(1).integers(0, 3, len(y))
    again = np.repeat(np.arange(len(y)), count)
    weighted = compare(x, y, censoring, sample_weight=count)
    np.testing.assert_allclose(
        described(weighted), described(compare(x[again], y.take(again), censoring)), rtol=1e-7
    )


@pytest.mark.parametrize("censoring", [KM, STRATA, COX], ids=["pooled", "strata", "Cox"])
def test_influence_of_training_subjects_is_what_leaving_them_out_does(data, censoring):
    (x, y), (x_train, y_train) = data
    found = compare(x, y, censoring, train=(x_train, y_train))
    before = found.frame().query("~proper and model == 'sharp'")
    keys = range(len(found.pair_measures.measures))
    influence = np.column_stack([found.pair_measures.values[0, "sharp", k].influence[:, 0] for k in keys])
    n_train = len(y_train)
    xi = influence[-n_train:]
    some = np.arange(0, n_train, 12)
    left_out = []
    for r in some:
        others = np.delete(np.arange(n_train), r)
        again = compare(x, y, censoring, train=(x_train[others], y_train.take(others))).frame()
        left_out.append(again.query("~proper and model == 'sharp'")["mean"].to_numpy())
    effect = before["mean"].to_numpy() - np.array(left_out)
    assert (effect[:, 0] == 0).all()  # Harrell's index has no weights
    assert (xi[:, 0] == 0).all()
    for k in keys[1:]:
        np.testing.assert_allclose(
            xi[some, k], effect[:, k], rtol=0.15, atol=0.05 * np.abs(effect[:, k]).max()
        )


def outcomes(kind: str, n: int = 120):
    """An outcome, risks and a censoring distribution, of one curve, of groups, or of one for each subject."""
    rng = np.random.default_rng(7)
    x, y = draw(n, rng)
    risk = np.round(x[:, 0], 1)
    if kind == "entry":
        y = cs.RightCensored(y.time, y.event, entry=rng.uniform(0.0, 0.5, n) * y.time)
    if kind == "causes":
        y = cs.CompetingRisks(y.time, y.event * rng.integers(1, 3, n)).cause(1)
    return y, risk, cs.Weibull(1.5, rng.uniform(3.0, 5.0, n)) if kind == "each" else cs.Exponential(0.3)


KINDS = ["one curve", "entry", "causes", "each"]


@pytest.mark.parametrize("kind", KINDS)
def test_copies_with_one_label_have_the_errors_of_weights(kind):
    y, risk, C = outcomes(kind)
    count = np.random.default_rng(2).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), count)
    of_rows = C if len(C) == 1 else C.take(rows)
    weighted, repeated = {"sample_weight": count}, {"groups": rows}
    for more in ({}, {"horizon": 1.0}):
        a = concordance_estimate(y, risk, C, **weighted, **more)
        b = concordance_estimate(y.take(rows), risk[rows], of_rows, **repeated, **more)
        np.testing.assert_allclose((b.value, b.standard_error), (a.value, a.standard_error), rtol=1e-10)
    a = dynamic_auc_estimate(y, risk, C, [0.4, 0.8], **weighted)
    b = dynamic_auc_estimate(y.take(rows), risk[rows], of_rows, [0.4, 0.8], **repeated)
    np.testing.assert_allclose((b.value, b.standard_error), (a.value, a.standard_error), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_factor_of_a_group_leaves_all_its_pairs_out(kind):
    y, risk, C = outcomes(kind)
    rng = np.random.default_rng(3)
    weight, groups = rng.dirichlet(np.ones(len(y))), rng.integers(0, 9, len(y))
    followed = Followed(y, C, np.arange(len(y)))
    for pairs in (comparable_pairs(followed, risk), cases_and_controls(followed, risk, 0.6)):
        found = pair_statistic(pairs, weight, groups)

        def total(w, pairs=pairs):
            return float((w * pairs.earlier) @ pairs.over_later(w[:, None])[1][:, 0])

        assert found.total == pytest.approx(total(weight), rel=1e-12)
        others = np.array([total(np.where(groups == g, 0.0, weight)) for g in range(9)])[groups]
        expected = (found.excess + found.excess_later) / np.sqrt(found.total * others)
        np.testing.assert_allclose(found.deviations, expected, rtol=1e-10)


def test_copies_have_the_errors_of_weights_in_comparisons(data):
    """Also within folds, which keep copies together."""
    (x, y), _ = data
    count = np.random.default_rng(1).integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), count)
    fold = np.arange(len(y)) % 4
    options = {"times": [0.5], "horizon": 1.0, "scores": "brier_score", "reference": None}
    tables = []
    for some, more in ((np.arange(len(y)), {"sample_weight": count}), (rows, {"groups": rows})):
        X, outcome = x[some], y.take(some)
        cv = [(np.flatnonzero(fold[some] != k), np.flatnonzero(fold[some] == k)) for k in range(4)]
        models = {"weibull": cs.WeibullRegression(), "km": cs.KaplanMeier(stratify=1)}
        options["censoring"] = cs.Exponential(0.3)
        found = cs.cross_validate(models, X, outcome, cv=cv, **options, **more).frame()
        one = cs.compare(forecasts(X), outcome, **options, **more).frame()
        tables.append(pd.concat([found, one])[["mean", "standard_error"]].to_numpy())
    np.testing.assert_allclose(tables[1], tables[0], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("train", ["apart", "the scored subjects", "out of fold"])
def test_standard_errors_are_the_spread_over_data_sets(train):
    rng = np.random.default_rng(4)
    values, errors = [], []
    for _ in range(300):
        x, y = draw(150, rng)
        censoring = cs.Censoring(cs.KaplanMeier(stratify=1), cv=5) if train == "out of fold" else STRATA
        found = compare(
            x, y, censoring, train=draw(150, rng) if train == "apart" else None, horizon=0.8, times=[0.4, 0.6]
        )
        frame, pairs = found.frame(), found.differences("none")
        frame, pairs = frame[~frame.proper], pairs[~pairs.proper]
        values.append(np.concatenate([frame["mean"], pairs.difference]))
        errors.append(np.concatenate([frame.standard_error, pairs.standard_error]))
    ratio = np.sqrt(np.mean(np.square(errors), axis=0)) / np.std(values, axis=0, ddof=1)
    # over 300 data sets a ratio has a standard deviation of 0.04
    assert 0.95 < ratio.mean() < 1.05
    assert ((ratio > 0.85) & (ratio < 1.2)).all()


@pytest.mark.parametrize("groups", [None, np.arange(200) // 4])
def test_risk_scores_have_the_errors_of_forecasts(data, groups):
    """With a censoring distribution that is given, a comparison finds the same."""
    (x, y), _ = data
    C, weight = cs.Exponential(0.5), np.random.default_rng(2).integers(0, 3, len(y))
    options = {"sample_weight": weight, "groups": groups}
    found = compare(x, y, C, **options).frame().query("model == 'blunt'")
    F = forecasts(x)["blunt"]
    risk, given = -F.integrated_sf(0.0, 1.2), {"horizon": 1.2} | options
    estimates = {
        "concordance:harrell": concordance_estimate(y, risk, **given),
        "concordance:uno": concordance_estimate(y, risk, C, **given),
        "auc": dynamic_auc_estimate(
            y, np.column_stack([F.cdf(t) for t in (0.5, 1.0)]), C, [0.5, 1.0], **given
        ),
    }
    for name, estimate in estimates.items():
        lines = found[found.score == name]
        np.testing.assert_allclose(estimate.value, lines["mean"], rtol=1e-12)
        np.testing.assert_allclose(estimate.standard_error, lines["standard_error"], rtol=1e-12)


def test_what_is_not_identified_is_not_available(data):
    (x, y), _ = data
    known = cs.RightCensored(y.time, y.event, censoring_time=np.where(y.event, y.time + 1.0, y.time))
    frame = compare(x, known, None, horizon=1.2).frame()
    uno = frame[frame.score == "concordance:uno"]
    assert uno.note.str.startswith("not available: The censoring distribution gives").all()
    assert uno["mean"].isna().all()
    assert frame[frame.score == "concordance:harrell"]["mean"].notna().all()


@pytest.mark.parametrize(
    ("event", "note"), [(np.ones(12), "do not show its error"), (np.eye(12)[0], "cannot tell: 1 effective")]
)
def test_a_perfect_ranking_or_a_single_case_has_no_error(event, note):
    time = np.arange(1.0, 13.0)
    perfect = cs.Exponential(1 / time)
    comparison = cs.compare(
        {"perfect": perfect, "constant": cs.Exponential(0.3)},
        cs.RightCensored(time, event), cs.Exponential(0.1), scores="crps", times=[6.5], horizon=11.5,
    )  # fmt: skip
    frame, pairs = comparison.frame(), comparison.differences()
    one = frame[(frame.model == "perfect") & ~frame.proper]
    assert one["mean"].to_numpy() == pytest.approx(1.0, rel=1e-12)
    assert one[["standard_error", "low", "high"]].isna().all(axis=None)
    assert one.note.str.contains(note).all()
    assert pairs[~pairs.proper][["p_value", "p_adjusted", "low"]].isna().all(axis=None)


def test_other_estimators_are_refitted(data):
    (x, y), train = data
    found = compare(x, y, cs.Censoring(cs.WeibullRegression(), refits=8), train=train)
    plain = compare(x, y, found.resolved_censoring.distribution)
    error, smaller = (c.frame().query("score == 'auc'")["standard_error"].to_numpy() for c in (found, plain))
    np.testing.assert_allclose(described(found), described(plain))
    assert (error > smaller).all()
    assert (error < 1.5 * smaller).all()
