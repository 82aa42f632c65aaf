"""Data that would give a misleading answer: a leak, rows of one subject, an empty follow-up, few events."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.evaluation.decisions.notes import notes_on_leaks
from censcore.exceptions import InvalidInputError, InvalidTypeError, RiskSetWarning


@pytest.fixture(scope="module")
def data() -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    T, C = rng.weibull(1.5, 400) * 3 * np.exp(-0.5 * x), rng.uniform(0.5, 5.6, 400)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


# ---- the outcome among the covariates ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("leak", "told"),
    [
        (lambda y: y.time, "is the observed time"),
        (lambda y: -np.log(y.time), "is a function of the observed time"),
        (lambda y: 365.25 * y.time, "is a function of the observed time"),
        (lambda y: y.event.astype(int), "says who had the event"),
        (lambda y: 1.0 - y.event, "says who had the event"),
    ],
)
def test_a_covariate_that_holds_the_outcome(data, leak, told):
    x, y = data
    X = pd.DataFrame({"x": x, "leak": leak(y)})
    options = {"scores": "crps", "discrimination": False}
    notes = cs.cross_validate([cs.KaplanMeier()], X, y, cv=2, **options).notes
    assert sum(f"Column 'leak' of X {told}" in note for note in notes) == 1
    forecasts = {"a": cs.Exponential(0.3)}
    found = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), X=X.to_numpy(), **options)
    assert sum(f"Column 1 of X {told}" in note for note in found.notes) == 1


def test_covariates_that_only_look_like_it(data):
    x, y = data
    rng = np.random.default_rng(1)
    rounded = np.ceil(y.time)  # many subjects share a value
    near = y.time + 1e-3 * rng.normal(size=len(y))
    almost = np.where(np.arange(len(y)) == 7, ~y.event, y.event)
    X = pd.DataFrame({"x": x, "rounded": rounded, "near": near, "almost": almost, "one": 1.0, "text": "a"})
    assert notes_on_leaks(X, y) == []
    coarse = cs.RightCensored(np.ceil(y.time / 2), y.event)
    assert notes_on_leaks(np.column_stack([coarse.time]), coarse) == []  # few distinct times


# ---- rows (start, stop] ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def intervals() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(size=120)
    T = rng.exponential(4 * np.exp(-z))
    i, j = np.nonzero(np.arange(4) < T[:, None])
    stop = np.minimum(T[i], j + 1)
    return pd.DataFrame(
        {"id": i, "start": j, "stop": stop, "event": T[i] <= j + 1, "until": j + 1, "z": z[i]}
    )


@pytest.mark.parametrize("labelled", [True, False])
def test_ends_of_intervals_are_no_censoring(intervals, labelled):
    y, subject = cs.RightCensored.from_start_stop(intervals)
    groups = {"groups": subject} if labelled else {}
    for censoring in (None, cs.Censoring(cs.KaplanMeier())):
        with pytest.raises(InvalidInputError, match=r"rows that begin where another row .*at_landmark"):
            cs.cross_validate([cs.CoxRegression()], intervals[["z"]], y, cv=2, censoring=censoring, **groups)


def test_intervals_with_known_ends_are_compared(intervals):
    y, subject = cs.RightCensored.from_start_stop(intervals, censoring_time="until")
    found = cs.compare(
        {"a": cs.Exponential(0.25 * np.exp(intervals.z)), "b": cs.Exponential(0.25)}, y, groups=subject,
        scores=["log_score", "crps"], horizon=4.0, reference=None, discrimination=False,
    )  # fmt: skip
    assert found.verdict.score == "log_score"


def test_patients_of_hospitals_are_no_intervals():
    rng = np.random.default_rng(0)
    entry = rng.integers(0, 40, 300).astype(float)
    time = entry + rng.integers(1, 20, 300)
    y = cs.RightCensored(time, rng.random(300) < 0.5, entry=entry)
    found = cs.cross_validate(
        [cs.KaplanMeier()], None, y, cv=2, groups=rng.integers(0, 30, 300), scores="crps",
        discrimination=False, reference=None, horizon=30.0,
    )  # fmt: skip
    assert found.verdict.subjects == 300


# ---- (0, 0] ------------------------------------------------------------------------------------------


def test_an_empty_follow_up_is_left_out():
    rng = np.random.default_rng(0)
    entry = rng.uniform(0.1, 3, 300)
    T, C = entry + rng.exponential(3, 300), entry + rng.uniform(0, 6, 300)
    x = rng.normal(size=(320, 1))
    time, event = np.append(np.minimum(T, C), np.zeros(20)), np.append(T <= C, np.ones(20, dtype=bool))
    y = cs.RightCensored(time, event, entry=np.append(entry, np.zeros(20)))
    regressions = cs.CoxRegression(), cs.WeibullRegression(), cs.PiecewiseExponentialRegression()
    for estimator in (cs.KaplanMeier(), *regressions):
        with pytest.warns(RiskSetWarning, match=r"20 subjects .*with entry 0 and time 0"):
            F = type(estimator)().fit(x, y).predict_distribution(x[:1])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RiskSetWarning)
            without = type(estimator)().fit(x[:300], y[:300]).predict_distribution(x[:1])
        np.testing.assert_allclose(F.sf([[0.0, 1.0, 4.0]]), without.sf([[0.0, 1.0, 4.0]]), rtol=1e-8)
        assert F.sf(0.0)[0] == 1.0
    forecasts = {"a": cs.Exponential(0.3), "b": cs.Exponential(0.4)}
    options = {"scores": "crps", "horizon": 5.0, "discrimination": False, "reference": None}
    found, expected = (
        cs.compare(forecasts, z, cs.Censoring(cs.KaplanMeier()), **options) for z in (y, y[:300])
    )
    assert sum("with entry 0 and time 0" in note for note in found.notes) == 1
    np.testing.assert_allclose(found.frame()["mean"], expected.frame()["mean"], rtol=1e-12)
    errors = [each.frame()["standard_error"] for each in (found, expected)]
    np.testing.assert_allclose(*errors, rtol=1e-3)  # its small-sample factor counts all


def test_events_at_time_zero_stay_where_nobody_enters_late():
    y = cs.RightCensored([0.0, 1.0, 2.0, 3.0], [1, 1, 0, 1], entry=np.zeros(4))
    assert cs.KaplanMeier().fit(None, y).predict_distribution().sf(0.0)[0] == 0.75


# ---- the verdict -------------------------------------------------------------------------------------


def test_a_horizon_beyond_follow_up_is_in_the_headline(data):
    _, y = data
    last = y.time.max()
    forecasts = {"a": cs.Exponential(0.2), "b": cs.Exponential(0.5)}
    verdict = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), horizon=50.0, scores="crps").verdict
    assert f"up to time 50, though follow-up ends at {last:.4g}" in verdict.sentences[0]
    verdict = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), scores="crps").verdict
    assert "though" not in verdict.sentences[0]


def test_effective_events_decide():
    """Weights of inverse probability leave fewer than five of ten events: nothing is told."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=60)
    T, C = rng.exponential(20 * np.exp(-x)), rng.uniform(0, 5, 60)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    forecasts = {"a": cs.Exponential(np.exp(x) / 20), "b": cs.Exponential(np.full(60, 0.08))}
    found = cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), horizon=4.8)
    assert found.verdict.events == 10
    assert found.verdict.effective_events < 5
    assert str(found.verdict) == (
        "Cannot tell which forecast is best: the comparison is based on "
        f"{found.verdict.effective_events:.3g} effective events, at least 5 are needed."
    )
    lines = found.frame(discrimination=False).query("score == 'integrated_brier_score:ipcw'")
    assert lines[["standard_error", "low", "high", "rank"]].isna().all(axis=None)
    assert lines.note.str.startswith("cannot tell").all()


