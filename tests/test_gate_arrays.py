"""What arrays and frames may not hold: masked entries, text, codes without end; tensors without entries."""

from __future__ import annotations

import signal

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

import censcore as cs
from censcore import evaluation, outcomes, simulation
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError
from tests.learning.small_trainings import engression

N = 30
RNG = np.random.default_rng(0)
TIME, EVENT = RNG.weibull(1.3, N) + 0.01, np.arange(N) % 3 > 0
X, WEIGHT, GROUPS = RNG.normal(size=(N, 2)), np.ones(N), np.arange(N) // 2
CAUSE = np.where(EVENT, 1 + np.arange(N) % 2, 0)
Y, CAUSES = cs.RightCensored(TIME, EVENT), cs.CompetingRisks(TIME, CAUSE)
TWO = cs.RightCensored(np.column_stack([TIME, TIME]), np.column_stack([EVENT, EVENT]))
F, C = cs.Weibull(1.3, np.linspace(1.0, 2.0, N)), cs.Uniform(0.0, 9.0)
MODELS = {"a": F, "b": cs.Exponential(1.0)}
QUICK = {"scores": "crps", "reference": None, "horizon": 2.0}
STRUCTURED = np.array(list(zip(EVENT, TIME, strict=True)), dtype=[("event", bool), ("time", float)])
ENGRESSION = {
    "epochs": 1,
    "width": 4,
    "samples": 2,
    "n_samples": 4,
    "n_networks": 1,
    "random_state": 0,
}


def masked(values):
    """The values with the first of them masked."""
    values = np.asarray(values)
    mask = np.zeros(values.shape, dtype=bool)
    mask.flat[0] = True
    return np.ma.masked_array(values, mask=mask)


def text(values):
    return np.asarray(values).astype(str)


def sparse(values):
    return torch.as_tensor(np.asarray(values)).to_sparse()


def regressions():
    """Regressions of every family, and what hands covariates on to one."""
    return [
        cs.CoxRegression(),
        cs.WeibullRegression(),
        cs.PiecewiseExponentialRegression(breaks=2),
        cs.Censoring(cs.CoxRegression()),
        cs.Censoring(cs.WeibullRegression(), cv=3),
        cs.Adapted(cs.CoxRegression()),
        evaluation.WithCensoring(cs.WeibullRegression()),
        engression(**ENGRESSION),
        cs.CopulaWeibull(hidden=(4,), epochs=1, random_state=0),
    ]


def estimators_that_read_x():
    return [*regressions(), cs.KaplanMeier(stratify=0)]


def named(estimator):
    return str(estimator).split("(")[0]


# ---- masked entries --------------------------------------------------------------------------------

