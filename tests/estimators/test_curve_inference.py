"""Standard errors and confidence intervals of Kaplan-Meier and Aalen-Johansen curves."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError

TIMES = np.array([0.3, 0.8, 1.5])


def sample(n=120, seed=0, entry=False):
    rng = np.random.default_rng(seed)
    T, C = rng.weibull(1.3, n), rng.uniform(0, 2.5, n)
    time = np.ceil(10 * np.minimum(T, C)) / 10
    cause = np.where(T <= C, rng.integers(1, 3, n), 0)
    since = np.where(rng.random(n) < 0.4, time / 3, 0.0) if entry else None
    weight = rng.integers(1, 4, n).astype(float)
    return cs.CompetingRisks(time, cause, entry=since), weight, np.arange(n) % 2


def curves(kind, y, weight, x):
    if kind == "aalen-johansen":
        return cs.AalenJohansen(stratify=0).fit(x[:, None], y, weight)
    return cs.KaplanMeier(stratify=0).fit(x[:, None], y.any_cause(), weight)


@pytest.mark.parametrize("entry", [False, True])
@pytest.mark.parametrize("kind", ["kaplan-meier", "aalen-johansen"])
def test_robust_errors_come_from_derivatives_by_the_weights(kind, entry):
    y, weight, x = sample(entry=entry)
    model = curves(kind, y, weight, x)
    moved = []
    for i in range(len(weight)):
        step = 1e-5 * weight[i] * (np.arange(len(weight)) == i)
        up, down = (curves(kind, y, weight + sign * step, x)._curves(TIMES) for sign in (1, -1))
        moved.append((up - down) / 2e-5)
    expected = np.sqrt((np.array(moved) ** 2).sum(axis=0))
    np.testing.assert_allclose(model.standard_errors(TIMES, robust=True), expected, rtol=1e-6)
    groups = np.arange(len(weight)) // 3
    sums = np.array([np.array(moved)[groups == g].sum(axis=0) for g in np.unique(groups)])
    found = model.standard_errors(TIMES, groups=groups)
    np.testing.assert_allclose(found, np.sqrt((sums**2).sum(axis=0)), rtol=1e-6)


@pytest.mark.parametrize("kind", ["kaplan-meier", "aalen-johansen"])
def test_weights_that_count_are_repeated_subjects(kind):
    y, weight, x = sample(entry=True)
    rows = np.repeat(np.arange(len(weight)), weight.astype(int))
    repeated = curves(kind, y.take(rows), np.ones(len(rows)), x[rows])
    found = curves(kind, y, weight, x)
    np.testing.assert_allclose(found.standard_errors(TIMES), repeated.standard_errors(TIMES), rtol=1e-10)
    y, _, x = sample()
    plain = curves(kind, y, np.ones(len(x)), x)
    np.testing.assert_allclose(plain.standard_errors(TIMES), plain.standard_errors(TIMES, robust=True))


def test_one_cause_has_the_errors_of_its_survival_function():
    y, weight, x = sample()
    one = cs.CompetingRisks(y.time, (y.causes > 0).astype(int), n_causes=1)
    found = curves("aalen-johansen", one, weight, x).standard_errors(TIMES)[:, 0]
    np.testing.assert_allclose(found, curves("kaplan-meier", one, weight, x).standard_errors(TIMES))


def test_intervals_by_hand_and_those_of_lifelines():
    lifelines = pytest.importorskip("lifelines")
    y, _, _ = sample()
    model = cs.KaplanMeier().fit(None, y.any_cause())
    theirs = lifelines.KaplanMeierFitter().fit(y.time, y.causes > 0).confidence_interval_
    expected = theirs.iloc[np.searchsorted(theirs.index, TIMES, side="right") - 1].to_numpy()
    np.testing.assert_allclose(model.confidence_interval(TIMES)[0], expected, rtol=1e-9)
    S, error = model._curves(TIMES)[0], model.standard_errors(TIMES)[0]
    z = 1.6448536269514722
    plain = model.confidence_interval(TIMES, 0.9, "plain")[0]
    np.testing.assert_allclose(plain, np.column_stack([S - z * error, S + z * error]))
    log = model.confidence_interval(TIMES, 0.9, "log")[0]
    np.testing.assert_allclose(log[:, 0], np.exp(np.log(S) - z * error / S))
    ends = model.confidence_interval(TIMES, 0.9, "logit")[0]
    odds = S / (1 - S)
    np.testing.assert_allclose(ends[:, 1] / (1 - ends[:, 1]) / odds, np.exp(z * error / (S * (1 - S))))
    ends = model.confidence_interval(TIMES, 0.9, "arcsin")[0]
    angle = np.arcsin(np.sqrt(S)) - z * error / (2 * np.sqrt(S * (1 - S)))
    np.testing.assert_allclose(ends[:, 0], np.sin(angle) ** 2)
    assert model.confidence_interval([0.3], transform="plain", level=1 - 1e-12)[0, 0, 1] == 1.0


def test_where_nothing_has_happened_log_log_says_nothing():
    y = cs.CompetingRisks([1.0, 2.0, 3.0], [1, 2, 0])
    model = cs.AalenJohansen().fit(None, y)
    assert not model.standard_errors(0.5).any()
    assert np.isnan(model.confidence_interval(0.5)).all()
    np.testing.assert_array_equal(model.confidence_interval(0.5, transform="plain"), 0.0)


def test_strata_without_events_have_no_errors():
    y = cs.CompetingRisks([1.0, 2.0, 3.0, 4.0, 5.0], [1, 2, 0, 0, 0])
    x = np.array([[0], [0], [0], [1], [1]])
    for model, outcome in ((cs.AalenJohansen(0), y), (cs.KaplanMeier(0), y.any_cause())):
        for robust in (False, True):
            found = model.fit(x, outcome).standard_errors([2.5], robust=robust)
            assert (found[0] > 0).all()
            assert not found[1].any()
    none = cs.KaplanMeier().fit(None, cs.RightCensored([1.0, 2.0], [0, 0]))
    assert not none.standard_errors([1.5, 9.0], robust=True).any()


def test_bad_arguments_are_named():
    model = cs.KaplanMeier().fit(None, cs.RightCensored([1.0, 2.0], [1, 0]))
    with pytest.raises(InvalidInputError, match="transform"):
        model.confidence_interval([1.0], transform="probit")
    with pytest.raises(InvalidInputError, match=r"level: got 95"):
        model.confidence_interval([1.0], 95)
    with pytest.raises(InvalidInputError, match="groups"):
        model.standard_errors([1.0], groups=[1, 2, 3])
