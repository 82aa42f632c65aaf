"""Folds of a cross-validation, and all models fitted in them, in parallel where asked for, and kept."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from censcore._arrays import is_torch, to_numpy
from censcore._validation import name_subjects, shown
from censcore.distributions import Distribution, Grouped, GroupedCauses, Independent, TimeAndCause
from censcore.distributions.univariate.univariate import Univariate
from censcore.estimators.libraries.pipelines import ignores_groups
from censcore.evaluation.decisions.forecasts import forecast_fold, model_and_covariates
from censcore.evaluation.parts.fold_store import data_key, load_forecast, model_key, save_value
from censcore.evaluation.sample import Sample
from censcore.exceptions import FoldError, InvalidInputError, InvalidTypeError
from censcore.files import as_path
from censcore.processes import in_processes
from censcore.progress import ProgressBar
from censcore.store import path_of

if TYPE_CHECKING:
    from censcore.evaluation.cross_validate import Folds
    from censcore.evaluation.kinds import Kind

Key = tuple[str, int]
"""Model, and number of the split."""


@dataclass(frozen=True, eq=False)
class FoldRuns:
    """Forecasts of the test subjects by model and split, and how long each took."""

    splits: list[Split]
    models: list[str]
    forecasts: dict[Key, Distribution]
    seconds: dict[Key, float]
    notes: list[str] = field(default_factory=list)

    def of(self, model: str, numbers: list[int]) -> list[tuple[np.ndarray, Distribution]]:
        """Test subjects and forecasts of a model in some of the splits."""
        return [(self.splits[i].test, self.forecasts[model, i]) for i in numbers]


class _Task(NamedTuple):
    """One model in one fold."""

    name: str
    number: int
    model: Any
    split: Split
    path: Path | None

    def run(self, kind: Kind, subjects: Sample) -> tuple[_Task, Distribution | Exception, float, bool]:
        """The forecast, of the store if it has it, or what went wrong; seconds; whether it is kept."""
        stored = None if self.path is None else load_forecast(self.path)
        if stored is not None:
            return self, stored[0], float(stored[1]["seconds"]), True
        start = perf_counter()
        try:
            forecast = forecast_fold(kind, self.model, subjects, self.split.train, self.split.test)
        except Exception as error:
            return self, error, perf_counter() - start, True
        seconds = perf_counter() - start
        about = {"model": self.name, "repeat": self.split.repeat, "fold": self.split.fold, "seconds": seconds}
        return self, forecast, seconds, self.path is None or save_value(self.path, (forecast, about))


def run_folds(
    kind: Kind,
    models: Mapping[str, Any],
    subjects: Sample,
    splits: list[Split],
    folds: Folds,
    progress: bool | None = None,
) -> FoldRuns:
    """Fit every model in every fold, but for those that the store has already."""
    tasks, runs = _tasks(models, subjects, splits, folds.store), FoldRuns(splits, list(models), {}, {})
    failures, unstored = dict[str, str](), set[str]()
    with ProgressBar("fitting", len(tasks), show=progress) as bar:
        for (name, number, _, split, _), result, seconds, stored in _results(
            tasks, kind, subjects, folds.n_jobs
        ):
            bar.advance(f"{name}, {split.name}")
            if isinstance(result, Exception):
                where = f"failed in {split.name}, on {len(split.train)} training subjects"
                failed = f"Model {name!r} {where}: {type(result).__name__}: {result}"
                if folds.on_error == "raise":
                    hint = "cv=Folds(5, on_error='skip') compares the others; store= keeps what is finished."
                    raise FoldError(f"{failed} ({hint})") from result
                failures.setdefault(name, failed)
                continue
            runs.forecasts[name, number], runs.seconds[name, number] = result, seconds
            if not stored:
                unstored.add(f"{name} ({type(result).__name__})")
    runs.models[:] = [name for name in runs.models if name not in failures]
    runs.notes.extend(f"{text} The model is left out." for text in failures.values())
    if unstored:
        runs.notes.append(
            f"store: forecasts of {', '.join(sorted(unstored))} are not made of arrays alone, and are not "
            "kept; the model is fitted again in the next run."
        )
    return runs


def _tasks(models: Mapping[str, Any], subjects: Sample, splits: list[Split], store: Any) -> list[_Task]:
    """All models of a fold, then the next fold: so the first failure shows early."""
    tasks = [_Task(name, i, model, s, None) for i, s in enumerate(splits) for name, model in models.items()]
    if store is None:
        return tasks
    data, folder = data_key(subjects), as_path(store, "store")
    keys = {name: model_key(name, model, subjects.y) for name, model in models.items()}
    folds = [(split.train.tobytes(), split.test.tobytes()) for split in splits]
    return [task._replace(path=path_of(folder, data, keys[task.name], *folds[task.number])) for task in tasks]


def _results(tasks: Iterable[_Task], kind: Kind, subjects: Sample, n_jobs: int | None) -> Iterator[Any]:
    if n_jobs in (None, 1):
        return (task.run(kind, subjects) for task in tasks)
    return in_processes((partial(task.run, kind, subjects) for task in tasks), n_jobs, ordered=False)


# ---- distributions of all folds --------------------------------------------------------------------


def out_of_fold(parts: list[tuple[np.ndarray, Distribution]], tested: np.ndarray) -> Distribution:
    """One distribution per tested subject, from those of the test subjects of every fold."""
    group = np.zeros(len(tested), dtype=np.intp)
    for number, (test, _) in enumerate(parts):
        group[np.searchsorted(tested, test)] = number
    members = [distribution for _, distribution in parts]
    univariate = [D for D in members if isinstance(D, Univariate) and D.k == 1]
    if len(univariate) == len(members):
        return Grouped(univariate, group)
    causes = [D for D in members if isinstance(D, TimeAndCause)]
    if len(causes) == len(members):
        return GroupedCauses(causes, group)
    k = members[0].k
    if all(isinstance(D, Independent) for D in members):
        return Independent([Grouped([D.marginal(j) for D in members], group) for j in range(k)])
    order = np.argsort(np.concatenate([test for test, _ in parts]))
    return _joined([(len(test), D) for test, D in parts]).take(order)


def _joined(parts: list[tuple[int, Distribution]]) -> Distribution:
    """Joint distributions of one kind as one, one after the other."""
    first = parts[0][1]
    shapes = {tuple(getattr(D, name).shape[1:] for name in D.array_names) for _, D in parts}
    if len({type(D) for _, D in parts}) > 1 or len(shapes) > 1:
        kinds = sorted({repr(D) for _, D in parts})
        raise InvalidTypeError(
            f"Joint forecasts of different folds must be of one kind and size; got {', '.join(kinds)}."
        )
    columns = zip(*([(n, part) for part in D.parts()] for n, D in parts), strict=True)
    joined = first.rebuilt(lambda array: array, lambda _: _combined(list(next(columns))))
    for name in first.array_names:
        arrays = [(n, getattr(D, name)) for n, D in parts]
        wide = [np.broadcast_to(array, (n, *array.shape[1:])) for n, array in arrays]
        setattr(joined, name, np.concatenate(wide))
    return joined


def _combined(parts: list[tuple[int, Distribution]]) -> Distribution:
    ends = np.cumsum([n for n, _ in parts])
    rows = np.split(np.arange(ends[-1]), ends[:-1])
    return out_of_fold([(where, D) for where, (_, D) in zip(rows, parts, strict=True)], np.arange(ends[-1]))


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
        whole = numbers.dtype.kind == "f" and (numbers == np.round(numbers)).all()  # R's, or none at all
        subjects = np.unique(everyone[numbers.astype(np.intp) if whole else numbers])
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


def notes_on_searches(models: Mapping[str, Any]) -> list[str]:
    """Searches over parameters whose own folds put subjects of one group on both sides."""
    names = [name for name, model in models.items() if ignores_groups(model_and_covariates(model, None)[0])]
    return [
        f"The search of {name!r} puts subjects of one group (copies of a subject, in bootstrap samples) into "
        "its training and validation sets, and prefers models that remember subjects. Pass it "
        "cv=GroupKFold(5), which receives the groups."
        for name in names
    ]
