"""Stacks: weights by held-out scores and priors, every kind of outcome, scikit-learn's conventions."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.estimators.stacking import stacking
from censcore.estimators.stacking.stacking_members import MemberDraws, _Forecast
from censcore.estimators.stacking.stacking_subjects import StackSubjects, stack_folds
from censcore.estimators.stacking.stacking_weights import (
    LogLosses,
    QuadraticLosses,
    shares,
    stacked_weights,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.simulation import LogNormalScenario, WeibullScenario

COX, KM, WEIBULL = cs.CoxRegression(alpha=1.0), cs.KaplanMeier(), cs.WeibullRegression(alpha=1.0)
DATA = WeibullScenario("uniform").sample(300, seed=0)
JOINT = LogNormalScenario(k=2, censoring="uniform").sample(300, seed=0)


def quadratic(n=200, seed=0, members=3):
    """Losses of mixtures of random ensembles under the energy score of one uncensored time."""
    rng = np.random.default_rng(seed)
    y, z = rng.normal(size=n), rng.normal(rng.normal(size=(1, members, 1)), 1.0, (n, members, 30))
    a = np.abs(z - y[:, None, None]).mean(axis=2)
    D = np.abs(z[:, :, None, :, None] - z[:, None, :, None, :]).mean(axis=(3, 4))
    own = np.einsum("ijj->ij", D)
    return a, D, QuadraticLosses(a - own / 2, D - (own[:, :, None] + own[:, None]) / 2, np.ones(n))


def test_losses_of_mixtures_are_the_energy_scores_of_mixtures():
    a, D, losses = quadratic()
    w = np.array([0.2, 0.5, 0.3])
    whole = a @ w - 0.5 * np.einsum("j,ijk,k->i", w, D, w)
    np.testing.assert_allclose(losses.s @ w - 0.5 * np.einsum("j,ijk,k->i", w, losses.D, w), whole)


@pytest.mark.parametrize("kind", ["quadratic", "log"])
def test_the_best_share_of_two_has_the_smallest_loss(kind):
    losses = quadratic()[2]
    if kind == "log":
        losses = LogLosses(np.random.default_rng(0).exponential(size=(300, 3)), np.ones(300))
    first, second = np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.4, 0.6])

    def loss(q):
        w = q * first + (1 - q) * second
        if kind == "log":
            return -np.log(losses.f @ w).mean()
        return (losses.s @ w - 0.5 * np.einsum("j,ijk,k->i", w, losses.D, w)).mean()

    best, error = losses.along(first, second)
    assert 0 < error < 1
    assert loss(best) <= min(loss(best - 0.01), loss(best + 0.01))


def test_the_error_of_the_best_share_is_its_spread_over_samples():
    rng, shares, errors = np.random.default_rng(0), (), ()
    for _ in range(300):
        f = np.abs(rng.normal(size=(400, 2))) + 0.1
        share, error = LogLosses(-np.log(f), np.ones(400)).along(*np.eye(2))
        shares, errors = (*shares, share), (*errors, error)
    assert abs(np.std(shares) / np.sqrt(np.mean(errors)) - 1) < 0.15


def test_a_subject_that_two_members_think_impossible_decides_nothing_between_them():
    s = np.random.default_rng(0).exponential(size=(50, 3))
    some = LogLosses(s[1:], np.ones(49)).along(*np.eye(3)[:2])
    s[0, :2] = np.inf
    found = LogLosses(s, np.ones(50))
    np.testing.assert_allclose(found.along(*np.eye(3)[:2])[0], some[0], atol=1e-4)
    assert stacked_weights(found, [0, 1, 2], [], 9.0).sum() == pytest.approx(1.0)


def test_baselines_share_as_members_and_baselines_do_where_neither_is_expected_ahead():
    losses = quadratic(members=2)[2]
    expected = stacked_weights(losses, [0], [1], 200.0)
    np.testing.assert_allclose(stacked_weights(losses, [], [0, 1], 9.0), expected)
    assert (np.abs(expected - 0.5) > 0.01).all()


def test_the_weight_of_the_network_is_a_posterior_mean():
    rng = np.random.default_rng(0)
    D = np.broadcast_to(np.array([[1.0, 1.1], [1.1, 1.0]]), (400, 2, 2))

    def weight(gain, noise, events):
        a = 1 + np.stack([np.zeros(400), -gain + noise * rng.normal(size=400)], axis=1)
        return stacked_weights(QuadraticLosses(a, D, np.ones(400)), [0], [1], events)[0]

    # subjects that agree decide, however many events there are
    for events in (50, 5000):
        assert weight(0.1, 0.01, events) == pytest.approx(0.0, abs=0.01)  # better than any mixture
        assert weight(0.0, 0.01, events) == pytest.approx(0.5, abs=0.02)  # as good, and different
        assert weight(-0.1, 0.01, events) == pytest.approx(1.0, abs=0.01)
    # the number of events decides where they do not
    assert np.mean([weight(0.0, 30.0, 50) for _ in range(20)]) == pytest.approx(0.2, abs=0.05)
    assert np.mean([weight(0.0, 30.0, 5000) for _ in range(20)]) == pytest.approx(0.96, abs=0.05)


def test_the_posterior_is_that_of_quadrature():
    rng = np.random.default_rng(2)
    a = 1 + 0.3 * rng.normal(size=(300, 2))
    D = np.broadcast_to(np.array([[1.0, 1.1], [1.1, 1.0]]), (300, 2, 2))
    q = np.linspace(-2, 3, 5001)
    scores = a[:, :1] * q + a[:, 1:] * (1 - q) - 0.5 * (q**2 + (1 - q) ** 2 + 2.2 * q * (1 - q))
    lowest = q[scores.mean(axis=0).argmin()]
    slopes = (scores[:, 2001] - scores[:, 2000]) / (q[1] - q[0])  # at q = 0
    error = slopes.std(ddof=1) / np.sqrt(300) / 0.2
    density = np.exp(-(((q - lowest) / error) ** 2) / 2 - ((q - 300 / 500) / 0.35) ** 2 / 2)
    expected = float((q * density).sum() / density.sum())
    assert 0 < expected < 1
    assert stacked_weights(QuadraticLosses(a, D, np.ones(300)), [0], [1], 300.0)[0] == pytest.approx(
        expected, abs=1e-3
    )


def test_shares_are_exact_in_expectation():
    found = np.mean([shares(3, [0.62, 0.3, 0.08], (i + 0.5) / 1000) for i in range(1000)], axis=0)
    np.testing.assert_allclose(found, [1.86, 0.9, 0.24], atol=0.003)
    assert all(sum(shares(m, [0.62, 0.3, 0.08], 0.99)) == m for m in range(1, 20))


def test_networks_share_by_a_prior_of_their_own():
    D = np.array([[1.0, 1.1, 1.3], [1.1, 1.0, 1.3], [1.3, 1.3, 1.0]])
    rng = np.random.default_rng(0)
    a = 1 + 0.4 * rng.normal(size=(300, 3))
    found = stacked_weights(QuadraticLosses(a, np.stack([D] * 300), np.ones(300)), [0, 1], [2], 1e9)
    # the second against the first, by the formula of the posterior mean
    slope = a[:, 0] - a[:, 1] - (D[1, 0] - D[1, 1])
    curvature, error = 0.2, slope.std(ddof=1) / np.sqrt(300) / 0.2
    best = -slope.mean() / curvature
    q = (best / error**2 + 0.5 / 0.2**2) / (1 / error**2 + 1 / 0.2**2)
    assert found[0] / found[:2].sum() == pytest.approx(q, abs=1e-6)
    assert found.sum() == pytest.approx(1.0)
    alike = QuadraticLosses(np.ones((5, 2)), np.ones((5, 2, 2)), np.ones(5))
    np.testing.assert_allclose(stacked_weights(alike, [0, 1], [], 9.0), 0.5)
    np.testing.assert_allclose(stacked_weights(alike, [0], [1], 100.0), [1 / 3, 2 / 3])


def test_without_held_out_subjects_the_prior_decides():
    np.testing.assert_allclose(stacked_weights(None, [0, 1, 2], [], 50.0), 1 / 3)
    np.testing.assert_allclose(stacked_weights(None, [0], [1, 2], 200.0), [0.5, 0.25, 0.25])
    np.testing.assert_allclose(
        stacked_weights(None, [0, 1, 2], [], 9.0, [1, 2, 1.5]), np.array([2, 4, 3]) / 9
    )
    np.testing.assert_allclose(stacked_weights(None, [2, 0], [1], 200.0, [3, 9, 1]), [0.375, 0.5, 0.125])
    few = cs.Stacking([("a", KM), ("b", cs.WeibullRegression(alpha=1.0))], random_state=0)
    few.fit(None, cs.RightCensored(np.arange(1.0, 9.0), np.ones(8)))
    assert few.weights_ == {"a": 0.5, "b": 0.5}
    assert few.scores_ == {}


def test_many_held_out_subjects_decide_against_the_prior():
    data = WeibullScenario("uniform").sample(4000, seed=1)
    stack = cs.Stacking([("km", KM), ("weibull", WEIBULL)], random_state=0).fit(data.X, data.y)
    assert stack.weights_["weibull"] > 0.9
    assert stack.scores_["weibull"] < stack.scores_["km"]


def test_a_stack_is_at_least_as_good_as_its_members():
    """Two misspecified models, each right for half of the subjects."""
    rng = np.random.default_rng(0)

    def draw(n):
        side = rng.random(n) < 0.5
        T = np.where(side, rng.exponential(1.0, n), np.exp(0.2 * rng.normal(size=n) + 1.0))
        return cs.RightCensored(np.minimum(T, 6.0), T < 6.0)

    train, test = draw(2000), draw(2000)
    members = [("exponential", WEIBULL), ("lognormal", cs.LogNormalRegression(alpha=1.0))]
    C = cs.PointMass(6.0)
    for score in ("energy_score", "log_score"):
        stack = cs.Stacking(members, score, random_state=0).fit(None, train, censoring=C)
        loss = cs.crps if score == "energy_score" else cs.log_score
        fitted = [m.fit(None, train).predict_distribution() for _, m in members]
        best = min(loss(test, F, C).mean() for F in fitted)
        found = loss(test, stack.predict_distribution(), C).mean()
        assert found < loss(test, cs.Mixture(fitted, [0.5, 0.5]), C).mean()  # what is known beforehand
        assert found < 1.01 * best


def test_one_subject_with_a_long_follow_up_does_not_decide():
    time, event = DATA.y.time.copy(), DATA.y.event.copy()

    def weights():
        y = cs.RightCensored(time, event)
        return cs.Stacking([("cox", COX), ("km", KM)], random_state=0).fit(DATA.X, y).weights_

    before = weights()
    late = np.argmax(time)
    time[late], event[late] = 30 * time[late], True
    assert weights() == pytest.approx(before, abs=0.1)


def test_closed_forms_stay_closed():
    stack = cs.Stacking([("cox", COX), ("weibull", WEIBULL)], random_state=0).fit(DATA.X, DATA.y)
    F = stack.predict_distribution(DATA.X[:5])
    assert isinstance(F, cs.Mixture)
    parts = [model.predict_distribution(DATA.X[:5]).sf(1.0) for model in stack.estimators_.values()]
    expected = sum(w * part for w, part in zip(stack.weights_.values(), parts, strict=True))
    np.testing.assert_allclose(F.sf(1.0), expected)
    draws = stack.sample(DATA.X[:5], 4000)
    assert np.abs((draws > 1.0).mean(axis=1) - F.sf(1.0)).max() < 0.04


def test_several_times_are_joined():
    members = [("weibull", cs.JointFromMargins(WEIBULL)), ("km", cs.JointFromMargins(KM))]
    stack = cs.Stacking(members, baselines=["km"], random_state=0).fit(JOINT.X, JOINT.y)
    F = stack.predict_distribution(JOINT.X[:4])
    assert isinstance(F, cs.JointMixture)
    assert stack.sample(JOINT.X[:4], 7).shape == (4, 7, 2)


def competing(n=400):
    X = np.random.default_rng(0).normal(size=(n, 1))
    F = cs.CauseSpecificHazards([cs.Exponential(np.exp(X[:, 0])), cs.Exponential(0.5)], names=["a", "b"])
    time, cause = F.sample(1, seed=1)
    return X, cs.CompetingRisks(time[:, 0], cause[:, 0], names=["a", "b"]).censor_at(2.0), F


def test_competing_risks():
    X, y, F = competing()
    members = [("cox", cs.CauseSpecific(COX)), ("aj", cs.AalenJohansen())]
    stack = cs.Stacking(members, baselines=["aj"], random_state=0).fit(X, y)
    found = stack.predict_distribution(X)
    assert found.names == ("a", "b")
    assert np.abs(found.cif([0.5, 1.5]) - F.cif([0.5, 1.5])).mean() < 0.06
    same = cs.JointFromMargins(COX).fit(X, y).predict_distribution(X).cif([1.0])
    np.testing.assert_allclose(same, members[0][1].fit(X, y).predict_distribution(X).cif([1.0]))


def test_semi_competing_risks():
    rng = np.random.default_rng(0)
    first, end = rng.exponential(size=400), 1.5 * rng.exponential(size=400)
    seen = first < end
    y = cs.SemiCompetingRisks(
        np.stack([np.where(seen, first, end), end], axis=1), np.stack([seen, end > 0], axis=1)
    )
    members = [("weibull", cs.JointFromMargins(WEIBULL)), ("km", cs.JointFromMargins(KM))]
    stack = cs.Stacking(members, random_state=0, n_samples=4000).fit(None, y)
    z = stack.predict_distribution().samples[0]
    never = np.isinf(z[:, 0])
    assert (z[~never, 0] <= z[~never, 1]).all()
    assert abs(never.mean() - (1 - seen.mean())) < 0.04


@pytest.mark.parametrize(("copula", "theta"), [("clayton", 3.0), ("gumbel", 2.0), ("independent", None)])
def test_copula_of_ranks(copula, theta):
    margins = [cs.Exponential(1.0), cs.Weibull(2.0, 1.5)]
    truth = cs.Copula(copula, margins, theta) if theta else cs.Independent(margins)
    T, C = truth.sample(2000, 0)[0], np.random.default_rng(1).uniform(0, 3, (2000, 1))
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    for estimator in (WEIBULL, KM):
        model = cs.JointFromMargins(estimator, copula).fit(None, y)
        assert model.theta_ is None if theta is None else abs(model.theta_ / theta - 1) < 0.15


def test_members_of_other_libraries_and_pipelines():
    members = [("piped", make_pipeline(StandardScaler(), cs.CoxRegression())), ("km", KM)]
    stack = cs.Stacking(members, random_state=0).fit(DATA.X, DATA.y, np.ones(300))
    assert stack.weights_["piped"] > 0.5


def test_conventions_of_scikit_learn():
    stack = cs.Stacking([("cox", COX), ("km", KM)])
    assert stack.get_params()["cox__alpha"] == 1.0
    assert clone(stack).set_params(cox__alpha=2.0, km=WEIBULL).get_params()["cox__alpha"] == 2.0
    assert stack.get_params()["cox__alpha"] == 1.0
    stack.fit(DATA.X, DATA.y)
    assert not hasattr(COX, "coef_")
    assert list(stack.summary().columns) == ["weight", "loss", "note"]


class Fastidious(cs.KaplanMeier):
    """An estimator that takes no events at time zero."""

    def fit(self, X, y, sample_weight=None):
        if (y.time == 0).any():
            raise InvalidInputError("got events at time zero.")
        return super().fit(X, y, sample_weight)


def test_members_that_cannot_be_fitted():
    y = cs.RightCensored(np.r_[0.0, np.arange(1.0, 60.0)], np.ones(60))
    members = [("fastidious", Fastidious()), ("km", KM)]
    with pytest.raises(InvalidInputError, match="zero"):
        cs.Stacking(members).fit(None, y)
    stack = cs.Stacking(members, leave_out=True).fit(None, y)
    assert stack.weights_ == {"km": 1.0}
    assert "zero" in stack.summary().loc["fastidious", "note"]


@pytest.mark.parametrize(
    "X", [None, np.repeat([[0.0], [1.0]], 30, axis=0), np.r_[np.zeros(40), 1:21][:, None]]
)
def test_held_out_subjects_share_no_random_numbers(X):
    y = cs.RightCensored(np.random.default_rng(0).exponential(size=60), np.ones(60))
    stack = cs.Stacking([("weibull", WEIBULL)], random_state=0).fit(X, y)
    z = stack.member_draws_.apart(stack.estimators_["weibull"], X, y, 0, 128)
    assert z.shape == (60, 128)
    assert len(np.unique(z)) == z.size
    if X is not None:  # draws follow the covariates
        F = stack.estimators_["weibull"].predict_distribution(X)
        assert np.abs(F.cdf(z).mean(axis=1) - 0.5).max() < 5 / np.sqrt(12 * 128)


def late_entries(n=2000, seed=3):
    """Times that are seen only where they are later than an entry that depends on nothing."""
    rng = np.random.default_rng(seed)
    X, entry = rng.normal(size=(n, 1)), rng.uniform(0.0, 1.5, n)
    T, C = rng.exponential(np.exp(0.5 * X[:, 0])), rng.uniform(0.0, 5.0, n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    seen = y.time > entry
    return X[seen], cs.RightCensored(y.time[seen], y.event[seen], entry=entry[seen]), T[seen]


@pytest.mark.parametrize("entry", [False, True])
def test_losses_of_one_time_are_exact(entry):
    """The CRPS of held-out subjects, and distances by mixtures; none hangs on draws."""
    y = DATA.y
    if entry:
        y = cs.RightCensored(y.time, y.event, entry=np.linspace(0.0, 0.9, len(y)) * y.time)
    members = [("weibull", cs.WeibullRegression()), ("km", cs.KaplanMeier()), ("cox", cs.CoxRegression())]
    C, rows = cs.Uniform(0.0, 8.0), np.arange(len(y))
    stack = cs.Stacking(members, cv=3).fit(DATA.X, y, censoring=C)
    end = StackSubjects(DATA.X, y, None, C, None, [], 0).horizon
    expected = np.zeros(3)
    for train, test in stack_folds(rows, 3, stack._seed):
        F = [model.fit(DATA.X[train], y[train]).predict_distribution(DATA.X[test]) for _, model in members]
        F = [f.given_survival(y[test].entry) if entry else f for f in F]
        expected += [cs.crps(y[test], f, C, horizon=end).sum() / len(y) for f in F]
        found, D = MemberDraws(None, horizon=end).losses_of_forecasts(
            [_Forecast(f) for f in F], y[test], C, seed=0
        )
        for j, i in ((0, 1), (0, 2), (1, 2)):
            both = cs.crps(y[test], cs.Mixture([F[j], F[i]], [0.5, 0.5]), C, horizon=end)
            apart = 4 * ((found[:, j] + found[:, i]) / 2 - both)
            np.testing.assert_allclose(D[:, i, j].mean(), apart.mean(), rtol=0.06)
    np.testing.assert_allclose(list(stack.scores_.values()), expected, rtol=1e-9)


def test_drawn_forecasts_of_one_time_have_the_losses_of_their_distribution_on_average():
    y, C, m = DATA.y, cs.Uniform(0.0, 8.0), 40
    F = [cs.Weibull(1.5, np.exp(DATA.X[:, 0])), cs.LogNormal(0.3 * DATA.X[:, 1], 0.8)]
    members = MemberDraws(None, horizon=4.0)
    exact, D = members.losses_of_forecasts([_Forecast(f) for f in F], y, C, seed=0)
    found, apart = np.zeros((100, 2)), np.zeros(100)
    for seed in range(100):
        drawn = [_Forecast(cs.Ensemble(f.sample(m, [seed, j])), drawn=True) for j, f in enumerate(F)]
        s, distance = members.losses_of_forecasts(drawn, y, C, seed=0)
        found[seed], apart[seed] = s.mean(axis=0), distance[:, 0, 1].mean()
    error = np.append(found.std(axis=0), apart.std()) / 10
    excess = np.append(found.mean(axis=0) - exact.mean(axis=0), apart.mean() - D[:, 0, 1].mean())
    assert (np.abs(excess) < 4 * error).all()
    assert (4 * error < 0.01 * np.append(exact.mean(axis=0), D[:, 0, 1].mean() * 5)).all()


@pytest.mark.parametrize("k", [1, 2])
def test_the_unit_of_a_covariate_changes_no_held_out_loss(k):
    """In one event time there are no draws; in several their numbers belong to places of subjects."""
    data = DATA if k == 1 else JOINT
    models = {"km": cs.KaplanMeier(), "weibull": cs.WeibullRegression()}
    pairs = [(name, cs.JointFromMargins(model)) for name, model in models.items()]
    scale = np.ones(data.X.shape[1])
    scale[0] = 365.25
    one, other = (cs.Stacking(pairs, random_state=0).fit(data.X * s, data.y) for s in (1.0, scale))
    np.testing.assert_allclose(list(other.scores_.values()), list(one.scores_.values()), rtol=1e-6)
    assert other.scores_["km"] == pytest.approx(one.scores_["km"], rel=1e-12)


def test_delayed_entry():
    X, y, _ = late_entries()
    members = [("km", cs.JointFromMargins(KM)), ("weibull", cs.JointFromMargins(WEIBULL))]
    stack = cs.Stacking(members, random_state=0).fit(X, y)
    z = stack.member_draws_.apart(stack.estimators_["weibull"], X, y, 0, 128)
    assert (z > y.entry[:, None]).all()
    assert stack.weights_["weibull"] > 0.8
    truth = np.exp(-1.0 / np.exp(0.5 * X[:, 0]))
    assert np.abs(stack.predict_distribution(X).sf(1.0) - truth).mean() < 0.05
    with pytest.raises(cs.exceptions.UnsupportedOutcomeError, match="entry"):
        cs.Stacking(members).fit(
            X, cs.RightCensored(np.c_[y.time, y.time], np.c_[y.event, y.event], entry=y.entry)
        )
    picky = [*members, ("fine gray", cs.JointFromMargins(EntryRefused()))]
    with pytest.raises(cs.exceptions.UnsupportedOutcomeError, match="entry"):
        cs.Stacking(picky).fit(X, y)
    assert list(cs.Stacking(picky, leave_out=True, random_state=0).fit(X, y).left_out_) == ["fine gray"]


class EntryRefused(cs.KaplanMeier):
    """An estimator that takes no delayed entry."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y.require_no_entry("EntryRefused"), sample_weight)


