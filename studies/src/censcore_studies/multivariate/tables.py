"""The tables of energy scores: means, excess over the truth, printed values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from censcore.scores import mean_loss
from censcore_studies.kit.tables import StudyTable, number, percent, plus_minus
from censcore_studies.multivariate.excess_figures import draw_dimension, draw_excess
from censcore_studies.multivariate.finished import BLOCK, gathered, with_defaults
from censcore_studies.multivariate.methods import METHODS
from censcore_studies.multivariate.paired import paired_differences, report_paired
from censcore_studies.multivariate.printed import PRINTED

__all__ = ["block_view", "report_tables", "summarise"]


def report_tables(out: Path) -> list[StudyTable]:
    """One table per scenario and dimension, and the paired differences, with two figures.

    All finished cells of the folder are gathered in ``cells.csv``.
    """
    cells = gathered(out)
    cells = with_defaults(cells[cells["method"].isin(METHODS)])
    table, paired = summarise(cells), paired_differences(cells)
    methods = table[table["method"] != "DGP"]
    if not methods.empty:
        draw_excess(out / "excess.png", methods)
    if methods[methods["scenario"] == "mixture"]["k"].nunique() > 1:
        draw_dimension(out / "dimension.png", methods)
    tables = [
        StudyTable(
            f"{scenario}_k{k}",
            block,
            block_view(block),
            f"Energy scores for k = {k} event times, {scenario} scenario: mean ± standard error over "
            "repetitions; excess is over the score of the true distribution on the same subjects.",
        )
        for (scenario, k), block in table.groupby(["scenario", "k"], sort=False)
    ]
    if not paired.empty:
        tables.append(report_paired(paired))
    return tables


def summarise(cells: pd.DataFrame) -> pd.DataFrame:
    """Means and standard errors over repetitions, excess over the truth in per cent, and printed values.

    ``excess %`` is the mean over repetitions of (score - score of the truth) / score of the truth on the same
    subjects; ``z`` is the printed excess minus ours in standard errors of ours and of the printed mean, the
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
    printed = PRINTED.get((row["scenario"], row["k"], row["censoring"]), {})
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
    return float(mean_loss(values.to_numpy(dtype=float)).standard_error) if len(values) > 1 else np.nan


def block_view(summary: pd.DataFrame) -> pd.DataFrame:
    """The table as it is read: scores, excess over the truth, and the printed excess."""
    return pd.DataFrame(
        [
            {
                "method": line["method"],
                "censoring": line["censoring"],
                "censored ES": plus_minus(line["censored"], line["censored se"]),
                "excess": percent(line["censored excess %"], line["censored excess se"]),
                "printed excess": percent(line.get("printed excess %", float("nan"))),
                "latent ES": plus_minus(line["latent"], line["latent se"]),
                "printed latent": number(line.get("printed latent", float("nan"))),
                "reps": str(line["repetitions"]),
            }
            for line in summary.to_dict(orient="records")
        ]
    )
