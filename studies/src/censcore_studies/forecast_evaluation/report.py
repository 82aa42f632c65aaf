"""Tables with captions and pictures, from the numbers of the study."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from censcore_studies.forecast_evaluation import figures, views
from censcore_studies.kit.tables import StudyTable

__all__ = ["report_convergence", "report_ranks", "report_raw", "report_sensitivity"]


def report_ranks(out: Path, table: pd.DataFrame, replications: int, n: int) -> StudyTable:
    """The rank table; draws ``oracle_ranks.png``."""
    figures.draw_ranks(out / "oracle_ranks.png", table)
    caption = (
        f"Printed rank of the true forecast, and in brackets the share of {replications} draws of {n} rows "
        "that reproduce it; * marks a rank that half of the draws or fewer reproduce."
    )
    return StudyTable("oracle_ranks", table, views.rank_view(table), caption)


def report_raw(out: Path, table: pd.DataFrame, replications: int, n: int) -> StudyTable:
    """Mean scores; draws ``raw_scores.png`` where several draws tell their spread."""
    if replications > 1:
        figures.draw_raw(out / "raw_scores.png", table)
    caption = (
        f"Mean score of the true forecast over {replications} draws of {n} rows with the standard deviation "
        "of one draw; z is the printed score minus ours in such standard deviations."
    )
    return StudyTable("raw_scores", table, views.raw_view(table), caption)


def report_sensitivity(out: Path, table: pd.DataFrame, replications: int, n: int) -> StudyTable:
    """Estimated laws of C; draws ``sensitivity.png``."""
    figures.draw_sensitivity(out / "sensitivity.png", table)
    caption = (
        f"Our scores under estimated laws of C, {replications} draws of {n} rows: how often the truth comes "
        "first, its mean score, the printed one, z as for the raw scores, and what the estimate adds to it."
    )
    return StudyTable("sensitivity", table, views.sensitivity_view(table), caption)


def report_convergence(out: Path, table: pd.DataFrame) -> StudyTable:
    """How often the truth comes first; draws ``convergence.png``, and ``severity.png`` where that varies."""
    figures.draw_convergence(out / "convergence.png", table)
    if table["severity"].nunique() > 1:
        figures.draw_severity(out / "severity.png", table)
    caption = (
        "Share of draws in which a rule puts the true forecast first, by number of rows; "
        f"{table['replications'].max()} draws of up to 1,000 rows, fewer of more rows, at least "
        f"{table['replications'].min()}."
    )
    return StudyTable("convergence", table, views.convergence_view(table), caption)
