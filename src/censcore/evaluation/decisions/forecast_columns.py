"""Forecasts in the columns of a table: which columns are what."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import as_float, to_numpy
from censcore.distributions import CumulativeIncidence, Distribution, Ensemble
from censcore.estimators import as_forecast
from censcore.exceptions import InvalidInputError, InvalidTypeError, RepairWarning
from censcore.outcomes import CompetingRisks

if TYPE_CHECKING:
    import pandas as pd

NAME = re.compile(r"^(?:(?P<model>.+?)__)?(?P<kind>sf|cdf|q|sample|cif_(?P<cause>[^@]+))@(?P<number>[^@]+)$")
ALMOST = re.compile(r"^(?P<start>.+__(?:sf|cdf|q|sample|cif_[^@]+?))[_. ](?P<number>[0-9][0-9.]*)$")


@dataclass(frozen=True)
class _Column:
    name: str
    model: str
    kind: str
    number: float
    cause: str = ""


def forecasts_of(
    frame: pd.DataFrame, others: Collection[str] = (), risks: CompetingRisks | None = None, **reading: Any
) -> dict[str, Distribution]:
    """One distribution per model, from the columns that are named as forecasts.

    Survival matrices are read as :func:`censcore.as_forecast` reads them, with ``interpolation``, ``tail``
    and ``repair``. Repairs are reported by the comparison. For the outcome ``risks`` of competing risks
    forecasts are cumulative incidences of all causes.
    """
    forecasts = column_forecasts(map(str, frame.columns), others, **reading)
    if risks is not None:
        forecasts = {model: forecast.of_causes(risks, frame) for model, forecast in forecasts.items()}
    return {model: forecast(frame) for model, forecast in forecasts.items()}


@dataclass(frozen=True)
class ColumnForecast:
    """The forecast of one model in some of the columns of a table; called with rows of it, a distribution."""

    model: str
    parts: tuple[_Column, ...]  #: what its columns hold
    #: How survival matrices are read: ``interpolation``, ``tail`` and ``repair`` of ``as_forecast``.
    reading: dict[str, Any] = field(default_factory=dict)
    causes: tuple[str, ...] = ()  #: whose cumulative incidences they are; none for one event time

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it needs."""
        return tuple(part.name for part in self.parts)

    @property
    def only_time(self) -> float | None:
        """The one time at which probabilities are known; None where the columns are read as a curve."""
        times = {part.number for part in self.parts if part.kind in ("sf", "cdf", "cif")}
        asked = [self.reading.get(name, "auto") for name in ("interpolation", "tail")]
        return times.pop() if len(times) == 1 and asked in (["auto", "auto"], ["none", "auto"]) else None

    def __call__(self, frame: pd.DataFrame) -> Distribution:
        """The forecast distributions of the subjects in ``frame``."""
        return _incidence(self, frame) if self.causes else _distribution(self, frame)

    @contextmanager
    def named(self) -> Iterator[None]:
        """Errors say which model they are about."""
        try:
            yield
        except InvalidInputError as error:
            raise InvalidInputError(f"Model {self.model!r}: {error}") from error

    def of_causes(self, risks: CompetingRisks, frame: pd.DataFrame) -> ColumnForecast:
        """The forecast as cumulative incidences of the causes of an outcome.

        How they are read between their times is settled by the event times, and by the subjects in ``frame``.
        """
        at, cif = _cumulative(risks.names, self.model, self.parts, frame)
        reading = {**self.reading, "interpolation": self.reading.get("interpolation", "auto")}
        if reading["interpolation"] == "auto":
            exact = np.isin(at, to_numpy(risks.time)[to_numpy(risks.causes) > 0]).all()
            steps = exact or (at[0] == 0 and (cif[:, :, 0] > 0).any())
            reading["interpolation"] = "none" if len(at) == 1 else "step" if steps else "linear"
        return replace(self, reading=reading, causes=tuple(risks.names))


def column_forecasts(
    names: Iterable[str], others: Collection[str] = (), **reading: Any
) -> dict[str, ColumnForecast]:
    """The forecasts in a table with columns of these names, to be read part by part."""
    names, by_model = list(names), dict[str, list[_Column]]()
    for name in names:
        if name not in others and (column := _parse(name)) is not None:
            by_model.setdefault(column.model, []).append(column)
    if not by_model:
        raise InvalidInputError(
            f"No columns of forecasts were found; they are named like cox__sf@365, qrf__q@0.5 or "
            f"gan__sample@1. The columns are {', '.join(names[:12])}."
        )
    return {model: ColumnForecast(model, tuple(parts), reading) for model, parts in by_model.items()}


