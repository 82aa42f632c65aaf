"""Subjects that follow the distributions of time and cause of several groups, each stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import as_list
from censcore.distributions.competing_risks import TimeAndCause
from censcore.distributions.grouped import Grouped
from censcore.distributions.univariate import Univariate
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["GroupedCauses"]


class GroupedCauses(TimeAndCause):
    """One distribution of time and cause per subject, taken from those of a few groups, such as folds.

    Parameters
    ----------
    distributions : list of distributions of time and cause
        The distribution of each group: one for the whole group, or one per subject of it; all of the same
        causes.
    group : array of int, (n,)
        The group of each subject. Where a group has one distribution per subject, its i-th subject has the
        i-th of them.

    See Also
    --------
    Grouped : The same for one event time.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions import GroupedCauses
    >>> early, late = (cs.CumulativeIncidence([t], [[[0.3], [0.5]]]) for t in (1.0, 2.0))
    >>> GroupedCauses([early, late], group=[1, 0, 1]).cif(1.5)
    array([[0. , 0. ],
           [0.3, 0.5],
           [0. , 0. ]])
    """

    _distributions: ClassVar[tuple[str, ...]] = ("_members",)

    def __init__(self, distributions: Sequence[TimeAndCause], group: Any) -> None:
        expected = "distributions of time and cause, such as CumulativeIncidence(times, cif)"
        self._members: list[Any] = as_list(distributions, "GroupedCauses", expected)
        if not self._members:
            raise InvalidInputError(f"GroupedCauses: got an empty list, expected {expected}.")
        for member in self._members:
            if not isinstance(member, TimeAndCause):
                raise InvalidTypeError(
                    f"GroupedCauses: got {type(member).__name__}, expected distributions of time and cause, "
                    "such as CumulativeIncidence(times, cif)."
                )
        names = {member.names for member in self._members}
        if len(names) > 1:
            told = " and ".join(", ".join(causes) for causes in sorted(names))
            raise InvalidInputError(f"GroupedCauses: got the causes {told}, expected the same in all groups.")
        self._rows = Grouped([member.any_cause() for member in self._members], group)
        self._name(self._members[0].names)

    @property
    def n_causes(self) -> int:
        """The number m of causes."""
        return int(self._members[0].n_causes)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether the distribution of every subject has one."""
        return all(member.has_density for member in self._members)

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, rows: Any) -> Self:
        """The distributions of some subjects (indices, a slice or a mask)."""
        if len(self) == 1:
            return self
        other = self._map(lambda array: array)
        other._rows = self._rows.take(rows)
        return other

    def _grouped(self, parts: list[Univariate]) -> Grouped:
        """The parts of the groups, for the subjects in their order."""
        other = self._rows._map(lambda array: array)
        other._members = parts
        return other

    def _of_cause(self, number: int) -> Univariate:
        return self._grouped([member._of_cause(number) for member in self._members])

    def _of_any_cause(self) -> Univariate:
        return self._grouped([member.any_cause() for member in self._members])

    def given_survival(self, a: Array) -> GroupedCauses:
        """Given T > a, group by group."""
        column, _ = self._alive(a)
        times = np.broadcast_to(to_numpy(column)[:, 0], (len(self),))
        groups = self._rows._group_rows()
        parts = [
            self._members[number].take(position).given_survival(times[rows])
            for number, (rows, position) in groups.items()
        ]
        group = np.zeros(len(self), dtype=np.intp)
        for place, (rows, _) in enumerate(groups.values()):
            group[rows] = place
        return GroupedCauses(parts, group)
