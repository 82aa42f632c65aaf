"""cross_validate(models, X, y): folds, fits, errors, repeats, and what is kept on disk."""

from __future__ import annotations

import time as clock
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline

import censcore as cs
from censcore.distributions import Grouped
from censcore.evaluation.inference.refits_of_models import refit_influence
from censcore.evaluation.kinds.several_times import kaplan_meier_curves
from censcore.evaluation.parts.fold_store import data_key, load_forecast, model_key, save_value
from censcore.evaluation.parts.folds import make_splits
from censcore.evaluation.sample import Sample
from censcore.exceptions import FoldError, InvalidInputError, InvalidTypeError

PLAIN = {"scores": ["crps", "brier_score:ipcw"], "times": [0.8], "horizon": 2.0, "discrimination": False}


def drawn(n: int = 150, seed: int = 0) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    T, C = rng.weibull(1.5, n) * np.exp(0.7 * x[:, 0]), np.minimum(rng.uniform(0, 4, n), 3)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def numbers(comparison) -> np.ndarray:
    return comparison.frame()[["mean", "standard_error"]].to_numpy()


class Counting(BaseEstimator):
    """A Weibull regression that counts its fits and predictions, and may fail in one of them."""

    log: list[str] = []  # noqa: RUF012

    def __init__(self, tag: str = "", fail_at: int | None = None) -> None:
        self.tag = tag
        self.fail_at = fail_at

    def fit(self, X, y):
        self.log.append(f"fit {self.tag} {len(y)}")
        if self.fail_at is not None and self.log.count(f"fit {self.tag} {len(y)}") == self.fail_at:
            raise RuntimeError("no convergence")
        self.model_ = cs.WeibullRegression().fit(X, y)
        return self

    def predict_distribution(self, X):
        self.log.append(f"predict {self.tag} {len(X)}")
        return self.model_.predict_distribution(X)


@pytest.fixture
def log():
    Counting.log.clear()
    return Counting.log


# ---- what it computes ------------------------------------------------------------------------------


def test_equals_the_comparison_of_out_of_fold_forecasts():
    """The same numbers, by fitting every fold by hand."""
    x, y = drawn()
    folds = list(KFold(4, shuffle=True, random_state=1).split(x))
    found = cs.cross_validate(
        {"cox": cs.CoxRegression(), "weibull": cs.WeibullRegression()}, x, y, cv=folds, **PLAIN
    )
    fold = np.zeros(150, dtype=int)
    for k, (_, test) in enumerate(folds):
        fold[test] = k
    by_hand = {}
    for name, model in (
        ("cox", cs.CoxRegression()),
        ("weibull", cs.WeibullRegression()),
        ("km", cs.KaplanMeier()),
    ):
        fits = [model.fit(x[train], y[train]).predict_distribution(x[test]) for train, test in folds]
        by_hand[name] = Grouped(fits, fold)
    censoring = cs.Censoring(cs.KaplanMeier(), cv=folds)
    expected = cs.compare(by_hand, y, censoring, X=x, reference=None, **PLAIN)
    np.testing.assert_allclose(numbers(found), numbers(expected), rtol=1e-12)


def test_mean_over_folds_weighs_them_by_their_subjects():
    x, y = drawn()
    found = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=4, **PLAIN)
    lines = found.folds()
    lines = lines[(lines.score == "crps") & (lines.model == "cox")]
    assert list(lines.columns) == [
        "repeat", "fold", "train", "subjects", "events", "score", "at", "model", "mean", "seconds",
    ]  # fmt: skip
    assert lines.subjects.sum() == 150
    assert lines.events.sum() == int(y.event.sum())
    assert (lines.train + lines.subjects == 150).all()
    pooled = np.average(lines["mean"], weights=lines.subjects)
    np.testing.assert_allclose(pooled, found.estimate("cox", "crps").value[0], rtol=1e-12)


def test_losses_are_averaged_over_repeats():
    x, y = drawn()
    models = {"cox": cs.CoxRegression()}
    repeated = cs.cross_validate(models, x, y, cv=cs.Folds(3, repeats=3), **PLAIN)
    splitters = [make_splits(3, x, y.event, None, 1, seed) for seed in range(3)]
    alone = [
        cs.cross_validate(models, x, y, cv=[(s.train, s.test) for s in splits], **PLAIN)
        for splits in splitters
    ]
    for key, losses in repeated.losses.values.items():
        np.testing.assert_allclose(losses, np.mean([one.losses.values[key] for one in alone], axis=0))
    by_splitter = cs.cross_validate(
        models, x, y, cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0), **PLAIN
    )
    assert len(by_splitter.repeats) == 2
    assert len(by_splitter.folds()) == 2 * 3 * 2 * 2
    largest = np.max([numbers(one)[:, 1] for one in alone], axis=0)
    assert (numbers(repeated)[:, 1] <= largest * 1.03).all()  # with the term of the refits


