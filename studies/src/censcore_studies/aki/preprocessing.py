"""Imputation, standardisation and the time scale, fitted on the training rows and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.store import content_key
from censcore_studies.aki.engine import Engine, Say
from censcore_studies.aki.features import FEATURES
from censcore_studies.kit.store import Stage, run_stage, write_json

__all__ = ["Preprocessing", "fit_preprocessing"]

_FORMAT = 1  # raise it when the same rows give other numbers

# Counts and slopes are zero when missing; what is not named here is never missing.
_MEDIAN_WHEN_MISSING = frozenset(
    name for name in FEATURES if name.endswith(("_mean", "_min", "_max", "_last"))
) | {"weight", "baseline_creatinine"}


@dataclass(frozen=True)
class Preprocessing:
    """Fill missing values, standardize, cut outliers: x -> (x or its fill - mean) / scale, within +- limit.

    Parameters
    ----------
    features : sequence of str
        Column order.
    fill : sequence of float
        The training median for measured values; zero for counts and slopes.
    mean, scale : sequence of float
        Training mean and standard deviation after filling; the scale of a constant column is 1.
    limit : float
        Standardized values are cut at this many standard deviations.
    time_scale : float
        log(1 + q95), q95 the 95th percentile of the training censoring times in hours.

    Examples
    --------
    >>> import numpy as np
    >>> step = Preprocessing(("a",), (3.0,), (1.0,), (2.0,), limit=10.0, time_scale=np.log(101.0))
    >>> step.transform(np.array([[5.0], [np.nan], [999.0]])).ravel().tolist()
    [2.0, 1.0, 10.0]
    >>> float(step.to_hours(step.scaled(np.array(100.0))).round(6))
    100.0
    """

    features: Sequence[str]
    fill: Sequence[float]
    mean: Sequence[float]
    scale: Sequence[float]
    limit: float
    time_scale: float

    def transform(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Standardized features; ``X`` has the columns of ``features`` with NaN where a value is missing."""
        filled = np.where(np.isnan(X), np.asarray(self.fill), X)
        standard = (filled - np.asarray(self.mean)) / np.asarray(self.scale)
        return np.clip(standard, -self.limit, self.limit).astype(np.float32)

    def scaled(self, hours: NDArray[Any]) -> NDArray[Any]:
        """Hours to the scale of training, log(1 + t) / log(1 + q95)."""
        return np.log1p(hours) / self.time_scale

    def to_hours(self, scaled: NDArray[Any]) -> NDArray[Any]:
        """The inverse of :meth:`scaled`."""
        return np.expm1(scaled * self.time_scale)


def fit_preprocessing(
    engine: Engine, rows: Sequence[Stage], split: Stage, out: Path, limit: float, say: Say
) -> Stage:
    """Write ``preprocessing/preprocessing.json`` from the training rows."""

    def make(folder: Path) -> dict[str, Any]:
        engine.parquet("split", split.folder / "split.parquet")
        engine.parquet("all_rows", *(stage.folder / "rows.parquet" for stage in rows))
        engine.run(
            "CREATE OR REPLACE TEMP VIEW training AS SELECT * FROM all_rows "
            "WHERE stay_id IN (SELECT stay_id FROM split WHERE split = 'train')"
        )
        count, horizon = engine.rows("SELECT count(*), quantile_cont(censoring_time, 0.95) FROM training")[0]
        if count == 0:
            raise InvalidInputError(
                "The training side has no prediction row; use more data or another split."
            )
        fill = [_fill(engine, name) for name in FEATURES]
        mean, scale = _moments(engine, fill)
        fitted = Preprocessing(FEATURES, fill, mean, scale, limit, float(np.log1p(horizon)))
        write_json(folder / "preprocessing.json", asdict(fitted))
        return {"training_rows": count, "q95_hours": horizon, "training_values_cut": _cut(engine, fitted)}

    key = content_key(
        _FORMAT, [stage.key for stage in rows], split.key, limit, FEATURES, sorted(_MEDIAN_WHEN_MISSING)
    )
    return run_stage(out, "preprocessing", key, make, say)


def _fill(engine: Engine, name: str) -> float:
    if name not in _MEDIAN_WHEN_MISSING:
        return 0.0
    # One column at a time: a median keeps all its values in memory.
    median = engine.value(f"SELECT median(CAST({name} AS DOUBLE)) FROM training")
    return 0.0 if median is None else float(median)  # missing in every training row: its indicator says so


def _moments(engine: Engine, fill: Sequence[float]) -> tuple[list[float], list[float]]:
    filled = [
        f"coalesce(CAST({name} AS DOUBLE), {value!r})" for name, value in zip(FEATURES, fill, strict=True)
    ]
    columns = ", ".join(f"avg({column}), stddev_pop({column})" for column in filled)
    # Ten digits: the order in which threads add does not show.
    moments = [float(f"{moment:.10g}") for moment in engine.rows(f"SELECT {columns} FROM training")[0]]
    return moments[::2], [scale or 1.0 for scale in moments[1::2]]


def _cut(engine: Engine, fitted: Preprocessing) -> int:
    columns = zip(FEATURES, fitted.mean, fitted.scale, strict=True)
    beyond = [f"count(*) FILTER (WHERE abs({x} - {m!r}) > {fitted.limit * s!r})" for x, m, s in columns]
    return int(engine.value(f"SELECT {' + '.join(beyond)} FROM training"))
