"""Figures of the study: where learners come in, and what the convention does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from censcore.evaluation.report.style import PALETTE
from censcore_studies.kit.figures import AMBER, GREY, INK, RED, TEAL, new_figure, picture
from censcore_studies.neutral_benchmark.convention import VARIANTS
from censcore_studies.neutral_benchmark.data import TASKS
from censcore_studies.neutral_benchmark.inference import corrected_interval
from censcore_studies.neutral_benchmark.learners import OURS
from censcore_studies.neutral_benchmark.ranks import placed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw_conventions", "draw_places"]

COLOURS = {
    OURS: TEAL,
    "Random survival forest": AMBER,
    "Gradient boosting": RED,
    "SurvivalBoost": PALETTE["m2"][0],
}
LEFT_END, RIGHT_END = -12.0, 36.0


@picture
def draw_places(scores: pd.DataFrame, published: pd.DataFrame) -> Figure:
    """Gain over Kaplan-Meier in ISBS: published learners as ticks, learners run here with intervals."""
    learners = placed(scores)
    tasks = [task for task in TASKS if task in set(scores["task"])]
    figure = new_figure(9.2, 0.62 * len(tasks) + 1.3)
    axes = figure.subplots()
    axes.grid(axis="x")
    axes.axvline(0, color=GREY, lw=1)
    for y, task in enumerate(tasks):
        there = published[published["task"] == task].pivot(
            index="iteration", columns="learner", values="isbs"
        )
        _ticks(axes, y, 100 * (1 - there.mean() / there["KM"].mean()))
        for place, learner in enumerate(learners):
            own = scores[(scores["task"] == task) & (scores["learner"] == learner)]
            if not own.empty:
                _marker(axes, y - 0.27 + 0.18 * place, own, there["KM"], learner)
    axes.set_yticks(range(len(tasks)), tasks)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.set_xlim(LEFT_END, RIGHT_END)
    axes.set_xlabel("ISBS below that of Kaplan-Meier, % (right: better)")
    _legend(figure, axes, learners)
    return figure


def _ticks(axes: Axes, y: int, gain: pd.Series) -> None:
    """One tick per published learner, Cox regression longer; those out of sight are counted."""
    seen = gain[gain >= LEFT_END].drop("KM")
    axes.vlines(seen, y - 0.38, y + 0.38, color=GREY, lw=1.1, alpha=0.55)
    axes.vlines(gain["CPH"], y - 0.42, y + 0.42, color=INK, lw=1.8)
    hidden = int((gain < LEFT_END).sum())
    if hidden:
        axes.text(LEFT_END + 0.6, y + 0.33, f"◂ {hidden} published", color=GREY, fontsize=8, va="center")


def _marker(axes: Axes, y: float, own: pd.DataFrame, km: pd.Series, learner: str) -> None:
    """Gain with its interval over folds; hollow where not all folds were run."""
    isbs = own.set_index("iteration")["as published"]
    base = km.loc[isbs.index]
    mean, low, high = 100 / base.mean() * np.array(corrected_interval((base - isbs).to_numpy()))
    colour, whole = COLOURS[learner], len(isbs) == len(km)
    axes.plot([low, high], [y, y], color=colour, lw=1.4)
    marker, x = ("o", mean) if mean > LEFT_END else ("<", LEFT_END + 0.25)
    axes.plot(x, y, marker, ms=5.5, color=colour, mfc=colour if whole else "white")


def _legend(figure: Figure, axes: Axes, learners: list[str]) -> None:
    handles = [axes.plot([], [], "o-", color=COLOURS[name], ms=5.5, lw=1.4)[0] for name in learners]
    handles += [
        axes.plot([], [], "|", color=GREY, ms=11)[0],
        axes.plot([], [], "|", color=INK, ms=12, mew=1.8)[0],
        axes.plot([], [], "o", color=GREY, mfc="white", ms=5.5)[0],
    ]
    labels = [f"{name}, defaults" for name in learners]
    labels += ["published learners", "published Cox regression", "first repetitions only"]
    figure.legend(handles, labels, loc="outside upper left", ncols=3, fontsize=9)


@picture
def draw_conventions(table: pd.DataFrame) -> Figure:
    """Change of the ISBS of Kaplan-Meier with ties and left limits, and the lead of Cox under three rules."""
    figure = new_figure(9.2, 0.34 * len(table) + 1.4)
    left, right = figure.subplots(1, 2, sharey=True)
    y = np.arange(len(table))
    base = table["Kaplan-Meier, as published"]
    looks = {"events first": ("<", AMBER), "left limits": (">", PALETTE["m2"][0]), "both": ("o", TEAL)}
    for rule in list(VARIANTS)[1:]:
        marker, colour = looks[rule]
        change = 100 * (table[f"Kaplan-Meier, {rule}"] / base - 1)
        left.plot(change, y, marker, color=colour, ms=6, label=rule)
    left.axvline(0, color=GREY, lw=1)
    left.set_title("Change of the ISBS of Kaplan-Meier, %")
    for rule, colour in {"as published": INK, "both": TEAL, "proper": RED}.items():
        label = {"both": "ties and left limits", "proper": "proper score"}.get(rule, rule)
        right.plot(100 * table[f"skill of Cox, {rule}"], y, "o", color=colour, ms=6, mfc="none", label=label)
    right.axvline(0, color=GREY, lw=1)
    right.set_title("Cox regression better than Kaplan-Meier by, %")
    for axes, place in ((left, "lower right"), (right, "center right")):
        axes.grid(axis="x")
        axes.legend(loc=place, fontsize=9)
    left.set_yticks(y, table["task"])
    left.set_ylim(len(table) - 0.5, -0.5)
    return figure
