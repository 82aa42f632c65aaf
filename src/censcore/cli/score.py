"""``censcore score``: one loss per subject, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censcore.cli.losses import loss_columns, losses_writer, tell_written
from censcore.cli.options import (
    EXIT_CODES,
    Batch,
    Cause,
    Causes,
    CensoringDistribution,
    CensoringTime,
    Dask,
    Entry,
    Event,
    Interpolation,
    Jobs,
    Levels,
    Lower,
    Predictions,
    Repair,
    Stratify,
    Tail,
    Time,
    Times,
    Upper,
    Visits,
    horizon_of,
    numbers,
    outcome_columns,
    read_inputs,
    reads_batches,
    score_names,
)
from censcore.cli.predictions import COLUMNS_HELP
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

__all__ = ["score"]

EPILOG = (
    "Examples:\n\n"
    "  censcore score predictions.csv --time days --event died --out losses.csv\n\n"
    "  censcore score test.csv --train train.csv --time t --event d --scores crps --out losses.parquet\n\n"
    f"{EXIT_CODES}"
)


def score(
    predictions: Predictions,
    time: Time = None,
    event: Event = None,
    cause: Cause = None,
    causes: Causes = None,
    lower: Lower = None,
    upper: Upper = None,
    visits: Visits = None,
    out: Annotated[
        Path | None, typer.Option(help="Table of losses to write; without it, or with -, printed as csv.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Subjects to fit the censoring distribution to; same column names.")
    ] = None,
    censoring: CensoringDistribution = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns for the censoring distribution, between commas.")
    ] = None,
    stratify: Stratify = None,
    censoring_time: CensoringTime = None,
    entry: Entry = None,
    scores: Annotated[str, typer.Option(help="Scores between commas.")] = "crps",
    times: Times = None,
    levels: Levels = None,
    horizon: Annotated[str, typer.Option(help="End of the scores, or auto.")] = "auto",
    interpolation: Interpolation = "auto",
    tail: Tail = "auto",
    repair: Repair = False,
    batch: Batch = None,
    jobs: Jobs = None,
    dask: Dask = None,
) -> None:
    """Write one loss per subject, model and score: columns MODEL__SCORE, or MODEL__SCORE@NUMBER."""
    columns = outcome_columns(time, event, cause, causes, entry, lower, upper, visits)
    if reads_batches(predictions, batch, dask):
        from censcore.cli.batches import score_batches

        score_batches(
            predictions, columns, out, batch=batch, dask=dask, train=train, censoring=censoring,
            covariates=covariates, stratify=stratify, censoring_time=censoring_time,
            reading={"interpolation": interpolation, "tail": tail, "repair": repair},
            scores=scores, times=times, levels=levels, horizon=horizon, jobs=jobs,
        )  # fmt: skip
        return
    if jobs is not None:
        raise InvalidInputError("--jobs belongs to tables that are read in batches: pass --batch.")
    inputs = read_inputs(
        predictions, columns, train=train,
        censoring=censoring, covariates=covariates, stratify=stratify, censoring_time=censoring_time,
        interpolation=interpolation, tail=tail, repair=repair,
    )  # fmt: skip
    from censcore.evaluation.inference.losses import score_all  # --help needs none of what it imports
    from censcore.evaluation.pipeline import decide
    from censcore.evaluation.plan.request import Request
    from censcore.evaluation.sample import Sample

    plan = decide(
        Request(
            inputs.forecasts,
            Sample(inputs.X, inputs.y),
            inputs.censoring,
            None if inputs.train is None else Sample.of(inputs.train),
            score_names(scores),
            numbers(times, "--times"),
            numbers(levels, "--levels"),
            reference=None,
            horizon=horizon_of(horizon),
        )
    )
    losses = score_all(plan.cases, plan.scores)
    for note in [*plan.notes, *losses.notes]:
        typer.echo(f"note: {one_line(note)}", err=True)
    with losses_writer(out) as write:
        write(loss_columns(plan.cases, losses))
    tell_written(out, len(inputs.frame), next(iter(plan.cases.values())).horizon)


score.__doc__ = f"{score.__doc__}\n\n\b{COLUMNS_HELP}"
