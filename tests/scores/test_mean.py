"""Means of losses and their standard errors."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError


def test_equal_weights_give_the_usual_error(rng):
    x = rng.exponential(size=50)
    mean, error = cs.mean_loss(x)
    assert mean == pytest.approx(x.mean())
    assert error == pytest.approx(x.std(ddof=1) / np.sqrt(50))
    both = cs.mean_loss(np.stack([x, x**2], axis=1))
    np.testing.assert_allclose(both.mean, [x.mean(), (x**2).mean()])
    assert both.standard_error[0] == pytest.approx(error)


def test_groups_of_one_row_change_nothing_and_copies_add_no_information(rng):
    x = rng.exponential(size=30)
    alone = cs.mean_loss(x)
    labels = np.array([f"patient {i}" for i in range(30)])
    assert cs.mean_loss(x, groups=labels).standard_error == pytest.approx(alone.standard_error)
    twice = cs.mean_loss(np.tile(x, 2), groups=np.tile(labels, 2))
    assert twice.mean == pytest.approx(alone.mean)
    assert twice.standard_error == pytest.approx(alone.standard_error)
    assert cs.mean_loss(np.tile(x, 2)).standard_error < 0.75 * alone.standard_error


def test_a_row_of_weight_zero_is_not_there(rng):
    x = rng.exponential(size=20)
    weight = np.r_[rng.random(20), 0.0]
    with_it = cs.mean_loss(np.r_[x, np.inf], sample_weight=weight)
    without = cs.mean_loss(x, sample_weight=weight[:20])
    assert with_it == pytest.approx(without)
    scaled = cs.mean_loss(x, sample_weight=7 * weight[:20])
    assert scaled == pytest.approx(without)


def test_errors_are_right_by_simulation(rng):
    """Weighted and grouped: the spread of 2,000 means is what the error says."""
    n, size = 60, 4
    group = np.repeat(np.arange(n), size)
    results = []
    for _ in range(2000):
        x = np.repeat(rng.exponential(size=n), size) + rng.normal(size=n * size)
        results.append(cs.mean_loss(x, sample_weight=np.repeat(rng.uniform(0.5, 1.5, n), size), groups=group))
    means, errors = np.array(results).T
    assert means.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.06)


def test_an_infinite_loss_is_not_hidden():
    mean, error = cs.mean_loss(np.array([1.0, np.inf, 2.0]))
    assert mean == np.inf
    assert error == np.inf


@pytest.mark.parametrize(
    ("losses", "more"),
    [([1.0], {}), ([1.0, 2.0], {"groups": ["a", "a"]}), ([1.0, 2.0], {"sample_weight": [0.0, 1.0]})],
)
def test_one_group_has_no_error(losses, more):
    with pytest.raises(InvalidInputError, match=r"at least two groups.*got one.*np.average"):
        cs.mean_loss(np.array(losses), **more)


def test_torch_equals_numpy(rng):
    torch = pytest.importorskip("torch")
    x, weight, group = rng.exponential(size=(12, 2)), rng.random(12), rng.integers(0, 5, 12)
    here = cs.mean_loss(x, weight, group)
    there = cs.mean_loss(torch.tensor(x), torch.tensor(weight), torch.tensor(group))
    np.testing.assert_allclose(there.mean, here.mean)
    np.testing.assert_allclose(there.standard_error, here.standard_error)


@pytest.mark.parametrize(
    ("losses", "more", "message"),
    [
        ([1.0, np.nan], {}, r"free of NaN.*1 subject \(1\)"),
        ([], {}, "at least one subject"),
        ([1.0, 2.0], {"sample_weight": [1.0]}, r"one weight per subject, \(2,\); got \(1,\)"),
        ([1.0, 2.0], {"sample_weight": [1.0, -1.0]}, "sample_weight must be non-negative"),
        ([1.0, 2.0], {"sample_weight": [0.0, 0.0]}, "at least one positive weight"),
        ([1.0, 2.0], {"groups": [1]}, "one label per subject"),
    ],
)
def test_bad_input_is_named(losses, more, message):
    with pytest.raises(InvalidInputError, match=message):
        cs.mean_loss(np.array(losses), **more)


def test_losses_in_single_precision_have_a_mean_without_a_warning():
    assert cs.mean_loss(np.array([1.0, 2.0], dtype=np.float32)).mean == 1.5
