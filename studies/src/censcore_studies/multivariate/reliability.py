"""Reliability of joint probabilities, gathered from cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from censcore_studies.kit.cells import finished_cells
from censcore_studies.multivariate.study import DEFAULTS, STUDY

__all__ = ["calibration_curves", "calibration_table", "calibration_view"]

_SHOWN = ("Naive observed engression", "MLP Clayton-Weibull", "Censored engression")
_BLOCK = {"world": "mixture", "k": 3, "censoring": "uniform", "repetition": 0}


def calibration_curves(out: Path) -> dict[str, dict[str, Any]]:
    """Method, joint event, curve: from the first repetition of the uniform regime, k = 3, at full size."""
    found = {}
    block = DEFAULTS | {"study": STUDY} | _BLOCK
    for result in finished_cells(out, STUDY):
        settings = result["fixed"] | result["settings"] | {"device": DEFAULTS["device"]}
        method = settings.pop("method")
        if method in _SHOWN and settings == block and "calibration" in result:
            found[method] = result["calibration"]
    return {method: found[method] for method in _SHOWN if method in found}


def calibration_table(curves: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """Bias and root mean square error by method and event."""
    return pd.DataFrame(
        [
            {"method": method, "event": event, "bias": curve["bias"], "rmse": curve["rmse"]}
            for method, events in curves.items()
            for event, curve in events.items()
        ]
    )


def calibration_view(table: pd.DataFrame) -> pd.DataFrame:
    """One line per method, one column per event: bias and root mean square error in points."""
    cells = table.assign(
        cell=[f"{100 * b:+.1f} / {100 * r:.1f}" for b, r in zip(table["bias"], table["rmse"], strict=True)]
    )
    view = cells.pivot_table(index="method", columns="event", values="cell", aggfunc="first", sort=False)
    return view.reset_index()
