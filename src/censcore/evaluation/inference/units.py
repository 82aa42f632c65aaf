"""Which scored and training subjects depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._kept_values import KeepsValues
from censcore._validation import as_labels

Codes = np.ndarray | None  # numbers of the groups of subjects


@dataclass(frozen=True, eq=False)
class Units(KeepsValues):
    """Scored and training subjects in independent units, whose numbers all parts of a sample share.

    Subjects are one unit if they have a group in common, or if a scored subject is a training subject. The
    units of scored subjects come first, those of training subjects alone after them.
    """

    scored: np.ndarray  #: the unit of each scored subject, (n,)
    trained: np.ndarray  #: the unit of each training subject, (n_train,)
    count: int  #: of all units

    @classmethod
    def of(cls, n: int, n_train: int, groups: Codes, train_groups: Codes, pairs: np.ndarray) -> Units:
        """From codes of groups (equal codes of both samples are the same group) and pairs of subjects."""
        if train_groups is not None and len(train_groups) != n_train:
            train_groups = None  # nothing was estimated from training subjects
        if groups is None and train_groups is None:
            scored, trained = np.arange(n), np.full(n_train, -1)
            trained[pairs[:, 1]] = pairs[:, 0]
            alone = np.nonzero(trained < 0)[0]
            trained[alone] = n + np.arange(len(alone))
            return cls(scored, trained, n + len(alone))
        component = _components(n, n_train, groups, train_groups, pairs)
        own = np.unique(component[:n])
        order = np.concatenate([own, np.setdiff1d(component[n:], own)])
        number = np.empty(int(component.max()) + 1, dtype=np.intp)
        number[order] = np.arange(len(order))
        return cls(number[component[:n]], number[component[n:]], len(order))

    @cached_property
    def count_scored(self) -> int:
        """How many units have scored subjects."""
        return int(self.scored.max(initial=-1)) + 1

    @cached_property
    def overlap(self) -> bool:
        """Whether any unit has scored and training subjects."""
        return bool((self.trained < self.count_scored).any())

    @property
    def groups(self) -> Codes:
        """The unit of each scored subject; None where each is one by itself."""
        return None if self.count_scored == len(self.scored) else self.scored


def sums_within(values: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    """Sums of the entries of each number from 0 to count - 1."""
    if (number[1:] > number[:-1]).all():  # nothing is to be added
        if len(number) == count:
            return values
        apart = np.zeros((count, *values.shape[1:]))
        apart[number] = values
        return apart
    from scipy.sparse import csr_array

    indicator = csr_array((np.ones(len(number)), (number, np.arange(len(number)))), (count, len(number)))
    sums: np.ndarray = indicator @ values.reshape(len(values), -1)
    return sums.reshape(count, *values.shape[1:])


def _components(n: int, n_train: int, groups: Codes, train_groups: Codes, pairs: np.ndarray) -> np.ndarray:
    """The connected component of all scored and training subjects, linked by groups and pairs."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    total = n + n_train
    links = [pairs + np.array([0, n])]
    if groups is not None:
        links.append(np.column_stack([np.arange(n), total + groups]))
    if train_groups is not None:
        links.append(np.column_stack([n + np.arange(n_train), total + train_groups]))
    a, b = np.concatenate(links).T
    size = total + 1 + max(int(codes.max()) for codes in (groups, train_groups) if codes is not None)
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(size, size))
    return connected_components(graph, directed=False)[1][:total]


def common_codes(groups: Any, train_groups: Any, n_train: int) -> np.ndarray | None:
    """Labels of training subjects as numbers; labels that scored subjects have as well count as theirs."""
    if train_groups is None:
        return None
    labels = as_labels(train_groups, n_train, "train: groups", "training subject")
    own = [] if groups is None else np.unique(to_numpy(groups)).tolist()
    number = {label: i for i, label in enumerate(dict.fromkeys([*own, *np.unique(labels).tolist()]))}
    return np.array([number[label] for label in labels.tolist()], dtype=np.intp)