@pytest.mark.parametrize("seed", range(12))
def test_the_p_value_that_is_printed_decides(seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=300)
    T, C = rng.weibull(1.5, 300) * np.exp(-0.5 * x), rng.uniform(0, 3, 300)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    F = {
        "a": cs.Weibull(1.5, np.exp(-0.5 * x) * np.exp(0.1 * (seed % 3))),
        "b": cs.Exponential(np.full(300, 1.0)),
    }
    verdict = cs.compare(F, y, cs.Censoring(cs.KaplanMeier()), discrimination=False).verdict
    for line in verdict.calibration:
        p = line["p_value"] if not np.isnan(line["p_value"]) else line["d_calibration"]
        assert line["calibrated"] is bool(p >= 0.05)
    (told,) = [s for s in verdict.sentences if s.startswith(f"The risks of {verdict.best}")]
    assert told.count("p = ") + told.count("p < ") == 1


def test_an_estimator_in_place_of_a_distribution(data):
    _, y = data
    expected = r"Censoring\(\.\.\.\)\.fit\(X, y\)\.predict_distribution\(X\)"
    with pytest.raises(InvalidTypeError, match=expected):
        cs.brier_score(y, cs.Exponential(0.3), cs.Censoring(cs.KaplanMeier()), times=1.0)
