"""Who is scored, and who the censoring distribution and the reference are fitted to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import as_float, check_entries, is_torch, to_numpy
from censcore._validation import check_instance, check_not_nan, check_same_order
from censcore.estimators.covariates import check_rows, check_weights, count_rows, take_rows
from censcore.estimators.libraries.pipelines import fit_weighted
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import RightCensored, as_outcome


@dataclass(frozen=True, eq=False)
class Sample:
    """Subjects with all that belongs to them.

    Parameters
    ----------
    X : array or frame, (n, p), or None
        Covariates.
    y : outcome
        What happened to n subjects.
    weight : array, (n,), optional
        Sampling weights.
    groups : array, (n,), optional
        Labels of subjects that depend on each other.
    mask : array of bool, (n, k), optional
        False where a subject is not followed for one of several event times, for instance because it has
        happened before. The subject does not count in scores of that time or of joint events, and the time is
        left out of the energy and log score and of the censoring distribution.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> train = cs.Sample(None, y, weight=[1.0, 2.0, 1.0])
    >>> len(train)
    3
    """

    X: Any
    y: Any
    weight: Any = None
    groups: Any = None
    mask: Any = None

    def __post_init__(self) -> None:
        if self.X is not None:
            count_rows(self.X)
        check_instance(self.y, "y")
        check_same_order(**self.parts)
        for name in ("groups", "mask"):
            if (values := getattr(self, name)) is not None:
                check_entries(values, name)
        if self.weight is not None and not isinstance(self.weight, str):  # the name of a column
            check_not_nan(as_float(self.weight, "sample_weight"), "sample_weight")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def parts(self) -> dict[str, Any]:
        """What may have labels of the subjects, by the names of arguments."""
        return {
            "y": self.y,
            "X": self.X,
            "sample_weight": self.weight,
            "groups": self.groups,
            "mask": self.mask,
        }

    def take(self, rows: np.ndarray, y: Any = None) -> Sample:
        """Some of them, with their outcome as it is or another one; copies of a subject are one group."""
        parts = (self.weight, self.groups, self.mask)
        weight, groups, mask = (None if part is None else to_numpy(part)[rows] for part in parts)
        if groups is None and rows.dtype.kind in "iu" and np.bincount(rows).max(initial=0) > 1:
            groups = rows
        return Sample(take_rows(self.X, rows), self.y.take(rows) if y is None else y, weight, groups, mask)

    def fit(self, estimator: Any) -> Any:
        """Fit an estimator to these subjects, with their weights and groups."""
        return fit_weighted(estimator, self.X, self.y, self.weight, self.groups)

    @classmethod
    def of(cls, train: Any) -> Sample:
        """A sample, or a pair (X, y)."""
        if isinstance(train, Sample):
            return train
        if not isinstance(train, tuple | list) or len(train) != 2:
            raise InvalidTypeError(
                f"train: got {type(train).__name__}, expected a pair (X_train, y_train), with None for no "
                "covariates, or Sample(X_train, y_train, weight=, groups=, mask=)."
            )
        return cls(*train)

    @classmethod
    def scored(cls, y: Any, X: Any, weight: Any, groups: Any) -> Sample:
        """The scored subjects: a sample, or an outcome with what else was passed."""
        if not isinstance(y, Sample):
            return cls(X, y, weight, groups)
        twice = {"X": (X, y.X), "sample_weight": (weight, y.weight), "groups": (groups, y.groups)}
        both = [name for name, pair in twice.items() if pair[0] is not None and pair[1] is not None]
        if both:
            raise InvalidInputError(f"{', '.join(both)}: got it twice, also in Sample; expected it once.")
        values = {"X": X, "weight": weight, "groups": groups}
        return replace(y, **{name: value for name, value in values.items() if value is not None})

    def checked(self, outcome: Callable[[Any], Any] = as_outcome) -> Sample:
        """The same with its outcome read, and covariates and weights of as many subjects."""
        y = outcome(self.y)
        check_rows(self.X, len(y))
        weight = None if self.weight is None else check_weights(self.weight, len(y))
        return replace(self, y=y, weight=weight)

    def same_as(self, y: RightCensored) -> bool:
        """Whether these are the very subjects of ``y``, in the same order."""
        if self.y is y:
            return True
        return len(self.y) == len(y) and bool(
            np.array_equal(to_numpy(self.y.time), to_numpy(y.time))
            and np.array_equal(to_numpy(self.y.event), to_numpy(y.event))
            and np.array_equal(_entries(self.y), _entries(y))
        )


def _entries(y: RightCensored) -> np.ndarray:
    return np.zeros(1) if not y.has_delayed_entry else to_numpy(y.entry)


def in_numpy(y: Any) -> Any:
    """An outcome, or a distribution, as arrays of NumPy."""
    return y.like(np.zeros(1)) if is_torch(y.reference) else y
