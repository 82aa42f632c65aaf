"""All tables and figures of the study from its finished scores."""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

from censcore_studies.kit.tables import StudyTable
from censcore_studies.neutral_benchmark.agreement import agreement, report_agreement
from censcore_studies.neutral_benchmark.conventions import (
    order_changes,
    order_counts,
    report_conventions,
    report_counts,
    report_orders,
)
from censcore_studies.neutral_benchmark.data import published_scores
from censcore_studies.neutral_benchmark.figures import draw_conventions, draw_places
from censcore_studies.neutral_benchmark.learners import OURS
from censcore_studies.neutral_benchmark.proper import proper_differences, report_proper
from censcore_studies.neutral_benchmark.ranks import (
    mean_ranks,
    placed,
    places,
    report_differences,
    report_mean_ranks,
    report_places,
    report_same_folds,
    same_folds,
)

__all__ = ["report_benchmark"]


def report_benchmark(
    out: Path, scores: pd.DataFrame, folder: str | os.PathLike[str] | None = None
) -> list[StudyTable]:
    """The tables of everything but the comparison over subjects; figures are written to ``out``."""
    published = published_scores(folder)
    agreed = agreement(scores, published)
    reports = [] if agreed.empty else [report_agreement(agreed)]  # of simple learners alone
    conventions = report_conventions(scores, folder)
    reports += [conventions, report_counts(order_counts(scores)), report_orders(order_changes(scores))]
    reports.append(report_proper(proper_differences(scores)))
    if not conventions.rows.empty:
        draw_conventions(out / "conventions.svg", conventions.rows)
    if placed(scores):
        table = places(scores, published)
        reports += [
            report_mean_ranks(mean_ranks(table, published)),
            report_places(table),
            report_differences(table),
        ]
        if OURS in placed(scores):
            reports.append(report_same_folds(same_folds(scores, published)))
        draw_places(out / "places.svg", scores, published)
    return reports
