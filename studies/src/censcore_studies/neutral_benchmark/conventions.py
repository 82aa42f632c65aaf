"""Part two, over folds: what ties, left limits and a proper score do to the numbers and to the order."""

from __future__ import annotations

import os
from itertools import combinations

import numpy as np
import pandas as pd

from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.convention import VARIANTS
from censcore_studies.neutral_benchmark.data import TASKS, load_task
from censcore_studies.neutral_benchmark.inference import corrected_interval
from censcore_studies.neutral_benchmark.learners import LEARNERS
from censcore_studies.neutral_benchmark.study import PROPER

__all__ = [
    "common_folds",
    "convention_means",
    "order_changes",
    "order_counts",
    "report_conventions",
    "report_counts",
    "report_orders",
    "tied_share",
]

RULES = [*VARIANTS, PROPER]


def common_folds(scores: pd.DataFrame) -> pd.DataFrame:
    """The folds of each task that all learners of the task were run on."""
    learners = scores.groupby("task")["learner"].transform("nunique")
    run = scores.groupby(["task", "iteration"])["learner"].transform("nunique")
    return scores[run == learners]


def tied_share(name: str, folder: str | os.PathLike[str] | None = None) -> float:
    """Share of the events at whose time somebody is censored, too: where the order of both matters."""
    y = load_task(name, folder).y
    time, event = np.asarray(y.time), np.asarray(y.event, dtype=bool)
    return float(np.isin(time[event], time[~event]).mean())


def convention_means(scores: pd.DataFrame) -> pd.DataFrame:
    """Mean scores of each task and learner under every rule, over common folds."""
    part = common_folds(scores)
    means = part.groupby(["task", "learner"])[RULES].mean().reset_index()
    folds = part.groupby(["task", "learner"])["iteration"].count().reset_index(name="folds")
    order = {name: place for place, name in enumerate([*TASKS, *LEARNERS])}
    table = means.merge(folds, on=["task", "learner"])
    return table.sort_values(["task", "learner"], key=lambda c: c.map(order)).reset_index(drop=True)


def order_changes(scores: pd.DataFrame) -> pd.DataFrame:
    """Pairs of learners in another order than as published, by task and rule, with intervals over folds.

    ``published difference`` and ``difference`` are of the first minus the second learner; a change counts,
    however small.
    """
    part = common_folds(scores)
    table = []
    for task in TASKS:
        inside = part[part["task"] == task]
        learners = [name for name in LEARNERS if name in set(inside["learner"])]
        wide = {rule: inside.pivot(index="iteration", columns="learner", values=rule) for rule in RULES}
        for a, b in combinations(learners, 2):
            before = corrected_interval((wide["as published"][a] - wide["as published"][b]).to_numpy())
            for rule in RULES[1:]:
                after = corrected_interval((wide[rule][a] - wide[rule][b]).to_numpy())
                if before[0] * after[0] < 0:
                    row = {"task": task, "folds": len(wide[rule]), "first": a, "second": b, "rule": rule}
                    row |= {"published difference": before[0], "published low": before[1]}
                    row |= {"published high": before[2], "difference": after[0]}
                    table.append(row | {"low": after[1], "high": after[2]})
    columns = ["task", "folds", "first", "second", "rule", "published difference", "published low"]
    return pd.DataFrame(table, columns=[*columns, "published high", "difference", "low", "high"])


def order_counts(scores: pd.DataFrame) -> pd.DataFrame:
    """How many pairs of learners change their order, in single folds and on average over folds, by rule."""
    part = common_folds(scores)
    inside = [part[part["task"] == task] for task in TASKS if task in set(part["task"])]
    table = []
    for rule in RULES[1:]:
        row = {"rule": rule, "pairs": 0, "changed": 0, "pairs in folds": 0, "changed in folds": 0}
        for task in inside:
            old, new = (task.pivot(index="iteration", columns="learner", values=r) for r in (RULES[0], rule))
            for a, b in combinations(old, 2):
                swapped = (old[a] - old[b]) * (new[a] - new[b]) < 0
                row["pairs"] += 1
                row["changed"] += int((old[a] - old[b]).mean() * (new[a] - new[b]).mean() < 0)
                row["pairs in folds"] += len(swapped)
                row["changed in folds"] += int(swapped.sum())
        table.append(row)
    return pd.DataFrame(table)


def report_counts(table: pd.DataFrame) -> StudyTable:
    """The table to read."""
    view = pd.DataFrame(
        {
            "rule": table["rule"],
            "on average over folds": [f"{r['changed']} of {r['pairs']}" for r in table.to_dict("records")],
            "in single folds": [
                f"{r['changed in folds']} of {r['pairs in folds']}" for r in table.to_dict("records")
            ],
        }
    )
    caption = "Pairs of learners in another order than as published, over all tasks."
    return StudyTable("order_counts", table, view, caption)


def report_conventions(scores: pd.DataFrame, folder: str | os.PathLike[str] | None = None) -> StudyTable:
    """What correcting ties and left limits does to the score of Kaplan-Meier and to the lead of Cox."""
    means = scores.groupby(["task", "learner"])[RULES].mean()
    rows, lines = [], []
    for task in TASKS:
        if (task, "Cox") not in means.index:
            continue
        km, cox = means.loc[(task, "Kaplan-Meier")], means.loc[(task, "Cox")]
        skill = 1 - cox / km
        row = {"task": task, "tied events": tied_share(task, folder)}
        row |= {f"Kaplan-Meier, {rule}": km[rule] for rule in RULES}
        row |= {f"skill of Cox, {rule}": skill[rule] for rule in RULES}
        rows.append(row)
        line = {"task": task, "events tied with a censoring": f"{100 * row['tied events']:.0f} %"}
        line["Kaplan-Meier as published"] = f"{km['as published']:.4f}"
        for rule in list(VARIANTS)[1:]:
            line[rule] = f"{100 * (km[rule] / km['as published'] - 1):+.2f} %"
        for rule in ("as published", "both", PROPER):
            line[f"skill of Cox, {rule}"] = f"{100 * skill[rule]:.2f} %"
        lines.append(line)
    caption = (
        "ISBS of Kaplan-Meier as published, and its change when events come before censorings at the same "
        "time, when events are divided by G(y-), and with both; and by how much Cox regression is better, as "
        "published, with both corrections and by the proper score. All folds."
    )
    return StudyTable("conventions", pd.DataFrame(rows), pd.DataFrame(lines), caption)


def report_orders(table: pd.DataFrame) -> StudyTable:
    """Pairs of learners whose order changes."""
    lines = [
        {
            "task": row["task"],
            "folds": str(row["folds"]),
            "pair": f"{row['first']} / {row['second']}",
            "as published": _interval(
                row["published difference"], row["published low"], row["published high"]
            ),
            "rule": row["rule"],
            "difference": _interval(row["difference"], row["low"], row["high"]),
        }
        for row in table.to_dict(orient="records")
    ]
    columns = ["task", "folds", "pair", "as published", "rule", "difference"]
    caption = (
        "Pairs of learners that change their order: ISBS of the first minus the second as published, and "
        "under another rule, with 95 % intervals over the folds that all learners were run on, corrected for "
        "overlapping training sets."
    )
    return StudyTable("orders", table, pd.DataFrame(lines, columns=columns), caption)


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:+.5f} [{low:+.5f}, {high:+.5f}]" if np.isfinite(low) else f"{mean:+.5f}"