def test_intervals():
    X, _, T = late_entries(600)
    visit = np.array([0.0, 0.5, 1.0, 2.0, 3.0, np.inf])
    after = np.searchsorted(visit, T)
    y = cs.IntervalCensored(visit[after - 1], visit[after])
    members = [
        ("turnbull", cs.Turnbull("uniform")),
        ("weibull", WEIBULL),
        ("normal", cs.LogNormalRegression()),
    ]
    stack = cs.Stacking(members, baselines=["turnbull"], random_state=0).fit(X, y)
    assert stack.follow_up_ == 3.0
    assert stack.scores_["weibull"] < stack.scores_["turnbull"]
    F = stack.predict_distribution(X[:3])
    assert isinstance(F, cs.Mixture)
    assert np.isfinite(cs.log_score(y[:3], F)).all()


def test_groups_are_held_out_together(monkeypatch):
    seen = []
    stack = cs.Stacking([("km", KM)], random_state=0)
    monkeypatch.setattr(stacking, "stack_folds", lambda *how: seen.append(stack_folds(*how)) or seen[-1])
    groups = np.arange(300) // 3
    stack.fit(DATA.X, DATA.y, groups=groups)
    assert len(seen[0]) == 5
    assert all(not set(groups[train]) & set(groups[test]) for train, test in seen[0])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"estimators": []}, "named pairs"),
        ({"estimators": [("a", KM), ("a", COX)]}, "different"),
        ({"score": "auc"}, "score"),
        ({"baselines": ["x"]}, "baselines"),
        ({"cv": 1}, "cv"),
        ({"cv": "all"}, "cv"),
        ({"n_samples": 0}, "n_samples"),
    ],
)
def test_settings_are_checked(change, match):
    with pytest.raises(InvalidInputError, match=match):
        cs.Stacking(**{"estimators": [("km", KM)]} | change).fit(DATA.X, DATA.y)
    with pytest.raises(InvalidInputError, match="copula"):
        cs.JointFromMargins(KM, "frank").fit(DATA.X, DATA.y)


