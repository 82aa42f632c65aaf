"""The database on disk: which files and columns must be there, what they contain, which release it is."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError
from censcore_studies.aki.settings import SourceSettings
from censcore_studies.kit.store import file_hash, write_json

__all__ = ["ANCHOR_YEAR_GROUPS", "SourceFile", "open_source", "release"]

ANCHOR_YEAR_GROUPS = ("2008 - 2010", "2011 - 2013", "2014 - 2016", "2017 - 2019", "2020 - 2022")

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "hosp/patients": ("subject_id", "gender", "anchor_age", "anchor_year", "anchor_year_group"),
    "hosp/admissions": ("subject_id", "hadm_id", "admittime", "dischtime", "deathtime"),
    "hosp/diagnoses_icd": ("subject_id", "hadm_id", "seq_num", "icd_code", "icd_version"),
    "hosp/labevents": (
        "labevent_id", "subject_id", "itemid", "charttime", "storetime", "valuenum", "valueuom",
    ),
    "icu/icustays": ("subject_id", "hadm_id", "stay_id", "intime", "outtime"),
    "icu/outputevents": ("stay_id", "charttime", "storetime", "itemid", "value", "valueuom"),
    "icu/chartevents": ("stay_id", "charttime", "storetime", "itemid", "valuenum"),
    "icu/inputevents": ("stay_id", "starttime", "patientweight"),
}  # fmt: skip


@dataclass(frozen=True)
class SourceFile:
    """One table of the database: where it lies, its columns in file order, the hash of its content."""

    table: str
    path: Path
    columns: tuple[str, ...]
    sha256: str

    @property
    def label(self) -> str:
        """The file's name inside the database, for messages."""
        return f"{self.path.parent.name}/{self.path.name}"


def open_source(data_dir: Path, settings: SourceSettings, remembered: Path) -> dict[str, SourceFile]:
    """Find and check every table that ``settings`` need.

    Parameters
    ----------
    data_dir : Path
        The folder that holds ``hosp/`` and ``icu/``, with ``.csv.gz`` or ``.csv`` files.
    settings : SourceSettings
        ``inputevents`` is needed only where its weights are asked for.
    remembered : Path
        A JSON file with the hashes of files already read; a file of the same size and time is not read again.

    Raises
    ------
    InvalidInputError
        Naming every table and column that is missing, at once.
    """
    wanted = [
        name for name in _COLUMNS if name != "icu/inputevents" or "inputevents" in settings.weight_sources
    ]
    if not data_dir.is_dir():
        raise InvalidInputError(f"{data_dir} is not a folder; pass the one that holds hosp/ and icu/.")
    found = {name: _candidates(data_dir, name) for name in wanted}
    _check_present_once(data_dir, found)
    paths = {name: files[0] for name, files in found.items()}
    headers = {name: _header(path) for name, path in paths.items()}
    _check_columns(headers)
    hashes = _hashes(paths, remembered)
    return {
        name.split("/")[1]: SourceFile(name.split("/")[1], paths[name], headers[name], hashes[name])
        for name in wanted
    }


def release(groups: Sequence[str]) -> str:
    """The release that a set of anchor-year groups belongs to.

    >>> release(["2008 - 2010", "2020 - 2022"])
    '3.x'
    >>> release(["2014 - 2016"])
    '2.2 or earlier'
    """
    unknown = sorted(set(groups) - set(ANCHOR_YEAR_GROUPS))
    if unknown:
        years = [group for group in unknown if re.fullmatch(r"\d{4} - \d{4}", group)]
        shown = years if len(years) == len(unknown) else f"{len(unknown)} values that are no such groups"
        raise InvalidInputError(
            f"hosp/patients has anchor_year_group {shown}; MIMIC-IV 2.2 and 3.x know "
            f"{list(ANCHOR_YEAR_GROUPS)}. Is this another database or release?"
        )
    return "3.x" if ANCHOR_YEAR_GROUPS[-1] in groups else "2.2 or earlier"


def _candidates(data_dir: Path, name: str) -> list[Path]:
    return [path for path in (data_dir / f"{name}.csv.gz", data_dir / f"{name}.csv") if path.is_file()]