MASKED = {
    "event": lambda: cs.RightCensored(TIME, masked(EVENT)),
    "event as numbers": lambda: cs.RightCensored(TIME, masked(EVENT.astype(int))),
    "time": lambda: cs.RightCensored(masked(TIME), EVENT),
    "censoring_time": lambda: cs.RightCensored(TIME, EVENT, masked(TIME + EVENT)),
    "entry": lambda: cs.RightCensored(TIME, EVENT, entry=masked(TIME / 2)),
    "event of a structured array": lambda: cs.RightCensored.from_structured(
        np.ma.masked_array(STRUCTURED, mask=[(True, False)] + [(False, False)] * (N - 1))
    ),
    "all of a structured array": lambda: cs.RightCensored(
        np.ma.masked_array(STRUCTURED, mask=[(True, False)] + [(False, False)] * (N - 1)), EVENT
    ),
    "cause": lambda: cs.CompetingRisks(TIME, masked(CAUSE)),
    "causes of draws": lambda: cs.CauseEnsemble(np.ones((2, 3)), masked(np.ones((2, 3), dtype=int))),
    "event of semi-competing risks": lambda: cs.SemiCompetingRisks(TWO.time, masked(TWO.event)),
    "found": lambda: cs.IntervalCensored.current_status(TIME, masked(EVENT)),
    "lower": lambda: cs.IntervalCensored(masked(TIME), TIME + 1),
    "visits": lambda: cs.IntervalCensored(TIME, TIME + 1, visits=masked(np.column_stack([TIME, TIME + 1]))),
    "never": lambda: outcomes.EventOfCause(TIME, EVENT, masked(~EVENT)),
    "rows": lambda: Y.take(masked([0, 1])),
    "group": lambda: cs.distributions.Grouped([C, C], masked([1, 0, 1])),
    "groups of a mean": lambda: cs.mean_loss(TIME, groups=masked(GROUPS)),
    "groups of a comparison": lambda: cs.compare(MODELS, Y, C, groups=masked(GROUPS), **QUICK),
    "groups of a cross-validation": lambda: cs.cross_validate(
        {"a": cs.WeibullRegression()}, X, Y, cv=2, groups=masked(GROUPS), **QUICK
    ),
    "groups of a diagnostic": lambda: cs.censoring_diagnostic(Y, C, groups=masked(GROUPS)),
    "groups of a network": lambda: cs.CopulaWeibull().fit(X, TWO, groups=masked(GROUPS)),
    "groups of coefficients": lambda: cs.CoxRegression().fit(X, Y).summary(groups=masked(GROUPS)),
    "subgroups": lambda: cs.compare(MODELS, Y, C, by={"sex": masked(GROUPS % 2)}, **QUICK),
    "weights of a mean": lambda: cs.mean_loss(TIME, sample_weight=masked(WEIGHT)),
    "weights of a regression": lambda: cs.CoxRegression().fit(X, Y, sample_weight=masked(WEIGHT)),
    "weights of a comparison": lambda: cs.compare(MODELS, Y, C, sample_weight=masked(WEIGHT), **QUICK),
    "times of a score": lambda: cs.brier_score(Y, F, C, masked([0.5, 1.0])),
    "levels": lambda: cs.pinball_score(Y, F, C, masked([0.1, 0.5])),
    "horizon": lambda: cs.crps(Y, F, C, horizon=np.ma.masked),
    "mask of a score": lambda: cs.energy_score(
        TWO, cs.Ensemble(np.ones((N, 3, 2))), cs.Independent([C, C]), mask=masked(np.ones((N, 2), bool))
    ),
    "mask of a fit": lambda: cs.CopulaWeibull().fit(X, TWO, mask=masked(np.ones((N, 2), bool))),
    "losses": lambda: cs.mean_loss(masked(TIME)),
    "risk": lambda: evaluation.concordance(Y, masked(TIME), C),
    "draws": lambda: cs.from_draws(masked(np.ones((2, 3, 4)))),
    "forecast": lambda: cs.as_forecast(masked([[0.9, 0.5]]), times=[1.0, 2.0], interpolation="step"),
    "X of a comparison": lambda: cs.compare(
        MODELS, Y, cs.Censoring(cs.CoxRegression()), X=masked(X), **QUICK
    ),
    "X of a cross-validation": lambda: cs.cross_validate(
        {"a": cs.WeibullRegression()}, masked(X), Y, cv=2, **QUICK
    ),
    "X of a diagnostic": lambda: cs.censoring_diagnostic(Y, C, X=masked(X)),
    "X of a scenario": lambda: simulation.DataScenario(
        masked(X), cs.WeibullRegression().fit(X, Y), cs.Censoring(cs.KaplanMeier()).fit(X, Y)
    ),
    "X of causes": lambda: cs.CauseSpecific(cs.CoxRegression()).fit(masked(X), CAUSES),
}


@pytest.mark.parametrize("name", MASKED)
def test_masked_entries_are_an_error_that_says_so(name):
    with pytest.raises(InvalidInputError, match="masked entries"):
        MASKED[name]()


