"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from censcore.cli.distribution import covariates_of, numbers, words
from censcore.cli.predictions import outcome_of, read_table

if TYPE_CHECKING:
    import pandas as pd

    from censcore.outcomes import RightCensored

__all__ = [
    "EXIT_CODES",
    "CensoringLaw",
    "CensoringTime",
    "Event",
    "Interpolation",
    "Levels",
    "Predictions",
    "Stratify",
    "Time",
    "Times",
    "horizon_of",
    "training_rows",
]

EXIT_CODES = (
    "Exit codes: 0 done, 1 the data or options do not allow it (the message says why), 2 wrong usage."
)

Predictions = Annotated[Path, typer.Argument(help="Table of outcomes and forecasts, csv or parquet.")]
Time = Annotated[str, typer.Option(help="Column of observed times.")]
Event = Annotated[str, typer.Option(help="Column that is 1 for an event, 0 for a censored time.")]
CensoringLaw = Annotated[
    str,
    typer.Option(help="Censoring distribution: kaplan-meier, cox, weibull, or none if nothing is censored."),
]
Stratify = Annotated[
    str | None, typer.Option(help="Column with one Kaplan-Meier censoring distribution per value.")
]
CensoringTime = Annotated[
    str | None, typer.Option(help="Column of censoring times, where they are known for all rows.")
]
Times = Annotated[str | None, typer.Option(help="Evaluation times between commas.")]
Levels = Annotated[str | None, typer.Option(help="Quantile levels between commas.")]
Interpolation = Annotated[str, typer.Option(help="Survival between the times given: step or linear.")]


def training_rows(
    train: Path | None, time: str, event: str, covariates: str | None, stratify: str | None
) -> tuple[pd.DataFrame | None, RightCensored] | None:
    """Covariates and outcomes of the file of ``--train``; None without one."""
    if train is None:
        return None
    rows = read_table(train)
    return covariates_of(rows, words(covariates), stratify), outcome_of(rows, time, event)


def horizon_of(text: str) -> Any:
    """``auto``, or the number that ``--horizon`` gives."""
    return text if text == "auto" else (numbers(text, "--horizon") or [0.0])[0]
