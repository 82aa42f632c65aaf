"""The table library by case, as a file of results and as a part of the documentation."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from pathlib import Path

from censcore.files import write_atomically
from conformance.case import Case, cases, conventions
from conformance.libraries import LIBRARIES, installed, library
from conformance.runner import STATUSES, run

__all__ = ["Row", "collect", "read_rows", "tables", "write"]

#: Titles of the quantities, in the order of the page.
QUANTITIES = {
    "brier_score_ipcw": "Brier score with inverse-probability weights",
    "cause_brier_score_ipcw": "Brier score of one cause, with inverse-probability weights",
    "integrated_brier_score_ipcw": "Integrated Brier score with inverse-probability weights",
    "brier_score": "Brier score of min(T, C)",
    "crps": "CRPS",
    "log_score": "Log score",
    "binomial_log_score": "Binomial log score of min(T, C)",
    "binomial_log_score_ipcw": "Binomial log score with inverse-probability weights",
    "pinball_score": "Pinball score",
    "energy_score": "Energy score",
    "concordance": "Harrell's concordance",
    "concordance_ipcw": "Uno's concordance",
    "dynamic_auc": "Cumulative/dynamic AUC",
    "d_calibration": "D-calibration",
    "kaplan_meier": "Kaplan-Meier curve",
    "censoring_kaplan_meier": "Kaplan-Meier curve of the censoring times",
    "cumulative_incidence": "Cumulative incidence (Aalen-Johansen)",
}


@dataclass(frozen=True)
class Row:
    """One line of the file of results."""

    library: str
    version: str
    case: str
    status: str
    detail: str


def collect() -> list[Row]:
    """What every installed library gives for every case."""
    return [
        Row(name, version, result.case.id, result.status, result.detail)
        for name, version in installed().items()
        for result in run(library(name))
    ]


def read_rows(path: Path) -> list[Row]:
    """The lines of a file of results; none if there is no file."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**line) for line in csv.DictReader(file)]


def write(folder: Path) -> list[Row]:
    """Write ``results.csv`` and ``tables.md``; lines of libraries that are not installed stay as they are."""
    found = collect()
    known = {case.id for case in cases()}
    seen = {row.library for row in found}
    kept = [row for row in read_rows(folder / "results.csv") if row.library not in seen and row.case in known]
    order = list(LIBRARIES)
    rows = sorted([*found, *kept], key=lambda row: order.index(row.library))
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([field.name for field in fields(Row)])
    lines.writerows(astuple(row) for row in rows)
    write_atomically(folder / "results.csv", text.getvalue())
    write_atomically(folder / "tables.md", tables(rows))
    return rows


def tables(rows: Iterable[Row]) -> str:
    """The summary, one table for each quantity, messages and the conventions that occur, as Markdown."""
    rows = list(rows)
    results = {(row.library, row.case): row for row in rows}
    versions = {row.library: row.version for row in rows}
    marks = _marks(rows)
    parts = [_summary(rows, versions)]
    for quantity, title in QUANTITIES.items():
        parts.append(f"### {title}\n\n{_table(cases(quantity), results, versions, marks)}")
    parts.append(f"### Errors and differences\n\n{_messages(rows)}")
    parts.append(f"### Conventions\n\n{_conventions(marks)}")
    return "\n\n".join(parts) + "\n"


def _marks(rows: list[Row]) -> dict[str, str]:
    """A letter for each convention that occurs."""
    named = conventions()
    occurring = [name for name in named if any(name in _names(row) for row in rows)]
    return dict(zip(occurring, "abcdefghijklmnopqrstuvwxyz", strict=False))


def _names(row: Row) -> list[str]:
    """The conventions of a line."""
    if row.status == "convention":
        return row.detail.split("; ")
    if row.status in ("silent", "warned"):
        return row.detail.partition(": ")[2].split("; ")
    return []


def _summary(rows: list[Row], versions: dict[str, str]) -> str:
    shown = [status for status in STATUSES if any(row.status == status for row in rows)]
    lines = [_line("library", "version", *shown), _line(*["---"] * (len(shown) + 2))]
    for name, version in versions.items():
        found = [row.status for row in rows if row.library == name]
        lines.append(_line(name, version, *(str(found.count(status)) for status in shown)))
    return "\n".join(lines)


def _table(
    suite: tuple[Case, ...],
    results: dict[tuple[str, str], Row],
    versions: dict[str, str],
    marks: dict[str, str],
) -> str:
    columns = [
        name
        for name in versions
        if any(results[name, case.id].status != "not offered" for case in suite if (name, case.id) in results)
    ]
    lines = [_line("case", *columns), _line(*["---"] * (len(columns) + 1))]
    for case in suite:
        cells = [_cell(results.get((name, case.id)), marks) for name in columns]
        lines.append(_line(f"{case.title} (`{case.id}`)", *cells))
    return "\n".join(lines)


def _cell(row: Row | None, marks: dict[str, str]) -> str:
    if row is None or row.status == "not offered":
        return "–"
    letters = ", ".join(marks[name] for name in _names(row) if name in marks)
    if row.status == "wrong":
        return row.detail.partition(" (")[0]
    return f"{row.status} {letters}".strip()


def _messages(rows: list[Row]) -> str:
    """What was said, or by how much a number differs, where the cell is too small for it."""
    lines = [_line("library", "case", "what was given"), _line("---", "---", "---")]
    for row in rows:
        if row.status in ("wrong", "error"):
            detail = row.detail.replace("|", "/").replace("`", "'")
            lines.append(_line(row.library, f"`{row.case}`", f"`{detail}`"))
    return "\n".join(lines)


def _conventions(marks: dict[str, str]) -> str:
    named = conventions()
    lines = [_line("", "name", "what it means"), _line("---", "---", "---")]
    return "\n".join([*lines, *(_line(mark, name, named[name]) for name, mark in marks.items())])


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
