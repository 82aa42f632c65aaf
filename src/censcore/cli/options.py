"""The options that commands share, by which a table of predictions is found and read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

import censcore as cs
from censcore.cli.plugins import load_scores
from censcore.cli.predictions import COLUMNS_HELP, is_standard_input, outcome_of, read_table, words
from censcore.exceptions import InvalidInputError
from censcore.files import as_path
from censcore.plain_text import visible

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["EXIT_CODES", "Inputs", "Source", "takes_source", "tell_changes", "words"]

#: Names of estimators of the censoring distribution, known without importing them: --help is fast.
CENSORING_ESTIMATORS = ("kaplan-meier", "cox", "weibull")

#: Those that are regressions.
NEED_COVARIATES = ("cox", "weibull")

LARGE = 50.0  # megabytes in memory above which a file is read in batches; a comparison needs many times it
ROWS = 100_000  # of a batch

EXIT_CODES = (
    "Exit codes: 0 done, 1 the data or options do not allow it (the message says why), 2 wrong usage."
)


def numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers between commas, None for nothing."""
    if text is None:
        return None
    try:
        return [float(word) for word in words(text)]
    except ValueError:
        raise InvalidInputError(
            f"{option} takes numbers between commas, such as 1,2,5; got {text!r}."
        ) from None


class Inputs(NamedTuple):
    """What a table of predictions gives to a comparison; read in batches it has no frame."""

    frame: pd.DataFrame
    forecasts: dict[str, Any]
    y: Any
    censoring: Any
    X: pd.DataFrame | None
    train: Any


#: What every option means.
HELP = {
    "predictions": "Table of outcomes and forecasts, csv or parquet; - for standard input; or a folder or a "
    "quoted pattern of such files, which are read in batches.",
    "time": "Column of observed times, by default time; or pass --lower and --upper.",
    "event": "Column that is 1 for an event, 0 for a censored time, by default event; or pass --cause.",
    "cause": "For competing risks, in place of --event: column with the cause of the event, 1, 2, ..., and 0 "
    "for a censored time; or with the names of --causes and 'censored'.",
    "causes": "Names of the causes 1, 2, ..., between commas, such as relapse,death.",
    "lower": "For interval-censored data, in place of --time and --event: column of the last time at which "
    "the event had not happened; 0 where it was found at the first visit.",
    "upper": "Column of the first time at which the event had happened; missing or inf where it was never "
    "found.",
    "visits": "With --lower and --upper: columns of the examination times between commas, or a pattern such "
    "as 'visit_*'; planned ones included. Without them the log score alone is defined.",
    "train": "Subjects to fit the censoring distribution, and a reference, to; same column names, also those "
    "of weights and groups.",
    "censoring": f"Estimator of the censoring distribution: {', '.join(CENSORING_ESTIMATORS)}, auto "
    "(kaplan-meier, or cox where the --covariates predict censoring), or none if nothing is censored. By "
    "default kaplan-meier. With --lower, --upper and --visits it is for subjects who drop out, by the number "
    "of the visit.",
    "covariates": "Columns for the censoring distribution, between commas; a comparison tests whether they "
    "predict censoring.",
    "stratify": "Column with one Kaplan-Meier censoring distribution per value.",
    "censoring_time": "Column of censoring times, where they are known for all subjects.",
    "entry": "Column of entry times (left truncation); also read from the table of --train.",
    "times": "Evaluation times between commas.",
    "levels": "Quantile levels between commas.",
    "horizon": "End of the scores, or auto.",
    "interpolation": "Survival between the times of sf@ and cdf@ columns: step, linear, or auto: step where "
    "these are the times of the events, linear elsewhere.",
    "tail": "Survival beyond the last time: exponential, infinity (no event), last (all by then), or auto.",
    "repair": "Replace curves that are not monotone by the nearest ones that are, and report it.",
    "batch": "Read the table in batches of so many rows, in bounded memory. By default this is done for "
    f"folders, patterns, with --dask, and for files of more than --memory, {ROWS} rows at a time.",
    "memory": "Megabytes up to which a file is read whole, of its numbers in memory, eight bytes each, "
    "whatever it is compressed to; a comparison needs about fifteen times as much.",
    "jobs": "Processes that score batches at a time.",
    "dask": "Address of a Dask scheduler, such as tcp://10.0.0.1:8786, to score batches on.",
}


