"""Calibration, net benefit and Murphy diagrams under censoring: values of uncensored data, or an error."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.case import risk_at
from censcore.evaluation.measures.murphy import elementary
from censcore.evaluation.measures.net_benefit import decision_lines, net_benefit
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.scores.inputs.scoring_inputs import scoring_inputs

T0, THETA = 3.0, np.array([0.3, 0.5])
OPTIONS = {"scores": "brier_score", "times": [T0], "reference": None, "discrimination": False}
KM = cs.Censoring(cs.KaplanMeier())


def drawn(n: int, seed: int):
    """The forecast that is true, T, and C from 0 to 6."""
    rng = np.random.default_rng(seed)
    scale = 3 * np.exp(-0.5 * rng.normal(size=n))
    return cs.Weibull(1.5, scale), scale * rng.weibull(1.5, n), rng.uniform(0, 6, n)


def entering(n: int, seed: int, latest: float = 2.0):
    """The same of subjects that enter late, with their entries."""
    F, T, C = drawn(4 * n, seed)
    A = np.random.default_rng(seed + 1000).uniform(0, latest, 4 * n)
    rows = np.nonzero((T > A) & (C > A))[0][:n]
    return F.take(rows), T[rows], C[rows], A[rows]


def true_benefit(F, T, a=None):
    """Of uncensored subjects, each judged from its entry on, (n, q)."""
    p = F.cdf(T0) if a is None else F.given_survival(a).cdf(T0)
    D = (T <= T0)[:, None]
    return (p[:, None] > THETA) * (D - THETA / (1 - THETA) * ~D)


def check(found, F, T, a=None):
    """Observed risk and net benefit are those of the same subjects without censoring."""
    curve = found.calibration("F", time=T0)
    assert curve.observed_low < np.mean(T <= T0) < curve.observed_high
    table = found.net_benefit(time=T0, thresholds=THETA).query("model == 'F'")
    error = table.standard_error.fillna(0.0)
    assert (np.abs(table.net_benefit - true_benefit(F, T, a).mean(axis=0)) <= 4 * error).all()
    assert (error < 0.02).all()


def test_known_censoring_times():
    """Events whose own c is before t, and subjects without one whose c is: neither says anything of t."""
    F, T, C = drawn(8000, 0)
    y = cs.RightCensored(np.minimum(T, C), C >= T, censoring_time=C)
    found = cs.compare({"F": F}, y, **OPTIONS)
    check(found, F, T)
    beyond = C > T0
    assert found.calibration("F", time=T0).observed == pytest.approx(np.mean(T[beyond] <= T0))
    table = found.net_benefit(time=T0, thresholds=THETA).query("model == 'F'")
    truth = true_benefit(F, T)[beyond]
    np.testing.assert_allclose(table.net_benefit, truth.mean(axis=0))
    np.testing.assert_allclose(table.standard_error, truth.std(axis=0) / np.sqrt(beyond.sum()), rtol=1e-3)
    with pytest.raises(PositivityError, match="scale='ipcw' divides by"):
        net_benefit(y, F, None, T0, THETA)
    localized = net_benefit(y, F, None, T0, THETA, scale="localized")
    np.testing.assert_allclose(localized.sum(axis=0) / beyond.sum(), truth.mean(axis=0))


def test_known_censoring_times_of_one_cause():
    rng = np.random.default_rng(1)
    rate, C = 0.2 * np.exp(0.7 * rng.normal(size=2000)), rng.uniform(0, 6, 2000)
    T, other = rng.exponential(1 / rate), rng.exponential(6.0, 2000)
    both = cs.CauseSpecificHazards([cs.Exponential(rate), cs.Exponential(np.full(2000, 1 / 6))])
    first, cause = np.minimum(T, other), np.where(other >= T, 1, 2)
    y = cs.CompetingRisks(np.minimum(first, C), np.where(first <= C, cause, 0), censoring_time=C)
    found = cs.compare({"F": both}, y, **(OPTIONS | {"scores": "brier_score[cause 1]"}))
    for j in (1, 2):
        check(found.of(f"cause {j}"), both.cause(j), np.where(cause == j, first, np.inf))


def test_a_stratum_that_closes_early_is_an_error():
    F, T, C = drawn(4000, 3)
    early = np.arange(4000) % 2 == 0
    C = np.where(early, C / 3, C)
    y, X = cs.RightCensored(np.minimum(T, C), C >= T), early[:, None].astype(float)
    options = OPTIONS | {"horizon": 4.0}
    by_stratum = cs.Censoring(cs.KaplanMeier(stratify=0))
    found = cs.compare({"F": F}, y, by_stratum, X=X, **options)
    mixed = cs.distributions.Grouped([cs.PointMass(4.0), cs.Uniform(0.0, 6.0)], early.astype(int))
    later = cs.RightCensored(np.where(early, y.time, 1.0), y.event | ~early)
    of_both = cs.compare({"F": F}, later, mixed, **(options | {"horizon": 5.0, "times": [4.5]}))
    for comparison, time in ((found, T0), (of_both, 4.5)):
        for ask in (lambda c, t: c.calibration("F", time=t), lambda c, t: c.net_benefit(time=t)):
            with pytest.raises(
                PositivityError, match=rf"zero from t = {time:g} on in 2000 subjects"
            ) as caught:
                ask(comparison, time)
            assert "The largest time that works is" in str(caught.value)
            ask(comparison, caught.value.horizon)
    assert "not computed, because" in found.to_html()


@pytest.mark.parametrize("censoring", [cs.Uniform(0.0, 6.0), KM], ids=["given", "estimated"])
def test_delayed_entry(censoring):
    F, T, C, a = entering(12_000, 4)
    y = cs.RightCensored(np.minimum(T, C), C >= T, entry=a)
    check(cs.compare({"F": F}, y, censoring, horizon=4.0, **OPTIONS), F, T, a)


def test_entries_after_the_time_do_not_count():
    """The subjects that enter after t have no risk by t: observed and forecast risk are of the others."""
    F, T, C, a = entering(12_000, 5, latest=5.0)
    y = cs.RightCensored(np.minimum(T, C), C >= T, entry=a)
    found = cs.compare({"F": F}, y, KM, horizon=5.0, **OPTIONS)
    before = a < T0
    curve = found.calibration("F", time=T0)
    assert curve.predicted == pytest.approx(F.given_survival(a).cdf(T0)[before].mean())
    assert curve.observed_low < np.mean(T[before] <= T0) < curve.observed_high
    table = found.net_benefit(time=T0, thresholds=THETA).query("model == 'F'")
    truth = true_benefit(F, T, a)[before].mean(axis=0)
    assert (np.abs(table.net_benefit - truth) < 4 * table.standard_error).all()
    values = net_benefit(y, F, cs.Uniform(0.0, 6.0), T0, THETA)
    assert (values[~before] == 0).all()


def test_landmark_with_training_subjects():
    """The weights are 1 / P(C > t | C > s): without P(C > s) the net benefit was off by it."""
    (F, T, C), (_, T_train, C_train) = drawn(12_000, 6), drawn(12_000, 7)
    y, train = (
        cs.RightCensored(np.minimum(t, c), c >= t) for t, c in ((T, C), (T_train, C_train))
    )  # fmt: skip
    options = {"window": 1.5, "scores": "brier_score", "reference": None, "train": (None, train)}
    found = cs.compare_landmarks({"F": F}, y, KM, landmarks=[1.5], **options)[0]
    here = np.nonzero(y.time > 1.5)[0]
    check(found, F.take(here), T[here], np.full(len(here), 1.5))


def test_the_function_conditions_on_the_entry():
    F, T, C, a = entering(20_000, 8)
    y, G = cs.RightCensored(np.minimum(T, C), C >= T, entry=a), cs.Uniform(0.0, 6.0)
    found, truth = net_benefit(y, F, G, T0, THETA), true_benefit(F, T, a)
    error = (found - truth).std(axis=0) / np.sqrt(len(T))
    assert (np.abs((found - truth).mean(axis=0)) < 4 * error).all()
    np.testing.assert_allclose(found, net_benefit(y, F.given_survival(a), G, T0, THETA))
    everyone = net_benefit(y, 1.0, G, T0, THETA).mean(axis=0)
    np.testing.assert_allclose(everyone, np.mean(T <= T0) - THETA / (1 - THETA) * np.mean(T > T0), atol=0.03)


@pytest.mark.parametrize("scale", ["localized", "ipcw"])
def test_the_elementary_score_integrates_to_the_brier_score(scale):
    F, T, C, a = entering(300, 9)
    theta = np.linspace(0, 1, 2001)[1:-1]
    risks = cs.CompetingRisks(np.minimum(T, C), np.where(C >= T, 1 + (T > 2), 0), entry=a)
    both = cs.CauseSpecificHazards([F, cs.Exponential(np.full(300, 0.1))]).given_survival(a)
    for y, forecast in ((risks.any_cause(), F), (risks.cause(2), both.cause(2))):
        known = risk_at(scoring_inputs(y, forecast, cs.Uniform(0.0, 6.0), one_cause=True), T0, scale)
        found = elementary(T0, theta, scale).values(known).mean(axis=1)
        expected = cs.brier_score(y, forecast, cs.Uniform(0.0, 6.0), T0, scale=scale)
        np.testing.assert_allclose(found, expected, atol=2e-3)


def test_two_event_times_are_an_error():
    y = cs.RightCensored([[1.0, 2.0], [3.0, 4.0]], [[1, 1], [0, 1]])
    with pytest.raises(InvalidInputError, match="one event time per subject"):
        net_benefit(y, cs.Independent([cs.Exponential(1.0)] * 2), cs.Uniform(0.0, 9.0), 2.0, THETA)


def test_thresholds_are_between_zero_and_one():
    for thresholds in ([0.0], [1.5], [[0.5]]):
        with pytest.raises(InvalidInputError, match="thresholds"):
            elementary(2.0, thresholds)


# ---- standard errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [cs.KaplanMeier(), cs.CoxRegression()], ids=str)
def test_standard_errors_agree_with_numerical_derivatives(estimator):
    """Those of custom scores have a numerical derivative by the hazard of C, these a formula."""
    F, T, C, a = entering(200, 10)
    x = F.icdf(0.5)[:, None]
    y = cs.RightCensored(np.minimum(T, C), C >= T, entry=a)
    custom = {
        f"{theta}": lambda y, F, C, horizon, theta=theta: net_benefit(
            y.censor_at(horizon), F, C.censor_at(horizon), T0, [theta]
        )[:, 0]
        for theta in THETA
    }
    options = {"X": x, "train": (x, y), "horizon": 4.0, "reference": None, "discrimination": False}
    found = cs.compare({"F": F}, y, estimator, scores=custom, **options)
    lines = decision_lines(found, T0, THETA)[:2]
    for theta, line in zip(THETA, lines, strict=True):
        numerical = found.estimate("F", f"{theta}")
        assert line["net_benefit"] == pytest.approx(numerical.value[0], rel=1e-9)
        assert line["standard_error"] == pytest.approx(numerical.standard_error[0], rel=5e-3)


def test_standard_errors_agree_with_the_jackknife():
    F, T, C, a = entering(150, 11)
    y = cs.RightCensored(np.minimum(T, C), C >= T, entry=a)
    found = cs.compare({"F": F}, y, KM, horizon=4.0, **OPTIONS)
    left_out = []
    for i in range(150):
        rows = np.delete(np.arange(150), i)
        G = cs.Censoring(cs.KaplanMeier()).fit(None, y[rows]).predict_distribution()
        values = net_benefit(y[rows].censor_at(4.0), F.take(rows), G.censor_at(4.0), T0, THETA)
        everyone = net_benefit(y[rows].censor_at(4.0), 1.0, G.censor_at(4.0), T0, [1e-9])
        known = everyone.mean(), net_benefit(y[rows].censor_at(4.0), 1.0, G.censor_at(4.0), T0, [0.5]).mean()
        risk = known[0] / (2 * known[0] - known[1])  # events, and events less others
        left_out.append([*values.mean(axis=0), risk])
    jackknife = np.sqrt(149 / 150 * ((left_out - np.mean(left_out, axis=0)) ** 2).sum(axis=0))
    errors = [line["standard_error"] for line in decision_lines(found, T0, THETA)[:2]]
    whole = found.calibration("F", time=T0, bins=1).binned[0]["standard_error"]
    np.testing.assert_allclose([*errors, whole], jackknife, rtol=0.03)


@pytest.mark.slow  # errors are compared with the jackknife every time
def test_intervals_cover_with_entry_and_an_estimated_censoring_distribution():
    F, T, _, a = entering(150_000, 12)
    truth = [*true_benefit(F, T, a).mean(axis=0), np.mean(T <= T0)]
    held = []
    for seed in range(100):
        F, T, C, a = entering(300, 2000 + seed)
        y = cs.RightCensored(np.minimum(T, C), C >= T, entry=a)
        found = cs.compare({"F": F}, y, KM, horizon=4.0, **OPTIONS)
        ends = [(line["low"], line["high"]) for line in decision_lines(found, T0, THETA)[:2]]
        whole = found.calibration("F", time=T0, bins=1).binned[0]
        ends.append((whole["low"], whole["high"]))
        held.append([low <= value <= high for (low, high), value in zip(ends, truth, strict=True)])
    assert (np.mean(held, axis=0) >= 0.9).all()
    assert 0.91 <= np.mean(held) <= 0.985
