"""The Brier score of joint events: by definition, by other routes, and by propriety."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.distributions.joint_events import before, first_is, in_order
from censcore.exceptions import InvalidInputError, PositivityError

T_MARGINALS = [cs.Exponential(1.0), cs.Exponential(0.5)]
TRUTH = cs.Copula("clayton", T_MARGINALS, theta=3.0)
TIMES = np.array([0.4, 1.2, 2.0])
C_ONE = cs.Uniform(0.0, 3.0)
C_EACH = cs.Independent([cs.Uniform(0.0, 3.0), cs.Uniform(0.0, 4.0)])
EVENTS = {
    "either": "either", "all": "all", "first": first_is(0), "order": in_order(1, 0), "before": before(1, 0)
}  # fmt: skip


def observed(n, seed=0, each=False):
    rng = np.random.default_rng(seed)
    T = TRUTH.sample(n, seed=[seed, 1])[0]
    C = rng.uniform(0, [3.0, 4.0], (n, 2)) if each else rng.uniform(0, 3, (n, 1))
    return cs.RightCensored(np.minimum(T, C), T <= C), T, C


ENSEMBLE = cs.Ensemble(TRUTH.sample(50, seed=3))


def test_either_is_the_score_of_the_first_event_and_all_that_of_the_last():
    y, *_ = observed(40)
    last = cs.RightCensored(y.time.max(axis=1), y.event.all(axis=1))
    for scale in ("localized", "ipcw"):
        found = cs.joint_brier_score(y, ENSEMBLE, C_ONE, TIMES, scale=scale)
        np.testing.assert_allclose(
            found, cs.brier_score(y.first(), ENSEMBLE.first(), C_ONE, TIMES, scale=scale)
        )
        found = cs.joint_brier_score(y, ENSEMBLE, C_ONE, TIMES, event="all", scale=scale)
        of_last = cs.Ensemble(ENSEMBLE.samples.max(axis=2))
        np.testing.assert_allclose(found, cs.brier_score(last, of_last, C_ONE, TIMES, scale=scale))


def test_one_event_time_is_the_brier_score():
    y, *_ = observed(30)
    y, F = y.marginal(0), ENSEMBLE.marginal(0)
    for event in ("either", "all", first_is(0)):
        found = cs.joint_brier_score(y, F, C_ONE, TIMES, event=event)
        np.testing.assert_allclose(found, cs.brier_score(y, F, C_ONE, TIMES))


@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("name", EVENTS)
def test_its_expectation_is_that_of_the_square_where_everything_is_followed(name, each):
    """E[W (B - p)^2] = P(C > t) E[(B - p)^2], with B from uncensored times."""
    y, T, _ = observed(20_000, 5, each)
    C, event = (C_EACH, EVENTS[name]) if each else (C_ONE, EVENTS[name])
    found = cs.joint_brier_score(y, ENSEMBLE, C, TIMES, event=event)
    whole = cs.joint_brier_score(cs.RightCensored(T, np.ones_like(T)), ENSEMBLE, None, TIMES, event=event)
    G = np.prod([C.marginal(j).sf(TIMES[None, :]) for j in range(C.k)], axis=0)
    mean, error = cs.mean_loss(found)
    expected, of_whole = cs.mean_loss(whole * G)
    assert (np.abs(mean - expected) < 4 * np.hypot(error, of_whole)).all()
    ipcw = cs.joint_brier_score(y, ENSEMBLE, C, TIMES, event=event, scale="ipcw")
    np.testing.assert_allclose(ipcw * G, found)


@pytest.mark.parametrize("name", EVENTS)
def test_draws_of_a_distribution_give_its_probability_without_bias(name):
    y, *_ = observed(3000, 2)
    rates = np.full(3000, 1.0)
    per_subject = cs.Copula("clayton", [cs.Exponential(rates), cs.Exponential(0.5)], theta=3.0)
    few = cs.joint_brier_score(y, per_subject, C_ONE, TIMES, event=EVENTS[name], members=5)
    exact = cs.joint_brier_score(y, TRUTH, C_ONE, TIMES, event=EVENTS[name], members=100_000)
    mean, error = cs.mean_loss(few - exact)
    assert (np.abs(mean) <= 4 * error + 1e-12).all()
    again = cs.joint_brier_score(y, per_subject, C_ONE, TIMES, event=EVENTS[name], members=5)
    np.testing.assert_array_equal(few, again)


@pytest.mark.parametrize("each", [False, True])
def test_the_true_dependence_wins_where_the_margins_are_the_same(each):
    y, *_ = observed(6000, 8, each)
    C = C_EACH if each else C_ONE
    independent = cs.Independent(T_MARGINALS)
    for event in ("either", "all", first_is(1)):
        scores = [
            cs.joint_brier_score(y, F, C, 1.0, event=event, members=60_000) for F in (TRUTH, independent)
        ]
        mean, error = cs.mean_loss(scores[0] - scores[1])
        assert mean < -3 * error, event


#: What each event says of the times of two events and of t.
IN_WORDS = {
    "either": ("either", lambda a, b, t: a <= t or b <= t),
    "all": ("all", lambda a, b, t: a <= t and b <= t),
    "first_is(0)": (first_is(0), lambda a, b, t: a <= t and a < b),
    "in_order(0, 1)": (in_order(0, 1), lambda a, b, t: a < b <= t),
    "before(0, 1)": (before(0, 1), lambda a, b, t: a <= t and a < b),
}


@pytest.mark.parametrize("name", IN_WORDS)
def test_every_event_means_what_it_says_by_enumeration(name):
    """E[W (B - p)^2] = P(C > t) E[(B - p)^2] over all values of two times and of one C, and p is right."""
    event, happened = IN_WORDS[name]
    rng = np.random.default_rng(0)
    values, ends = [1.0, 2.0, 3.0, np.inf], [0.5, 1.5, 2.5, 3.5]
    pairs = np.array([(a, b) for a in values for b in values])
    share, of_C = rng.dirichlet(np.ones(len(pairs))), rng.dirichlet(np.ones(len(ends)))
    members = cs.Ensemble(pairs[None], rng.dirichlet(np.ones(len(pairs))))
    C = cs.Step([ends], cdf=np.cumsum(of_C)[None])
    for t in (1.0, 2.2, 3.0):
        B = np.array([happened(a, b, t) for a, b in pairs])
        p = float(members.weights[0] @ B)
        whole = share @ (B - p) ** 2
        seen = 0.0
        for c, chance in zip(ends, of_C, strict=True):
            y = cs.RightCensored(np.minimum(pairs, c), pairs <= c)
            seen += chance * float(share @ cs.joint_brier_score(y, members, C, t, event=event))
        assert seen == pytest.approx(float(C.sf(t)[0]) * whole, rel=1e-12)


def test_ties_are_no_order_and_an_event_at_t_counts():
    y = cs.RightCensored([[1.0, 1.0], [1.0, 2.0]], [[1, 1], [1, 1]])
    F = cs.Ensemble(np.array([[[1.0, 3.0], [3.0, 1.0], [3.0, 3.0], [1.0, 1.0]]]))
    found = cs.joint_brier_score(y, F, None, [1.0, 1.5], event=first_is(0))
    np.testing.assert_allclose(found, [[0.25**2] * 2, [0.75**2] * 2])


def test_weights_of_members_count():
    y, *_ = observed(20)
    z = TRUTH.sample(4, seed=1)
    weighted = cs.Ensemble(z, [1, 2, 3, 2])
    repeated = cs.Ensemble(np.repeat(z, [1, 2, 3, 2], axis=1))
    for event in EVENTS.values():
        np.testing.assert_allclose(
            cs.joint_brier_score(y, weighted, C_ONE, TIMES, event=event),
            cs.joint_brier_score(y, repeated, C_ONE, TIMES, event=event),
        )


def test_torch_gives_the_same():
    torch = pytest.importorskip("torch")
    y, *_ = observed(20)
    for event in EVENTS.values():
        found = cs.joint_brier_score(
            y.like(torch.zeros(1, dtype=torch.float64)),
            cs.Ensemble(torch.as_tensor(ENSEMBLE.samples)),
            C_ONE,
            TIMES.tolist(),
            event=event,
        )
        np.testing.assert_allclose(
            found.numpy(), cs.joint_brier_score(y, ENSEMBLE, C_ONE, TIMES, event=event)
        )


def test_bad_input():
    y, *_ = observed(20)
    with pytest.raises(InvalidInputError, match=r"'neither', expected 'either', 'all'"):
        cs.joint_brier_score(y, ENSEMBLE, C_ONE, TIMES, event="neither")
    with pytest.raises(InvalidInputError, match=r"times=\.\.\. is missing"):
        cs.joint_brier_score(y, ENSEMBLE, C_ONE)
    with pytest.raises(PositivityError):
        cs.joint_brier_score(y, ENSEMBLE, C_ONE, [3.5], scale="ipcw")
