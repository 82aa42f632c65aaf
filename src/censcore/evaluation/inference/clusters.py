"""Which scored and training subjects depend on each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import InvalidInputError

Codes = np.ndarray | None  # numbers of the groups of subjects


@dataclass(frozen=True, eq=False)
class Clusters:
    """Scored and training subjects in independent clusters.

    Subjects are in one cluster if they have a group in common, or if a scored subject is a training subject.
    """

    n: int  #: number of scored subjects
    scored: np.ndarray | None  #: the cluster of each of them, from 0; None where each is one by itself
    carrier: np.ndarray  #: for each training subject a scored subject of its cluster, -1 where there is none
    apart: np.ndarray  #: number of the cluster among those without scored subjects, -1 where it has one

    @classmethod
    def of(cls, n: int, n_train: int, groups: Codes, train_groups: Codes, pairs: np.ndarray) -> Clusters:
        """From codes of groups (equal codes of both samples are the same group) and pairs of subjects."""
        if train_groups is not None and len(train_groups) != n_train:
            train_groups = None  # nothing was estimated from training subjects
        carrier = np.full(n_train, -1)
        carrier[pairs[:, 1]] = pairs[:, 0]
        scored = groups
        if groups is not None or train_groups is not None:
            cluster = _components(n, n_train, groups, train_groups, pairs)
            _, first, scored = np.unique(cluster[:n], return_index=True, return_inverse=True)
            of_train = cluster[n:]
            if n_train:
                order = np.argsort(cluster[first])
                at = np.minimum(np.searchsorted(cluster[first][order], of_train), len(first) - 1)
                there = cluster[first][order][at] == of_train
                carrier = np.where(there, first[order][at], -1)
        else:
            of_train = np.arange(n_train)
        apart = np.full(n_train, -1)
        alone = carrier < 0
        if alone.any():
            apart[alone] = np.unique(of_train[alone], return_inverse=True)[1].reshape(-1)
        return cls(n, scored, carrier, apart)

    @cached_property
    def _all_apart(self) -> bool:
        """Whether every training subject is a cluster by itself, in order."""
        return np.array_equal(self.apart, np.arange(len(self.apart)))

    @cached_property
    def _each_scored(self) -> bool:
        """Whether the training subjects are the scored subjects, in order."""
        return np.array_equal(self.carrier, np.arange(self.n))

    @property
    def overlap(self) -> bool:
        """Whether any cluster has scored and training subjects."""
        return bool((self.carrier >= 0).any())

    def representatives(self, used: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A scored subject for each entry of an influence, and a training subject for each of the others.

        ``used`` are the scored subjects with a weight. These are the entries of
        :func:`~censcore.evaluation.inference.mean_losses.mean_with_influence`, in its order.
        """
        if self.scored is None:
            scored = np.nonzero(used)[0]
        else:
            number, first = np.unique(self.scored, return_index=True)
            scored = first[np.isin(number, self.scored[used])]
        alone = np.nonzero(self.apart >= 0)[0]
        return scored, alone[np.unique(self.apart[alone], return_index=True)[1]]

    def split(self, xi: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Sums of xi (n_train, q) within clusters: at one scored subject of each, and for all others."""
        if self._all_apart:
            return None, xi
        if self._each_scored:
            return xi, xi[:0]
        apart = sums_within(xi, self.apart, int(self.apart.max(initial=-1)) + 1)
        if not self.overlap:
            return None, apart
        return sums_within(xi, self.carrier, self.n), apart


def sums_within(values: np.ndarray, number: np.ndarray, count: int) -> np.ndarray:
    """Sums of the entries of each number from 0 to count - 1; those with a negative number are left out."""
    from scipy.sparse import csr_array

    used = np.nonzero(number >= 0)[0]
    indicator = csr_array((np.ones(len(used)), (number[used], used)), shape=(count, len(number)))
    return indicator @ values


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
    labels = to_numpy(train_groups)
    if not n_train:
        raise InvalidInputError("train: got groups without training subjects. Pass train=(X, y) too.")
    if labels.shape != (n_train,):
        raise InvalidInputError(
            f"train: groups must have one label per training subject, ({n_train},); got {labels.shape}."
        )
    number: dict[Any, int] = {}
    for sample in (groups, labels):
        for label in np.unique(to_numpy(sample)).tolist() if sample is not None else []:
            number.setdefault(label, len(number))
    return np.array([number[label] for label in labels.tolist()], dtype=np.intp)
