"""Tables that are read in batches: comparisons, and losses written batch by batch."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

import censcore as cs
from censcore._validation import as_count
from censcore.cli.options import NEED_COVARIATES, ROWS, Inputs, Source, tell_changes
from censcore.cli.predictions import check_options, is_standard_input, outcome_of, words
from censcore.cli.score import loss_columns, losses_writer, tell_written
from censcore.evaluation.decisions.asked import read
from censcore.evaluation.decisions.forecast_columns import column_forecasts
from censcore.evaluation.parts.batches.decisions import decide_table
from censcore.evaluation.parts.batches.phases import Task
from censcore.evaluation.parts.batches.runners import Runner, cluster
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.files import is_standard_output
from censcore.plain_text import one_line
from censcore.tables import MOST_ROWS, batches_of


@dataclass(frozen=True)
class _Outcome:
    """What reads the outcome of the rows of a batch, as that of a whole file is read."""

    source: Source

    @classmethod
    def of(cls, source: Source) -> _Outcome:
        """Keep the columns alone: stored sums do not depend on files, nor on how many processes read them."""
        return cls(
            replace(source, predictions=Path(), train=None, batch=None, memory=0, jobs=None, dask=None)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that it needs."""
        return self.source.used

    def __call__(self, frame: Any) -> Any:
        """The outcome of some rows."""
        return outcome_of(frame, self.source, part=True)


def read_batches(
    source: Source, store: Path | None = None, weights: str | None = None, groups: str | None = None
) -> Inputs:
    """The table and forecasts of a source; what cannot be read in batches is an error."""
    batch = source.batch
    _check_files(source.predictions)
    check_options(source)
    if source.intervals:
        raise InvalidInputError(
            "--lower, --upper: intervals are compared in memory, not in batches. Leave out --batch and "
            "--dask, and pass one file."
        )
    rows = as_count(ROWS if batch is None else batch, "--batch", most=MOST_ROWS)
    table = cs.OutcomeTable(
        str(source.predictions), rows=rows, dask=source.dask, outcome=_Outcome.of(source),
        n_jobs=source.jobs, store=store,
    )  # fmt: skip
    estimator = source.estimator()
    there = next(iter(batches_of(table.data, table.rows))).names()
    forecasts = column_forecasts(there, source.used, **source.reading)
    train: Any = None
    if source.named in NEED_COVARIATES and estimator is not None:
        train = _training(source, weights, groups)
        tell_changes(train.X)
    elif source.covariates is not None:
        raise InvalidInputError(
            f"--covariates with --censoring {source.named}: whether covariates predict censoring is tested "
            "with all subjects in memory. For a table read in batches pass --censoring cox, or leave them "
            "out."
        )
    elif source.train is not None:
        _check_files(source.train)
        if weights or groups:  # counts of outcomes show neither
            return Inputs(None, dict(forecasts), table, estimator, None, source.training(weights, groups))
        outcome = _Outcome.of(replace(source, censoring_time=None))
        train = cs.OutcomeTable(str(source.train), rows=table.rows, outcome=outcome)
    return Inputs(None, dict(forecasts), table, estimator, None, train)


def _check_files(path: Path) -> None:
    if is_standard_input(path) or path.is_fifo():
        raise InvalidInputError(
            f"{path}: standard input is read whole, and so are pipes. Leave out --batch and --dask, or pass "
            "a file."
        )


def _training(source: Source, weights: str | None, groups: str | None) -> cs.Sample:
    """Covariates and outcomes, in memory, that a regression of the censoring time is fitted to."""
    training = source.training(weights, groups) if words(source.covariates) else None
    if training is None:
        missing = "--train" if source.train is None else "--covariates"
        raise InvalidInputError(
            f"--censoring {source.named}: got no {missing}, expected --train FILE, a table that fits into "
            "memory, and --covariates, the columns that the censoring time may depend on."
        )
    return training


@dataclass(frozen=True, eq=False)
class _Losses:
    """The task of a batch: its losses, by column."""

    task: Task

    def __call__(self, batch: Any) -> dict[str, np.ndarray]:
        """Columns of losses, in the order of the rows."""
        parts = [loss_columns(of.cases, self.task.scores)[0] for of in self.task.read(batch)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def score_batches(inputs: Inputs, out: Path | None, **asked: Any) -> None:
    """Write the losses of a table that is read in batches, batch by batch."""
    table: cs.OutcomeTable = inputs.y
    with cluster(table.dask) as client, losses_writer(out) as write:
        printed = out is None or is_standard_output(out)
        runner = Runner(table.n_jobs, client, progress=sys.stderr.isatty() and not printed)
        sample = Sample(None, table)
        options = asked | {"reference": None}
        given = read(inputs.forecasts, sample, inputs.censoring, inputs.train, **options)
        ready = decide_table(given, runner)
        for note in ready.decided.notes:
            typer.echo(f"note: {one_line(note)}", err=True)
        for losses in runner.each(_Losses(ready.task), ready.batches, "scoring"):
            write(losses)
    tell_written(out, ready.counted.n, ready.decided.horizon)
