"""Weights and shared subjects in a comparison: a count is a repetition, and nobody counts twice."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import censcore as cs
from censcore.evaluation.inference.estimates import UNITS
from censcore.evaluation.inference.mean_losses import _spread
from censcore.evaluation.inference.pooling import estimate_by_unit
from censcore.evaluation.inference.units import Units, common_codes, sums_within
from censcore.exceptions import InvalidInputError

NUMBERS = ["by", "score", "at", "model", "mean", "standard_error", "skill", "skill_standard_error"]


def sample(n: int, seed: int) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.normal(size=n), rng.random(n) < 0.5]).astype(float)
    T, C = rng.weibull(1.5, n) * np.exp(0.5 * x[:, 0]), rng.exponential(1.5 * np.exp(-0.5 * x[:, 1]))
    time = np.minimum(T, np.minimum(C, 2.0))
    return x, cs.RightCensored(np.ceil(time * 50) / 50, (C >= T) & (T <= 2.0))


def forecasts(x: np.ndarray) -> dict[str, cs.Weibull]:
    return {"right": cs.Weibull(1.5, np.exp(0.5 * x[:, 0])), "wrong": cs.Weibull(1.2, np.exp(0.1 * x[:, 0]))}


def numbers(comparison) -> pd.DataFrame:
    return comparison.frame()[NUMBERS]


ESTIMATORS = {
    "kaplan-meier": cs.KaplanMeier(),
    "strata": cs.KaplanMeier(stratify=1),
    "cox": cs.CoxRegression(),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_counts_equal_repetitions_in_sample(name):
    """At the defaults: scores, censoring distribution, its influence, horizon, times and levels."""
    x, y = sample(150, 1)
    counts = np.random.default_rng(2).integers(1, 4, size=150)
    rows = np.repeat(np.arange(150), counts)
    options = {"discrimination": False, "censoring": cs.Censoring(ESTIMATORS[name])}
    weighted = cs.compare(forecasts(x), y, X=x, sample_weight=counts, **options)
    repeated = cs.compare(forecasts(x[rows]), y[rows], X=x[rows], groups=rows, **options)
    for setting in ("horizon", "times", "levels"):
        np.testing.assert_array_equal(weighted.settings[setting], repeated.settings[setting])
    pd.testing.assert_frame_equal(numbers(weighted), numbers(repeated), rtol=1e-8)
    scaled = cs.compare(forecasts(x), y, X=x, sample_weight=0.1 * counts, **options)
    pd.testing.assert_frame_equal(numbers(weighted), numbers(scaled), rtol=1e-8)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_counts_of_training_subjects_equal_repetitions(name):
    (x, y), (x_train, y_train) = sample(100, 3), sample(150, 4)
    counts = np.random.default_rng(5).integers(1, 4, size=150)
    rows = np.repeat(np.arange(150), counts)
    options = {"X": x, "discrimination": False, "censoring": cs.Censoring(ESTIMATORS[name])}
    weighted = cs.compare(forecasts(x), y, train=cs.Sample(x_train, y_train, weight=counts), **options)
    repeated = cs.compare(
        forecasts(x), y, train=cs.Sample(x_train[rows], y_train[rows], groups=1000 + rows), **options
    )
    assert "kaplan-meier" in weighted.models
    pd.testing.assert_frame_equal(numbers(weighted), numbers(repeated), rtol=1e-8)


def test_a_stratified_sample_with_weights_estimates_the_population():
    """Two strata of shares 5:1, sampled alike; censoring differs between them and is pooled by weight."""
    rng = np.random.default_rng(6)
    n = 4000
    rare = np.arange(n) % 2 == 1
    T = rng.exponential(1.0, n)
    C = rng.exponential(np.where(rare, 0.4, 4.0))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    weight = np.where(rare, 1.0, 5.0)
    truth = np.exp(-1) * (1 - np.exp(-1))  # Brier score at t = 1 of a forecast that is right
    options = {"scores": "brier_score:ipcw", "times": [1.0], "horizon": 1.5, "discrimination": False}
    km = cs.Censoring(cs.KaplanMeier())
    found = cs.compare({"right": cs.Exponential(1.0)}, y, km, sample_weight=weight, **options)
    mean, error = found.frame()[["mean", "standard_error"]].iloc[0]
    assert abs(mean - truth) < 3 * error
    unweighted = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    wrong = cs.compare({"right": cs.Exponential(1.0)}, y, unweighted, sample_weight=weight, **options)
    assert abs(wrong.frame()["mean"].iloc[0] - truth) > 5 * error


def test_weights_of_scored_subjects_alone_are_noted():
    (x, y), train = sample(80, 7), sample(80, 8)
    options = {"X": x, "train": train, "scores": "crps", "discrimination": False}
    km = cs.Censoring(cs.KaplanMeier())
    notes = cs.compare(forecasts(x), y, km, sample_weight=np.arange(80), **options).notes
    assert "train=Sample(X_train, y_train, weight=)" in " ".join(notes)
    itself = cs.compare(
        forecasts(x),
        y,
        km,
        X=x,
        train=(x, y),
        sample_weight=np.arange(80),
        scores="crps",
        discrimination=False,
    )
    assert "weight=" not in " ".join(itself.notes)
    with pytest.raises(InvalidInputError, match="weight"):
        cs.compare(forecasts(x), y, km, X=x, train=cs.Sample(*train, weight=np.ones(79)))


def test_an_estimator_without_weights_says_so():
    class Plain(cs.KaplanMeier):
        def fit(self, X, y):
            return super().fit(X, y)

    x, y = sample(80, 7)
    with pytest.raises(InvalidInputError, match=r"Plain.fit takes no sample_weight"):
        cs.compare(forecasts(x), y, cs.Censoring(Plain()), X=x, sample_weight=np.ones(80))
    with pytest.raises(InvalidInputError, match=r"Plain.fit takes no sample_weight"):
        cs.WithCensoring(Plain()).fit(x, y, sample_weight=np.ones(80))


def test_scorers_take_weights():
    x, y = sample(120, 9)
    counts = np.random.default_rng(0).integers(1, 4, size=120)
    rows = np.repeat(np.arange(120), counts)
    model = cs.WithCensoring(cs.CoxRegression(), horizon=1.5)
    weighted, repeated = clone(model).fit(x, y, sample_weight=counts), clone(model).fit(x[rows], y[rows])
    np.testing.assert_array_equal(weighted.times_, repeated.times_)
    for name in ("crps", "brier_score:ipcw"):
        score = cs.scorer(name)
        assert score(weighted, x, y, sample_weight=counts) == pytest.approx(score(repeated, x[rows], y[rows]))
    assert weighted.score(x, y, counts) == pytest.approx(repeated.score(x[rows], y[rows]))


# ---- subjects that are scored and in the training sample ------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_training_subjects_in_another_order_are_the_scored_subjects(name):
    x, y = sample(150, 10)
    censoring = cs.Censoring(ESTIMATORS[name])
    options = {"X": x, "reference": None, "discrimination": False, "horizon": 1.5}
    shuffled = np.random.default_rng(0).permutation(150)
    inside = numbers(cs.compare(forecasts(x), y, censoring, **options))
    found = {
        "shuffled": cs.compare(forecasts(x), y, censoring, train=(x[shuffled], y[shuffled]), **options),
        "fitted before": cs.compare(forecasts(x), y, cs.Censoring(ESTIMATORS[name]).fit(x, y), **options),
        "predicted": cs.compare(
            forecasts(x), y, cs.Censoring(ESTIMATORS[name]).fit(x, y).predict_distribution(x), **options
        ),
    }
    for comparison in found.values():
        pd.testing.assert_frame_equal(numbers(comparison), inside, rtol=1e-9)
        assert "standard errors account for it" in " ".join(comparison.notes)


def test_labels_name_shared_subjects_where_ties_hide_them():
    """Months without covariates: what in-sample errors are is told by groups= of both samples."""
    rng = np.random.default_rng(11)
    y = cs.RightCensored(rng.integers(1, 13, 200).astype(float), rng.random(200) < 0.6)
    F, km = {"flat": cs.Uniform(0.0, 20.0)}, cs.Censoring(cs.KaplanMeier())
    options = {
        "reference": None,
        "discrimination": False,
        "horizon": 10.0,
        "scores": ["crps", "brier_score:ipcw"],
    }
    shuffled = rng.permutation(200)
    inside = numbers(cs.compare(F, y, km, **options))
    labelled = cs.compare(
        F, y, km, train=cs.Sample(None, y[shuffled], groups=shuffled), groups=np.arange(200), **options
    )
    pd.testing.assert_frame_equal(numbers(labelled), inside, rtol=1e-9)


def test_units_join_groups_and_pairs():
    codes = common_codes(["a", "b", "b", "c"], ["b", "z", "a", "z"], 4)
    np.testing.assert_array_equal(codes, [1, 3, 0, 3])
    values = np.array([[1.0], [2.0], [4.0], [8.0]])
    units = Units.of(4, 4, np.array([0, 1, 1, 2]), codes, np.array([[3, 1]]))
    np.testing.assert_array_equal(units.scored, [0, 1, 1, 2])
    assert units.overlap
    of_units = sums_within(values, units.trained, units.count)
    np.testing.assert_array_equal(of_units[:, 0], [4.0, 1.0, 10.0])  # z is the group of subject 3
    alone = Units.of(4, 4, None, np.array([5, 5, 6, 7]), np.zeros((0, 2), dtype=int))
    np.testing.assert_array_equal(alone.scored, [0, 1, 2, 3])
    np.testing.assert_array_equal(alone.trained, [4, 4, 5, 6])
    assert not alone.overlap
    assert alone.groups is None


def test_units_of_subjects_who_train_and_of_others():
    """Those of training subjects alone come after all scored ones, whether or not there are labels."""
    pairs = np.array([[2, 0]])
    for codes in (None, np.arange(3)):
        units = Units.of(3, 2, codes, None, pairs)
        np.testing.assert_array_equal(units.scored, [0, 1, 2])
        np.testing.assert_array_equal(units.trained, [2, 3])
        used = np.array([True, False, True])
        found = estimate_by_unit(np.zeros(1), np.ones((4, 1)), units, used, used, fitted=True)
        np.testing.assert_array_equal(found.rows[UNITS], [0, 2, 3])
        np.testing.assert_allclose(found.influence[:, 0], [np.sqrt(2), np.sqrt(2), 1.0])
        known = estimate_by_unit(np.zeros(1), np.ones((3, 1)), units, ~used, used, fitted=False)
        np.testing.assert_array_equal(known.rows[UNITS], [1])


def test_overlap_is_what_the_bootstrap_of_subjects_shows():
    """Half of the scored subjects train: influences against refits of an estimator that has none."""

    class Renamed(cs.KaplanMeier):
        pass

    (x, y), (other_x, other_y) = sample(200, 12), sample(100, 13)
    train = (
        np.vstack([other_x, x[:100]]),
        cs.RightCensored(np.r_[other_y.time, y.time[:100]], np.r_[other_y.event, y.event[:100]]),
    )
    options = {"X": x, "train": train, "reference": None, "discrimination": False, "horizon": 1.5}
    options |= {"scores": ["crps", "brier_score:ipcw"], "times": [1.0]}
    F = {"right": forecasts(x)["right"]}
    exact = cs.compare(F, y, cs.Censoring(cs.KaplanMeier()), **options)
    drawn = cs.compare(F, y, cs.Censoring(Renamed(), refits=150), **options)
    assert "samples of all subjects" in drawn.settings["standard errors"]
    np.testing.assert_allclose(
        exact.frame().standard_error.astype(float), drawn.frame().standard_error.astype(float), rtol=0.2
    )


# ---- what is left of the bootstrap ----------------------------------------------------------------


def test_one_absurd_refit_does_not_make_an_absurd_error():
    means = np.random.default_rng(0).normal(size=(60, 3))
    plain, none = _spread(means)
    assert none == 0
    np.testing.assert_allclose((plain**2).sum(axis=0), means.var(axis=0, ddof=1), rtol=1e-10)
    means[7, 1] = 2e21
    spread, pulled = _spread(means)
    assert pulled == 1
    assert (np.sqrt((spread**2).sum(axis=0)) < 2).all()


def test_refits_far_away_keep_sums_of_means():
    """Treating all is a sum of two means: a forecast that does so gains nothing, with no error."""
    means = np.random.default_rng(3).exponential(size=(15, 2))
    means[4] *= 40
    sums = means @ np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -0.25]])
    spread, pulled = _spread(sums)
    assert pulled
    np.testing.assert_allclose(spread[:, 2], spread[:, 0] - 0.25 * spread[:, 1], rtol=0, atol=1e-12)


def test_a_rare_dummy_gives_sane_errors_with_cox():
    x, y = sample(300, 14)
    x[:, 1] = np.arange(300) < 4
    censoring = cs.Censoring(cs.CoxRegression(alpha=1e-3))
    options = {"X": x, "reference": None, "discrimination": False, "horizon": 1.5}
    comparison = cs.compare(forecasts(x), y, censoring, **options)
    assert "influence" in comparison.settings["standard errors"]
    pooled = cs.compare(forecasts(x), y, cs.Censoring(cs.KaplanMeier()), **options)
    ratio = comparison.frame().standard_error / pooled.frame().standard_error
    assert ((ratio > 0.5) & (ratio < 2)).all()


def test_subjects_of_weight_zero_are_as_if_left_out():
    """Also where the censoring distribution is estimated from the scored subjects, to the last digit."""
    rng = np.random.default_rng(5)
    T, C = rng.exponential(1.0, 60), rng.uniform(0, 3, 60)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    weight = np.where(np.arange(60) < 40, 1.0, 0.0)
    forecasts = {"one": cs.Exponential(1.0), "other": cs.Exponential(1.3)}
    options = {"scores": "brier_score:ipcw", "times": [0.5, 1.0], "horizon": 2.0}
    zero = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), sample_weight=weight, **options)
    left_out = cs.compare(
        forecasts, y[:40], cs.Censoring(cs.KaplanMeier()), sample_weight=weight[:40], **options
    )
    for column in ("mean", "standard_error", "low", "high"):
        np.testing.assert_allclose(zero.frame()[column], left_out.frame()[column], rtol=1e-12)


def test_the_verdict_says_that_subjects_are_weighted():
    rng = np.random.default_rng(6)
    T, C = rng.exponential(1.0, 200), rng.uniform(0, 3, 200)
    y, weight = cs.RightCensored(np.minimum(T, C), T <= C), np.where(np.arange(200) < 20, 30.0, 1.0)
    forecasts = {"one": cs.Exponential(1.0), "other": cs.Exponential(1.3)}
    options = {"scores": "crps", "censoring": cs.Censoring(cs.KaplanMeier())}
    assert str(cs.compare(forecasts, y, sample_weight=weight, **options).verdict).endswith(
        "among 200 weighted subjects."
    )
    for weights in (None, np.full(200, 3.0)):
        plain = cs.compare(forecasts, y, sample_weight=weights, **options)
        assert str(plain.verdict).endswith("among 200 subjects.")


def test_samples_have_no_missing_weights_and_no_masked_labels():
    y = cs.RightCensored([1.0, 2.0], [1, 0])
    with pytest.raises(InvalidInputError, match="sample_weight must be free of NaN"):
        cs.Sample(None, y, weight=[1.0, np.nan])
    with pytest.raises(InvalidInputError, match="groups: got a masked array"):
        cs.Sample(None, y, groups=np.ma.masked_array([1, 2], [0, 1]))
