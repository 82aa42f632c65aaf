"""The matrix as tables for the documentation: one per design, kinds of outcome against sources of C."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

#: What a reason begins with, or contains, and how the page says it.
REASONS = {
    r"divides by P\(C > t\)|no chance to|P\(C > t\) = 0": "some subject has P(C > t) = 0 at its known "
    "censoring time, and this measure divides by it; scores on the localized scale do not",
    "distribution that .* predicted": "a distribution fitted to subjects of all folds knows whom a fold is "
    "tested on; pass the estimator",
    "for a table read in batches expected an estimator": "a distribution of given subjects does not fit a "
    "table read in batches; pass the estimator",
    "not available for a table that is read in batches": "not available for tables read in batches",
    "fitted to subjects in memory": "it is fitted to subjects in memory; pass train=(X, y), a sample",
    "stayed in their table|all pairs of subjects|needs the subjects": "needs all subjects in memory",
    "number of the last visit": "drop-out is a number of visits; its distribution is estimated, not given",
    "order event times": "events between visits have no order",
    "IntervalCensored where|landmark": "no landmarks for this kind of outcome",
    "one event|expected a cause": "it shows the risk of one event",
}


def short(reason: str) -> str:
    """A reason in the words of the page."""
    for pattern, words in REASONS.items():
        if re.search(pattern, reason):
            return words
    return re.sub(r"\s+", " ", reason.partition(": ")[2] or reason)[:160]


def tables(cells: pd.DataFrame) -> str:
    """All tables, with the reasons below each."""
    counts = cells.state.value_counts()
    text = [f"{counts.get('works', 0):,} cells work, {counts.get('refused', 0):,} are refused, "
            f"{counts.get('fails', 0):,} fail.\n"]  # fmt: skip
    for design, of_design in cells.groupby("design", sort=False):
        text.append(f"### {design[0].upper()}{design[1:]}\n")
        text.append(_table(of_design))
    return "\n".join(text)


def _table(cells: pd.DataFrame) -> str:
    reasons: list[str] = []
    sources = list(dict.fromkeys(cells.source))
    lines = [f"| | {' | '.join(sources)} |", "|---" * (len(sources) + 1) + "|"]
    for kind, of_kind in cells.groupby("kind", sort=False):
        entries = [_entry(of_kind[of_kind.source == source], reasons) for source in sources]
        lines.append(f"| {kind} | {' | '.join(entries)} |")
    notes = [f"{i}. {reason}" for i, reason in enumerate(reasons, start=1)]
    return "\n".join([*lines, "", *notes, ""])


def _entry(cells: pd.DataFrame, reasons: list[str]) -> str:
    refused = cells[cells.state == "refused"]
    numbers = []
    for reason in dict.fromkeys(map(short, refused.reason)):
        if reason not in reasons:
            reasons.append(reason)
        numbers.append(f"({reasons.index(reason) + 1})")
    if refused.empty:
        return "all"
    if len(refused) == len(cells):
        return f"none {' '.join(numbers)}"
    return f"all but {', '.join(refused.measure)} {' '.join(numbers)}"


def coverage_table(counts: pd.DataFrame) -> str:
    """Smallest and largest coverage of each representative, and what is outside of 93 to 97 %."""
    names = ["kind", "design", "source", "n"]
    lines = [
        "| kind | design | source of C | n | data sets | means | differences | outside |",
        "|---" * 8 + "|",
    ]
    for about, some in counts.groupby(names, sort=False):
        found = some.assign(covered=100 * (1 - (some.below + some.above) / some.intervals.clip(lower=1)))
        found = found[found.intervals > 0]
        error = 100 * (0.95 * 0.05 / found.intervals) ** 0.5
        outside = found[(found.covered < 93 - 2 * error) | (found.covered > 97 + 2 * error)]
        lines.append(
            f"| {' | '.join(map(str, about))} | {some.data_sets.max():,} | "
            f"{_span(found[found.of != 'difference'])} | {_span(found[found.of == 'difference'])} | "
            f"{'; '.join(map(_outside, outside.itertuples()))} |"
        )
    return "\n".join([*lines, ""])


def _span(found: pd.DataFrame) -> str:
    return f"{found.covered.min():.1f} to {found.covered.max():.1f}" if len(found) else ""


def _outside(line: Any) -> str:
    of = f" of {line.outcome}" if line.outcome else ""
    at = f" at {line.at:g}" if line.at >= 0 else ""
    return f"{line.measure}{of}{at}, {line.of}: {line.covered:.1f}"


def write(cells: pd.DataFrame, folder: Path) -> None:
    """``cells.csv`` and ``tables.md``."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = cells.assign(reason=cells.reason.map(lambda reason: short(reason) if reason else ""))
    kept.to_csv(folder / "cells.csv", index=False)
    (folder / "tables.md").write_text(tables(cells), encoding="utf-8")
