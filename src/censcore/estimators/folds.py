"""Subjects that are held out while an estimator is fitted to the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from censcore._validation import as_seed
from censcore.estimators.covariates import scikit_learn_errors

FOLDS = 5

#: Training and held-out subjects.
Fold = tuple[np.ndarray, np.ndarray]


def seed_of(random_state: Any) -> int:
    """An integer seed: the given one, or drawn from a generator."""
    if isinstance(random_state, int | float | np.integer):
        return as_seed(random_state)
    from sklearn.utils import check_random_state

    with scikit_learn_errors():
        return int(check_random_state(random_state).randint(2**31 - 1))


def held_out_folds(units: np.ndarray, count: int, seed: int) -> list[Fold]:
    """Folds that hold out every subject once; subjects of one unit stay together.

    >>> [held.tolist() for _, held in held_out_folds(np.array([0, 0, 1, 2]), 3, 0)]
    [[3], [0, 1], [2]]
    """
    number = np.unique(units, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(number.max() + 1)
    inside = [np.isin(number, part) for part in np.array_split(order, count)]
    return [(np.flatnonzero(~held), np.flatnonzero(held)) for held in inside]


def completed_folds(units: np.ndarray, folds: Sequence[Fold], seed: int) -> list[Fold]:
    """The folds, and further ones for the units that these do not hold out, five in all.

    >>> folds = [(np.arange(4), np.array([4]))]
    >>> [held.tolist() for _, held in completed_folds(np.arange(5), folds, 0)]
    [[4], [2], [0], [1], [3]]
    """
    everyone = np.arange(len(units))
    rest = np.setdiff1d(everyone, np.concatenate([np.empty(0), *(held for _, held in folds)]))
    if not len(rest):
        return list(folds)
    count = min(len(np.unique(units[rest])), max(1, FOLDS - len(folds)))
    parts = [rest[held] for _, held in held_out_folds(units[rest], count, seed)]
    return [*folds, *((np.setdiff1d(everyone, held), held) for held in parts)]
