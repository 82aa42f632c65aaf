"""Kernels of the energy score: one number by every route, and gradients that are right at coincidences."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from importlib.util import find_spec

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.distributions.random_draws import keys_of
from censcore.scores.inputs.compatible_times import RandomNumbers, compatible_times
from censcore.scores.kernels import energy_pairs
from censcore.scores.kernels.energy_pairs import energy_loss, energy_terms, fastest_terms

torch = pytest.importorskip("torch")
BETAS = [0.3, 1.0, 1.7]


def ingredients(rng, dtype, k, m, draws=4):
    """Members (some beyond c in all coordinates, some coinciding), weights, outcomes, times and lags."""
    z, y = rng.exponential(size=(5, m, k)), rng.exponential(size=(5, k))
    z[:, : m // 3] += 5
    z[:, -2:] = z[:, -1:]
    w = rng.random((5, m))
    w /= w.sum(axis=1, keepdims=True)
    c = rng.uniform(0.5, 2, (5, draws, k))
    return *(a.astype(dtype) for a in (z, w, y, c)), rng.integers(1, m, (5, draws))


def close(a, b, dtype):
    tolerance = {"rtol": 1e-12, "atol": 1e-14} if dtype == np.float64 else {"rtol": 3e-5, "atol": 1e-6}
    for first, second in zip(a, b, strict=True):
        assert first.dtype == dtype
        np.testing.assert_allclose(first, second, **tolerance)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize(("k", "m"), [(1, 2), (2, 9), (3, 64), (7, 33)])
def test_compiled_kernels_equal_the_formula(rng, dtype, beta, k, m):
    pytest.importorskip("numba")
    from censcore.scores.kernels.energy_pairs_numba import energy_terms as compiled

    z, w, y, c, lags = ingredients(rng, dtype, k, m)
    never = np.full((1, 1, 1), np.inf, dtype)
    for times in (c, c[:, :, :1], c[:, :1], c[:1], never):
        close(compiled(z, w, y, times, beta), energy_terms(z, w, y, times, beta), dtype)
        close(compiled(z, w, y, times, beta, lags), energy_terms(z, w, y, times, beta, lags), dtype)
    # one ensemble, one set of weights, one set of lags for all rows
    args = (z[:1], w[:1], y, c, beta, lags[:1])
    close(compiled(*args), energy_terms(*args), dtype)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_equals_numpy(rng, beta, dtype):
    *arrays, lags = ingredients(rng, dtype, 3, 20)
    tensors = [torch.from_numpy(a) for a in arrays]
    for pairs in (None, lags):
        there = energy_terms(*tensors, beta, None if pairs is None else torch.from_numpy(pairs))
        close([t.numpy() for t in there], energy_terms(*arrays, beta, pairs), np.dtype(dtype))


def test_all_lags_are_all_pairs(rng):
    for m in (8, 9):  # lag m/2 meets every pair twice
        z, w, y, c, _ = ingredients(rng, np.float64, 2, m, draws=1)
        every = np.arange(1, m)[None, :]
        close(energy_terms(z, w, y, c, 1.0, every), energy_terms(z, w, y, c, 1.0), np.float64)


def test_work_decides_who_computes():
    pytest.importorskip("numba")
    z, w = np.ones((1, 4, 2)), np.ones((1, 4))
    assert fastest_terms(z, w, 100) is energy_terms
    assert fastest_terms(z, w, 1e9).__module__.endswith("energy_pairs_numba")
    assert fastest_terms(torch.ones(1, 4, 2), torch.ones(1, 4), 1e9) is energy_terms


@pytest.mark.parametrize("pairs", ["all", "lagged"])
def test_score_is_the_same_without_numba(rng, monkeypatch, pairs):
    pytest.importorskip("numba")
    T = rng.exponential(size=(60, 2))
    y, F = cs.RightCensored(T, np.ones_like(T)), cs.Ensemble(rng.exponential(size=(60, 200, 2)))
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    compiled = cs.energy_score(y, F, cs.Exponential(0.2), pairs=pairs)
    monkeypatch.setitem(sys.modules, "censcore.scores.kernels.energy_pairs_numba", None)  # not installed
    np.testing.assert_allclose(cs.energy_score(y, F, cs.Exponential(0.2), pairs=pairs), compiled, rtol=1e-12)


ON_GPU = """
import itertools, numpy as np, torch
from censcore.scores.kernels.energy_pairs import energy_terms
from censcore.scores.kernels.energy_pairs_triton import energy_terms as on_gpu

