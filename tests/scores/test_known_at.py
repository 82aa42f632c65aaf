"""What is known at a time, on a small discrete world where every expectation is a finite sum."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import Grouped
from censcore.exceptions import PositivityError
from censcore.scores.inputs.known_at import known_at, seen_beyond, weights_of_events
from censcore.scores.inputs.scoring_inputs import without_forecast

TIMES = {1.0: 0.2, 2.0: 0.3, 3.0: 0.3, 4.0: 0.2}
CAUSES = {1: 0.6, 2: 0.4}
FOLLOW_UP = {1.0: 0.1, 2.0: 0.3, 3.0: 0.2, 5.0: 0.4}
C = cs.Step(list(FOLLOW_UP), cdf=np.cumsum(list(FOLLOW_UP.values())))
AT = [0.5, 1.0, 1.5, 2.0, 3.0, 4.5]
SCALES = ("localized", "ipcw")


def world(a: float):
    """All subjects (T, cause, C) that can be seen from the entry a on, with their probabilities."""
    cells = [
        (t, k, c, p * q * r)
        for (t, p), (k, q), (c, r) in product(TIMES.items(), CAUSES.items(), FOLLOW_UP.items())
        if t > a and c > a
    ]
    T, cause, c, p = map(np.array, zip(*cells, strict=True))
    return T, cause, c, p / p.sum()


def outcome(T, cause, c, a, number, known=False):
    seen = cs.CompetingRisks(
        np.minimum(T, c), np.where(c >= T, cause, 0), entry=a or None, censoring_time=c if known else None
    )
    return seen.cause(number) if number else seen.any_cause()


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("number", [0, 1, 2], ids=["any cause", "cause 1", "cause 2"])
@pytest.mark.parametrize("a", [0.0, 1.0, 1.5])
def test_expected_weights_are_the_chances_to_be_seen_or_of_the_event(a, number, scale):
    """Localized: P(event by t, C > t). On the ipcw scale: P(event by t). Both given T > a and C > a."""
    T, cause, c, p = world(a)
    y = outcome(T, cause, c, a, number)
    T_j = np.where((cause == number) | (number == 0), T, np.inf)
    inputs = without_forecast(y, C)
    event, free = inputs.known_at(np.array([AT]), scale).weights()
    for j, t in enumerate(AT):
        followed = 1.0 if scale == "ipcw" else c > t
        entered = a < t
        assert p @ event[:, j] == pytest.approx(p @ ((T_j <= t) * followed) * entered)
        assert p @ free[:, j] == pytest.approx(p @ ((T_j > t) * followed) * entered)
        assert (event[:, j][(y.time > t) | y.censored] == 0).all()
        assert (free[:, j][(y.time <= t) & y.censored] == 0).all()


@pytest.mark.parametrize("a", [0.0, 1.5])
def test_just_before_a_time(a):
    """T < t or T >= t, with P(C >= t): what concordance asks at the time of an event."""
    T, cause, c, p = world(a)
    y = outcome(T, cause, c, a, 1)
    T_1 = np.where(cause == 1, T, np.inf)
    t = np.array([[2.0, 3.0, 5.0]])
    event, free = known_at(y, C, t, "ipcw", before=True).weights()
    np.testing.assert_allclose(p @ event, [p @ (s > T_1) for s in t[0]])
    np.testing.assert_allclose(p @ free, [p @ (s <= T_1) for s in t[0]])


@pytest.mark.parametrize("number", [0, 1])
def test_known_censoring_times_leave_those_followed_beyond(number):
    """The weight is 1{c > t}, of events and of others: an event by t counts only if its c is beyond t."""
    T, cause, c, _ = world(0.0)
    y, known = outcome(T, cause, c, 0.0, number, known=True), cs.PointMass(c)
    T_j = np.where((cause == number) | (number == 0), T, np.inf)
    event, free = known_at(y, known, np.array([AT])).weights()
    for j, t in enumerate(AT):
        np.testing.assert_array_equal(seen_beyond(known, t), c > t)
        np.testing.assert_array_equal(event[:, j], (T_j <= t) & (c > t))
        np.testing.assert_array_equal(free[:, j], (T_j > t) & (c > t))
    assert seen_beyond(C, 1.0) is None
    assert seen_beyond(Grouped([cs.PointMass(2.0), C], [0, 1]), 1.0) is None


@pytest.mark.parametrize("scale", SCALES)
def test_parts_and_factors_are_those_of_the_whole(scale):
    """Some subjects, one C each, and a time for every subject: what kernels and chunks use."""
    T, cause, c, _ = world(1.0)
    y, n = outcome(T, cause, c, 1.0, 1), len(T)
    t, G = np.linspace(1.2, 4.0, 2 * n).reshape(n, 2), C.take(np.zeros(n, dtype=int))
    whole, each = known_at(y, C, t, scale), known_at(y, G, t, scale)
    rows = slice(3, 9)
    for one, two, some in zip(whole.weights(), each.weights(), whole.weights(rows), strict=True):
        np.testing.assert_allclose(one, two)
        np.testing.assert_allclose(one[rows], some)
    at, living, dead = whole.factors()
    weight = np.where(y.time[:, None] > at, living, whole.seen[:, None] * dead)
    np.testing.assert_allclose(weight, sum(whole.weights()))


def test_no_chance_is_named():
    y = cs.RightCensored([1.0, 2.0, 0.5], [1, 0, 1])
    G = Grouped([cs.Uniform(0.0, 3.0), cs.Uniform(0.0, 9.0)], [0, 1, 1])
    with pytest.raises(PositivityError, match=r"zero from t = 4 on in 1 subject \(0\)") as caught:
        known_at(y, G, np.array([[1.0, 4.0]]), "ipcw")
    assert caught.value.horizon == np.nextafter(3.0, 0)
    known_at(y, G, np.array([[1.0, caught.value.horizon]]), "ipcw").weights()
    # an event after the last of the times may be one that C excludes
    late = cs.RightCensored([1.0, 7.0], [1, 1])
    event, free = known_at(late, cs.Uniform(0.0, 5.0), np.array([[2.0]]), "ipcw").weights()
    np.testing.assert_allclose(np.concatenate([event, free], axis=1), [[1.25, 0], [0, 1 / 0.6]])


def test_weights_of_events():
    y = cs.RightCensored([1.0, 2.0, 3.0, 7.0], [1, 0, 1, 1], entry=[0.0, 1.0, 2.0, 2.0])
    found = weights_of_events(y, cs.Uniform(0.0, 5.0))
    np.testing.assert_allclose(found, [1.25, 0.0, 0.6 / 0.4, np.inf])
    np.testing.assert_allclose(weights_of_events(y, cs.Uniform(0.0, 5.0), until=2.0), [1.25, 0, 0, 0])