@pytest.mark.parametrize("estimator", estimators_that_read_x(), ids=named)
def test_masked_covariates_are_an_error_in_fit_and_prediction(estimator):
    y = TWO if isinstance(estimator, cs.CopulaWeibull) else Y
    with pytest.raises(InvalidInputError, match="X: got a masked array with masked entries"):
        estimator.fit(masked(np.round(X)), y)
    fitted = estimator.fit(np.round(X), y)
    with pytest.raises(InvalidInputError, match="X: got a masked array with masked entries"):
        fitted.predict_distribution(masked(np.round(X)))


def test_a_mask_without_entries_is_none():
    y = cs.RightCensored(np.ma.masked_array(TIME), np.ma.masked_array(EVENT, mask=np.zeros(N, bool)))
    np.testing.assert_array_equal(y.event, EVENT)
    np.testing.assert_array_equal(
        cs.CoxRegression().fit(np.ma.masked_array(X), y).coef_, cs.CoxRegression().fit(X, Y).coef_
    )
    assert cs.mean_loss(TIME, groups=np.ma.masked_array(GROUPS)) == cs.mean_loss(TIME, groups=GROUPS)


def test_missing_labels_are_named_as_such():
    dates = np.where(GROUPS == 0, np.datetime64("NaT"), np.datetime64("2024-01-01") + GROUPS)
    for labels in (dates, pd.Series([None, "a"] * (N // 2)), pd.array([None, 1] * (N // 2), dtype="Int64")):
        with pytest.raises(InvalidInputError, match=r"groups: got .*, expected a label, in"):
            cs.mean_loss(TIME, groups=labels)


# ---- text where numbers are expected ---------------------------------------------------------------

TEXT = {
    "times": lambda: cs.RightCensored(text(TIME), EVENT),
    "a list of times": lambda: cs.RightCensored(text(TIME).tolist(), EVENT),
    "times as objects": lambda: cs.RightCensored(text(TIME).astype(object), EVENT),
    "one time of many": lambda: cs.RightCensored([1.0, "2"], [1, 1]),
    "bytes": lambda: cs.RightCensored(text(TIME).astype("S"), EVENT),
    "times in a frame": lambda: cs.RightCensored.from_frame(pd.DataFrame({"time": text(TIME), "event": 1})),
    "censoring time": lambda: cs.RightCensored([1.0], [1], "5"),
    "entry": lambda: cs.RightCensored(TIME, EVENT, entry="0"),
    "causes": lambda: cs.CompetingRisks(TIME, text(CAUSE)),
    "causes as objects": lambda: cs.CompetingRisks(TIME, text(CAUSE).astype(object)),
    "intervals": lambda: cs.IntervalCensored(["1"], ["2"]),
    "visits": lambda: cs.IntervalCensored([1.0], [2.0], visits=[["1", "2"]]),
    "parameters": lambda: cs.Weibull("1", 2.0),
    "times of a curve": lambda: cs.Step(["1", "2"], sf=[0.5, 0.2]),
    "a time of a distribution": lambda: F.sf("1"),
    "a level of a distribution": lambda: F.icdf("0.5"),
    "a cut": lambda: Y.censor_at("1"),
    "a landmark": lambda: Y.at_risk("0.1"),
    "a horizon": lambda: cs.crps(Y, F, C, horizon="5"),
    "a horizon of a comparison": lambda: cs.compare(MODELS, Y, C, **{**QUICK, "horizon": "5"}),
    "a horizon of a diagnostic": lambda: cs.censoring_diagnostic(Y, C, horizon="5"),
    "a horizon of landmarks": lambda: cs.compare_landmarks(MODELS, Y, C, landmarks=["0.2"], window="5"),
    "a horizon of concordance": lambda: evaluation.concordance(Y, TIME, C, horizon="5"),
    "a time of a score": lambda: cs.brier_score(Y, F, C, "1"),
    "times of a score": lambda: cs.brier_score(Y, F, C, ["1"]),
    "times of a comparison": lambda: cs.compare(MODELS, Y, C, times=["1"], scores="brier_score"),
    "levels": lambda: cs.pinball_score(Y, F, C, ["0.5"]),
    "thresholds": lambda: evaluation.net_benefit(Y, F, C, 1.0, ["0.2"]),
    "thresholds of a comparison": lambda: cs.compare(MODELS, Y, C, **QUICK).net_benefit(thresholds=["0.2"]),
    "weights": lambda: cs.mean_loss(TIME, sample_weight=["1"] * N),
    "losses": lambda: cs.mean_loss(["1"] * N),
    "risks": lambda: evaluation.concordance(Y, text(TIME), C),
    "numbers of groups": lambda: cs.distributions.Grouped([C, C], ["1", "0"]),
    "draws": lambda: cs.from_draws(text(np.ones((2, 3, 4)))),
    "X": lambda: cs.CoxRegression().fit(text(X), Y),
    "X as objects": lambda: cs.CoxRegression().fit(text(X).astype(object), Y),
    "X as lists": lambda: cs.CoxRegression().fit(text(X).tolist(), Y),
    "X of a network": lambda: engression(epochs=1).fit(text(X).astype(object), Y),
    "edges of a grid": lambda: cs.JointGridModel(edges=["0", "1"], epochs=1).fit(X, TWO),
}


@pytest.mark.parametrize("name", TEXT)
def test_text_is_no_number(name):
    with pytest.raises(CenscoreError, match=r"(?s)(got .*'|text|dtype|hold numbers)"):
        TEXT[name]()


def test_an_error_of_text_says_how_it_becomes_numbers():
    with pytest.raises(
        InvalidTypeError, match=r"time must hold numbers; got '2\.5' in entry 1, which is text"
    ):
        cs.RightCensored([1.0, "2.5"], [1, 1])


# ---- sparse tensors, and tensors without data ------------------------------------------------------

WITHOUT_ENTRIES = {
    "time": lambda make: cs.RightCensored(make(TIME), make(EVENT)),
    "event": lambda make: cs.RightCensored(torch.as_tensor(TIME).to(make(EVENT).device), make(EVENT)),
    "cause": lambda make: cs.CompetingRisks(torch.as_tensor(TIME), make(CAUSE)),
    "cause of times in NumPy": lambda make: cs.CompetingRisks(TIME, make(CAUSE)),
    "X": lambda make: cs.CoxRegression().fit(make(X), Y),
    "X of a network": lambda make: engression(epochs=1).fit(make(X), Y),
    "a parameter": lambda make: cs.Weibull(make(WEIGHT), 1.0),
    "weights": lambda make: cs.mean_loss(TIME, sample_weight=make(WEIGHT)),
    "groups": lambda make: cs.mean_loss(TIME, groups=make(GROUPS)),
    "rows": lambda make: Y.take(make([1, 1])),
}


@pytest.mark.parametrize("name", WITHOUT_ENTRIES)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (sparse, r"sparse tensor.*to_dense\(\)"),
        (lambda x: torch.as_tensor(np.asarray(x)).to("meta"), "tensor without data"),
    ],
    ids=["sparse", "meta"],
)
def test_tensors_have_entries(name, make, words):
    with pytest.raises(InvalidTypeError, match=words):
        WITHOUT_ENTRIES[name](make)


@pytest.mark.parametrize("rows", [[0], [2, 1], [True, False, True]], ids=str)
def test_tensors_choose_subjects_of_arrays_too(rows):
    """NumPy takes a tensor of one place for a number."""
    y, F = (
        cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 1]),
        cs.Independent([cs.Weibull([1.0, 2.0, 3.0], 1.0)] * 2),
    )
    np.testing.assert_array_equal(y.take(torch.tensor(rows)).time, y.take(rows).time)
    for one in (F, F.marginal(0), F.censor_at([1.0, 2.0, 3.0])):
        assert one.take(torch.tensor(rows)).shape == one.take(rows).shape
    edges = F.marginal(0).panel_edges()  # what is remembered of all subjects goes with those who are chosen
    np.testing.assert_array_equal(F.marginal(0).take(torch.tensor(rows)).panel_edges(), edges[rows])


