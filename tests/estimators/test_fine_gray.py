"""Fine and Gray's regression: another route to its numbers, and its influence function."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError


def sample(n=150, seed=0, step=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    T, C = rng.exponential(np.exp(-0.5 * X[:, 0])), rng.uniform(0, 3, n)
    kind = 1 + (rng.random(n) < 0.4)
    time = np.minimum(T, C)
    time = np.ceil(time / step) * step if step else time
    return X, cs.CompetingRisks(time, np.where(T <= C, kind, 0)), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("step", [0.0, 0.2])
def test_it_is_a_weighted_cox_regression_of_subjects_who_stay(step):
    """Geskus' way: a subject with another event at y comes back after each time, with less weight."""
    X, y, w = sample(step=step)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y, w).predict_distribution()
    G = lambda t: float(C.sf_left(t)[0])  # noqa: E731
    cuts = np.append(np.unique(y.time[y.causes == 0]), y.time.max() + 1)
    rows = []  # subject, entry, time, event, weight
    for i, (t, cause) in enumerate(zip(y.time, y.causes, strict=True)):
        rows.append((i, 0.0, t, cause == 1, w[i]) if cause < 2 else (i, 0.0, t, False, w[i]))
        if cause == 2:
            ends = np.unique(np.append(cuts[cuts > t], y.time[y.causes == 1][y.time[y.causes == 1] > t]))
            for start, end in zip(np.append(t, ends[:-1]), ends, strict=True):
                if (share := G(end) / G(t)) > 0:
                    rows.append((i, start, end, False, w[i] * share))
    subject, entry, time, event, weight = (np.array(column) for column in zip(*rows, strict=True))
    expanded = cs.RightCensored(time, event, entry=entry)
    expected = cs.CoxRegression(ties="breslow").fit(X[subject], expanded, weight)
    found = cs.FineGray(1).fit(X, y, w)
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-8)
    t = np.array([[0.3, 0.9, 1.7]])
    np.testing.assert_allclose(
        found.predict_distribution(X[:4]).cdf(t), expected.predict_distribution(X[:4]).cdf(t), rtol=1e-8
    )
    assert (found.predict_distribution(X[:4]).mass_at_infinity() > 0.05).all()


@pytest.mark.parametrize("step", [0.0, 0.2])
def test_influence_is_the_derivative_by_the_weights(step):
    """Of coefficients and of risks, with the estimation of G."""
    X, y, w = sample(100, 1, step)
    model = cs.FineGray(2).fit(X, y, w)
    at = (model.baseline_times_ <= 1.0).astype(float)[:, None]
    found = np.column_stack([model.coefficient_influence(), model.influence(at)])
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-10)

    def estimates(weight):
        fit = cs.FineGray(2).fit(X, y, weight)
        hazard = fit.baseline_hazard_[np.searchsorted(fit.baseline_times_, 1.0, side="right") - 1]
        return np.append(fit.coef_, -hazard * np.exp((model.center_ - fit.center_) @ fit.coef_))

    for i in range(0, 100, 7):
        step_i = 1e-4 * w[i] * (np.arange(100) == i)
        change = (estimates(w + step_i) - estimates(w - step_i)) / 2e-4
        np.testing.assert_allclose(found[i], change, atol=1e-6 * np.abs(found).max())
    np.testing.assert_allclose(model.covariance_, found[:, :2].T @ found[:, :2], rtol=1e-12)


def test_without_other_causes_it_is_cox_regression():
    X, y, w = sample()
    one = cs.CompetingRisks(y.time, (y.causes == 1).astype(int), n_causes=1)
    found, cox = cs.FineGray().fit(X, one, w), cs.CoxRegression(ties="breslow").fit(X, one.any_cause(), w)
    np.testing.assert_allclose(found.coef_, cox.coef_, rtol=1e-10)
    np.testing.assert_allclose(found.baseline_hazard_, cox.baseline_hazard_, rtol=1e-10)
    np.testing.assert_allclose(found.covariance_, cox.robust_covariance(), rtol=1e-8)


def test_without_covariates_it_follows_aalen_johansen():
    _, y, _ = sample(2000)
    t = np.array([[0.3, 0.9, 1.7]])
    found = cs.FineGray(2).fit(None, y).predict_distribution().cdf(t)
    expected = cs.AalenJohansen().fit(None, y).predict_distribution().cause(2).cdf(t)
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_it_is_compared_cause_by_cause():
    X, y, _ = sample(300)
    train, test = np.arange(150), np.arange(150, 300)
    F = cs.FineGray(1).fit(X[train], y[train]).predict_distribution(X[test])
    pooled = cs.AalenJohansen().fit(None, y[train]).predict_distribution().cause(1)
    found = cs.compare(
        {"fine-gray": F, "pooled": pooled}, y[test].cause(1), cs.Censoring(cs.KaplanMeier()), times=[1.0],
        scores="brier_score", reference=None,
    ).frame()  # fmt: skip
    found = found[found["score"] == "brier_score"].set_index("model")
    assert found.loc["fine-gray", "mean"] < found.loc["pooled", "mean"]


def test_an_outcome_of_one_cause_tells_the_cause():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(150, 2)), cs.CompetingRisks(rng.exponential(size=150), rng.integers(0, 3, 150))
    whole, one = cs.FineGray(cause=2).fit(X, y), cs.FineGray().fit(X, y.cause(2))
    np.testing.assert_array_equal(one.coef_, whole.coef_)
    np.testing.assert_array_equal(one.standard_errors_, whole.standard_errors_)
    comparison = cs.cross_validate({"fine-gray": cs.FineGray()}, X, y.cause(2), cv=3, scores="crps")
    assert comparison.models == ["fine-gray", "aalen-johansen"]
    with pytest.raises(cs.exceptions.FoldError, match="Judge a model of one cause by the outcome"):
        cs.cross_validate({"fine-gray": cs.FineGray()}, X, y, cv=3)


