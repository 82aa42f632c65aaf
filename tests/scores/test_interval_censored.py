"""Scores of interval-censored data: the definition, both tails, errors, and every kind of forecast."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import censcore as cs
from censcore.exceptions import (
    InvalidInputError,
    MissingVisitsError,
    NoDensityError,
    UnsupportedOutcomeError,
)
from censcore.scores.rules.interval import log_probability, through_visits

INF = np.inf
N = 200


def intervals(T, visits):
    """The intervals that visits (n, K) find, with all visits known."""
    visits = np.sort(np.broadcast_to(visits, (len(T), np.shape(visits)[-1])), axis=1)
    before = visits < T[:, None]
    lower = np.max(np.where(before, visits, 0.0), axis=1)
    upper = np.min(np.where(before, INF, visits), axis=1)
    return cs.IntervalCensored(lower, upper, visits)


def data(seed=0, n=N, visits=5):
    rng = np.random.default_rng(seed)
    scale = rng.uniform(1.0, 4.0, n)
    T = scale * rng.weibull(1.5, n)
    return intervals(T, rng.uniform(0.2, 6.0, (n, visits))), cs.Weibull(1.5, scale)


FORECASTS = {
    "Weibull": lambda F: F,
    "shared": lambda F: cs.Weibull(1.5, 2.0),
    "LogNormal": lambda F: cs.LogNormal(np.linspace(0, 1, N), 0.5),
    "Step": lambda F: cs.Step([0.5, 1.0, 2.0, 3.0, 5.0], sf=F.sf([[0.5, 1.0, 2.0, 3.0, 5.0]])),
    "Ensemble": lambda F: cs.Ensemble(F.sample(30, 1)),
    "Quantiles": lambda F: cs.Quantiles([0.1, 0.5, 0.9], F.icdf([[0.1, 0.5, 0.9]])),
    "cured": lambda F: cs.Mixture([F, cs.PointMass(INF)], weights=[0.7, 0.3]),
}


@pytest.mark.parametrize("name", FORECASTS)
def test_crps_is_the_sum_over_visits(name):
    y, F = data()
    F = FORECASTS[name](F)
    p, ended = F.cdf(y.visits), y.upper[:, None] <= y.visits
    squares = (p - ended) ** 2
    widths = np.diff(y.visits, axis=1)
    np.testing.assert_allclose(cs.crps(y, F), (widths * squares[:, :-1]).sum(axis=1), rtol=1e-9)
    tau = 7.0
    widths = np.diff(np.append(y.visits, np.full((N, 1), tau), axis=1), axis=1)
    expected = (widths * squares).sum(axis=1)
    np.testing.assert_allclose(cs.crps(y, F, horizon=tau), expected, rtol=1e-9)
    np.testing.assert_allclose(cs.integrated_brier_score(y, F, horizon=tau), expected, rtol=1e-9)
    np.testing.assert_allclose(cs.energy_score(y, F, horizon=tau), expected, rtol=1e-9, atol=1e-12)
    both = cs.integrated_brier_score(y, F, horizon=tau, scale="ipcw", normalize=True)
    np.testing.assert_allclose(both, expected / tau, rtol=1e-9)


@pytest.mark.parametrize("name", FORECASTS)
@pytest.mark.parametrize("t", [0.1, 2.0, 5.5, 8.0])
def test_brier_score_is_that_of_the_last_visit_up_to_t(name, t):
    y, F = data()
    F = FORECASTS[name](F)
    passed = y.visits <= t
    last = np.max(np.where(passed, y.visits, 0.0), axis=1)
    p = np.where(passed.any(axis=1), F.cdf(last), 0.0)
    found = y.upper <= t
    np.testing.assert_allclose(cs.brier_score(y, F, times=t), (p - found) ** 2, rtol=1e-9, atol=1e-15)
    at_visits = cs.brier_score(y, F, times=y.visits)
    np.testing.assert_allclose(at_visits, (F.cdf(y.visits) - (y.upper[:, None] <= y.visits)) ** 2, rtol=1e-9)


def test_binomial_log_score_at_visits():
    y, F = data()
    p, found = F.cdf(y.visits), y.upper[:, None] <= y.visits
    expected = -np.where(found, np.log(p), np.log1p(-p))
    np.testing.assert_allclose(cs.binomial_log_score(y, F, times=y.visits), expected, rtol=1e-9)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_pinball_score_is_that_of_the_detection_time(level):
    y, F = data()
    q = F.icdf(level)
    cut = 7.0
    first = np.min(np.where(y.visits >= q[:, None], y.visits, cut), axis=1)
    D = np.where(np.isfinite(y.upper), y.upper, cut)
    expected = np.where(first <= D, level * (D - first), (1 - level) * (first - D))
    np.testing.assert_allclose(cs.pinball_score(y, F, levels=level, horizon=cut), expected, rtol=1e-9)


def test_current_status_is_one_visit():
    rng = np.random.default_rng(1)
    v, T = rng.uniform(1, 4, 50), 3 * rng.weibull(1.5, 50)
    y, F = cs.IntervalCensored.current_status(v, v >= T), cs.Weibull(1.5, 3.0)
    square = (F.cdf(v) - (v >= T)) ** 2
    np.testing.assert_allclose(cs.brier_score(y, F, times=v[:, None])[:, 0], square)
    np.testing.assert_allclose(cs.brier_score(y, F, times=4.0), square)
    np.testing.assert_allclose(cs.crps(y, F, horizon=5.0), (5 - v) * square)
    np.testing.assert_allclose(cs.log_score(y, F), -np.where(v >= T, np.log(F.cdf(v)), F.logsf(v)))
    with pytest.raises(InvalidInputError, match=r"Every subject has one visit.*pass horizon="):
        cs.crps(y, F)


def test_fair_ensembles_keep_their_members():
    y, F = data()
    X = F.sample(8, 3)
    D = np.array([[min(y.visits[i][y.visits[i] >= x], default=7.0) for x in X[i]] for i in range(N)])
    seen = np.where(np.isfinite(y.upper), y.upper, 7.0)
    pairs = np.abs(D[:, :, None] - D[:, None, :]).sum(axis=(1, 2)) / (8 * 7)
    expected = np.abs(D - seen[:, None]).mean(axis=1) - pairs / 2
    np.testing.assert_allclose(
        cs.energy_score(y, cs.Ensemble(X), fair=True, horizon=7.0), expected, atol=1e-12
    )


# ---- the log score -------------------------------------------------------------------------------


def test_log_score_of_intervals_exact_times_and_both_sides():
    y = cs.IntervalCensored([0.0, 1.0, 2.0, 3.0], [1.0, 2.5, INF, 3.0])
    F, peer = cs.Weibull(1.5, 2.0), stats.weibull_min(1.5, scale=2.0)
    expected = [peer.logcdf(1.0), np.log(peer.cdf(2.5) - peer.cdf(1.0)), peer.logsf(2.0), peer.logpdf(3.0)]
    np.testing.assert_allclose(cs.log_score(y, F), -np.array(expected), rtol=1e-12)
    assert cs.log_score(y, F, cs.Uniform(0, 9)).shape == (4,)
    with pytest.raises(NoDensityError, match="known exactly"):
        cs.log_score(y, cs.Ensemble([[1.0, 2.0]]))
    np.testing.assert_allclose(
        cs.log_score(y[:3], cs.Ensemble([[0.5, 2.0, 2.0, INF]])), -np.log([0.25, 0.5, 0.25])
    )


@pytest.mark.parametrize(
    ("F", "far", "near"),
    [
        (cs.Weibull(1.5, 2.0), (150.0, 150.5), (1e-9, 1.1e-9)),
        (cs.LogNormal(0.0, 0.3), (1e5, 1.1e5), (1e-4, 1.1e-4)),
        (cs.Gompertz(0.5, 0.3), (18.0, 18.2), (1e-12, 1.5e-12)),
    ],
    ids=["Weibull", "LogNormal", "Gompertz"],
)
def test_log_score_keeps_its_digits_in_both_tails(F, far, near):
    """Far out both survival functions underflow; near zero both are one."""
    low, high = (np.array([[x]]) for x in far)
    density = F.logpdf(np.linspace(*far, 2001)[None, :])[0]
    step = (far[1] - far[0]) / 2000
    weights = np.full(2001, 1.0)
    weights[1:-1:2], weights[2:-1:2] = 4.0, 2.0  # Simpson's rule, in logarithms
    expected = np.logaddexp.reduce(density + np.log(weights * step / 3))
    assert log_probability(F.like(low), low, high)[0, 0] == pytest.approx(expected, rel=1e-7)
    assert F.sf(far[0])[0] < 1e-200
    low, high = (np.array([[x]]) for x in near)
    found = log_probability(F.like(low), low, high)[0, 0]
    assert found == pytest.approx(np.log(F.cdf(near[1])[0] - F.cdf(near[0])[0]), rel=1e-9)


def test_impossible_intervals_score_infinity_and_mass_at_infinity_counts():
    y = cs.IntervalCensored([5.0, 0.0, 1.0], [6.0, 0.5, INF])
    np.testing.assert_array_equal(cs.log_score(y, cs.Uniform(1.0, 4.0))[:2], [INF, INF])
    cured = cs.Mixture([cs.Exponential(1.0), cs.PointMass(INF)], weights=[0.6, 0.4])
    assert cs.log_score(y, cured)[2] == pytest.approx(-np.log(0.4 + 0.6 * np.exp(-1)))


def test_log_score_with_a_horizon_is_that_of_the_visits_before_it():
    y, F = data()
    cut = y.censor_at(3.0)
    np.testing.assert_allclose(cs.log_score(y, F, horizon=3.0), cs.log_score(cut, F))
    last = np.max(np.where(y.visits <= 3.0, y.visits, 0.0), axis=1)
    late = y.upper > 3.0
    np.testing.assert_allclose(cs.log_score(y, F, horizon=3.0)[late], -F.logsf(last)[late])


# ---- entry, dropout, visits that are not known ---------------------------------------------------


def test_delayed_entry_conditions_the_forecast_before_the_visits():
    y, F = data()
    entry = np.where(np.arange(N) % 2, 0.3 * np.where(np.isfinite(y.upper), y.upper, 2.0), 0.0)
    late = cs.IntervalCensored(y.lower, y.upper, y.visits, entry=entry)
    given = F.given_survival(np.where(entry > 0, entry, -1.0))
    np.testing.assert_allclose(cs.crps(late, F), cs.crps(y, given), rtol=1e-9)
    np.testing.assert_allclose(
        cs.brier_score(late, F, times=2.0), cs.brier_score(y, given, times=2.0), rtol=1e-9
    )
    low = np.maximum(y.lower, entry)
    expected = np.log(F.sf(low) - F.sf(y.upper)) - F.logsf(entry)
    np.testing.assert_allclose(cs.log_score(late, F), -expected, rtol=1e-9)


def test_dropout_needs_the_distribution_of_the_last_visit():
    visits = np.arange(1.0, 6.0)
    y = cs.IntervalCensored([0.0, 2.0, 2.0, 5.0], [1.0, 3.0, INF, INF], visits=visits)
    F, C = cs.Weibull(1.5, 3.0), cs.Step([2.0, 5.0], sf=[0.7, 0.0])
    with pytest.raises(MissingVisitsError, match=r"1 subject \(2\).*Censoring\(KaplanMeier"):
        cs.crps(y, F)
    # who leaves after visit 2 is followed until just before visit 3; who attends all, to the end
    D, before = cs.Step(visits, cdf=F.cdf(visits[None, :])), np.nextafter(3.0, 0.0)
    seen = cs.RightCensored([1.0, 3.0, before, 5.0], [1, 1, 0, 0])
    gone = cs.Step([before, 5.0], sf=[0.7, 0.0])
    np.testing.assert_allclose(cs.crps(y, F, C), cs.crps(seen, D, gone))
    np.testing.assert_allclose(cs.brier_score(y, F, C, times=2.9), cs.brier_score(seen, D, gone, times=2.9))
    assert (cs.brier_score(y, F, C, times=2.9) > 0).all()  # the result at visit 2 is known of everybody
    np.testing.assert_array_equal(cs.brier_score(y, F, C, times=3.0)[2], 0.0)
    longer = cs.crps(
        cs.RightCensored([1.0, 3.0, before, 7.0], [1, 1, 0, 0]), D, cs.Step([before], sf=[0.7]), horizon=7.0
    )
    np.testing.assert_allclose(cs.crps(y, F, C, horizon=7.0), longer)
    assert np.isfinite(cs.crps(y, F, horizon=1.5)).all()


@pytest.mark.parametrize("C", [cs.Exponential(0.2), cs.Step([2.5], sf=[0.5]), cs.PointMass(2.5)])
def test_drop_out_between_visits_is_an_error(C):
    y = cs.IntervalCensored([0.0, 2.0], [1.0, INF], visits=[1.0, 2.0, 3.0])
    with pytest.raises(InvalidInputError, match="between the visits of 2 subjects with one schedule"):
        cs.crps(y, cs.Weibull(1.5, 3.0), C)
    assert np.isfinite(cs.crps(y, cs.Weibull(1.5, 3.0), cs.Step([2.5], sf=[0.5]), horizon=2.0)).all()


def test_given_drop_out_is_that_of_subjects_who_entered():
    visits = np.arange(1.0, 6.0)
    late = cs.IntervalCensored([2.0, 3.0], [3.0, INF], visits, entry=[2.5, 0.0])
    F, C = cs.Weibull(1.5, 3.0), cs.Step(visits, sf=[0.9, 0.8, 0.4, 0.3, 0.0])
    brier = cs.brier_score(late, F, C, times=4.2, scale="ipcw")
    p = 1 - F.sf(4.0) / F.sf(2.5)  # the last visit up to 4.2 is 4; P(C >= 3 | C > 2.5) = 1
    assert brier[0] == pytest.approx(((1 - p) ** 2)[0])
    assert brier[1] == 0.0


def test_visits_that_end_at_the_detection_are_an_error():
    y = cs.IntervalCensored([0.0, 1.0, 3.0], [1.0, 2.0, INF], visits=[[1.0], [1.0, 2.0], [1.0, 2.0, 3.0]])
    for score in (cs.crps, cs.energy_score):
        with pytest.raises(MissingVisitsError, match="visits of all 2 subjects with an event end at it"):
            score(y, cs.Exponential(1.0), horizon=4.0)
    more = y.continue_visits(cs.PointMass(1.0), until=4.0)
    full = cs.IntervalCensored(y.lower, y.upper, visits=[[1, 2, 3, 4], [1, 2, 3, 4], [1, 2, 3]])
    np.testing.assert_allclose(
        cs.crps(more, cs.Exponential(1.0), horizon=4.0), cs.crps(full, cs.Exponential(1.0), horizon=4.0)
    )
    for score in (cs.crps, cs.pinball_score, cs.brier_score):
        options = {cs.crps: {}, cs.pinball_score: {"levels": 0.5}, cs.brier_score: {"times": 1.0}}[score]
        with pytest.raises(MissingVisitsError, match="visits=None"):
            score(cs.IntervalCensored(y.lower, y.upper), cs.Exponential(1.0), **options)


def test_exact_and_right_censored_times_are_right_censored_data():
    y, C = cs.RightCensored([1.0, 2.0, 3.0], [1, 0, 1]), cs.Uniform(0.0, 5.0)
    same = cs.IntervalCensored.from_right_censored(y)
    np.testing.assert_allclose(cs.crps(same, cs.Exponential(0.5), C), cs.crps(y, cs.Exponential(0.5), C))
    np.testing.assert_allclose(cs.log_score(same, cs.Exponential(0.5)), cs.log_score(y, cs.Exponential(0.5)))


def test_augmented_and_published_scores_do_not_take_intervals():
    y, F = data()
    with pytest.raises(UnsupportedOutcomeError, match="got IntervalCensored"):
        cs.augmented_brier_score(y, F, cs.Uniform(0, 9), [1.0], event_model=F)
    with pytest.raises(UnsupportedOutcomeError, match="got IntervalCensored"):
        cs.published.survival_crps(y, F)


def test_other_outcomes_and_shapes_pass():
    y, F = data()
    assert through_visits(cs.RightCensored([1.0], [1]), F, None)[1] is F
    one = y[[0]]
    assert cs.crps(one, F).shape == (N,)
    assert cs.log_score(one, F).shape == (N,)
    with pytest.raises(InvalidInputError, match="numbers of subjects differ"):
        cs.crps(y[:5], F)
    with pytest.raises(InvalidInputError, match="one event time per subject and the forecast 2"):
        cs.crps(y, cs.Independent([F, F]))


# ---- torch ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_gives_the_same_numbers_and_gradients(dtype):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, dtype)
    y, F = data(n=40)
    t = torch.ones(1, dtype=dtype)
    a = torch.tensor([1.5], dtype=dtype, requires_grad=True)
    scale = torch.tensor(F.parameters["scale"], dtype=dtype, requires_grad=True)
    y_t, forecast = y.like(t), cs.Weibull(a, scale)
    scores = [
        lambda y, F: cs.log_score(y, F),
        lambda y, F: cs.crps(y, F),
        lambda y, F: cs.brier_score(y, F, times=[1.0, 2.0]).mean(1),
        lambda y, F: cs.binomial_log_score(y, F, times=[1.0, 2.0]).mean(1),
    ]
    for score in scores:
        values = score(y_t, forecast)
        rtol = 1e-9 if dtype == torch.float64 else 1e-3
        np.testing.assert_allclose(values.detach().numpy(), score(y, F), rtol=rtol, atol=rtol)
        (gradient,) = torch.autograd.grad(values.sum(), scale)
        h = 1e-5
        up, down = (score(y, cs.Weibull(1.5, F.parameters["scale"] + s)) for s in (h, -h))
        expected = (up - down) / (2 * h)
        np.testing.assert_allclose(
            gradient.numpy(), expected, rtol=100 * rtol, atol=1e-2 if rtol > 1e-6 else 1e-6
        )


def test_gradients_are_finite_where_intervals_are_open_or_start_at_zero():
    torch = pytest.importorskip("torch")
    y = cs.IntervalCensored(torch.tensor([0.0, 2.0, 3.0]), torch.tensor([1.0, INF, 3.0]))
    a = torch.tensor(1.5, requires_grad=True)
    cs.log_score(y, cs.Weibull(a.reshape(1), torch.tensor([2.0]))).sum().backward()
    assert torch.isfinite(a.grad)


def test_the_log_score_of_intervals_is_a_training_loss():
    torch = pytest.importorskip("torch")
    y, _ = data(n=300)
    target = cs.WeibullRegression().fit(None, y)
    theta = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    intervals_ = y.like(theta.detach())
    optimiser = torch.optim.LBFGS([theta], max_iter=60, line_search_fn="strong_wolfe")

    def step():
        optimiser.zero_grad()
        loss = cs.log_score(intervals_, cs.Weibull(theta[:1].exp(), theta[1:].exp())).mean()
        loss.backward()
        return loss

    optimiser.step(step)
    expected = [np.log(target.shape_), target.intercept_]
    np.testing.assert_allclose(theta.detach().numpy(), expected, atol=1e-5)