def test_numbers_that_single_precision_does_not_hold():
    y, F = cs.RightCensored(TIME, EVENT), cs.Weibull(np.float32([1.5]), np.float32([2.0]))
    with pytest.raises(InvalidInputError, match=r"up to 1e\+100, which float32 does not hold"):
        cs.crps(y, F, cs.Uniform(0.0, 1e100))


def test_sparse_matrices_are_no_times():
    with pytest.raises(InvalidTypeError, match="sparse"):
        cs.RightCensored(scipy.sparse.csr_matrix(TIME[None]), EVENT)
    with pytest.raises(InvalidTypeError, match="toarray"):
        cs.CoxRegression().fit(scipy.sparse.csr_matrix(X), Y)


# ---- causes ----------------------------------------------------------------------------------------


@pytest.fixture
def soon():
    """End a test that enumerates what nobody has: an error in its words, not a wait."""

    def stop(*_):
        raise AssertionError("no end after 10 s")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 10.0)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0.0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("code", [10_001, 10**7, 2**62, 1e30, 1e300])
def test_large_codes_of_causes_end_at_once(soon, code):
    codes = np.where(EVENT, np.where(np.arange(N) % 2, 1, code), 0)
    words = "expected numbers from 1 to at most 10000.*return_inverse"
    for call in (
        lambda: cs.CompetingRisks(TIME, codes),
        lambda: cs.CompetingRisks.from_frame(pd.DataFrame({"time": TIME, "cause": codes})),
        lambda: cs.AalenJohansen().fit(None, pd.DataFrame({"time": TIME, "cause": codes})),
        lambda: cs.CauseEnsemble(np.ones((2, 3)), np.array([[1, code, 1]] * 2)),
    ):
        with pytest.raises(InvalidInputError, match=words):
            call()


