"""Curves that are not monotone: rounding, repairs and errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from censcore.distributions.univariate.monotone import ROUNDING, monotone
from censcore.exceptions import InvalidInputError

TIMES = np.array([1.0, 2.0, 4.0, 8.0])
WRONG = np.array([[0.9, 0.6, 0.4, 0.1], [0.8, 0.5, 0.7, 0.2], [0.7, 0.7, 0.72, 0.3]])


def test_a_monotone_curve_is_left_alone():
    sf = np.array([[0.9, 0.4, 0.4, 0.1]])
    levels, repair = monotone(sf, falls=True)
    assert levels is sf
    assert repair is None


@pytest.mark.parametrize("falls", [True, False])
def test_rounding_is_mended_without_a_word(falls):
    rng = np.random.default_rng(0)
    curve = np.linspace(1, 0, 200)[None, :] ** 2 * np.ones((5, 1))
    exact = curve if falls else 1 - curve
    for noisy in (exact + rng.normal(0, 1e-9, exact.shape), exact.astype(np.float32).astype(float)):
        levels, repair = monotone(noisy, falls=falls)
        assert repair is None
        assert (np.diff(levels if falls else -levels) <= 0).all()
        assert ((levels >= 0) & (levels <= 1)).all()
        np.testing.assert_allclose(levels, exact, atol=2e-7)


def test_many_small_rises_that_add_up_are_no_rounding():
    rising = 0.5 + 5e-7 * np.arange(100)
    with pytest.raises(InvalidInputError, match=r"from 0\.5 at column 0 to 0\.50005 at column 99"):
        monotone(rising[None, :], falls=True)


def test_violations_name_subjects_and_times_and_are_repaired_on_request():
    message = r"sf must not increase.*from 0\.5 at time 2 to 0\.7 at time 4 in subject 1.*2 subjects \(1, 2\)"
    with pytest.raises(InvalidInputError, match=message):
        monotone(WRONG, falls=True, times=TIMES)
    with pytest.raises(InvalidInputError, match="cif must not decrease with time"):
        monotone(1 - WRONG, falls=False, name="cif", times=TIMES)
    levels, repair = monotone(WRONG, falls=True, repair=True)
    np.testing.assert_allclose(levels[1:], [[0.8, 0.6, 0.6, 0.2], [0.71, 0.71, 0.71, 0.3]])
    np.testing.assert_array_equal(levels[0], WRONG[0])
    assert repair.subjects == (1, 2)
    assert repair.largest == pytest.approx(0.1)
    assert repair.mean == pytest.approx(0.055)
    assert "2 subjects (1, 2)" in str(repair)


def test_several_curves_per_subject():
    stacked = np.stack([WRONG, WRONG[[0, 0, 0]]], axis=1)  # (n, causes, q)
    levels, repair = monotone(stacked, falls=True, repair=True)
    assert levels.shape == stacked.shape
    assert repair.subjects == (1, 2)
    with pytest.raises(InvalidInputError, match=r"in subject 1, .*2 subjects \(1, 2\)"):
        monotone(stacked, falls=True, times=TIMES)


def test_nan_and_numbers_that_are_no_probabilities():
    with pytest.raises(InvalidInputError, match="free of NaN"):
        monotone(np.array([[0.9, np.nan]]), falls=True, repair=True)
    with pytest.raises(InvalidInputError, match=r"between 0 and 1; got 1\.2, in 1 subject \(1\)"):
        monotone(np.array([[0.9, 0.5], [1.2, 0.5]]), falls=True)
    levels, repair = monotone(np.array([[1.2, 0.5, -0.1]]), falls=True, repair=True)
    np.testing.assert_array_equal(levels, [[1.0, 0.5, 0.0]])
    assert repair.largest == pytest.approx(0.2)


@given(st.lists(st.integers(0, 20), min_size=2, max_size=7))
def test_the_repair_is_the_nearest_monotone_curve(numbers):
    """Against the linear program: least e with |x - s| <= e and x falling."""
    s = np.array(numbers) / 20
    q = len(s)
    one, eye = np.ones((q, 1)), np.eye(q)
    falling = np.c_[np.eye(q)[1:] - np.eye(q)[:-1], np.zeros(q - 1)]
    A = np.r_[np.c_[eye, -one], np.c_[-eye, -one], falling]
    best = linprog(np.r_[np.zeros(q), 1.0], A, np.r_[s, -s, np.zeros(q - 1)], bounds=[(0, 1)] * (q + 1)).fun
    levels, repair = monotone(s[None, :], falls=True, repair=True)
    assert (np.diff(levels) <= 1e-15).all()
    assert np.abs(levels - s).max() == pytest.approx(best, abs=1e-9)
    assert (repair is None) == (best <= ROUNDING)


def test_torch_agrees_and_keeps_gradients():
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(WRONG, requires_grad=True)
    levels, repair = monotone(tensor, falls=True, repair=True)
    np.testing.assert_allclose(levels.detach().numpy(), monotone(WRONG, falls=True, repair=True)[0])
    levels.sum().backward()
    assert torch.isfinite(tensor.grad).all()
    assert repair.subjects == (1, 2)