def table_forecasts(forecasts: Any, there: list[str], used: tuple[str, ...]) -> dict[str, Any]:
    """Functions of the rows of a table, and distributions that serve all its subjects, by name.

    ``there`` are the columns of the table, ``used`` those of its outcome, weights and labels.
    """
    if isinstance(forecasts, str) and forecasts == "columns":
        return dict(column_forecasts(there, used))
    if isinstance(forecasts, list | tuple) and all(isinstance(name, str) for name in forecasts):
        forecasts = {name: name for name in forecasts}
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            f"forecasts: got {type(forecasts).__name__}; for a table expected 'columns' (all columns named "
            "MODEL__KIND@NUMBER), a list of such models, or a dictionary of functions of rows, such "
            "as {'weibull': lambda rows: Weibull(1.5, rows['scale'])}."
        )
    functions: dict[str, Any] = {}
    for name, forecast in forecasts.items():
        if isinstance(forecast, str):
            of_columns = column_forecasts(there, used)
            if forecast not in of_columns:
                raise InvalidInputError(
                    f"Forecast {name!r}: there is no model {forecast!r} among the columns: "
                    f"{', '.join(of_columns)}."
                )
            functions[str(name)] = of_columns[forecast]
        elif callable(forecast) or (isinstance(forecast, Distribution) and len(forecast) == 1):
            functions[str(name)] = forecast
        else:
            raise InvalidTypeError(
                f"Forecast {name!r}: got {type(forecast).__name__}, expected a function of the rows of a "
                "batch, the name of a model in the columns, or one distribution for all subjects."
            )
    return functions


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


def _cumulative(
    names: Sequence[str], model: str, columns: Sequence[_Column], frame: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray]:
    """Times, and incidences (n, causes, times) in columns cif_CAUSE@TIME, with a cause by name or number."""
    m = len(names)
    wrong = [part.name for part in columns if part.kind != "cif"]
    number = {name: j for j, name in enumerate(names)} | {str(j + 1): j for j in range(m)}
    unknown = [part.cause for part in columns if part.kind == "cif" and part.cause not in number]
    if wrong or unknown:
        raise InvalidInputError(
            f"Model {model!r}: got {f'the column {wrong[0]}' if wrong else f'the cause {unknown[0]!r}'}, "
            f"expected columns {model}__cif_CAUSE@TIME with --cause, where CAUSE is one of "
            f"{', '.join(names)}, or a number from 1 to {m}. Names are given by --causes."
        )
    at = np.unique([part.number for part in columns])
    cells = {(number[part.cause], part.number): part.name for part in columns}
    missing = [(j, t) for j in range(m) for t in at.tolist() if (j, t) not in cells]
    if missing:
        j, t = missing[0]
        raise InvalidInputError(
            f"Model {model!r}: there is no column {model}__cif_{names[j]}@{t:g}; expected one for "
            f"every cause ({', '.join(names)}) at each of its {len(at)} times."
        )
    return at, np.stack(
        [
            np.column_stack([as_float(frame[cells[j, t]].to_numpy(), f"column {cells[j, t]}") for t in at])
            for j in range(m)
        ],
        axis=1,
    )


def _incidence(forecast: ColumnForecast, frame: pd.DataFrame) -> CumulativeIncidence:
    """Cumulative incidences of all causes."""
    reading, names = forecast.reading, forecast.causes
    at, cif = _cumulative(names, forecast.model, forecast.parts, frame)
    tail = reading.get("tail", "auto")
    if tail not in ("auto", "infinity"):
        raise InvalidInputError(
            f"--tail: got {tail!r}, expected auto or infinity: beyond the last time of cumulative incidences "
            "no event is forecast."
        )
    with forecast.named():
        return CumulativeIncidence(
            at, cif, interpolation=reading["interpolation"], names=names, repair=bool(reading.get("repair"))
        )


def _distribution(forecast: ColumnForecast, frame: pd.DataFrame) -> Distribution:
    """A survival curve, quantiles or an ensemble."""
    model, columns = forecast.model, sorted(forecast.parts, key=lambda part: part.number)
    kinds = {part.kind for part in columns}
    if "cif" in kinds:
        raise InvalidInputError(
            f"Model {model!r}: got cumulative incidences of causes, {forecast.parts[0].name}, expected the "
            "outcome of competing risks: --cause COLUMN in place of --event."
        )
    if len(kinds) > 1:
        raise InvalidInputError(
            f"Model {model!r} has columns of several kinds ({', '.join(sorted(kinds))}); give it one "
            "kind, or each kind another name."
        )
    (kind,) = kinds
    at = np.array([part.number for part in columns])
    # a table may store single precision to save room; sums over its parts need double
    read = [as_float(frame[part.name].to_numpy(), f"column {part.name}") for part in columns]
    values = np.stack(read, axis=1, dtype=np.float64)
    with forecast.named(), warnings.catch_warnings():
        if kind == "sample":
            return Ensemble(values)
        if kind == "q":
            return as_forecast(values, levels=at)
        warnings.simplefilter("ignore", RepairWarning)
        return as_forecast(values if kind == "sf" else 1 - values, times=at, **forecast.reading)