def test_standard_error_is_that_of_the_spread_where_nothing_is_censored():
    x, y = drawn()
    y = cs.RightCensored(y.time, np.ones(150))
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()}, x, y, cv=3, scores="crps", horizon=2.0, discrimination=False
    )
    losses = found.losses.values["cox", "crps"][:, 0]
    np.testing.assert_allclose(numbers(found)[0], [losses.mean(), losses.std(ddof=1) / np.sqrt(150)])


@pytest.mark.parametrize(
    ("repeats", "count"),
    [(1, 60), *(pytest.param(*case, marks=pytest.mark.slow) for case in ((1, 120), (3, 80)))],
)
def test_influence_of_the_estimated_censoring_distribution(repeats, count):
    """The standard error agrees with the spread of the mean over data sets, the forecast being fixed."""
    values, errors = [], []
    for seed in range(count):
        x, y = drawn(100, seed)
        F = cs.Weibull(1.5, np.exp(0.7 * x[:, 0]))
        found = cs.cross_validate(
            {"true": F},
            x,
            y,
            cv=cs.Folds(3, repeats=repeats),
            reference=None,
            seed=seed,
            horizon=1.4,
            scores=["crps", "integrated_brier_score:ipcw"],
            discrimination=False,
        )
        estimates = [found.estimate("true", score.name) for score in found.scores]
        values.append([e.value[0] for e in estimates])
        errors.append([e.standard_error[0] for e in estimates])
    ratio = np.mean(errors, axis=0) / np.std(values, axis=0, ddof=1)
    assert (np.abs(ratio - 1) < 4 / np.sqrt(2 * count)).all(), ratio


def mean_of_training_subjects(X, y, X_test):
    return cs.Exponential(1 / y.time.mean())


@pytest.mark.slow  # the term itself is compared with its formula every time
@pytest.mark.parametrize("repeats", [2, 4])
def test_error_of_a_difference_that_is_all_estimation(repeats):
    """A fitted model less the truth: two subjects train each other's model, which their spread does not show.

    The expected loss of exponentials with mean m, less that of the true one with mean 1, is known.
    """
    count, errors, spread = 150, [], []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        y = cs.RightCensored(rng.exponential(size=80), np.ones(80))
        models = {"fitted": mean_of_training_subjects, "true": cs.Exponential(1.0)}
        found = cs.cross_validate(
            models,
            np.zeros((80, 1)),
            y,
            cv=cs.Folds(5, repeats=repeats),
            reference=None,
            seed=seed,
            horizon=30.0,
            scores="crps",
            discrimination=False,
        )
        difference = found.estimate("fitted", "crps") - found.estimate("true", "crps")
        m = np.array([y.time[split.train].mean() for split in found.folded.splits])
        errors.append(difference.value[0] - np.mean(m / 2 + 1 / 2 - 2 * m / (1 + m)))
        spread.append(difference.standard_error[0])
    ratio = np.sqrt(np.mean(np.square(spread)) / np.mean(np.square(errors)))
    assert 0.85 < ratio < 1.2, ratio  # 0.79 without the term, which then covers 81 %
    covered = np.mean(np.abs(errors) < 1.96 * np.array(spread))
    assert covered > 0.93, covered


def test_influence_of_refits_by_hand():
    """Its square sum is {p / (1 - p) + 1 / B} W, over groups where there are any."""
    rng = np.random.default_rng(0)
    losses, w = rng.normal(size=(3, 12, 2)), np.full(12, 1 / 12)
    splits = make_splits(3, None, np.ones(12), None, 3, 0)
    p = 1 - 3 * 4 * 3 / (12 * 11)
    W = losses.var(axis=0, ddof=1).sum(axis=0) / 12**2
    sizes = [[len(s.test) for s in splits if s.repeat == b] for b in range(len(losses))]
    found = refit_influence(losses, w, None, sizes)
    np.testing.assert_allclose((found**2).sum(axis=0), (p / (1 - p) + 1 / 3) * W)
    pairs = np.repeat(np.arange(6), 2)
    summed = losses.reshape(3, 6, 2, 2).sum(axis=2)
    W = summed.var(axis=0, ddof=1).sum(axis=0) / 12**2
    grouped = refit_influence(losses, w, pairs, sizes)
    np.testing.assert_allclose((grouped**2).sum(axis=0), (p / (1 - p) + 1 / 3) * W)
    assert refit_influence(losses[:1], w, None, sizes[:1]).shape == (0, 2)
    np.testing.assert_allclose(refit_influence(np.stack([losses[0]] * 3), w, None, sizes), 0.0, atol=1e-15)


