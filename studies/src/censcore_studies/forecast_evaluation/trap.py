"""A forecast that games plug-in weights, and the scores that reward it, in one picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore_studies.forecast_evaluation.rules import RULES
from censcore_studies.forecast_evaluation.scenario import Scenario, build_scenario
from censcore_studies.kit.figures import FAINT, GREY, INK, RED, TEAL, new_figure, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_trap"]

_EXPLOIT = "F5(0.05)"
_PLUG_IN = {
    "Brier MC, Yanagisawa plug-in": "multiclass Brier",
    "Brier, Yanagisawa plug-in": "Brier",
    "RPS, Yanagisawa plug-in": "ranked probability",
}
_OURS = {"CRPS, ours": "CRPS", "Pinball, ours": "pinball", "Brier, ours": "Brier"}


@picture
def draw_trap(n: int = 4000, seed: int = 0) -> Figure:
    """Left: data, truth and the forecast that games them. Right: their mean scores compared."""
    scenario = build_scenario("D", n, seed)
    figure = new_figure(11.2, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1])
    _draw_distributions(left, scenario)
    _draw_scores(right, scenario)
    return figure


def _draw_distributions(axes: Axes, scenario: Scenario) -> None:
    t = np.linspace(9.0, 21.0, 1201)
    axes.axvspan(9.8626, 9.9653, color=GREY, alpha=0.45, lw=0)
    labels = (("F0", TEAL, "the truth", 0.53), (_EXPLOIT, RED, "a forecast that games the score", 0.08))
    for name, colour, label, height in labels:
        F = scenario.candidates[name].continuous
        axes.plot(t, np.asarray(F.cdf(t[None]))[0], color=colour, lw=2.4)
        axes.text(13.0, height, label, color=colour)
    axes.annotate(
        "60 % of the subjects are\ncensored here,\njust before half of the\nevents would come",
        (9.93, 0.62),
        (11.2, 0.66),
        arrowprops={"arrowstyle": "->", "color": GREY},
        color=INK,
        fontsize=9.5,
    )
    axes.set_xlabel("time")
    axes.set_ylabel("P(event by then)")
    axes.set_ylim(0, 1.03)
    axes.set_title("The truth has half of its mass right after the censoring")


def _draw_scores(axes: Axes, scenario: Scenario) -> None:
    """Score of the gaming forecast relative to that of the truth: below zero it wins."""
    names = [*_PLUG_IN, *_OURS]
    gains = []
    for rule in names:
        truth, exploit = (
            np.mean(np.asarray(RULES[rule](scenario, scenario.candidates[c]))) for c in ("F0", _EXPLOIT)
        )
        gains.append(100 * (exploit / truth - 1))
    y = np.array([0, 1, 2, 3.6, 4.6, 5.6])
    axes.barh(y, gains, color=[RED] * 3 + [TEAL] * 3, height=0.7)
    axes.axvline(0, color=INK, lw=1)
    axes.set_yticks(y, [*_PLUG_IN.values(), *_OURS.values()])
    axes.invert_yaxis()
    axes.text(
        0.99, 1.0, "weights from the forecast", transform=axes.get_yaxis_transform(), ha="right", color=RED
    )
    axes.text(
        0.99,
        3.1,
        "forecast censored like the data",
        transform=axes.get_yaxis_transform(),
        ha="right",
        color=TEAL,
    )
    axes.set_xlabel("score of the gaming forecast against the truth, %")
    axes.grid(axis="x", color=FAINT)
    axes.set_title("Left of zero the wrong forecast wins")
