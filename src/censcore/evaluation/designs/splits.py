"""Folds of a cross-validation: who is fitted to, who is scored, in which repeat."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import is_torch, to_numpy
from censcore._validation import name_subjects, shown
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["Split", "make_splits", "notes_on_splits"]


@dataclass(frozen=True, eq=False)
class Split:
    """One fold of one repeat: the training and the test subjects, ascending."""

    repeat: int
    fold: int
    train: np.ndarray
    test: np.ndarray

    @property
    def name(self) -> str:
        """For messages, counted from one."""
        return f"fold {self.fold + 1}" + (f" of repeat {self.repeat + 1}" if self.repeat else "")


def make_splits(
    cv: Any, X: Any, event: np.ndarray, groups: Any = None, repeats: int = 1, seed: int = 0
) -> list[Split]:
    """The folds, in repeats within which no subject is tested twice; ``cv`` is that of :class:`Folds`.

    A number of folds is drawn ``repeats`` times, with equal shares of ``event`` (whether there was one, or of
    which cause), or with ``groups`` kept together; splitters may look at the covariates X.
    """
    n = len(event)
    cv, repeats = (_whole(number) for number in (cv, repeats))
    if not (isinstance(cv, int | np.integer) or hasattr(cv, "split") or _is_listed(cv)) or (
        isinstance(cv, bool | str | bytes) or is_torch(cv)
    ):
        raise InvalidTypeError(
            f"cv: got {shown(cv)}, expected a number of folds, a scikit-learn splitter, or a list of pairs "
            "(train, test) of subject numbers."
        )
    if not isinstance(repeats, int | np.integer) or repeats < 1:
        raise InvalidInputError(
            f"repeats: got {repeats!r}, expected how often the folds are drawn, at least 1."
        )
    if isinstance(cv, int | np.integer):
        pairs = _drawn(int(cv), np.asarray(event), groups, int(repeats), seed)
    elif repeats != 1:
        raise InvalidInputError(
            f"repeats: got {repeats} together with {type(cv).__name__}, expected cv as a number of folds. A "
            "splitter repeats itself: RepeatedKFold(n_splits=5, n_repeats=10)."
        )
    elif hasattr(cv, "split"):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            pairs = list(cv.split(np.zeros((n, 1)) if X is None else X, event, groups))
    else:
        pairs = list(cv)
    return _in_repeats(pairs, n)


def _whole(number: Any) -> Any:
    """5.0, as other languages write a count, as 5; anything else as it is."""
    return int(number) if isinstance(number, float | np.floating) and number % 1 == 0 else number


def _is_listed(value: Any) -> bool:
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def _drawn(
    k: int, event: np.ndarray, groups: np.ndarray | None, repeats: int, seed: int
) -> list[tuple[Any, Any]]:
    """Shuffled folds: by groups, with equal shares of events (of each cause), or plain if these are few."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

    n = len(event) if groups is None else int(groups.max()) + 1
    if not 2 <= k <= n:
        what = "subjects" if groups is None else "groups"
        raise InvalidInputError(f"cv: got {k} folds, expected between 2 and the {n} {what}.")
    strata = np.bincount(event.astype(int), minlength=2)
    if strata[strata > 0].min() < k:  # a rare cause: events of any cause
        event = event > 0
        strata = np.bincount(event.astype(int), minlength=2)
    kind: Any = StratifiedKFold if strata[strata > 0].min() >= k else KFold
    kind = kind if groups is None else GroupKFold
    pairs: list[tuple[Any, Any]] = []
    for repeat in range(repeats):
        splitter = kind(k, shuffle=True, random_state=(seed + repeat) % 2**32)
        pairs += splitter.split(np.zeros((len(event), 1)), event, groups)
    return pairs


def _in_repeats(pairs: list[Any], n: int) -> list[Split]:
    """Each pair goes to the first repeat in which none of its test subjects is tested yet."""
    everyone = np.arange(n)
    splits: list[Split] = []
    tested: list[np.ndarray] = []
    for number, pair in enumerate(pairs):
        if not _is_listed(pair) or len(both := list(pair)) != 2:
            raise InvalidTypeError(
                f"cv: got {type(pair).__name__} for fold {number + 1}, expected a pair (train, test) of "
                "subject numbers."
            )
        train, test = (_ascending(everyone, part, number) for part in both)
        if np.intersect1d(train, test).size:
            raise InvalidInputError(
                f"cv: the training and test subjects of fold {number + 1} overlap "
                f"({name_subjects(np.intersect1d(train, test))}); expected disjoint sets."
            )
        repeat = next((r for r, before in enumerate(tested) if not before[test].any()), len(tested))
        if repeat == len(tested):
            tested.append(np.zeros(n, dtype=bool))
        tested[repeat][test] = True
        splits.append(Split(repeat, sum(split.repeat == repeat for split in splits), train, test))
    if not splits:
        raise InvalidInputError("cv: got no folds, expected at least one pair (train, test).")
    _check_even(np.stack(tested))
    return splits


def _ascending(everyone: np.ndarray, part: Any, number: int) -> np.ndarray:
    try:
        numbers = to_numpy(part)
        subjects = np.unique(everyone[numbers if len(numbers) else numbers.astype(np.intp)])
    except (IndexError, TypeError) as error:
        raise InvalidInputError(
            f"cv: fold {number + 1} must be a pair of subject numbers from 0 to {len(everyone) - 1}; {error}."
        ) from error
    if not len(subjects):
        raise InvalidInputError(f"cv: fold {number + 1} has no subjects on one side; expected some on both.")
    return subjects


def _check_even(tested: np.ndarray) -> None:
    """Check that every subject that is tested at all is tested once per repeat."""
    count = tested.sum(axis=0)
    uneven = np.nonzero((count > 0) & (count < len(tested)))[0]
    if uneven.size:
        raise InvalidInputError(
            f"cv: the test sets hold some subjects {count[count > 0].min()} times and others {count.max()} "
            f"times ({name_subjects(uneven)} are among the former); expected each tested subject equally "
            "often, so that the mean is one over subjects. Use RepeatedKFold or RepeatedStratifiedKFold in "
            "place of ShuffleSplit, or cv=5 with repeats=."
        )


def notes_on_splits(splits: list[Split], n: int, groups: np.ndarray | None) -> list[str]:
    """What a reader should know of the folds: subjects that are never tested, groups that are torn apart."""
    notes = []
    tested = np.unique(np.concatenate([split.test for split in splits]))
    if len(tested) < n:
        notes.append(
            f"cv tests {len(tested)} of {n} subjects; the other {n - len(tested)} serve for training only, "
            "and the means are those of the tested subjects."
        )
    if groups is not None and any(np.intersect1d(groups[s.train], groups[s.test]).size for s in splits):
        notes.append(
            "cv puts subjects of one group into training and test sets: the forecasts may know the test "
            "subjects, and look better than for new groups. Use cv=5, GroupKFold or LeaveOneGroupOut."
        )
    return notes