@dataclass(frozen=True)
class Source:
    """The files and columns that the options name, and how forecasts and C are read from them; see HELP."""

    predictions: Path
    time: str | None = None
    event: str | None = None
    cause: str | None = None
    causes: str | None = None
    lower: str | None = None
    upper: str | None = None
    visits: str | None = None
    train: Path | None = None
    censoring: str | None = None
    covariates: str | None = None
    stratify: str | None = None
    censoring_time: str | None = None
    entry: str | None = None
    times: str | None = None
    levels: str | None = None
    horizon: str = "auto"
    interpolation: str = "auto"
    tail: str = "auto"
    repair: bool = False
    batch: int | None = None
    memory: float = LARGE
    jobs: int | None = None
    dask: str | None = None

    @cached_property
    def in_batches(self) -> bool:
        """Whether the table is read in batches rather than whole."""
        path = self.predictions
        if self.batch is not None or self.dask is not None or any(sign in str(path) for sign in "*?["):
            return True
        if is_standard_input(path) or path.is_fifo() or not path.exists():
            return False
        return path.is_dir() or self._is_large()

    def _is_large(self) -> bool:
        """Whether a file needs much memory and can be read in batches; either is told."""
        from censcore.tables import memory_of  # --help needs none of what it imports

        if (size := memory_of(self.predictions) / 1e6) <= self.memory:
            return False
        told = f"note: {self.predictions} takes {size:.0f} MB when it is decoded"
        if why := self._only_whole:
            told = f"{told}, and is read whole: {why} A comparison needs about fifteen times as much."
        else:
            told = f"{told}, more than --memory {self.memory:g}: it is read in batches of {ROWS} rows."
        typer.echo(visible(told), err=True)
        return not why

    @property
    def _only_whole(self) -> str:
        """Why a table is not read in batches unless that is asked for; empty where it is."""
        if self.intervals:
            return "intervals are compared in memory."
        if self.named in NEED_COVARIATES:
            return (
                "" if self.train else f"--censoring {self.named} is fitted to all subjects, without --train."
            )
        tested = self.named == "auto" or self.covariates is not None
        return "whether covariates predict censoring is tested with all subjects." if tested else ""

    def __post_init__(self) -> None:
        """Without any columns of the outcome these are called time and event."""
        for option, path in (("the table", self.predictions), ("--train", self.train)):
            if path is not None:
                as_path(path, option)
        if not self.intervals:
            object.__setattr__(self, "time", "time" if self.time is None else self.time)
            if self.event is None and self.cause is None:
                object.__setattr__(self, "event", "event")

    @property
    def intervals(self) -> bool:
        """Whether the outcome is interval-censored."""
        return self.lower is not None or self.upper is not None

    @property
    def names(self) -> list[str]:
        """Names of the causes 1, 2, ..."""
        return words(self.causes)

    @property
    def used(self) -> tuple[str, ...]:
        """The columns of the outcome, but for the visits."""
        columns = (self.time, self.event, self.cause, self.entry, self.lower, self.upper, self.censoring_time)
        return tuple(name for name in columns if name is not None)

    @property
    def reading(self) -> dict[str, Any]:
        """How forecasts are read."""
        return {"interpolation": self.interpolation, "tail": self.tail, "repair": self.repair}

    def asked(self, scores: str | None) -> dict[str, Any]:
        """What is computed, as arguments of a comparison; without scores its default ones."""
        arguments: dict[str, Any] = {"horizon": self.horizon}
        if self.horizon != "auto":
            arguments["horizon"] = (numbers(self.horizon, "--horizon") or [0.0])[0]
        if scores is not None:
            arguments["scores"] = words(scores)
            load_scores(arguments["scores"])
        return arguments | {
            "times": numbers(self.times, "--times"),
            "levels": numbers(self.levels, "--levels"),
        }

    @property
    def named(self) -> str:
        """What ``--censoring`` names, or its default."""
        if self.censoring is not None:
            return self.censoring
        return "none" if self.intervals and self.stratify is None else "kaplan-meier"

    def estimator(self) -> Any:
        """The estimator that ``--censoring`` names; None where the censoring times are known."""
        name = self.named
        if self.censoring_time is not None:
            return None
        if name not in (*CENSORING_ESTIMATORS, "auto", "none"):
            expected = ", ".join([*CENSORING_ESTIMATORS, "auto", "none"])
            raise InvalidInputError(f"--censoring must be one of {expected}; got {name!r}.")
        if self.stratify is not None and name != "kaplan-meier":
            raise InvalidInputError(f"--stratify belongs to --censoring kaplan-meier; got {name!r}.")
        if name in ("none", "auto"):
            return None if name == "none" else name
        from censcore.estimators.censoring.censoring_choice import censoring_estimator

        return censoring_estimator(name, stratify=self.stratify)

    def covariates_of(self, frame: pd.DataFrame) -> pd.DataFrame | None:
        """The columns that a censoring distribution needs; None for none."""
        from censcore.tables import check_columns  # --help needs none of what it imports

        stratify = [] if self.stratify is None else [self.stratify]
        wanted = list(dict.fromkeys([*words(self.covariates), *stratify]))
        check_columns(wanted, list(frame.columns), "--covariates")
        return frame[wanted] if wanted else None

    def training(self, weights: str | None = None, groups: str | None = None) -> cs.Sample | None:
        """The subjects of the file of ``--train``, with columns of their weights and groups; None without."""
        if self.train is None:
            return None
        frame = read_table(self.train)
        missing = [name for name in (weights, groups) if name is not None and name not in frame.columns]
        if missing:
            raise InvalidInputError(
                f"--train {self.train}: there is no column {', '.join(missing)}, which --weights or --groups "
                "names. Training subjects have weights and groups as the scored ones do: add the column, "
                "with the weight 1 where all count alike, and a label for each independent subject."
            )
        y = outcome_of(frame, replace(self, censoring_time=None))
        values = (None if name is None else frame[name].to_numpy() for name in (weights, groups))
        return cs.Sample(self.covariates_of(frame), y, *values)

    def read(self, weights: str | None = None, groups: str | None = None) -> Inputs:
        """Read the files whole; the names are columns of the training subjects too."""
        from censcore.evaluation.decisions.forecast_columns import (
            forecasts_of,  # --help needs none of its imports
        )

        if self.train is not None and is_standard_input(self.train) and is_standard_input(self.predictions):
            raise InvalidInputError(
                "got standard input for the table and for --train, expected a file for one of them."
            )
        frame = read_table(self.predictions)
        X, y = self.covariates_of(frame), outcome_of(frame, self)
        training, estimator = self.training(weights, groups), self.estimator()
        if self.named in NEED_COVARIATES and estimator is not None:
            if X is None:
                raise InvalidInputError(
                    f"--censoring {self.named}: got no --covariates, expected the columns that the censoring "
                    "time may depend on, between commas. Without any use --censoring kaplan-meier."
                )
            tell_changes(*([X] if training is None else [X, training.X]))
        risks = y if isinstance(y, cs.CompetingRisks) else None
        forecasts = forecasts_of(frame, self.used, risks, **self.reading)
        return Inputs(frame, forecasts, y, estimator, X, training)