def test_an_estimator_without_an_influence_function_is_refitted():
    x, y = drawn(80)
    smooth = cs.Censoring(cs.WeibullRegression(), refits=5)
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()}, x, y, censoring=smooth, cv=cs.Folds(2, repeats=2), **PLAIN
    )
    assert "bootstrap" in found.settings["standard errors"]
    assert np.isfinite(numbers(found)).all()


def test_concordance_counts_pairs_within_folds():
    """Kaplan-Meier curves of different folds would rank the subjects; within folds they rank none."""
    x, y = drawn(90)
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()}, x, y, cv=3, scores="crps", horizon=2.0, times=[0.8]
    )
    lines = found.frame()
    lines = lines[lines.score == "concordance:harrell"].set_index("model")
    assert lines.loc["kaplan-meier", "mean"] == 0.5
    by_hand = 0.0
    for split in found.folded.splits:
        F = cs.CoxRegression().fit(x[split.train], y[split.train]).predict_distribution(x[split.test])
        risk = -F.integrated_sf(0.0, 2.0)
        by_hand += cs.evaluation.concordance(y[split.test], risk, horizon=2.0) * len(split.test) / 90
    np.testing.assert_allclose(lines.loc["cox", "mean"], by_hand)
    assert 0.01 < lines.loc["cox", "standard_error"] < 0.1


@pytest.mark.slow  # influences are compared with leaving subjects out every time
def test_error_of_concordance_agrees_with_its_spread_over_data_sets():
    values, errors = [], []
    for seed in range(60):
        x, y = drawn(90, seed)
        F = cs.Weibull(1.5, np.exp(0.7 * x[:, 0]))
        found = cs.cross_validate(
            {"true": F}, x, y, cv=3, reference=None, seed=seed, scores="crps", horizon=1.4, times=[0.8]
        )
        estimates = [found.pair_measures.values[0, "true", k] for k in range(2)]
        values.append([e.value[0] for e in estimates])
        errors.append([e.standard_error[0] for e in estimates])
    ratio = np.mean(errors, axis=0) / np.std(values, axis=0, ddof=1)
    assert (np.abs(ratio - 1) < 4 / np.sqrt(2 * 60)).all(), ratio


# ---- models ----------------------------------------------------------------------------------------


def test_each_model_is_fitted_once_per_fold(log):
    x, y = drawn()
    cs.cross_validate(
        {"a": Counting()},
        x,
        y,
        cv=cs.Folds(3, repeats=2),
        scores=["crps", "log_score", "brier_score"],
        horizon=2.0,
    )
    assert sorted(log) == ["fit  100"] * 6 + ["predict  50"] * 6


def test_models_of_all_kinds(log):
    sksurv = pytest.importorskip("sksurv.linear_model")
    lifelines = pytest.importorskip("lifelines")
    pd = pytest.importorskip("pandas")
    x, y = drawn(90)
    x[::7, 1] = np.nan
    frame = pd.DataFrame(x, columns=["a", "b"])

    def exponential(X, y, X_test):
        return cs.Exponential(np.full(len(X_test), y.event.sum() / y.time.sum()))

    cox = make_pipeline(SimpleImputer(), cs.CoxRegression())
    models = {
        "pipeline": cox,
        "search": GridSearchCV(
            cs.WithCensoring(cs.KaplanMeier()), {"horizon": [1.0]}, scoring=cs.scorer(), cv=2
        ),
        "scikit-survival": make_pipeline(SimpleImputer(), sksurv.CoxPHSurvivalAnalysis()),
        "lifelines": (lifelines.CoxPHFitter(), frame[["a"]]),
        "function": exponential,
        "fixed": cs.Exponential(0.8),
    }
    results = [
        cs.cross_validate(models, X, y, cv=3, **PLAIN)
        for X in (frame, pytest.importorskip("polars").from_pandas(frame), x)
    ]
    for found in results:
        np.testing.assert_allclose(numbers(found), numbers(results[0]), rtol=1e-9)
    means = results[0].frame().set_index(["score", "model"])["mean"]["crps"]
    assert abs(means["pipeline"] - means["scikit-survival"]) < 0.01
    assert means["search"] == means["kaplan-meier"]
    repr(results[0])
    assert not hasattr(cox[-1], "coef_")


def test_equal_forecasts_differ_by_nothing():
    lifelines = pytest.importorskip("lifelines")
    x, y = drawn(90)
    found = cs.cross_validate({"same": lifelines.KaplanMeierFitter()}, x, y, cv=3, **PLAIN)
    assert (found.differences().difference == 0).all()
    assert found.differences().p_value.isna().all()
    assert (found.frame().skill == 0).all()


