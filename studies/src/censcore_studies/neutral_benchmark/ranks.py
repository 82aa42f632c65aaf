"""Part three: where learners with default settings come in among the published, tuned ones."""

from __future__ import annotations

import pandas as pd

from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.data import PUBLISHED, TASKS
from censcore_studies.neutral_benchmark.inference import corrected_interval
from censcore_studies.neutral_benchmark.learners import LEARNERS, OURS, REPRODUCED

__all__ = [
    "mean_ranks",
    "placed",
    "places",
    "report_differences",
    "report_mean_ranks",
    "report_places",
    "report_same_folds",
    "same_folds",
]


def placed(scores: pd.DataFrame) -> list[str]:
    """The learners that are placed beside the published ones."""
    return [name for name in LEARNERS if name in set(scores["learner"]) and name not in REPRODUCED]


def _matrix(published: pd.DataFrame, task: str) -> pd.DataFrame:
    """Published ISBS of a task, one row per fold and one column per learner."""
    part = published[published["task"] == task]
    return part.pivot(index="iteration", columns="learner", values="isbs")


def _best_on_average(published: pd.DataFrame) -> str:
    """The published learner with the smallest mean rank over tasks."""
    means = published.groupby(["task", "learner"])["isbs"].mean().unstack()
    return str(means.rank(axis=1).mean().idxmin())


