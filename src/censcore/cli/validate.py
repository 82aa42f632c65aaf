"""``censcore validate`` and ``censcore pool``: one model on one table, and summaries of several sites."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import censcore as cs
from censcore.cli import options
from censcore.cli.predictions import column, name_of, outcome_of, read_table, words
from censcore.exceptions import InvalidInputError
from censcore.files import is_standard_output
from censcore.plain_text import visible

EPILOG = (
    "Examples:\n\n"
    "  censcore validate data.csv --time-column years --event died --risk risk@5 --time 5 --out page.html\n\n"
    "  censcore validate data.csv --time-column t --event e --risk old,new --time 5 --thresholds 0.1,0.2\n\n"
    "  censcore validate data.csv --time-column t --event e --risk risk --time 5 --summary site.json\n\n"
    "  censcore pool site*.json\n\n"
    f"{options.EXIT_CODES}"
)


def validate(
    table: Annotated[Path, typer.Argument(help="Outcomes and risks, csv or parquet; - for standard input.")],
    time: Annotated[float, typer.Option(help="The time by which the risks are of the event.")],
    time_column: Annotated[str, typer.Option(help="Column of observed times.")] = "time",
    event: Annotated[
        str | None, typer.Option(help="Column that is 1 for an event, 0 for a censored time.")
    ] = None,
    cause: Annotated[str | None, typer.Option(help=options.HELP["cause"])] = None,
    causes: Annotated[str | None, typer.Option(help=options.HELP["causes"])] = None,
    risk: Annotated[
        str | None,
        typer.Option(
            help="Columns of risks by --time, between commas, each a model; NAME@NUMBER must name that time. "
            "Without it the columns MODEL__KIND@NUMBER are read."
        ),
    ] = None,
    entry: Annotated[str | None, typer.Option(help="Column of entry times (left truncation).")] = None,
    censoring: Annotated[str | None, typer.Option(help=options.HELP["censoring"])] = None,
    covariates: Annotated[
        str | None, typer.Option(help="Columns for the censoring distribution and the characteristics.")
    ] = None,
    stratify: Annotated[str | None, typer.Option(help=options.HELP["stratify"])] = None,
    thresholds: Annotated[
        str | None, typer.Option(help="Risks above which one would act, between commas, for net benefit.")
    ] = None,
    method: Annotated[str, typer.Option(help="Of intercept and slope: binomial or pseudo.")] = "binomial",
    by: Annotated[str | None, typer.Option(help="Columns of subgroups, between commas.")] = None,
    sites: Annotated[str | None, typer.Option(help="Column of sites, which are pooled.")] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column of labels of subjects that depend on each other.")
    ] = None,
    weights: Annotated[str | None, typer.Option(help="Column of weights.")] = None,
    time_unit: Annotated[str, typer.Option(help="Unit of the times, such as years.")] = "",
    out: Annotated[
        Path | None,
        typer.Option(help="Write a page, or by its ending a table: .html, .csv, .tex, .md or .docx."),
    ] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Write estimates, errors and counts for censcore pool: no subject.")
    ] = None,
    site: Annotated[str, typer.Option(help="Name of this site in --summary.")] = "",
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Validate risks of an event by a time: calibration, discrimination, net benefit."""
    _check_ending(out)
    frame = read_table(table)
    source = options.Source(
        table, time_column, event if event or cause else "event", cause, causes, censoring=censoring,
        covariates=covariates, stratify=stratify, entry=entry,
    )  # fmt: skip
    X, y = source.covariates_of(frame), outcome_of(frame, source)
    if source.named in options.NEED_COVARIATES and X is None:
        raise InvalidInputError(f"--censoring {source.named}: got no --covariates, expected some.")
    found = cs.validate(
        _forecasts(frame, source, risk, time),
        y,
        source.estimator(),
        X=X,
        time=time,
        thresholds=options.numbers(thresholds, "--thresholds"),
        method=method,
        by={name: column(frame, name, "--by").astype(str) for name in words(by)} or None,
        sites=None if sites is None else column(frame, sites, "--sites").astype(str),
        groups=None if groups is None else column(frame, groups, "--groups"),
        sample_weight=None if weights is None else column(frame, weights, "--weights"),
        time_unit=time_unit,
        progress=not quiet,
    )
    if out is not None:
        _write(found, out, name_of(table))
    if summary is not None:
        found.summary(site or table.stem, summary)
    _tell(found, quiet, out, summary)


def pool(
    summaries: Annotated[list[Path], typer.Argument(help="Files that censcore validate --summary wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the lines of all sites as csv; - prints them.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing.")] = False,
) -> None:
    """Pool validations of several sites by random effects, from their summaries alone."""
    found = cs.pool_sites(list(summaries))
    if out is not None:
        from censcore.files import write_atomically

        write_atomically(out, found.frame().to_csv(index=False))
    _tell(found, quiet, out)


def _forecasts(frame: Any, source: options.Source, risk: str | None, time: float) -> dict[str, Any]:
    """Forecasts by model: columns of risks, or those that say in their names what they are."""
    if risk is None:
        from censcore.evaluation.decisions.forecast_columns import forecasts_of

        y = outcome_of(frame, source)
        return forecasts_of(
            frame, source.used, y if isinstance(y, cs.CompetingRisks) else None, **source.reading
        )
    if source.cause is not None:
        raise InvalidInputError(
            "--risk belongs to --event: with --cause the columns MODEL__cif_CAUSE@NUMBER hold the risks."
        )
    forecasts = {}
    for name in words(risk):
        model, _, number = name.rpartition("@")
        if number and model and options.numbers(number, f"--risk {name}") != [time]:
            raise InvalidInputError(f"--risk {name}: got the time {number}, expected --time {time:g}.")
        forecasts[model or name] = cs.as_forecast(
            1 - column(frame, name, "--risk").astype(float), times=time, n=len(frame)
        )
    return forecasts


ENDINGS = (".html", ".csv", ".tex", ".md", ".docx")


def _check_ending(out: Path | None) -> None:
    if out is not None and not is_standard_output(out) and out.suffix.lower() not in ENDINGS:
        raise InvalidInputError(f"--out must end in {', '.join(ENDINGS)}; got {out}.")


def _write(found: cs.Validation, out: Path, table: str) -> None:
    write: dict[str, Any] = {
        ".csv": found.to_csv, ".tex": found.to_latex, ".md": found.to_markdown, ".docx": found.to_word,
    }  # fmt: skip
    if out.suffix.lower() in write:
        write[out.suffix.lower()](out)
    else:
        found.to_html(out, title=f"Validation of {', '.join(found.models)} in {table}")


def _tell(found: Any, quiet: bool, *written: Path | None) -> None:
    """Print what was found; as messages where something else takes the output."""
    if quiet:
        return
    taken = any(path is not None and is_standard_output(path) for path in written)
    aside = sys.stderr if taken else sys.stdout
    print(repr(found), file=aside)
    for path in written:
        if path is not None and not is_standard_output(path):
            print(visible(f"written: {path}"), file=aside)
