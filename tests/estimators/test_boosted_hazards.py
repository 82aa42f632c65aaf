"""Boosted trees: what they find, missing values and categories, delayed entry, folds."""

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.estimators.trees.boosted_hazards import exposure
from censcore.exceptions import ExtrapolationWarning, InvalidInputError


def stepped(n, seed=0, p=4):
    """A hazard that a step in one covariate and an interaction decide, censored at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    rate = np.exp(1.2 * (X[:, 0] > 0.5) + 1.0 * (X[:, 1] > 0) * (X[:, 2] > 0))
    T, C = rng.exponential(1 / rate), rng.uniform(0, 3, n)
    return X, cs.RightCensored(np.minimum(T, C), C >= T), rate


def error(model, X, rate):
    return np.abs(model.predict_distribution(X).sf(0.5) - np.exp(-0.5 * rate)).mean()


def test_steps_and_interactions_are_found():
    X, y, _ = stepped(1500)
    new, _, rate = stepped(500, seed=1)
    trees = cs.BoostedHazards(random_state=0).fit(X, y)
    assert trees.n_trees_ > 0
    assert error(trees, new, rate) < 0.06
    assert error(trees, new, rate) < 0.6 * error(cs.CoxRegression().fit(X, y), new, rate)


def test_without_effects_the_pooled_hazard_is_that_of_kaplan_meier():
    _, y, _ = stepped(800)
    pooled = cs.BoostedHazards(random_state=0).fit(None, y).predict_distribution()
    times = np.linspace(0.05, 2.5, 40)
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    np.testing.assert_allclose(pooled.sf(times), curve.sf(times), atol=0.01)
    noise = np.random.default_rng(5).normal(size=(800, 3))
    alone = cs.BoostedHazards(random_state=0).fit(noise, y).predict_distribution(noise)
    assert np.abs(alone.sf(1.0) - curve.sf(1.0)).mean() < 0.03


def test_hazards_need_not_be_proportional():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (3000, 1)).astype(float)
    T = np.where(X[:, 0] == 1, rng.weibull(0.6, 3000), rng.weibull(3.0, 3000))
    y = cs.RightCensored(np.minimum(T, 1.5), T <= 1.5)
    S = cs.BoostedHazards(random_state=0).fit(X, y).predict_distribution([[0.0], [1.0]]).sf([[0.3, 1.2]])
    truth = np.exp(-(np.array([[0.3, 1.2]]) ** np.array([[3.0], [0.6]])))
    np.testing.assert_allclose(S, truth, atol=0.06)


def test_delayed_entry():
    X, y, rate = stepped(3000)
    entry = np.random.default_rng(3).uniform(0, 0.8, 3000)
    seen = y.time > entry
    late = cs.RightCensored(y.time[seen], y.event[seen], entry=entry[seen])
    model = cs.BoostedHazards(random_state=0).fit(X[seen], late)
    assert error(model, X[:400], rate[:400]) < 0.07
    ignored = cs.RightCensored(y.time[seen], y.event[seen])
    worse = cs.BoostedHazards(random_state=0).fit(X[seen], ignored)
    assert error(worse, X[:400], rate[:400]) > 1.3 * error(model, X[:400], rate[:400])


def test_weights_count_subjects_and_none_leaves_them_out():
    X, y, _ = stepped(400)
    kept = np.arange(400) < 300
    half = cs.BoostedHazards(random_state=0).fit(X, y, np.where(kept, 2.0, 0.0))
    lone = cs.BoostedHazards(random_state=0).fit(None, y.take(np.flatnonzero(kept)))
    np.testing.assert_allclose(
        cs.BoostedHazards().fit(None, y, np.where(kept, 2.0, 0.0)).predict_distribution().sf(0.7),
        lone.predict_distribution().sf(0.7),
    )
    assert np.isfinite(half.predict_distribution(X).logpdf(1.0)).all()


def test_missing_numbers_and_categories():
    X, y, rate = stepped(2000)
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": np.where(X[:, 2] > 0, "high", "low")})
    frame.loc[:300, "b"] = np.nan
    model = cs.BoostedHazards(random_state=0).fit(frame, y)
    assert error(model, frame[400:800], rate[400:800]) < 0.06
    new = frame[:3].assign(kind="other")
    with pytest.warns(ExtrapolationWarning, match="other"):
        assert model.predict_distribution(new).shape == (3,)


def test_models_of_folds_have_not_seen_the_held_out_subjects():
    X, y, _ = stepped(300)
    rows = np.arange(300)
    folds = [(rows[rows % 4 != i], rows[rows % 4 == i]) for i in range(2)]
    model = cs.BoostedHazards(random_state=0)
    held = model.cross_fit(X, y, folds)
    assert [len(models) for models in held] == [5, 5]
    moved = X.copy()
    moved[folds[0][1]] = moved[folds[0][1]][::-1]  # the held-out subjects have the covariates of others
    quick = [cs.BoostedHazards(random_state=0, max_iter=10).cross_fit(x, y, folds)[0][0] for x in (X, moved)]
    codes = quick[0]._codes(X, reset=False)
    first, second = (model._factors(codes) for model in quick)
    assert np.ptp(first) > 0.05
    np.testing.assert_allclose(first, second)
    H = model.held_out_hazard_
    assert abs(y.event.sum() / H.sum() - 1) < 0.1  # cumulative hazards count events


def test_several_times():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    margins = [cs.Exponential(np.exp(X[:, 0] > 0)), cs.Weibull(1.5, np.exp(-0.5 * (X[:, 1] > 0)))]
    T = cs.Copula("clayton", margins, 2.0).sample(1, 1)[:, 0]
    y = cs.RightCensored(np.minimum(T, 2.0), T <= 2.0)
    model = cs.JointFromMargins(cs.BoostedHazards(random_state=0)).fit(X, y)
    assert model.theta_ == pytest.approx(2.0, rel=0.25)
    rows = np.arange(1200)
    folds = [(rows[rows % 5 != i], rows[rows % 5 == i]) for i in range(5)]
    held = model.cross_fit(X, y, folds)
    assert [len(models) for models in held] == [5] * 5
    assert held[0][0].predict_distribution(X[:3]).shape == (3, 2)
    assert not hasattr(cs.JointFromMargins(cs.KaplanMeier()), "cross_fit")


def test_long_follow_up_without_events_shows():
    """Half of the subjects are cured: hazards after the last event are small."""
    rng = np.random.default_rng(0)
    T = np.where(rng.random(1000) < 0.5, rng.weibull(2.0, 1000), np.inf)
    C = rng.uniform(0, 20, 1000)
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    F = cs.BoostedHazards().fit(None, y).predict_distribution()
    assert F.sf(15.0)[0] == pytest.approx(0.5, abs=0.05)


def test_exposure_adds_up():
    t = np.array([0.0, 0.4, 2.5, 9.0])
    np.testing.assert_allclose(exposure(t, np.array([0.4, 1.0, 3.0])).sum(axis=1), t)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"n_intervals": 0}, "n_intervals"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes"),
        ({"max_iter": 0}, "max_iter"),
    ],
)
def test_settings_are_checked(change, match):
    X, y, _ = stepped(50)
    with pytest.raises(InvalidInputError, match=match):
        cs.BoostedHazards(**change).fit(X, y)


def test_outcomes_are_checked():
    X, y, _ = stepped(50)
    with pytest.raises(InvalidInputError, match="no subject has"):
        cs.BoostedHazards().fit(X, cs.RightCensored(y.time, np.zeros(50)))
    with pytest.raises(InvalidInputError, match="time zero"):
        cs.BoostedHazards().fit(X, cs.RightCensored(np.r_[0.0, y.time[1:]], np.ones(50)))
    fitted = cs.BoostedHazards().fit(X, y)
    for wrong in (None, X[:, :2]):
        with pytest.raises(InvalidInputError, match=r"covariates|features"):
            fitted.predict_distribution(wrong)


def test_huge_numbers_are_numbers():
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[3, 1] = -1e300
    y = cs.RightCensored(np.random.default_rng(1).exponential(size=60), np.ones(60))
    F = cs.BoostedHazards(max_iter=5, random_state=0).fit(X, y).predict_distribution(X)
    assert np.isfinite(F.sf(1.0)).all()


def test_a_whole_number_of_intervals_may_be_a_double():
    X, y = np.arange(40.0)[:, None], cs.RightCensored(np.arange(1.0, 41.0), np.arange(40) % 3 > 0)
    models = [cs.BoostedHazards(n_intervals=n, max_iter=3, random_state=0).fit(X, y) for n in (2, 2.0)]
    times = np.array([[5.0, 20.0]])
    np.testing.assert_array_equal(*(model.predict_distribution(X).sf(times) for model in models))


def test_counts_may_be_whole_numbers_of_another_type():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), cs.RightCensored(rng.exponential(size=60), np.ones(60, dtype=bool))
    counts = {"max_iter": 4, "max_leaf_nodes": 3, "min_samples_leaf": 10}
    plain, other = (
        cs.BoostedHazards(random_state=0, **{name: kind(count) for name, count in counts.items()}).fit(x, y)
        for kind in (int, float)
    )
    sf = [model.predict_distribution(x).sf(1.0) for model in (plain, other)]
    np.testing.assert_array_equal(*sf)


@pytest.mark.parametrize("known", [0, 1, 30])
def test_a_column_of_which_nothing_is_known_plays_no_part(known):
    """In all data, or in the training part of a fold."""
    rng = np.random.default_rng(0)
    y = cs.RightCensored(rng.exponential(size=60), rng.random(60) < 0.7)
    x = np.where(np.arange(60) < known, rng.normal(size=60), np.nan)
    F = (
        cs.BoostedHazards(random_state=0)
        .fit(np.column_stack([x, x]), y)
        .predict_distribution(np.full((2, 2), np.nan))
    )
    assert np.isfinite(F.sf(1.0)).all()
    if not known:
        alone = cs.BoostedHazards(random_state=0).fit(None, y).predict_distribution()
        assert F.sf(1.0) == pytest.approx(np.repeat(alone.sf(1.0), 2), rel=1e-12)
