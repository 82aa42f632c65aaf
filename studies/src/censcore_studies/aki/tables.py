"""The tables of the study in the paper's form, as files: means, errors by patient, printed numbers beside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from censcore_studies.aki import printed
from censcore_studies.aki.evaluation import HORIZONS, LOSSES, SHARES, TRUTH, read_results, with_truth
from censcore_studies.aki.features import ENDPOINTS
from censcore_studies.aki.methods import METHODS
from censcore_studies.aki.report import FEWEST
from censcore_studies.kit.tables import StudyTable, plus_minus

__all__ = ["study_tables"]

Found = Mapping[str, Any]

_PRINTED = "Printed: the paper's number, on MIMIC-IV."
_DIFFERENCES = (
    "Losses less those of censored engression on the same rows ± one standard error by patient; positive is "
    "worse than censored engression, and beyond 1.96 standard errors it is no noise."
)
_EXCESS = (
    "Losses less those of the true distribution given what the stay was drawn from and all that was charted, "
    "on the same rows ± one standard error by patient."
)
_ENERGY = ("joint", *ENDPOINTS)
_TOPS = tuple(f"{what}_{share}" for share in SHARES for what in ("ppv", "sensitivity"))
_HEADINGS = {
    **{name: name for name in _ENERGY},
    **{f"brier_{horizon}": f"Brier {horizon} h" for horizon in HORIZONS},
    "brier": "Brier",
    **{
        f"{what}_{share}": f"{short} {share} %"
        for share in SHARES
        for what, short in (("ppv", "PPV"), ("sensitivity", "sens."))
    },
}


def study_tables(out: str | Path, *, reveal: bool = False) -> list[StudyTable]:
    """The tables of an evaluated study.

    ``energy`` are the localized energy scores, ``utility`` the results for either AKI at fixed horizons, and
    ``differences`` the losses of every method less those of censored engression, paired by row. A synthetic
    database adds the true distribution to the first two, and ``excess``, the losses less those of the truth.
    Numbers that rest on fewer than ten patients are withheld.

    Parameters
    ----------
    out : path
        The output directory of :func:`evaluate`.
    reveal : bool
        Leave nothing out. For private use, or for data that are not patients'.
    """
    results, fewest = read_results(Path(out)), 0 if reveal else FEWEST
    found = with_truth(results)
    made = [_energy(found, fewest), _utility(found, fewest)]
    for name, caption in (("differences", _DIFFERENCES), ("excess", _EXCESS)):
        if results.get(name):
            of_methods = {method: results[name][method] for method in METHODS if method in results[name]}
            made.append(_table(name, _lines(of_methods, {w: w for w in LOSSES}, fewest), caption))
    return made


def _energy(found: Found, fewest: int) -> StudyTable:
    lines = _lines(found, {w: w for w in _ENERGY}, fewest, printed.ENERGY)
    caption = f"Localized energy score in hours ± one standard error by patient. {_PRINTED}"
    return _table("energy", lines, caption)


def _utility(found: Found, fewest: int) -> StudyTable:
    lines = []
    for horizon in HORIZONS:
        tops = {top: top.replace("_", f"_{horizon}_") for top in _TOPS}
        of_horizon = _lines(found, {"brier": f"brier_{horizon}", **tops}, fewest, printed.UTILITY[horizon])
        lines += [{"horizon": f"{horizon} h", **line} for line in of_horizon]
    caption = (
        "Either AKI at fixed horizons ± one standard error by patient: localized Brier score, and predictive "
        f"value and sensitivity of the highest risks among rows whose outcome is known. {_PRINTED}"
    )
    return _table("utility", lines, caption)


def _lines(
    found: Found, columns: Mapping[str, str], fewest: int, paper: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Mean, standard error and printed number of every column, a line for each method."""
    lines = []
    for name, of_method in found.items():
        line: dict[str, Any] = {"method": "Truth" if name == TRUTH else METHODS[name].label}
        for place, (column, what) in enumerate(columns.items()):
            value = of_method[what]
            known = value["mean"] is not None and value["patients"] >= fewest
            line[column] = value["mean"] if known else None
            line[f"{column}_error"] = value["standard_error"] if known else None
            if paper is not None and name in paper:
                line[f"{column}_printed"] = paper[name][place]
        lines.append(line)
    return lines


def _table(name: str, lines: list[dict[str, Any]], caption: str) -> StudyTable:
    rows = pd.DataFrame(lines)
    view = rows[[key for key in ("horizon", "method") if key in rows]].copy()
    for column, heading in _HEADINGS.items():
        if column not in rows:
            continue
        errors, decimals = rows[f"{column}_error"], 3 if column in _ENERGY else 4
        view[heading] = [_shown(*pair, decimals) for pair in zip(rows[column], errors, strict=True)]
        if f"{column}_printed" in rows:
            numbers = rows[f"{column}_printed"]
            view[f"{heading}, printed"] = ["" if pd.isna(value) else f"{value:.3f}" for value in numbers]
    return StudyTable(name, rows, view, caption)


def _shown(mean: float, error: float, decimals: int) -> str:
    return "–" if pd.isna(mean) else plus_minus(mean, math.nan if pd.isna(error) else error, decimals)