def test_weights_reach_every_fit():
    """A weight of two is two subjects in one group."""
    x, y = drawn(60)
    w = 1.0 + (np.arange(60) % 2)
    copies = np.repeat(np.arange(60), w.astype(int))
    folds = [(s.train, s.test) for s in make_splits(3, x, y.event)]
    of_copies = [tuple(np.nonzero(np.isin(copies, part))[0] for part in pair) for pair in folds]
    models = {"pipeline": make_pipeline(SimpleImputer(), cs.CoxRegression()), "cox": cs.CoxRegression()}
    options = {"scores": "crps", "horizon": 2.0, "discrimination": False}
    weighted = cs.cross_validate(models, x, y, cv=folds, sample_weight=w, **options)
    repeated = cs.cross_validate(models, x[copies], y[copies], cv=of_copies, groups=copies, **options)
    np.testing.assert_allclose(numbers(weighted), numbers(repeated), rtol=1e-6)


def test_per_subject_covariates_of_a_model_need_one_row_each():
    x, y = drawn(60)
    with pytest.raises(InvalidInputError, match="Model 'a': X: got 59 rows, expected 60"):
        cs.cross_validate({"a": (cs.CoxRegression(), x[1:])}, x, y, cv=3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (cs.CoxRegression, r"got the class CoxRegression, expected an estimator: pass CoxRegression\(...\)"),
        (3.5, "got float, expected an estimator that is fitted in every fold"),
        (cs.Exponential([1.0, 2.0]), "got a distribution of 2 subjects, expected 60"),
    ],
)
def test_what_is_no_model(model, message):
    x, y = drawn(60)
    with pytest.raises((InvalidTypeError, InvalidInputError), match=message):
        cs.cross_validate({"a": model}, x, y, cv=3)


def test_joint_forecasts_are_joined_across_folds():
    from censcore.evaluation.parts.folds import out_of_fold

    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(5, 4, 2))
    parts = [
        (np.array([1, 4]), cs.Ensemble(samples[[1, 4]])),
        (np.array([0, 2, 3]), cs.Ensemble(samples[[0, 2, 3]])),
    ]
    joined = out_of_fold(parts, np.arange(5))
    np.testing.assert_array_equal(joined.marginal(1).sf(1.0), cs.Ensemble(samples).marginal(1).sf(1.0))
    rates = rng.uniform(1, 2, (5, 2))
    parts = [
        (rows, cs.Copula("clayton", [cs.Exponential(rates[rows, j]) for j in range(2)], 2.0))
        for rows in (np.array([1, 4]), np.array([0, 2, 3]))
    ]
    whole = cs.Copula("clayton", [cs.Exponential(rates[:, j]) for j in range(2)], 2.0)
    t = rng.uniform(0, 1, (5, 2))
    np.testing.assert_allclose(out_of_fold(parts, np.arange(5)).sf(t), whole.sf(t))


# ---- arguments -------------------------------------------------------------------------------------


def test_both_orders_of_arguments_mean_the_same():
    x, y = drawn(60)
    models = {"cox": cs.CoxRegression()}
    km = cs.Censoring(cs.KaplanMeier())
    calls = [
        cs.cross_validate(models, x, y, cv=3, **PLAIN),
        cs.cross_validate(models, x, y, cv=3, **PLAIN),
        cs.cross_validate(models, x, y, cv=3, **PLAIN, censoring=km),
        cs.cross_validate(models, x, y, censoring=km, cv=3, **PLAIN),
        cs.cross_validate(models, X=x, y=y, censoring=cs.KaplanMeier(), cv=3, **PLAIN),
    ]
    structured = np.array(list(zip(y.event, y.time, strict=True)), dtype=[("e", bool), ("t", float)])
    calls.append(cs.cross_validate(models, x, structured, cv=3, **PLAIN))
    torch = pytest.importorskip("torch")
    tensors = cs.RightCensored(torch.as_tensor(y.time), torch.as_tensor(y.event))
    calls.append(cs.cross_validate(models, x, tensors, cv=3, **PLAIN))
    for found in calls[1:]:
        np.testing.assert_array_equal(numbers(found), numbers(calls[0]))


def test_known_censoring_needs_no_estimate():
    x, y = drawn(90)
    C = cs.Uniform(0.0, 4.0).censor_at(3.0)
    found = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, censoring=C, cv=3, **PLAIN)
    assert found.settings["censoring distribution"].startswith("given")


KM = {"a": cs.KaplanMeier()}


CENSORED_BY_X = "The data show signs that censoring depends on covariates"


