"""``censcore score``: one loss per subject, as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from censcore.cli import options
from censcore.cli.losses import loss_columns, losses_writer, tell_written
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

__all__ = ["score"]

EPILOG = (
    "Examples:\n\n"
    "  censcore score predictions.csv --time days --event died --out losses.csv\n\n"
    "  censcore score test.csv --train train.csv --time t --event d --scores crps --out losses.parquet\n\n"
    f"{options.EXIT_CODES}"
)


@options.takes_source
def score(
    source: options.Source,
    out: Annotated[
        Path | None, typer.Option(help="Table of losses to write; without it, or with -, printed as csv.")
    ] = None,
    scores: Annotated[str, typer.Option(help="Scores between commas.")] = "crps",
) -> None:
    """Write one loss per subject, model and score: columns MODEL__SCORE, or MODEL__SCORE@NUMBER."""
    asked = source.asked(scores)
    if source.in_batches:
        from censcore.cli.batches import read_batches, score_batches

        score_batches(read_batches(source), out, **asked)
        return
    if source.jobs is not None:
        raise InvalidInputError("--jobs belongs to tables that are read in batches: pass --batch.")
    inputs = source.read()
    from censcore.evaluation.designs.pipeline import Plan
    from censcore.evaluation.inference.mean_losses import score_all  # --help needs none of what it imports
    from censcore.evaluation.plan.request import Request
    from censcore.evaluation.sample import Sample

    sample, training = Sample(inputs.X, inputs.y), None if inputs.train is None else Sample.of(inputs.train)
    request = Request(inputs.forecasts, sample, inputs.censoring, training, reference=None, **asked)
    plan = Plan(request).decide()
    losses = score_all(plan.cases, plan.scores)
    for note in [*plan.notes, *losses.notes]:
        typer.echo(f"note: {one_line(note)}", err=True)
    with losses_writer(out) as write:
        write(loss_columns(plan.cases, losses))
    tell_written(out, len(inputs.frame), plan.horizon)