rng = np.random.default_rng(0)
for dtype, tolerance in ((torch.float64, 1e-13), (torch.float32, 2e-6)):
    sizes = ((2, 70, 3), (2, 3), (2, 70), (2, 2, 3))
    z, y, w, c = (torch.tensor(rng.uniform(0.2, 2, size), dtype=dtype) for size in sizes)
    w = w / w.sum(1, keepdim=True)
    for times, weights, beta, lags in itertools.product(
        (c, c[:, :1, :1]), (w, w[:1], None), (0.3, 1.0), (None, torch.tensor([[1, 5]]))
    ):
        expected = energy_terms(z, weights, y, times, beta, lags)
        for a, b in zip(on_gpu(z, weights, y, times, beta, lags), expected, strict=True):
            assert a.dtype == dtype
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
print("equal")
"""


@pytest.mark.skipif(find_spec("triton") is None, reason="triton, which torch brings along on GPUs, is absent")
def test_gpu_kernel_equals_the_formula():
    """Interpreted on the CPU, so that it needs no GPU."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, "-c", ON_GPU], capture_output=True, text=True, env=environment)
    assert done.stdout.split() == ["equal"], done.stderr[-2000:]


def test_numba_and_torch_are_loaded_only_for_work_that_needs_them():
    code = (
        "import sys, numpy as np, censcore as cs; y = cs.RightCensored(np.ones((3, 2)), np.ones((3, 2)));"
        "cs.energy_score(y, cs.Ensemble(np.ones((3, 9, 2)))); "
        "print('numba' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# ---- the public score on tensors -------------------------------------------------------------------


def censored_tensors(rng, k=3, m=70):
    T, C = rng.exponential(size=(20, k)), rng.uniform(0, 3, 20)
    y = cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T)
    return y, cs.Ensemble(rng.exponential(size=(20, m, k))), cs.Uniform(0.0, 3.0)