@pytest.mark.parametrize(
    ("kind", "repeats"),
    [("one time", 1), ("one time", 2), ("causes", 1), ("several times", 2), ("one C per time", 1)],
)
def test_censoring_that_depends_on_covariates_is_warned_about(kind, repeats):
    """A curve that is pooled within each fold says nothing about x; one given x does."""
    rng = np.random.default_rng(1)
    n = 240
    x = rng.normal(size=(n, 2))
    T, C = rng.weibull(1.5, (n, 2)), rng.exponential(np.exp(1.2 * x[:, :1]), (n, 1)) * np.ones((1, 2))
    model: Any = cs.KaplanMeier()
    if kind == "one time":
        y: Any = cs.RightCensored(np.minimum(T, C)[:, 0], (T <= C)[:, 0])
    elif kind == "causes":
        first = np.minimum(T.min(axis=1), C[:, 0])
        y, model = cs.CompetingRisks(first, np.where(first == C[:, 0], 0, 1 + T.argmin(axis=1))), None
    else:
        C = C if kind == "several times" else C * rng.uniform(0.9, 1.1, (n, 2))
        y, model = cs.RightCensored(np.minimum(T, C), T <= C), kaplan_meier_curves
    models = {"km": cs.AalenJohansen() if model is None else model}
    options: dict[str, Any] = {"scores": "crps", "discrimination": False, "cv": cs.Folds(3, repeats=repeats)}
    found = cs.cross_validate(models, x, y, reference=None, **options)
    assert any(CENSORED_BY_X in warning for warning in found.censoring.warnings)
    assert any(CENSORED_BY_X in note for note in found.notes)
    assert str(found).count(CENSORED_BY_X) == len(found.censoring.warnings)
    assert CENSORED_BY_X in found.to_html()
    if kind == "one time":
        given_x = cs.cross_validate(
            models, x, y, censoring=cs.Censoring(cs.CoxRegression()), reference=None, **options
        )
        assert not any(CENSORED_BY_X in text for text in [*given_x.censoring.warnings, *given_x.notes])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cv": 1}, "got 1 folds, expected between 2 and the 60"),
        ({"cv": True}, "cv: got True, expected a number of folds"),
        ({"cv": "5"}, "cv: got '5', expected a number of folds"),
        ({"cv": 3, "on_error": "stop"}, "on_error must be 'raise' or 'skip'; got 'stop'"),
        ({"cv": 3, "reference": "b"}, "reference: got 'b', expected 'kaplan-meier', .* forecasts: a"),
        ({"cv": KFold(3), "repeats": 2}, "A splitter repeats itself"),
        ({"cv": 3, "repeats": 0}, "repeats: got 0, expected how often"),
        ({"cv": [([0, 1], [1, 2])]}, "fold 1 overlap"),
        ({"cv": [([0, 1], [99])]}, "subject numbers from 0 to 59"),
        ({"cv": [([], [1])]}, "has no subjects on one side"),
        ({"cv": ShuffleSplit(3, random_state=0)}, "Use RepeatedKFold"),
        ({"cv": 3, "censoring": 3.0}, "censoring: got float, expected a censoring distribution"),
    ],
)
def test_options_that_make_no_sense(options, message):
    of_folds = {name: options[name] for name in ("cv", "repeats", "on_error") if name in options}
    others = {name: value for name, value in options.items() if name not in of_folds}
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        cs.cross_validate(KM, *drawn(60), cv=cs.Folds(**of_folds), **others)
    if list(of_folds) == ["cv"]:
        with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
            cs.cross_validate(KM, *drawn(60), **options)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: cs.cross_validate(KM, y, x, cv=3), "got the outcome second, and ndarray third"),
        (lambda x, y: cs.compare(KM, x, y), r"Pass them to cross_validate\(models, X, y, cv=5\)"),
        (lambda x, y: cs.cross_validate({}, x, y, cv=3), "must be a dictionary of at least one forecast"),
    ],
)
def test_arguments_that_make_no_sense(call, message):
    with pytest.raises((InvalidInputError, InvalidTypeError), match=message):
        call(*drawn(60))


def test_an_unknown_option_is_named():
    x, y = drawn(60)
    with pytest.raises(TypeError, match="unexpected keyword argument 'folds'"):
        cs.cross_validate({"a": cs.KaplanMeier()}, x, y, cv=3, folds=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'train'"):
        cs.cross_validate({"a": cs.KaplanMeier()}, x, y, cv=3, train=(x, y))
    with pytest.raises(TypeError, match="unexpected keyword argument 'store'"):
        cs.compare({"a": cs.Exponential(1.0)}, y, cs.Uniform(0, 5), store="x")


# ---- folds -----------------------------------------------------------------------------------------


def test_folds_have_equal_shares_of_events_and_follow_the_seed():
    x, y = drawn()
    splits = make_splits(5, x, y.event, seed=3)
    events = [int(y.event[split.test].sum()) for split in splits]
    assert max(events) - min(events) <= 1
    again, other = make_splits(5, x, y.event, seed=3), make_splits(5, x, y.event, seed=4)
    assert all(np.array_equal(a.test, b.test) for a, b in zip(splits, again, strict=True))
    assert not all(np.array_equal(a.test, b.test) for a, b in zip(splits, other, strict=True))


def test_groups_stay_together():
    x, y = drawn(90)
    hospital = np.array([f"h{i % 9}" for i in range(90)])
    for cv in (3, GroupKFold(3), LeaveOneGroupOut()):
        found = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=cv, groups=hospital, **PLAIN)
        assert not any(set(hospital[s.train]) & set(hospital[s.test]) for s in found.folded.splits)
        assert found.settings["groups"] == 9
        assert not any("of one group into" in note for note in found.notes)
    torn = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=KFold(3), groups=hospital, **PLAIN)
    assert any("of one group into training and test sets" in note for note in torn.notes)
    repr(
        cs.cross_validate(
            {"cox": cs.CoxRegression()},
            x,
            y,
            cv=cs.Folds(3, repeats=2),
            groups=hospital,
            horizon=2.0,
            scores="crps",
        )
    )


