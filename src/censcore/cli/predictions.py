"""Tables of predictions: which columns are what."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.plain_text import some_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from censcore.cli.options import Source

COLUMNS_HELP = """
Each row is a subject. Columns of forecasts are named MODEL__KIND@NUMBER:

    cox__sf@365, cox__sf@730        survival probabilities P(T > time)
    cox__cdf@365                    or P(T <= time)
    qrf__q@0.25, qrf__q@0.5         quantiles of T at levels
    engression__sample@1 ...        draws from the forecast
    cox__cif_death@365              with --cause: P(T <= time, cause death), for every cause

One file may hold several models; without MODEL__ the model is called "forecast".
"""


def words(text: str | None) -> list[str]:
    """Words between commas."""
    return [] if text is None else [word.strip() for word in text.split(",") if word.strip()]


def is_standard_input(path: Path) -> bool:
    """Whether a path means standard input."""
    return path in (Path("-"), Path("/dev/stdin"))


def name_of(path: Path) -> str:
    """The name of a table in words."""
    return "standard input" if is_standard_input(path) else path.name


def read_table(path: Path) -> pd.DataFrame:
    """A csv or parquet file as a frame; standard input and pipes are known by how they begin."""
    import pandas as pd

    from censcore.tables import readable  # --help needs none of what it imports

    stream = is_standard_input(path)
    if stream and sys.stdin is None:
        raise InvalidInputError("standard input: got a closed stream, expected a table in csv or parquet.")
    if not stream and not path.exists():
        raise InvalidInputError(f"There is no file {path}.")
    ending = path.suffix.lower()
    shown = name_of(path) if stream else path
    with readable(shown):
        if stream or path.is_fifo():
            content = io.BytesIO(sys.stdin.buffer.read() if stream else path.read_bytes())
            parquet = content.getvalue().startswith(b"PAR1")
            frame = _read_parquet(content) if parquet else pd.read_csv(content)
        elif ending in (".parquet", ".pq"):
            frame = _read_parquet(path)
        elif ending in (".csv", ".tsv", ".txt") or path.name.lower().endswith(".csv.gz"):
            frame = pd.read_csv(path, sep="\t" if ending == ".tsv" else ",")
        else:
            raise InvalidInputError(f"{path} must end in .csv, .tsv or .parquet; got {ending or 'nothing'}.")
    if not len(frame):
        raise InvalidInputError(f"{shown} has no rows.")
    return frame


def _read_parquet(file: Path | io.BytesIO) -> pd.DataFrame:
    """A table in which an index with a name is a column, as in tables that are read in batches."""
    from censcore.tables import open_parquet

    with open_parquet(file) as opened:
        frame = opened.read(use_threads=False).to_pandas(use_threads=False)
    return frame.reset_index() if any(name is not None for name in frame.index.names) else frame


def column(frame: pd.DataFrame, name: str, option: str) -> np.ndarray:
    """One column by name."""
    if name not in frame.columns:
        shown = some_of([str(there) for there in frame.columns], 12)
        raise InvalidInputError(f"{option} {name}: there is no such column. There are: {shown}")
    return frame[name].to_numpy()


def outcome_of(
    frame: pd.DataFrame, columns: Source, part: bool = False
) -> cs.RightCensored | cs.CompetingRisks | cs.IntervalCensored:
    """The outcome from its columns; in ``part`` of a table there may be no event."""
    check_options(columns)

    def numbers(name: str | None, option: str) -> np.ndarray | None:
        from censcore._arrays import as_float

        return None if name is None else as_float(column(frame, name, option), f"{option} {name}")

    c = numbers(columns.censoring_time, "--censoring-time")
    a = numbers(columns.entry, "--entry")
    if columns.intervals:
        return _intervals(frame, columns)
    time = numbers(columns.time, "--time")
    assert time is not None
    if columns.cause is None:
        assert columns.event is not None
        return cs.RightCensored(time, column(frame, columns.event, "--event"), c, entry=a)
    cause = _cause_numbers(column(frame, columns.cause, "--cause"), columns)
    n_causes = 1 if part and not columns.names and not (cause != 0).any() else None
    return cs.CompetingRisks(time, cause, c, entry=a, names=columns.names or None, n_causes=n_causes)


def check_options(columns: Source) -> None:
    """One kind of outcome is named, and wholly."""
    others = {
        "--time": columns.time, "--event": columns.event, "--cause": columns.cause,
        "--censoring-time": columns.censoring_time,
    }  # fmt: skip
    named = [option for option, name in others.items() if name is not None]
    if columns.intervals:
        if columns.lower is None or columns.upper is None:
            missing = "--lower" if columns.lower is None else "--upper"
            raise InvalidInputError(
                f"got no {missing}, expected both ends of the intervals, --lower and --upper."
            )
        if named:
            raise InvalidInputError(
                f"got {', '.join(named)} together with --lower and --upper, expected one kind of outcome: "
                "intervals, or times that are seen when they happen."
            )
        return
    if columns.visits:
        raise InvalidInputError("--visits belongs to intervals: got no --lower and --upper.")
    if (columns.event is None) == (columns.cause is None):
        raise InvalidInputError(
            f"got {'neither' if columns.event is None else 'both'} of --event and --cause, expected one: "
            "--event for one kind of event, --cause for competing risks."
        )


def _intervals(frame: pd.DataFrame, columns: Source) -> cs.IntervalCensored:
    """Intervals with the visits, where there are any; a missing upper end is infinity."""
    assert columns.lower is not None
    assert columns.upper is not None
    for option, name in (("--lower", columns.lower), ("--upper", columns.upper), ("--entry", columns.entry)):
        if name is not None:
            column(frame, name, option)
    visits = [name for pattern in words(columns.visits) for name in _matching(frame, pattern)]
    return cs.IntervalCensored.from_frame(
        frame, columns.lower, columns.upper, list(dict.fromkeys(visits)) or None, columns.entry
    )


def _matching(frame: pd.DataFrame, pattern: str) -> list[str]:
    """Columns that a name or a pattern of --visits means."""
    from fnmatch import fnmatchcase

    if pattern in frame.columns:
        return [pattern]
    matching = [str(name) for name in frame.columns if fnmatchcase(str(name), pattern)]
    if not matching:
        column(frame, pattern, "--visits")  # an error that names the columns
    return matching


def _cause_numbers(values: np.ndarray, columns: Source) -> np.ndarray:
    """Causes as numbers; labels are those of --causes, in that order, and "censored"."""
    if values.dtype.kind in "biuf":
        return values
    labels = {"censored": 0} | {name: j for j, name in enumerate(columns.names, start=1)}
    unknown = [str(value) for value in dict.fromkeys(values.tolist()) if value not in labels]
    if unknown:
        raise InvalidInputError(
            f"--cause {columns.cause}: got {', '.join(unknown[:5])}, expected whole numbers (0 for "
            "censored), or 'censored' and the names of the causes that --causes gives, such as --causes "
            f"relapse,death (now: {', '.join(columns.names) or 'none'})."
        )
    import numpy as np

    return np.array([labels[value] for value in values.tolist()])
