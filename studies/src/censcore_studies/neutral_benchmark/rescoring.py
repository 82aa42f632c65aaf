"""Part two, over subjects: Kaplan-Meier, Cox and the default stack by proper scores, with intervals."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd

from censcore.distributions import Distribution
from censcore.evaluation import cross_validate
from censcore.outcomes import RightCensored
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.data import FOLDS, TASKS, load_task
from censcore_studies.neutral_benchmark.factors import treatment_coding
from censcore_studies.neutral_benchmark.learners import LEARNERS, OURS
from censcore_studies.neutral_benchmark.study import STUDY

__all__ = ["RESCORED", "report_rescoring", "rescore_task", "rescoring_cells", "run_rescoring"]

RESCORED = ("Kaplan-Meier", "Cox", OURS)
SCORES = ("crps", "integrated_brier_score:ipcw")


def rescore_task(settings: dict[str, Any]) -> dict[str, Any]:
    """Compare learners by proper scores over the subjects of a task, each scored once.

    The folds are those of the first repetition. Censoring distributions are Kaplan-Meier curves of the
    training subjects with events first, and the intervals of :func:`censcore.cross_validate` account for
    their estimation.

    Parameters
    ----------
    settings : dict
        ``task``, ``learners`` and, optionally, ``folder``.
    """
    task = load_task(settings["task"], settings.get("folder"))
    comparison = cross_validate(
        {name: _model(task.name, name) for name in settings["learners"]},
        task.X,
        task.y,
        cv=[task.split(iteration) for iteration in range(1, FOLDS + 1)],
        scores=SCORES,
        reference="Kaplan-Meier",
        horizon=task.horizon,
        discrimination=False,
    )
    means = comparison.frame()[
        ["score", "model", "mean", "standard_error", "skill", "skill_low", "skill_high"]
    ]
    pairs = comparison.differences()[["score", "model", "versus", "difference", "low", "high", "p_value"]]
    return {
        "means": means.to_dict(orient="records"),
        "differences": pairs.to_dict(orient="records"),
        "horizon": task.horizon,
        "subjects": len(task.y),
    }


def _model(task: str, learner: str) -> Callable[[Any, RightCensored, Any], Distribution]:
    def forecast(X: pd.DataFrame, y: RightCensored, X_new: pd.DataFrame) -> Distribution:
        train, test = treatment_coding(X, X_new, TASKS[task])
        return LEARNERS[learner].forecast(train, y, test, 1)

    return forecast


def rescoring_cells(
    learners: Mapping[str, Sequence[str]], folder: str | os.PathLike[str] | None = None
) -> list[Cell]:
    """One cell per task, of the learners that were run on it and of Kaplan-Meier, the reference."""
    where = {} if folder is None else {"folder": str(folder)}
    cells = []
    for name, run in learners.items():
        chosen = [learner for learner in RESCORED if learner in run or learner == RESCORED[0]]
        fixed = {
            "study": f"{STUDY} rescored",
            "content": load_task(name, folder).fingerprint,
            "defaults": {learner: LEARNERS[learner].settings() for learner in chosen},
        }
        cells.append(Cell(f"rescored-{name}", {"task": name, "learners": chosen} | where, fixed))
    return cells


def run_rescoring(
    learners: Mapping[str, Sequence[str]],
    out: str | os.PathLike[str] | None = None,
    *,
    folder: str | os.PathLike[str] | None = None,
    jobs: int = 1,
    progress: bool = True,
) -> pd.DataFrame:
    """Compare the learners of each task: one row per task, score and pair; scores per unit of the horizon."""
    cells = rescoring_cells(learners, folder)
    table = []
    for result in run_cells(rescore_task, cells, out, jobs=jobs, progress=progress):
        for pair in result["differences"]:
            unit = result["horizon"] if pair["score"] == "crps" else 1.0
            of = {line["model"]: line for line in result["means"] if line["score"] == pair["score"]}
            row = {"task": result["settings"]["task"], "subjects": result["subjects"]}
            row |= {"horizon": result["horizon"], "score": pair["score"]}
            row |= {"learner": pair["versus"], "versus": pair["model"]}
            row |= {
                "mean": of[pair["versus"]]["mean"] / unit,
                "versus mean": of[pair["model"]]["mean"] / unit,
            }
            row |= {"difference": -pair["difference"] / unit, "low": -pair["high"] / unit}
            table.append(row | {"high": -pair["low"] / unit, "p": pair["p_value"]})
    return pd.DataFrame(table)


def report_rescoring(table: pd.DataFrame) -> StudyTable:
    """The table to read: paired differences by the localized score, with intervals over subjects."""
    lines: dict[str, dict[str, str]] = {}
    for row in table[table["score"] == "crps"].to_dict(orient="records"):
        line = lines.setdefault(row["task"], {"task": row["task"], "subjects": f"{row['subjects']:,}"})
        line.setdefault(row["versus"], f"{row['versus mean']:.4f}")
        interval = f"{row['difference']:+.4f} [{row['low']:+.4f}, {row['high']:+.4f}]"
        line[f"{row['learner']} minus {row['versus']}"] = interval
    caption = (
        "Localized integrated Brier score (CRPS divided by the horizon), and paired differences with 95 % "
        "intervals over subjects; each subject is scored once, in the folds of the first repetition. "
        "Negative: the first is better."
    )
    return StudyTable("rescored", table, pd.DataFrame(list(lines.values())).fillna(""), caption)
