"""The gate in front of public functions: what once passed it, or met a foreign error behind it."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.linear_model import LinearRegression

import censcore as cs
from censcore import evaluation, published, scores
from censcore._validation import as_count, as_generator, as_labels, as_number, as_weights, check_option
from censcore.exceptions import CenscoreError, InvalidIndexError, InvalidInputError, InvalidTypeError

TIME, EVENT = np.array([0.5, 1.0, 1.0, 2.0, 3.0, 0.25]), np.array([1, 0, 1, 1, 0, 1], dtype=bool)
Y, F, C = cs.RightCensored(TIME, EVENT), cs.Weibull(1.3, np.linspace(1.0, 3.0, 6)), cs.Uniform(0.0, 5.0)
JOINT = cs.Independent([F, C])
TWO = cs.RightCensored(np.column_stack([TIME, TIME]), np.column_stack([EVENT, EVENT]))
INTERVALS = cs.IntervalCensored([1.0, 2.0], [2.0, np.inf], visits=[[1.0, 2.0], [1.0, 2.0]])
MODELS, RISK = {"a": F, "b": cs.Exponential(1.0)}, np.linspace(1.0, 0.0, 6)
QUICK = {"scores": "crps", "reference": None, "horizon": 2.0}
DAY = datetime.timedelta(days=1)
ITSELF: list = [1.0]
ITSELF.append(ITSELF)
TIME_40 = cs.RightCensored(np.linspace(0.1, 4.0, 40), np.arange(40) % 3 > 0)

REFUSED = {
    "an integer too large for a float": (lambda: cs.Weibull(10**400, 1.0), "shape.*integer too large"),
    "such integers in a list": (
        lambda: cs.Exponential([1, 10**400]),
        "rate.*too large for a float in entry 1",
    ),
    "a ragged list": (lambda: cs.Exponential([[1.0, 2.0], [3.0]]), "rate must be a number or an array"),
    "a list that holds itself": (lambda: cs.Exponential(ITSELF), "rate must be a number or an array"),
    "complex numbers": (lambda: cs.Exponential(np.ones(2, complex)), "rate must hold numbers.*complex128"),
    "objects": (lambda: cs.Exponential(np.array([object()])), "rate must hold numbers; got <object"),
    "a complex tensor": (lambda: cs.Exponential(torch.ones(2, dtype=torch.complex64)), "real numbers"),
    "masked entries": (lambda: cs.Exponential(np.ma.masked_array([1.0, 2.0], [0, 1])), "masked entries"),
    "nothing": (lambda: cs.Exponential(None), "rate must hold numbers; got None"),
    "an array where a rule expects a distribution": (
        lambda: published.ipcw_brier(Y, np.ones((6, 2)), C, times=[1.0]),
        "forecast must be a censcore Distribution; got ndarray",
    ),
    "no confidence": (
        lambda: cs.compare(MODELS, Y, C, confidence=None, **QUICK),
        "got None, expected a number between",
    ),
    "a confidence in percent": (
        lambda: cs.compare(MODELS, Y, C, confidence=95, **QUICK),
        "got 95, expected a number between 0 and 1",
    ),
    "a seed that is no number": (
        lambda: cs.compare(MODELS, Y, C, seed="a", **QUICK),
        "seed must be a whole number",
    ),
    "a score that is a number": (
        lambda: cs.compare(MODELS, Y, C, scores=3.0),
        "scores: got 3.0, expected a list",
    ),
    "times that are a distribution": (
        lambda: cs.compare(MODELS, Y, C, times=cs.Exponential(np.ones(40)), scores="brier_score"),
        "times: got Exponential.*expected numbers",
    ),
    "a horizon that is NaN": (lambda: evaluation.concordance(Y, RISK, C, horizon=np.nan), "got nan"),
    "a negative time of an AUC": (lambda: evaluation.dynamic_auc(Y, RISK, C, [-1.0]), "non-negative times"),
    "a time without cases": (lambda: evaluation.dynamic_auc(Y, RISK, C, [0.1]), "no pair of subjects"),
    "one group": (lambda: cs.mean_loss(TIME, groups=np.zeros(6)), "at least two groups.*got one"),
    "one group in a comparison": (
        lambda: cs.compare(MODELS, Y, C, groups=np.zeros(6), **QUICK),
        "got one group",
    ),
    "a diagnostic at horizon 0": (
        lambda: cs.censoring_diagnostic(Y, C, horizon=0.0),
        "horizon must be.*above 0",
    ),
    "a subnormal parameter": (lambda: cs.Gompertz(5e-324, 1.0), "where the formulas have digits"),
    "infinity in X": (
        lambda: cs.CoxRegression().fit(np.full((6, 1), np.inf), Y),
        "X contains infinity",
    ),
    "a number as X": (lambda: cs.CoxRegression().fit(3.0, Y), "X: got float, expected covariates"),
    "a fraction of a draw": (lambda: F.sample(2.5), "whole number of at least 1; got 2.5"),
    "more draws than fit": (lambda: F.sample(10**17, seed=0), "do not fit into memory"),
    "a seed that is a text": (lambda: F.sample(3, seed="a"), "seed must be a whole number"),
    "places that do not exist": (lambda: F.take([7]), "rows: got places that do not exist.*from 0 to 5"),
    "places that are fractions": (lambda: Y.take([0.5]), "rows: got .*expected places of subjects"),
    "names that are a number": (
        lambda: cs.CompetingRisks([1.0], [1], names=3),
        "names: got 3, expected a list",
    ),
    "a frame that is a number": (lambda: cs.RightCensored.from_frame(3), "expected a data frame"),
    "a model that is a number": (lambda: cs.Adapted(3.0).fit(None, Y), "expected a model with fit"),
    "landmarks that are none": (
        lambda: cs.compare_landmarks(MODELS, Y, C, landmarks=object(), window=0.5),
        "landmarks: got object, expected a list of times",
    ),
    "a landmark that is NaN": (
        lambda: cs.compare_landmarks(MODELS, Y, C, landmarks=[np.nan], window=0.5),
        "landmarks: got NaN in entry 0",
    ),
    "a Kendall's tau that is a duration": (
        lambda: cs.dependent_censoring_sensitivity(MODELS, Y, times=1.0, tau=DAY),
        "tau must hold numbers; got .*timedelta",
    ),
    "a time that is a duration": (
        lambda: cs.dependent_censoring_sensitivity(MODELS, Y, times=DAY),
        "times must hold numbers; got .*timedelta",
    ),
    "a horizon that is a duration of NumPy": (
        lambda: cs.dependent_censoring_sensitivity(MODELS, Y, horizon=np.timedelta64(1, "D")),
        "horizon must be a number; got timedelta64",
    ),
    "replicates that are a duration": (
        lambda: cs.dependent_censoring_sensitivity(MODELS, Y, times=1.0, replicates=DAY),
        "replicates must be a whole number; got timedelta",
    ),
    "a seed that is a duration": (
        lambda: cs.dependent_censoring_sensitivity(MODELS, Y, times=1.0, seed=DAY),
        "seed must be a whole number; got timedelta",
    ),
    "no subject": (lambda: F.take([]), "Weibull: got no subject, expected at least one"),
    "places of two axes": (lambda: F.take(np.array([[0]])), "rows: got .*expected places of subjects"),
    "one truth for all subjects": (lambda: JOINT.take(True), "rows: got True, expected places"),
    "edges that are no list": (
        lambda: cs.JointGrid(object(), np.ones((1, 2, 2)) / 4, 1.0),
        "edges: got object",
    ),
    "no edges": (lambda: cs.JointGrid([], np.ones((1, 2, 2)) / 4, 1.0), "edges: got an empty list"),
    "events of other subjects": (
        lambda: F.log_likelihood(1.0, np.ones((4, 1))),
        "distribution has 6, event has 4",
    ),
    "events that are no array": (
        lambda: cs.RightCensored([1.0, 2.0], ITSELF),
        "event must be an array; got list that is none",
    ),
    "gaps of other subjects": (
        lambda: INTERVALS.continue_visits(cs.Exponential([1.0, 2.0, 3.0]), until=5.0),
        "gaps has 3, outcome has 2",
    ),
    "breaks that are complex": (
        lambda: cs.PiecewiseExponentialRegression(breaks=np.ones(2, complex)).fit(None, Y),
        "breaks must hold numbers.*complex",
    ),
    "a spread whose square overflows": (
        lambda: cs.CoxRegression().fit([[1e200], [0.0], [1.0], [2.0], [3.0], [4.0]], Y),
        r"X: got values .* apart in column 0, expected differences",
    ),
    "widths that are an array": (
        lambda: cs.CopulaWeibull(hidden=np.array([4.0])).fit(None, TWO),
        "hidden: got ndarray, expected the widths",
    ),
    "a random state below zero": (
        lambda: cs.CopulaWeibull(random_state=-1).fit(None, TWO),
        "random_state must be a whole number from 0 to .*; got -1",
    ),
    "scores of several events that are a number": (
        lambda: cs.compare({"a": JOINT}, TWO, C, scores=np.float32(1.0)),
        "scores: got float32, expected a list of names of scores",
    ),
    "losses whose squares overflow": (
        lambda: cs.mean_loss([1.0, 1e200]),
        r"losses: got 1e\+200 in 1 subject",
    ),
    "risks of nobody": (lambda: cs.from_risk(RISK, Y, np.zeros(0)), r"test_risk must have shape \(n,\)"),
    "a benefit where nobody can be followed": (
        lambda: evaluation.net_benefit(Y, F, cs.Gompertz(1e100, 1e-100), 1.0, [0.2]),
        "gives no chance to follow-up as long as",
    ),
    "landmarks that hold themselves": (
        lambda: cs.compare_landmarks(MODELS, Y, C, landmarks=ITSELF, window=0.5),
        "landmarks must be a number or an array of numbers",
    ),
    "folds that are objects": (
        lambda: cs.cross_validate({"a": cs.KaplanMeier()}, None, Y, cv=[object()]),
        "cv: got object for fold 1, expected a pair",
    ),
    "a subset that is a list": (
        lambda: cs.compare(MODELS, Y, C, **QUICK).estimate("a", "crps", subset=[0]),
        "subset must be a whole number; got list",
    ),
    "replicates without end": (
        lambda: cs.dependent_censoring_sensitivity(MODELS, Y, times=1.0, replicates=4e16),
        "replicates must be a whole number from 0 to 1000000",
    ),
    "levels of a scorer": (lambda: cs.scorer("pinball_score", levels=[2.0]), "strictly between 0 and 1"),
    "names of event times that are a number": (
        lambda: cs.compare({"a": JOINT}, TWO, C, names=0.0),
        "names: got 0.0, expected a list of names",
    ),
    "joint events that are a number": (
        lambda: cs.compare({"a": JOINT}, TWO, C, events=3),
        "events: got 3, expected a list of names of joint events",
    ),
    "a joint event that is a number": (
        lambda: cs.compare({"a": JOINT}, TWO, C, events={"late": 3.0}),
        "events: got float for 'late', expected a function",
    ),
    "a model that is none of event times": (
        lambda: cs.Adapted(LinearRegression()).fit(np.ones((6, 1)), Y),
        "LinearRegression: expected a model of event times.*got TypeError",
    ),
    "a horizon without digits": (
        lambda: cs.crps(Y, F, C, horizon=5e-324),
        "horizon must be positive.*digits",
    ),
    "limits in another library": (
        lambda: cs.distributions.CensoredJoint(JOINT, torch.ones(6)),
        "different libraries.*tau in torch",
    ),
    "upper bounds in another library": (
        lambda: published.survival_crps(Y, F, upper=torch.ones(6)),
        "different libraries.*upper in torch",
    ),
    "weights of a mean in another library": (
        lambda: scores.clustered_mean(TIME, torch.full((6,), 1 / 6)),
        "different libraries.*weight in torch",
    ),
    "weights of a mean that do not sum to one": (
        lambda: scores.clustered_mean(TIME, np.full(6, 1e231)),
        "weight must be between 0 and 1",
    ),
    "one time of nobody": (
        lambda: cs.RightCensored(1.0, 1, censoring_time=[2.0, 3.0]),
        r"time must have shape \(n,\)",
    ),
    "one cause of nobody": (lambda: cs.CompetingRisks(TIME, 1), r"both have shape \(n,\); got"),
    "ends of follow-up of others": (
        lambda: INTERVALS.detection(until=[]),
        "until must be a number or one per subject",
    ),
    "curves of nobody": (
        lambda: cs.as_forecast(np.ones((0, 3)), times=[1.0, 2.0, 3.0], interpolation="step"),
        "got an array of shape|at least one|no subject|empty",
    ),
    "no draws": (lambda: cs.from_draws(pd.DataFrame()), r"Draws: got an array of shape \(0, 0\)"),
    "draws that are complex": (lambda: cs.from_draws(np.ones((2, 3), complex)), "Draws must hold numbers"),
    "a class as X": (
        lambda: cs.WeibullRegression().fit(None, Y).predict_distribution(cs.Weibull),
        "X: got the class Weibull, expected an instance",
    ),
    "a flag that is an array": (
        lambda: cs.Censoring(cs.KaplanMeier(), shared=np.ones(3)).fit(None, Y),
        "shared must be True or False; got ndarray",
    ),
    "a column that is a number": (
        lambda: cs.OutcomeTable(pd.DataFrame({"t": [1.0], "d": [1]}), 1618, "d"),
        "time: got 1618, expected a list of names of columns",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_error_says_what_to_do(name):
    call, words = REFUSED[name]
    with pytest.raises(CenscoreError, match=words):
        call()


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.astype(np.longdouble),
        lambda x: x.astype(object),
        lambda x: x.astype(">f8"),
        lambda x: x.tolist(),
        lambda x: np.repeat(x, 2)[::2],
    ],
)
def test_the_same_numbers_written_in_another_way_have_the_same_answer(write):
    x = np.array([0.5, 1.0, 2.0])
    time, scale = write(x), write(x)
    y, forecast = cs.RightCensored(time, [1, 1, 1]), cs.Weibull(1.5, scale)
    assert y.time.dtype == np.float64
    expected = cs.crps(cs.RightCensored(x, [1, 1, 1]), cs.Weibull(1.5, x))
    np.testing.assert_array_equal(cs.crps(y, forecast), expected)


def test_read_only_arrays_and_gradients_are_left_as_they_are():
    x = np.array([0.5, 1.0, 2.0])
    x.flags.writeable = False
    assert np.isfinite(cs.crps(cs.RightCensored(x, [1, 1, 1]), cs.Weibull(1.5, x))).all()
    scale = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    y = cs.RightCensored(torch.tensor([1.0, 2.0], dtype=torch.float64), torch.tensor([True, True]))
    cs.crps(y, cs.Weibull(1.5, scale)).sum().backward()
    assert torch.isfinite(scale.grad).all()


def test_a_tail_that_ends_at_once_has_an_area():
    """A rate times a time beyond the largest float leaves nothing of the tail, without a warning."""
    cells = np.array([[[0.3, 0.1], [0.2, 0.4]]])
    steep, edge = (cs.JointGrid([0.0, 1.0], cells, tail=rate).marginal(0) for rate in (1e16, 1e300))
    np.testing.assert_allclose(steep.mean(), 0.4 * 0.5 + 0.6, rtol=1e-12)
    np.testing.assert_allclose(edge.sf([[0.5, 1.0, 1e300]]), [[0.8, 0.6, 0.0]])
    assert steep.integrated_sf(0.0, 1e300) == pytest.approx(0.8, rel=1e-12)


def test_one_rate_for_all_times_has_quantiles():
    X = np.linspace(-1.0, 1.0, 6)[:, None]
    F = cs.PiecewiseExponentialRegression(breaks=0, alpha=0.1).fit(X, Y).predict_distribution(X)
    np.testing.assert_allclose(F.sf(F.icdf(0.3)), 0.7)


def test_a_small_span_of_a_calibration_curve_reaches_two_subjects_with_a_known_status():
    rng = np.random.default_rng(2)
    T, c = rng.weibull(1.3, 40), rng.uniform(0.2, 3.0, 40)
    models = {"a": cs.Weibull(1.3, np.linspace(0.8, 1.4, 40))}
    found = cs.compare(models, cs.RightCensored(np.minimum(T, c), c >= T), cs.Uniform(0.2, 3.0), **QUICK)
    curve = found.calibration("a", time=1.0, span=1e-66)
    assert all(0 <= point["observed"] <= 1 for point in curve.smoothed)


def test_measures_without_a_pair_say_so_instead_of_nan():
    early = cs.compare(MODELS, Y, C, **{**QUICK, "horizon": 0.1})
    lines = early.frame()
    assert "no pair of subjects" in lines.loc[lines["score"] == "auc", "note"].iloc[0]
    assert "nan" not in repr(early)


def test_a_distribution_among_numbers_ends_at_once():
    """NumPy would take parts of parts of forty distributions, 64 times over."""
    for value in (cs.Exponential(np.ones(40)), cs.RightCensored(np.ones(40), np.ones(40))):
        with pytest.raises(InvalidTypeError, match=f"got {type(value).__name__}, expected numbers"):
            np.asarray(value)
        with pytest.raises(InvalidTypeError, match=f"got {type(value).__name__}, expected numbers"):
            np.asarray([value])


def test_subjects_at_a_landmark_come_from_any_frame():
    columns = ["id", "start", "stop", "event", "x"]
    table = pd.DataFrame([[1, 0, 2, 0, 7], [1, 2, 5, 1, 9], [3, 1, 4, 0, 4]], columns=columns)
    (rows, y), (same, again) = cs.at_landmark(table, 3.0), cs.at_landmark(pl.from_pandas(table), 3.0)
    assert same["x"].to_list() == rows["x"].to_list() == [9, 4]
    np.testing.assert_array_equal(y.time, again.time)


def test_numbers_of_any_precision_are_settings():
    X, half = np.linspace(-1.0, 1.0, 6)[:, None], np.longdouble(0.5)
    found = cs.CoxRegression(alpha=half).fit(X, Y).coef_
    np.testing.assert_array_equal(found, cs.CoxRegression(alpha=0.5).fit(X, Y).coef_)
    intervals = cs.IntervalCensored.from_right_censored(Y)
    assert cs.Turnbull(max_iter=50.0).fit(None, intervals).n_iter_ <= 50


def test_models_of_a_cross_validation_may_be_called_forecasts():
    found = cs.cross_validate(models={"a": cs.KaplanMeier()}, y=TIME_40, X=None, cv=2, **QUICK)
    assert found.models == ["a"]


def test_weights_of_any_size_have_an_error():
    """The square of a weight may be beyond all floats, and the product of two below."""
    weight = np.array([0.5, 1.0, 1e249, 2.0, 0.7, 1.5])
    estimate = evaluation.concordance_estimate(Y, RISK, C, sample_weight=weight)
    assert 0 <= estimate.value[0] <= 1
    small = published.d_calibration(Y, F, sample_weight=weight / 1e249)
    assert published.d_calibration(Y, F, sample_weight=weight).note == small.note


def test_a_small_hazard_reaches_no_jump():
    forecast = cs.distributions.ProportionalHazards([1.0, 2.0], [0.1, 0.5], risk=[1e-310, 1.0])
    np.testing.assert_array_equal(forecast.icdf(0.3), [np.inf, 2.0])
    np.testing.assert_array_equal(forecast.icdf_beyond(0.5, 0.3), [np.inf, 2.0])


def test_checks_return_what_they_checked():
    assert as_number(np.float32(0.5), "x", above=0) == 0.5
    assert as_number(torch.tensor(2.0), "x") == 2.0
    assert as_count(np.int64(3), "k") == 3
    assert as_count(3.0, "k") == 3
    np.testing.assert_array_equal(as_weights((1, 2), 2), [1.0, 2.0])
    np.testing.assert_array_equal(as_labels(["b", "a"], 2), ["b", "a"])
    assert as_generator(3).random() == np.random.default_rng(3).random()
    check_option("a", "x", ("a", "b"))


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (lambda: as_number(True, "x"), InvalidTypeError),
        (lambda: as_number("1", "x"), InvalidTypeError),
        (lambda: as_number(np.inf, "x"), InvalidInputError),
        (lambda: as_number(10**400, "x"), InvalidInputError),
        (lambda: as_count(True, "x"), InvalidTypeError),
        (lambda: as_count(np.nan, "x"), InvalidInputError),
        (lambda: as_weights([1e308, 1e308], 2), InvalidInputError),
        (lambda: as_labels([1.0, np.nan], 2), InvalidInputError),
        (lambda: as_labels(np.array(["a", 1], dtype=object), 2), InvalidTypeError),
        (lambda: check_option(["a"], "x", ("a", "b")), InvalidInputError),
        (lambda: cs.Exponential([1.0, 2.0]).take(["a"]), InvalidIndexError),
    ],
)
def test_checks_name_what_is_wrong(check, error):
    with pytest.raises(error):
        check()