def test_the_advice_on_large_codes_works():
    codes = np.where(EVENT, np.where(np.arange(N) % 2, 410, 10**7), 0)
    found, cause = np.unique(codes, return_inverse=True)
    y = cs.CompetingRisks(TIME, cause, names=[f"code {code}" for code in found[1:]])
    assert y.names == ("code 410", "code 10000000")
    np.testing.assert_array_equal(y.causes == 2, codes == 10**7)


def test_many_causes_are_summed_up_in_words(soon):
    y = cs.CompetingRisks(TIME, np.where(EVENT, np.where(np.arange(N) % 2, 3, 9_999), 0))
    assert repr(y).startswith(f"CompetingRisks(n={N}, events: cause 3 ")
    assert len(repr(y)) < 200
    for call in (lambda: cs.AalenJohansen().fit(None, y), lambda: y.cause(10_000), lambda: y.cause("x")):
        with pytest.raises(InvalidInputError) as error:
            call()
        assert len(str(error.value)) < 600


# ---- one event time --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: evaluation.net_benefit(TWO, F, C, 1.0, [0.2]),
        lambda: evaluation.net_benefit(TWO, cs.Independent([F, F]), C, 1.0, [0.2]),
        lambda: evaluation.concordance(TWO, TIME, C),
        lambda: evaluation.concordance_estimate(TWO, TIME, C),
        lambda: evaluation.dynamic_auc(TWO, TIME, C, [1.0]),
        lambda: evaluation.dynamic_auc_estimate(TWO, TIME, C, [1.0]),
    ],
    ids=["net_benefit", "net_benefit, joint", "concordance", "its error", "dynamic_auc", "its error"],
)
def test_measures_of_one_event_time_say_so(call):
    with pytest.raises(CenscoreError, match=r"one event time.*y\.marginal\(j\)"):
        call()


