"""From cells to tables: means over repetitions, excess over the truth, paired differences, printed values."""

from __future__ import annotations

from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from censcore.scores import mean_loss
from censcore_studies.kit.cells import finished_cells
from censcore_studies.multivariate.extensions import Extension
from censcore_studies.multivariate.methods import FEASIBLE, METHODS, OTHER_METHODS
from censcore_studies.multivariate.printed import PRINTED
from censcore_studies.multivariate.study import CENSORINGS, DEFAULTS, STUDY, WORLDS, as_frame

__all__ = [
    "block_view",
    "extension_view",
    "paired_differences",
    "paired_view",
    "read_cells",
    "summarise",
    "summarise_extension",
    "where_the_time_went",
    "with_defaults",
]

BLOCK = ["world", "k", "censoring"]
#: What extensions vary, and all other settings that change a result; the device is no such setting.
VARIED = ["severity", "law", "n_train"]
SETTINGS = [*VARIED, *(name for name in DEFAULTS if name not in (*VARIED, "device"))]
OURS = "Censored engression"


def read_cells(out: str | Path) -> pd.DataFrame:
    """All finished cells of a folder: those in ``out/cells`` and the rows of ``out/cells.csv``.

    Rows of an earlier version of the study are left out; a table without the column ``study`` is of the first
    version. Cells that differ in nothing but the machine they ran on are the same repetition: one of
    ``out/cells`` goes before a row of the table.
    """
    out = Path(out)
    results = list(finished_cells(out, STUDY))
    frames = [as_frame(results)] if results else []
    table = out / "cells.csv"
    if table.exists():
        rows = pd.read_csv(table, dtype={"law": str})  # "true" is the name of a law, not a truth value
        rows = rows if "study" in rows else rows.assign(study="multivariate 1")
        frames.append(rows[rows["study"] == STUDY])
    if not any(map(len, frames)):
        return pd.DataFrame()
    cells = pd.concat([frame for frame in frames if len(frame)], ignore_index=True)
    cells = cells.reindex(columns=list(dict.fromkeys([*cells.columns, *DEFAULTS, "log_score", "theta"])))
    settings = [*BLOCK, "method", "repetition", *SETTINGS]
    return cells.drop_duplicates(settings).sort_values(settings, key=_as_in_the_tables, ignore_index=True)


def _as_in_the_tables(column: pd.Series) -> pd.Series:
    """Worlds, censoring and methods have an order of their own; names that it lacks come last."""
    orders = {"world": WORLDS, "censoring": CENSORINGS, "method": [*METHODS, *OTHER_METHODS]}
    order = orders.get(str(column.name))
    if order is None:
        return column
    place = {name: i for i, name in enumerate(order)}
    return column.map(lambda name: place.get(name, len(place)))


