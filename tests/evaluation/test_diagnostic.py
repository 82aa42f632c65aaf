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
    assert found.covariates.p_value < 0.001
    assert found.covariates.kind == "trend in age"
    assert "signs that censoring depends on covariates: p < 0.001 (most of all a trend in age)" in repr(found)


def test_a_distribution_given_the_covariates_silences_the_warning():
    x, y = sample(0.7)
    given = cs.Censoring(cs.CoxRegression()).fit(x, y).predict_distribution(x)
    found = cs.censoring_diagnostic(y, given, x, horizon=1.0)
    assert found.conditional
    assert not any("covariates" in warning for warning in found.warnings)


def test_only_censoring_up_to_the_horizon_counts():
    """C depends on x after time 1 alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 1))
    C = rng.exponential(2.0, 600)
    C = np.where(C > 1, 1 + (C - 1) * np.exp(-1.5 * x[:, 0]), C)
    T = rng.exponential(3.0, 600)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    late, early = (cs.censoring_diagnostic(y, pooled(y), x, horizon=h).covariates for h in (4.0, 1.0))
    assert late.p_value < 0.001
    assert early.p_value > 0.01


def test_weights_and_groups_of_a_comparison_reach_the_test(split):
    groups = np.arange(300) // 5
    weight = np.where(np.arange(300) % 2, 2.0, 1.0)
    found = cs.compare(
        split.forecasts, split.y, cs.Censoring(cs.KaplanMeier()), X=split.x, train=split.train,
        groups=groups, sample_weight=weight, scores="crps", discrimination=False,
    )  # fmt: skip
    assert found.censoring.covariates.clusters == 60
    direct = cs.censoring_diagnostic(
        split.y,
        found.resolved_censoring.distribution,
        split.x,
        horizon=found.horizon,
        groups=groups,
        sample_weight=weight,
    )
    assert direct.covariates.p_value == found.censoring.covariates.p_value


@pytest.mark.parametrize(
    ("y", "X", "reason"),
    [
        (cs.RightCensored([1.0, 2.0], [1, 1]), [[1.0], [2.0]], "nobody is censored"),
        (cs.RightCensored([1.0, 2.0], [1, 0]), None, "no covariates were given"),
        (cs.RightCensored(np.full(50, 3.0), np.zeros(50)), np.arange(50.0), "0 subjects are censored while"),
        (cs.RightCensored(np.arange(50.0), np.arange(50) % 2), np.ones((50, 2)), "no column of X"),
    ],
)  # fmt: skip
def test_what_cannot_be_tested_says_why(y, X, reason):
    found = cs.censoring_diagnostic(y, cs.Exponential(1.0), X)
    assert found.covariates is None
    assert reason in found.not_tested
    assert f"not tested: {reason}" in repr(found)


def test_without_events_there_are_no_weights():
    found = cs.censoring_diagnostic(cs.RightCensored([1.0, 2.0], [0, 0]), cs.Uniform(0.0, 5.0))
    assert (found.events_in, found.effective, found.warnings) == (0, 0.0, [])


def test_heavy_weights_are_warned_about():
    y = cs.RightCensored(np.linspace(0.1, 4.9, 50), np.ones(50))
    found = cs.censoring_diagnostic(y, cs.Uniform(0.0, 5.0))
    assert any("One event has the weight of 50 subjects" in warning for warning in found.warnings)
    assert found.safe_horizon == pytest.approx(4.5)


def test_events_beyond_the_support_are_counted():
    y = cs.RightCensored([1.0, 2.0, 9.0], [1, 1, 1])
    found = cs.censoring_diagnostic(y, cs.Uniform(0.0, 5.0))
    assert (found.beyond, found.horizon) == (1, 5.0)


def test_refusals():
    x, y = sample(0.0)
    with pytest.raises(MissingCensoringError, match="censoring distribution"):
        cs.censoring_diagnostic(y)
    with pytest.raises(InvalidInputError, match="horizon"):
        cs.censoring_diagnostic(y, pooled(y), x, horizon=0.0)
    with pytest.raises(InvalidInputError, match="399"):
        cs.censoring_diagnostic(y, pooled(y), x[1:])
    with pytest.raises(InvalidInputError, match="groups"):
        cs.censoring_diagnostic(y, pooled(y), x, groups=[1, 2])
    with pytest.raises(InvalidInputError, match="sample_weight"):
        cs.censoring_diagnostic(y, pooled(y), x, sample_weight=[1.0, 2.0])


def test_folds_of_a_pooled_curve_do_not_silence_the_warning():
    x, y = sample(0.7)
    frame = pd.DataFrame(x, columns=["age", "other"]).assign(old=x[:, 0] > 0)
    by_fold = cs.Censoring(cs.KaplanMeier(), cv=5).fit_predict_distribution(frame, y)
    found = cs.censoring_diagnostic(y, by_fold, frame, horizon=1.0)
    assert not found.conditional
    assert any("depends on covariates" in warning for warning in found.warnings)
    for estimator in (cs.KaplanMeier(stratify="old"), cs.CoxRegression()):
        given = cs.Censoring(estimator, cv=5).fit_predict_distribution(frame, y)
        assert cs.censoring_diagnostic(y, given, frame, horizon=1.0).conditional


def test_labels_of_subgroups_are_tested_without_covariates():
    """Follow-up differs between two sites, which only the labels of the subgroups know."""
    rng = np.random.default_rng(3)
    site = rng.integers(0, 2, 300)
    T, C = rng.exponential(1.0, 300), rng.exponential(np.where(site, 0.6, 2.0))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {"one": cs.Exponential(1.0), "other": cs.Exponential(1.3)}
    by = {"site": np.where(site, "x", "y")}
    found = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), by=by, scores="crps")
    assert found.censoring.covariates.p_value < 0.01
    assert "difference by site" in found.censoring.warnings[0]
    assert "difference by site" in repr(found)
    without = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), scores="crps")
    assert without.censoring.covariates is None