def test_the_forecast_of_a_net_benefit_has_one_event_time():
    with pytest.raises(CenscoreError, match=r"1 event times per subject and the forecast 2"):
        evaluation.net_benefit(Y, cs.Independent([F, F]), C, 1.0, [0.2])


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: cs.IntervalCensored([1.0, 2.0], [2.0, 3.0], visits=[1, 2, 3]).censor_at(np.ones(3)),
            "tau must be",
        ),
        (lambda: cs.Independent([cs.Weibull(1.5, 1.0)] * 2).sf(np.zeros((0, 2))), "t must have one column"),
        (
            lambda: cs.OutcomeTable("t.csv", "time", "event", censoring_time=np.ones(3)),
            "the name of a column",
        ),
        (lambda: cs.OutcomeTable("t.csv", np.zeros((0, 3)), np.zeros((0, 3))), "got 0 and 0 columns"),
        (
            lambda: (
                cs.Stacking([("km", cs.KaplanMeier())]).fit(None, Y).predict_distribution([[1.0], [1.0, 2]])
            ),
            "X must be an array",
        ),
    ],
)
def test_shapes_and_names_are_checked_before_they_are_used(call, match):
    with pytest.raises(CenscoreError, match=match):
        call()


START_STOP = pd.DataFrame({"id": [1, 1], "start": [0.0, 2.0], "stop": [2.0, 5.0], "event": [0, 1]})
VISITED = cs.IntervalCensored([1.0, 2.0], [2.0, 3.0], visits=[1, 2, 3])
PAIR = cs.RightCensored([[1.0, 2.0], [2.0, 3.0]], [[1, 1], [1, 1]])
JOINT = cs.Independent([cs.Weibull(1.5, 1.0)] * 2)
EMPTY = np.zeros(0)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: cs.distributions.CompactStep(np.zeros((0, 3)), np.full((2, 3), 0.5)), "at least one time"),
        (lambda: cs.distributions.CompactStep([1.0], torch.ones(2, 1).to_sparse()), "sf: got a sparse"),
        (lambda: cs.PointMass([1.0, 2.0, 3.0]).censor_at(EMPTY), "tau must be"),
        (lambda: cs.PointMass([1.0, 2.0, 3.0]).censor_at(np.ones(4)), "numbers of subjects differ"),
        (lambda: cs.Step([1.0], sf=[0.5]).censor_at(EMPTY), "tau must be"),
        (lambda: cs.Exponential(1.0).like(torch.ones(2, device="meta")), "tensor without data"),
        (lambda: cs.Exponential(1.0).take(masked([True])), "masked"),
        (lambda: cs.JointGrid([0.0, 1.0], np.zeros((0, 2, 2)), "infinity"), "must have the shape"),
        (lambda: VISITED.detection(torch.ones(2)), "until"),
        (lambda: VISITED.continue_visits(JOINT, 5.0), "a distribution of the time between"),
        (lambda: VISITED.continue_visits(START_STOP, 5.0), "a distribution of the time between"),
        (lambda: cs.IntervalCensored([1.0, 2.0], [2.0, 3.0], visits=[1.0, [2.0]]), "beside lists"),
        (lambda: cs.RightCensored.from_frame(START_STOP, "stop", pd.DataFrame()), "their names"),
        (lambda: cs.at_landmark(START_STOP[:0], 1.0), "got no rows"),
        (lambda: cs.censoring_diagnostic(cs.CumulativeIncidence([1.0], [[[0.5]]])), "outcome"),
    ],
)
def test_what_has_no_subject_or_another_kind_is_named(call, match):
    with pytest.raises(CenscoreError, match=match):
        call()


