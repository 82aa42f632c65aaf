"""Gradients and second derivatives of every score of every kind of forecast, against differences.

One random direction per case: the slope of the loss, and the slope of its gradient, along it.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.scores.scenarios import SCORES, censoring_distributions

import censcore as cs
from censcore.distributions import Grouped, ProportionalHazards
from censcore.exceptions import DerivativeError, NoDensityError

torch = pytest.importorskip("torch")
GRID = torch.tensor([0.35, 0.95, 2.1], dtype=torch.float64)
LEVELS = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)


def on(values, like):
    return values.to(like.dtype)


def softmax(x):
    return torch.softmax(x, dim=1)


def survival(x):
    """Falling levels between 0 and 1 from any numbers."""
    return 1 - torch.cumsum(softmax(x), dim=1)[:, :-1]


#: A forecast of three subjects from tensors of any numbers, and the shapes of these.
FORECASTS = {
    "exponential": (lambda a: cs.Exponential(a.exp()), [(3,)]),
    "weibull": (lambda a, b: cs.Weibull(a.exp(), b.exp()), [(3,), (3,)]),
    "gamma": (lambda a, b: cs.Gamma(2 * a.exp(), b.exp()), [(3,), (3,)]),
    "gompertz": (lambda a, b: cs.Gompertz(a.exp(), b.exp()), [(3,), (3,)]),
    "log-normal": (lambda a, b: cs.LogNormal(a, b.exp()), [(3,), (3,)]),
    "log-logistic": (lambda a, b: cs.LogLogistic(a.exp(), b.exp()), [(3,), (3,)]),
    "piecewise exponential": (lambda a: cs.PiecewiseExponential(on(GRID[:2], a), a.exp()), [(3, 3)]),
    "mixture": (
        lambda a, b, w: cs.Mixture([cs.Weibull(a.exp(), b.exp()), cs.LogNormal(b, 0.7 + 0 * b)], softmax(w)),
        [(3,), (3,), (3, 2)],
    ),
    "cured": (
        lambda a, w: cs.Mixture([cs.Exponential(a.exp()), cs.PointMass(a.new_tensor([np.inf]))], softmax(w)),
        [(3,), (3, 2)],
    ),
    "quantiles": (lambda a: cs.Quantiles(on(LEVELS, a), 0.4 * torch.cumsum(a.exp(), dim=1)), [(3, 3)]),
    "quantiles, rest at the last": (
        lambda a: cs.Quantiles(on(LEVELS, a), 0.4 * torch.cumsum(a.exp(), dim=1), tail="last"),
        [(3, 3)],
    ),
    "piecewise linear": (lambda a: cs.PiecewiseLinear(on(GRID, a), sf=survival(a)), [(3, 4)]),
    "piecewise linear, tail": (
        lambda a: cs.PiecewiseLinear(on(GRID, a), sf=survival(a), tail="exponential"),
        [(3, 4)],
    ),
    "steps": (lambda a: cs.Step(on(GRID, a), sf=survival(a)), [(3, 4)]),
    "ensemble": (lambda a: cs.Ensemble(a.exp()), [(3, 6)]),
    "weighted ensemble": (lambda a, w: cs.Ensemble(a.exp(), weights=softmax(w)), [(3, 6), (3, 6)]),
    "proportional hazards": (
        lambda a: ProportionalHazards(on(GRID, a), on(GRID, a), a.exp()),
        [(3,)],
    ),
    "given survival": (lambda a, b: cs.Weibull(a.exp(), b.exp()).given_survival(0.2), [(3,), (3,)]),
    "censored": (lambda a, b: cs.Weibull(a.exp(), b.exp()).censor_at(1.9), [(3,), (3,)]),
    "grouped": (
        lambda a, b: Grouped([cs.Exponential(a.exp()), cs.Weibull(2 + 0 * b, b.exp())], [0, 1, 0]),
        [(2,), (1,)],
    ),
    "torch": (
        lambda a, b: cs.as_forecast(torch.distributions.LogNormal(a, b.exp())),
        [(3,), (3,)],
    ),
}
#: Quantiles that are searched for have first derivatives only.
SEARCHED = {"gamma", "mixture", "cured", "given survival", "torch", "grouped", "gompertz"}


def data(kind, dtype):
    rng = np.random.default_rng(3)
    C = censoring_distributions(rng)[kind].to(dtype)
    y = cs.RightCensored([0.55, 1.3, 0.85], [1, 0, 1]).to(dtype)
    return y, C


def parameters(shapes, dtype):
    rng = np.random.default_rng(4)
    return [torch.tensor(0.5 * rng.normal(size=shape), dtype=dtype).requires_grad_() for shape in shapes]


def loss_of(name, kind, make, dtype):
    """The mean loss as a function of the parameters; None where the score does not exist."""
    y, C = data(kind, dtype)

    def loss(p):
        return SCORES[name](y, make(*p), C, horizon=4.0).mean()

    return loss


def gradient(loss, p, graph=False):
    found = torch.autograd.grad(loss(p), p, create_graph=graph, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for g, x in zip(found, p, strict=True)]


def moved(p, v, h):
    return [(x.detach() + h * d).requires_grad_() for x, d in zip(p, v, strict=True)]


def dot(a, b):
    return sum((x * y).sum() for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("forecast", FORECASTS)
@pytest.mark.parametrize("name", SCORES)
def test_first_and_second_derivatives_are_right(forecast, name):
    make, shapes = FORECASTS[forecast]
    kind = "many jumps" if name in ("crps", "integrated brier") else "smooth"
    loss, p = loss_of(name, kind, make, torch.float64), parameters(shapes, torch.float64)
    try:
        value = loss(p)
    except NoDensityError:
        assert name == "log"
        return
    if not value.requires_grad:  # steps whose height or place the score does not feel
        assert forecast in ("steps", "ensemble", "proportional hazards")
        return
    if not torch.isfinite(value):
        assert name == "log"
        return
    rng = np.random.default_rng(5)
    v = [torch.tensor(rng.normal(size=tuple(x.shape))) for x in p]
    h = 1e-5
    ahead, back = moved(p, v, h), moved(p, v, -h)
    slope = float((loss(ahead) - loss(back)).detach() / (2 * h))
    assert float(dot(gradient(loss, p), v)) == pytest.approx(slope, rel=1e-5, abs=1e-8)
    bend = float((dot(gradient(loss, ahead), v) - dot(gradient(loss, back), v)) / (2 * h))
    first = dot(gradient(loss, p, graph=True), v)
    if not first.requires_grad:
        assert bend == pytest.approx(0, abs=1e-7)
        return
    try:
        found = torch.autograd.grad(first, p, allow_unused=True)
    except DerivativeError:
        assert name == "pinball"
        assert forecast in SEARCHED
        return
    second = [torch.zeros_like(x) if g is None else g for g, x in zip(found, p, strict=True)]
    assert float(dot(second, v)) == pytest.approx(bend, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("forecast", FORECASTS)
def test_single_precision_derivatives_are_finite(forecast):
    make, shapes = FORECASTS[forecast]
    for name in ("crps", "log"):
        loss, p = loss_of(name, "many jumps", make, torch.float32), parameters(shapes, torch.float32)
        try:
            value = loss(p)
        except NoDensityError:
            continue
        if not torch.isfinite(value):
            continue
        first = gradient(loss, p, graph=True)
        assert all(bool(torch.isfinite(g).all()) for g in first)
        total = sum(g.sum() for g in first)
        if total.requires_grad:
            second = torch.autograd.grad(total, p, allow_unused=True)
            assert all(g is None or bool(torch.isfinite(g).all()) for g in second)