@pytest.mark.parametrize("pairs", ["auto", "all", "lagged"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_score_of_tensors_equals_that_of_arrays(rng, pairs, shared, dtype):
    y, F, distribution = censored_tensors(rng)
    distribution = distribution if shared else cs.Independent([distribution] * 3)
    mask = rng.random((20, 3)) < 0.8
    like = torch.zeros(1, dtype=dtype)
    loss = cs.energy_score(y.like(like), F.like(like), distribution, pairs=pairs, mask=torch.from_numpy(mask))
    assert loss.dtype == dtype
    expected = cs.energy_score(y, F, distribution, pairs=pairs, mask=mask)
    np.testing.assert_allclose(loss.numpy(), expected, rtol=1e-12 if dtype == torch.float64 else 2e-4)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("pairs", ["all", "lagged"])
@pytest.mark.parametrize("fair", [False, True])
def test_gradient_of_the_score(rng, beta, pairs, fair):
    y, F, distribution = censored_tensors(rng, k=2, m=4)
    y = y.take(slice(0, 2)).like(torch.zeros(1, dtype=torch.float64))
    z = torch.tensor(F.samples[:2], requires_grad=True)

    def loss(z):
        return cs.energy_score(y, cs.Ensemble(z), distribution, beta=beta, pairs=pairs, fair=fair, draws=3)

    assert torch.autograd.gradcheck(loss, z)


def test_gradient_of_one_time(rng):
    y, F, distribution = censored_tensors(rng, k=2, m=5)
    y = y.marginal(0).take(slice(0, 6)).like(torch.zeros(1, dtype=torch.float64))
    z = torch.tensor(F.samples[:6, :, 0], requires_grad=True)
    for fair in (False, True):
        score = partial(cs.energy_score, y, censoring=distribution, fair=fair)
        assert torch.autograd.gradcheck(lambda z, score=score: score(forecast=cs.Ensemble(z)), z)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("lags", [None, torch.tensor([[1, 2]])])
def test_coinciding_and_censored_members_have_zero_gradient(beta, dtype, lags):
    """Members beyond c all sit at c, on the outcome too: distances of zero, to any power."""
    z = torch.tensor([[[2.0, 3.0], [2.5, 4.0], [0.4, 3.0], [0.4, 3.0]]], dtype=dtype, requires_grad=True)
    y, c = torch.tensor([[1.0, 1.0]], dtype=dtype), torch.tensor([[[1.0]]], dtype=dtype)
    energy_loss(z, y, c, beta=beta, lags=lags).sum().backward()
    assert torch.isfinite(z.grad).all()
    assert (z.grad[0, :2] == 0).all()
    assert (z.grad[0, 2:, 1] == 0).all()
    assert (z.grad[0, 2:, 0] != 0).all()


@pytest.mark.parametrize("beta", BETAS)
def test_gradcheck_at_coinciding_censored_members(beta):
    """Away from the kinks of the free coordinate the loss is smooth, whatever coincides elsewhere."""
    rest = torch.tensor([[[2.0, 3.0], [2.5, 4.0], [7.0, 3.0]]], dtype=torch.float64)
    free = torch.tensor([[[0.4, 3.0]]], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1.0, 1.0]], dtype=torch.float64)

    def loss(free):
        return energy_loss(torch.cat([rest, free], 1), y, torch.ones(1, 1, 1, dtype=torch.float64), beta=beta)

    assert torch.autograd.gradcheck(loss, free)


def test_all_members_at_the_outcome():
    z = torch.ones(2, 6, 3, requires_grad=True)
    loss = energy_loss(z, torch.ones(2, 3))
    loss.sum().backward()
    assert (loss == 0).all()
    assert (z.grad == 0).all()


def test_close_members_keep_their_distance():
    """A matrix-product shortcut would round these distances to zero, or to nonsense."""
    z = 1e6 + np.array([[[0.0, 0.0], [3e-4, 4e-4]]])
    loss = energy_loss(z, z[:, 0], fair=True)
    np.testing.assert_allclose(loss, 5e-4 / 2 - 5e-4 / 2, atol=1e-9)
    loss = energy_loss(z, z[:, 0], fair=False)
    np.testing.assert_allclose(loss, 5e-4 / 4, rtol=1e-5)


def test_gradient_in_chunks_is_the_gradient(rng, monkeypatch):
    y, F, distribution = censored_tensors(rng)
    y = y.like(torch.zeros(1, dtype=torch.float64))

    def gradient():
        z = torch.tensor(F.samples, requires_grad=True)
        cs.energy_score(y, cs.Ensemble(z), distribution).sum().backward()
        return z.grad

    whole = gradient()
    monkeypatch.setattr(energy_pairs, "CHUNK_NUMBERS", 10_000)
    torch.testing.assert_close(gradient(), whole)


def test_masked_coordinates_have_no_gradient(rng):
    z = torch.from_numpy(rng.exponential(size=(3, 5, 2))).requires_grad_()
    mask = torch.tensor([[True, False], [True, True], [False, False]])
    energy_loss(z, torch.ones(3, 2, dtype=torch.float64), mask=mask).sum().backward()
    assert ((z.grad != 0).any(dim=1) == mask).all()


# ---- draws of C for training -----------------------------------------------------------------------