def takes_source(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of :class:`Source` as options, from which its first argument is made."""
    shared = {}
    for name, part in signature(Source, eval_str=True).parameters.items():
        option: Any = typer.Argument if part.default is Parameter.empty else typer.Option
        shared[name] = part.replace(annotation=Annotated[part.annotation, option(help=HELP[name])])
    own = list(signature(command, eval_str=True).parameters.values())[1:]

    def run(**options_given: Any) -> None:
        command(Source(**{name: options_given.pop(name) for name in shared}), **options_given)

    options = [part.replace(kind=Parameter.KEYWORD_ONLY) for part in (*shared.values(), *own)]
    run.__signature__ = Signature(options)  # type: ignore[attr-defined]
    run.__annotations__ = {part.name: part.annotation for part in options}
    run.__name__, run.__doc__ = command.__name__, f"{command.__doc__}\n\n\b{COLUMNS_HELP}"
    return run


def tell_changes(*tables: Any) -> None:
    """What a regression of the censoring time makes of text and of missing numbers."""
    first = tables[0]
    text = [name for name in first if any(table[name].dtype.kind not in "biuf" for table in tables)]
    gaps = [name for name in first if any(table[name].isna().any() for table in tables)]
    changed = [f"text in {', '.join(text)} became indicators"] * bool(text)
    if numbers := sorted(set(gaps) - set(text)):
        changed.append(f"missing numbers in {', '.join(numbers)} the median")
    if changed:
        note = f"note: covariates of the censoring distribution: {' and '.join(changed)}."
        typer.echo(visible(note), err=True)
