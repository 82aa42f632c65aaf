"""Torch and NumPy give the same scores; gradients are those of the scores and never NaN."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scores.scenarios import SCORES, censoring_distributions, outcome_under

import censcore as cs
from censcore.distributions import Univariate

torch = pytest.importorskip("torch")
N = 4


def weibull(shape, scale):
    return cs.Weibull(shape, scale)


def lognormal(mu, sigma):
    return cs.LogNormal(mu, sigma)


def mixture(shape, rate, share):
    weights = (
        torch.stack([share, 1 - share], axis=1) if torch.is_tensor(share) else np.stack([share, 1 - share], 1)
    )
    return cs.Mixture([cs.Weibull(shape, 1.0 + 0 * shape), cs.Exponential(rate)], weights)


def moving_atom(location):
    weights = [0.7, 0.3]
    return cs.Mixture([cs.Weibull(1.5, 1.0).like(location), cs.PointMass(location)], weights)


def ensemble(samples):
    return cs.Ensemble(samples)


def piecewise_linear(sf):
    return cs.PiecewiseLinear(
        np.array([0.3, 0.9, 2.0]) if isinstance(sf, np.ndarray) else sf.new_tensor([0.3, 0.9, 2.0]), sf=sf
    )


def quantiles(values):
    levels = np.array([0.1, 0.5, 0.9])
    return cs.Quantiles(
        levels if isinstance(values, np.ndarray) else values.new_tensor(levels), values, tail="last"
    )


def step(sf):
    return cs.Step(
        np.array([0.3, 0.9, 2.0]) if isinstance(sf, np.ndarray) else sf.new_tensor([0.3, 0.9, 2.0]), sf=sf
    )


FORECASTS = {
    weibull: lambda rng: [rng.uniform(0.6, 3, N), rng.uniform(0.5, 2, N)],
    lognormal: lambda rng: [rng.normal(size=N), rng.uniform(0.3, 1.5, N)],
    mixture: lambda rng: [rng.uniform(0.6, 3, N), rng.uniform(0.5, 2, N), rng.uniform(0.2, 0.8, N)],
    moving_atom: lambda rng: [rng.uniform(0.5, 2, N)],
    ensemble: lambda rng: [rng.weibull(1.5, (N, 7))],
    piecewise_linear: lambda rng: [np.sort(rng.uniform(0.05, 0.95, (N, 3)))[:, ::-1] * [1, 1, 0.0]],
    quantiles: lambda rng: [np.sort(rng.uniform(0.1, 3, (N, 3)))],
    step: lambda rng: [np.sort(rng.uniform(0.05, 0.95, (N, 3)))[:, ::-1] * [1, 1, 0.0]],
}
KINDS = ["uniform", "smooth", "many jumps", "ends", "ensemble"]
# Step functions: their height does not change with the place of a jump, nor their quantiles with a height.
FLAT = {(ensemble, name) for name in ("brier", "brier ipcw", "binomial log")} | {(step, "pinball")}
NEEDS_DENSITY = {"log": (weibull, lognormal, mixture)}


def scorable(name, forecast):
    if forecast is moving_atom:  # the score that feels an atom move
        return name == "crps"
    return forecast in NEEDS_DENSITY.get(name, FORECASTS)


def in_torch(y, distribution, dtype=torch.float64):
    like = torch.zeros(1, dtype=dtype)
    return y.like(like), distribution.like(like)


@pytest.mark.parametrize("forecast", FORECASTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_torch_equals_numpy(rng, forecast, kind):
    C = censoring_distributions(rng)[kind]
    y, parameters = outcome_under(C, N, rng), FORECASTS[forecast](rng)
    for dtype, tolerance in ((torch.float64, 1e-9), (torch.float32, 2e-3)):
        y_torch, C_torch = in_torch(y, C, dtype)
        F = forecast(*(torch.tensor(p.copy(), dtype=dtype) for p in parameters))
        for name, score in SCORES.items():
            if not scorable(name, forecast):
                continue
            expected = score(y, forecast(*parameters), C, horizon=4.0)
            loss = score(y_torch, F, C_torch, horizon=4.0)
            assert loss.dtype == dtype, name
            np.testing.assert_allclose(
                loss.numpy(), expected, rtol=tolerance, atol=tolerance / 10, err_msg=name
            )


@pytest.mark.parametrize("forecast", FORECASTS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("kind", ["smooth", "many jumps"])
def test_gradients_are_those_of_the_score(rng, forecast, kind):
    C = censoring_distributions(rng)[kind]
    y = outcome_under(C, N, rng)
    parameters = [torch.tensor(p.copy(), requires_grad=True) for p in FORECASTS[forecast](rng)]
    y, C = in_torch(y, C)
    for name, score in SCORES.items():
        if scorable(name, forecast):

            def loss(*p, score=score):
                return score(y, forecast(*p), C, horizon=4.0)

            if not loss(*parameters).requires_grad:
                assert (forecast, name) in FLAT
                continue
            inner = [p.detach().clone() for p in parameters]
            if forecast in (
                piecewise_linear,
                step,
            ):  # the last level is at its bound, where no difference exists

                def loss(*p, score=score):
                    whole = torch.cat([p[0], torch.zeros_like(p[0][:, :1])], dim=1)
                    return score(y, forecast(whole), C, horizon=4.0)

                inner = [inner[0][:, :2]]
            inner = [p.requires_grad_() for p in inner]
            assert torch.autograd.gradcheck(loss, inner, eps=1e-7, atol=2e-5, rtol=1e-4, fast_mode=True), name


@pytest.mark.parametrize("name", [name for name in SCORES if name != "log"])
def test_gradients_survive_zeros_ones_and_coincidences(rng, name):
    sf = torch.tensor(
        [[1.0, 1.0, 0.0], [0.5, 0.5, 0.5], [0.0, 0.0, 0.0]], dtype=torch.float64, requires_grad=True
    )
    y, C = in_torch(cs.RightCensored([0.3, 0.9, 0.1], [1, 0, 1]), cs.Uniform(0.0, 3.0))
    loss = SCORES[name](y, cs.Step(torch.tensor([0.3, 0.9, 2.0]).double(), sf=sf), C, horizon=2.5)
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss[torch.isfinite(loss)].sum(), sf)
        assert torch.isfinite(gradient).all()
    x = torch.tensor([[1.0, 1.0, 2.5]] * 3, dtype=torch.float64, requires_grad=True)
    loss = SCORES[name](
        cs.RightCensored(torch.tensor([1.0, 2.5, 1.0]).double(), torch.tensor([1, 0, 0])), cs.Ensemble(x), C
    )
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss[torch.isfinite(loss)].sum(), x)
        assert torch.isfinite(gradient).all()


def test_float32_numpy_stays_float32_and_close(rng):
    C = cs.Weibull(1.2, 1.5)
    y = outcome_under(C, 50, rng)
    shape = rng.uniform(0.6, 3, 50)
    for name, score in SCORES.items():
        full = score(y, cs.Weibull(shape, 1.0), C)
        single = score(y, cs.Weibull(np.float32(shape), np.float32(1.0)), C)
        assert single.dtype == np.float32, name
        np.testing.assert_allclose(single, full, rtol=2e-3, atol=1e-4, err_msg=name)


def test_the_forecast_decides_the_precision(rng):
    y = outcome_under(cs.Uniform(0.0, 3.0), 5, rng)
    x = rng.weibull(1.5, (5, 8))
    loss = cs.crps(
        y.like(torch.zeros(1, dtype=torch.float64)),
        cs.Ensemble(torch.tensor(x, dtype=torch.float32)),
        cs.Uniform(0.0, 3.0),
    )
    assert loss.dtype == torch.float32
    np.testing.assert_allclose(loss, cs.crps(y, cs.Ensemble(x), cs.Uniform(0.0, 3.0)), rtol=1e-5)


def test_a_distribution_of_plain_numbers_joins_either_library(rng):
    y = cs.RightCensored(torch.tensor([0.5, 1.0]), torch.tensor([1, 0]))
    assert isinstance(cs.Weibull(1.0, 1.0), Univariate)
    for score in SCORES.values():
        assert torch.is_tensor(score(y, cs.Weibull(1.0, 1.0), cs.Uniform(0.0, 2.0)))


def test_a_score_trains_a_forecast(rng):
    """Gradient descent on the CRPS of heavily censored data finds the distribution of T, not of min(T, C)."""
    T, c = torch.tensor(rng.weibull(2.0, 2000)), torch.tensor(rng.uniform(0, 1.5, 2000))
    y = cs.RightCensored(torch.minimum(T, c), c >= T)
    log_parameters = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([log_parameters], max_iter=12)

    def closure():
        optimiser.zero_grad()
        shape, scale = torch.exp(log_parameters)
        loss = cs.crps(y, cs.Weibull(shape.reshape(1), scale.reshape(1)), cs.Uniform(0.0, 1.5)).mean()
        loss.backward()
        return loss

    optimiser.step(closure)
    shape, scale = torch.exp(log_parameters).detach()
    assert abs(shape - 2) < 0.2
    assert abs(scale - 1) < 0.05
