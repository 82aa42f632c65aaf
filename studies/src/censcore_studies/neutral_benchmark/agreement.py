"""Part one: the published numbers of Kaplan-Meier and Cox regression beside ours, fold by fold."""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.convention import subject_losses
from censcore_studies.neutral_benchmark.data import TASKS, load_task
from censcore_studies.neutral_benchmark.factors import merged_levels, treatment_coding
from censcore_studies.neutral_benchmark.learners import LEARNERS, REPRODUCED

__all__ = ["agreement", "closest_draw", "report_agreement", "unseen_levels"]


def unseen_levels(name: str, iteration: int, folder: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """Factors with a level that only test subjects have: the places of these among the test subjects."""
    task = load_task(name, folder)
    train, test = task.split(iteration)
    unseen = {f: ~task.X[f].iloc[test].isin(task.X[f].iloc[train]).to_numpy() for f in TASKS[name]}
    return {factor: np.nonzero(where)[0] for factor, where in unseen.items() if where.any()}


def closest_draw(
    name: str, iteration: int, published: float, folder: str | os.PathLike[str] | None = None
) -> tuple[float, dict[int, Any]]:
    """The ISBS of Cox regression closest to the published one, over all levels that may have been drawn.

    For a level that no training subject has, the benchmark draws one. The score is a mean over subjects, so
    that the sum over all combinations of draws needs one fit.

    Returns
    -------
    isbs : float
        Score with the closest draw.
    levels : dict
        The level of each test subject that was drawn for.
    """
    task = load_task(name, folder)
    fold, (train, test) = task.fold(iteration), task.split(iteration)
    ((factor, places),) = unseen_levels(name, iteration, folder).items()
    X_train, X_test = task.X.iloc[train], task.X.iloc[test].copy()
    levels = sorted(set(merged_levels(X_train[factor]).values()))
    losses = []
    for level in levels:
        X_test.iloc[places, X_test.columns.get_loc(factor)] = level
        coded = treatment_coding(X_train, X_test, TASKS[name])
        F = LEARNERS["Cox"].forecast(coded[0], fold.y_train, coded[1], iteration)
        losses.append(subject_losses(fold.y_test, F, fold.y_train))
    drawn, known = np.stack(losses)[:, places], np.delete(losses[0], places).sum()
    total = {
        draw: (known + sum(drawn[level, j] for j, level in enumerate(draw))) / len(test)
        for draw in product(range(len(levels)), repeat=len(places))
    }
    best = min(total, key=lambda draw: abs(total[draw] - published))
    return total[best], {int(places[j]): levels[level] for j, level in enumerate(best)}


def agreement(scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Largest deviation from the published ISBS per task, of Kaplan-Meier and of Cox regression."""
    printed = published.set_index(["task", "learner", "iteration"])["isbs"]
    table = []
    for (task, learner), part in scores.groupby(["task", "learner"], sort=False):
        if learner not in REPRODUCED:
            continue
        there = [printed[task, REPRODUCED[learner], iteration] for iteration in part["iteration"]]
        wrong = np.abs(part["as published"].to_numpy() - np.array(there))
        row = {"task": task, "learner": learner, "folds": len(part)}
        table.append(row | {"largest deviation": wrong.max(), "median deviation": float(np.median(wrong))})
    return pd.DataFrame(table)


def report_agreement(table: pd.DataFrame) -> StudyTable:
    """The table to read."""
    view = table.pivot(index="task", columns="learner", values="largest deviation")
    view = view.reindex(
        [name for name in TASKS if name in view.index], columns=[name for name in REPRODUCED if name in view]
    )
    folds = table.groupby("task")["folds"].max()
    shown = view.map(lambda value: f"{value:.1e}").reset_index()
    shown.insert(1, "folds", [str(folds[task]) for task in shown["task"]])
    caption = (
        "Largest difference between the published ISBS of a fold and ours. It is published with twelve "
        "digits, so that 5e-13 is rounding."
    )
    return StudyTable("agreement", table, shown, caption)
