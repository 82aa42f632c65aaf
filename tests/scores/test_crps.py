"""The CRPS equals its definition by routes that share no code with it, for every distribution and tail."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad, quad_vec
from scipy.special import beta, gamma
from tests.contracts.distributions import UNIVARIATE
from tests.scores.scenarios import censoring_distributions, outcome_under, step_distribution

import censcore as cs
from censcore import _kernels
from censcore._quadrature import integrate_steps
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.scores.integration import cdf_integrals as _squares
from censcore.scores.integration import time_integral as _time_integral

N = 3
KINDS = list(censoring_distributions(np.random.default_rng(0)))


def integral_of_brier(y, F, C, end):
    """The Brier score integrated over all times up to ``end``, where follow-up is over."""
    edges = {0.0, end, *y.time.tolist()}
    for distribution in (F, C):
        if (breaks := distribution.breaks()) is not None:
            edges |= set(np.asarray(breaks).reshape(-1).tolist())
    edges = sorted(t for t in edges if 0 <= t <= end)
    weight = y.event / np.where(y.event, C.sf_left(y.time), 1)

    def brier(t):
        S = F.sf(float(t))
        return np.where(y.time > t, F.cdf(float(t)) ** 2, weight * C.sf(float(t)) * S**2)

    pieces = itertools.pairwise(edges)
    return sum(
        quad_vec(brier, a, b, epsabs=1e-11, epsrel=1e-11, quadrature="gk21", limit=200)[0] for a, b in pieces
    )


@pytest.mark.parametrize("name", [name for name in UNIVARIATE if "float32" not in name])
def test_every_forecast_scores_the_integral_of_its_brier_score(rng, name):
    F = UNIVARIATE[name]()
    n = len(F) if len(F) > 1 else N
    C = cs.Weibull(0.8, 1.5).censor_at(2.75)
    y = outcome_under(C, n, rng)
    np.testing.assert_allclose(cs.crps(y, F, C), integral_of_brier(y, F, C, 2.75), rtol=1e-8, atol=1e-10)


#: Two forecasts of different kinds for every distribution of C.
PAIRS = [
    (kind, name)
    for number, kind in enumerate(KINDS)
    for place, name in enumerate(["Weibull, shared", "PiecewiseLinear", "Mixture, cured"])
    if place != number % 3
]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_every_distribution_of_c_gives_the_integral_of_the_brier_score(rng, kind, name):
    C = censoring_distributions(rng)[kind].censor_at(6.0)
    F = UNIVARIATE[name]().take(np.array([0]))
    y = outcome_under(C, N, rng)
    np.testing.assert_allclose(cs.crps(y, F, C), integral_of_brier(y, F, C, 6.0), rtol=1e-8, atol=1e-13)


# ---- quadrature against quadrature, over parameters, scales and places of y ------------------------


class Fisk:
    """Log-logistic distribution by formulas that keep their digits in both tails."""

    def __init__(self, shape, scale):
        self.shape, self.scale = shape, scale

    def cdf(self, t):
        return 1 / (1 + (t / self.scale) ** -self.shape) if t > 0 else 0.0

    def sf(self, t):
        return 1 / (1 + (t / self.scale) ** self.shape)

    def ppf(self, p):
        return self.scale * (1 / np.asarray(p) - 1) ** (-1 / self.shape)

    def isf(self, p):
        return self.scale * (1 / np.asarray(p) - 1) ** (1 / self.shape)


def pair_of_distributions(kind, shape, scale):
    """The same distribution here and elsewhere."""
    return {
        "weibull": lambda: (cs.Weibull(shape, scale), scipy.stats.weibull_min(shape, scale=scale)),
        "lognormal": lambda: (cs.LogNormal(np.log(scale), shape), scipy.stats.lognorm(shape, scale=scale)),
        "gamma": lambda: (cs.Gamma(shape, 1 / scale), scipy.stats.gamma(shape, scale=scale)),
        "loglogistic": lambda: (cs.LogLogistic(shape + 0.5, scale), Fisk(shape + 0.5, scale)),
    }[kind]()


def adaptive(f, edges):
    """Adaptive quadrature between edges, on the log scale where a panel is wide."""
    total = 0.0
    for a, b in itertools.pairwise(edges):
        if a > 0 and b > 2 * a:
            g, low, high = (lambda u: f(np.exp(u)) * np.exp(u)), np.log(a), np.log(b)
        else:
            g, low, high = f, a, b
        total += quad(g, low, high, epsabs=0, epsrel=1e-11, limit=200)[0]
    return total


def definition(y, event, F, C):
    shares = np.array([0.5, 0.1, 1e-2, 1e-3, 1e-5, 1e-8])
    low = np.array([1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9])
    high = np.array([1e-2, 1e-4, 1e-8, 1e-12, 1e-20, 1e-50])
    below = np.concatenate([F.ppf(low), F.isf(high), F.ppf(F.cdf(y) * shares)])
    total = adaptive(lambda t: F.cdf(t) ** 2, sorted({0.0, y, *below[(below > 0) & (below < y)]}))
    if event:
        reached = C.sf(y)
        above = np.concatenate(
            [distribution.ppf(low) for distribution in (F, C)]
            + [distribution.isf(high) for distribution in (F, C)]
        )
        above = np.concatenate([above, C.isf(reached * shares)])
        edges = sorted({y, *above[(above > y) & np.isfinite(above)]})
        total += adaptive(lambda t: F.sf(t) ** 2 * C.sf(t) / reached, edges)
    return total


@pytest.mark.parametrize(
    ("kind", "scale"),
    [("weibull", 1e-5), ("lognormal", 1e6), ("gamma", 1e-5), ("gamma", 1e6), ("loglogistic", 1e-5)],
)
def test_smooth_distributions_to_1e_8_wherever_y_lies(rng, kind, scale):
    cases = []
    for shape in (0.3, 6.0):
        F, F_peer = pair_of_distributions(kind, shape, scale)
        C, C_peer = pair_of_distributions(rng.choice(["weibull", "loglogistic"]), 1.2, 2 * scale)
        early, late = F_peer.ppf(1e-20), C_peer.isf(1e-12)
        for y, event in ((early, 0), (early, 1), (float(F_peer.ppf(0.4)), 1), (late, 1), (2 * scale, 0)):
            if 1e-100 < y < 1e100:
                got = cs.crps(cs.RightCensored([y], [event]), F, C)[0]
                cases.append((got, definition(float(y), event, F_peer, C_peer)))
    got, expected = np.array(cases).T
    np.testing.assert_allclose(got, expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [0.501, 0.55, 0.8, 3.0])
def test_heavy_tails_without_censoring_have_closed_forms(shape):
    y = cs.RightCensored([1e-300], [1])
    expected = 2.0 * beta(1 / shape, 2 - 1 / shape) / shape
    assert cs.crps(y, cs.LogLogistic(shape, 2.0))[0] == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("shape", [0.4, 1.0, 30.0])
def test_events_decades_away_from_the_forecast(shape):
    F = cs.Weibull(shape, 1.0)
    y = np.array([1e-200, 1e-20, 1e25, 1e90])
    at_zero = gamma(1 + 1 / shape) * 2 ** (-1 / shape)
    # far above, |T - y| is y - E T, and y itself to the last digit
    expected = [at_zero, at_zero, y[2], y[3]]
    np.testing.assert_allclose(cs.crps(cs.RightCensored(y, np.ones(4)), F), expected, rtol=1e-8)


def test_lognormal_has_its_closed_form(rng):
    mu, sigma, y = rng.normal(size=50), rng.uniform(0.1, 2, 50), rng.lognormal(size=50)
    z, normal = (np.log(y) - mu) / sigma, scipy.stats.norm
    expected = y * (2 * normal.cdf(z) - 1) - 2 * np.exp(mu + sigma**2 / 2) * (
        normal.cdf(z - sigma) + normal.cdf(sigma / np.sqrt(2)) - 1
    )
    loss = cs.crps(cs.RightCensored(y, np.ones(50)), cs.LogNormal(mu, sigma))
    np.testing.assert_allclose(loss, expected, rtol=1e-8)


# ---- one number by several routes ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["Weibull", "PiecewiseLinear", "Mixture, atoms", "PiecewiseExponential", "Quantiles"]
)
@pytest.mark.parametrize("left", [0.0, 0.3])
def test_reading_the_antiderivative_at_jumps_equals_quadrature_between_them(rng, monkeypatch, name, left):
    F = UNIVARIATE[name]()
    C = step_distribution(150, rng, left=left)
    y = outcome_under(C, len(F) if len(F) > 1 else N, rng)

    def both():
        return cs.crps(y, F, C, horizon=8.0), cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.0)

    formulas = both()
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)  # the compiled kernel, where numba is there
    np.testing.assert_allclose(both(), formulas, rtol=1e-12)
    monkeypatch.setattr(_squares, "FEW_JUMPS", 10**9)
    np.testing.assert_allclose(both(), formulas, rtol=1e-11)


# beyond their last quantile these forecasts have mass at infinity or fall slowly, or their times span decades
FLAT_TAILS = {
    "cured at once": cs.Mixture([cs.Weibull(40.0, 1.0), cs.PointMass(np.inf)], [0.5, 0.5]),
    "cured slowly": cs.Mixture([cs.Weibull(0.3, 1.0), cs.PointMass(np.inf)], [0.2, 0.8]),
    "heavy": cs.LogLogistic(0.3, 1.0),
    "flat": cs.Weibull(1e-3, 1.0),
    "linear to a far knot": cs.PiecewiseLinear([1.0, 1e300], sf=[0.9, 0.1]),
}


def gauss_of_each_step(f, edges, weights):
    """The sum over [edges_j, edges_j+1] of weights_j times the integral of f, on many panels."""
    x, w = np.polynomial.legendre.leggauss(16)
    total = 0.0
    for a, b, weight in zip(edges[:-1], edges[1:], weights, strict=True):
        grid = np.geomspace(max(a, 1e-30 * b), b, 400) if b > 1e-250 else []
        cuts = np.unique(np.concatenate([[a, b], grid]))
        low, width = cuts[:-1, None], np.diff(cuts)[:, None]
        t = low + width * (x + 1) / 2
        total += weight * np.sum(f(t.reshape(1, -1)).reshape(t.shape) * w * width / 2)
    return total


@pytest.mark.parametrize("name", FLAT_TAILS)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("y", [0.0, 5e-324, 1e-30])
def test_a_horizon_far_beyond_the_jumps_of_c_takes_no_accuracy(monkeypatch, name, y, compiled):
    """Panels that reach over decades beyond the jumps made losses wrong in the third digit, or negative."""
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    F, jumps = FLAT_TAILS[name], np.linspace(0.1, 4, 50)
    for last in (0.0, 0.02):
        G = np.linspace(0.99, last, 50)
        loss = cs.crps(cs.RightCensored([y], [1]), F, cs.Step(jumps, sf=G), horizon=1e5)
        stops, weights = np.r_[y, jumps, 1e5], np.r_[1.0, G]
        expected = gauss_of_each_step(lambda t: F.sf(t) ** 2, stops, weights)
        expected += gauss_of_each_step(lambda t: F.cdf(t) ** 2, [0.0, y], [1.0]) if y else 0.0
        np.testing.assert_allclose(loss, expected, rtol=1e-8)


@pytest.mark.parametrize("name", FLAT_TAILS)
@pytest.mark.parametrize("y", [5e-324, 1e-200, 1e-8, 1e-3, 3.0])
def test_early_times_on_the_ipcw_scale(name, y):
    F, jumps, G = FLAT_TAILS[name], np.geomspace(1e-12, 4, 50), np.linspace(0.99, 0.02, 50)
    C, h = cs.Step(jumps, sf=G), 1e3
    for event in (0, 1):
        outcome = cs.RightCensored([y], [event])
        loss = cs.integrated_brier_score(outcome, F, C, scale="ipcw", horizon=h)
        before = jumps < y
        stops, weights = np.r_[0.0, jumps[before], y], 1 / np.r_[1.0, G[before]]
        expected = gauss_of_each_step(lambda t: F.cdf(t) ** 2, stops, weights)
        if event:
            expected += gauss_of_each_step(lambda t: F.sf(t) ** 2, [y, h], [1 / C.sf_left(y)[0]])
        np.testing.assert_allclose(loss, expected, rtol=1e-8, atol=1e-25 * y)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_weight_of_steps_may_start_from_zero_and_return_to_it(monkeypatch, compiled):
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    times, values = np.array([[0.0, 1.0, 2.0, 3.0]]), np.array([[0.0, 2.0, 0.0, 1.0]])
    found = integrate_steps(np.exp, np.array([[0.0, 1.5, 4.0]]), 12, times, values)
    np.testing.assert_allclose(found, 2 * (np.e**2 - np.e) + np.e**4 - np.e**3, rtol=1e-12)


@pytest.mark.parametrize("jumps", [1, 7, 5000])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_kernel_equals_the_formulas(rng, monkeypatch, jumps, weighted):
    pytest.importorskip("numba")
    n, m = 200, 30
    x = rng.weibull(1.2, (n, m))
    x[:, 3] = x[:, 4]
    x[rng.random((n, m)) < 0.05] = np.inf
    F = cs.Ensemble(x, rng.random((n, m)) * (rng.random((n, m)) < 0.9) if weighted else None)
    C = step_distribution(jumps, rng)
    y = outcome_under(C, n, rng)
    x[0, 0] = y.time[0]
    for distribution in (C, C.take(np.zeros(1, int)).censor_at(rng.uniform(3, 4, n))):
        formulas = cs.crps(y, F, distribution, horizon=5.0)
        with monkeypatch.context() as patch:
            patch.setattr(_kernels, "WORTH_COMPILING", 0)
            patch.setattr(_time_integral, "square_below", None)  # the formulas must not be what runs
            np.testing.assert_allclose(
                cs.crps(y, F, distribution, horizon=5.0), formulas, rtol=1e-12, atol=1e-15
            )


def test_compiled_kernel_equals_the_formulas_without_censoring(rng, monkeypatch):
    pytest.importorskip("numba")
    for x in (rng.weibull(1.2, (50, 30)), np.float32(rng.weibull(1.2, (50, 30)))):
        y, F = cs.RightCensored(rng.weibull(1.2, 50), np.ones(50)), cs.Ensemble(x)
        formulas = cs.crps(y, F)
        with monkeypatch.context() as patch:
            patch.setattr(_kernels, "WORTH_COMPILING", 0)
            compiled = cs.crps(y, F)
        assert compiled.dtype == formulas.dtype == x.dtype
        np.testing.assert_allclose(compiled, formulas, rtol=1e-12 if x.dtype == np.float64 else 2e-6)


def test_ensemble_is_the_step_distribution_of_its_members(rng):
    C = step_distribution(20, rng)
    y = outcome_under(C, 5, rng)
    x = rng.exponential(size=(5, 9))
    steps = cs.Step(np.sort(x, axis=1), cdf=np.tile(np.arange(1, 10) / 9, (5, 1)))
    np.testing.assert_allclose(cs.crps(y, cs.Ensemble(x), C), cs.crps(y, steps, C), rtol=1e-13)
    doubled = cs.Ensemble(np.concatenate([x, x], axis=1))
    np.testing.assert_allclose(cs.crps(y, doubled, C), cs.crps(y, steps, C), rtol=1e-13)


def test_ensemble_under_a_smooth_distribution_is_the_sum_over_its_members(rng):
    C = cs.Weibull(1.5, 1.0)
    y, x = outcome_under(C, 4, rng), rng.exponential(size=(4, 6))
    F = cs.Ensemble(x)
    edges = np.sort(np.concatenate([x, y.time[:, None], np.full((4, 1), 60.0)], axis=1), axis=1)
    for row in range(4):
        t, d = y.time[row], y.event[row]

        def brier(s, row=row, t=t, d=d):
            S = np.mean(x[row] > s)
            return (1 - S) ** 2 if s < t else d * np.exp(t**1.5 - s**1.5) * S**2

        pieces = zip([0.0, *edges[row]], edges[row], strict=False)
        expected = sum(quad(brier, a, b, epsabs=1e-13, epsrel=1e-13)[0] for a, b in pieces)
        assert cs.crps(y, F, C)[row] == pytest.approx(expected, rel=1e-10)


def test_distribution_of_c_by_group_equals_the_groups_apart(rng):
    from censcore.distributions import Grouped

    distributions = [step_distribution(50, rng), step_distribution(3, rng, left=0.5)]
    y = outcome_under(distributions[0].censor_at(1.0), 8, rng)
    F, group = cs.Weibull(rng.uniform(0.5, 2, 8), 1.0), np.array([0, 1, 1, 0, 0, 1, 0, 1])
    together = cs.crps(y, F, Grouped(distributions, group))
    for number, distribution in enumerate(distributions):
        rows = np.nonzero(group == number)[0]
        np.testing.assert_allclose(together[rows], cs.crps(y[rows], F[rows], distribution), rtol=1e-13)


# ---- infinite scores are refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    "F",
    [
        cs.LogLogistic(0.5, 1.0),
        cs.LogLogistic(0.3, 1.0),
        cs.Mixture([cs.Weibull(1.0, 1.0), cs.PointMass(np.inf)], [0.9, 0.1]),
        cs.Step([1.0], sf=[0.5]),
        cs.PiecewiseLinear([1.0, 2.0], sf=[0.9, 0.5]),
        cs.Ensemble([[1.0, np.inf]]),
        cs.PointMass(np.inf),
    ],
    ids=repr,
)
def test_infinite_tail_names_rows_and_a_horizon_that_works(F):
    y = cs.RightCensored([1.0, 2.0, 0.5], [1, 1, 1])
    with pytest.raises(PositivityError, match=r"infinite in 3 subjects \(0, 1, 2\).*horizon") as caught:
        cs.crps(y, F, cs.PointMass(np.inf))
    assert caught.value.rows == (0, 1, 2)
    assert np.isfinite(cs.crps(y, F, cs.PointMass(np.inf), horizon=caught.value.horizon)).all()
    assert np.isfinite(cs.crps(y, F, cs.Exponential(1.0))).all()
    for never_ending in (cs.Step([9.0], sf=[0.5]), step_distribution(50, np.random.default_rng(1), left=0.1)):
        with pytest.raises(PositivityError, match="infinite"):
            cs.crps(y, F, never_ending)


def test_only_the_rows_with_an_infinite_tail_are_named():
    F = cs.Step([1.0, 2.0], sf=[[0.5, 0.0], [0.5, 0.1], [0.5, 0.2]])
    y = cs.RightCensored([1.5, 1.5, 1.5], [1, 1, 0])
    C = cs.Step([9.0], sf=[0.5])
    with pytest.raises(PositivityError) as caught:
        cs.crps(y, F, C)
    assert caught.value.rows == (1,)


def test_event_so_early_that_a_panel_begins_many_decades_below_its_end():
    y, F = cs.RightCensored([5e-324], [1]), cs.Step([0.0], sf=[0.5])
    C = cs.LogLogistic([1.0], [1.0])
    expected = 0.25 * float(C.integrated_sf(0.0, 1.0)[0])
    np.testing.assert_allclose(cs.crps(y, F, C, horizon=1.0), expected, rtol=1e-8)


def test_fair_members_are_scored_by_the_definition():
    """Weighted members, one that never has the event, and a horizon: the pairs of a member with itself go."""
    rng = np.random.default_rng(0)
    x, w = rng.exponential(size=(4, 7)), rng.random((4, 7))
    x[0, 2] = np.inf
    y = cs.RightCensored([0.4, 1.0, 0.7, 2.0], [1, 0, 1, 1])
    found = cs.crps(y, cs.Ensemble(x, weights=w), cs.Uniform(0.0, 3.0), horizon=2.5, fair=True)
    for i in range(4):
        levels = (np.arange(20_000) + 0.5) / 20_000
        c = y.time[i] + levels * (3.0 - y.time[i]) if y.event[i] else y.time[i : i + 1]
        c, p = np.minimum(c, 2.5), w[i] / w[i].sum()
        members, seen = np.minimum(x[i][:, None], c), np.minimum(y.time[i], c)
        pairs = np.abs(members[:, None] - members[None, :])
        fair = np.einsum("j,k,jkc->c", p, p, pairs) / (1 - (p**2).sum())
        assert found[i] == pytest.approx((p @ np.abs(members - seen) - fair / 2).mean(), rel=1e-4)


def test_the_fair_score_of_a_small_sample_is_that_of_its_distribution():
    rng = np.random.default_rng(1)
    n = 20_000
    T, censored = rng.exponential(size=n), rng.uniform(0, 3, n)
    y, C = cs.RightCensored(np.minimum(T, censored), censored >= T), cs.Uniform(0.0, 3.0)
    sample, truth = cs.Ensemble(rng.exponential(size=(n, 5))), cs.Exponential(1.0)
    mean, error = cs.mean_loss(cs.crps(y, sample, C, fair=True) - cs.crps(y, truth, C))
    assert abs(mean) < 3 * error
    assert cs.mean_loss(cs.crps(y, sample, C) - cs.crps(y, truth, C)).mean > 20 * error
    np.testing.assert_array_equal(cs.crps(y, truth, C, fair=True), cs.crps(y, truth, C))


def test_fair_members_of_visits_are_those_of_the_detection_time():
    """The energy score of one time is the same number by another way."""
    rng = np.random.default_rng(2)
    y = cs.IntervalCensored([0.0, 1.0, 2.0], [1.0, 2.0, np.inf], visits=[1.0, 2.0])
    members = cs.Ensemble(rng.exponential(size=(3, 9)))
    fair = cs.crps(y, members, horizon=2.5, fair=True)
    np.testing.assert_array_equal(fair, cs.energy_score(y, members, horizon=2.5, fair=True))
    assert (fair < cs.crps(y, members, horizon=2.5)).all()


def test_the_fair_score_of_all_causes_is_that_of_their_distribution():
    rng = np.random.default_rng(3)
    n = 10_000
    T, cause = rng.exponential(1 / 3, size=n), np.where(rng.uniform(size=n) < 1 / 3, 1, 2)
    censored, C = rng.uniform(0, 2, n), cs.Uniform(0.0, 2.0)
    y = cs.CompetingRisks(np.minimum(T, censored), np.where(censored >= T, cause, 0))
    truth = cs.CauseSpecificHazards([cs.Exponential(1.0), cs.Exponential(2.0)])
    members = cs.CauseEnsemble(
        rng.exponential(1 / 3, size=(n, 5)), np.where(rng.uniform(size=(n, 5)) < 1 / 3, 1, 2)
    )
    true = cs.crps(y, truth, C, horizon=1.5)
    mean, error = cs.mean_loss(cs.crps(y, members, C, horizon=1.5, fair=True) - true)
    assert abs(mean) < 3 * error
    assert cs.mean_loss(cs.crps(y, members, C, horizon=1.5) - true).mean > 10 * error


def test_one_member_has_no_fair_score():
    with pytest.raises(InvalidInputError, match="at least two members"):
        cs.crps(cs.RightCensored([1.0], [1]), cs.Ensemble([[2.0]]), fair=True)