def test_a_model_of_one_cause_is_an_error_by_name(rng):
    X, time = rng.normal(size=(60, 2)), rng.exponential(size=60)
    y = cs.CompetingRisks(time, rng.integers(0, 3, size=60))
    with pytest.raises(InvalidInputError, match="FineGray: got forecasts of one cause"):
        cs.Stacking([("fg", cs.FineGray()), ("aj", cs.AalenJohansen())], random_state=0).fit(X, y)


def test_intervals_of_risks_cover_what_stacks_of_other_subjects_forecast_on_average():
    covered, scenario = [], WeibullScenario("uniform")
    X, stacks = scenario.sample(30, seed=99).X, []
    for seed in range(30):
        data = scenario.sample(120, seed=seed)
        stacks.append(cs.Stacking([("weibull", WEIBULL), ("km", KM)], random_state=seed).fit(data.X, data.y))
    risk = np.stack([1 - stack.predict_survival_function(X, [0.5, 1.0]) for stack in stacks])
    for p, stack in zip(risk, stacks, strict=True):
        low, high = np.moveaxis(stack.risk_interval(X, [0.5, 1.0]), -1, 0)
        assert ((low <= p) & (p <= high)).all()
        others = (risk.sum(axis=0) - p) / (len(risk) - 1)
        covered.append((low <= others) & (others <= high))
    assert 0.9 < np.mean(covered) < 0.98


