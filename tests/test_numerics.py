"""Quadrature, inversion and safe elementary functions."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from censcore import _numerics
from censcore._numerics import (
    chunked_rows,
    expm1,
    invert_decreasing,
    log1p,
    run_threads,
    safe_log,
    special,
    xlogy,
)
from censcore._quadrature import integrate, integrate_panels


def test_integrate_is_exact_for_polynomials_on_uneven_panels():
    edges = np.array([[0.0, 0.3, 0.3, 1.9], [1.0, 1.1, 1.2, 2.0]])
    value = integrate(lambda t: t**9, edges)
    np.testing.assert_allclose(value, (edges[:, -1] ** 10 - edges[:, 0] ** 10) / 10, rtol=1e-14)


def test_integrate_follows_heavy_tails_on_the_log_scale():
    edges = np.array([[1.0, 1e3, 1e9, 1e30]])
    np.testing.assert_allclose(integrate(lambda t: t**-1.5, edges), 2 * (1 - 1e-15), rtol=1e-10)


def test_panels_one_by_one():
    a, b = np.array([[0.0, 2.0]]), np.array([[1.0, 2.0]])
    np.testing.assert_allclose(integrate_panels(np.exp, a, b), [[np.expm1(1.0), 0.0]], rtol=1e-15)
    one_distribution_for_three = integrate_panels(lambda t: np.array([[1.0], [2.0], [3.0]]) * t, a, b)
    np.testing.assert_allclose(one_distribution_for_three, [[0.5, 0], [1.0, 0], [1.5, 0]])


@given(st.floats(1e-300, 1.0, exclude_max=True))
def test_inversion_to_the_last_bit(p):
    level = np.array([[p]])
    t = invert_decreasing(lambda t: np.exp(-t), level)
    assert np.exp(-t) <= p
    assert np.exp(-np.nextafter(t, 0)) > p or t == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_inversion_at_jumps_flats_and_ends(dtype):
    def steps(t):
        return np.where(t < 2, 1.0, np.where(t < 5, 0.5, 0.25)).astype(dtype)

    p = np.array([[1.0, 0.9, 0.5, 0.4, 0.25, 0.2, 0.0]], dtype=dtype)
    found = invert_decreasing(steps, p)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, [[0, 2, 2, 5, 5, np.inf, np.inf]])


def test_inversion_is_the_same_for_few_numbers_and_for_many(rng):
    def mixture(t):
        return 0.4 * np.exp(-t) + 0.3 * np.exp(-((t / 50) ** 3)) + 0.3 * (t < 1)

    p = np.concatenate([rng.random((4, 300)), 10.0 ** -rng.uniform(0, 300, (4, 100))], axis=1)
    with np.errstate(over="ignore"):
        whole = invert_decreasing(mixture, p)  # by halves
        parts = [invert_decreasing(mixture, p[:, j : j + 20]) for j in range(0, 400, 20)]  # by sixteenths
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)
    rate = np.array([[1.0], [2.0], [4.0]])
    shared = invert_decreasing(lambda t: np.exp(-rate * t), np.array([[0.5, 0.1]]))  # one p for all subjects
    np.testing.assert_allclose(shared, -np.log([[0.5, 0.1]]) / rate, rtol=1e-15)


def test_inversion_in_torch():
    torch = pytest.importorskip("torch")
    p = torch.tensor([[0.5, 1e-30]])
    t = invert_decreasing(lambda t: torch.exp(-t), p)
    np.testing.assert_allclose(t, [[np.log(2), 30 * np.log(10)]], rtol=1e-6)


def test_logarithms_at_zero_have_no_warning_and_no_nan_gradient():
    assert safe_log(np.array([0.0]))[0] == -np.inf
    assert log1p(np.array([-1.0]))[0] == -np.inf
    assert expm1(np.array([1e4]))[0] == np.inf
    np.testing.assert_array_equal(
        xlogy(np.array([0.0, 2.0, 0.0]), np.array([0.0, 0.0, 3.0])), [0.0, -np.inf, 0.0]
    )
    torch = pytest.importorskip("torch")
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    (slope,) = torch.autograd.grad(safe_log(x)[1] + 0 * x.sum(), x)
    assert slope.tolist() == [0.0, 0.5]
    y = torch.tensor([0.0, 3.0], requires_grad=True)
    (slope,) = torch.autograd.grad(xlogy(torch.tensor([0.0, 2.0]), y).sum(), y)
    np.testing.assert_allclose(slope, [0.0, 2 / 3], rtol=1e-6)


def test_special_functions_of_either_library():
    torch = pytest.importorskip("torch")
    assert special(np.ones(1)).__name__ == "scipy.special"
    assert special(torch.ones(1)).__name__ == "torch.special"


@pytest.mark.parametrize("threads", ["1", "3"])
def test_chunks_do_not_change_the_result(threads, monkeypatch, rng):
    monkeypatch.setenv("CENSCORE_THREADS", threads)
    monkeypatch.setattr(_numerics, "CHUNK_NUMBERS", 100)
    x = rng.random((57, 20))
    np.testing.assert_array_equal(chunked_rows(lambda rows: x[rows].sum(axis=1), 57, 20, x), x.sum(axis=1))
    torch = pytest.importorskip("torch")
    tensor = torch.as_tensor(x)
    joined = chunked_rows(lambda rows: tensor[rows].sum(dim=1), 57, 20, tensor)
    np.testing.assert_allclose(joined, x.sum(axis=1))


def test_threads_keep_the_order_and_pass_errors_on(monkeypatch):
    monkeypatch.setenv("CENSCORE_THREADS", "4")
    assert run_threads(lambda i: i * i, list(range(20))) == [i * i for i in range(20)]
    with pytest.raises(ZeroDivisionError):
        run_threads(lambda i: 1 // i, [1, 0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_makes_its_own_pool(monkeypatch):
    monkeypatch.setenv("CENSCORE_THREADS", "2")
    run_threads(abs, [1, -2])
    assert isinstance(_numerics._pool, ThreadPoolExecutor)
    child = os.fork()
    if child == 0:
        os._exit(0 if run_threads(abs, [1, -2]) == [1, 2] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