def _check_present_once(data_dir: Path, found: Mapping[str, list[Path]]) -> None:
    absent = [name for name, files in found.items() if not files]
    if absent:
        older = (
            " A core/ folder is MIMIC-IV 1.0, which is not supported." if (data_dir / "core").is_dir() else ""
        )
        raise InvalidInputError(
            f"{data_dir} lacks {', '.join(absent)} (.csv.gz or .csv); expected is the folder layout of "
            f"MIMIC-IV 2.2 or 3.x, with hosp/ and icu/.{older}"
        )
    twice = [name for name, files in found.items() if len(files) > 1]
    if twice:
        raise InvalidInputError(f"{', '.join(twice)} exists both as .csv and .csv.gz; keep one of the two.")


def _header(path: Path) -> tuple[str, ...]:
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
            line = file.readline(_LONGEST_HEADER)
        names = tuple(name.strip() for name in next(csv.reader([line], strict=True), []))
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None
    if not all(name and name.isprintable() for name in names):
        raise InvalidInputError(
            f"{path} (line 1): expected the names of the columns. The file is damaged, or its header is lost."
        )
    return names


_LONGEST_HEADER = 100_000
_UNREADABLE = (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error)


def _unreadable(path: Path, error: Exception) -> InvalidInputError:
    """Says why in the words of the system, but nothing of what the file holds."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return InvalidInputError(
        f"{path} cannot be read: {reason}. The file is damaged or truncated; compare it with the "
        "SHA256SUMS.txt of its release and fetch it again."
    )


def _check_columns(headers: Mapping[str, tuple[str, ...]]) -> None:
    missing = {
        name: [column for column in _COLUMNS[name] if column not in header]
        for name, header in headers.items()
    }
    named = [f"{name} lacks {', '.join(columns)}" for name, columns in missing.items() if columns]
    twice = [f"{name} has {repeated}" for name, header in headers.items() if (repeated := _repeated(header))]
    if twice:
        raise InvalidInputError(
            f"Column names are repeated in line 1: {'; '.join(twice)}. Which of them is meant cannot be "
            "told: fetch the file again."
        )
    if named:
        raise InvalidInputError(f"Columns are missing: {'; '.join(named)}. Expected is MIMIC-IV 2.2 or 3.x.")


def _repeated(header: tuple[str, ...]) -> str:
    """The names that DuckDB, which does not tell capitals apart, sees twice; others than ours are counted."""
    lower = [name.lower() for name in header]
    twice = sorted({name for name in lower if lower.count(name) > 1})
    known = [name for name in twice if any(name in columns for columns in _COLUMNS.values())]
    others = len(twice) - len(known)
    return ", ".join(known + ([f"{others} other names"] if others else [])) + " twice" if twice else ""


def _hashes(paths: Mapping[str, Path], remembered: Path) -> dict[str, str]:
    try:
        known = json.loads(remembered.read_text("utf-8"))
    except (OSError, ValueError):
        known = {}
    known = known if isinstance(known, dict) else {}

    def described(name: str) -> dict[str, Any]:
        path = paths[name]
        status = path.stat()
        stamp = [str(path.resolve()), status.st_size, status.st_mtime_ns]
        old = known.get(name)
        if isinstance(old, dict) and old.get("stamp") == stamp and isinstance(old.get("sha256"), str):
            return {"stamp": stamp, "sha256": old["sha256"]}
        return {"stamp": stamp, "sha256": _checked_hash(path)}

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        current = dict(zip(paths, pool.map(described, paths), strict=True))
    write_json(remembered, current)
    return {name: entry["sha256"] for name, entry in current.items()}


_AT_ONCE = 4  # files; decompressing and hashing let other threads work


def _checked_hash(path: Path) -> str:
    """SHA-256 of a file whose checksum is right: DuckDB reads damaged gzip files without a word."""
    try:
        if path.suffix == ".gz":
            with gzip.open(path) as file:
                while file.read(1 << 20):
                    pass
        return file_hash(path)
    except _UNREADABLE as error:
        raise _unreadable(path, error) from None