def test_the_interval_is_that_of_the_jackknife():
    stack = cs.Stacking([("weibull", WEIBULL)], random_state=0, cv=4).fit(DATA.X, DATA.y)
    found = stack.risk_interval(DATA.X[:5], 1.0, level=0.9)
    without = []
    for train, _ in stack_folds(np.arange(300), 4, 0):
        model = cs.Stacking([("weibull", WEIBULL)], random_state=0).fit(DATA.X[train], DATA.y[train])
        without.append(model.predict_survival_function(DATA.X[:5], 1.0))
    scale = np.arcsin(np.sqrt(1 - np.array(without)))
    error = np.sqrt(3 / 4 * ((scale - scale.mean(axis=0)) ** 2).sum(axis=0))
    middle = np.arcsin(np.sqrt(1 - stack.predict_survival_function(DATA.X[:5], 1.0)))
    np.testing.assert_allclose(found[..., 0], np.sin(middle - 2.353363 * error) ** 2, rtol=1e-6)
    np.testing.assert_allclose(found[..., 1], np.sin(middle + 2.353363 * error) ** 2, rtol=1e-6)


@pytest.mark.parametrize(("n", "held_out", "folds"), [(1000, 1000, 5), (1001, 401, 2), (4001, 801, 1)])
def test_how_many_are_held_out(n, held_out, folds):
    data = WeibullScenario("uniform").sample(n, seed=0)
    stack = cs.Stacking([("km", KM)], random_state=0).fit(data.X, data.y)
    rows = [test for _, test in stack_folds(np.arange(n), "auto", 0)]
    assert len(rows) == folds
    assert len(np.unique(np.concatenate(rows))) == held_out
    assert len(stack._without_fold) == (5 if folds == 5 else 0)