def with_defaults(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells of the tables: those that vary nothing besides world, dimension, censoring and method."""
    return cells[_usual(cells, SETTINGS)]


def _usual(cells: pd.DataFrame, names: list[str]) -> Any:
    """Where these settings have their default values."""
    return np.logical_and.reduce([cells[name] == DEFAULTS[name] for name in names])


def summarise_extension(cells: pd.DataFrame, extension: Extension) -> pd.DataFrame:
    """Excess over the truth by method and by the value of what is varied."""
    inside = (cells["world"] == "mixture") & (cells["k"] == extension.k)
    cells = cells[inside & (cells["censoring"] == extension.censoring)]
    cells = cells[cells["method"].isin(extension.methods or METHODS)]
    if extension.varies == "method":
        return summarise(with_defaults(cells))
    cells = cells[_usual(cells, [name for name in SETTINGS if name != extension.varies])]
    by_value = {value: cells[cells[extension.varies] == value] for value in extension.values}
    parts = [summarise(part).assign(**{extension.varies: v}) for v, part in by_value.items() if len(part)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """Means and standard errors over repetitions, excess over the truth in per cent, and printed values.

    ``excess %`` is the mean over repetitions of (score - score of the truth) / score of the truth on the same
    rows; ``z`` is the printed excess minus ours in standard errors of ours and of the printed mean, the
    latter taken to be as large, since both are means over repetitions of one design.
    """
    rows = []
    for block, part in cells.groupby([*BLOCK, "method"], sort=False):
        row: dict[str, Any] = dict(zip([*BLOCK, "method"], block, strict=True)) | {"repetitions": len(part)}
        for score in ("censored", "latent"):
            relative = 100 * part[f"{score}_excess"] / part[f"{score}_truth"]
            row |= {
                score: part[score].mean(),
                f"{score} se": _se(part[score]),
                f"{score} excess %": relative.mean(),
                f"{score} excess se": _se(relative),
            }
        row |= _printed(row)
        row |= {name: part[name].mean() for name in ("log_score", "theta") if part.get(name) is not None}
        row["seconds a fit"] = part["fit_seconds"].mean()
        rows.append(row)
    return pd.DataFrame(rows)


def _printed(row: dict[str, Any]) -> dict[str, float]:
    printed = PRINTED.get((row["world"], row["k"], row["censoring"]), {})
    if row["method"] not in printed:
        return {}
    censored, latent = printed[row["method"]]
    excess = 100 * (censored / printed["DGP"][0] - 1)
    return {
        "printed censored": censored,
        "printed latent": latent,
        "printed excess %": excess,
        "z": (excess - row["censored excess %"]) / (np.sqrt(2) * row["censored excess se"])
        if row["censored excess se"] > 0
        else float("nan"),
    }


def _se(values: pd.Series) -> float:
    return float(mean_loss(values.to_numpy(dtype=float)).standard_error)


def paired_differences(cells: pd.DataFrame) -> pd.DataFrame:
    """Censored engression minus every other feasible method, on the same rows, in per cent of the truth.

    Negative means that censored engression is better. The interval is the 95 % t interval over repetitions.
    """
    rows = []
    for block, part in cells.groupby(BLOCK, sort=False):
        scores = part.pivot_table(index="repetition", columns="method", values="censored")
        truth = part.groupby("repetition")["censored_truth"].mean()
        for rival in FEASIBLE:
            if rival == OURS or rival not in scores or OURS not in scores:
                continue
            gap = (100 * (scores[OURS] - scores[rival]) / truth).dropna()
            half = _se(gap) * float(stdtrit(len(gap) - 1, 0.975)) if len(gap) > 1 else float("nan")
            rows.append(
                dict(zip(BLOCK, block, strict=True))
                | {
                    "rival": rival,
                    "difference %": gap.mean(),
                    "low": gap.mean() - half,
                    "high": gap.mean() + half,
                    "repetitions": len(gap),
                }
            )
    return pd.DataFrame(rows)


def block_view(summary: pd.DataFrame) -> pd.DataFrame:
    """The table as it is read: scores, excess over the truth, and the printed excess."""
    return pd.DataFrame(
        [
            {
                "method": line["method"],
                "censoring": line["censoring"],
                "censored ES": _plus_minus(line["censored"], line["censored se"]),
                "excess": _percent(line["censored excess %"], line["censored excess se"]),
                "printed excess": _percent(line.get("printed excess %", float("nan"))),
                "latent ES": _plus_minus(line["latent"], line["latent se"]),
                "printed latent": _number(line.get("printed latent", float("nan"))),
                "reps": str(line["repetitions"]),
            }
            for line in summary.to_dict(orient="records")
        ]
    )


def paired_view(paired: pd.DataFrame) -> pd.DataFrame:
    """Per block the closest rival, and the paired difference from it with its interval."""
    rows = []
    for block, part in paired.groupby(BLOCK, sort=False):
        closest = part.loc[part["difference %"].idxmax()]
        rows.append(
            dict(zip(BLOCK, map(str, block), strict=True))
            | {
                "closest rival": closest["rival"],
                "difference": f"{closest['difference %']:+.2f} %",
                "95 % interval": _interval(closest["low"], closest["high"]),
                "reps": str(closest["repetitions"]),
            }
        )
    return pd.DataFrame(rows)


def extension_view(table: pd.DataFrame, varies: str) -> pd.DataFrame:
    """One line per method and value: score, excess, repetitions."""
    view = pd.DataFrame(
        {
            "method": table["method"],
            varies: table[varies].astype(str),
            "censored ES": [
                _plus_minus(*pair) for pair in zip(table["censored"], table["censored se"], strict=True)
            ],
            "excess": [
                _percent(*pair)
                for pair in zip(table["censored excess %"], table["censored excess se"], strict=True)
            ],
            "latent excess": [
                _percent(*pair)
                for pair in zip(table["latent excess %"], table["latent excess se"], strict=True)
            ],
            "log score": [_number(value) for value in table["log_score"]],
            "theta": [_number(value, ".1f") for value in table["theta"]],
            "seconds a fit": [f"{seconds:.0f}" for seconds in table["seconds a fit"]],
            "reps": table["repetitions"].astype(str),
        }
    )
    empty = [name for name in ("log score", "theta") if (view[name] == "").all()]
    return view.loc[:, ~view.columns.duplicated()].drop(columns=empty)


def where_the_time_went(cells: pd.DataFrame) -> str:
    """Fitting by method and everything else, in shares of the seconds of all cells.

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore_studies.multivariate.summary import where_the_time_went
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


def _plus_minus(value: float, error: float) -> str:
    return f"{value:.4f}" if isnan(error) else f"{value:.4f} ± {error:.4f}"


def _interval(low: float, high: float) -> str:
    """One repetition has no interval."""
    return "" if isnan(low) else f"{low:+.2f} to {high:+.2f}"


def _percent(value: float, error: float = float("nan")) -> str:
    if isnan(value):
        return ""
    return f"{value:.1f} %" if isnan(error) else f"{value:.1f} ± {error:.1f} %"


def _number(value: float, form: str = ".4f") -> str:
    return "" if isnan(value) else f"{value:{form}}"