def test_what_it_does_not_take_is_named():
    X, y, _ = sample(30)
    with pytest.raises(InvalidInputError, match="cause"):
        cs.FineGray(3).fit(X, y)
    with pytest.raises(InvalidInputError, match="events of cause 1"):
        cs.FineGray(1).fit(X, y, np.where(y.causes == 1, 0.0, 1.0))


def late_sample(n=120):
    """With entries and a column of strata, all on a grid."""
    X, y, w = sample(n, 3, 0.1)
    rng = np.random.default_rng(3)
    entry = np.floor(np.maximum(rng.uniform(-1, 1, n), 0) * y.time * 10) / 10
    entry = np.where(entry < y.time, entry, 0.0)
    return np.column_stack([X, rng.integers(0, 2, n)]), y, entry, w


@pytest.mark.parametrize(("late", "own"), [(False, True), (True, False), (True, True)])
def test_influence_goes_through_the_entries_and_the_strata(late, own):
    """The derivative by the weights, with the estimation of both curves of each stratum."""
    X, y, entry, w = late_sample()
    y = cs.CompetingRisks(y.time, y.causes, entry=entry if late else None)

    def fitted(weight):
        return cs.FineGray(1, strata=2 if own else None).fit(X, y, weight)

    model = fitted(w)
    at = model.baseline_times_ <= 0.8
    if own:
        at &= model.baseline_strata_ == 1
    found = np.column_stack([model.coefficient_influence(), model.influence(at[:, None].astype(float))])
    np.testing.assert_allclose(found.sum(axis=0), 0.0, atol=1e-10)

    def estimates(weight):
        fit = fitted(weight)
        hazard = fit.baseline_hazard_[at].max()
        return np.append(fit.coef_, -hazard * np.exp((model.center_ - fit.center_) @ fit.coef_))

    for i in range(0, len(w), 9):
        step = 1e-4 * w[i] * (np.arange(len(w)) == i)
        change = (estimates(w + step) - estimates(w - step)) / 2e-4
        np.testing.assert_allclose(found[i], change, atol=1e-6 * np.abs(found).max())


@pytest.mark.parametrize("late", [False, True])
def test_weights_are_copies_and_one_stratum_is_none(late):
    X, y, entry, w = late_sample()
    y = cs.CompetingRisks(y.time, y.causes, entry=entry if late else None)
    rows = np.repeat(np.arange(len(w)), w.astype(int))
    weighted, copied = cs.FineGray(strata=2).fit(X, y, w), cs.FineGray(strata=2).fit(X[rows], y.take(rows))
    np.testing.assert_allclose(weighted.coef_, copied.coef_, rtol=1e-10)
    np.testing.assert_allclose(weighted.baseline_hazard_, copied.baseline_hazard_, rtol=1e-10)
    X[:, 2] = 7
    one, none = cs.FineGray(strata=2).fit(X, y, w), cs.FineGray().fit(X[:, :2], y, w)
    np.testing.assert_allclose(one.coef_, none.coef_, rtol=1e-10)
    np.testing.assert_allclose(one.covariance_, none.covariance_, rtol=1e-9)
    np.testing.assert_array_equal(one.baseline_times_, none.baseline_times_)
    F = one.predict_distribution(X[:3])
    np.testing.assert_allclose(F.cdf(0.9), none.predict_distribution(X[:3, :2]).cdf(0.9), rtol=1e-10)


def test_entries_do_not_bias_it():
    """The coefficient and the incidence are those of the same subjects followed from the start."""
    rng = np.random.default_rng(0)
    n = 20_000
    x = rng.integers(0, 2, n).astype(float)
    p = 1 - np.exp(-0.5 * np.exp(0.7 * x))  # P(cause 1), and its subdistribution hazard ratio is exp(0.7)
    first = rng.random(n) < p
    u = rng.random(n)
    T = np.where(first, -np.log(1 + np.log(1 - u * p) / (0.5 * np.exp(0.7 * x))), rng.exponential(1.0, n))
    C, E = rng.uniform(0.5, 3.0, n), rng.uniform(0.0, 1.0, n)
    time, cause = np.minimum(T, C), np.where(T <= C, 2 - first, 0)
    seen = time > E
    y = cs.CompetingRisks(time[seen], cause[seen], entry=E[seen])
    model = cs.FineGray(1).fit(x[seen, None], y)
    assert abs(model.coef_[0] - 0.7) < 3 * model.standard_errors_[0]
    assert model.standard_errors_[0] < 0.06
    expected = 1 - np.exp(-0.5 * (1 - np.exp(-1.0)) * np.exp([0.0, 0.7]))
    assert model.predict_distribution([[0.0], [1.0]]).cdf(1.0) == pytest.approx(expected, abs=0.02)


def test_a_time_at_which_everybody_has_just_entered_is_named():
    """Nothing is known of how long those with another event before would have been followed."""
    time, entry = np.array([1.0, 1.5, 2.0, 4.0, 5.0, 6.0]), np.array([0.0, 0.0, 0.0, 3.0, 3.0, 3.0])
    y = cs.CompetingRisks(time, [2, 1, 1, 1, 0, 1], entry=entry)
    with pytest.raises(InvalidInputError, match=r"unknown for 1 subject \(0\).*y\.after\(s\)"):
        cs.FineGray(1).fit(np.arange(6.0)[:, None] % 3, y)
