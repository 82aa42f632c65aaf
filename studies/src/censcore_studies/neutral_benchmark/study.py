"""Every learner on every fold: the score of the benchmark, its corrected variants, and a proper score."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_numeric_dtype

from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore.scores import integrated_brier_score
from censcore.store import content_key
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.neutral_benchmark.convention import (
    VARIANTS,
    censoring_curve,
    integrated_survival_brier_score,
)
from censcore_studies.neutral_benchmark.data import FOLDS, TASKS, load_task, read_exactly
from censcore_studies.neutral_benchmark.learners import LEARNERS

__all__ = ["PROPER", "benchmark_cells", "check_names", "read_scores", "run_benchmark", "score_fold"]

#: Raise the number when the same settings give other scores.
STUDY = "neutral-benchmark 1"
#: The proper score: localized integrated Brier score, a mean over [0, horizon].
PROPER = "proper"
KEY = ["task", "learner", "iteration"]


def score_fold(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit a learner to the training subjects of a fold and score its forecasts of the others.

    Parameters
    ----------
    settings : dict
        ``task``, ``iteration`` (from 1, as published, and the seed), ``learner``; optionally ``folder``.

    Returns
    -------
    dict
        ``isbs``, one number per variant of the convention, and ``proper``, the mean localized integrated
        Brier score up to the horizon of the task under the events-first censoring distribution.
    """
    task = load_task(settings["task"], settings.get("folder"))
    fold = task.fold(settings["iteration"])
    learner = LEARNERS[settings["learner"]]
    F = learner.forecast(fold.X_train, fold.y_train, fold.X_test, settings["iteration"])
    C = censoring_curve(fold.y_train, events_first=True)
    proper = integrated_brier_score(fold.y_test, F, C, horizon=task.horizon, normalize=True)
    isbs = {name: integrated_survival_brier_score(fold.y_test, F, fold.y_train, name) for name in VARIANTS}
    return {"isbs": isbs, PROPER: float(proper.mean())}


def check_names(kind: str, given: Iterable[str] | None, known: Iterable[str]) -> list[str]:
    """The chosen names in their usual order, all where none is given."""
    known = list(known)
    unknown = [name for name in given or () if name not in known]
    if unknown:
        raise InvalidInputError(f"{kind}: got {', '.join(unknown)}, expected some of {', '.join(known)}.")
    return known if not given else [name for name in known if name in set(given)]


def benchmark_cells(
    tasks: Sequence[str] | None = None,
    learners: Sequence[str] | None = None,
    repetitions: int | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> list[Cell]:
    """One cell per task, learner and fold; first repetitions first, and small tasks before large ones."""
    cells = []
    where = {} if folder is None else {"folder": str(folder)}
    for name in check_names("tasks", tasks, TASKS):
        task = load_task(name, folder)
        count = min(repetitions or task.repetitions, task.repetitions) * FOLDS
        for learner in check_names("learners", learners, LEARNERS):
            fixed = {"study": STUDY, "content": task.fingerprint, "defaults": LEARNERS[learner].settings()}
            for iteration in range(1, count + 1):
                settings = {"task": name, "learner": learner, "iteration": iteration} | where
                label = f"{name}-{learner.replace(' ', '-')}-{iteration:02d}"
                cells.append(Cell(label, settings, fixed))
    return sorted(cells, key=lambda cell: (cell.settings["iteration"] - 1) // FOLDS)


def run_benchmark(
    out: str | os.PathLike[str], *, jobs: int = 1, progress: bool = True, **chosen: Any
) -> pd.DataFrame:
    """Run the chosen cells, add them to ``out/cells.csv`` and return all that it holds.

    Rows of a learner that is run again with other defaults are dropped.
    """
    cells = benchmark_cells(**chosen)
    found = [_row(result) for result in run_cells(score_fold, cells, out, jobs=jobs, progress=progress)]
    return _add_scores(Path(out), pd.DataFrame(found))


def _row(result: dict[str, Any]) -> dict[str, Any]:
    settings = result["settings"]
    made_by = content_key(result["fixed"]["study"], result["fixed"]["defaults"])[:8]
    scores = {**result["isbs"], PROPER: result[PROPER]}
    return (
        {name: settings[name] for name in KEY} | scores | {"seconds": result["seconds"], "made_by": made_by}
    )


def _add_scores(out: Path, new: pd.DataFrame) -> pd.DataFrame:
    path = out / "cells.csv"
    if path.exists():
        old = read_scores(out)
        current = new.groupby("learner")["made_by"].first()
        stale = old["learner"].map(current).fillna(old["made_by"]) != old["made_by"]
        new = pd.concat([old[~stale], new]).drop_duplicates(KEY, keep="last")
    order = {name: place for place, name in enumerate([*TASKS, *LEARNERS])}
    new = new.sort_values(KEY, key=lambda column: column if is_numeric_dtype(column) else column.map(order))
    write_atomically(path, new.to_csv(index=False, float_format="%.13g"))
    return read_scores(out)


def read_scores(out: str | os.PathLike[str]) -> pd.DataFrame:
    """The finished scores in ``out/cells.csv``: one row per task, learner and fold."""
    path = Path(out) / "cells.csv"
    if not path.exists():
        raise InvalidInputError(f"There is no {path}; run the study without --no-run first.")
    return read_exactly(path)