def test_one_draw_and_one_lag_each_estimate_the_score_without_bias(rng):
    """Training draws levels and lags afresh in every step; their mean is the exact loss."""
    y, F, distribution = censored_tensors(rng, m=12)
    exact = cs.energy_score(y, F, distribution, pairs="all", draws=1024, fair=True)
    steps = []
    for _ in range(600):
        c = compatible_times(y, distribution, rng.random((20, 2, 1)))
        steps.append(energy_loss(F.samples, y.time, c, lags=rng.integers(1, 12, (1, 2))))
    error = np.std(steps, axis=0) / np.sqrt(600)
    assert (np.abs(np.mean(steps, axis=0) - exact) < 4.5 * error + 1e-4).all()


@pytest.mark.parametrize("lags", [None, np.array([[1, 4]])])
def test_a_censoring_time_for_every_member(rng, lags):
    """Equal times are one time; different ones have the same mean, at the cost of one."""
    y, F, distribution = censored_tensors(rng, m=12)
    c = compatible_times(y, distribution, rng.random((20, 1, 1)))
    repeated = np.repeat(c[:, :, None, :], 12, axis=2)
    one = energy_loss(F.samples, y.time, c, lags=lags)
    np.testing.assert_allclose(energy_loss(F.samples, y.time, repeated, lags=lags), one, rtol=1e-12)

    exact = cs.energy_score(y, F, distribution, pairs="all", draws=1024, fair=True)
    steps = []
    for _ in range(600):
        c = compatible_times(y, distribution, rng.random((20, 12, 1)))
        pairs = None if lags is None else rng.integers(1, 12, (1, 2))
        steps.append(energy_loss(F.samples, y.time, c[:, None], lags=pairs))
    error = np.std(steps, axis=0) / np.sqrt(600)
    assert (np.abs(np.mean(steps, axis=0) - exact) < 4.5 * error + 1e-4).all()


def test_compatible_times_keep_what_is_known(rng):
    y = cs.RightCensored([[1.0, 2.0], [1.0, 2.0]], [[1, 0], [1, 1]])
    p = np.array([[[0.1], [0.9]]] * 2)
    np.testing.assert_allclose(
        compatible_times(y, cs.Uniform(0.0, 4.0), p)[:, :, 0], [[2.0, 2.0], [2.2, 3.8]]
    )
    both = compatible_times(y, cs.Independent([cs.Uniform(0.0, 4.0)] * 2), np.repeat(p, 2, axis=2))
    np.testing.assert_allclose(both[0], [[1.3, 2.0], [3.7, 2.0]])
    np.testing.assert_allclose(both[1], [[1.3, 2.2], [3.7, 3.8]])


@pytest.mark.parametrize("k", [1, 3])
def test_levels_are_even_and_belong_to_their_rows(k):
    random = RandomNumbers(4, 32, keys_of([np.arange(400)], seed=4))
    like = np.zeros(1)
    p = random.levels(k, like)
    assert ((p > 0) & (p < 1)).all()
    np.testing.assert_array_equal(random.take(slice(130, 140)).levels(k, like), p[130:140])
    strata = np.sort((p * 32).astype(int), axis=1)
    assert (strata == np.arange(32)[None, :, None]).all()
    assert abs(p.mean() - 0.5) < 0.002
    assert abs(np.corrcoef(p[1:, 5, 0], p[:-1, 5, 0])[0, 1]) < 0.2


def test_lags_are_uniform_and_differ_within_a_row():
    random = RandomNumbers(4, 8, keys_of([np.arange(6000)], seed=4))
    lags = random.lags(20)
    counts = np.bincount(lags.reshape(-1), minlength=20)
    assert counts[0] == 0
    assert np.abs(counts[1:] / counts.sum() - 1 / 19).max() < 0.005
    assert all(len(set(row)) == 8 for row in lags[:50].tolist())
    np.testing.assert_array_equal(random.take(slice(70, 80)).lags(20), lags[70:80])
