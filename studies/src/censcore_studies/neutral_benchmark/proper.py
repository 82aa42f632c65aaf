"""Part two, over folds: every learner that was run here by the proper score, with corrected intervals."""

from __future__ import annotations

import pandas as pd

from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.conventions import pairs_of_learners
from censcore_studies.neutral_benchmark.inference import corrected_interval
from censcore_studies.neutral_benchmark.learners import REPRODUCED
from censcore_studies.neutral_benchmark.study import PROPER

__all__ = ["proper_differences", "report_proper"]


def proper_differences(scores: pd.DataFrame) -> pd.DataFrame:
    """Paired differences of the proper score from Kaplan-Meier and from Cox regression, over common folds."""
    table = []
    for task, versus, learner, a, b in pairs_of_learners(scores):
        if versus in REPRODUCED:
            mean, low, high = corrected_interval((b[PROPER] - a[PROPER]).to_numpy())
            row = {"task": task, "learner": learner, "versus": versus, "folds": len(a)}
            row |= {"mean": b[PROPER].mean(), "versus mean": a[PROPER].mean()}
            table.append(row | {"difference": mean, "low": low, "high": high})
    return pd.DataFrame(table)


def report_proper(table: pd.DataFrame) -> StudyTable:
    """The table to read."""
    lines: dict[tuple[str, str], dict[str, str]] = {}
    for row in table.to_dict(orient="records"):
        start = {"task": row["task"], "learner": row["learner"], "folds": str(row["folds"])}
        line = lines.setdefault((row["task"], row["learner"]), start | {"score": f"{row['mean']:.4f}"})
        ends = f" [{row['low']:+.4f}, {row['high']:+.4f}]" if row["folds"] > 1 else ""
        line[f"minus {row['versus']}"] = f"{row['difference']:+.4f}{ends}"
    caption = (
        "Localized integrated Brier score up to the time before which 80 % of the subjects left the risk "
        "set, and paired differences with 95 % intervals over folds, corrected for overlapping training "
        "sets. Negative: better."
    )
    return StudyTable("proper", table, pd.DataFrame(list(lines.values())).fillna(""), caption)