@pytest.mark.parametrize(
    "cv", [TimeSeriesSplit(3), PredefinedSplit(np.r_[np.full(50, -1), np.zeros(25), np.ones(25)])]
)
def test_subjects_that_are_never_tested(cv):
    x, y = drawn(100)
    group = np.arange(100) // 2
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()},
        x,
        y,
        cv=cv,
        by={"half": np.arange(100) % 2},
        horizon=2.0,
        scores=["crps", "integrated_brier_score:ipcw"],
        groups=group,
        sample_weight=np.ones(100),
    )
    tested = np.unique(np.concatenate([s.test for s in found.folded.splits]))
    assert found.settings["subjects"] == len(tested) < 100
    assert any(f"cv tests {len(tested)} of 100 subjects" in note for note in found.notes)
    assert np.isfinite(numbers(found)[:2]).all()
    repr(found)


def test_leave_one_out_has_no_pairs_within_folds():
    from sklearn.model_selection import LeaveOneOut

    x, y = drawn(40)
    found = cs.cross_validate(
        {"km": cs.KaplanMeier()}, x, y, cv=LeaveOneOut(), scores="crps", horizon=1.5, times=[0.8]
    )
    lines = found.frame()
    assert np.isfinite(lines[lines.score == "crps"]["mean"]).all()
    notes = lines[lines.score == "concordance:uno"].note
    assert notes.str.contains("fold 1").all()


def test_p_values_of_calibration_are_said_to_be_conservative():
    """Folds are fitted to each other's test subjects, so that what one fold misses the others have seen."""
    x, y = drawn(200)
    found = cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=4, **PLAIN)
    assert 0 < found.calibration("cox").p_value <= 1
    assert "conservative" in found.calibration("cox").note
    assert "p = " in repr(found.calibration("cox"))
    assert "conservative" in found.chart("d-calibration").title
    assert "p-values of calibration are conservative" in found.to_html()
    fixed = cs.compare({"w": cs.Weibull(1.5, np.exp(0.7 * x[:, 0]))}, y, cs.Uniform(0.0, 4.0), **PLAIN)
    assert not fixed.calibration("w").note
    assert "conservative" not in fixed.to_html()


def test_page_plots_and_json(tmp_path):
    x, y = drawn(90)
    found = cs.cross_validate(
        {"cox": cs.CoxRegression()},
        x,
        y,
        cv=cs.Folds(3, repeats=2),
        scores=["crps", "brier_score"],
        horizon=2.0,
    )
    assert "cross-validation" in found.to_json()
    assert "2 repeats" in found.settings["cross-validation"]
    found.plot("brier")
    axes = found.plot("folds", score="brier_score", column=1).axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["cox", "kaplan-meier"]
    with pytest.raises(InvalidInputError, match="score must be 'crps' or 'brier_score'; got 'ibs'"):
        found.plot("folds", score="ibs")
    with pytest.raises(InvalidInputError, match="column: got 5, expected 0 to 2"):
        found.plot("folds", score="brier_score", column=5)
    assert "kaplan-meier" in found.to_html()


# ---- failures, parallel runs, and the store --------------------------------------------------------


def test_a_failure_names_model_and_fold(log):
    x, y = drawn(90)
    models = {"good": cs.CoxRegression(), "bad": Counting(fail_at=2)}
    with pytest.raises(
        FoldError, match="Model 'bad' failed in fold 2, on 60 training subjects: RuntimeError: no conv"
    ):
        cs.cross_validate(models, x, y, cv=3, **PLAIN)
    log.clear()
    found = cs.cross_validate(models, x, y, cv=cs.Folds(3, on_error="skip"), **PLAIN)
    assert found.models == ["good", "kaplan-meier"]
    assert any("Model 'bad' failed in fold 2" in note and "left out" in note for note in found.notes)
    log.clear()
    with pytest.raises(FoldError, match="None of the 1 models could be fitted"):
        cs.cross_validate(
            {"bad": Counting(fail_at=1)}, x, y, cv=cs.Folds(3, on_error="skip"), reference=None, **PLAIN
        )


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_parallel_runs_give_the_same(backend):
    from joblib import parallel_config

    x, y = drawn(60)
    models = {"cox": cs.CoxRegression(), "weibull": cs.WeibullRegression()}
    with parallel_config(backend=backend):
        found = cs.cross_validate(models, x, y, cv=cs.Folds(2, n_jobs=2), **PLAIN)
    np.testing.assert_array_equal(numbers(found), numbers(cs.cross_validate(models, x, y, cv=2, **PLAIN)))


