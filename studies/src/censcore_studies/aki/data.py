"""Rows of a finished build, ready for models and scores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.store import content_key
from censcore_studies.aki.arrays import choose_rows, map_arrays, write_arrays
from censcore_studies.aki.engine import Say, path_in_sql
from censcore_studies.aki.features import ENDPOINTS, FEATURES
from censcore_studies.aki.preprocessing import Preprocessing
from censcore_studies.aki.rows import OUTCOME
from censcore_studies.kit.store import read_stage, run_stage

__all__ = ["AkiRows", "Build", "open_build"]

_FORMAT = 1  # raise it when the same build gives other arrays


@dataclass(frozen=True)
class AkiRows:
    """Prediction rows, in memory or mapped from a file.

    Attributes
    ----------
    X : array of float32, (n, 22)
        Standardized features.
    time, event, present : arrays, (n, 2)
        Remaining hours min(T, C), whether T <= C, and whether the event is already there at the prediction
        time (then the time is 0 and the event True), for creatinine and urine.
    censoring : array, (n,)
        Remaining hours to ICU exit.
    stay_id, subject_id : arrays of int, (n,)
        Keys.
    elapsed : array, (n,)
        Hours since ICU admission.
    """

    X: NDArray[np.float32]
    time: NDArray[np.float64]
    event: NDArray[np.bool_]
    present: NDArray[np.bool_]
    censoring: NDArray[np.float64]
    stay_id: NDArray[np.int64]
    subject_id: NDArray[np.int64]
    elapsed: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.X)

    @property
    def at_risk(self) -> NDArray[np.bool_]:
        """Where the event has not happened yet."""
        return ~self.present

    def take(self, rows: NDArray[Any] | slice) -> AkiRows:
        """Some of the rows."""
        return AkiRows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def outcome(self) -> RightCensored:
        """Remaining times in hours, under the known shared censoring time."""
        return RightCensored(self.time, self.event, self.censoring)


@dataclass(frozen=True)
class Build:
    """A finished build on disk; :func:`open_build` makes it.

    Attributes
    ----------
    out : Path
        The output directory.
    preprocessing : Preprocessing
        Fitted on the training rows.
    summary : dict
        The counts of the build.
    key : str
        Hash of everything the rows depend on.
    """

    out: Path
    preprocessing: Preprocessing
    summary: dict[str, Any]
    key: str

    def rows(
        self,
        side: str,
        at_most: int | None = None,
        per_stay: int | None = None,
        seed: int = 0,
        say: Say | None = None,
    ) -> AkiRows:
        """Rows of one side with an endpoint at risk: all, or a random ``per_stay`` and ``at_most`` in all.

        The first call copies them from Parquet to arrays in ``arrays/<side>``, a part of the stays at a time;
        what is returned lies there and not in memory.
        """
        key = content_key(_FORMAT, self.key, side, at_most, per_stay, seed)
        make = partial(self._write, side, at_most, per_stay, seed)
        stage = run_stage(self.out, f"arrays/{side}", key, make, say or (lambda _: None))
        return AkiRows(**map_arrays(stage.folder))

    def _write(
        self, side: str, at_most: int | None, per_stay: int | None, seed: int, folder: Path
    ) -> dict[str, Any]:
        paths = sorted((self.out / "rows").glob("*/rows.parquet"))
        stays = [self._read(path, side, "r.stay_id")["stay_id"] for path in paths]
        chosen = choose_rows(stays, at_most, per_stay, seed)
        count = sum(len(part) for part in chosen)
        if count == 0:
            raise InvalidInputError(
                f"No row of the {side} side has an endpoint at risk; use more data or other settings."
            )
        parts = [partial(self._part, path, side, kept) for path, kept in zip(paths, chosen, strict=True)]
        write_arrays(folder, count, parts)
        return {"rows": count}

    def _part(self, path: Path, side: str, kept: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
        return vars(self._rows(self._read(path, side, "r.*")).take(kept))

    def _read(self, path: Path, side: str, columns: str) -> dict[str, NDArray[Any]]:
        """Columns of the rows of one side that have an endpoint at risk, by stay and time."""
        import duckdb

        split = path_in_sql(self.out / "split" / "split.parquet")
        present = " AND ".join(f"{endpoint}_present" for endpoint in ENDPOINTS)
        with duckdb.connect() as connection:
            return dict(
                connection.execute(
                    f"SELECT {columns} FROM read_parquet({path_in_sql(path)}) AS r SEMI JOIN "
                    f"(SELECT stay_id FROM read_parquet({split}) WHERE split = $side) AS s "
                    f"ON s.stay_id = r.stay_id WHERE NOT ({present}) ORDER BY r.stay_id, r.elapsed_hours",
                    {"side": side},
                ).fetchnumpy()
            )

    def _rows(self, found: dict[str, NDArray[Any]]) -> AkiRows:
        raw = np.column_stack([np.ma.filled(found[name].astype(np.float64), np.nan) for name in FEATURES])
        pair = {
            what: np.column_stack([np.asarray(found[f"{endpoint}_{what}"]) for endpoint in ENDPOINTS])
            for what in ("time", "event", "present")
        }
        return AkiRows(
            X=self.preprocessing.transform(raw),
            **pair,
            censoring=np.asarray(found[OUTCOME[-1]]),
            stay_id=np.asarray(found["stay_id"]),
            subject_id=np.asarray(found["subject_id"]),
            elapsed=raw[:, FEATURES.index("elapsed_hours")],
        )


def open_build(out: str | Path) -> Build:
    """A finished build; one that is missing, unfinished or mixed from two settings raises."""
    out = Path(out)
    summary = read_stage(out, "summary")
    if summary is None:
        raise InvalidInputError(f"{out} holds no finished build; run build(data_dir, {str(out)!r}) first.")
    stages = json.loads((summary.folder / "stages.json").read_text("utf-8"))
    for name, key in stages.items():
        stage = read_stage(out, name)
        if stage is None or stage.key != key:
            raise InvalidInputError(
                f"{out} is an unfinished build: '{name}' is missing or newer than the rest. Run build again."
            )
    fitted = json.loads((out / "preprocessing" / "preprocessing.json").read_text("utf-8"))
    return Build(out, Preprocessing(**fitted), dict(summary.summary), summary.key)
