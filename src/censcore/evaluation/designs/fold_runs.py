"""All models in all folds: fitted once each, in parallel where asked for, and kept when finished."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.distributions import Distribution, Grouped, GroupedCauses, Independent, TimeAndCause
from censcore.distributions.univariate import Univariate
from censcore.evaluation.designs.fold_store import (
    data_key,
    fold_path,
    load_forecast,
    model_key,
    save_forecast,
)
from censcore.evaluation.designs.splits import Split
from censcore.evaluation.plan.model_fits import forecast_fold
from censcore.evaluation.sample import Sample
from censcore.exceptions import FoldError, InvalidTypeError
from censcore.progress import ProgressBar

if TYPE_CHECKING:
    from censcore.evaluation.cross_validate import Folds
    from censcore.evaluation.kinds import Kind

__all__ = ["FoldRuns", "out_of_fold", "run_folds"]

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


@dataclass(frozen=True, eq=False)
class _Task:
    """One model in one fold."""

    name: str
    number: int
    model: Any
    split: Split
    path: Path | None

    def run(self, kind: Kind, subjects: Sample) -> tuple[_Task, Distribution | Exception, float, bool]:
        """The forecast or what went wrong, the seconds, and whether it could be kept."""
        start = perf_counter()
        try:
            found = forecast_fold(kind, self.model, subjects, self.split.train, self.split.test)
        except Exception as error:
            return self, error, perf_counter() - start, True
        seconds, kept = perf_counter() - start, True
        if self.path is not None:
            about = {"model": self.name, "repeat": self.split.repeat, "fold": self.split.fold}
            kept = save_forecast(self.path, found, {**about, "seconds": seconds})
        return self, found, seconds, kept

    def failed(self, error: Exception) -> str:
        """What went wrong, where."""
        where = (
            f"Model {self.name!r} failed in {self.split.name}, on {len(self.split.train)} training subjects"
        )
        return f"{where}: {type(error).__name__}: {error}"


def run_folds(
    kind: Kind,
    models: Mapping[str, Any],
    subjects: Sample,
    splits: list[Split],
    folds: Folds,
    progress: bool | None = None,
) -> FoldRuns:
    """Fit every model in every fold, but for those that the store has already."""
    tasks = _tasks(models, subjects, splits, folds.store)
    runs = FoldRuns(splits, list(models), {}, {})
    todo = [task for task in tasks if not _restored(task, runs)]
    failures: dict[str, str] = {}
    unkept: set[str] = set()
    with ProgressBar("fitting", len(tasks), len(tasks) - len(todo), progress) as bar:
        for task, found, seconds, kept in _results(todo, kind, subjects, folds.n_jobs):
            bar.advance(f"{task.name}, {task.split.name}")
            if isinstance(found, Exception):
                if folds.on_error == "raise":
                    hint = "cv=Folds(5, on_error='skip') compares the others; store= keeps what is finished."
                    raise FoldError(f"{task.failed(found)} ({hint})") from found
                failures.setdefault(task.name, task.failed(found))
                continue
            runs.forecasts[task.name, task.number] = found
            runs.seconds[task.name, task.number] = seconds
            if not kept:
                unkept.add(f"{task.name} ({type(found).__name__})")
    runs.models[:] = [name for name in runs.models if name not in failures]
    runs.notes.extend(f"{text} The model is left out." for text in failures.values())
    if unkept:
        runs.notes.append(
            f"store: forecasts of {', '.join(sorted(unkept))} are not made of arrays alone, and are not "
            "kept; the model is fitted again in the next run."
        )
    return runs


def _tasks(models: Mapping[str, Any], subjects: Sample, splits: list[Split], store: Any) -> list[_Task]:
    """All models of a fold, then the next fold: so the first failure shows early."""
    paths: dict[Key, Path] = {}
    if store is not None:
        data, folder = data_key(subjects), Path(store)
        for name, model in models.items():
            key = model_key(name, model, subjects.y)
            paths |= {(name, i): fold_path(folder, data, key, split) for i, split in enumerate(splits)}
    return [
        _Task(name, i, model, split, paths.get((name, i)))
        for i, split in enumerate(splits)
        for name, model in models.items()
    ]


def _restored(task: _Task, runs: FoldRuns) -> bool:
    """Whether the store has the forecasts of a task, which then join the others."""
    found = None if task.path is None else load_forecast(task.path)
    if found is None:
        return False
    forecast, about = found
    runs.forecasts[task.name, task.number] = forecast
    runs.seconds[task.name, task.number] = float(about["seconds"])
    return True


def _results(tasks: Iterable[_Task], kind: Kind, subjects: Sample, n_jobs: int | None) -> Iterator[Any]:
    if n_jobs in (None, 1):
        return (task.run(kind, subjects) for task in tasks)
    from joblib import Parallel, delayed

    return Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_Task.run)(task, kind, subjects) for task in tasks
    )


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
    shapes = {tuple(getattr(D, name).shape[1:] for name in D._arrays) for _, D in parts}
    if len({type(D) for _, D in parts}) > 1 or len(shapes) > 1:
        kinds = sorted({repr(D) for _, D in parts})
        raise InvalidTypeError(
            f"Joint forecasts of different folds must be of one kind and size; got {', '.join(kinds)}."
        )
    columns = zip(*([(n, part) for part in D._parts()] for n, D in parts), strict=True)
    joined = first._rebuilt(lambda array: array, lambda _: _combined(list(next(columns))))
    for name in first._arrays:
        arrays = [(n, getattr(D, name)) for n, D in parts]
        wide = [np.broadcast_to(array, (n, *array.shape[1:])) for n, array in arrays]
        setattr(joined, name, np.concatenate(wide))
    return joined


def _combined(parts: list[tuple[int, Distribution]]) -> Distribution:
    ends = np.cumsum([n for n, _ in parts])
    rows = np.split(np.arange(ends[-1]), ends[:-1])
    return out_of_fold([(some, D) for some, (_, D) in zip(rows, parts, strict=True)], np.arange(ends[-1]))
