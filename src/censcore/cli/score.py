"""``censcore score``: one loss per subject, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censcore.cli import options
from censcore.cli.losses import loss_columns, losses_writer, tell_written
from censcore.cli.predictions import COLUMNS_HELP
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

__all__ = ["score"]

EPILOG = (
    "Examples:\n\n"
    "  censcore score predictions.csv --time days --event died --out losses.csv\n\n"
    "  censcore score test.csv --train train.csv --time t --event d --scores crps --out losses.parquet\n\n"
    f"{options.EXIT_CODES}"
)


def score(
    predictions: options.Predictions,
    time: options.Time = None,
    event: options.Event = None,
    cause: options.Cause = None,
    causes: options.Causes = None,
    lower: options.Lower = None,
    upper: options.Upper = None,
    visits: options.Visits = None,
    out: Annotated[
        Path | None, typer.Option(help="Table of losses to write; without it, or with -, printed as csv.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Subjects to fit the censoring distribution to; same column names.")
    ] = None,
    censoring: options.CensoringDistribution = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns for the censoring distribution, between commas.")
    ] = None,
    stratify: options.Stratify = None,
    censoring_time: options.CensoringTime = None,
    entry: options.Entry = None,
    scores: Annotated[str, typer.Option(help="Scores between commas.")] = "crps",
    times: options.Times = None,
    levels: options.Levels = None,
    horizon: Annotated[str, typer.Option(help="End of the scores, or auto.")] = "auto",
    interpolation: options.Interpolation = "auto",
    tail: options.Tail = "auto",
    repair: options.Repair = False,
    batch: options.Batch = None,
    jobs: options.Jobs = None,
    dask: options.Dask = None,
) -> None:
    """Write one loss per subject, model and score: columns MODEL__SCORE, or MODEL__SCORE@NUMBER."""
    columns = options.outcome_columns(
        time, lower, upper, event=event, cause=cause, causes=causes, entry=entry, visits=visits
    )
    reading = {"interpolation": interpolation, "tail": tail, "repair": repair}
    source = options.Source(
        predictions, columns, train, censoring, covariates, stratify, censoring_time, reading
    )
    asked = options.asked(scores, times, levels, horizon)
    if options.reads_batches(predictions, batch, dask):
        from censcore.cli.batches import read_batches, score_batches

        score_batches(read_batches(source, batch, dask), out, jobs, **asked)
        return
    if jobs is not None:
        raise InvalidInputError("--jobs belongs to tables that are read in batches: pass --batch.")
    inputs = source.read()
    from censcore.evaluation.compare import decide
    from censcore.evaluation.inference.losses import score_all  # --help needs none of what it imports
    from censcore.evaluation.plan.request import Request
    from censcore.evaluation.sample import Sample

    sample, training = Sample(inputs.X, inputs.y), None if inputs.train is None else Sample.of(inputs.train)
    request = Request(inputs.forecasts, sample, inputs.censoring, training, reference=None, **asked)
    plan = decide(request)
    losses = score_all(plan.cases, plan.scores)
    for note in [*plan.notes, *losses.notes]:
        typer.echo(f"note: {one_line(note)}", err=True)
    with losses_writer(out) as write:
        write(loss_columns(plan.cases, losses))
    tell_written(out, len(inputs.frame), next(iter(plan.cases.values())).horizon)


score.__doc__ = f"{score.__doc__}\n\n\b{COLUMNS_HELP}"
