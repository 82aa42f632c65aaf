"""The ladder of updates: which rung is chosen, what is reported of it, and for which data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.estimators.regression.recalibrated import RUNGS
from censcore.evaluation.update import Ladder
from censcore.exceptions import FoldError, InvalidInputError, InvalidTypeError

TIME = 1.0


def data(
    n: int, ratio: float, effects: tuple[float, float], seed: int = 0
) -> tuple[pd.DataFrame, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    T = rng.exponential(np.exp(-X.to_numpy() @ np.array(effects)) / ratio)
    C = rng.uniform(0.5, 3.0, n)
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


PUBLISHED = cs.PublishedCox({"a": 0.8, "b": -0.4}, baseline={TIME: np.exp(-0.5)})


class TestChoice:
    @pytest.mark.parametrize(
        ("ratio", "effects", "expected"),
        [
            (0.5, (0.8, -0.4), {"as it is"}),
            (1.0, (0.8, -0.4), {"intercept", "baseline"}),
            (0.8, (0.3, -0.15), {"slope"}),
            (0.5, (0.8, 0.6), {"refit"}),
        ],
    )
    def test_it_is_the_simplest_that_is_right(self, ratio, effects, expected):
        found = cs.update(PUBLISHED, *data(1500, ratio, effects), time=TIME, nested=False)
        assert found.chosen in expected
        assert found.model is found.rungs[found.chosen]
        assert set(found.rungs) == set(RUNGS)

    def test_it_is_within_one_standard_error_of_the_best(self):
        table = cs.update(PUBLISHED, *data(150, 0.8, (0.5, 0.0)), time=TIME, nested=False).frame()
        best = table.difference.idxmin()
        assert table.difference[best] == table.difference_standard_error[best] == 0
        near = table.difference <= table.difference_standard_error
        assert table.chosen.tolist() == [i == near.idxmax() for i in range(len(table))]
        assert (table.difference_standard_error.drop(best) > 0).all()

    def test_the_differences_are_those_of_a_cross_validation(self):
        X, y = data(150, 0.8, (0.5, 0.0))
        ladder = Ladder(PUBLISHED, TIME, "brier_score:ipcw", cv=5).fit(X, y)
        comparison = cs.cross_validate(
            ladder.rungs_, X, y, cv=5, scores="brier_score:ipcw", times=[TIME], horizon=TIME, reference=None,
            discrimination=False,
        )  # fmt: skip
        means = comparison.frame(discrimination=False).set_index("model")["mean"]
        assert ladder.table_.set_index("rung").score.to_dict() == pytest.approx(means.to_dict())

    def test_few_events_leave_the_model_as_it_is(self):
        X, y = data(800, 0.02, (0.8, -0.4), seed=3)
        rare = cs.PublishedCox(PUBLISHED.coefficients, baseline={TIME: 0.98})
        assert 8 < y.censor_at(TIME).event.sum() < 25
        assert cs.update(rare, X, y, time=TIME, nested=False, cv=3).chosen == "as it is"

    def test_folds_without_events_are_named(self):
        X, y = data(400, 0.004, (0.8, -0.4), seed=3)
        with pytest.raises(FoldError, match="no event by time 1"):
            cs.update(PUBLISHED, X, y, time=TIME, cv=2)


class TestReport:
    def test_the_nested_score_is_that_of_the_whole_procedure(self):
        X, y = data(150, 1.0, (0.8, -0.4))
        found = cs.update(PUBLISHED, X, y, time=TIME, cv=3)
        procedure = Ladder(PUBLISHED, TIME, "binomial_log_score", cv=3)
        comparison = cs.cross_validate(
            {"procedure": procedure}, X, y, cv=3, scores="binomial_log_score", times=[TIME], horizon=TIME,
            reference=None, discrimination=False,
        )  # fmt: skip
        line = found.nested.iloc[0]
        assert line.updated == pytest.approx(comparison.frame(discrimination=False)["mean"][0])
        assert line.difference == pytest.approx(line.updated - line.as_it_is)
        assert line.standard_error > 0

    def test_it_prints_the_ladder_the_test_and_the_equation(self):
        text = repr(cs.update(PUBLISHED, *data(200, 1.0, (0.8, -0.4)), time=TIME, cv=3))
        for words in ("Update at time 1: ", "nested: ", "Closed test (Wald): ", "S0(t)^exp(L)", *RUNGS):
            assert words in text

    def test_why_there_is_no_closed_test_is_a_note(self):
        X, y = data(200, 1.0, (0.8, -0.4))
        constant = cs.PublishedCox({"a": 0.0}, {TIME: 0.6})
        found = cs.update(constant, X[["a"]], y, time=TIME, nested=False)
        assert found.closed_test is None
        assert "no slope to test" in found.notes[0]
        assert "note: " in repr(found)

    def test_a_model_without_covariates_has_no_refit(self):
        y = data(200, 1.0, (0.8, -0.4))[1]
        pooled = cs.KaplanMeier().fit(None, data(200, 0.5, (0.0, 0.0))[1])
        found = cs.update(pooled, None, y, time=TIME, nested=False)
        assert "refit" not in found.rungs
        assert found.notes[0].startswith("The rung 'refit' is not available: X: got None")


class TestData:
    def test_weights_and_groups(self):
        X, y = data(240, 1.0, (0.8, -0.4))
        found = cs.update(
            PUBLISHED,
            X,
            y,
            time=TIME,
            sample_weight=np.linspace(0.5, 2, 240),
            groups=np.arange(240) // 3,
            cv=4,
        )
        assert found.chosen in RUNGS
        assert found.frame().standard_error.notna().all()

    def test_weights_move_the_baseline(self):
        X, y = data(240, 1.0, (0.8, -0.4))
        heavy = np.where(y.event, 3.0, 1.0)
        plain, weighted = (
            cs.update(PUBLISHED, X, y, time=TIME, nested=False, cv=4, sample_weight=w) for w in (None, heavy)
        )
        assert weighted.rungs["intercept"].shift_ > plain.rungs["intercept"].shift_ + 0.15

    def test_another_model_with_missing_values_and_text(self):
        X, y = data(300, 1.0, (0.8, -0.4))
        wide = X.assign(kind=np.where(X.b > 0, "x", "y")).mask(X.a > 1.5)
        wide["kind"] = wide.kind.fillna("x")
        model = cs.CoxRegression().fit(wide[:150], y[:150])
        found = cs.update(model, wide[150:], y[150:], time=TIME, nested=False, cv=3)
        assert found.model.predict_distribution(wide).cdf(TIME).shape == (300,)

    def test_errors(self):
        X, y = data(100, 1.0, (0.8, -0.4))
        for given, words in (
            ({"time": 9.0}, "expected one that follow-up reaches"),
            ({"time": "late"}, "time"),
            ({"time": TIME, "score": "crps"}, "expected a proper score of one time"),
            ({"time": TIME, "nested": "yes"}, "nested"),
            ({"time": TIME, "X": X[:50]}, "got 50 rows, expected 100"),
        ):
            with pytest.raises((InvalidInputError, InvalidTypeError), match=words):
                cs.update(**({"model": PUBLISHED, "X": X, "y": y} | given))
