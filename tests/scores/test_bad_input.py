"""Bad input has an error that says what to do; odd but valid input has a finite answer, never NaN."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.scores.scenarios import SCORES

import censcore as cs
from censcore.exceptions import (
    CenscoreError,
    ContradictionError,
    ImpossibleForecastError,
    InvalidInputError,
    InvalidTypeError,
    MissingCensoringError,
    PositivityError,
    UnsupportedOutcomeError,
)

INF, NAN = float("inf"), float("nan")
Y = cs.RightCensored([1.0, 2.0, 0.5], [1, 0, 1])
F = cs.Weibull(np.array([1.0, 1.5, 2.0]), 1.0)
C = cs.Uniform(0.0, 4.0)

# ---- refused by name -------------------------------------------------------------------------------

REFUSED = {
    "a bare pair": (lambda: cs.crps(([1.0], [1]), F), InvalidTypeError, "got tuple.*RightCensored"),
    "a matrix as forecast": (
        lambda: cs.crps(Y, np.ones((3, 4)), C),
        InvalidTypeError,
        r"forecast must be a censcore Distribution; got ndarray.*Step\(times, sf=matrix\)",
    ),
    "a number as censoring distribution": (
        lambda: cs.crps(Y, F, 5.0),
        InvalidTypeError,
        "censoring must be.*got float",
    ),
    "no censoring distribution": (
        lambda: cs.crps(Y, F),
        MissingCensoringError,
        "1 of 3 times are censored.*PointMass",
    ),
    "a censored row that cannot be": (
        lambda: cs.crps(Y, F, cs.PointMass(INF)),
        ContradictionError,
        r"excludes the censoring times of 1 subject \(1\) \(got 2, expected never\).*improper",
    ),
    "a censored row before its c": (lambda: cs.crps(Y, F, cs.PointMass(3.0)), ContradictionError, "excludes"),
    "a time beyond c": (
        lambda: cs.crps(Y, F, cs.PointMass([0.5, 2.0, 0.5])),
        ContradictionError,
        r"follow-up as long as that of 1 subject \(0\) \(the earliest time is 1\).*horizon=0.5",
    ),
    "a contradiction in the log score": (
        lambda: cs.log_score(Y, F, cs.PointMass(INF)),
        ContradictionError,
        "excludes",
    ),
    "an event beyond the support of C": (
        lambda: cs.crps(Y, F, cs.Uniform(0.0, 0.75)),
        PositivityError,
        r"2 subjects \(0, 1\).*earliest time is 1.*horizon=0.75",
    ),
    "other numbers of rows": (
        lambda: cs.crps(Y, cs.Weibull([1.0, 2.0], 1.0), C),
        InvalidInputError,
        "outcome has 3, forecast has 2",
    ),
    "joint outcome": (
        lambda: cs.crps(cs.RightCensored([[1.0, 2.0]], [[1, 1]]), cs.Ensemble(np.ones((1, 5, 2)))),
        InvalidInputError,
        r"one event time per subject.*energy_score",
    ),
    "joint forecast": (
        lambda: cs.crps(Y, cs.Ensemble(np.ones((3, 5, 2))), C),
        InvalidInputError,
        "outcome has 1 event times per subject and the forecast 2",
    ),
    "joint censoring distribution": (
        lambda: cs.crps(Y, F, cs.Independent([C, C])),
        InvalidInputError,
        "censoring distribution has 2 coordinates",
    ),
    "competing risks": (lambda: cs.RightCensored([1.0], [2]), UnsupportedOutcomeError, "competing risks"),
    "an entry after the time": (
        lambda: cs.RightCensored([1.0], [1], entry=[1.5]),
        InvalidInputError,
        "entry must be below time",
    ),
    "a forecast that is impossible at the entry": (
        lambda: cs.crps(cs.RightCensored([3.0], [1], entry=2.0), cs.Uniform(0.0, 1.5), C),
        ImpossibleForecastError,
        r"P\(T > a\) = 0 in 1 subject \(0\)",
    ),
    "no times": (lambda: cs.brier_score(Y, F, C), InvalidInputError, "times=... is missing"),
    "no levels": (lambda: cs.pinball_score(Y, F, C), InvalidInputError, "levels=... is missing"),
    "a negative time": (
        lambda: cs.brier_score(Y, F, C, -1.0),
        InvalidInputError,
        "times must be non-negative",
    ),
    "an infinite time": (lambda: cs.brier_score(Y, F, C, [1.0, INF]), InvalidInputError, "finite; got inf"),
    "a missing time": (lambda: cs.binomial_log_score(Y, F, C, [NAN]), InvalidInputError, "got nan"),
    "no time at all": (lambda: cs.brier_score(Y, F, C, []), InvalidInputError, r"got shape \(0,\)"),
    "times of another number of rows": (
        lambda: cs.brier_score(Y, F, C, np.ones((2, 4))),
        InvalidInputError,
        "outcome has 3, times has 2",
    ),
    "a time at the horizon": (
        lambda: cs.brier_score(Y, F, C, [1.0, 1.5], horizon=1.5),
        InvalidInputError,
        r"below the horizon \(1.5\); got 1.5",
    ),
    "a time beyond one row's horizon": (
        lambda: cs.binomial_log_score(Y, F, C, 1.0, horizon=[2.0, 0.9, 3.0]),
        InvalidInputError,
        "below the horizon",
    ),
    "an unknown scale": (
        lambda: cs.brier_score(Y, F, C, 1.0, scale="IPCW"),
        InvalidInputError,
        "'localized' or 'ipcw'; got 'IPCW'",
    ),
    "ipcw beyond the support of C": (
        lambda: cs.brier_score(Y, F, C, 5.0, scale="ipcw"),
        PositivityError,
        "zero from t = 5",
    ),
    "words for a horizon": (
        lambda: cs.crps(Y, F, C, horizon="auto"),
        InvalidInputError,
        r"option of compare",
    ),
    "numbers and tensors": (None, InvalidTypeError, "different libraries"),
}
for bad in (0.0, 1.0, -0.1, 1.5, NAN):
    REFUSED[f"level {bad}"] = (
        lambda bad=bad: cs.pinball_score(Y, F, C, [0.5, bad]),
        InvalidInputError,
        "levels must be strictly between 0 and 1",
    )
for bad in (0.0, -1.0, NAN, INF):
    for name, score in SCORES.items():
        REFUSED[f"horizon {bad} in {name}"] = (
            lambda bad=bad, score=score: score(Y, F, C, horizon=bad),
            InvalidInputError,
            "horizon must be positive and finite",
        )


@pytest.mark.parametrize("case", [case for case, (call, *_) in REFUSED.items() if call])
def test_refused(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, CenscoreError)
    assert isinstance(caught.value, ValueError | TypeError)


@pytest.mark.parametrize("bad", [[1.0, 2.0], [[1.0], [2.0], [3.0]]])
def test_horizons_must_fit_the_rows(bad):
    with pytest.raises(InvalidInputError, match="horizon"):
        cs.crps(Y, F, C, horizon=bad)


@pytest.mark.parametrize("name", SCORES)
def test_mixed_libraries_are_refused(name):
    torch = pytest.importorskip("torch")
    tensor = torch.ones(3, dtype=torch.float64)
    for mixed in ((Y.like(tensor), F, C), (Y, F.like(tensor), C), (Y, F, cs.Exponential(tensor))):
        with pytest.raises(InvalidTypeError, match=r"different libraries.*torch on cpu"):
            SCORES[name](*mixed)
    with pytest.raises(InvalidTypeError, match="horizon in torch"):
        SCORES[name](Y, F, C, horizon=tensor)
    with pytest.raises(InvalidTypeError, match="times in torch"):
        cs.brier_score(Y, F, C, tensor)


def test_a_positivity_error_names_a_horizon_that_works():
    events = cs.RightCensored([1.0, 2.0, 3.0, 3.0], [1, 1, 1, 0])
    for distribution in (
        cs.Uniform(0.0, 2.5),
        cs.Uniform(0.0, 2.0),  # an event on an end that C reaches with probability zero
        cs.Step([1.5, 2.0], sf=[0.5, 0.0]),
        cs.Weibull(1.0, [1.0, 2.0, 3.0, 4.0]).censor_at([1.0, 1.5, 2.5, 3.0]),
    ):
        for name, score in SCORES.items():
            if name in ("log", "brier ipcw"):
                continue
            with pytest.raises(PositivityError) as caught:
                score(events, cs.Weibull(1.0, 1.0), distribution)
            assert np.isfinite(
                score(events, cs.Weibull(1.0, 1.0), distribution, horizon=caught.value.horizon)
            ).all()
            assert 2 in caught.value.rows


# ---- odd but valid ---------------------------------------------------------------------------------


def test_unsorted_grids_keep_their_columns():
    times, sf = np.array([2.0, 0.5, 1.0]), np.array([[0.1, 0.8, 0.4]] * 3)
    order = np.argsort(times)
    one, other = cs.Step(times, sf=sf), cs.Step(times[order], sf=sf[:, order])
    for score in (SCORES["crps"], SCORES["brier"], SCORES["pinball"]):
        np.testing.assert_array_equal(score(Y, one, C), score(Y, other, C))
    with pytest.raises(InvalidInputError, match="distinct"):
        cs.Step([1.0, 1.0], sf=[0.5, 0.4])
    with pytest.raises(InvalidInputError, match="increase"):
        cs.Step([1.0, 2.0], sf=[0.5, 0.6])
    at = [1.0, 0.2, 0.6]
    np.testing.assert_array_equal(
        cs.brier_score(Y, F, C, at)[:, [1, 2, 0]], cs.brier_score(Y, F, C, sorted(at))
    )


@pytest.mark.parametrize("name", SCORES)
def test_one_row_all_censored_and_all_seen(name):
    score = SCORES[name]
    one = score(Y.take([0]), F.take([0]), C)
    assert one.shape == (1,)
    assert one[0] == pytest.approx(score(Y, F, C)[0], rel=1e-12)
    for event in ([0, 0, 0], [1, 1, 1]):
        loss = score(cs.RightCensored([1.0, 2.0, 0.5], event), F, C)
        assert np.isfinite(loss).all()
    with pytest.raises(InvalidInputError, match="at least one subject"):
        score(cs.RightCensored([], []), F, C)
    with pytest.raises(InvalidInputError, match="at least one subject"):
        Y.take(np.zeros(3, dtype=bool))


@pytest.mark.parametrize("name", SCORES)
def test_integers_lists_and_half_precision_are_numbers(name):
    score = SCORES[name]
    expected = score(cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 1]), F, C)
    np.testing.assert_array_equal(score(cs.RightCensored([1, 2, 3], [True, False, True]), F, C), expected)
    half = np.array([1, 2, 3], dtype=np.float16)
    loss = score(
        cs.RightCensored(half, [1, 0, 1]), cs.Weibull(np.float16([1.0, 1.5, 2.0]), np.float16(1.0)), C
    )
    assert loss.dtype == np.float32
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    structured = np.array([(True, 1.0), (False, 2.0), (True, 3.0)], dtype=[("e", bool), ("t", float)])
    np.testing.assert_array_equal(score(structured, F, C), expected)


def test_a_horizon_beyond_the_support_changes_nothing():
    for name, score in SCORES.items():
        np.testing.assert_allclose(score(Y, F, C, horizon=100.0), score(Y, F, C), rtol=1e-9, err_msg=name)


ODD_TIMES = [0.0, 5e-324, 1e-300, 1e-8, 0.5, 1.0, 1.0, 2.0, 30.0, 1e9, 1e300]
positive = st.sampled_from([1e-3, 0.3, 1.0, 2.5, 40.0])


def probabilities(shape):
    return hnp.arrays(float, shape, elements=st.floats(0, 1))


@st.composite
def forecasts(draw, n):
    rows = draw(st.sampled_from([1, n]))
    kind = draw(
        st.sampled_from(
            ["weibull", "lognormal", "loglogistic", "step", "linear", "ensemble", "cured", "point"]
        )
    )
    parameter = hnp.arrays(float, rows, elements=positive)
    if kind == "weibull":
        return cs.Weibull(draw(parameter), draw(parameter))
    if kind == "lognormal":
        return cs.LogNormal(np.log(draw(parameter)), np.minimum(draw(parameter), 3.0))
    if kind == "loglogistic":
        return cs.LogLogistic(draw(parameter), draw(parameter))
    if kind == "cured":
        weight = draw(probabilities(rows))
        return cs.Mixture(
            [cs.Weibull(draw(parameter), 1.0), cs.PointMass(INF)], np.stack([weight, 1 - weight], 1)
        )
    if kind == "point":
        return cs.PointMass(draw(hnp.arrays(float, rows, elements=st.sampled_from([*ODD_TIMES, INF]))))
    size = draw(st.integers(1, 6))
    if kind == "ensemble":
        members = hnp.arrays(float, (rows, size), elements=st.sampled_from([*ODD_TIMES, INF]))
        return cs.Ensemble(draw(members))
    times = np.sort(
        draw(hnp.arrays(float, size, elements=st.sampled_from(ODD_TIMES), unique=True, fill=st.nothing()))
    )
    assume(len(np.unique(times)) == size and (kind == "step" or times[0] > 0))
    sf = -np.sort(-draw(probabilities((rows, size))), axis=1)
    return (cs.Step if kind == "step" else cs.PiecewiseLinear)(times, sf=sf)


@st.composite
def problems(draw):
    """An outcome that its censoring distribution can produce, and any forecast."""
    n = draw(st.integers(1, 4))
    distribution = draw(
        st.sampled_from(
            [
                cs.Uniform(0.0, 3.0),
                cs.Exponential(0.5),
                cs.LogLogistic(0.4, 1.0),
                cs.Step([0.5, 1.0, 2.0], sf=[0.7, 0.7, 0.0]),
                cs.Step([0.0, 1.0], sf=[0.9, 0.3]),
                cs.Step(np.linspace(0.1, 4, 50), sf=np.linspace(0.99, 0.0, 50)),
                cs.PiecewiseLinear([1.0, 3.0], sf=[0.5, 0.0]),
                cs.Weibull(2.0, 1e-3).censor_at(2.0),
                cs.PointMass(INF),
                cs.PointMass(1.0),
                cs.Ensemble([[0.0, 0.5, 1.0, INF]]),
            ]
        )
    )
    T = draw(hnp.arrays(float, n, elements=st.sampled_from(ODD_TIMES)))
    level = draw(hnp.arrays(float, n, elements=st.floats(0.001, 0.999)))
    c = np.broadcast_to(distribution.icdf(level), (n,))
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    return y, draw(forecasts(n)), distribution


@settings(max_examples=100)
@given(problems(), st.sampled_from([None, 1.7, 1e5]))
def test_scores_of_valid_input_are_never_nan(inputs, horizon):
    y, forecast, distribution = inputs
    calls = {
        "crps": lambda: cs.crps(y, forecast, distribution, horizon=horizon),
        "brier": lambda: cs.brier_score(y, forecast, distribution, [0.0, 1.0, 1.5], horizon=horizon),
        "binomial log": lambda: cs.binomial_log_score(
            y, forecast, distribution, [0.0, 1.0, 1.5], horizon=horizon
        ),
        "pinball": lambda: cs.pinball_score(
            y, forecast, distribution, [1e-9, 0.5, 1 - 1e-9], horizon=horizon
        ),
        "integrated, ipcw": lambda: cs.integrated_brier_score(
            y, forecast, distribution, scale="ipcw", horizon=horizon
        ),
    }
    for name, call in calls.items():
        try:
            loss = call()
        except PositivityError as error:
            assert horizon is None or "P(C >" in str(error) or "no chance" in str(error), name  # noqa: PT017
            continue
        assert not np.isnan(loss).any(), name
        assert (loss >= -1e-15).all(), name
        assert name == "binomial log" or np.isfinite(loss).all(), name
        assert loss.shape[0] == len(y)


@settings(max_examples=60)
@given(problems(), st.randoms(use_true_random=False))
def test_rows_are_scored_each_for_itself(inputs, random):
    y, forecast, distribution = inputs
    order = list(range(len(y)))
    random.shuffle(order)
    moved = forecast.take(order) if len(forecast) > 1 else forecast
    for score in (SCORES["crps"], SCORES["pinball"]):
        loss = score(y, forecast, distribution, horizon=2.0)
        np.testing.assert_allclose(
            score(y[order], moved, distribution, horizon=2.0), loss[order], rtol=1e-12, atol=1e-300
        )


def test_a_tiny_time_under_a_step_forecast():
    """The panel from y to a jump spans hundreds of decades, and y serves several jumps."""
    y = cs.RightCensored([5e-324], [1])
    loss = cs.crps(y, cs.Step([1.0], sf=[[0.5]]), cs.LogLogistic([2.0], [1.0]), horizon=2.0)
    expected = np.pi / 4 + 0.25 * (np.arctan(2.0) - np.pi / 4)  # the integral of G S^2, G = 1 / (1 + t^2)
    assert loss[0] == pytest.approx(expected, rel=1e-6)
