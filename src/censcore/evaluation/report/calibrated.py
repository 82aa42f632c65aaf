"""Whether forecast and observed risks agree: one line per forecast, for the verdict and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.lines import Line
from censcore.exceptions import CenscoreError
from censcore.outcomes import EventOfCause
from censcore.published import DCalibration, d_calibration

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["calibration_lines", "d_calibrations"]

LARGE = 100_000  # subjects, above which the curve behind the ICI is left to those who ask for it


def calibration_lines(comparison: Comparison, outcome: str) -> list[Line]:
    """Per forecast of a risk: its ICI at the middle time, two p-values, and whether it is calibrated.

    ``calibrated`` is False where chance explains neither the distance between forecast and observed risks at
    the time nor the D-calibration over all times (Bonferroni over the two tests), and None where neither test
    can tell. Empty where there is no such picture of the outcome, or the data do not reach the time.
    """
    options = {"outcome": outcome} if outcome else {}
    if options not in comparison.pictured("calibration"):
        return []
    key = f"calibrated, {outcome}"
    if key not in comparison.made:
        try:
            comparison.made[key] = _lines(comparison, outcome)
        except CenscoreError:  # the page says why, where the curves would be
            comparison.made[key] = []
    lines: list[Line] = comparison.made[key]
    return lines


def _lines(comparison: Comparison, outcome: str) -> list[Line]:
    one, lines = comparison.of(outcome) if outcome else comparison, []
    over_time = d_calibrations(one)
    small = len(one.outcome) <= LARGE
    for model in one.models:
        curve = one.calibration(model) if small else None
        found = {"ici": np.nan, "p_value": np.nan, "d_calibration": over_time[model].p_value}
        found |= {} if curve is None else {"ici": curve.ici, "p_value": curve.p_value}
        known = [p for p in (found["p_value"], found["d_calibration"]) if not np.isnan(p)]
        calibrated = min(known) * len(known) >= 1 - one.confidence if known else None
        lines.append({"model": model, "time": one.one_time(), **found, "calibrated": calibrated})
    return lines


def d_calibrations(comparison: Comparison, bins: int = 10) -> dict[str, DCalibration]:
    """D-calibration of every forecast of one event."""
    weight, groups = comparison.subsets[0].weight, comparison.groups
    found = {}
    for model, case in comparison.cases.items():
        y, C = case.y, None
        if isinstance(y, EventOfCause):  # C matters, and is known up to the horizon
            y, C = y.censor_at(case.horizon), case.C.censor_at(case.horizon)
        found[model] = d_calibration(y, case.F, C, bins=bins, sample_weight=weight, groups=groups)
    return found
