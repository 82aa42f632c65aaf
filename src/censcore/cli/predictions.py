"""Tables of predictions: which columns are what."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import censcore as cs
from censcore.exceptions import InvalidInputError, RepairWarning

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["COLUMNS_HELP", "column", "forecasts_of", "outcome_of", "read_table"]

COLUMNS_HELP = """
Each row is a subject. Columns of forecasts are named MODEL__KIND@NUMBER:

    cox__sf@365, cox__sf@730        survival probabilities P(T > time)
    cox__cdf@365                    or P(T <= time)
    qrf__q@0.25, qrf__q@0.5         quantiles of T at levels
    engression__sample@1 ...        draws from the forecast

One file may hold several models; without MODEL__ the model is called "forecast".
"""

NAME = re.compile(r"^(?:(?P<model>.+?)__)?(?P<kind>sf|cdf|q|sample)@(?P<number>[^@]+)$")
ALMOST = re.compile(r"^(?P<start>.+__(?:sf|cdf|q|sample))[_. ](?P<number>[0-9][0-9.]*)$")


@dataclass(frozen=True)
class _Column:
    name: str
    model: str
    kind: str
    number: float


def read_table(path: Path) -> pd.DataFrame:
    """A csv or parquet file as a frame."""
    import pandas as pd

    if not path.exists():
        raise InvalidInputError(f"There is no file {path}.")
    ending = path.suffix.lower()
    try:
        if ending in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
        elif ending in (".csv", ".tsv", ".txt") or path.name.lower().endswith(".csv.gz"):
            frame = pd.read_csv(path, sep="\t" if ending == ".tsv" else ",")
        else:
            raise InvalidInputError(f"{path} must end in .csv, .tsv or .parquet; got {ending or 'nothing'}.")
    except InvalidInputError:
        raise
    except Exception as error:
        raise InvalidInputError(f"{path} could not be read as a table: {error}") from error
    if not len(frame):
        raise InvalidInputError(f"{path} has no rows.")
    return frame


def column(frame: pd.DataFrame, name: str, option: str) -> np.ndarray:
    """One column by name."""
    if name not in frame.columns:
        shown = ", ".join(map(str, list(frame.columns)[:12])) + (", ..." if frame.shape[1] > 12 else "")
        raise InvalidInputError(f"{option} {name}: there is no such column. There are: {shown}")
    return frame[name].to_numpy()


def outcome_of(
    frame: pd.DataFrame,
    time: str,
    event: str,
    censoring_time: str | None = None,
    entry: str | None = None,
) -> cs.RightCensored:
    """The outcome from its columns."""

    def numbers(name: str, option: str) -> np.ndarray:
        from censcore._arrays import as_float

        return as_float(column(frame, name, option), f"{option} {name}")

    c = None if censoring_time is None else numbers(censoring_time, "--censoring-time")
    a = None if entry is None else numbers(entry, "--entry")
    return cs.RightCensored(numbers(time, "--time"), column(frame, event, "--event"), c, entry=a)


def forecasts_of(
    frame: pd.DataFrame, others: tuple[str, ...] = (), **reading: Any
) -> dict[str, cs.Distribution]:
    """One distribution per model, from the columns that are named as forecasts.

    Survival matrices are read as :func:`censcore.as_forecast` reads them, with ``interpolation``, ``tail``
    and ``repair``. Repairs are reported by the comparison.
    """
    by_model: dict[str, list[_Column]] = {}
    for name in map(str, frame.columns):
        if name not in others and (found := _parse(name)) is not None:
            by_model.setdefault(found.model, []).append(found)
    if not by_model:
        raise InvalidInputError(
            f"No columns of forecasts were found; they are named like cox__sf@365, qrf__q@0.5 or "
            f"gan__sample@1. The columns are {', '.join(map(str, list(frame.columns)[:12]))}."
        )
    return {model: _distribution(model, columns, frame, reading) for model, columns in by_model.items()}


def _parse(name: str) -> _Column | None:
    match = NAME.match(name)
    if match is None:
        if (almost := ALMOST.match(name)) is not None:
            raise InvalidInputError(
                f"Column {name!r} is almost named as a forecast: got no '@' before the number, expected "
                f"{almost['start']}@{almost['number']}. Rename it; a covariate needs a name without '__'."
            )
        return None
    try:
        number = float(match["number"])
    except ValueError:
        return None
    return _Column(name, match["model"] or "forecast", match["kind"], number)


def _distribution(
    model: str, columns: list[_Column], frame: pd.DataFrame, reading: dict[str, Any]
) -> cs.Distribution:
    kinds = {part.kind for part in columns}
    if len(kinds) > 1:
        raise InvalidInputError(
            f"Model {model!r} has columns of several kinds ({', '.join(sorted(kinds))}); give it one "
            "kind, or each kind another name."
        )
    (kind,) = kinds
    columns = sorted(columns, key=lambda part: part.number)
    import numpy as np

    from censcore._arrays import as_float

    at = np.array([part.number for part in columns])
    values = np.column_stack(
        [as_float(frame[part.name].to_numpy(), f"column {part.name}") for part in columns]
    )
    try:
        return _made(kind, at, values, reading)
    except InvalidInputError as error:
        raise InvalidInputError(f"Model {model!r}: {error}") from error


def _made(kind: str, at: np.ndarray, values: np.ndarray, reading: dict[str, Any]) -> cs.Distribution:
    if kind == "sample":
        return cs.Ensemble(values)
    if kind == "q":
        return cs.as_forecast(values, levels=at)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepairWarning)
        return cs.as_forecast(values if kind == "sf" else 1 - values, times=at, **reading)
