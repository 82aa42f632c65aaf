"""Finished cells of the study, from the store or from a table of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore_studies.kit.cells import finished_cells
from censcore_studies.multivariate.methods import METHODS, OTHER_METHODS
from censcore_studies.multivariate.study import (
    CENSORINGS,
    DEFAULTS,
    EARLIER_NAMES,
    SCENARIOS,
    TAGS,
    as_frame,
    tag_of,
)

__all__ = ["BLOCK", "SETTINGS", "gathered", "read_cells", "usual", "where_the_time_went", "with_defaults"]

BLOCK = ["scenario", "k", "censoring"]

#: The settings that extensions vary.
VARIED = ["severity", "censoring_distribution", "n_train"]

#: All settings that distinguish cells; the device does not.
SETTINGS = [*VARIED, *(name for name in DEFAULTS if name not in (*VARIED, "device"))]


def read_cells(out: str | Path) -> pd.DataFrame:
    """All finished cells of a folder: those in ``out/cells`` and the rows of ``out/cells.csv``.

    Cells of another version of the study are left out; a table without the column ``study`` is of the first
    version. Cells that differ only in the machine they ran on are the same repetition: the one in
    ``out/cells`` is taken before that in the table.
    """
    out = Path(out)
    results = [result for tag in TAGS for result in finished_cells(out, tag)]
    frames = [as_frame(results)] if results else []
    table = out / "cells.csv"
    if table.exists():
        names = list(pd.read_csv(table, nrows=0).rename(columns=EARLIER_NAMES))
        # "true" names a censoring distribution here and is no truth value
        rows = pd.read_csv(table, header=0, names=names, dtype={"censoring_distribution": str})
        frames.append(rows if "study" in rows else rows.assign(study="multivariate 1"))
    # an earlier version of the study gave other numbers
    frames = [frame[frame["study"] == frame["method"].map(tag_of)] for frame in frames]
    if not any(map(len, frames)):
        return pd.DataFrame()
    cells = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    cells = cells.reindex(columns=list(dict.fromkeys([*cells.columns, *DEFAULTS, "log_score", "theta"])))
    settings = [*BLOCK, "method", "repetition", *SETTINGS]
    return cells.drop_duplicates(settings).sort_values(settings, key=_as_in_the_tables, ignore_index=True)


def _as_in_the_tables(column: pd.Series) -> pd.Series:
    """Scenarios, censoring and methods have an order of their own; names that it lacks come last."""
    orders = {"scenario": SCENARIOS, "censoring": CENSORINGS, "method": [*METHODS, *OTHER_METHODS]}
    order = orders.get(str(column.name))
    if order is None:
        return column
    place = {name: i for i, name in enumerate(order)}
    return column.map(lambda name: place.get(name, len(place)))


def gathered(out: Path) -> pd.DataFrame:
    """All finished cells of a folder, which are written to its ``cells.csv`` too."""
    cells = read_cells(out)
    if cells.empty:
        raise InvalidInputError(f"{out} holds no finished cells; run the study first.")
    write_atomically(out / "cells.csv", cells.to_csv(index=False, float_format="%.7g"))
    return cells


def with_defaults(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the tables: those that vary nothing besides scenario, dimension, censoring and method."""
    return cells[usual(cells, SETTINGS)]


def usual(cells: pd.DataFrame, names: list[str]) -> Any:
    """Where these settings have their default values."""
    return np.logical_and.reduce([cells[name] == DEFAULTS[name] for name in names])


def where_the_time_went(cells: pd.DataFrame) -> str:
    """Fitting by method and everything else, in shares of the seconds of all cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore_studies.multivariate.finished import where_the_time_went
    >>> cells = pd.DataFrame({"method": ["DGP", "A"], "fit_seconds": [0.0, 6.0], "seconds": [2.0, 8.0]})
    >>> where_the_time_went(cells)
    '10 s in 2 cells: A 60 %, data and scoring 40 %'
    """
    whole = float(cells["seconds"].sum())
    fits = cells.groupby("method")["fit_seconds"].sum().sort_values(ascending=False)
    parts = {str(name): float(seconds) for name, seconds in fits.items() if seconds > 0}
    parts["data and scoring"] = whole - sum(parts.values())
    shares = ", ".join(f"{name} {100 * seconds / whole:.0f} %" for name, seconds in parts.items())
    return f"{whole:.0f} s in {len(cells)} cells: {shares}"