def test_intervals_of_every_kind(rng):
    member = [("km", cs.JointFromMargins(KM))]
    joint = cs.Stacking(member, random_state=0).fit(JOINT.X, JOINT.y)
    assert joint.risk_interval(JOINT.X[:4], [0.5, 1.0, 2.0]).shape == (4, 3, 2, 2)
    causes = cs.CompetingRisks(rng.exponential(size=60), rng.integers(0, 3, size=60))
    stack = cs.Stacking([("aj", cs.AalenJohansen())], random_state=0).fit(None, causes)
    ends = stack.risk_interval(None, [0.0, 0.5, 1.0])
    assert ends.shape == (1, 3, 2, 2)
    np.testing.assert_array_equal(ends[:, 0], 0.0)  # nothing happens at zero, in no fit
    p = np.moveaxis(stack.predict_cumulative_incidence(None, [0.5, 1.0]), 2, 1)
    assert ((ends[:, 1:, :, 0] < p) & (p < ends[:, 1:, :, 1])).all()
    few = cs.Stacking([("km", KM)], random_state=0).fit(DATA.X[:8], DATA.y[:8])
    with pytest.raises(InvalidInputError, match=r"not held out every subject once.*cv=5"):
        few.risk_interval(DATA.X[:2], 0.1)


def test_a_class_is_no_covariates():
    data = WeibullScenario("uniform").sample(60, seed=0)
    stack = cs.Stacking([("km", cs.KaplanMeier()), ("weibull", cs.WeibullRegression())]).fit(data.X, data.y)
    with pytest.raises(InvalidTypeError, match="X: got the class ndarray"):
        stack.predict_distribution(np.ndarray)
