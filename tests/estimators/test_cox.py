"""Cox regression against lifelines and scikit-survival, and data that have no answer."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import ProportionalHazards
from censcore.estimators import CoxRegression
from censcore.estimators.regression.cox_equations import SCORES
from censcore.estimators.risk_sets import RiskSets
from censcore.exceptions import InvalidInputError, NotFittedError


def tied_data(n=300, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([1.0, 50.0, 0.02])[:p] + 3
    risk = np.exp(X @ np.array([0.7, -0.01, 10.0])[:p])
    time = np.ceil(8 * rng.exponential(1 / risk) / np.median(1 / risk)) / 2
    c = np.ceil(30 * rng.uniform(size=n)) / 2
    return X, cs.RightCensored(np.minimum(time, c), time <= c)


def structured(y):
    return np.array(list(zip(y.event, y.time, strict=True)), dtype=[("event", bool), ("time", float)])


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_equals_scikit_survival(ties, alpha):
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, y = tied_data()
    model = CoxRegression(alpha=alpha, ties=ties).fit(X, y)
    peer = linear_model.CoxPHSurvivalAnalysis(alpha=alpha, ties=ties, tol=1e-13, n_iter=200)
    peer.fit(X, structured(y))
    np.testing.assert_allclose(model.coef_, peer.coef_, rtol=1e-8)
    times = np.unique(y.time)
    # its survival functions are powers of a rounded baseline survival; the hazards keep their digits
    hazard = peer.predict_cumulative_hazard_function(X[:20], return_array=True)
    np.testing.assert_array_equal(peer.unique_times_, times)
    if ties == "efron":  # its baseline is Breslow's, at Efron's coefficients
        return
    distribution = model.predict_distribution(X[:20])
    np.testing.assert_allclose(distribution.logsf(times[None, :]), -hazard, rtol=1e-8, atol=1e-12)


def test_coefficients_equal_those_of_lifelines_also_with_weights():
    """Whose baseline is Breslow's, at Efron's coefficients."""
    lifelines = pytest.importorskip("lifelines")
    from lifelines.datasets import load_rossi

    frame = load_rossi()
    X, y = frame.drop(columns=["week", "arrest"]), cs.RightCensored(frame.week, frame.arrest)
    model = CoxRegression(ties="efron").fit(X, y)
    peer = lifelines.CoxPHFitter().fit(frame, "week", "arrest")
    np.testing.assert_allclose(model.coef_, peer.params_, atol=1e-7)

    frame["weight"] = np.random.default_rng(0).integers(1, 4, len(frame))
    weighted = CoxRegression(ties="efron").fit(X, y, sample_weight=frame.weight)
    peer = lifelines.CoxPHFitter().fit(frame, "week", "arrest", weights_col="weight")
    np.testing.assert_allclose(weighted.coef_, peer.params_, atol=1e-7)


def test_efrons_baseline_by_hand():
    """Two of three at risk fail at time 1: a jump of 1/3 + 1/2, and with risks r of 1/S + 1/(S - E/2)."""
    y = cs.RightCensored([1.0, 1.0, 2.0], [1, 1, 0])
    assert CoxRegression(ties="efron").fit(None, y).baseline_hazard_ == pytest.approx([1 / 3 + 1 / 2])
    X, y = tied_data(n=40)
    model = CoxRegression(ties="efron").fit(X, y)
    r = np.exp((X - model.center_) @ model.coef_)
    t = model.baseline_times_[2]
    failed, S = y.event & (y.time == t), r[y.time >= t].sum()
    d, E = failed.sum(), r[failed].sum()
    assert d > 1
    expected = sum(1 / (S - k / d * E) for k in range(d))
    assert np.diff(model.baseline_hazard_)[1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("ties", ["product-limit", "breslow"])
def test_count_weights_are_repeated_subjects(ties):
    X, y = tied_data(n=120)
    count = np.random.default_rng(1).integers(0, 4, 120)
    repeated = np.repeat(np.arange(120), count)
    a = CoxRegression(ties=ties).fit(X, y, sample_weight=count)
    b = CoxRegression(ties=ties).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    np.testing.assert_allclose(a.covariance_, b.covariance_, rtol=1e-8)
    np.testing.assert_allclose(a.baseline_hazard_, b.baseline_hazard_, rtol=1e-9)
    scaled = CoxRegression(ties=ties).fit(X, y, sample_weight=0.01 * count)
    np.testing.assert_allclose(a.coef_, scaled.coef_, rtol=1e-9)


def test_without_covariates_it_is_kaplan_meier_or_nelson_aalen():
    y = cs.RightCensored([1.0, 2.0, 2.0, 3.0, 4.0], [1, 1, 0, 1, 0])
    F = CoxRegression().fit(None, y).predict_distribution()
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    t = [[1.0, 2.0, 3.5]]
    np.testing.assert_allclose(F.sf(t), curve.sf(t))
    hazard = np.cumsum([1 / 5, 1 / 4, 1 / 2])
    F = CoxRegression(ties="efron").fit(None, y).predict_distribution()
    np.testing.assert_allclose(F.sf(t)[0], np.exp(-hazard))
    np.testing.assert_allclose(F.mass_at_infinity(), np.exp(-hazard[-1]))


def test_data_without_events_give_distributions_without_events():
    X, y = tied_data(n=30)
    model = CoxRegression().fit(X, cs.RightCensored(y.time, np.zeros(30)))
    assert not model.coef_.any()
    np.testing.assert_array_equal(model.predict_distribution(X).mass_at_infinity(), np.ones(30))


def test_predictions_do_not_depend_on_units_or_offsets_of_columns():
    X, y = tied_data()
    other = X * np.array([1e-6, 1e3, 10.0]) + np.array([5.0, -1e5, 300.0])
    a, b = CoxRegression().fit(X, y), CoxRegression().fit(other, y)
    t = np.array([[1.0, 4.0, 10.0]])
    np.testing.assert_allclose(
        a.predict_distribution(X).sf(t), b.predict_distribution(other).sf(t), rtol=1e-7
    )


def test_data_without_an_answer_are_refused_and_a_penalty_gives_one():
    X, y = tied_data(n=200, p=1)
    twice = np.column_stack([X, 2 * X + 1])
    group = (np.arange(200) < 30).astype(float)
    event = np.where(group == 1, False, y.event)
    separated = np.column_stack([X, group])
    with pytest.raises(InvalidInputError, match=r"grows without bound in \['column 1'\]"):
        CoxRegression().fit(separated, cs.RightCensored(y.time, event))
    few = cs.RightCensored(y.time[:60], np.arange(60) == X[:60, 0].argmax())
    with pytest.raises(InvalidInputError, match="grows without bound"):
        CoxRegression().fit(X[:60], few)
    assert np.isfinite(CoxRegression(alpha=1.0).fit(twice, y).coef_).all()
    mild = CoxRegression(alpha=1.0).fit(separated, cs.RightCensored(y.time, event))
    assert mild.coef_[1] < -1


def test_large_risks_do_not_overflow():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(500, 1)) * 300
    time = rng.exponential(np.exp(-0.01 * X[:, 0]))
    X[0] = 90_000.0
    model = CoxRegression().fit(X, cs.RightCensored(time, np.ones(500)))
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_distribution(X).sf(np.median(time))).all()


def test_estimates_the_distribution_of_censoring_with_events_first_at_ties():
    X, y = tied_data(n=200)
    distribution = cs.Censoring(CoxRegression()).fit(X, y).predict_distribution(X)
    assert isinstance(distribution, ProportionalHazards)
    flipped = CoxRegression().fit(X, y.flip()).predict_distribution(X)
    np.testing.assert_array_equal(distribution.sf(3.0), flipped.sf(3.0))
    folds = cs.Censoring(CoxRegression(), cv=3).fit_predict_distribution(X, y)
    assert len(folds) == 200
    assert np.isfinite(folds.sf_left(y.time)).all()


def test_shapes_and_states():
    X, y = tied_data(n=50)
    with pytest.raises(NotFittedError, match="fit"):
        CoxRegression().predict_distribution(X)
    with pytest.raises(InvalidInputError, match=r"must be one of 'product-limit', 'efron'.*got 'exact'"):
        CoxRegression(ties="exact").fit(X, y)
    with pytest.raises(InvalidInputError, match="got 2"):
        CoxRegression().fit(X, cs.RightCensored(np.ones((50, 2)), np.ones((50, 2))))
    assert len(CoxRegression().fit(X, y).predict_distribution(X[:7])) == 7
    torch = pytest.importorskip("torch")
    single = CoxRegression().fit(X, y.like(torch.zeros(1))).predict_distribution(X)
    assert single.sf(3.0).dtype == torch.float32


def test_risks_that_underflow_lie_outside_the_domain():
    """A first step that goes too far must be taken back, not end in NaN."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(50, 1))
    sets = RiskSets(rng.random(50), np.ones(50, dtype=bool), np.ones(50))
    for ties in ("product-limit", "efron", "breslow"):
        assert not SCORES[ties](sets, Z[sets.order], np.array([5000.0])).valid


@pytest.mark.parametrize("model", [cs.CoxRegression, cs.WeibullRegression])
def test_a_penalty_beyond_all_digits_is_an_error(model):
    y = cs.RightCensored([1.0, 2.0, 3.0], [1, 1, 0])
    with pytest.raises(InvalidInputError, match=r"alpha, unless .* must be .* at most 1e\+100; got 1.7e"):
        model(alpha=1.7e308).fit([[0.0], [1.0], [0.5]], y)
