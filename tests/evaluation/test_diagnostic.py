from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, MissingCensoringError


def sample(effect: float, n: int = 400, seed: int = 0) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T, C = rng.exponential(1.0, n), rng.exponential(np.exp(effect * x[:, 0]))
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def pooled(y: cs.RightCensored) -> cs.Distribution:
    return cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()


def test_weights_by_hand():
    y = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1])
    found = cs.censoring_diagnostic(y, cs.Uniform(0.0, 5.0), horizon=3.5)
    weight = np.array([5 / 4, 5 / 2])
    assert found.weights["largest"] == pytest.approx(2.5)
    assert found.effective == pytest.approx(weight.sum() ** 2 / (weight**2).sum())
    assert (found.events_in, found.cut, found.support) == (2, 1, 5.0)
    assert found.safe_horizon == 3.5
    assert found.beyond == 0


def test_covariates_that_drive_censoring_are_found_and_named():
    x, y = sample(0.7)
    frame = pd.DataFrame(x, columns=["age", "other"])
    found = cs.censoring_diagnostic(y, pooled(y), frame)
    assert found.covariates.p_value < 1e-6
    assert next(iter(found.covariates.statistics)) == "age"
    assert any("age" in warning for warning in found.warnings)
    assert "!" in repr(found)


def test_a_law_given_the_covariates_silences_the_warning():
    x, y = sample(0.7)
    law = cs.Censoring(cs.CoxRegression()).fit(x, y).predict_distribution(x)
    found = cs.censoring_diagnostic(y, law, x, horizon=1.0)
    assert found.conditional
    assert not any("Covariates" in warning for warning in found.warnings)


def test_the_test_has_its_level():
    """Under no effect p-values are uniform: 5 % in 200 data sets is 10, give or take."""
    small = [cs.censoring_diagnostic(y, cs.Exponential(1.0), x).covariates.p_value < 0.05 for x, y in
             (sample(0.0, 120, seed) for seed in range(200))]  # fmt: skip
    assert 2 <= sum(small) <= 22


def test_score_test_is_near_the_likelihood_ratio_of_lifelines():
    lifelines = pytest.importorskip("lifelines")
    x, y = sample(0.15, 800)
    flipped = y.flip()
    frame = pd.DataFrame(x, columns=["a", "b"]).assign(t=flipped.time, e=flipped.event)
    theirs = lifelines.CoxPHFitter().fit(frame, "t", "e").log_likelihood_ratio_test()
    ours = cs.censoring_diagnostic(y, pooled(y), x).covariates
    assert ours.statistic == pytest.approx(theirs.test_statistic, rel=0.05)


def test_categories_count_one_less_than_their_values():
    x, y = sample(0.0)
    frame = pd.DataFrame({"stage": np.tile(["I", "II", "III", "IV"], 100), "flag": x[:, 0] > 0})
    assert cs.censoring_diagnostic(y, pooled(y), frame).covariates.degrees == 4


def test_constant_and_collinear_columns_do_no_harm():
    x, y = sample(0.7)
    wide = np.column_stack([x, x[:, 0], np.ones(len(x))])
    one, two = (cs.censoring_diagnostic(y, pooled(y), X).covariates for X in (x, wide))
    assert two.degrees == one.degrees == 2
    assert two.statistic == pytest.approx(one.statistic, rel=1e-6)


def test_heavy_weights_are_warned_about():
    y = cs.RightCensored(np.linspace(0.1, 4.9, 50), np.ones(50))
    found = cs.censoring_diagnostic(y, cs.Uniform(0.0, 5.0))
    assert any("One event stands for 50" in warning for warning in found.warnings)
    assert found.safe_horizon == pytest.approx(4.5)


def test_events_beyond_the_support_are_counted():
    y = cs.RightCensored([1.0, 2.0, 9.0], [1, 1, 1])
    found = cs.censoring_diagnostic(y, cs.Uniform(0.0, 5.0))
    assert (found.beyond, found.horizon) == (1, 5.0)


def test_refusals():
    x, y = sample(0.0)
    with pytest.raises(MissingCensoringError, match="law of C"):
        cs.censoring_diagnostic(y)
    x[3, 0] = np.nan
    with pytest.raises(InvalidInputError, match="missing values"):
        cs.censoring_diagnostic(y, pooled(y), x)
