"""``censcore compare``: forecasts in a file, compared by every score."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import censcore as cs
from censcore.cli import options
from censcore.cli.predictions import column, name_of
from censcore.exceptions import InvalidInputError
from censcore.files import is_standard_output
from censcore.plain_text import visible

EPILOG = (
    "Examples:\n\n"
    "  censcore compare predictions.parquet --time days --event died\n\n"
    "  censcore compare test.csv --train train.csv --time days --event died --html report.html\n\n"
    "  censcore compare test.csv --time t --event d --censoring cox --covariates age,stage\n\n"
    "  censcore compare test.csv --time days --cause cause --causes relapse,death --train train.csv\n\n"
    "  censcore compare test.csv --lower last_clear --upper found --visits 'visit_*' --train train.csv\n\n"
    "  censcore compare 'predictions/*.parquet' --time days --event died --jobs 8 --store sums\n\n"
    "  censcore compare test.csv --time t --event d --scores brier_score --times 365,730 --json out.json\n\n"
    f"{options.EXIT_CODES}"
)


@options.takes_source
def compare(
    source: options.Source,
    scores: Annotated[
        str | None,
        typer.Option(
            help="Scores between commas; by default the integrated Brier score, CRPS, Brier and log score."
        ),
    ] = None,
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
    time_unit: Annotated[
        str, typer.Option(help="Unit of the times, such as days, for the table, axes and the verdict.")
    ] = "",
    html: Annotated[Path | None, typer.Option(help="Write a self-contained page; - prints it.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the numbers as JSON; - prints them.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder for the sums of finished batches, so that a run that was stopped goes on."),
    ] = None,
) -> None:
    """Compare forecasts by proper scores: means, intervals and paired differences."""
    if _printed(html) and _printed(json):
        raise InvalidInputError("--html and --json: got standard output for both, expected a file for one.")
    subjects: dict[str, Any] = {"by": options.words(by) or None, "groups": groups, "sample_weight": weights}
    if source.in_batches:
        from censcore.cli.batches import read_batches

        inputs = read_batches(source, store, weights, groups)
    else:
        if source.jobs is not None or store is not None:
            raise InvalidInputError(
                "--jobs and --store belong to tables that are read in batches: pass --batch."
            )
        inputs = source.read(weights, groups)
        of = {name: column(inputs.frame, name, "--by").astype(str) for name in options.words(by)}
        subjects["by"] = of or None
        for option, argument in (("--groups", "groups"), ("--weights", "sample_weight")):
            if (name := subjects[argument]) is not None:
                subjects[argument] = column(inputs.frame, name, option)
    comparison = cs.compare(
        inputs.forecasts,
        inputs.y,
        inputs.censoring,
        X=inputs.X,
        train=inputs.train,
        reference=None if reference == "none" else reference,
        progress=not quiet and (not source.in_batches or sys.stderr.isatty()),
        time_unit=time_unit,
        **subjects,
        **source.asked(scores),
    )
    _show(comparison, source.predictions, html, json, quiet)


def _show(
    comparison: cs.Comparison, predictions: Path, html: Path | None, json: Path | None, quiet: bool
) -> None:
    """Write the page and the numbers, and print the table; as messages are where they take the output."""
    if html is not None:
        comparison.to_html(html, title=f"Comparison of forecasts in {name_of(predictions)}")
    if json is not None:
        comparison.to_json(json)
    if not quiet:
        # unlike typer, print asks the stream what to do about signs that its encoding does not have
        aside = sys.stderr if _printed(html) or _printed(json) else sys.stdout
        print(repr(comparison), file=aside)
        for path in (html, json):
            if path is not None and not _printed(path):
                print(visible(f"written: {path}"), file=aside)


def _printed(path: Path | None) -> bool:
    return path is not None and is_standard_output(path)
