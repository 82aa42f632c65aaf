"""What all outcomes share: choosing subjects, joining them, and moving to torch or a device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    as_float,
    as_rows,
    convert,
    like_moved,
    namespace,
    take_rows,
    to_numpy,
)
from censcore._validation import as_list, check_kind, name_subjects, no_array
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.plain_text import html_table


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Outcome:
    """Subjects and what was seen of them. A DataLoader of torch collates outcomes.

    A subclass is a frozen dataclass, whose ``__init__`` checks and sets its fields. It has ``part_names``:
    arrays, or other outcomes, with an entry for every subject, or with a single one that serves all; None
    where something is not known.

    >>> import torch, censcore as cs
    >>> y = cs.RightCensored([2.0, 5.0, 3.5], [1, 0, 1])
    >>> next(iter(torch.utils.data.DataLoader(y, batch_size=2)))
    RightCensored(n=2, events=1 (50.0 %), time 2 to 5)
    """

    part_names: ClassVar[tuple[str, ...]]

    #: Labels of the subjects, from the index of the columns that the outcome was made of; None without.
    row_labels: Any = field(default=None, kw_only=True)

    @property
    def reference(self) -> Array:
        """One of the arrays of times, which has the common shape, dtype and device."""
        return self.time  # type: ignore[attr-defined]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,), or (n, k) for several event times."""
        return tuple(self.reference.shape)

    @property
    def has_delayed_entry(self) -> bool:
        """Whether any subject entered after time zero."""
        entry = self.entry  # type: ignore[attr-defined]
        return entry is not None and bool((entry > 0).any())

    def require_no_entry(self, name: str) -> Self:
        """The outcome itself, or an error which says that ``name`` cannot take delayed entry into account."""
        if self.has_delayed_entry:
            late = np.nonzero(to_numpy(self.entry) > 0)[0]  # type: ignore[attr-defined]
            raise UnsupportedOutcomeError(
                f"{name} does not take delayed entry (left truncation) into account, and ignoring it is "
                f"biased; got entry > 0 in {name_subjects(late)}. Proper scores, compare(), KaplanMeier, "
                "CoxRegression and WeibullRegression do; or restrict the data to subjects with entry = 0."
            )
        return self

    __array__ = no_array

    def __len__(self) -> int:
        return int(self.reference.shape[0])

    def _repr_html_(self) -> str:
        """The counts, and what was seen of the first subjects."""
        first = self.take(slice(0, 5))
        values = {name: getattr(first, name) for name in self.part_names if getattr(first, name) is not None}
        known = {name: to_numpy(v) for name, v in values.items() if not isinstance(v, Outcome)}
        known = {name: v for name, v in known.items() if len(v) == len(first)}
        rows = [[str(v[i]) for v in known.values()] for i in range(len(first))]
        return html_table(repr(self), [name.strip("_").replace("_", " ") for name in known], rows)

    def __getitem__(self, rows: Any) -> Self:
        _register_collate()
        return self.take(rows)

    def take(self, rows: ArrayLike | slice) -> Self:
        """The outcome of some subjects (indices, a slice or a boolean mask), in the order asked for."""
        rows, n = rows if type(rows) is slice else as_rows(rows), self.reference.shape[0]
        chosen: dict[str, Any] = {}
        for name in self.part_names:
            part = getattr(self, name)
            if isinstance(part, Outcome):
                chosen[name] = part.take(rows)
            elif part is not None and part.shape[0] == n:
                chosen[name] = taken = part[rows] if type(rows) is slice else take_rows(part, rows)
                if not taken.shape[0]:
                    raise InvalidInputError("An outcome needs at least one subject; none was chosen.")
        if self.row_labels is not None:
            chosen["row_labels"] = self.row_labels[rows if type(rows) is slice else to_numpy(rows)]
        return self._changed(**chosen)

    def like(self, array: ArrayLike) -> Self:
        """The same outcome in the library, on the device and in the dtype of ``array``."""
        model = as_float(array, "array")
        return self._each(
            lambda part: part.like(model) if isinstance(part, Outcome) else convert(part, model)
        )

    def _each(self, change: Callable[[Any], Any]) -> Self:
        """A copy with ``change`` applied to every part."""
        parts = {name: getattr(self, name) for name in self.part_names}
        return self._changed(**{k: None if part is None else change(part) for k, part in parts.items()})

    def _set(self, values: Mapping[str, Any]) -> None:
        """Set the fields, once; a field without a value is None."""
        kind: Any = type(self)
        for name in _names(kind):
            object.__setattr__(self, name, values.get(name))

    @classmethod
    def _made(cls, outcome: Outcome, **values: Any) -> Self:
        """An outcome of this class from the fields of a valid one and others, which are not checked again."""
        other = object.__new__(cls)
        other._set(vars(outcome) | values)
        return other

    def _changed(self, **values: Any) -> Self:
        """A copy with other values in some fields; they are known to be right and not checked again."""
        other = object.__new__(type(self))
        for name, value in (vars(self) | values).items():
            object.__setattr__(other, name, value)
        return other

    def with_entry(self, entry: Array) -> Self:
        """The outcome with entries that are known to be right; one that equals the time has no effect."""
        return self._changed(entry=entry)

    def with_event(self, event: Array) -> Self:
        """The outcome with events that are known to be right."""
        return self._changed(event=event)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same outcome as tensors on another device or in another dtype, as ``Distribution.to``.

        An outcome in NumPy becomes one in torch.

        >>> import torch, censcore as cs
        >>> cs.RightCensored([2.0, 5.0], [1, 0]).to(torch.float32).time
        tensor([2., 5.])
        """
        moved: Self = self.like(like_moved(self.reference, *args, **kwargs))
        return moved

    @classmethod
    def concat(cls, outcomes: Sequence[Self]) -> Self:
        """The subjects of several outcomes of one kind, in their order.

        They are in one array library and on one device. What is known of some only (censoring times, entries)
        is an error.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.RightCensored([2.0, 5.0, 3.5], [1, 0, 1])
        >>> cs.RightCensored.concat([y[2], y[:2]]).time
        array([3.5, 2. , 5. ])
        """
        outcomes = as_list(outcomes, "concat", "outcomes")
        if not outcomes:
            raise InvalidInputError("concat needs at least one outcome; got an empty list.")
        for other in outcomes:
            check_kind(other, "concat", cls, f"a {cls.__name__}")
        first = outcomes[0]
        if any(type(other) is not type(first) for other in outcomes):
            kinds = sorted({type(other).__name__ for other in outcomes})
            raise InvalidTypeError(f"concat joins outcomes of one kind; got {', '.join(kinds)}.")
        kind: Any = type(first)
        for name in {*_names(kind)} - {*first.part_names, "row_labels"}:
            if any(getattr(other, name) != getattr(first, name) for other in outcomes):
                raise _different(name)
        joined = {name: _join(name, outcomes) for name in first.part_names}
        return first._changed(row_labels=None, **joined)


@cache
def _names(kind: type[Outcome]) -> tuple[str, ...]:
    """The names of the fields."""
    return tuple(part.name for part in fields(kind))


def _join(name: str, outcomes: Sequence[Outcome]) -> Any:
    """A part of several outcomes, one after the other."""
    parts = [getattr(other, name) for other in outcomes]
    if all(part is None for part in parts):
        return None
    if any(part is None or part.shape[1:] != parts[0].shape[1:] for part in parts):
        raise _different(name)
    if isinstance(parts[0], Outcome):
        return type(parts[0]).concat(parts)
    xp = namespace(parts[0])
    of_each = [
        xp.broadcast_to(part, (len(other), *part.shape[1:]))
        for part, other in zip(parts, outcomes, strict=True)
    ]
    return xp.concat(of_each, axis=0)


def _different(name: str) -> InvalidInputError:
    return InvalidInputError(f"concat: {name} is not the same kind of thing in all outcomes.")


def _register_collate() -> None:
    """Tell torch's ``default_collate`` how outcomes join, once torch is there; without effect before."""
    module = sys.modules.get("torch.utils.data._utils.collate")
    if module is not None:
        module.default_collate_fn_map.setdefault(Outcome, _collate)


def _collate(batch: list[Any], *, collate_fn_map: Any = None) -> Any:
    """The outcomes of a batch as one, in torch like everything else that ``default_collate`` returns."""
    return type(batch[0]).concat(batch).to()
