"""Part two, over folds: what ties, left limits and a proper score do to the numbers and to the order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.convention import VARIANTS
from censcore_studies.neutral_benchmark.data import TASKS, load_task
from censcore_studies.neutral_benchmark.inference import corrected_interval
from censcore_studies.neutral_benchmark.learners import LEARNERS
from censcore_studies.neutral_benchmark.study import PROPER

__all__ = [
    "order_changes",
    "order_counts",
    "pairs_of_learners",
    "report_conventions",
    "report_counts",
    "report_orders",
    "tied_share",
]

RULES = [*VARIANTS, PROPER]


def pairs_of_learners(scores: pd.DataFrame) -> Iterator[tuple[str, str, str, pd.DataFrame, pd.DataFrame]]:
    """Task, two learners, and the scores of both under every rule on the folds that both were run on."""
    for task in TASKS:
        inside = scores[scores["task"] == task].set_index(["learner", "iteration"])[RULES]
        learners = [name for name in LEARNERS if name in inside.index.get_level_values(0)]
        for first, second in combinations(learners, 2):
            a, b = inside.loc[first], inside.loc[second]
            both = a.index.intersection(b.index)
            if len(both):
                yield task, first, second, a.loc[both], b.loc[both]


def tied_share(name: str, folder: str | os.PathLike[str] | None = None) -> float:
    """Share of the events at whose time somebody is censored, too: where the order of both matters."""
    y = load_task(name, folder).y
    time, event = np.asarray(y.time), np.asarray(y.event, dtype=bool)
    return float(np.isin(time[event], time[~event]).mean())


def order_changes(scores: pd.DataFrame) -> pd.DataFrame:
    """Pairs of learners in another order than as published, by task and rule, with intervals over folds.

    ``published difference`` and ``difference`` are of the first minus the second learner; a change counts,
    however small.
    """
    table = []
    for task, first, second, a, b in pairs_of_learners(scores):
        before = corrected_interval((a[RULES[0]] - b[RULES[0]]).to_numpy())
        for rule in RULES[1:]:
            after = corrected_interval((a[rule] - b[rule]).to_numpy())
            if before[0] * after[0] < 0:
                row = {"task": task, "folds": len(a), "first": first, "second": second, "rule": rule}
                row |= {"published difference": before[0], "published low": before[1]}
                row |= {"published high": before[2], "difference": after[0]}
                table.append(row | {"low": after[1], "high": after[2]})
    columns = ["task", "folds", "first", "second", "rule", "published difference", "published low"]
    return pd.DataFrame(table, columns=[*columns, "published high", "difference", "low", "high"])


def order_counts(scores: pd.DataFrame) -> pd.DataFrame:
    """How many pairs of learners change their order, in single folds and on average over folds, by rule."""
    table = []
    for rule in RULES[1:]:
        row: dict[str, Any] = {
            "rule": rule,
            "pairs": 0,
            "changed": 0,
            "pairs in folds": 0,
            "changed in folds": 0,
        }
        for *_, a, b in pairs_of_learners(scores):
            before, after = a[RULES[0]] - b[RULES[0]], a[rule] - b[rule]
            row["pairs"] += 1
            row["changed"] += int(before.mean() * after.mean() < 0)
            row["pairs in folds"] += len(before)
            row["changed in folds"] += int((before * after < 0).sum())
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
        if not {(task, "Kaplan-Meier"), (task, "Cox")} <= set(means.index):
            continue
        km, cox = means.loc[(task, "Kaplan-Meier")], means.loc[(task, "Cox")]
        skill = 1 - cox / km
        row: dict[str, Any] = {"task": task, "tied events": tied_share(task, folder)}
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
        "under another rule, with 95 % intervals over the folds that both were run on, corrected for "
        "overlapping training sets."
    )
    return StudyTable("orders", table, pd.DataFrame(lines, columns=columns), caption)


def _interval(mean: float, low: float, high: float) -> str:
    return f"{mean:+.5f} [{low:+.5f}, {high:+.5f}]" if np.isfinite(low) else f"{mean:+.5f}"
