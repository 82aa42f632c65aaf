"""Tables of predictions: which columns are what."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import censcore as cs
from censcore.exceptions import InvalidInputError, RepairWarning

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

__all__ = ["COLUMNS_HELP", "OutcomeColumns", "column", "forecasts_of", "outcome_of", "read_table"]

COLUMNS_HELP = """
Each row is a subject. Columns of forecasts are named MODEL__KIND@NUMBER:

    cox__sf@365, cox__sf@730        survival probabilities P(T > time)
    cox__cdf@365                    or P(T <= time)
    qrf__q@0.25, qrf__q@0.5         quantiles of T at levels
    engression__sample@1 ...        draws from the forecast
    cox__cif_death@365              with --cause: P(T <= time, cause death), for every cause

One file may hold several models; without MODEL__ the model is called "forecast".
"""

NAME = re.compile(r"^(?:(?P<model>.+?)__)?(?P<kind>sf|cdf|q|sample|cif_(?P<cause>[^@]+))@(?P<number>[^@]+)$")
ALMOST = re.compile(r"^(?P<start>.+__(?:sf|cdf|q|sample|cif_[^@]+?))[_. ](?P<number>[0-9][0-9.]*)$")


@dataclass(frozen=True)
class _Column:
    name: str
    model: str
    kind: str
    number: float
    cause: str = ""


class OutcomeColumns(NamedTuple):
    """The columns that hold the outcome; ``causes`` are the names of the causes 1, 2, ..."""

    time: str
    event: str | None = None
    cause: str | None = None
    causes: tuple[str, ...] = ()
    entry: str | None = None

    @property
    def used(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(name for name in (self.time, self.event, self.cause, self.entry) if name is not None)


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
    columns: OutcomeColumns,
    censoring_time: str | None = None,
) -> cs.RightCensored | cs.CompetingRisks:
    """The outcome from its columns."""
    if (columns.event is None) == (columns.cause is None):
        raise InvalidInputError(
            f"got {'neither' if columns.event is None else 'both'} of --event and --cause, expected one: "
            "--event for one kind of event, --cause for competing risks."
        )

    def numbers(name: str, option: str) -> np.ndarray:
        from censcore._arrays import as_float

        return as_float(column(frame, name, option), f"{option} {name}")

    c = None if censoring_time is None else numbers(censoring_time, "--censoring-time")
    a = None if columns.entry is None else numbers(columns.entry, "--entry")
    time = numbers(columns.time, "--time")
    if columns.cause is None:
        assert columns.event is not None
        return cs.RightCensored(time, column(frame, columns.event, "--event"), c, entry=a)
    cause = _cause_numbers(column(frame, columns.cause, "--cause"), columns)
    return cs.CompetingRisks(time, cause, c, entry=a, names=columns.causes or None)


def _cause_numbers(values: np.ndarray, columns: OutcomeColumns) -> np.ndarray:
    """Causes as numbers; labels are those of --causes, in that order, and "censored"."""
    if values.dtype.kind in "biuf":
        return values
    labels = {"censored": 0} | {name: j for j, name in enumerate(columns.causes, start=1)}
    unknown = [str(value) for value in dict.fromkeys(values.tolist()) if value not in labels]
    if unknown:
        raise InvalidInputError(
            f"--cause {columns.cause}: got {', '.join(unknown[:5])}, expected whole numbers (0 for "
            "censored), or 'censored' and the names of the causes that --causes gives, such as --causes "
            f"relapse,death (now: {', '.join(columns.causes) or 'none'})."
        )
    import numpy as np

    return np.array([labels[value] for value in values.tolist()])


def forecasts_of(
    frame: pd.DataFrame,
    others: tuple[str, ...] = (),
    risks: cs.CompetingRisks | None = None,
    **reading: Any,
) -> dict[str, cs.Distribution]:
    """One distribution per model, from the columns that are named as forecasts.

    Survival matrices are read as :func:`censcore.as_forecast` reads them, with ``interpolation``, ``tail``
    and ``repair``. Repairs are reported by the comparison. For the outcome ``risks`` of competing risks
    forecasts are cumulative incidences of all causes.
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
    made = _distribution if risks is None else partial(_incidence, risks)
    return {model: made(model, columns, frame, reading) for model, columns in by_model.items()}


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
    cause = match["cause"] or ""
    return _Column(name, match["model"] or "forecast", "cif" if cause else match["kind"], number, cause)


def _incidence(
    risks: cs.CompetingRisks, model: str, columns: list[_Column], frame: pd.DataFrame, reading: dict[str, Any]
) -> cs.CumulativeIncidence:
    """Cumulative incidences from columns cif_CAUSE@TIME, with a cause by its name or number."""
    wrong = [part.name for part in columns if part.kind != "cif"]
    number = {name: j for j, name in enumerate(risks.names)} | {str(j + 1): j for j in range(risks.n_causes)}
    unknown = [part.cause for part in columns if part.kind == "cif" and part.cause not in number]
    if wrong or unknown:
        raise InvalidInputError(
            f"Model {model!r}: got {f'the column {wrong[0]}' if wrong else f'the cause {unknown[0]!r}'}, "
            f"expected columns {model}__cif_CAUSE@TIME with --cause, where CAUSE is one of "
            f"{', '.join(risks.names)}, or a number from 1 to {risks.n_causes}. Names are given by --causes."
        )
    import numpy as np

    from censcore._arrays import as_float, to_numpy

    at = np.unique([part.number for part in columns])
    cells = {(number[part.cause], part.number): part.name for part in columns}
    missing = [(j, t) for j in range(risks.n_causes) for t in at.tolist() if (j, t) not in cells]
    if missing:
        j, t = missing[0]
        raise InvalidInputError(
            f"Model {model!r}: there is no column {model}__cif_{risks.names[j]}@{t:g}; expected one for "
            f"every cause ({', '.join(risks.names)}) at each of its {len(at)} times."
        )
    cif = np.stack(
        [
            np.column_stack([as_float(frame[cells[j, t]].to_numpy(), f"column {cells[j, t]}") for t in at])
            for j in range(risks.n_causes)
        ],
        axis=1,
    )
    interpolation, tail = reading.get("interpolation", "auto"), reading.get("tail", "auto")
    if tail not in ("auto", "infinity"):
        raise InvalidInputError(
            f"--tail: got {tail!r}, expected auto or infinity: beyond the last time of cumulative incidences "
            "no event is forecast."
        )
    if interpolation == "auto":
        exact = np.isin(at, to_numpy(risks.time)[to_numpy(risks.causes) > 0]).all()
        interpolation = "step" if exact or (at[0] == 0 and (cif[:, :, 0] > 0).any()) else "linear"
    try:
        return cs.CumulativeIncidence(
            at, cif, interpolation=interpolation, names=risks.names, repair=bool(reading.get("repair"))
        )
    except InvalidInputError as error:
        raise InvalidInputError(f"Model {model!r}: {error}") from error


def _distribution(
    model: str, columns: list[_Column], frame: pd.DataFrame, reading: dict[str, Any]
) -> cs.Distribution:
    kinds = {part.kind for part in columns}
    if "cif" in kinds:
        raise InvalidInputError(
            f"Model {model!r}: got cumulative incidences of causes, {columns[0].name}, expected the outcome "
            "of competing risks: --cause COLUMN in place of --event."
        )
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
