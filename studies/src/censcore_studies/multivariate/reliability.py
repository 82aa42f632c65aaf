"""The table and figure of the calibration of joint probabilities, from finished cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from censcore_studies.kit.cells import finished_cells
from censcore_studies.kit.figures import FAINT, new_figure, picture
from censcore_studies.kit.tables import StudyTable
from censcore_studies.multivariate.calibration import JOINT_EVENTS
from censcore_studies.multivariate.looks import COLOURS
from censcore_studies.multivariate.study import DEFAULTS, STUDY, made_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "calibration_curves",
    "calibration_table",
    "calibration_view",
    "draw_calibration",
    "report_calibration",
]

_SHOWN = ("Naive observed engression", "MLP Clayton-Weibull", "Censored engression")

_BLOCK = {"scenario": "mixture", "k": 3, "censoring": "uniform", "repetition": 0}


def report_calibration(out: Path) -> StudyTable | None:
    """Joint probabilities under uniform censoring with k = 3; draws ``calibration.png``."""
    curves = calibration_curves(out)
    if not curves:
        return None
    draw_calibration(out / "calibration.png", curves)
    table = calibration_table(curves)
    caption = (
        "Predicted against true probabilities of joint events on the test subjects of one repetition: mean "
        "difference (bias) and root mean square difference; mixture scenario, k = 3, uniform censoring."
    )
    return StudyTable("calibration", table, calibration_view(table), caption)


def calibration_curves(out: Path) -> dict[str, dict[str, Any]]:
    """Method, joint event, curve: from the first repetition under uniform censoring, k = 3, at full size."""
    found = {}
    block = DEFAULTS | {"study": STUDY} | _BLOCK
    for result in finished_cells(out, STUDY):
        settings = made_with(result) | {"device": DEFAULTS["device"]}
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


@picture
def draw_calibration(calibration: dict[str, dict[str, Any]]) -> Figure:
    """Share of subjects with a joint event against its predicted probability, a line per method."""
    figure = new_figure(3.1 * len(JOINT_EVENTS) + 0.4, 4.0)
    panels = figure.subplots(1, len(JOINT_EVENTS), sharey=True)
    for axes, event in zip(panels, JOINT_EVENTS, strict=True):
        axes.plot([0, 1], [0, 1], color=FAINT, lw=3, zorder=0)
        for method, events in calibration.items():
            curve = pd.DataFrame(events[event]).query("rows >= 20")
            axes.plot(curve["predicted"], curve["happened"], "o-", ms=4, color=COLOURS[method], label=method)
        axes.set_title(event)
        axes.set_xlabel("predicted probability")
        axes.set_aspect("equal")
    panels[0].set_ylabel("share with the event")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9)
    return figure
