"""Closed forms of piecewise-linear forecasts, with any tail, where the censoring time is known."""

import numpy as np
import pytest

import censcore as cs
from censcore._quadrature import integrate

N = 40
LEVELS = np.linspace(0.05, 0.95, 19)


def forecasts(rng):
    values = np.sort(rng.exponential(1.0, (N, 19)), axis=1)
    values[:3, 5:8] = values[:3, 5:6]  # atoms
    grid = np.linspace(0.1, 2.0, 12)
    curve = cs.Weibull(1.3, np.linspace(0.5, 2.0, N)).sf(grid[None, :])
    return {
        "quantiles": cs.Quantiles(LEVELS, values),
        "never after the last": cs.Quantiles(LEVELS, values, tail="infinity"),
        "all at the last": cs.Quantiles(LEVELS, values, tail="last"),
        "curve": cs.PiecewiseLinear(grid, sf=curve),
        "curve with a tail": cs.PiecewiseLinear(grid, sf=curve, tail="exponential"),
        "one for all": cs.Quantiles([0.2, 0.5, 0.8], [0.4, 0.9, 1.5]),
    }


def definition(y, F, c):
    """The integrals of F² up to y and of S² from y to c, on many panels that hold the break points."""
    knots = np.sort(np.broadcast_to(F._times, (N, F._times.shape[1])), axis=1)
    fine = np.broadcast_to(np.linspace(0, 40, 400), (N, 400))
    edges = np.sort(np.concatenate([knots, fine], axis=1), axis=1)
    t = y.time[:, None]
    below = integrate(
        lambda s: F.cdf_at(s) ** 2, np.sort(np.concatenate([0 * t, np.minimum(edges, t), t], 1), 1)
    )
    inner = np.clip(edges, t, np.maximum(c[:, None], t))
    return below + np.where(y.event, integrate(lambda s: F.sf_at(s) ** 2, np.sort(inner, axis=1)), 0.0)


@pytest.mark.parametrize("name", list(forecasts(np.random.default_rng(0))))
def test_equals_the_definition(name):
    rng = np.random.default_rng(1)
    F, T, c = forecasts(rng)[name], rng.exponential(1.5, N), rng.uniform(0.1, 6.0, N)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    np.testing.assert_allclose(cs.crps(y, F, cs.PointMass(c)), definition(y, F, c), rtol=1e-9, atol=1e-12)


def test_without_censoring_an_exponential_tail_has_no_end():
    rng = np.random.default_rng(2)
    F = cs.Quantiles(LEVELS, np.sort(rng.exponential(1.0, (N, 19)), axis=1))
    y = cs.RightCensored(rng.exponential(1.0, N), np.ones(N))
    loss = cs.crps(y, F, cs.PointMass(np.inf))
    np.testing.assert_allclose(loss, definition(y, F, np.full(N, 40.0)), rtol=1e-7)


def test_gradients_equal_differences():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    values = np.sort(rng.exponential(1.0, (N, 19)), axis=1)
    y = cs.RightCensored(rng.exponential(1.0, N), np.ones(N))
    like = torch.zeros(1, dtype=torch.float64)
    v = torch.tensor(values, requires_grad=True)
    cs.crps(y.like(like), cs.Quantiles(LEVELS.tolist(), v), cs.PointMass(9.0).like(like)).sum().backward()

    def total(by, j):
        moved = values.copy()
        moved[:, j] += by
        return cs.crps(y, cs.Quantiles(LEVELS, moved), cs.PointMass(9.0)).sum()

    for j in (0, 9, 18):
        numeric = (total(1e-7, j) - total(-1e-7, j)) / 2e-7
        assert abs(float(v.grad[:, j].sum()) - numeric) < 1e-5
