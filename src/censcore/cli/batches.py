"""Tables that are read in batches: comparisons, and losses written batch by batch."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

import censcore as cs
from censcore.cli.losses import loss_columns, losses_writer, tell_written
from censcore.cli.options import (
    NEED_COVARIATES,
    ROWS,
    censoring_of,
    horizon_of,
    named_censoring,
    numbers,
    prepared,
    score_names,
    training_subjects,
    words,
)
from censcore.cli.predictions import OutcomeColumns, check_options, is_standard_input, outcome_of
from censcore.evaluation.designs.batches.decisions import prepare
from censcore.evaluation.designs.batches.runners import Runner, cluster
from censcore.evaluation.designs.batches.table_plan import Plan, Rows
from censcore.evaluation.inference.losses import score_all
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.plan.forecast_columns import column_forecasts
from censcore.evaluation.plan.request import Request
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.files import is_standard_output
from censcore.plain_text import one_line
from censcore.tables import batches_of, column_names

__all__ = ["compare_batches", "score_batches"]


@dataclass(frozen=True)
class _Outcome:
    """What reads the outcome of the rows of a batch, as that of a whole file is read."""

    named: OutcomeColumns
    censoring_time: str | None

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that it needs."""
        return (*self.named.used, *(() if self.censoring_time is None else (self.censoring_time,)))

    def __call__(self, frame: Any) -> Any:
        """The outcome of some rows."""
        return outcome_of(frame, self.named, self.censoring_time, part=True)


def _table(
    predictions: Path,
    columns: OutcomeColumns,
    batch: int | None,
    dask: str | None,
    censoring_time: str | None,
) -> cs.OutcomeTable:
    """The table; what cannot be read in batches is an error."""
    check_options(columns, censoring_time)
    if columns.intervals:
        raise InvalidInputError(
            "--lower, --upper: intervals are compared in memory, not in batches. Leave out --batch and "
            "--dask, and pass one file."
        )
    if batch is not None and batch < 1:
        raise InvalidInputError(f"--batch: got {batch}, expected a number of rows, at least 1.")
    outcome = _Outcome(columns, censoring_time)
    return cs.OutcomeTable(str(predictions), rows=batch or ROWS, dask=dask, outcome=outcome)


def _inputs(
    predictions: Path,
    columns: OutcomeColumns,
    *,
    batch: int | None,
    dask: str | None,
    train: Path | None,
    censoring: str | None,
    covariates: str | None,
    stratify: str | None,
    censoring_time: str | None,
    reading: dict[str, Any],
) -> tuple[dict[str, Any], cs.OutcomeTable, Any, Any]:
    """Forecasts, table, censoring distribution and training subjects."""
    _check_files(predictions)
    table = _table(predictions, columns, batch, dask, censoring_time)
    censoring = named_censoring(censoring, columns, stratify)
    estimator = censoring_of(censoring, stratify, censoring_time is not None)
    there = column_names(batches_of(table.data, table.rows))
    forecasts = column_forecasts(there, columns.used, **reading)
    fitted_to: Any = None
    if censoring in NEED_COVARIATES and estimator is not None:
        fitted_to = _training(train, columns, covariates, censoring)
        estimator.set_params(estimator=prepared(estimator.estimator, fitted_to[0]))
    elif covariates is not None:
        raise InvalidInputError(
            f"--covariates with --censoring {censoring}: whether covariates predict censoring is tested with "
            "all subjects in memory. For a table read in batches pass --censoring cox, or leave them out."
        )
    elif train is not None:
        _check_files(train)
        fitted_to = replace(table, data=str(train), outcome=_Outcome(columns, None), dask=None)
    return dict(forecasts), table, estimator, fitted_to


def _check_files(path: Path) -> None:
    if is_standard_input(path) or path.is_fifo():
        raise InvalidInputError(
            f"{path}: standard input is read whole, and so are pipes. Leave out --batch and --dask, or pass "
            "a file."
        )


def _training(
    train: Path | None, columns: OutcomeColumns, covariates: str | None, censoring: str
) -> tuple[Any, Any]:
    """Covariates and outcomes, in memory, that a regression of the censoring time is fitted to."""
    if train is None or not words(covariates):
        missing = "--train" if train is None else "--covariates"
        raise InvalidInputError(
            f"--censoring {censoring}: got no {missing}, expected --train FILE, a table that fits into "
            "memory, and --covariates, the columns that the censoring time may depend on."
        )
    found = training_subjects(train, columns, covariates, None)
    assert found is not None
    return found


def compare_batches(
    predictions: Path,
    columns: OutcomeColumns,
    *,
    scores: str | None,
    times: str | None,
    levels: str | None,
    horizon: str,
    reference: str,
    by: str | None,
    groups: str | None,
    weights: str | None,
    progress: bool,
    time_unit: str,
    jobs: int | None,
    store: Path | None,
    **inputs: Any,
) -> cs.Comparison:
    """The comparison of a table that is read in batches."""
    forecasts, table, C, train = _inputs(predictions, columns, **inputs)
    return cs.compare(
        forecasts,
        replace(table, n_jobs=jobs, store=store),
        C,
        train=train,
        reference=None if reference == "none" else reference,
        horizon=horizon_of(horizon),
        times=numbers(times, "--times"),
        levels=numbers(levels, "--levels"),
        by=words(by) or None,
        groups=groups,
        sample_weight=weights,
        progress=progress and sys.stderr.isatty(),
        time_unit=time_unit,
        scores=DEFAULT_SCORES if scores is None else score_names(scores),
    )


@dataclass(frozen=True, eq=False)
class _Losses:
    """The task of a batch: its losses, by column."""

    plan: Plan

    def __call__(self, batch: Any) -> dict[str, np.ndarray]:
        """Columns of losses, in the order of the rows."""
        parts = [self._of(rows) for rows in self.plan.read(batch)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}

    def _of(self, rows: Rows) -> dict[str, np.ndarray]:
        cases = self.plan.cases(rows)
        return loss_columns(cases, score_all(dict(cases), self.plan.scores))


def score_batches(
    predictions: Path,
    columns: OutcomeColumns,
    out: Path | None,
    *,
    scores: str,
    times: str | None,
    levels: str | None,
    horizon: str,
    jobs: int | None,
    **inputs: Any,
) -> None:
    """Write the losses of a table that is read in batches, batch by batch."""
    forecasts, table, C, train = _inputs(predictions, columns, **inputs)
    with cluster(table.dask) as client, losses_writer(out) as write:
        printed = out is None or is_standard_output(out)
        runner = Runner(jobs, client, progress=sys.stderr.isatty() and not printed)
        asked = Request(
            forecasts, Sample(None, table), C, train, scores=score_names(scores), reference=None,
            horizon=horizon_of(horizon), times=numbers(times, "--times"), levels=numbers(levels, "--levels"),
        )  # fmt: skip
        ready = prepare(runner, asked)
        for note in ready.notes:
            typer.echo(f"note: {one_line(note)}", err=True)
        for losses in runner.each(_Losses(ready.plan), ready.batches, "scoring"):
            write(losses)
    tell_written(out, ready.counts.n, ready.plan.horizon)
