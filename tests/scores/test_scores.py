"""Brier, binomial log, pinball, log and integrated Brier scores against their formulas."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from scipy.integrate import quad
from tests.contracts.distributions import JOINT
from tests.scores.scenarios import censoring_distributions, outcome_under, step_distribution

import censcore as cs
from censcore import _kernels
from censcore.exceptions import InvalidInputError, NoDensityError, PositivityError

TIMES = np.array([0.2, 0.7, 1.1])


@pytest.fixture
def scenario(rng):
    """An outcome, a smooth forecast and the censoring distribution by their survival functions."""
    a = rng.uniform(0.6, 2, 40)
    y = outcome_under(cs.Uniform(0.0, 3.0), 40, rng)
    return (
        y,
        cs.Weibull(a, 1.2),
        cs.Uniform(0.0, 3.0),
        lambda t: np.exp(-((t / 1.2) ** a)),
        lambda t: 1 - t / 3,
    )


def test_brier_score_is_its_formula(scenario):
    y, F, C, S, G = scenario
    for j, t in enumerate(TIMES):
        dead = y.event & (y.time <= t)
        expected = np.where(y.time > t, (1 - S(t)) ** 2, dead * G(t) / G(y.time) * S(t) ** 2)
        np.testing.assert_allclose(cs.brier_score(y, F, C, TIMES)[:, j], expected, rtol=1e-13)
        classical = np.where(y.time > t, (1 - S(t)) ** 2 / G(t), dead / G(y.time) * S(t) ** 2)
        ipcw = cs.brier_score(y, F, C, TIMES, scale="ipcw")[:, j]
        np.testing.assert_allclose(ipcw, classical, rtol=1e-13)


@pytest.mark.parametrize("scale", ["localized", "ipcw"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_brier_score_equals_the_formula(scenario, monkeypatch, scale, dtype):
    pytest.importorskip("numba")
    y, F, C, *_ = scenario
    module = sys.modules["censcore.scores.rules.brier"]
    F = F.like(np.zeros(1, dtype))
    each = np.linspace(0.1, 2, 40)[:, None] + TIMES / 10
    for distribution in (C, cs.Uniform(np.zeros(40), np.full(40, 3.0))):
        for times in (TIMES, each):
            formula = cs.brier_score(y, F, distribution, times, scale=scale)
            with monkeypatch.context() as patch:
                patch.setattr(_kernels, "WORTH_COMPILING", 0)
                patch.setattr(module, "chunked_rows", None)  # the formula must not be what runs
                compiled = cs.brier_score(y, F, distribution, times, scale=scale)
            assert compiled.dtype == formula.dtype == dtype
            np.testing.assert_allclose(compiled, formula, rtol=1e-14 if dtype == np.float64 else 1e-6)


def test_binomial_log_score_is_its_formula(scenario):
    y, F, C, S, G = scenario
    for j, t in enumerate(TIMES):
        dead = y.event & (y.time <= t)
        expected = -np.where(y.time > t, np.log(S(t)), dead * G(t) / G(y.time) * np.log(1 - S(t)))
        np.testing.assert_allclose(cs.binomial_log_score(y, F, C, TIMES)[:, j], expected, rtol=1e-12)


def test_pinball_score_is_its_formula(scenario):
    y, F, C, _, G = scenario
    for level in (0.1, 0.5, 0.97):
        q = np.minimum(F.icdf(level), 3.0)  # min(q, C) is min(q, 3, C)
        area = [quad(G, t, max(t, b))[0] for t, b in zip(y.time, q, strict=True)]
        expected = level * np.maximum(y.time - q, 0) + y.event * (1 - level) / G(y.time) * area
        np.testing.assert_allclose(cs.pinball_score(y, F, C, level), expected, rtol=1e-12)


def test_log_score_is_the_censored_likelihood(scenario):
    y, F, *_ = scenario
    expected = np.where(y.event, F.logpdf(y.time), F.logsf(y.time))
    np.testing.assert_allclose(cs.log_score(y, F), -expected, rtol=1e-13)


@pytest.mark.parametrize("kind", ["uniform", "smooth", "few jumps", "many jumps"])
@pytest.mark.parametrize(
    "F",
    [
        cs.Weibull(1.5, 1.0),
        cs.Ensemble([[0.3, 0.9, 1.0, 2.0]]),
        cs.PiecewiseLinear([0.5, 2.0], sf=[0.7, 0.0]),
    ],
    ids=repr,
)
def test_integrated_ipcw_score_is_the_integral_of_the_ipcw_brier_score(rng, kind, F):
    C, end = censoring_distributions(rng)[kind], 1.3
    y = outcome_under(C, 5, rng)
    jumps = [] if C.breaks() is None else C.breaks()[0]
    own = [] if F.breaks() is None else F.breaks()[0]
    for row in range(5):
        t, d = y.time[row], y.event[row]
        reached = C.sf_left(t)[0]

        def classical(s, t=t, d=d, reached=reached):
            S = F.sf(s)[0]
            return (1 - S) ** 2 / C.sf(s)[0] if s < t else d * S**2 / reached

        edges = sorted({0.0, end, *(x for x in [t, *jumps, *own] if 0 < x < end)})
        expected = sum(
            quad(classical, a, b, epsabs=1e-13, epsrel=1e-12)[0] for a, b in itertools.pairwise(edges)
        )
        loss = cs.integrated_brier_score(y.take([row]), F, C, scale="ipcw", horizon=end)
        assert loss[0] == pytest.approx(expected, rel=1e-9)


def test_integrated_brier_score_is_the_crps(scenario):
    y, F, C, *_ = scenario
    for end in (None, 1.5):
        np.testing.assert_array_equal(
            cs.integrated_brier_score(y, F, C, horizon=end), cs.crps(y, F, C, horizon=end)
        )
    np.testing.assert_allclose(
        cs.integrated_brier_score(y, F, C, horizon=1.5, normalize=True), cs.crps(y, F, C, horizon=1.5) / 1.5
    )
    each = np.linspace(1, 2, 40)
    np.testing.assert_allclose(
        cs.integrated_brier_score(y, F, C, horizon=each, normalize=True, scale="ipcw"),
        cs.integrated_brier_score(y, F, C, horizon=each, scale="ipcw") / each,
    )


def test_uncensored_integrated_ipcw_score_has_no_end(rng):
    y, F = cs.RightCensored(rng.exponential(size=9), np.ones(9)), cs.Weibull(1.5, 1.0)
    np.testing.assert_allclose(cs.integrated_brier_score(y, F, scale="ipcw"), cs.crps(y, F), rtol=1e-12)


def test_normalizing_needs_a_horizon(scenario):
    y, F, C, *_ = scenario
    with pytest.raises(InvalidInputError, match="divides by the horizon"):
        cs.integrated_brier_score(y, F, C, normalize=True)


# ---- shapes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [cs.brier_score, cs.binomial_log_score, cs.pinball_score])
def test_columns_are_what_was_asked_for(scenario, score):
    y, F, C, *_ = scenario
    at = np.array([0.7, 0.2, 0.4])
    losses = score(y, F, C, at)
    assert losses.shape == (40, 3)
    for j, value in enumerate(at):
        one = score(y, F, C, float(value))
        assert one.shape == (40,)
        np.testing.assert_array_equal(one, losses[:, j])
    np.testing.assert_array_equal(score(y, F, C, np.tile(at, (40, 1))), losses)
    per_row = np.linspace(0.2, 0.7, 40)[:, None]
    np.testing.assert_allclose(score(y, F, C, per_row)[7], score(y.take([7]), F.take([7]), C, per_row[7])[0])


def test_one_outcome_may_meet_many_forecasts():
    y, F = cs.RightCensored([1.0], [1]), cs.Weibull([0.5, 1.0, 2.0], 1.0)
    for loss in (
        cs.crps(y, F),
        cs.log_score(y, F),
        cs.brier_score(y, F, None, 0.5),
        cs.pinball_score(y, F, None, 0.5),
    ):
        assert loss.shape == (3,)
    assert cs.crps(y, F)[1] == pytest.approx(cs.crps(y, cs.Exponential(1.0))[0])


# ---- edges -----------------------------------------------------------------------------------------


def test_log_score_stays_infinite(rng):
    y = cs.RightCensored([0.5, 5.0, 5.0], [1, 1, 0])
    loss = cs.log_score(y, cs.Uniform(1.0, 2.0))
    assert np.isposinf(loss).all()


def test_log_score_names_distributions_without_a_density():
    for y in (cs.RightCensored([1.0], [1]), cs.RightCensored([1.0], [0])):
        for F in (
            cs.Ensemble([[1.0, 2.0]]),
            cs.Step([1.0], sf=[0.5]),
            cs.PointMass(2.0),
            cs.Weibull(1.0, 1.0).censor_at(1),
        ):
            with pytest.raises(NoDensityError, match=f"{type(F).__name__} has no density"):
                cs.log_score(y, F)


@pytest.mark.parametrize("name", [name for name in JOINT if "Ensemble" not in name])
def test_log_score_of_joint_distributions_is_their_likelihood(rng, name):
    F = JOINT[name]()
    if not F.has_density:
        with pytest.raises(NoDensityError):
            cs.log_score(cs.RightCensored(np.ones((2, F.k)), np.ones((2, F.k))), F)
        return
    time, event = rng.uniform(0.1, 3, (2, F.k)), rng.random((2, F.k)) < 0.5
    time = np.where(event, time, 3.0)
    y = cs.RightCensored(time, event, censoring_time=3.0)
    np.testing.assert_array_equal(cs.log_score(y, F), -F.log_likelihood(time, event))


def test_binomial_log_score_counts_nothing_where_nothing_was_learnt():
    F = cs.Step([1.0, 2.0], sf=[0.5, 0.0])
    y = cs.RightCensored([0.5, 0.5, 3.0, 0.5], [1, 0, 1, 1])
    loss = cs.binomial_log_score(y, F, cs.Step([0.4, 2.5, 3.5], sf=[0.9, 0.8, 0.0]), [0.7, 2.2])
    assert loss[0].tolist() == [np.inf, 0.0]  # F(0.7) = 0 excluded the event; F(2.2) = 1 foresaw it
    assert loss[1].tolist() == [0.0, 0.0]  # censored: 0 log 0
    assert loss[2].tolist() == [0.0, np.inf]  # alive at 2.2 where F says nobody is
    late = cs.binomial_log_score(y[[0]], F, cs.Step([0.6], sf=[0.0]), [0.7])
    assert late.tolist() == [[0.0]]  # P(C > 0.7) = 0: weight zero times log 0


def test_pinball_of_a_quantile_at_infinity():
    F = cs.Step([1.0], sf=[0.5])
    y = cs.RightCensored([0.5, 2.0], [1, 0])
    bounded = cs.pinball_score(y, F, cs.Uniform(0.0, 4.0), [0.4, 0.9])
    # at level 0.9 the quantile is infinite and min(q, C) = C, whose mean given C >= 0.5 is 1.75 later
    np.testing.assert_allclose(bounded, [[0.6 / 3.5 * (4 * 0.5 - (1 - 0.25) / 2), 0.1 * 1.75], [0.4, 0.0]])
    with pytest.raises(PositivityError, match=r"infinite in 1 subject \(0\)") as caught:
        cs.pinball_score(y, F, cs.Step([3.0], sf=[0.5]), [0.4, 0.9])
    assert caught.value.horizon == 2.0


def test_pinball_at_an_event_on_its_quantile_is_zero():
    y = cs.RightCensored([1.0], [1])
    assert cs.pinball_score(y, cs.Ensemble([[0.5, 1.0, 2.0]]), None, 0.5).tolist() == [0.0]


def test_ipcw_names_the_first_time_that_follow_up_cannot_reach(rng):
    y = cs.RightCensored([0.5, 1.0], [1, 0])
    C = cs.Uniform(0.0, 2.0)
    F = cs.Weibull(1.0, 1.0)
    assert cs.brier_score(y, F, C, [1.0, 2.5])[:, 1].tolist() == [0.0, 0.0]
    with pytest.raises(PositivityError, match=r"zero from t = 2 on in 2 subjects \(0, 1\)") as caught:
        cs.brier_score(y, F, C, [1.0, 2.5, 2.0], scale="ipcw")
    last = caught.value.horizon
    assert last == np.nextafter(2.0, 0)
    assert np.isfinite(cs.brier_score(y, F, C, [1.0, last], scale="ipcw")).all()


def test_ties_between_events_and_censoring_use_left_limits():
    """With C an atom at 1, an event at exactly 1 was sure to be seen as far as C goes: P(C >= 1)."""
    C = cs.Step([1.0, 2.0], sf=[0.4, 0.0])
    y, F = cs.RightCensored([1.0, 1.0], [1, 0]), cs.Weibull(1.0, 1.0)
    S = np.exp(-1.5)
    np.testing.assert_allclose(cs.brier_score(y, F, C, 1.5), [0.4 * S**2, 0.0])
    np.testing.assert_allclose(cs.brier_score(y, F, C, 1.5, scale="ipcw"), [S**2, 0.0])
    at_the_event = cs.brier_score(y, F, C, 1.0)
    np.testing.assert_allclose(at_the_event, [0.4 * np.exp(-2.0), 0.0])


def test_many_rows_do_not_depend_on_chunks(rng, monkeypatch):
    C = step_distribution(40, rng)
    n = 700
    y = outcome_under(C, n, rng)
    F = cs.Weibull(rng.uniform(0.5, 2, n), 1.0)
    x = cs.Ensemble(rng.weibull(1.2, (n, 300)))
    for score in (
        lambda y, rows: cs.crps(y, F[rows], C),
        lambda y, rows: cs.crps(y, x[rows], C),
        lambda y, rows: cs.brier_score(y, x[rows], C, np.linspace(0.1, 1, 100)),
        lambda y, rows: cs.pinball_score(y, x[rows], C, np.linspace(0.1, 0.9, 50)),
        lambda y, rows: cs.integrated_brier_score(y, F[rows], C, scale="ipcw", horizon=1.0),
    ):
        whole = score(y, slice(None))
        pieces = [score(y[rows], rows) for rows in (slice(0, 1), slice(1, 350), slice(350, n))]
        np.testing.assert_allclose(whole, np.concatenate(pieces), rtol=1e-13, atol=1e-16)
