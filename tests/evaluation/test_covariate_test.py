"""The test of "covariates do not predict censoring": by definition, by level, by power, on awkward tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.estimators.censoring import covariate_test
from censcore.estimators.censoring.covariate_test import CensoringTest, covariates_predict
from censcore.estimators.covariate_columns import read_columns


def outcome(T: np.ndarray, C: np.ndarray) -> cs.RightCensored:
    return cs.RightCensored(np.minimum(T, C), T <= C)


def tied(n: int, rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored]:
    """Visits at whole numbers up to 9, where the study ends."""
    x = rng.normal(size=(n, 2))
    return x, outcome(
        np.ceil(6 * rng.exponential(1.0, n)), np.minimum(np.ceil(6 * rng.exponential(1.0, n)), 9)
    )


def test_scores_are_those_of_the_definition(rng):
    """L_i, one jump after the other, with ties, weights and an end of the study."""
    x, y = tied(60, rng)
    w = rng.integers(1, 4, 60).astype(float)
    t, seen = y.flip().time, y.flip().event
    features = covariate_test._Features(read_columns(x, w), rng)
    ours, predictable = covariate_test._scores(features, covariate_test._Residuals(t, seen, w), np.arange(60))

    Z = np.column_stack([part for _, part in features.chunks()])
    jumps = np.unique(t[seen])
    Y = np.array([w @ (t >= s) for s in jumps])
    d = np.array([w @ ((t == s) & seen) for s in jumps])
    information = d * (Y - d) / Y
    V = (np.cumsum(information) - information / 2) / information.sum()
    by_hand, variance = [], []
    for phi in (np.ones_like(V), 2 * V - 1):
        L, v = np.zeros_like(Z), np.zeros(Z.shape[1])
        for s, weight, at_risk, count in zip(jumps, phi, Y, d, strict=True):
            mean = (w * (t >= s)) @ Z / at_risk
            dM = ((t == s) & seen) - (t >= s) * count / at_risk
            L += weight * (Z - mean) * dM[:, None]
            spread = (w**2 * (t >= s)) @ (Z - mean) ** 2
            v += weight**2 * spread * count / at_risk * (1 - count / at_risk)
        by_hand.append(w[:, None] * L)
        variance.append(v)
    np.testing.assert_allclose(ours, np.hstack(by_hand), atol=1e-12)
    np.testing.assert_allclose(predictable, np.hstack(variance), atol=1e-12)


@pytest.mark.parametrize("what", ["twenty levels", "a rare group"])
def test_levels_with_few_censorings_are_not_called_dependent(what):
    """Event times differ between levels, so that some have hardly a censoring; C does not depend on them."""
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        if what == "twenty levels":
            level = rng.integers(0, 20, 500)
            X = pd.DataFrame({"level": [f"l{i}" for i in level]})
            T = rng.exponential(np.exp(np.linspace(-4, 1, 20))[level])
        else:
            rare = rng.random(500) < 0.05
            X, T = rare[:, None].astype(float), rng.exponential(np.where(rare, 0.15, 2.0))
        found = covariates_predict(X, outcome(T, rng.exponential(1.5, 500)), seed=seed)
        p.append(found.p_value)
    assert np.mean(np.array(p) <= 0.01) <= 0.05
    assert np.mean(np.array(p) <= 0.05) <= 0.15


def test_a_single_trend_is_near_the_score_test_of_lifelines(rng):
    """One binary column: no curves, and the robust score is close to the one of the model."""
    statistics = pytest.importorskip("lifelines.statistics")
    x = (rng.random(800) < 0.5).astype(float)
    y = outcome(rng.exponential(1.0, 800), rng.exponential(np.exp(0.15 * x)))
    flipped = y.flip()
    a, b = (flipped.take(np.nonzero(x == v)[0]) for v in (0, 1))
    theirs = statistics.logrank_test(a.time, b.time, a.event, b.event).test_statistic
    ours = covariates_predict(x, y).features["difference by column 0"]
    assert ours**2 == pytest.approx(theirs, rel=0.1)


def dependent(case: str, rng: np.random.Generator, n: int = 500) -> tuple[np.ndarray, cs.RightCensored]:
    x = rng.normal(size=(n, 3))
    eta = {
        "none": np.zeros(n),
        "trend": x[:, 0],
        "curve": (x[:, 0] ** 2 - 1) / np.sqrt(2),
        "interaction": x[:, 0] * x[:, 1],
    }
    if case == "crossing":
        C = np.where(x[:, 0] > 0, rng.weibull(2.5, n), rng.weibull(0.6, n))
    else:
        C = rng.exponential(np.exp(0.5 * eta[case]))
    return x, outcome(rng.exponential(np.exp(-0.7 * x[:, 0])), C)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("trend", "trend in column 0"),
        ("curve", "curve in column 0"),
        ("interaction", "interaction of column 0 and column 1"),
        ("crossing", "trend in column 0 that changes over time"),
    ],
)
def test_every_kind_of_departure_is_found_and_named(case, name, rng):
    found = [covariates_predict(*dependent(case, rng)) for _ in range(12)]
    assert sum(test.p_value < 0.05 for test in found) >= 11
    assert sum(test.kind == name for test in found) >= 10


def test_the_level_holds(rng):
    """100 data sets of 100 subjects: 5 rejections expected, standard deviation 2.2."""
    p = [covariates_predict(*dependent("none", rng, 100)).p_value for _ in range(100)]
    assert sum(value < 0.05 for value in p) <= 12
    assert 0.35 < np.mean(p) < 0.65


def clustered(rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored, np.ndarray]:
    groups = np.repeat(np.arange(50), 10)
    x = rng.normal(size=(50, 2))[groups]
    C = rng.exponential(np.exp(rng.normal(size=50)[groups]))
    return x, outcome(rng.exponential(1.0, 500), C), groups


def test_the_level_holds_with_fifty_clusters(rng):
    together, apart = 0, 0
    for _ in range(60):
        x, y, groups = clustered(rng)
        together += covariates_predict(x, y, groups=groups).p_value < 0.05
        apart += covariates_predict(x, y).p_value < 0.05
    assert together <= 8
    assert apart >= 20


def test_a_weight_of_two_is_two_subjects_of_one_group(rng):
    x, y = dependent("trend", rng, 120)
    weight = rng.integers(0, 4, 120).astype(float)
    rows = np.repeat(np.arange(120), weight.astype(int))
    one = covariates_predict(x, y, sample_weight=weight)
    two = covariates_predict(x[rows], y.take(rows), groups=rows)
    assert one.p_value == two.p_value
    np.testing.assert_allclose(list(one.features.values()), list(two.features.values()))
    scaled = covariates_predict(x, y, sample_weight=weight / weight.sum())
    assert scaled.p_value == one.p_value


def test_the_seed_decides(rng):
    x, y = dependent("none", rng)
    one, two, other = (covariates_predict(x, y, seed=seed).p_value for seed in (0, 0, 1))
    assert one == two
    assert one == pytest.approx(other, abs=0.1)


def test_subjects_at_the_end_of_the_study_carry_nothing(rng):
    """Everybody left at 1 is censored there: a column of who is left must not be blamed."""
    T, C = rng.exponential(1.0, 300), np.minimum(rng.exponential(5.0, 300), 1.0)
    y = outcome(T, C)
    x = rng.normal(size=300)
    early = y.censor_at(0.999999)
    assert covariates_predict(x, y).censored == int((C < 1)[C < T].sum())
    np.testing.assert_allclose(
        list(covariates_predict(x, y).features.values()), list(covariates_predict(x, early).features.values())
    )


def test_a_monotone_transformation_and_an_outlier_change_nothing(rng):
    x, y = dependent("curve", rng)
    wild = np.exp(5 * x)
    wild[np.argmax(x[:, 0]), 0] = 1e300
    assert covariates_predict(wild, y).features == covariates_predict(x, y).features


def test_constant_and_repeated_columns_do_no_harm(rng):
    x, y = dependent("trend", rng)
    wide = np.column_stack([x, x[:, 0], np.ones(len(x))])
    found = covariates_predict(wide, y)
    assert found.p_value < 0.01
    assert any("column 4" in note for note in found.notes)


@pytest.mark.filterwarnings("error")
def test_missing_values_are_told_and_tested(rng):
    """Values are missing where follow-up is short."""
    x, y = dependent("none", rng)
    whether = rng.random(500) < np.where(y.event, 0.05, 0.4)
    x[whether, 1] = np.nan
    found = covariates_predict(x, y)
    assert found.kind == "difference by column 1 is missing"
    assert found.notes[0].startswith(f"{whether.sum()} subjects have missing values (column 1)")
    all_gone = covariates_predict(np.column_stack([x, np.full(500, np.nan)]), y)
    assert all_gone.p_value < 0.01


def tables(n: int, rng: np.random.Generator) -> dict[str, object]:
    age, sex = rng.normal(60, 10, n), np.where(rng.random(n) < 0.5, "f", "m")
    town = np.array([f"town {k}" for k in rng.zipf(1.5, n)])
    when = np.datetime64("2020-01-01") + rng.integers(0, 900, n).astype("timedelta64[D]")
    columns = {"age": age, "sex": sex, "town": town, "sick": age > 70, "when": when}
    objects = np.column_stack([age.astype(object), sex, rng.integers(0, 2, n).astype(bool).astype(object)])
    objects[3, 1] = None
    pandas = pd.DataFrame(columns).assign(id=[f"subject {k}" for k in range(n)])
    pandas["sex"] = pandas["sex"].astype("category")
    pandas["dose"] = pd.array(rng.integers(0, 3, n), dtype="Int64")
    pandas.loc[5, "dose"] = pd.NA
    pandas["flag"] = pd.array(rng.random(n) < 0.5, dtype="boolean")
    pandas.loc[7, "flag"] = pd.NA
    return {"pandas": pandas, "objects": objects, "list": age.tolist(), "one column": age, "plain": columns}


def test_every_kind_of_table_is_read(rng):
    polars = pytest.importorskip("polars")
    all_kinds = tables(300, rng)
    all_kinds["polars"] = polars.DataFrame(all_kinds.pop("plain")).with_columns(
        polars.when(polars.col("age") > 75).then(None).otherwise(polars.col("age")).alias("age")
    )
    y = outcome(rng.exponential(1.0, 300), rng.exponential(1.0, 300))
    for name, X in all_kinds.items():
        found = covariates_predict(X, y)
        assert isinstance(found, CensoringTest), name
        assert 0 < found.p_value <= 1, name
    notes = covariates_predict(all_kinds["pandas"], y).notes
    assert any("rare levels of town" in note for note in notes)
    assert any("nothing to test in id" in note for note in notes)


def test_more_columns_than_subjects(rng):
    x = rng.normal(size=(60, 100))
    found = covariates_predict(x, outcome(rng.exponential(1.0, 60), rng.exponential(1.0, 60)))
    assert "800 of 4950 products of two columns were drawn at random" in found.notes
    assert found.p_value > 0.001


def test_few_groups_are_told(rng):
    x, y = dependent("none", rng)
    assert covariates_predict(x, y, groups=np.arange(500) % 5) == (
        "there are 5 independent groups; at least 8 are needed"
    )
