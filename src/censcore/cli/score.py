"""``censcore score``: one loss per subject, as a table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeAlias

import typer

from censcore.cli import options
from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.files import is_standard_output, is_stream, partial_file
from censcore.plain_text import one_line, visible

if TYPE_CHECKING:
    import numpy as np

Losses: TypeAlias = "Mapping[str, np.ndarray]"

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
    from censcore.evaluation.decisions.asked import read
    from censcore.evaluation.decisions.decide import decide
    from censcore.evaluation.inference.mean_losses import (
        notes_on_unavailable,  # --help needs none of what it imports
    )
    from censcore.evaluation.sample import Sample

    sample, options = Sample(inputs.X, inputs.y), asked | {"reference": None}
    decisions, cases = decide(read(inputs.forecasts, sample, inputs.censoring, inputs.train, **options))
    columns, unavailable = loss_columns(cases, decisions.scores)
    for note in [*decisions.notes, *notes_on_unavailable(unavailable)]:
        typer.echo(f"note: {one_line(note)}", err=True)
    with losses_writer(out) as write:
        write(columns)
    tell_written(out, len(inputs.frame), decisions.horizon)


# ---- where losses go: a table that is complete or not there, a pipe, or standard output ----------------


def loss_columns(
    cases: Mapping[str, Any], scores: Sequence[Any]
) -> tuple[dict[str, Any], dict[tuple[str, str], str]]:
    """Losses by column, MODEL__SCORE, with @PLACE for a time or level; and why some are missing."""
    from censcore.evaluation.inference.mean_losses import score_case

    columns, unavailable = {}, {}
    for model, case in cases.items():
        scored = score_case(case, scores)
        unavailable.update({(model, name): why for name, why in scored.unavailable.items()})
        for score in scores:
            for j, at in enumerate(score.at(case) if score.name in scored.losses else ()):
                place = "" if math.isnan(at) else f"@{at:.10g}"
                columns[f"{model}__{score.name}{place}"] = scored.losses[score.name][:, j]
    return columns, unavailable


@contextmanager
def losses_writer(out: Path | None) -> Iterator[Callable[[Losses], None]]:
    """What appends losses to the table ``out``, or to standard output."""
    place = Path("-") if out is None else out
    ending = place.suffix.lower()
    if ending not in (".parquet", ".pq", ".csv") and not is_stream(place):
        raise InvalidInputError(f"--out must end in .csv or .parquet; got {place}.")
    with partial_file(place) as file:
        writer = (_ParquetWriter if ending in (".parquet", ".pq") else _CsvWriter)(file)
        try:
            yield writer
        finally:
            writer.close()


def tell_written(out: Path | None, n: int, horizon: float) -> None:
    """Say where the losses are, unless they were printed."""
    if out is not None and not is_standard_output(out):
        typer.echo(visible(f"written: {out} ({n} subjects, horizon {horizon:.6g})"), err=True)


class _CsvWriter:
    """Appends lines; the names come first."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.names = file, list[str]()

    def __call__(self, losses: Losses) -> None:
        import pandas as pd

        first = not self.names
        self.names = self.names or list(losses)
        if losses:
            _check_names(self.names, losses)
            text = pd.DataFrame(losses).to_csv(index=False, header=first)
            # into files and pipes as it is
            self.file.write((visible(text) if self.file.isatty() else text).encode())

    def close(self) -> None:
        """There is no footer."""


class _ParquetWriter:
    """Appends row groups."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.table: Any = None

    def __call__(self, losses: Losses) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ModuleNotFoundError as error:
            raise MissingPackageError("Parquet needs pyarrow: pip install 'censcore[cli]'.") from error
        if not losses:
            return
        rows: Any = pa.table(dict(losses))
        if self.table is None:
            self.table = pq.ParquetWriter(self.file, rows.schema)
        _check_names(self.table.schema.names, losses)
        self.table.write_table(rows)

    def close(self) -> None:
        """Write what the file ends with."""
        if self.table is not None:
            self.table.close()


def _check_names(names: list[str], losses: Losses) -> None:
    missing = [name for name in names if name not in losses]
    if missing:
        raise InvalidInputError(
            f"{', '.join(missing)}: not available for all subjects. Leave out the score, or pass a shorter "
            "--horizon."
        )
