"""Importance of covariates: its definition, its errors, and every kind of model and table."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.evaluation.importance import permuted, replaced
from censcore.exceptions import InvalidInputError, InvalidTypeError

C = cs.Censoring(cs.KaplanMeier())


def data(n: int, seed: int = 0) -> tuple[pd.DataFrame, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "g": rng.choice(["x", "y", "z"], n)})
    X["c"] = 0.9 * X.b + 0.4 * rng.normal(size=n)
    T = rng.exponential(np.exp(-X.a - 0.5 * X.b - 0.8 * (X.g == "z")))
    censored = rng.uniform(0.5, 4, n)
    return X, cs.RightCensored(np.minimum(T, censored), censored >= T)


X, Y = data(200)
COX = cs.CoxRegression().fit(*data(400, 1))


class TestDefinition:
    def test_it_is_the_mean_rise_over_the_permutations(self):
        found = cs.importance(
            COX, X, Y, cs.Uniform(0.0, 5.0), columns=["a", "g"], permutations=3, horizon=2.0
        )
        F = COX.predict_distribution(X)
        base = cs.crps(Y, F, cs.Uniform(0.0, 5.0), horizon=2.0).mean()
        assert found.loss == pytest.approx(base)
        rises = []
        for b in range(3):
            order = np.random.default_rng([0, 0, b]).permutation(200)
            other = X.assign(a=X.a.to_numpy()[order])
            loss = cs.crps(Y, COX.predict_distribution(other), cs.Uniform(0.0, 5.0), horizon=2.0).mean()
            rises.append(loss - base)
        line = found.frame().set_index("column").loc["a"]
        assert line.importance == pytest.approx(np.mean(rises), rel=1e-10)
        assert line.share == pytest.approx(np.mean(rises) / base, rel=1e-10)

    def test_what_the_model_does_not_use_has_none(self):
        model = cs.PublishedCox({"a": 1.0}, cs.Exponential(1.0))
        table = cs.importance(model, X, Y, C, permutations=3).frame().set_index("column")
        assert (table.importance[["b", "c", "g"]] == 0).all()
        assert table.importance["a"] > 0.05
        assert table.index[0] == "a"

    def test_groups_of_columns_are_permuted_together(self):
        both = cs.PublishedCox({"b": 1.0, "c": -1.0}, cs.Exponential(1.0))  # the difference matters
        named = {"each": "b", "both": ["b", "c"]}
        table = cs.importance(both, X, Y, C, columns=named, permutations=10).frame().set_index("column")
        assert table.importance["both"] < table.importance["each"]

    def test_the_censoring_distribution_keeps_the_covariates(self):
        given = cs.Censoring(cs.CoxRegression())
        model = cs.PublishedCox({"a": 1.0}, cs.Exponential(1.0))
        table = cs.importance(model, X[["a", "b"]], Y, given, columns=["b"], permutations=3).frame()
        assert table.importance[0] == 0

    def test_folds_fit_the_model_once_and_permute_what_is_left_out(self):
        calls = []

        class Counted(cs.CoxRegression):
            def fit(self, X, y, sample_weight=None):
                calls.append(len(y))
                return super().fit(X, y, sample_weight)

        found = cs.importance(Counted(), X, Y, cv=4, columns=["a", "b"], permutations=3)
        assert calls == [150] * 4
        comparison = cs.cross_validate(
            {"cox": cs.CoxRegression()}, X, Y, cv=4, scores="crps", discrimination=False
        )
        assert found.loss == pytest.approx(comparison.frame().set_index("model")["mean"]["cox"])
        table = found.frame().set_index("column")
        assert (table.low > 0).all()


class TestErrors:
    def test_they_are_those_of_new_subjects_and_new_permutations(self):
        model = cs.PublishedCox({"a": 1.0}, cs.Exponential(1.0))
        values, errors, noise = [], [], []
        for seed in range(120):
            some, y = data(120, 1000 + seed)
            line = cs.importance(
                model, some[["a"]], y, cs.Uniform(0.0, 6.0), permutations=8, horizon=2.0, seed=seed
            ).frame()
            values.append(line.importance[0])
            errors.append(line.standard_error[0])
            noise.append(line.permutation_error[0])
        spread = np.std(values, ddof=1)
        assert 0.9 * spread < np.sqrt(np.mean(np.square(errors))) < 1.25 * spread
        assert 0 < np.mean(noise) < 0.5 * spread

    def test_the_error_of_the_permutations_alone(self):
        model = cs.PublishedCox({"a": 1.0}, cs.Exponential(1.0))
        lines = [
            cs.importance(
                model, X[["a"]], Y, cs.Uniform(0.0, 6.0), permutations=6, horizon=2.0, seed=s
            ).frame()
            for s in range(60)
        ]
        spread = np.std([line.importance[0] for line in lines], ddof=1)
        assert np.mean([line.permutation_error[0] for line in lines]) == pytest.approx(spread, rel=0.3)

    def test_intervals_hold_for_all_columns_together(self):
        one = cs.importance(COX, X, Y, C, columns=["a"], permutations=4).frame().set_index("column").loc["a"]
        all_ = cs.importance(COX, X, Y, C, columns=["a", "b", "c", "g"], permutations=4)
        line = all_.frame().set_index("column").loc["a"]
        assert line.standard_error == pytest.approx(one.standard_error)
        assert line.high - line.low > one.high - one.low
        assert (all_.table.p_adjusted >= all_.table.p_value).all()

    def test_clusters_and_weights(self):
        twice = np.repeat(np.arange(200), 2)
        wide, y = X.iloc[twice].reset_index(drop=True), Y.take(twice)
        options = {"censoring": cs.Uniform(0.0, 6.0), "horizon": 2.0, "columns": ["a"], "permutations": 20}
        alone = cs.importance(COX, wide, y, **options).frame()
        together = cs.importance(COX, wide, y, groups=twice, **options).frame()
        assert together.standard_error[0] > 1.25 * alone.standard_error[0]
        heavy = np.where(X.a > 0, 4.0, 1.0)
        weighted = cs.importance(COX, X, Y, sample_weight=heavy, **options).frame()
        repeated = np.repeat(np.arange(200), heavy.astype(int))
        longer = cs.importance(
            COX, X.iloc[repeated].reset_index(drop=True), Y.take(repeated), **options
        ).frame()
        assert weighted.importance[0] == pytest.approx(longer.importance[0], rel=0.1)


class TestModelsAndTables:
    def test_any_model(self):
        train_X, train_y = data(300, 2)
        numbers = ["a", "b"]
        at_one_time = cs.PublishedCox({"a": 1.0, "b": 0.5}, {1.0: 0.4})
        pipeline = make_pipeline(StandardScaler(), cs.WeibullRegression()).fit(train_X[numbers], train_y)
        for model, options in (
            (pipeline, {}),
            (cs.BoostedHazards(random_state=0, max_iter=20).fit(train_X[numbers], train_y), {}),
            (at_one_time, {"score": "brier_score", "times": [1.0]}),
        ):
            found = cs.importance(model, X[numbers], Y, C, permutations=2, **options)
            assert found.frame().column[0] == "a"

    def test_competing_risks(self):
        rng = np.random.default_rng(3)
        time, cause = rng.exponential(np.exp(-X.a)), rng.integers(0, 3, 200)
        y = cs.CompetingRisks(time, cause, names=["relapse", "death"])
        model = cs.CauseSpecific(cs.CoxRegression())
        for fitted, options in ((model.fit(X, y), {"censoring": C}), (model, {"cv": 3})):
            table = cs.importance(fitted, X, y, permutations=2, columns=["a", "b"], **options).frame()
            assert table.column[0] == "a"

    def test_a_model_of_another_library(self):
        linear = pytest.importorskip("sksurv.linear_model")
        numbers = X[["a", "b"]].to_numpy()
        found = cs.importance(linear.CoxPHSurvivalAnalysis(), numbers, Y, cv=3, permutations=2)
        assert found.frame().column.tolist() == ["column 0", "column 1"]

    def test_missing_values_categories_and_other_frames(self):
        gaps = X.assign(g=X.g.astype("category"), k=np.arange(200) % 3 == 0)
        gaps.loc[gaps.b > 1.5, ["a", "b"]] = np.nan
        model = cs.CoxRegression().fit(gaps, Y)
        assert len(cs.importance(model, gaps, Y, C, permutations=2).frame()) == 5
        polars = pytest.importorskip("polars")
        frame = polars.DataFrame({"a": X.a.to_numpy(), "g": X.g.to_list()})
        model = cs.CoxRegression().fit(frame, Y)
        assert len(cs.importance(model, frame, Y, C, permutations=2).frame()) == 2

    def test_columns_are_replaced_by_place_not_by_label(self):
        table = X.set_index(np.arange(200)[::-1] + 7)
        order = np.random.default_rng(0).permutation(200)
        new = permuted(table, ["a", "g"], order)
        assert new.a.tolist() == table.a.to_numpy()[order].tolist()
        assert new.g.tolist() == table.g.to_numpy()[order].tolist()
        assert new.b.tolist() == table.b.tolist()
        assert new.index.equals(table.index)
        assert table.a.tolist() == X.a.tolist()
        array = np.arange(6).reshape(3, 2)
        assert permuted(array, [1], np.array([2, 0, 1])).tolist() == [[0, 5], [2, 1], [4, 3]]
        assert replaced(array, [0], lambda old: np.full(len(old), 0.5))[:, 0].tolist() == [0.5] * 3


class TestDependence:
    FOUND = cs.importance(COX, X, Y, C, score="brier_score", times=[1.0], columns=["a"], permutations=2)

    def test_it_is_the_mean_risk_at_each_value(self):
        table = self.FOUND.dependence("a", values=[-1.0, 1.0])
        for line in table.itertuples():
            risk = COX.predict_distribution(X.assign(a=line.value)).cdf(1.0)
            assert line.risk == pytest.approx(risk.mean())
            assert line.high - line.low == pytest.approx(2 * 1.959964 * risk.std() / np.sqrt(200), rel=1e-6)

    def test_levels_and_quantiles_by_default(self):
        assert self.FOUND.dependence("g").value.tolist() == ["x", "y", "z"]
        assert self.FOUND.dependence("a", time=0.5).value.is_monotonic_increasing
        assert (self.FOUND.dependence("a").risk > self.FOUND.dependence("a", time=0.5).risk).all()

    def test_pictures(self):
        assert self.FOUND.plot().axes[0].get_xlabel() == "rise of brier_score when permuted"
        assert self.FOUND.plot_dependence("a").axes[0].get_xlabel() == "a"
        assert self.FOUND.plot_dependence("g").axes[0].get_ylabel() == "mean risk"
        assert repr(self.FOUND).startswith("Rise of brier_score (")

    def test_errors(self):
        with pytest.raises(InvalidInputError, match="no column 'age'"):
            self.FOUND.dependence("age")
        for column, values, words in (
            ("a", ["high"], "values"),
            ("g", 3, "a list of levels"),
            (1.0, None, "column"),
        ):
            with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
                self.FOUND.dependence(column, values=values)
        assert len(self.FOUND.dependence("a", values=0.5)) == 1
        crps = cs.importance(COX, X, Y, C, columns=["a"], permutations=2)
        with pytest.raises(InvalidInputError, match="time: got None"):
            crps.dependence("a")
        folds = cs.importance(cs.CoxRegression(), X, Y, cv=2, columns=["a"], permutations=2)
        with pytest.raises(InvalidInputError, match="expected one fitted model"):
            folds.dependence("a", time=1.0)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"columns": ["age"]}, "columns: got"),
        ({"columns": {}}, "columns: got none"),
        ({"columns": {"none": []}}, "columns: got"),
        ({"columns": "a"}, "columns"),
        ({"X": None}, "X: got None"),
        ({"permutations": 1}, "permutations"),
        ({"permutations": 10**6}, "permutations"),
        ({"score": "brier_score", "times": [0.5, 1.0]}, "one finite mean"),
        ({"score": "log_score"}, "one finite mean"),
        ({"cv": 3, "train": (X, Y)}, "train: got it together with cv"),
        ({"cv": cs.Folds(3, repeats=2)}, "one draw of the folds"),
        ({"confidence": 2.0}, "confidence"),
    ],
)
def test_each_mistake_is_named(given, words):
    options = {"model": COX, "X": X, "y": Y, "censoring": C, "permutations": 2} | given
    if "cv" in given:
        options.pop("censoring")
    with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
        cs.importance(**options)


def test_every_subject_is_tested():
    halves = [(np.arange(100), np.arange(100, 200))]
    with pytest.raises(InvalidInputError, match="folds that test 100 of 200 subjects"):
        cs.importance(cs.CoxRegression(), X, Y, cv=halves, columns=["a"], permutations=2)
