"""Estimators of interval-censored data: optimality, lifelines, limits that are known, and bad input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import censcore as cs
from censcore.estimators.nonparametric.turnbull import _Likelihood
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError

INF = np.inf
REGRESSIONS = [cs.WeibullRegression, cs.LogNormalRegression, cs.LogLogisticRegression]


def visited(T, visits):
    before = visits < T[:, None]
    lower = np.max(np.where(before, visits, 0.0), axis=1)
    return lower, np.min(np.where(before, INF, visits), axis=1)


def data(n=400, seed=0, exact=0.2):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 2)), columns=["age", "dose"])
    T = np.exp(1 + X.to_numpy() @ [0.5, -0.3] + 0.7 * rng.normal(size=n))
    lower, upper = visited(T, rng.uniform(0.1, 8.0, (n, 5)))
    seen = rng.random(n) < exact
    return X, cs.IntervalCensored(np.where(seen, T, lower), np.where(seen, T, upper))


# ---- Turnbull ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["irregular", "grid", "current status", "exact too", "weights"])
def test_turnbull_satisfies_the_conditions_of_a_maximum(case):
    rng = np.random.default_rng(3)
    n = 300
    T = 3 * rng.weibull(1.5, n)
    visits = rng.uniform(0, 6, (n, 1 if case == "current status" else 5))
    if case == "grid":
        visits = np.round(2 * visits) / 2
    lower, upper = visited(T, visits)
    if case == "exact too":
        lower[:50] = upper[:50] = T[:50]
    weight = rng.integers(0, 4, n).astype(float) if case == "weights" else np.ones(n)
    model = cs.Turnbull().fit(None, cs.IntervalCensored(lower, upper), sample_weight=weight)
    assert model.masses_.sum() == pytest.approx(1)
    # derivatives by brute force: w / P summed over the intervals that hold each maximal intersection
    problem = _Likelihood.of(lower[weight > 0], upper[weight > 0], weight[weight > 0])
    (q, p), (Q, R) = problem.intersections.T, model.intervals_.T
    exact = lower == upper

    def inside(a, b):
        at_zero = (lower == 0)[:, None] & (a == 0)
        start = (a >= lower[:, None]) & ((a < b) | (a > lower[:, None]) | exact[:, None] | at_zero)
        return start & (b <= upper[:, None])

    P = inside(Q, R) @ model.masses_
    gradient = (weight / np.where(weight > 0, P, 1.0)) @ inside(q, p)
    assert gradient.max() <= weight.sum() * (1 + 1e-8)
    np.testing.assert_allclose(
        (weight / np.where(weight > 0, P, 1.0)) @ inside(Q, R), weight.sum(), rtol=1e-4
    )
    assert model.gap_ <= 1e-9 * weight.sum()
    assert model.log_likelihood_ == pytest.approx(weight @ np.log(np.where(weight > 0, P, 1.0)))


def test_turnbull_equals_lifelines():
    from lifelines.fitters.npmle import npmle

    rng = np.random.default_rng(0)
    lower, upper = visited(3 * rng.weibull(1.5, 60), rng.uniform(0.5, 6, (60, 4)))
    model = cs.Turnbull().fit(None, cs.IntervalCensored(lower, upper))
    masses, intervals = npmle(lower, upper, tol=1e-12)
    expected = {tuple(interval): p for interval, p in zip(intervals, masses, strict=True)}
    found = dict(zip(map(tuple, model.intervals_), model.masses_, strict=True))
    assert set(found) <= set(expected)
    for interval, p in expected.items():
        assert found.get(interval, 0.0) == pytest.approx(p, abs=1e-4), interval


@pytest.mark.parametrize("n", [60, 800])
def test_turnbull_of_right_censored_data_is_kaplan_meier(n):
    rng = np.random.default_rng(1)
    T, C = np.round(3 * rng.weibull(1.5, n), 2), np.round(rng.uniform(0, 6, n), 2)
    y, weight = cs.RightCensored(np.minimum(T, C), T <= C), rng.integers(1, 4, n)
    ours, peer = (
        model.fit(None, y, sample_weight=weight).predict_distribution()
        for model in (cs.Turnbull(), cs.KaplanMeier())
    )
    t = np.linspace(0, 6, 121)[None, :]
    np.testing.assert_allclose(ours.sf(t), peer.sf(t), atol=1e-7)


def test_turnbull_needs_no_least_squares(monkeypatch):
    """Those of SciPy may give up; the other steps reach the maximum, too."""
    y, t = data(80)[1], np.linspace(0.2, 8.0, 30)[None]
    expected = cs.Turnbull().fit(None, y).predict_distribution().sf(t)

    def gives_up(A, b):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    found = cs.Turnbull().fit(None, y).predict_distribution().sf(t)
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_weights_count_subjects():
    _, y = data(120)
    weight = np.arange(120) % 3
    often = np.repeat(np.arange(120), weight)
    t = np.linspace(0.1, 6, 40)[None, :]
    for model in (cs.Turnbull(), cs.WeibullRegression(), cs.PiecewiseExponentialRegression([1.0, 3.0])):
        weighted = model.fit(None, y, sample_weight=weight).predict_distribution().sf(t)
        repeated = model.fit(None, y[often]).predict_distribution().sf(t)
        np.testing.assert_allclose(weighted, repeated, atol=1e-5)


def test_turnbull_spreads_mass_or_puts_it_at_the_right():
    y = cs.IntervalCensored([0.0, 2.0, 4.0], [2.0, 4.0, INF])
    right = cs.Turnbull().fit(None, y).predict_distribution()
    np.testing.assert_allclose(right.sf([[1.0, 2.0, 3.0, 4.0, 99.0]])[0], [1, 2 / 3, 2 / 3, 1 / 3, 1 / 3])
    even = cs.Turnbull("uniform").fit(None, y).predict_distribution()
    np.testing.assert_allclose(even.sf([[1.0, 2.0, 3.0, 4.0, 99.0]])[0], [5 / 6, 2 / 3, 1 / 2, 1 / 3, 1 / 3])
    with pytest.raises(InvalidInputError, match="known exactly"):
        cs.Turnbull("uniform").fit(None, cs.IntervalCensored([1.0], [1.0])).predict_distribution()
    nobody = cs.Turnbull().fit(None, cs.IntervalCensored([1.0, 2.0], [INF, INF])).predict_distribution()
    assert nobody.mass_at_infinity()[0] == 1


def test_turnbull_bad_input():
    y = cs.IntervalCensored([0.0, 2.0], [2.0, 4.0], entry=[0.0, 1.0])
    with pytest.raises(UnsupportedOutcomeError, match=r"1 subject \(1\).*WeibullRegression"):
        cs.Turnbull().fit(None, y)
    with pytest.raises(InvalidInputError, match="mass must be"):
        cs.Turnbull("left").fit(None, y)
    rng = np.random.default_rng(0)
    many = cs.IntervalCensored(*visited(rng.exponential(size=500), rng.uniform(0, 3, (500, 3))))
    with pytest.raises(InvalidInputError, match=r"not maximised in 1 iterations.*Raise max_iter or tol"):
        cs.Turnbull(max_iter=1).fit(None, many)


# ---- regressions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", REGRESSIONS)
def test_regressions_equal_lifelines(model):
    import lifelines

    X, y = data()
    ours = model().fit(X, y)
    peer = getattr(lifelines, f"{model.__name__.removesuffix('Regression')}AFTFitter")()
    peer.fit_interval_censoring(X.assign(l=np.maximum(y.lower, 1e-10), u=y.upper), "l", "u")
    np.testing.assert_allclose(ours.estimates()[1], peer.params_.to_numpy(), atol=5e-4)
    np.testing.assert_allclose(ours.standard_errors_, peer.standard_errors_.to_numpy(), rtol=1e-3)
    value = -cs.log_score(y, ours.predict_distribution(X)).sum()
    assert value >= peer.log_likelihood_ - 1e-6


def test_diabetes_data_equal_lifelines():
    import lifelines
    from lifelines.datasets import load_diabetes

    frame = load_diabetes()
    y = cs.IntervalCensored.from_frame(frame, "left", "right")
    t = np.array([5.0, 10.0, 15.0, 25.0])
    peers = {
        cs.WeibullRegression(): lifelines.WeibullFitter(),
        cs.LogNormalRegression(): lifelines.LogNormalFitter(),
        cs.LogLogisticRegression(): lifelines.LogLogisticFitter(),
        cs.PiecewiseExponentialRegression([10.5, 20.5]): lifelines.PiecewiseExponentialFitter([10.5, 20.5]),
    }
    for ours, peer in peers.items():
        F = ours.fit(None, y).predict_distribution()
        peer.fit_interval_censoring(np.maximum(frame.left, 1e-9), frame.right)
        np.testing.assert_allclose(F.sf(t[None, :])[0], peer.survival_function_at_times(t), atol=1e-4)
        assert -cs.log_score(y, F).sum() >= peer.log_likelihood_ - 1e-4


@pytest.mark.parametrize("model", [*REGRESSIONS, cs.PiecewiseExponentialRegression])
@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_no_other_parameters_have_a_higher_likelihood(model, alpha):
    X, y = data(150)
    entry = np.where(np.arange(150) % 2, 0.6 * np.where(np.isfinite(y.upper), y.upper, 0.5), 0.0)
    y = cs.IntervalCensored(y.lower, y.upper, entry=entry)
    fitted = model(alpha=alpha).fit(X, y)
    names, best = fitted.estimates()

    def loss(theta):
        beta, rest = theta[:2], theta[2:]
        Z = X.to_numpy() @ beta
        if model is cs.PiecewiseExponentialRegression:
            F = cs.PiecewiseExponential(fitted.breaks_, np.exp(rest + Z[:, None]))
            return cs.log_score(y, F).sum() + alpha / 2 * beta @ beta
        a = np.exp(rest[1])
        kinds = {
            cs.WeibullRegression: (cs.Weibull(a, np.exp(rest[0] + Z)), a),
            cs.LogNormalRegression: (cs.LogNormal(rest[0] + Z, a), 1 / a),
            cs.LogLogisticRegression: (cs.LogLogistic(a, np.exp(rest[0] + Z)), a),
        }
        F, unit = kinds[model]
        return cs.log_score(y, F).sum() + alpha / 2 * unit**2 * beta @ beta

    found = minimize(loss, best + 0.02, method="BFGS")
    np.testing.assert_allclose(best, found.x, atol=2e-4)
    assert loss(best) <= found.fun + 1e-8
    h, eye = 1e-4, np.eye(len(best))
    hessian = [
        [
            (
                loss(best + h * (a + b))
                - loss(best + h * (a - b))
                - loss(best - h * (a - b))
                + loss(best - h * (a + b))
            )
            / (4 * h**2)
            for a in eye
        ]
        for b in eye
    ]
    np.testing.assert_allclose(fitted.covariance_, np.linalg.inv(hessian), rtol=2e-2, atol=2e-5)
    assert len(names) == len(best)


@pytest.mark.parametrize("model", [*REGRESSIONS, cs.PiecewiseExponentialRegression])
def test_influence_is_the_derivative_by_weights(model):
    X, y = data(80)
    whole = model().fit(X, y)
    parts = whole.coefficient_influence()
    np.testing.assert_allclose(parts.sum(axis=0), 0.0, atol=1e-6)
    options = {"breaks": whole.breaks_} if model is cs.PiecewiseExponentialRegression else {}
    for i in (0, 7):
        weight = np.ones(80)
        weight[i] += 1e-4
        other = model(**options).fit(X, y, sample_weight=weight)
        slope = (other.estimates()[1] - whole.estimates()[1]) / 1e-4
        np.testing.assert_allclose(parts[i], slope, rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize("model", REGRESSIONS)
def test_narrow_intervals_are_exact_times(model):
    X, y = data(200, exact=1.0)
    narrow = cs.IntervalCensored(y.lower * (1 - 1e-6), y.upper * (1 + 1e-6))
    exact, close = (model().fit(X, outcome).estimates()[1] for outcome in (y, narrow))
    np.testing.assert_allclose(close, exact, atol=1e-6)


def test_entries_in_the_likelihood_of_intervals_remove_the_bias():
    rng = np.random.default_rng(5)
    T, entry = 3 * rng.weibull(1.5, 6000), rng.uniform(0, 3, 6000)
    visits = entry[:, None] + np.cumsum(rng.uniform(0.2, 1.5, (6000, 6)), axis=1)
    seen = entry < T
    lower, upper = visited(T[seen], visits[seen])
    lower = np.maximum(lower, entry[seen])
    right = cs.WeibullRegression().fit(None, cs.IntervalCensored(lower, upper, entry=entry[seen]))
    wrong = cs.WeibullRegression().fit(None, cs.IntervalCensored(lower, upper))
    assert right.shape_ == pytest.approx(1.5, abs=0.1)
    assert right.intercept_ == pytest.approx(np.log(3), abs=0.05)
    assert wrong.shape_ > 1.8


@pytest.mark.parametrize("model", REGRESSIONS)
@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([1.0, 2.0], [INF, INF], "No subject has an event"),
        ([0.0, 1.0, 2.0], [4.0, 5.0, INF], "from 2 to 4 in common"),
        ([0.0, 0.0], [0.0, 0.0], "at the largest time, 0"),
        ([0.0, 0.0, 2.0, 3.0], [1.0, 1.5, INF, INF], "no event is found later|not maximised|grows"),
    ],
)
def test_data_without_a_maximum(model, lower, upper, message):
    with pytest.raises(InvalidInputError, match=message):
        model().fit(None, cs.IntervalCensored(lower, upper))


def test_piecewise_exponential_breaks():
    X, y = data(100)
    assert len(cs.PiecewiseExponentialRegression(3).fit(None, y).breaks_) == 3
    assert cs.PiecewiseExponentialRegression(0).fit(X, y).rates_.shape == (1,)
    for breaks, message in [([2.0, 1.0], "ascend"), (1.5, "number of them"), ([0.0], "positive")]:
        with pytest.raises(InvalidInputError, match=message):
            cs.PiecewiseExponentialRegression(breaks).fit(None, y)
    with pytest.raises(InvalidInputError, match="Nobody is followed between 500 and inf"):
        cs.PiecewiseExponentialRegression([500.0]).fit(None, y)
    with pytest.raises(InvalidInputError, match="No subject has an event"):
        cs.PiecewiseExponentialRegression().fit(None, cs.IntervalCensored([1.0], [INF]))


@pytest.mark.parametrize("exact", [1.0, 0.5])
def test_weights_that_are_counts_choose_the_breaks_of_repeated_rows(exact):
    X, y = data(90, exact=exact)
    counts = np.random.default_rng(3).integers(0, 6, 90)
    counts[np.argsort(y.lower)[:30]] *= 5  # early times weigh more
    rows = np.repeat(np.arange(90), counts)
    model = cs.PiecewiseExponentialRegression(4)
    weighted, repeated = clone(model).fit(X, y, counts), clone(model).fit(X.iloc[rows], y[rows])
    assert weighted.breaks_.tolist() == repeated.breaks_.tolist()
    assert weighted.breaks_.tolist() != clone(model).fit(X, y).breaks_.tolist()
    np.testing.assert_allclose(weighted.estimates()[1], repeated.estimates()[1], rtol=1e-6)


def test_predictions_follow_the_library_of_the_outcome():
    torch = pytest.importorskip("torch")
    y = data(100)[1].like(torch.ones(1, dtype=torch.float32))
    for model in (cs.Turnbull(), cs.LogNormalRegression(), cs.PiecewiseExponentialRegression(2)):
        assert model.fit(None, y).predict_distribution().sf(torch.tensor([1.0])).dtype == torch.float32
