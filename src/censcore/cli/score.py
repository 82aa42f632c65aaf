"""``censcore score``: one loss per row, for whatever comes next."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

import censcore as cs
from censcore.cli.law import censoring_of, covariates_of, numbers, words
from censcore.cli.predictions import COLUMNS_HELP, forecasts_of, outcome_of, read_table
from censcore.exceptions import InvalidInputError

__all__ = ["score"]

EPILOG = (
    "Examples:\n\n"
    "  censcore score predictions.csv --time days --event died --out losses.csv\n\n"
    "  censcore score test.csv --train train.csv --time t --event d --scores crps --out losses.parquet\n\n"
    "Exit codes: 0 done, 1 the data or options do not allow it (the message says why), 2 wrong usage."
)


def score(
    predictions: Annotated[Path, typer.Argument(help="Table of outcomes and forecasts, csv or parquet.")],
    time: Annotated[str, typer.Option(help="Column of observed times.")],
    event: Annotated[str, typer.Option(help="Column that is 1 for an event, 0 for a censored time.")],
    out: Annotated[
        Path | None, typer.Option(help="Table of losses to write; printed as csv without it.")
    ] = None,
    train: Annotated[
        Path | None, typer.Option(help="Rows to fit the law of C to; same column names.")
    ] = None,
    censoring: Annotated[
        str, typer.Option(help="Law of C: kaplan-meier, cox, weibull, or none if nothing is censored.")
    ] = "kaplan-meier",
    covariates: Annotated[str | None, typer.Option(help="Columns for the law of C, between commas.")] = None,
    stratify: Annotated[
        str | None, typer.Option(help="Column with one Kaplan-Meier law of C per value.")
    ] = None,
    censoring_time: Annotated[
        str | None, typer.Option(help="Column of censoring times, where they are known for all rows.")
    ] = None,
    scores: Annotated[str, typer.Option(help="Scores between commas.")] = "crps",
    times: Annotated[str | None, typer.Option(help="Evaluation times between commas.")] = None,
    levels: Annotated[str | None, typer.Option(help="Quantile levels between commas.")] = None,
    horizon: Annotated[str, typer.Option(help="End of the scores, or auto.")] = "auto",
    interpolation: Annotated[
        str, typer.Option(help="Survival between the times given: step or linear.")
    ] = "step",
) -> None:
    """Write one loss per row, model and score: columns MODEL__SCORE, or MODEL__SCORE@NUMBER."""
    import pandas as pd

    frame = read_table(predictions)
    training = None
    if train is not None:
        rows = read_table(train)
        training = (covariates_of(rows, words(covariates), stratify), outcome_of(rows, time, event))
    found = cs.compare(
        forecasts_of(frame, interpolation, (time, event)),
        outcome_of(frame, time, event, censoring_time),
        censoring_of(censoring, stratify, censoring_time is not None),
        X=covariates_of(frame, words(covariates), stratify),
        train=training,
        scores=words(scores),
        times=numbers(times, "--times"),
        levels=numbers(levels, "--levels"),
        horizon=horizon if horizon == "auto" else (numbers(horizon, "--horizon") or [0.0])[0],
        reference=None,
        discrimination=False,
        refits=2,
    )
    losses = pd.DataFrame(_columns(found))
    for note in found.notes:
        typer.echo(f"note: {note}", err=True)
    if out is None:
        typer.echo(losses.to_csv(index=False), nl=False)
        return
    _write(losses, out)
    typer.echo(f"written: {out} ({len(losses)} rows, horizon {found.horizon:.6g})", err=True)


def _columns(found: cs.Comparison) -> dict[str, Any]:
    columns = {}
    for (model, name), values in found.losses.values.items():
        kind = next(score for score in found.scores if score.name == name)
        for j, at in enumerate(kind.at(found.cases[model])):
            place = "" if np.isnan(at) else f"@{at:.10g}"
            columns[f"{model}__{name}{place}"] = values[:, j]
    return columns


def _write(losses: Any, out: Path) -> None:
    if out.suffix.lower() in (".parquet", ".pq"):
        losses.to_parquet(out, index=False)
    elif out.suffix.lower() == ".csv":
        losses.to_csv(out, index=False)
    else:
        raise InvalidInputError(f"--out must end in .csv or .parquet; {out} came.")


score.__doc__ = f"{score.__doc__}\n\n\b{COLUMNS_HELP}"
