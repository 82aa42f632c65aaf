"""Subjects that follow the distributions of several groups, each stored once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import Array, ArrayLike, as_rows, take_rows, to_numpy
from censcore._validation import as_codes, as_list, check_kind
from censcore.distributions.causes.time_and_cause import TimeAndCause
from censcore.distributions.contract import Form, common_form, forwarded
from censcore.distributions.joint.joint import in_one_library
from censcore.distributions.univariate.step import Step
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError


class Grouped(Univariate):
    """One distribution per subject, taken from those of a few groups: strata, or folds of a cross-validation.

    A distribution that serves a whole group (a Kaplan-Meier curve) is stored once, however large the group.

    Parameters
    ----------
    distributions : list of distributions of one time
        The distribution of each group: one for the whole group, or one per subject of it.
    group : array of int, (n,)
        The group of each subject. Where a group has one distribution per subject, its i-th subject has the
        i-th of them.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions import Grouped
    >>> distribution = Grouped([cs.Exponential(1.0), cs.Weibull(2.0, [3.0, 6.0])], group=[1, 0, 1, 0])
    >>> distribution.icdf(0.5).round(3)
    array([2.498, 0.693, 4.995, 0.693])
    """

    part_names: ClassVar[tuple[str, ...]] = ("_members",)

    def __init__(self, distributions: Sequence[Univariate], group: ArrayLike) -> None:
        self._members = in_one_library(distributions, "Grouped", common=False)
        self.group = as_codes(group, "group")
        self._check()
        self.is_estimate = all(member.is_estimate for member in self._members)
        self._position = np.zeros(len(self.group), dtype=np.intp)
        for number in range(len(self._members)):
            rows = self.group == number
            self._position[rows] = np.arange(rows.sum())

    def _check(self) -> None:
        if self.group.ndim != 1 or not len(self.group):
            raise InvalidInputError(
                f"group must have shape (n,) with n >= 1; got an array of shape {self.group.shape}."
            )
        if self.group.min() < 0 or self.group.max() >= len(self._members):
            raise InvalidInputError(
                f"group must number the {len(self._members)} distributions from 0; got "
                f"{self.group.min()} to {self.group.max()}."
            )
        for number, distribution in enumerate(self._members):
            rows = int((self.group == number).sum())
            if len(distribution) not in (1, rows):
                raise InvalidInputError(
                    f"Group {number} has {rows} subjects, but its distribution has {len(distribution)}."
                )

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether the distribution of every subject has one."""
        return all(F.has_density for _, F in self.groups())

    @property
    def form(self) -> Form:  # type: ignore[override]
        """That of the least simple group."""
        return common_form(F for _, F in self.groups())

    @property
    def only_time(self) -> float | None:
        """The one time at which the probabilities of all groups are known; None where there is none."""
        times = {F.only_time for _, F in self.groups()} - {None}  # curves are known there too
        return times.pop() if len(times) == 1 else None

    def __len__(self) -> int:
        return len(self.group)

    def take(self, rows: ArrayLike | slice) -> Self:
        """The distributions of some subjects (indices, a slice or a mask)."""
        rows = as_rows(rows)
        if len(self) == 1:
            return self
        other = self.replaced(group=take_rows(self.group, rows), _position=take_rows(self._position, rows))
        return other._of_someone()._estimated_like(self, rows)

    def censor_at(self, tau: ArrayLike) -> Univariate:
        """The distribution of min(T, tau); one per group where ``tau`` is the same for all subjects."""
        distribution, end = self._with_end(tau)
        if end.shape[0] > 1:
            return super(Grouped, distribution).censor_at(tau)
        return distribution.replaced(_members=[member.censor_at(tau) for member in distribution._members])

    def thinned(self, jumps: int) -> Self:
        """The same with at most so many jumps for each group whose subjects share a curve of jumps."""
        thinned = [member.thinned(jumps) if isinstance(member, Step) else member for member in self._members]
        return self.replaced(_members=thinned)

    def groups(self) -> list[tuple[np.ndarray, Univariate]]:
        """The subjects of each group that has any, and their distribution: one for all, or one each."""
        groups = ((self._members[i], *places) for i, places in self._group_rows().items())
        return [(rows, F if len(F) == 1 else F.take(position)) for F, rows, position in groups]

    def _group_rows(self) -> dict[int, tuple[np.ndarray, np.ndarray]]:
        """By number of the group that has subjects: their rows, and their places in its distribution."""
        present = {i: np.nonzero(self.group == i)[0] for i in np.unique(self.group).tolist()}
        return {
            i: (rows, self._position[rows] if len(self._members[i]) > 1 else np.zeros(1, dtype=np.intp))
            for i, rows in present.items()
        }

    def _forward(self, name: str, *arrays: Array) -> Array:
        """Each group's formula on its rows of ``arrays`` (1 or n, q), the subjects back in order."""
        xp = self.xp
        parts = []
        groups = self.groups()
        if len(self) == 1:  # one subject's distribution serves all subjects, as it does everywhere
            return getattr(groups[0][1], name)(*arrays)
        for rows, F in groups:
            part = getattr(F, name)(*(x if x.shape[0] == 1 else x[rows] for x in arrays))
            parts.append(xp.broadcast_to(part, (len(rows), *part.shape[1:])))
        return self.in_row_order(parts)

    def in_row_order(self, parts: list[Array]) -> Array:
        """Return what was found for each group, as of the subjects in their order."""
        back = np.argsort(np.concatenate([rows for rows, _ in self.groups()]))
        return self.xp.concat(parts, axis=0)[back]

    sf_at, sf_left_at, cdf_at, logsf_at = forwarded("sf_at", "sf_left_at", "cdf_at", "logsf_at")
    logpdf_at, isf_at, icdf_at, icdf_beyond_at = forwarded("logpdf_at", "isf_at", "icdf_at", "icdf_beyond_at")
    integrated_sf_at, prob_never = forwarded("integrated_sf_at", "prob_never")
    support_end, excludes_at = forwarded("support_end", "excludes_at")

    def breaks(self) -> Array | None:
        """The break points of all groups, so that they need not be repeated for every subject."""
        xp = self.xp
        parts = [breaks for _, F in self.groups() if (breaks := F.breaks()) is not None]
        if not parts:
            return None
        if all(part.shape[0] == 1 for part in parts):
            return xp.sort(xp.concat(parts, axis=1), axis=1)
        return self._side_by_side([F.breaks() for _, F in self.groups()])

    def steps(self) -> tuple[Array, Array]:
        """Jumps per subject; shorter curves repeat their last one."""
        steps = [F.steps() for _, F in self.groups()]
        return self._side_by_side([times for times, _ in steps]), self._side_by_side([sf for _, sf in steps])

    def _side_by_side(self, parts: list[Array | None]) -> Array:
        """Arrays (1 or rows, J) of the groups as one (n, largest J)."""
        xp = self.xp
        empty = xp.zeros_like(self.reference[:1, :1])
        filled = [empty if part is None else part for part in parts]
        width = max(part.shape[1] for part in filled)
        wide = []
        for (rows, _), part in zip(self.groups(), filled, strict=True):
            end = xp.broadcast_to(part[:, -1:], (part.shape[0], width - part.shape[1]))
            wide.append(xp.broadcast_to(xp.concat([part, end], axis=1), (len(rows), width)))
        return self.in_row_order(wide)

    def __repr__(self) -> str:
        kinds = sorted({type(F).__name__ for F in self._members})
        return f"Grouped(shape=({len(self)},), {len(self._members)} distributions: {', '.join(kinds)})"


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

    part_names: ClassVar[tuple[str, ...]] = ("_members",)

    def __init__(self, distributions: Sequence[TimeAndCause], group: ArrayLike) -> None:
        expected = "distributions of time and cause, such as CumulativeIncidence(times, cif)"
        self._members: list[Any] = as_list(distributions, "GroupedCauses", expected)
        if not self._members:
            raise InvalidInputError(f"GroupedCauses: got an empty list, expected {expected}.")
        for member in self._members:
            check_kind(member, "GroupedCauses", TimeAndCause, expected)
        names = {member.names for member in self._members}
        if len(names) > 1:
            told = " and ".join(", ".join(causes) for causes in sorted(names))
            raise InvalidInputError(f"GroupedCauses: got the causes {told}, expected the same in all groups.")
        self._rows = Grouped([member.any_cause() for member in self._members], group)
        self.names = self._members[0].names

    @property
    def only_time(self) -> float | None:
        """The one time at which the incidences of all groups are known; None where there is none."""
        return self._rows.only_time

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, rows: ArrayLike | slice) -> Self:
        """The distributions of some subjects (indices, a slice or a mask)."""
        if len(self) == 1:
            return self
        return self.replaced(_rows=self._rows.take(rows))

    def of_cause(self, number: int) -> Univariate:
        return self._rows.replaced(_members=[member.of_cause(number) for member in self._members])

    def of_any_cause(self) -> Univariate:
        return self._rows.replaced(_members=[member.any_cause() for member in self._members])

    def given_survival(self, a: ArrayLike) -> GroupedCauses:
        """Given T > a, group by group."""
        column, _ = self._alive(a)
        times = np.broadcast_to(to_numpy(column)[:, 0], (len(self),))
        parts = [
            self._members[number].take(position).given_survival(times[rows])
            for number, (rows, position) in self._rows._group_rows().items()
        ]
        return GroupedCauses(parts, np.unique(self._rows.group, return_inverse=True)[1])
