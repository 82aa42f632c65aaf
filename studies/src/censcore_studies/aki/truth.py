"""The truth beside a synthetic database: kept with the build, and sampled for the rows of the study."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.processes import in_processes
from censcore.store import content_key
from censcore_studies.aki.data import AkiRows, Build
from censcore_studies.aki.engine import Say, path_in_sql
from censcore_studies.aki.settings import AkiSettings, EndpointSettings
from censcore_studies.aki.synthetic import TRUTH_COLUMNS
from censcore_studies.aki.synthetic_stays import PACES
from censcore_studies.aki.synthetic_truth import ChartedStay, draw_remaining
from censcore_studies.kit.store import file_hash, read_stage, run_stage

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Truth", "keep_truth", "open_truth"]

_FORMAT = 1  # raise it when the same rows get other draws
_DRAWS_AT_ONCE = 2_000_000  # bounds the memory of a part

Columns = dict[str, NDArray[Any]]


def keep_truth(data_dir: Path, out: Path, say: Say) -> None:
    """Copy what a synthetic database was drawn from to ``out/truth``; remove it where there is none."""
    path = data_dir / "truth.csv"
    try:
        with path.open(encoding="utf-8") as file:
            synthetic = tuple(file.readline().strip().split(",")) == TRUTH_COLUMNS
    except (OSError, UnicodeDecodeError):
        synthetic = False
    if not synthetic:
        shutil.rmtree(out / "truth", ignore_errors=True)
        return

    def make(folder: Path) -> dict[str, Any]:
        shutil.copyfile(path, folder / "truth.csv")
        return {}

    run_stage(out, "truth", content_key(_FORMAT, file_hash(path)), make, say)


def open_truth(build: Build, say: Say) -> Truth | None:
    """What the stays of a build were drawn from; None where they are not synthetic.

    Nor is there a truth to compare with under other criteria than those which the stays were made to meet.
    """
    stage = read_stage(build.out, "truth")
    if stage is None:
        return None
    settings = AkiSettings.from_dict(json.loads((build.out / "settings.json").read_text("utf-8")))
    if replace(settings.endpoints, onset="recurrent") != EndpointSettings():
        say("truth: left out, since the settings of the endpoints are not the default ones")
        return None
    return Truth(build, content_key(_FORMAT, stage.key, build.key))


@dataclass(frozen=True)
class Truth:
    """The distribution that the endpoints of synthetic stays were drawn from, given what was charted.

    Attributes
    ----------
    build : Build
        Its rows.
    key : str
        Hash of everything that the draws depend on, besides their number and seed.
    """

    build: Build
    key: str

    def sample(self, rows: AkiRows, members: int, seed: int) -> Iterator[Tensor]:
        """Draws of both remaining times in hours, (rows, members, 2), of consecutive rows.

        A row's draws depend on its stay, the seed, and the rows of that stay, in whatever order stays come.
        """
        import torch

        stays = _Stays(self.build, np.unique(rows.stay_id))
        at = np.round(rows.elapsed * 3600) / 3600  # single precision, but whole seconds
        _check(rows, at, stays)
        parts = _parts(rows.stay_id, members)
        # processes, since drawing is many small steps of Python
        jobs = cpu_count() if len(parts) > 1 else 1
        tasks = (
            partial(_draws, [(stays[k], at[i:j], [seed, k]) for k, i, j in part], members) for part in parts
        )
        for draws in in_processes(tasks, jobs):
            yield torch.from_numpy(draws)


def _parts(stay_id: NDArray[Any], members: int) -> list[list[tuple[int, int, int]]]:
    """Stays with their first and last rows, as many in a part as are drawn at once."""
    edges = [0, *(np.flatnonzero(np.diff(stay_id)) + 1).tolist(), len(stay_id)]
    stays = [(int(stay_id[i]), i, j) for i, j in pairwise(edges)]
    return [list(part) for _, part in groupby(stays, lambda stay: 2 * members * stay[1] // _DRAWS_AT_ONCE)]


def _draws(
    stays: list[tuple[ChartedStay, NDArray[np.float64], list[int]]], members: int
) -> NDArray[np.float32]:
    """In whole seconds, as the rows have them: an onset at a horizon is at it."""
    hours = [draw_remaining(stay, at, members, np.random.default_rng(seed)) for stay, at, seed in stays]
    return (np.round(np.concatenate(hours) * 3600) / 3600).astype(np.float32)


def _check(rows: AkiRows, at: NDArray[np.float64], stays: _Stays) -> None:
    """Before an endpoint the rows must say what the truth says."""
    onsets = stays.onsets(rows.stay_id)
    ahead = (at[:, None] < onsets - 1e-6) & rows.event & rows.at_risk
    wrong = np.abs(onsets - at[:, None] - rows.time) > 1e-3
    if (ahead & wrong).any():
        raise InvalidInputError(
            f"{int((ahead & wrong).any(axis=1).sum())} of {len(rows)} rows have other endpoints than the "
            "truth.csv beside the database; write the database again, and build again."
        )


class _Stays:
    """Latent and charted values of some stays."""

    def __init__(self, build: Build, stay_id: NDArray[Any]) -> None:
        import duckdb

        self._id = stay_id
        with duckdb.connect() as connection:
            connection.register("wanted", {"stay_id": stay_id})

            def fetch(source: str, columns: str) -> Columns:
                found = connection.execute(
                    f"SELECT stay_id, {columns} FROM {source} SEMI JOIN wanted USING (stay_id) ORDER BY ALL"
                ).fetchnumpy()
                return {name: np.asarray(column) for name, column in found.items()}

            endpoints = build.out / "endpoints"
            truth = path_in_sql(build.out / "truth" / "truth.csv")
            self._latent = fetch(f"read_csv({truth})", ", ".join(TRUTH_COLUMNS[2:]))
            self._creatinine = fetch(
                f"read_parquet({path_in_sql(endpoints / 'staged_creatinine.parquet')})", "at_s, value"
            )
            self._urine = fetch(
                f"read_parquet({path_in_sql(endpoints / 'staged_urine.parquet')})", "at_s, volume"
            )
        if not np.array_equal(self._latent["stay_id"], stay_id):
            raise InvalidInputError(
                f"truth.csv describes {len(self._latent['stay_id'])} of {len(stay_id)} stays; write the "
                "database again, and build again."
            )

    def onsets(self, stay_id: NDArray[Any]) -> NDArray[np.float64]:
        """The first onset of both endpoints in hours, (n, 2)."""
        place = np.searchsorted(self._id, stay_id)
        names = ("creatinine_onset_hours", "urine_onset_hours")
        return np.column_stack([self._latent[name][place] for name in names])

    def __getitem__(self, stay_id: int) -> ChartedStay:
        place = int(np.searchsorted(self._id, stay_id))
        latent = {name: float(column[place]) for name, column in self._latent.items()}
        times, values = {}, {}
        for channel, series in (("value", self._creatinine), ("volume", self._urine)):
            part = slice(*np.searchsorted(series["stay_id"], [stay_id, stay_id + 1]))
            times[channel] = series["at_s"][part] / 3600
            values[channel] = series[channel][part].astype(np.float64)
        return ChartedStay(
            hazard=latent["hazard"],
            level=latent["creatinine_level"],
            weight=latent["kilograms"],
            pace=next(pace for pace in PACES if pace.hours == latent["pace_hours"]),
            first_urine=latent["first_urine_hours"],
            exit_hours=latent["exit_hours"],
            creatinine_onset=latent["creatinine_onset_hours"],
            urine_onset=latent["urine_onset_hours"],
            creatinine_times=times["value"],
            creatinine_values=values["value"],
            urine_times=times["volume"],
            urine_volumes=values["volume"],
        )
