"""Synthetic databases in the file layout of MIMIC-IV, with the truth beside them."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.files import partial_file, storing
from censcore_studies.aki.source import ANCHOR_YEAR_GROUPS
from censcore_studies.aki.synthetic_stays import Patient, Stay, draw_patient
from censcore_studies.kit.store import write_json

__all__ = ["TRUTH_COLUMNS", "write_synthetic_database"]

_HEADERS = {
    "hosp/patients": "subject_id,gender,anchor_age,anchor_year,anchor_year_group,dod",
    "hosp/admissions": "subject_id,hadm_id,admittime,dischtime,deathtime,hospital_expire_flag",
    "hosp/diagnoses_icd": "subject_id,hadm_id,seq_num,icd_code,icd_version",
    "hosp/labevents": "labevent_id,subject_id,hadm_id,itemid,charttime,storetime,value,valuenum,valueuom",
    "icu/icustays": "subject_id,hadm_id,stay_id,first_careunit,last_careunit,intime,outtime,los",
    "icu/outputevents": "subject_id,hadm_id,stay_id,charttime,storetime,itemid,value,valueuom",
    "icu/chartevents": "subject_id,hadm_id,stay_id,charttime,storetime,itemid,value,valuenum,valueuom",
}
TRUTH_COLUMNS = (
    "subject_id", "stay_id", "exit_hours", "creatinine_onset_hours", "urine_onset_hours", "creatinine_seen",
    "urine_seen", "has_weight", "hazard", "creatinine_level", "kilograms", "pace_hours", "first_urine_hours",
)  # fmt: skip
_EPOCH = np.datetime64("2120-01-01T00:00:00")
_PATIENTS_PER_BLOCK = 128
_POUNDS = 1 / 0.45359237


def write_synthetic_database(
    folder: str | Path,
    stays: int = 200,
    seed: int = 0,
    *,
    release: Literal["3.x", "2.2"] = "3.x",
    filler_per_hour: int = 0,
    flawed: bool = True,
) -> Path:
    """Write a database of at least ``stays`` ICU stays, block by block, in memory that does not grow.

    Patients are drawn until there are enough stays; the same ``seed`` gives the same bytes, and a larger
    database begins with the patients of a smaller one. ``truth.csv`` holds, per stay, the latent times of
    both endpoints (hours since ICU admission), whether they fall before the exit, and what they and the
    charted values were drawn from, which gives the score of the true distribution; ``truth.json`` counts the
    flaws put in.

    Parameters
    ----------
    folder : path
        Receives ``hosp/``, ``icu/``, ``truth.csv`` and ``truth.json``.
    stays : int
        Wanted number of ICU stays.
    seed : int
        Seed of everything.
    release : {"3.x", "2.2"}
        With or without the anchor-year group 2020 - 2022.
    filler_per_hour : int
        Vital-sign rows per ICU hour in ``chartevents``, which nothing uses: the bulk of a real database.
    flawed : bool
        Add impossible records, copies of records and repeated draws; none of them changes the truth.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(p.name for p in write_synthetic_database(folder, stays=3).iterdir())
    ['hosp', 'icu', 'truth.csv', 'truth.json']
    """
    if stays < 1 or filler_per_hour < 0:
        raise InvalidInputError(
            f"got stays={stays} and filler_per_hour={filler_per_hour}, expected at least 1 and 0."
        )
    folder = Path(folder)
    written, block = 0, 0
    flaws: Counter[str] = Counter()
    with storing(folder), _Writer(folder) as writer:
        while written < stays:
            rng = np.random.default_rng([seed, block])
            for offset in range(_PATIENTS_PER_BLOCK):
                patient = draw_patient(rng, len(ANCHOR_YEAR_GROUPS) - (release == "2.2"))
                number = block * _PATIENTS_PER_BLOCK + offset
                # Charting has its own stream, so that flaws and filler do not move the patients after it.
                charting = np.random.default_rng([seed, block, offset + 1])
                flaws.update(_write_patient(writer, charting, patient, number, filler_per_hour, flawed))
                written += len(patient.stays)
                if written >= stays:
                    break
            writer.flush()
            block += 1
    write_json(folder / "truth.json", {"stays": written, "flaws": dict(flaws)})
    return folder


def _write_patient(
    writer: _Writer, rng: np.random.Generator, patient: Patient, number: int, filler: int, flawed: bool
) -> Counter[str]:
    subject = 10_000_000 + number
    start = _EPOCH + np.timedelta64(int(rng.integers(0, 50 * 365 * 24 * 60)), "m")
    year = int(str(start)[:4])
    group = ANCHOR_YEAR_GROUPS[patient.year_group]
    gender = "M" if patient.male else "F"
    writer.add("hosp/patients", [[subject], [gender], [patient.age], [year], [group], [""]])
    flaws: Counter[str] = Counter()
    for which, stay in enumerate(patient.stays):
        identity = _Identity(
            subject, 20_000_000 + 10 * number + which, 30_000_000 + 10 * number + which, start
        )
        _write_stay(writer, rng, patient, stay, identity)
        flaws.update(_write_labs(writer, rng, stay, identity, flawed))
        flaws.update(_write_urine(writer, rng, stay, identity, flawed))
        flaws.update(_write_weights(writer, rng, stay, identity, flawed))
        _write_filler(writer, rng, stay, identity, filler)
        # Long enough for no laboratory value of this stay to be among the next one's baseline.
        start = start + _seconds(stay.hospital_hours + 24 * 30)
    return flaws


class _Identity:
    """The keys of one stay and its clock."""

    def __init__(self, subject: int, admission: int, stay: int, intime: np.datetime64) -> None:
        self.subject, self.admission, self.stay, self.intime = subject, admission, stay, intime

    def clock(self, hours: Sequence[float] | NDArray[Any]) -> list[str]:
        """Hours since ICU admission as the database writes times."""
        moments = self.intime + np.round(np.asarray(hours, dtype=float) * 3600).astype("timedelta64[s]")
        return [text.replace("T", " ") for text in np.datetime_as_string(moments).tolist()]


def _write_stay(
    writer: _Writer, rng: np.random.Generator, patient: Patient, stay: Stay, identity: _Identity
) -> None:
    subject, admission = [identity.subject], [identity.admission]
    left = stay.exit_hours + (0.25 if stay.dies else 0.0)
    admitted, entered, died, out = identity.clock([-rng.uniform(73, 96), 0, stay.exit_hours, left])
    discharged = identity.clock([max(stay.hospital_hours, left)])
    writer.add(
        "hosp/admissions",
        [subject, admission, [admitted], discharged, [died if stay.dies else ""], [int(stay.dies)]],
    )
    unit = ["Medical Intensive Care Unit (MICU)"]
    days = [round(left / 24, 6)]
    writer.add("icu/icustays", [subject, admission, [identity.stay], unit, unit, [entered], [out], days])
    if patient.chronic:
        writer.add("hosp/diagnoses_icd", [subject, admission, [1], ["N183"], [10]])
    writer.add("hosp/diagnoses_icd", [subject, admission, [2], ["4019"], [9]])
    seen = [int(onset <= stay.exit_hours) for onset in (stay.creatinine_onset, stay.urine_onset)]
    numbers = [f"{value:.9f}" for value in (stay.exit_hours, stay.creatinine_onset, stay.urine_onset)]
    latent = [stay.hazard, stay.level, stay.weight, stay.pace.hours, stay.first_urine]
    known = [identity.subject, identity.stay, *numbers, *seen, int(len(stay.weight_times) > 0)]
    writer.add("truth", [[value] for value in (*known, *map(repr, latent))])


def _write_labs(
    writer: _Writer, rng: np.random.Generator, stay: Stay, identity: _Identity, flawed: bool
) -> Counter[str]:
    times, values, flaws = stay.creatinine_times, stay.creatinine_values, Counter[str]()
    text = [f"{value:.2f}" for value in values]
    if flawed:
        repeated = rng.random(len(times)) < 0.02
        # Equal halves around the value: their average is the value.
        text += [f"{value + 0.01:.2f}" for value in values[repeated]]
        for i in np.flatnonzero(repeated):
            text[i] = f"{values[i] - 0.01:.2f}"
        times = np.concatenate([times, times[repeated]])
        bad = rng.choice(times, size=2) + 1 / 60
        if rng.random() < 0.05:
            times, text = np.concatenate([times, bad]), [*text, "", "999"]
            flaws.update(
                {"creatinine: no numeric value": 1, "creatinine: creatinine above the highest possible": 1}
            )
    n = len(times)
    admissions = np.where(rng.random(n) < 0.2, "", str(identity.admission))
    first = writer.number("labevent", n)
    stored = identity.clock(times + rng.uniform(0.3, 1.5, size=n))
    writer.add(
        "hosp/labevents",
        [range(first, first + n), [identity.subject] * n, admissions, [50912] * n, identity.clock(times),
         stored, text, text, ["mg/dL"] * n],
    )  # fmt: skip
    return flaws


def _write_urine(
    writer: _Writer, rng: np.random.Generator, stay: Stay, identity: _Identity, flawed: bool
) -> Counter[str]:
    times, volumes, flaws = stay.urine_times, stay.urine_volumes, Counter[str]()
    items = np.full(len(times), 226559)
    if stay.irrigated:  # 500 mL go in, charted with either sign, and come out with the urine
        signs = np.where(rng.random(len(times)) < 0.5, 1, -1)
        times = np.concatenate([times, times])
        volumes = np.concatenate([volumes + 500, 500 * signs])
        items = np.concatenate([np.full(len(signs), 227489), np.full(len(signs), 227488)])
    elif len(times):  # some urine is charted in two parts
        voided = rng.random(len(times)) < 0.1
        part = np.round(volumes[voided] * 0.3)
        times = np.concatenate([times, times[voided]])
        volumes = np.concatenate([np.where(voided, volumes - np.round(volumes * 0.3), volumes), part])
        items = np.concatenate([items, np.full(len(part), 226560)])
    if flawed and len(times) and rng.random() < 0.05:
        when = rng.choice(times, size=2)
        times = np.concatenate([times, when, times[:1]])
        volumes = np.concatenate([volumes, [-50, 50_000], volumes[:1]])
        items = np.concatenate([items, [226561, 226563], items[:1]])
        flaws.update({"urine: negative urine": 1, "urine: volume above the highest possible": 1})
        flaws.update({"urine: exact copy of another record": 1})
    n = len(times)
    charted = identity.clock(times)
    writer.add(
        "icu/outputevents",
        [[identity.subject] * n, [identity.admission] * n, [identity.stay] * n, charted, charted,
         items.tolist(), volumes.astype(int).tolist(), ["ml"] * n],
    )  # fmt: skip
    return flaws


def _write_weights(
    writer: _Writer, rng: np.random.Generator, stay: Stay, identity: _Identity, flawed: bool
) -> Counter[str]:
    times, values, flaws = stay.weight_times, stay.weight_values, Counter[str]()
    items = [226512, *[224639] * (len(times) - 1)] if len(times) else []
    if len(times) and rng.random() < 0.3:
        times = np.concatenate([times, times[:1]])
        values = np.concatenate([values, np.round(values[:1] * _POUNDS, 1)])
        items = [*items, 226531]
    if flawed and len(times) and rng.random() < 0.03:
        times, values, items = (
            np.concatenate([times, [3.0]]),
            np.concatenate([values, [7.5]]),
            [*items, 224639],
        )
        flaws.update({"weights: weight below the lowest possible": 1})
    _add_chart(writer, identity, identity.clock(times), items, values)
    return flaws


def _write_filler(
    writer: _Writer, rng: np.random.Generator, stay: Stay, identity: _Identity, per_hour: int
) -> None:
    n = int(stay.exit_hours * per_hour)
    if n:
        times = identity.clock(np.sort(rng.uniform(0, stay.exit_hours, size=n)))
        _add_chart(
            writer,
            identity,
            times,
            rng.choice([220045, 220210, 220277], size=n),
            rng.integers(10, 120, size=n),
        )


def _add_chart(
    writer: _Writer, identity: _Identity, times: list[str], items: Iterable[Any], values: NDArray[Any]
) -> None:
    n = len(times)
    keys = [[identity.subject] * n, [identity.admission] * n, [identity.stay] * n]
    writer.add("icu/chartevents", [*keys, times, times, items, values.tolist(), values.tolist(), [""] * n])


def _seconds(hours: float) -> np.timedelta64:
    return np.timedelta64(round(hours * 3600), "s")


class _Writer:
    """Files of one database, which appear together at its end; rows wait in memory until :meth:`flush`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lines: dict[str, list[str]] = {name: [] for name in (*_HEADERS, "truth")}
        self._counters: Counter[str] = Counter()

    def __enter__(self) -> _Writer:
        self._files: dict[str, Any] = {}
        with ExitStack() as stack:
            for name, header in _HEADERS.items():
                raw = stack.enter_context(partial_file(self._folder / f"{name}.csv.gz"))
                # No name and no time in the gzip header: the same database is the same bytes.
                zipped = gzip.GzipFile(filename="", mode="wb", compresslevel=1, fileobj=raw, mtime=0)
                self._files[name] = stack.enter_context(zipped)
                self._files[name].write(f"{header}\n".encode())
            self._files["truth"] = stack.enter_context(partial_file(self._folder / "truth.csv"))
            self._files["truth"].write(f"{','.join(TRUTH_COLUMNS)}\n".encode())
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    def add(self, name: str, columns: Sequence[Iterable[Any]]) -> None:
        """Rows given by column."""
        self._lines[name] += [",".join(map(str, row)) for row in zip(*columns, strict=True)]

    def number(self, counter: str, count: int) -> int:
        """The first of ``count`` fresh numbers."""
        first = self._counters[counter] + 1
        self._counters[counter] += count
        return first

    def flush(self) -> None:
        for name, lines in self._lines.items():
            if lines:
                self._files[name].write(("\n".join(lines) + "\n").encode())
                lines.clear()
