"""``censcore compare``: forecasts in a file, compared by every score."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import censcore as cs
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
    Store,
    Stratify,
    Tail,
    Time,
    Times,
    TimeUnit,
    Upper,
    Visits,
    horizon_of,
    numbers,
    outcome_columns,
    read_inputs,
    reads_batches,
    score_names,
    words,
)
from censcore.cli.predictions import COLUMNS_HELP, column, name_of
from censcore.exceptions import InvalidInputError
from censcore.files import is_standard_output
from censcore.plain_text import visible

__all__ = ["compare"]

EPILOG = (
    "Examples:\n\n"
    "  censcore compare predictions.parquet --time days --event died\n\n"
    "  censcore compare test.csv --train train.csv --time days --event died --html report.html\n\n"
    "  censcore compare test.csv --time t --event d --censoring cox --covariates age,stage\n\n"
    "  censcore compare test.csv --time days --cause cause --causes relapse,death --train train.csv\n\n"
    "  censcore compare test.csv --lower last_clear --upper found --visits 'visit_*' --train train.csv\n\n"
    "  censcore compare 'predictions/*.parquet' --time days --event died --jobs 8 --store sums\n\n"
    "  censcore compare test.csv --time t --event d --scores brier_score --times 365,730 --json out.json\n\n"
    f"{EXIT_CODES}"
)


def compare(
    predictions: Predictions,
    time: Time = None,
    event: Event = None,
    cause: Cause = None,
    causes: Causes = None,
    lower: Lower = None,
    upper: Upper = None,
    visits: Visits = None,
    train: Annotated[
        Path | None,
        typer.Option(help="Subjects to fit the censoring distribution and the reference to; same columns."),
    ] = None,
    censoring: CensoringDistribution = None,
    covariates: Annotated[
        str | None,
        typer.Option(
            help="Columns for the censoring distribution, and to test whether they predict censoring."
        ),
    ] = None,
    stratify: Stratify = None,
    censoring_time: CensoringTime = None,
    entry: Entry = None,
    scores: Annotated[
        str | None,
        typer.Option(
            help="Scores between commas; by default the integrated Brier score, CRPS, Brier and log score."
        ),
    ] = None,
    times: Times = None,
    levels: Levels = None,
    horizon: Annotated[str, typer.Option(help="End of the comparison, or auto.")] = "auto",
    reference: Annotated[
        str,
        typer.Option(
            help="What skill is measured against: kaplan-meier (aalen-johansen with --cause, turnbull with "
            "--lower; fitted to --train), a model, or none."
        ),
    ] = "kaplan-meier",
    by: Annotated[str | None, typer.Option(help="Columns of subgroups, between commas.")] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of labels of subjects that depend on each other.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of weights.")] = None,
    interpolation: Interpolation = "auto",
    tail: Tail = "auto",
    repair: Repair = False,
    time_unit: TimeUnit = "",
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page; - prints it.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers as JSON; - prints them.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
    batch: Batch = None,
    jobs: Jobs = None,
    dask: Dask = None,
    store: Store = None,
) -> None:
    """Compare forecasts by proper scores: means, intervals and paired differences."""
    columns = outcome_columns(time, event, cause, causes, entry, lower, upper, visits)
    if _printed(html) and _printed(json):
        raise InvalidInputError("--html and --json: got standard output for both, expected a file for one.")
    if reads_batches(predictions, batch, dask):
        from censcore.cli.batches import compare_batches

        found = compare_batches(
            predictions, columns, batch=batch, dask=dask, train=train, censoring=censoring,
            covariates=covariates, stratify=stratify, censoring_time=censoring_time,
            reading={"interpolation": interpolation, "tail": tail, "repair": repair},
            scores=scores, times=times, levels=levels, horizon=horizon, reference=reference, by=by,
            groups=groups, weights=weights, progress=not quiet, jobs=jobs, store=store,
            time_unit=time_unit,
        )  # fmt: skip
        _show(found, predictions, html, json, quiet)
        return
    if jobs is not None or store is not None:
        raise InvalidInputError("--jobs and --store belong to tables that are read in batches: pass --batch.")
    inputs = read_inputs(
        predictions, columns, train=train,
        censoring=censoring, covariates=covariates, stratify=stratify, censoring_time=censoring_time,
        interpolation=interpolation, tail=tail, repair=repair,
    )  # fmt: skip
    from censcore.evaluation.measures.case_scores import (
        DEFAULT_SCORES,  # --help needs none of what it imports
    )

    found = cs.compare(
        inputs.forecasts,
        inputs.y,
        inputs.censoring,
        X=inputs.X,
        train=inputs.train,
        reference=None if reference == "none" else reference,
        horizon=horizon_of(horizon),
        times=numbers(times, "--times"),
        levels=numbers(levels, "--levels"),
        by={name: column(inputs.frame, name, "--by").astype(str) for name in words(by)} or None,
        groups=None if groups is None else column(inputs.frame, groups, "--groups"),
        sample_weight=None if weights is None else column(inputs.frame, weights, "--weights"),
        progress=not quiet,
        time_unit=time_unit,
        scores=DEFAULT_SCORES if scores is None else score_names(scores),
    )
    _show(found, predictions, html, json, quiet)


def _show(found: cs.Comparison, predictions: Path, html: Path | None, json: Path | None, quiet: bool) -> None:
    """Write the page and the numbers, and print the table; as messages are where they take the output."""
    if html is not None:
        found.to_html(html, title=f"Comparison of forecasts in {name_of(predictions)}")
    if json is not None:
        found.to_json(json)
    if not quiet:
        # unlike typer, print asks the stream what to do about signs that its encoding does not have
        aside = sys.stderr if _printed(html) or _printed(json) else sys.stdout
        print(repr(found), file=aside)
        for path in (html, json):
            if path is not None and not _printed(path):
                print(visible(f"written: {path}"), file=aside)


def _printed(path: Path | None) -> bool:
    return path is not None and is_standard_output(path)


compare.__doc__ = f"{compare.__doc__}\n\n\b{COLUMNS_HELP}"
