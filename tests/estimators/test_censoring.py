"""The censoring distribution: events first at ties, several event times, folds that never see their rows."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold

import censcore as cs
from censcore.distributions import Grouped, Independent, Step
from censcore.estimators import SurvivalEstimator
from censcore.exceptions import InvalidInputError, NotFittedError


def censoring_distribution(y, **options):
    return cs.Censoring(cs.KaplanMeier(), **options).fit(None, y).predict_distribution()


def counted(time, event, c):
    """P(C > c) by counting: at risk of censoring at s are those with a later time or censored there."""
    curve = 1.0
    for s in np.unique(time[~event & (time <= c)]):
        censored = (~event & (time == s)).sum()
        curve *= 1 - censored / (censored + (time > s).sum())
    return curve


def test_events_come_first_at_ties(rng):
    time, event = rng.integers(0, 8, 300).astype(float), rng.random(300) < 0.5
    distribution = censoring_distribution(cs.RightCensored(time, event))
    for c in range(8):
        assert distribution.sf(float(c))[0] == pytest.approx(counted(time, event, c), abs=1e-13)


class Recorder(SurvivalEstimator):
    """Keeps what it was given; its distribution of row i is a point mass at the first covariate."""

    represents_atoms = True

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        return self

    def predict_distribution(self, X=None):
        return cs.PointMass(np.asarray(X)[:, 0] + 100.0 * len(self.y_))


def test_rows_that_say_nothing_of_c_are_left_out_with_their_covariates():
    y = cs.RightCensored([0.0, 2.0, 3.0, 0.0], [1, 1, 0, 0])
    X = np.arange(8.0).reshape(4, 2)
    model = cs.Censoring(Recorder()).fit(X, y, sample_weight=[1, 2, 3, 4]).estimators_[0]
    np.testing.assert_array_equal(model.X_, X[1:])
    np.testing.assert_array_equal(model.y_.event, [False, True, True])
    np.testing.assert_array_equal(model.weight_, [2, 3, 4])


def test_no_censoring_puts_all_mass_at_infinity():
    distribution = censoring_distribution(cs.RightCensored([1.0, 2.0], [1, 1]))
    assert distribution.mass_at_infinity() == 1.0
    assert distribution.sf_left(1e9) == 1.0


def test_all_censored_gives_their_empirical_distribution():
    distribution = censoring_distribution(cs.RightCensored([1.0, 2.0, 2.0, 5.0], [0, 0, 0, 0]))
    np.testing.assert_allclose(distribution.sf([[1.0, 2.0, 5.0]]), [[0.75, 0.25, 0.0]])


def test_only_events_at_zero_are_refused():
    with pytest.raises(InvalidInputError, match="nothing is known of the censoring time"):
        censoring_distribution(cs.RightCensored([0.0, 0.0], [1, 1]))


# ---- several event times -------------------------------------------------------------------------


@pytest.fixture
def shared(rng):
    T, C = rng.exponential(1.0, (80, 2)), rng.exponential(1.0, (80, 1))
    return cs.RightCensored(np.minimum(T, C), T <= C)


@pytest.fixture
def componentwise(rng):
    T, C = rng.exponential(1.0, (80, 2)), rng.exponential(1.0, (80, 2))
    return cs.RightCensored(np.minimum(T, C), T <= C)


def test_one_shared_c(shared):
    distribution = censoring_distribution(shared)
    assert distribution.k == 1
    y = shared.time.max(axis=1)
    seen = ~shared.event.all(axis=1)
    for c in np.quantile(y, [0.2, 0.5, 0.9]):
        assert distribution.sf(c)[0] == pytest.approx(counted(y, ~seen, c), abs=1e-13)


@pytest.mark.parametrize("which", ["shared", "componentwise"])
def test_one_c_per_event_time(which, request):
    y = request.getfixturevalue(which)
    distribution = censoring_distribution(y, shared=False)
    assert isinstance(distribution, Independent)
    for j in range(2):
        alone = censoring_distribution(y.marginal(j))
        np.testing.assert_array_equal(distribution.marginal(j).sf(0.7), alone.sf(0.7))


def test_data_decide_where_nothing_is_said(componentwise):
    assert censoring_distribution(componentwise).k == 2
    with pytest.raises(InvalidInputError, match="one censoring time per subject"):
        censoring_distribution(componentwise, shared=True)


# ---- folds ---------------------------------------------------------------------------------------


@pytest.fixture
def one(rng):
    T, C = rng.integers(1, 20, 60).astype(float), rng.integers(1, 20, 60).astype(float)
    return cs.RightCensored(np.minimum(T, C), T <= C)


def check_out_of_fold(distribution, y, fold):
    for number in np.unique(fold):
        rows = fold == number
        without = censoring_distribution(y.take(~rows))
        np.testing.assert_array_equal(distribution.take(rows).sf(y.time[rows]), without.sf(y.time[rows]))


@pytest.mark.parametrize("cv", [5, KFold(4), StratifiedKFold(3), list(KFold(3).split(np.zeros(60)))])
def test_no_row_sees_itself(one, cv):
    model = cs.Censoring(cs.KaplanMeier(), cv=cv)
    distribution = model.fit_predict_distribution(None, one)
    assert isinstance(distribution, Grouped)
    check_out_of_fold(distribution, one, model.fold_)
    assert all(isinstance(part, Step) and len(part) == 1 for part in distribution._members)
    np.testing.assert_array_equal(model.predict_distribution().sf(5.0), censoring_distribution(one).sf(5.0))


def test_groups_stay_together(one):
    groups = np.repeat(np.arange(20), 3)
    model = cs.Censoring(cs.KaplanMeier(), cv=4)
    distribution = model.fit_predict_distribution(None, one, groups=groups)
    assert all(len(np.unique(model.fold_[groups == g])) == 1 for g in range(20))
    check_out_of_fold(distribution, one, model.fold_)


def test_the_seed_makes_the_folds(one):
    def folds(seed):
        model = cs.Censoring(cs.KaplanMeier(), cv=5, random_state=seed)
        model.fit_predict_distribution(None, one)
        return model.fold_

    np.testing.assert_array_equal(folds(1), folds(1))
    assert (folds(1) != folds(2)).any()


def test_a_number_of_folds_is_that_of_scikit_learn(one):
    X = np.random.default_rng(3).normal(size=(60, 2))
    model = cs.Censoring(cs.CoxRegression(), cv=7, random_state=2)
    model.fit_predict_distribution(X, one)
    splits = KFold(7, shuffle=True, random_state=2).split(X)
    for number, (train, test) in enumerate(splits):
        np.testing.assert_array_equal(np.flatnonzero(model.fold_ == number), test)
        np.testing.assert_array_equal(model.fold_training_[number], train)
        alone = cs.Censoring(cs.CoxRegression()).fit(X[train], one.take(train))
        known, expected = model.fold_estimators_[number].trained_on_, alone.trained_on_
        np.testing.assert_array_equal(known.outcome, expected.outcome)
        np.testing.assert_array_equal(known.covariates, expected.covariates)
        np.testing.assert_array_equal(
            model.fold_estimators_[number].estimators_[0].coef_, alone.estimators_[0].coef_
        )


def test_rows_keep_their_own_covariates(one):
    X = np.arange(60.0)[:, None]
    distribution = cs.Censoring(Recorder(), cv=5).fit_predict_distribution(X, one)
    np.testing.assert_array_equal(distribution.mean() % 100, X[:, 0])


def test_folds_of_several_event_times(componentwise):
    model = cs.Censoring(cs.KaplanMeier(), cv=3)
    distribution = model.fit_predict_distribution(None, componentwise)
    assert isinstance(distribution, Independent)
    for j in range(2):
        check_out_of_fold(distribution.marginal(j), componentwise.marginal(j), model.fold_)


@pytest.mark.parametrize("horizon", [None, 12.0])
@pytest.mark.parametrize("score", ["crps", "brier", "pinball", "integrated_brier"])
def test_scores_under_out_of_fold_distributions_are_those_of_each_fold(one, score, horizon, rng):
    """Every fold scored by itself, under its own curve, gives the same rows."""
    one = one.censor_at(15.0)
    model = cs.Censoring(cs.KaplanMeier(), cv=4)
    distribution = model.fit_predict_distribution(None, one)
    F = cs.Ensemble(rng.weibull(1.5, (60, 21)) * 10)
    words = {
        "crps": lambda y, F, C: cs.crps(y, F, C, horizon=horizon),
        "brier": lambda y, F, C: cs.brier_score(y, F, C, [3.0, 7.0], horizon=horizon),
        "pinball": lambda y, F, C: cs.pinball_score(y, F, C, [0.2, 0.7], horizon=horizon),
        "integrated_brier": lambda y, F, C: cs.integrated_brier_score(
            y, cs.Weibull(1.5, 9.0), C, horizon=horizon
        ),
    }
    got = words[score](one, F, distribution)
    for number in range(4):
        rows = np.nonzero(model.fold_ == number)[0]
        alone = words[score](one.take(rows), F.take(rows), distribution._members[number])
        np.testing.assert_allclose(got[rows], alone, rtol=1e-10)


def test_without_folds_the_distribution_is_the_fitted_one(one):
    distribution = cs.Censoring(cs.KaplanMeier()).fit_predict_distribution(None, one)
    np.testing.assert_array_equal(distribution.sf(5.0), censoring_distribution(one).sf(5.0))


def test_frames_are_split_as_frames(one):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame({"arm": np.tile(["a", "b"], 30)}, index=np.arange(60)[::-1])
    distribution = cs.Censoring(cs.KaplanMeier("arm"), cv=3).fit_predict_distribution(X, one)
    assert distribution.shape == (60,)
    assert ((distribution.sf(3.0) >= 0) & (distribution.sf(3.0) <= 1)).all()


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        (1, "at least 2"),
        (61, "subjects: got 60 of them, expected at least cv=61"),
        (ShuffleSplit(2, random_state=0), "every subject exactly once"),
        ([(np.arange(60), np.arange(30)), (np.arange(60), np.arange(30, 60))], "overlap"),
    ],
)
def test_bad_folds(one, cv, message):
    with pytest.raises(InvalidInputError, match=message):
        cs.Censoring(cs.KaplanMeier(), cv=cv).fit_predict_distribution(None, one)


# ---- where an estimate came from -----------------------------------------------------------------


@pytest.fixture
def estimate(one):
    X = np.random.default_rng(3).normal(size=(len(one), 2))
    model = cs.Censoring(cs.CoxRegression()).fit(X, one)
    return X, model, model.predict_distribution(X)


@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda C: pickle.loads(pickle.dumps(C)), lambda C: C.like(np.float32([0]))],
)
def test_copies_pickles_and_other_precisions_keep_the_origin(estimate, copied):
    X, _, C = estimate
    origin = copied(C).estimated_from
    np.testing.assert_array_equal(origin.X, X)
    np.testing.assert_array_equal(origin.censoring.trained_on_.outcome, estimate[1].trained_on_.outcome)


@pytest.mark.parametrize("rows", [slice(5, 9), [4, 0, -1], np.arange(60) % 7 == 0, 3])
def test_chosen_subjects_have_the_origin_of_their_covariates(estimate, rows):
    X, model, C = estimate
    origin = C.take(rows).estimated_from
    assert origin.censoring is model
    np.testing.assert_array_equal(origin.X, np.atleast_2d(X[rows]))


def test_what_is_no_longer_the_estimate_has_no_origin(estimate, one):
    _, _, C = estimate
    assert C.censor_at(1.0).estimated_from is None
    assert cs.Weibull(1.0, 1.0).estimated_from is None
    folds = cs.Censoring(cs.KaplanMeier(), cv=3).fit_predict_distribution(None, one)
    assert folds.estimated_from.out_of_fold
    assert folds.take([5, 1]).estimated_from.subjects.tolist() == [5, 1]
    assert folds.censor_at(1.0).estimated_from is None


def test_an_estimator_is_not_kept_alive_by_what_it_predicted(one):
    model = cs.Censoring(cs.KaplanMeier()).fit(None, one)
    model.predict_distribution()
    assert model.estimators_[0].distributions_[0].estimated_from is None


def test_one_curve_serves_other_subjects_than_it_was_predicted_for(estimate, one):
    X, _, _ = estimate
    C = cs.Censoring(cs.KaplanMeier()).fit(X, one).predict_distribution(X)
    F = cs.Weibull(1.0, np.full(20, float(one.time.mean())))
    assert "fitted before" in cs.compare({"a": F}, one[:20], C).settings["censoring distribution"]


# ---- estimator manners ---------------------------------------------------------------------------


def test_parameters_reach_the_inner_estimator():
    model = cs.Censoring(cs.KaplanMeier(stratify="arm"), cv=5)
    assert clone(model).get_params()["estimator__stratify"] == "arm"
    assert model.set_params(estimator__stratify=None).estimator.stratify is None


def test_not_fitted():
    with pytest.raises(NotFittedError):
        cs.Censoring(cs.KaplanMeier()).predict_distribution()


def test_structured_arrays_and_frames_are_outcomes_too():
    y = np.array([(True, 2.0), (False, 5.0)], dtype=[("event", bool), ("time", float)])
    np.testing.assert_array_equal(censoring_distribution(y).sf_left(5.0), [1.0])


def test_torch(one):
    torch = pytest.importorskip("torch")
    y = one.like(torch.zeros(1, dtype=torch.float64))
    distribution = cs.Censoring(cs.KaplanMeier(), cv=3).fit_predict_distribution(None, y)
    twin = cs.Censoring(cs.KaplanMeier(), cv=3).fit_predict_distribution(None, one)
    np.testing.assert_array_equal(distribution.sf(y.time).numpy(), twin.sf(one.time))


# ---- what it is for ------------------------------------------------------------------------------


def tied_data(rng, n=2000, p=0.15, last=10):
    """T and C geometric with many ties; C capped."""
    T, C = rng.geometric(p, n), np.minimum(rng.geometric(p, n), last)
    return cs.RightCensored(np.minimum(T, C).astype(float), T <= C)


def test_ipcw_brier_score_is_unbiased_on_tied_data():
    """The mean over 200 data sets equals the uncensored Brier score of the true distribution, S(1 - S)."""
    rng = np.random.default_rng(2024)
    times = np.array([2.0, 4.0, 6.0])
    support = np.arange(1.0, 200.0)
    truth = Step(support, sf=0.85**support)
    means = []
    for _ in range(200):
        y = tied_data(rng)
        means.append(cs.brier_score(y, truth, censoring_distribution(y), times, scale="ipcw").mean(axis=0))
    population = 0.85**times * (1 - 0.85**times)
    relative = np.mean(means, axis=0) / population - 1
    assert np.abs(relative).max() < 0.005
