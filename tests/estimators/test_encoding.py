"""Ordinary tables: categories, aliased columns, levels that separate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import ExtrapolationWarning, InvalidInputError

REGRESSIONS = [
    cs.CoxRegression(),
    cs.WeibullRegression(),
    cs.LogNormalRegression(),
    cs.LogLogisticRegression(),
    cs.PiecewiseExponentialRegression(breaks=2),
]


def table(n=200):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n),
            "stage": rng.choice(["I", "II", "III"], n),
            "sex": pd.Categorical(rng.choice(["m", "f"], n), categories=["m", "f", "?"]),
            "flag": rng.random(n) < 0.5,
        }
    )
    T, C = rng.exponential(np.exp(X["stage"] == "III")), rng.uniform(0, 3, n)
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


def by_hand(X):
    levels = {
        "stage = II": X["stage"] == "II",
        "stage = III": X["stage"] == "III",
        "sex = f": X["sex"] == "f",
    }
    return pd.DataFrame({"age": X["age"], **levels, "flag": X["flag"]}).astype(float)


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=lambda e: type(e).__name__)
def test_categories_are_indicators_of_their_levels_but_the_first(estimator):
    X, y = table()
    expected = estimator.fit(by_hand(X), y).predict_distribution(by_hand(X)).sf(1.0)
    names, coef = estimator.columns_, estimator.coef_
    found = estimator.fit(X, y)
    assert found.columns_ == names == ["age", "stage = II", "stage = III", "sex = f", "flag"]
    np.testing.assert_allclose(found.coef_, coef, rtol=1e-8)
    np.testing.assert_allclose(found.predict_distribution(X).sf(1.0), expected, rtol=1e-8)
    assert found.n_features_in_ == 4
    assert found.notes_ == ["Reference level of stage: I.", "Reference level of sex: m."]
    assert "Reference level of stage: I." in str(found.summary())
    few = X.iloc[[5]]  # one level of each is enough for a prediction
    np.testing.assert_allclose(found.predict_distribution(few).sf(1.0), expected[5], rtol=1e-8)


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=lambda e: type(e).__name__)
def test_aliased_columns_are_left_out_and_named(estimator):
    X, y = table()
    expected = estimator.fit(X, y).predict_distribution(X).sf(1.0)
    more = X.assign(months=12 * X["age"] + 1, one=1.0, late=np.where(X["stage"] == "I", 0.0, 1.0))
    found = estimator.fit(more, y)
    assert found.notes_[-1] == (
        "Left out, constant or linear combinations of columns before: months, one, late."
    )
    np.testing.assert_allclose(found.predict_distribution(more).sf(1.0), expected, rtol=1e-7)
    assert found.summary().names[:5] == ["age", "stage = II", "stage = III", "sex = f", "flag"]
    array = estimator.fit(np.column_stack([X["age"], 2 * X["age"], X["flag"]]), y)
    assert array.columns_ == ["column 0", "column 2"]


def test_a_penalty_keeps_all_columns():
    X, y = table()
    found = cs.CoxRegression(alpha=0.1).fit(X.assign(months=12 * X["age"] + 1), y)
    assert len(found.coef_) == 6


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("level", ["I", "II"])
def test_levels_without_events_are_held_and_columns_of_numbers_an_error(estimator, level):
    X, y = table()
    none = cs.RightCensored(y.time, y.event & (X["stage"] != level).to_numpy())
    found = estimator.fit(X, none)
    assert "are held by a penalty of 0.1: stage = II" in found.notes_[-1]
    first, second = X.iloc[[0]].assign(stage=level), X.iloc[[0]].assign(stage="III")
    assert found.predict_distribution(first).sf(1.0) > found.predict_distribution(second).sf(1.0)
    assert np.isfinite(found.standard_errors_).all()
    numbers = pd.DataFrame({"age": X["age"], "none": (X["stage"] == level) * 1.0})
    with pytest.raises(InvalidInputError, match=r"grows without bound in \['none'\]"):
        estimator.fit(numbers, none)


def test_new_levels_are_named():
    X, y = table()
    model = cs.CoxRegression().fit(X, y)
    with pytest.warns(ExtrapolationWarning, match=r"got the level 'IV' of 'stage' \(1 subject"):
        new = model.predict_distribution(X.iloc[:3].assign(stage=["I", "IV", "II"]))
    known = model.predict_distribution(X.iloc[:3].assign(stage=["I", "I", "II"]))
    np.testing.assert_array_equal(new.sf(1.0), known.sf(1.0))
    with pytest.raises(
        InvalidInputError, match="expected a data frame, since fit had the categories of stage"
    ):
        model.predict_distribution(np.zeros((2, 4)))


def with_gaps(X):
    """Every ninth age and every eleventh stage missing."""
    return X.assign(
        age=X["age"].where(X.index % 9 > 0),
        stage=X["stage"].where(X.index % 11 > 0),
        sex=X["sex"].astype(str),
    )


def completed_by_hand(X):
    gone = X["age"].isna()
    levels = {f"stage = {level}": X["stage"] == level for level in ("II", "III")}
    levels |= {"stage = missing": X["stage"].isna(), "sex = m": X["sex"] == "m"}
    known = {"age": X["age"].fillna(X["age"].median()), **levels, "flag": X["flag"], "age is missing": gone}
    return pd.DataFrame(known).astype(float)


@pytest.mark.parametrize("estimator", REGRESSIONS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("censoring", [False, True])
def test_missing_values_are_medians_and_levels_with_indicators(estimator, censoring):
    X, y = table()
    X = with_gaps(X)
    model = cs.Censoring(estimator) if censoring else estimator
    expected = model.fit(completed_by_hand(X), y).predict_distribution(completed_by_hand(X)).sf(1.0)
    found = model.fit(X, y)
    np.testing.assert_allclose(found.predict_distribution(X).sf(1.0), expected, rtol=1e-8)
    inner = found.estimators_[0] if censoring else found
    assert inner.columns_ == list(completed_by_hand(X))
    assert "Missing numbers became the median, with an indicator: age." in inner.notes_
    alone = found.predict_distribution(X.iloc[[0]])
    np.testing.assert_allclose(alone.sf(1.0), expected[0], rtol=1e-8)


def test_missing_values_of_one_cause_and_of_arrays():
    X, y = table()
    rng = np.random.default_rng(1)
    risks = cs.CompetingRisks(y.time, np.where(y.event, rng.integers(1, 3, len(y)), 0))
    hand, gaps = completed_by_hand(with_gaps(X)), with_gaps(X)
    a, b = cs.FineGray().fit(gaps, risks), cs.FineGray().fit(hand, risks)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8)
    array = gaps[["age", "flag"]].to_numpy(dtype=float)
    assert cs.CoxRegression().fit(array, y).columns_ == ["column 0", "column 1", "column 0 is missing"]


def test_gaps_that_fit_did_not_have_are_medians_with_a_warning():
    X, y = table()
    model = cs.CoxRegression().fit(X, y)
    with pytest.warns(ExtrapolationWarning, match="missing values of age, of which fit had none"):
        found = model.predict_distribution(X.iloc[[0]].assign(age=np.nan))
    median = model.predict_distribution(X.iloc[[0]].assign(age=X["age"].median()))
    np.testing.assert_array_equal(found.sf(1.0), median.sf(1.0))


def test_cross_validation_takes_missing_values():
    X, y = table(300)
    C = cs.Censoring(cs.CoxRegression())
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()}, with_gaps(X), y, censoring=C, cv=3, scores="crps", discrimination=False
    )
    assert np.isfinite(found.frame()["mean"]).all()


def test_other_frames_have_the_same_numbers():
    polars = pytest.importorskip("polars")
    X, y = table()
    other = polars.DataFrame({name: X[name].tolist() for name in X})  # the levels of text, in their order
    text = X.assign(sex=X["sex"].astype(str))
    a, b = cs.CoxRegression().fit(text, y), cs.CoxRegression().fit(other, y)
    assert a.columns_ == b.columns_ == ["age", "stage = II", "stage = III", "sex = m", "flag"]
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-12)


def test_censoring_and_cross_validation_take_such_tables():
    X, y = table(300)
    C = cs.Censoring(cs.CoxRegression())
    options = {"times": [1.0], "scores": "brier_score:ipcw", "discrimination": False}
    found = cs.compare({"a": cs.Exponential(1.0)}, y, C, X=X, reference=None, **options)
    hand = cs.compare({"a": cs.Exponential(1.0)}, y, C, X=by_hand(X), reference=None, **options)
    for column in ("mean", "standard_error"):
        np.testing.assert_allclose(found.frame()[column], hand.frame()[column], rtol=1e-8)
    validated = cs.cross_validate({"cox": cs.CoxRegression()}, X, y, censoring=C, cv=3, **options)
    assert np.isfinite(validated.frame()["mean"]).all()


@pytest.mark.parametrize("estimator", REGRESSIONS[:2], ids=lambda e: type(e).__name__)
def test_the_tables_of_the_neutral_benchmark(neutral_benchmark, estimator):
    paths = [p for p in sorted(neutral_benchmark.glob("*.csv.gz")) if p.name[:5] not in ("folds", "score")]
    assert len(paths) == 11
    for path in paths:
        data = pd.read_csv(path)
        X = data.drop(columns=["time", "status"])
        X = X.assign(first=pd.qcut(X.iloc[:, -1].rank(method="first"), 4, labels=list("abcd")))
        model = estimator.fit(X, cs.RightCensored(data["time"], data["status"]))
        assert np.isfinite(model.predict_distribution(X).sf(float(data["time"].median()))).all()