def test_a_stopped_run_goes_on(log, tmp_path):
    x, y = drawn(90)
    models = {"a": Counting("a"), "b": Counting("b", fail_at=2)}
    with pytest.raises(FoldError):
        cs.cross_validate(models, x, y, cv=cs.Folds(3, store=tmp_path), **PLAIN)
    finished = log.count("fit a 60")
    models["b"] = Counting("b")
    log.clear()
    found = cs.cross_validate(models, x, y, cv=cs.Folds(3, store=tmp_path), **PLAIN)
    assert log.count("fit a 60") == 3 - finished
    assert log.count("fit b 60") == 3  # its parameters are others
    log.clear()
    again = cs.cross_validate(models, x, y, cv=cs.Folds(3, store=tmp_path), **PLAIN)
    assert log == []
    np.testing.assert_array_equal(numbers(again), numbers(found))
    np.testing.assert_array_equal(numbers(cs.cross_validate(models, x, y, cv=3, **PLAIN)), numbers(found))


@pytest.mark.parametrize("change", ["X", "y", "weight", "folds", "model", "damage"])
def test_a_change_leads_to_new_fits(change, tmp_path):
    x, y = drawn(60)
    folds = [(s.train, s.test) for s in make_splits(2, x, y.event)]
    alpha, weight, event = 0.1, np.ones(60), y.event.copy()
    cs.cross_validate(
        {"cox": cs.CoxRegression(alpha=alpha)},
        x,
        y,
        cv=cs.Folds(folds, store=tmp_path),
        sample_weight=weight,
        **PLAIN,
    )
    kept = {path.name for path in tmp_path.iterdir()}
    assert len(kept) == 4
    if change == "X":
        x[0, 0] += 1e-9
    elif change == "y":
        event[0] = ~event[0]
    elif change == "weight":
        weight[0] = 2.0
    elif change == "folds":
        folds = folds[::-1]
        folds[0] = (folds[0][0][1:], folds[0][1])
    elif change == "model":
        alpha = 0.2
    else:
        for path in tmp_path.iterdir():
            path.write_bytes(path.read_bytes()[:-100])
    y = cs.RightCensored(y.time, event)
    found = cs.cross_validate(
        {"cox": cs.CoxRegression(alpha=alpha)},
        x,
        y,
        cv=cs.Folds(folds, store=tmp_path),
        sample_weight=weight,
        **PLAIN,
    )
    fresh = cs.cross_validate(
        {"cox": cs.CoxRegression(alpha=alpha)}, x, y, cv=folds, sample_weight=weight, **PLAIN
    )
    np.testing.assert_array_equal(numbers(found), numbers(fresh))
    new = {path.name for path in tmp_path.iterdir()} - kept
    assert len(new) == {"folds": 2, "model": 2, "damage": 0}.get(change, 4)


def test_a_killed_run_leaves_no_part_of_a_file(tmp_path):
    """Only whole files have the name that is looked for."""
    path = tmp_path / "a.safetensors"
    assert save_value(path, (cs.Weibull([1.0, 2.0], 3.0), {"seconds": 1.0}))
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]
    (tmp_path / "b.safetensors").write_bytes(b"")
    assert load_forecast(tmp_path / "b.safetensors") is None
    assert load_forecast(tmp_path / "c.safetensors") is None


@pytest.mark.parametrize(
    "change",
    [
        lambda t, d: (cs.RightCensored(t, d), cs.RightCensored(t, d, entry=0.5 * t)),
        lambda t, d: (cs.CompetingRisks(t, d + d * (t > 1)), cs.CompetingRisks(t, d + d * (t > 2))),
        lambda t, d: (cs.IntervalCensored(t, t + 1), cs.IntervalCensored(t, t + 1, entry=0.5 * t)),
        lambda t, d: (
            cs.IntervalCensored(t, t + 1, np.stack([t, t + 1], 1)),
            cs.IntervalCensored(t, t + 1, np.stack([t, t + 1, t + 2], 1)),
        ),
        lambda t, d: (cs.IntervalCensored(t, t + 1), cs.RightCensored(t, np.ones(len(t)))),
    ],
    ids=["entry", "cause", "entry of intervals", "visits", "kind"],
)
def test_all_that_was_seen_names_the_files_of_the_store(change):
    rng = np.random.default_rng(0)
    t, d, x = rng.uniform(0.1, 3.0, 30), rng.integers(0, 2, 30), rng.normal(size=(30, 2))
    keys = [data_key(Sample(x, y)) for y in (*change(t, d), *change(t, d))]
    assert keys[:2] == keys[2:]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("kind", ["intervals", "causes"])
