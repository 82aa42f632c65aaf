"""Special functions that the array libraries lack, against many digits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from censcore.distributions import _special as special

mpmath = pytest.importorskip("mpmath")
torch = pytest.importorskip("torch")

SHAPES = [0.02, 0.7, 1.0, 3.0, 21.0, 400.0]
POINTS = [(k, x) for k in SHAPES for x in (1e-3 * k, 0.8 * k, k, 1.3 * k + 1, k + 12 * k**0.5)]


@pytest.fixture(autouse=True)
def _many_digits():
    with mpmath.workdps(120):
        yield


def Q(k, x):
    return mpmath.gammainc(k, x, mpmath.inf, regularized=True)


def P(k, x):
    return mpmath.gammainc(k, 0, x, regularized=True)


def slope(f, k):
    return float(mpmath.diff(f, mpmath.mpf(k)))


@pytest.mark.parametrize(("ours", "theirs"), [(special.gammainc, P), (special.gammaincc, Q)])
@pytest.mark.parametrize(("k", "x"), POINTS)
def test_incomplete_gamma_functions_and_their_derivative_in_the_shape(k, x, ours, theirs):
    shape = torch.tensor([k], dtype=torch.float64, requires_grad=True)
    point = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    value = ours(shape, point)
    assert_allclose(value.detach(), [float(theirs(k, x))], rtol=1e-12, atol=1e-300)
    by_shape, by_point = torch.autograd.grad(value.sum(), (shape, point))
    assert_allclose(by_shape, [slope(lambda k: theirs(k, x), k)], rtol=1e-9)
    assert_allclose(by_point, [slope(lambda x: theirs(k, x), x)], rtol=1e-9)


@pytest.mark.parametrize(("k", "x"), [*POINTS, (3.0, 1e4), (0.5, 900.0), (400.0, 3000.0)])
def test_log_of_the_upper_incomplete_gamma_function(k, x):
    shape = torch.tensor([k], dtype=torch.float64, requires_grad=True)
    point = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    value = special.log_gammaincc(shape, point)
    assert_allclose(value.detach(), [float(mpmath.log(Q(k, x)))], rtol=1e-11)
    by_shape, by_point = torch.autograd.grad(value.sum(), (shape, point))
    assert_allclose(by_shape, [slope(lambda k: mpmath.log(Q(k, x)), k)], rtol=1e-8)
    assert_allclose(by_point, [slope(lambda x: mpmath.log(Q(k, x)), x)], rtol=1e-8)


@pytest.mark.parametrize("x", [1e-8, 0.3, 1.0, 12.0, 49.9, 50.1, 1e4])
def test_scaled_exponential_integral(x):
    point = torch.tensor([x], dtype=torch.float64, requires_grad=True)
    value = special.expint_scaled(point)
    assert_allclose(value.detach(), [float(mpmath.exp(x) * mpmath.e1(x))], rtol=1e-14)
    (gradient,) = torch.autograd.grad(value.sum(), point)
    assert_allclose(gradient, [slope(lambda x: mpmath.exp(x) * mpmath.e1(x), x)], rtol=1e-9)
    assert special.expint_scaled(np.array([np.inf]))[0] == 0


def test_functions_by_scipy_broadcast_and_keep_the_precision():
    k = torch.tensor([[0.5], [2.0]], requires_grad=True)
    x = torch.tensor([[0.1, 1.0, 3.0]])
    value = special.gammainc(k, x)
    assert value.shape == (2, 3)
    assert value.dtype == torch.float32
    assert torch.autograd.grad(value.sum(), k)[0].shape == (2, 1)


@pytest.mark.parametrize("x", [-700.0, -5.0, -1e-7, 0.0, 3e-6, 1e-4, 2.0, 700.0, np.inf])
def test_relative_expm1(x):
    expected = 1.0 if x == 0 else 0.0 if np.isinf(x) else float(-mpmath.expm1(-mpmath.mpf(x)) / mpmath.mpf(x))
    assert_allclose(special.relative_expm1(np.array([x])), [expected], rtol=1e-14)


def test_decaying_area_at_its_limits():
    height, rate = np.array([1.0, 1.0, 0.5, 0.0, 0.3]), np.array([0.0, 2.0, 0.0, 0.0, 2.0])
    width = np.array([3.0, np.inf, np.inf, np.inf, 0.0])
    assert_allclose(special.decaying_area(height, rate, width), [3.0, 0.5, np.inf, 0.0, 0.0])


def test_normal_tail_in_torch():
    x = torch.tensor([-37.0, -10.0, 0.0, 5.0], dtype=torch.float64)
    assert_allclose(special.ndtr(x), [float(mpmath.ncdf(float(v))) for v in x], rtol=1e-12)


def test_exp_overflows_to_infinity_with_gradient_zero():
    x = torch.tensor([1.0, 1e4], dtype=torch.float64, requires_grad=True)
    value = special.exp(x)
    assert value[1] == np.inf
    assert torch.autograd.grad(value[:1].sum() + 0 * value[1:].clamp(max=1.0).sum(), x)[0][1] == 0
