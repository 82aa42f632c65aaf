"""Tables with captions and pictures, from finished cells."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore_studies.kit.tables import StudyTable
from censcore_studies.multivariate import figures, summary
from censcore_studies.multivariate.extensions import EXTENSIONS
from censcore_studies.multivariate.methods import METHODS
from censcore_studies.multivariate.reliability import (
    calibration_curves,
    calibration_table,
    calibration_view,
)

__all__ = ["report_calibration", "report_extension", "report_tables"]


def report_tables(out: Path) -> list[StudyTable]:
    """One table per world and dimension, and the paired differences; draws ``excess.png``, ``dimension.png``.

    All finished cells of the folder are gathered in ``cells.csv``.
    """
    cells = _gathered(out)
    cells = summary.with_defaults(cells[cells["method"].isin(METHODS)])
    table, paired = summary.summarise(cells), summary.paired_differences(cells)
    methods = table[table["method"] != "DGP"]
    if not methods.empty:
        figures.draw_excess(out / "excess.png", methods)
    if methods[methods["world"] == "mixture"]["k"].nunique() > 1:
        figures.draw_dimension(out / "dimension.png", methods)
    tables = [
        StudyTable(
            f"{world}_k{k}",
            block,
            summary.block_view(block),
            f"Energy scores for k = {k} event times, {world} world: mean ± standard error over repetitions; "
            "excess is over the score of the true law on the same rows.",
        )
        for (world, k), block in table.groupby(["world", "k"], sort=False)
    ]
    if not paired.empty:
        caption = (
            "Censored engression minus its closest feasible rival on the same rows, in per cent of the score "
            "of the true law, with a 95 % interval over repetitions."
        )
        tables.append(StudyTable("paired", paired, summary.paired_view(paired), caption))
    return tables


def _gathered(out: Path) -> pd.DataFrame:
    cells = summary.read_cells(out)
    if cells.empty:
        raise InvalidInputError(f"{out} holds no finished cells; run the study first.")
    write_atomically(out / "cells.csv", cells.to_csv(index=False, float_format="%.7g"))
    return cells


def report_extension(out: Path, name: str) -> StudyTable:
    """Excess over the truth against what one extension varies; draws ``extension_<name>.png``."""
    extension = EXTENSIONS[name]
    table = summary.summarise_extension(_gathered(out), extension)
    figures.draw_extension(out / f"extension_{name}.png", table, extension.varies, extension.label)
    caption = (
        f"Excess of the censored energy score over the true law by {extension.label}; mixture world, "
        f"k = {extension.k}, {extension.censoring} censoring."
    )
    return StudyTable(f"extension_{name}", table, summary.extension_view(table, extension.varies), caption)


def report_calibration(out: Path) -> StudyTable | None:
    """Joint probabilities in the uniform regime with k = 3; draws ``calibration.png``."""
    curves = calibration_curves(out)
    if not curves:
        return None
    figures.draw_calibration(out / "calibration.png", curves)
    table = calibration_table(curves)
    caption = (
        "Predicted against true probabilities of joint events on the test rows of one repetition: mean "
        "difference (bias) and root mean square difference; mixture world, k = 3, uniform censoring."
    )
    return StudyTable("calibration", table, calibration_view(table), caption)