def test_the_store_takes_every_kind_of_outcome(kind, tmp_path):
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=(60, 1)), rng.uniform(0.1, 3.0, 60)
    if kind == "intervals":
        y, models = cs.IntervalCensored(t, t + 1), {"m": cs.WeibullRegression()}
    else:
        y, models = cs.CompetingRisks(t, rng.integers(0, 3, 60)), {"m": cs.CauseSpecific(cs.CoxRegression())}
    options = {"cv": cs.Folds(2, store=tmp_path), "discrimination": False, "reference": None}
    options |= {"scores": "log_score"}
    if kind == "causes":
        options["scores"] = "crps"
    one, two = (cs.cross_validate(models, x, y, **options).frame() for _ in range(2))
    assert one.equals(two)
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "forecast",
    [
        cs.Weibull([1.0, 2.0], 3.0),
        cs.Step([1.0, 2.0], sf=np.array([[0.9, 0.4], [0.8, 0.1]])),
        cs.Quantiles([0.1, 0.5], np.array([[1.0, 2.0], [2.0, 3.0]])),
        cs.Ensemble(np.array([[1.0, 2.0], [2.0, 3.0]], dtype=np.float32)),
        cs.Mixture([cs.Exponential([1.0, 2.0]), cs.LogNormal(0.0, 1.0)], [0.5, 0.5]),
        cs.Copula("clayton", [cs.Exponential([1.0, 2.0]), cs.Exponential(1.0)], 2.0),
        cs.Weibull([1.0, 2.0], 3.0).censor_at(2.0),
    ],
    ids=lambda forecast: type(forecast).__name__,
)
def test_forecasts_survive_the_store(forecast, tmp_path):
    assert save_value(tmp_path / "a.safetensors", (forecast, {"seconds": 1.0}))
    found, about = load_forecast(tmp_path / "a.safetensors")
    t = np.full(forecast.shape, 1.5)
    np.testing.assert_array_equal(found.sf(t), forecast.sf(t))
    assert type(found) is type(forecast)
    assert about == {"seconds": 1.0}


def test_a_file_can_name_distributions_only(tmp_path):
    from censcore.model_files import write_model_file

    for tree in ({"class": "Univariate.__subclasses__", "state": {}}, {"class": "os.system", "state": {}}):
        write_model_file(tmp_path / "a", "result", {}, {"value": {"tuple": [tree, {"dict": []}]}})
        assert load_forecast(tmp_path / "a") is None


def test_forecasts_that_are_no_arrays_are_fitted_again(tmp_path):
    from scipy import stats

    x, y = drawn(60)

    def weibull(X, y, X_test):
        return stats.weibull_min(1.5, scale=np.full(len(X_test), 1.0))

    found = [
        cs.cross_validate({"w": weibull}, x, y, cv=cs.Folds(2, store=tmp_path), **PLAIN) for _ in range(2)
    ]
    assert all(any("not made of arrays alone" in note for note in one.notes) for one in found)
    np.testing.assert_array_equal(numbers(found[0]), numbers(found[1]))


def test_keys_of_models():
    _, y = drawn(20)

    def key(model):
        return model_key("m", model, y)

    scale = 2.0

    def make(factor):
        return lambda X, y, X_test: cs.Exponential(factor * scale)

    assert (
        key(cs.CoxRegression(alpha=1.0))
        == key(cs.CoxRegression(alpha=1.0))
        != key(cs.CoxRegression(alpha=2.0))
    )
    assert key(make_pipeline(SimpleImputer(), cs.CoxRegression())) != key(cs.CoxRegression())
    assert key(make(1.0)) == key(make(1.0)) != key(make(3.0))
    assert key(Counting(tag="a")) != key(Counting(tag="b"))
    assert key(cs.KaplanMeier()) != key((cs.KaplanMeier(), np.zeros((20, 1))))
    with pytest.raises(InvalidInputError, match=r"store: model 'm' holds builtins\.object"):
        key(Counting(tag=object()))


def test_progress_and_seconds(capsys):
    pytest.importorskip("rich")
    x, y = drawn(60)
    found = cs.cross_validate(
        {"slow": lambda X, y, X_test: (clock.sleep(0.01), cs.Exponential(1.0))[1]},
        x,
        y,
        cv=2,
        progress=True,
        **PLAIN,
    )
    assert found.folds().query("model == 'slow'").seconds.min() >= 0.01