def places(scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Rank among the published learners, and paired differences over the folds that a learner was run on.

    ``versus`` Kaplan-Meier, Cox regression and the published learner with the best mean rank; negative
    differences are better. Each learner is ranked alone among the published ones, on its folds.
    """
    best = _best_on_average(published)
    table = []
    for learner in placed(scores):
        for task in TASKS:
            own = scores[(scores["learner"] == learner) & (scores["task"] == task)]
            if own.empty:
                continue
            isbs = own.set_index("iteration")["as published"]
            there = _matrix(published, task).loc[isbs.index]
            rank = 1 + int((there.mean() < isbs.mean()).sum())
            for versus in ("KM", "CPH", best):
                mean, low, high = corrected_interval((isbs - there[versus]).to_numpy())
                row = {"task": task, "learner": learner, "folds": len(isbs), "isbs": isbs.mean()}
                row |= {"rank": rank, "of": there.shape[1] + 1, "versus": versus}
                row |= {"published isbs": there[versus].mean()}
                table.append(row | {"difference": mean, "low": low, "high": high})
    return pd.DataFrame(table)


def mean_ranks(table: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Mean rank over tasks: of each learner run here among itself and the published, and of the published."""
    means = published.groupby(["task", "learner"])["isbs"].mean().unstack()
    there = means.rank(axis=1)
    rows = [
        {"learner": PUBLISHED[name], "published": True, "tasks": int(there[name].count())}
        | {"mean rank": there[name].mean(), "best": there[name].min(), "worst": there[name].max()}
        for name in there
    ]
    for learner, part in table.drop_duplicates(["task", "learner"]).groupby("learner", sort=False):
        row = {"learner": learner, "published": False, "tasks": len(part), "mean rank": part["rank"].mean()}
        rows.append(row | {"best": part["rank"].min(), "worst": part["rank"].max()})
    return pd.DataFrame(rows).sort_values("mean rank", kind="stable").reset_index(drop=True)


def same_folds(scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Ranks of the default stack and of the published learners among them all, on the folds of the stack."""
    own = scores[scores["learner"] == OURS].set_index(["task", "iteration"])["as published"]
    there = published.pivot(index=["task", "iteration"], columns="learner", values="isbs").loc[own.index]
    means = there.rename(columns=PUBLISHED).assign(**{OURS: own}).groupby("task").mean()
    ranks = means.rank(axis=1)
    table = pd.DataFrame({"mean rank": ranks.mean(), "best": ranks.min(), "worst": ranks.max()})
    table["ISBS of Kaplan-Meier"] = means.div(means[PUBLISHED["KM"]], axis=0).mean()
    table["behind the stack"] = means.gt(means[OURS], axis=0).sum()
    table.insert(0, "tasks", len(means))
    return table.rename_axis("learner").sort_values("mean rank", kind="stable").reset_index()


def report_same_folds(table: pd.DataFrame) -> StudyTable:
    """The table to read."""
    view = table.astype(str)
    for name, digits in (("mean rank", 1), ("best", 0), ("worst", 0)):
        view[name] = table[name].map(f"{{:.{digits}f}}".format)
    view["ISBS of Kaplan-Meier"] = (100 * table["ISBS of Kaplan-Meier"]).map("{:.1f} %".format)
    caption = (
        "All learners on the same folds, those that the default stack was run on: mean rank among the 18 "
        "over the tasks, mean ISBS in per cent of that of Kaplan-Meier, and tasks where the stack is better."
    )
    return StudyTable("same_folds", table, view, caption)


def report_mean_ranks(table: pd.DataFrame) -> StudyTable:
    """The table to read."""
    view = pd.DataFrame(
        {
            "learner": table["learner"],
            "settings": ["tuned" if published else "defaults" for published in table["published"]],
            "tasks": table["tasks"].astype(str),
            "mean rank": table["mean rank"].map("{:.1f}".format),
            "best": table["best"].map("{:.0f}".format),
            "worst": table["worst"].map("{:.0f}".format),
        }
    )
    untuned = {PUBLISHED[name] for name in ("KM", "NEL", "CPH", "GAM")}
    view.loc[view["learner"].isin(untuned), "settings"] = "nothing to tune"
    view.loc[view["learner"] == PUBLISHED["CoxB"], "settings"] = "tunes itself"
    caption = (
        "Mean rank by ISBS over the tasks, in the convention of the benchmark. Published learners are ranked "
        "among the 17 that have a survival function; a learner that was run here, with its default settings, "
        "is ranked among these and itself (1 to 18), on the folds it was run on."
    )
    return StudyTable("mean_ranks", table, view, caption)


def report_places(table: pd.DataFrame) -> StudyTable:
    """Ranks by task."""
    each = table.drop_duplicates(["task", "learner"])
    view = pd.DataFrame({"task": [task for task in TASKS if task in set(each["task"])]})
    for learner, part in each.groupby("learner", sort=False):
        shown = {row.task: f"{row.rank} ({row.folds})" for row in part.itertuples()}
        view[str(learner)] = [shown.get(task, "") for task in view["task"]]
    caption = (
        "Rank among the 17 published learners and itself, 1 to 18, and the number of folds (in brackets)."
    )
    return StudyTable("ranks", each.drop(columns=["versus", "published isbs", "difference", "low", "high"]),
                      view, caption)  # fmt: skip


def report_differences(table: pd.DataFrame) -> StudyTable:
    """Paired differences over folds, by task."""
    lines = []
    for (task, learner), part in table.groupby(["task", "learner"], sort=False):
        line = {"task": task, "learner": learner, "folds": str(part["folds"].iloc[0])}
        line["ISBS"] = f"{part['isbs'].iloc[0]:.4f}"
        for row in part.itertuples():
            ends = f" [{row.low:+.4f}, {row.high:+.4f}]" if row.folds > 1 else ""
            line[f"minus {row.versus}"] = f"{row.difference:+.4f}{ends}"
        lines.append(line)
    order = {task: place for place, task in enumerate(TASKS)}
    view = pd.DataFrame(lines).sort_values("task", key=lambda task: task.map(order), kind="stable")
    best = table["versus"].iloc[2]
    caption = (
        "ISBS minus that of published learners on the same folds, with 95 % intervals over folds, corrected "
        "for overlapping training sets (Nadeau and Bengio): Kaplan-Meier (KM), Cox regression (CPH) and "
        f"{best}, {PUBLISHED[best]}, which has the best mean rank of the published ones. Negative: better."
    )
    return StudyTable("differences", table, view, caption)
