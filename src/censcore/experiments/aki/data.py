"""Rows of a finished build, ready for models and scores."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.experiments.aki.engine import quoted
from censcore.experiments.aki.features import ENDPOINTS, FEATURES
from censcore.experiments.aki.preprocessing import Preprocessing
from censcore.experiments.aki.rows import OUTCOME
from censcore.experiments.aki.stages import read_stage
from censcore.outcomes import RightCensored

__all__ = ["AkiRows", "Build", "open_build"]


@dataclass(frozen=True)
class AkiRows:
    """Prediction rows in memory.

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
        """Where an event can still come."""
        return ~self.present

    def take(self, rows: NDArray[Any]) -> AkiRows:
        """Some of the rows."""
        return AkiRows(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))

    def outcome(self) -> RightCensored:
        """Remaining times in hours, under the known shared censoring time."""
        return RightCensored(self.time, self.event, self.censoring)

    @staticmethod
    def concatenate(parts: list[AkiRows]) -> AkiRows:
        """One after the other."""
        names = AkiRows.__dataclass_fields__
        return AkiRows(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


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

    def parts(self, side: str) -> Iterator[AkiRows]:
        """The rows of one side of the split, a part of the stays at a time, read from Parquet."""
        import duckdb

        chosen = quoted(self.out / "split" / "split.parquet")
        with duckdb.connect() as connection:
            for path in sorted((self.out / "rows").glob("*/rows.parquet")):
                found = connection.execute(
                    f"SELECT r.* FROM read_parquet({quoted(path)}) AS r SEMI JOIN "
                    f"(SELECT stay_id FROM read_parquet({chosen}) WHERE split = $side) AS s "
                    "ON s.stay_id = r.stay_id ORDER BY r.stay_id, r.elapsed_hours",
                    {"side": side},
                ).fetchnumpy()
                if len(found["stay_id"]):
                    yield self._rows(found)

    def rows(
        self, side: str, at_most: int | None = None, per_stay: int | None = None, seed: int = 0
    ) -> AkiRows:
        """The rows of one side: all, or at random ``per_stay`` of every stay and ``at_most`` in all."""
        rows = AkiRows.concatenate(list(self.parts(side)))
        rng = np.random.default_rng(seed)
        if per_stay is not None:
            rows = rows.take(_at_most_of_each(rows.stay_id, per_stay, rng))
        if at_most is not None and at_most < len(rows):
            rows = rows.take(np.sort(rng.choice(len(rows), size=at_most, replace=False)))
        return rows

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


def _at_most_of_each(groups: NDArray[Any], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Up to ``most`` random positions of each group, in order."""
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    counts = np.unique(groups, return_counts=True)[1]
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_group[rank < most])


def open_build(out: str | Path) -> Build:
    """A finished build; one that is missing, unfinished or mixed from two settings is refused."""
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
