"""Minibatches: every row once, groups apart, reproducible."""

import numpy as np
import pytest

from censcore.exceptions import InvalidInputError
from censcore.learning.training.minibatches import Batches


def test_every_row_is_visited_once_an_epoch():
    visited = np.concatenate(list(Batches(1003, 64).epoch(seed=1, epoch=0)))
    assert sorted(visited) == list(range(1003))


def test_no_group_meets_itself_in_a_batch(rng):
    groups = rng.integers(0, 120, size=2000)
    batches = list(Batches(2000, 50, groups).epoch(seed=3, epoch=2))
    assert sorted(np.concatenate(batches)) == list(range(2000))
    assert all(len(set(groups[b])) == len(b) for b in batches)


def test_a_group_larger_than_the_number_of_batches_gets_more_batches():
    groups = np.repeat([0, 1], [30, 10])
    batches = Batches(40, 20, groups)
    assert len(batches) == 30
    assert all(len(set(groups[b])) == len(b) for b in batches.epoch(0, 0))


def test_epochs_differ_and_repeat():
    batches = Batches(100, 10)
    first, again, other = (np.concatenate(list(batches.epoch(5, e))) for e in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).any()


def test_groups_of_another_length_are_refused():
    with pytest.raises(InvalidInputError, match="one per subject"):
        Batches(10, 5, np.zeros(9))
