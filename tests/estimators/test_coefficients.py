"""Standard errors and tables of the regressions against lifelines, by model and robust."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import censcore as cs
from censcore.exceptions import InvalidInputError, NotFittedError

lifelines = pytest.importorskip("lifelines")
pd = pytest.importorskip("pandas")

EXACT = {"fit_options": {"precision": 1e-12}}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(300, 2)) * [1.0, 20.0] + [0.0, 50.0], columns=["dose", "age"])
    T = rng.weibull(1.4, 300) * np.exp(-X.to_numpy() @ [0.5, -0.01])
    C = rng.exponential(1.5, size=300)
    groups, weight = rng.integers(0, 60, 300), rng.uniform(0.2, 3.0, 300)
    return X, cs.RightCensored(np.minimum(T, C), T <= C), groups, weight


def frame(data, **columns):
    X, y, _, _ = data
    return X.assign(t=y.time, e=y.event, **columns)


def errors(covariance):
    return np.sqrt(np.diag(covariance))


def test_cox_equals_lifelines(data):
    X, y, groups, weight = data
    model = cs.CoxRegression().fit(X, y)
    peer = lifelines.CoxPHFitter().fit(frame(data), "t", "e", **EXACT)
    np.testing.assert_allclose(model.coef_, peer.params_, rtol=1e-7)
    np.testing.assert_allclose(model.standard_errors_, peer.standard_errors_, rtol=1e-7)
    np.testing.assert_allclose(model.covariance_, peer.variance_matrix_, rtol=1e-7, atol=1e-9)
    table = model.summary(0.95).to_frame()
    theirs = ["coef", "exp(coef)", "se(coef)", "z", "p", "coef lower 95%", "coef upper 95%"]
    np.testing.assert_allclose(table, peer.summary[theirs], rtol=1e-6)
    assert list(table.index) == ["dose", "age"]

    robust = lifelines.CoxPHFitter().fit(frame(data), "t", "e", robust=True, **EXACT)
    np.testing.assert_allclose(errors(model.robust_covariance()), robust.standard_errors_, rtol=1e-7)
    clustered = lifelines.CoxPHFitter().fit(frame(data, g=groups), "t", "e", cluster_col="g", **EXACT)
    np.testing.assert_allclose(errors(model.robust_covariance(groups)), clustered.standard_errors_, rtol=1e-7)
    # which takes the normal distribution, whatever the number of groups
    ratio = np.ptp(model.confidence_interval(groups=groups), axis=1) / np.ptp(
        clustered.confidence_intervals_.to_numpy(), axis=1
    )
    assert ((ratio > 1) & (ratio < 1.2)).all()
    weighted = cs.CoxRegression().fit(X, y, sample_weight=weight)
    theirs = lifelines.CoxPHFitter()
    theirs.fit(frame(data, w=weight), "t", "e", weights_col="w", robust=True, **EXACT)
    np.testing.assert_allclose(errors(weighted.robust_covariance()), theirs.standard_errors_, rtol=1e-7)


def test_efron_standard_errors_equal_those_of_lifelines_with_ties():
    from lifelines.datasets import load_rossi

    data = load_rossi()
    X, y = data.drop(columns=["week", "arrest"]), cs.RightCensored(data.week, data.arrest)
    peer = lifelines.CoxPHFitter().fit(data, "week", "arrest", **EXACT)
    model = cs.CoxRegression(ties="efron").fit(X, y)
    np.testing.assert_allclose(model.standard_errors_, peer.standard_errors_, rtol=1e-6)
    # few ties: the default is close
    np.testing.assert_allclose(
        cs.CoxRegression().fit(X, y).standard_errors_, peer.standard_errors_, rtol=2e-2
    )


def test_weibull_equals_lifelines(data):
    X, y, groups, _ = data
    model = cs.WeibullRegression().fit(X, y)
    order = [("lambda_", "dose"), ("lambda_", "age"), ("lambda_", "Intercept"), ("rho_", "Intercept")]
    peer = lifelines.WeibullAFTFitter().fit(frame(data), "t", "e")
    np.testing.assert_allclose(model.standard_errors_, peer.standard_errors_[order], rtol=1e-3)
    table = model.summary().to_frame()
    assert list(table.index) == ["dose", "age", "intercept", "log shape"]
    np.testing.assert_allclose(table.coef, peer.params_[order], rtol=1e-3)
    theirs = lifelines.WeibullAFTFitter().fit(frame(data), "t", "e", robust=True)
    np.testing.assert_allclose(errors(model.robust_covariance()), theirs.standard_errors_[order], rtol=1e-3)
    by_subject = model.robust_covariance(np.arange(300))
    np.testing.assert_allclose(by_subject, model.robust_covariance())
    assert not np.allclose(model.robust_covariance(groups), by_subject)


def test_weibull_influence_is_the_derivative_by_the_weight(data):
    X, y, _, weight = data

    def estimates(w):
        model = cs.WeibullRegression(alpha=2.0).fit(X, y, sample_weight=w)
        return np.append(model.coef_, [model.intercept_, np.log(model.shape_)])

    found = cs.WeibullRegression(alpha=2.0).fit(X, y, sample_weight=weight).coefficient_influence()
    for i in (0, 17, 250):
        step = 1e-4 * weight[i] * (np.arange(300) == i)
        change = (estimates(weight + step) - estimates(weight - step)) / 2e-4
        np.testing.assert_allclose(found[i], change, rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("model", [cs.CoxRegression(), cs.WeibullRegression()])
def test_count_weights_are_repeated_subjects(data, model):
    X, y, _, _ = data
    count = np.random.default_rng(1).integers(0, 4, 300)
    again = np.repeat(np.arange(300), count)
    a = type(model)().fit(X, y, sample_weight=count)
    b = type(model)().fit(X.iloc[again], y[again])
    np.testing.assert_allclose(a.standard_errors_, b.standard_errors_, rtol=1e-6)


def test_intervals_cover():
    """95 % intervals of both kinds, with large ties."""
    hits = np.zeros((200, 2))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(150, 1))
        hazard, T = 0.3 * np.exp(x[:, 0]), np.full(150, 5.0)
        for t in (4.0, 3.0, 2.0, 1.0):
            T = np.where(rng.random(150) < -np.expm1(-hazard), t, T)
        model = cs.CoxRegression().fit(x, cs.RightCensored(T, T < 5))
        for j, robust in enumerate((False, True)):
            low, high = model.confidence_interval(robust=robust)[0]
            hits[seed, j] = low <= 1.0 <= high
    assert (np.abs(hits.mean(axis=0) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 200)).all()


def test_clustered_intervals_use_students_t_and_the_factor_of_few_groups(data):
    X, y, _, _ = data
    model, g = cs.CoxRegression().fit(X, y), 12
    groups = np.arange(300) % g
    psi = np.zeros((g, len(model.coef_)))
    np.add.at(psi, groups, model.coefficient_influence())
    V = (psi**2).sum(axis=0)
    nu = np.minimum(2 * V**2 / (psi**4).sum(axis=0), g - 1)
    table = model.summary(0.9, groups=groups)
    np.testing.assert_allclose(table.standard_error, np.sqrt(V), rtol=1e-12)  # as R has it
    width = student.ppf(0.95, nu) * np.sqrt(V * g / (g - 1))
    np.testing.assert_allclose(table.upper - model.coef_, width, rtol=1e-10)
    np.testing.assert_allclose(table.p, 2 * student.sf(np.abs(model.coef_) / np.sqrt(V * g / (g - 1)), nu))
    empty = np.append(np.ones(300), np.zeros(40))  # groups of weight zero do not count
    again = cs.CoxRegression().fit(pd.concat([X, X[:40]]), y.concat([y, y[:40]]), sample_weight=empty)
    more = again.summary(0.9, groups=np.append(groups, 100 + np.arange(40)))
    np.testing.assert_allclose(more.upper, table.upper, rtol=1e-9)
    with pytest.raises(InvalidInputError, match="groups: got one group of all 300 subjects"):
        model.summary(groups=np.ones(300))


@pytest.mark.slow
def test_clustered_intervals_cover_with_forty_groups():
    """Of a covariate of the group, which has the fewest degrees of freedom; the truth is that of many."""
    rng, g, hits = np.random.default_rng(0), 40, np.zeros(2)
    for _ in range(300):
        u, x = rng.normal(size=(2, g)).repeat(10, axis=1)
        T, C = rng.exponential(size=10 * g) * np.exp(-0.5 * x + 0.7 * u), rng.uniform(0.5, 4.0, 10 * g)
        groups = np.arange(g).repeat(10)
        model = cs.CoxRegression().fit(x[:, None], cs.RightCensored(np.minimum(T, C), T <= C))
        low, high = model.confidence_interval(groups=groups)[0]
        narrow = norm.ppf(0.975) * np.sqrt(model.robust_covariance(groups)[0, 0])
        hits += [low <= 0.3995 <= high, abs(model.coef_[0] - 0.3995) <= narrow]
    covered, before = hits / 300
    assert covered > before
    assert abs(covered - 0.935) < 3.5 * np.sqrt(0.935 * 0.065 / 300)


def test_p_values_are_never_printed_as_zero():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 1))
    y = cs.RightCensored(rng.exponential(np.exp(-3 * x[:, 0])), np.ones(3000))
    table = cs.CoxRegression().fit(x, y).summary()
    assert table.p[0] > 0
    assert table.z[0] > 40
    assert norm.sf(table.z[0]) == 0
    assert "<1e-16" in str(table)
    assert "column 0" in str(table)


def test_bad_arguments_are_named(data):
    X, y, _, _ = data
    with pytest.raises(NotFittedError):
        cs.CoxRegression().summary()
    model = cs.CoxRegression().fit(X, y)
    with pytest.raises(InvalidInputError, match="level: got 95, expected"):
        model.summary(95)
    with pytest.raises(InvalidInputError, match=r"one label per subject of fit, \(300,\); got \(3,\)"):
        model.robust_covariance([1, 2, 3])