@pytest.mark.parametrize("event", [len, lambda t: t[..., 0], lambda t: t < 1, cs.Weibull])
def test_a_joint_event_is_a_function_that_gives_one_boolean_per_subject(event):
    with pytest.raises(CenscoreError, match="event: got"):
        cs.joint_brier_score(PAIR, JOINT, None, 1.0, event=event)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: cs.Folds(3, on_error=np.ones(3)), "on_error"),
        (lambda: cs.compare(MODELS, Y, C, **QUICK, time_unit=pd.DataFrame()), "time_unit: got DataFrame"),
        (lambda: cs.compare(MODELS, Y, C, **QUICK, train=cs.Sample(None, Y, groups=EMPTY)), "one label per"),
        (lambda: cs.cross_validate(MODELS, None, Y, **QUICK, cv=torch.ones(3)), "cv: got Tensor"),
        (lambda: cs.cross_validate(MODELS, None, Y, **QUICK, cv=np.ma.masked), "cv: got MaskedConstant"),
        (
            lambda: cs.compare({"a": cs.AalenJohansen().fit(None, CAUSES)}, CAUSES, C, **QUICK, names=3.0),
            "names: got 3.0",
        ),
    ],
)
def test_options_of_a_comparison_are_checked_before_they_are_compared(call, match):
    with pytest.raises(CenscoreError, match=match):
        call()


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"width": 10**20}, "width must be a whole number from 1 to 100000"),
        ({"depth": 10**20}, "depth must be a whole number from 1 to 1000"),
        ({"noise_dim": 10**20}, "noise_dim must be a whole number from 1 to 100000"),
        ({"epochs": 4e16}, "epochs must be a whole number from 1 to 10000000"),
        ({"samples": 10**20}, "samples must be a whole number from 2 to 1000000"),
        ({"n_samples": 10**20}, "n_samples must be a whole number from 1 to 1000000"),
        ({"n_networks": 10**20}, "n_networks must be a whole number from 1 to 1000"),
        ({"random_state": 10**20}, "random_state must be a whole number from 0"),
        ({"learning_rate": 1e300}, "learning_rate must be a finite number above 0"),
        ({"validation_fraction": np.ones(3)}, "validation_fraction must be a number"),
        ({"device": np.ones(3)}, "device must be"),
    ],
)
def test_sizes_of_networks_and_of_their_training_have_bounds_that_errors_name(settings, match):
    with pytest.raises(CenscoreError, match=match):
        engression(**{**ENGRESSION, **settings}).fit(X, Y, censoring=C)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"hidden": (10**20,)}, "hidden, the width of a layer, must be a whole number from 1 to 100000"),
        ({"hidden": (4,) * 2000}, "hidden: got 2000 layers"),
        ({"max_iter": 10**20}, "max_iter must be a whole number from 1 to 10000000"),
        ({"bins": 10**20}, "bins must be a whole number from 2 to 1000"),
    ],
)
def test_sizes_of_a_grid_and_of_its_network_have_bounds_that_errors_name(settings, match):
    with pytest.raises(CenscoreError, match=match):
        cs.JointGridModel(**{"epochs": 1, "bins": 3, **settings}).fit(X, TWO)


@pytest.mark.parametrize("make", [cs.CopulaWeibull, cs.JointGridModel])
def test_covariates_of_networks_may_have_a_gradient(make):
    settings = {"hidden": (4,), "epochs": 1, "random_state": 0}
    plain = make(**settings).fit(X, TWO).predict_distribution(X).first().sf(1.0)
    tensor = torch.tensor(X, requires_grad=True)
    assert np.array_equal(
        make(**settings).fit(tensor, TWO).predict_distribution(tensor).first().sf(1.0), plain
    )


def test_large_logits_make_probabilities():
    logits = np.array([[[1e20, 1e20], [0.0, -1e20]]])
    grid = cs.JointGrid.from_logits([0.0, 1.0], logits, tail="infinity")
    assert np.allclose(grid.probabilities, [[[0.5, 0.5], [0.0, 0.0]]])


def test_a_wrong_number_of_columns_is_an_error_without_a_warning_of_their_names(recwarn):
    model = cs.WeibullRegression().fit(X, Y)
    with pytest.raises(InvalidInputError, match="X has 1 features, but WeibullRegression is expecting 2"):
        model.predict_distribution(pd.DataFrame({"a": TIME}))
    assert not recwarn.list
