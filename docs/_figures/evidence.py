"""Pictures of the studies, from their committed tables."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from censcore.evaluation.report.style import new_figure, styled
from kit import DOCS, GREY, INK, M0, M1, M2, picture

RESULTS = DOCS / "results"


def _rows(page: str, columns: int) -> list[list[str]]:
    """Cells of the rows with so many columns in the tables of a page."""
    lines = [
        line for line in (RESULTS / page).read_text(encoding="utf-8").splitlines() if line.startswith("|")
    ]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if len(row) == columns and not row[0].startswith("--")]


@picture
def coverage() -> Figure:
    """Smallest and largest coverage over the scores in each setting."""
    rows = [row for row in _rows("coverage.md", 5) if " to " in row[1]]
    with styled(grid=True):
        figure = new_figure(8.6, 5.2)
        axes = figure.subplots()
        place = np.arange(len(rows))[::-1]
        for shift, (column, name, colour) in enumerate(
            ((1, "mean", M0), (2, "difference", M1), (3, "skill", M2))
        ):
            low, high = np.array([[float(x) for x in row[column].split(" to ")] for row in rows]).T
            axes.hlines(place + 0.22 * (1 - shift), low, high, color=colour, lw=4, label=name)
        axes.axvline(95, color=INK, lw=1, ls="--")
        axes.set_yticks(place, labels=[row[0] for row in rows])
        axes.set(xlim=(90, 100), xlabel="coverage of 95 % intervals over the scores, %")
        axes.legend(loc="upper right")
        return figure


@picture
def real_data() -> Figure:
    """How far the other methods are behind censored engression."""
    table = pd.read_csv(RESULTS / "real_data" / "real-data.csv")
    table = table[table["censoring distribution"] != "kaplan-meier"]
    shown = ["Independent Kaplan-Meier", "Independent Weibull", "Independent Cox", "Clayton-Weibull"]
    with styled(grid=True):
        figure = new_figure(8.2, 3.6)
        axes = figure.subplots()
        data = list(dict.fromkeys(table["data"]))
        for shift, (method, colour) in enumerate(zip(shown, (GREY, M1, M2, M0), strict=True)):
            part = table[table.method == method].set_index("data").reindex(data)
            place = np.arange(len(data))[::-1] + 0.18 * (1.5 - shift)
            axes.errorbar(
                part["behind %"], place, xerr=1.96 * part["error %"], fmt="o", color=colour, ms=5, lw=1.8,
                label=method,
            )  # fmt: skip
        axes.axvline(0, color=INK, lw=1, ls="--")
        axes.set_yticks(np.arange(len(data))[::-1], labels=data)
        axes.set(xlabel="energy score above that of censored engression, %, with 95 % intervals")
        axes.legend(loc="lower right")
        return figure


@picture
def public_data() -> Figure:
    """Gain over Kaplan-Meier by the CRPS, under both censoring distributions."""
    models = ["Cox", "Weibull", "forest", "boosting"]
    text = (RESULTS / "public_data.md").read_text(encoding="utf-8")
    gains: dict[str, dict[str, list[float]]] = {}
    for data, section in re.findall(r"^:::\{dropdown\} (\w+)\n(.*?)^:::", text, re.MULTILINE | re.DOTALL):
        for kind, cells in re.findall(
            r"^\| CRPS \| (pooled|conditional) \| (.*?) \|  ?\w* ?\|$", section, re.MULTILINE
        ):
            losses = [float(cell.strip(" *")) for cell in cells.split("|")]
            gains.setdefault(data, {})[kind] = [100 * (1 - loss / losses[0]) for loss in losses[1:]]
    with styled(grid=True):
        figure = new_figure(8.6, 3.2)
        axes = figure.subplots()
        for shift, (model, colour) in enumerate(zip(models, (M1, M0, M2, GREY), strict=True)):
            for i, found in enumerate(gains.values()):
                at = i + 0.18 * (shift - 1.5)
                axes.bar(at, found["pooled"][shift], 0.16, color=colour, label=model if i == 0 else None)
                axes.plot(at, found["conditional"][shift], "_", color=INK, ms=9, mew=2)
        axes.axhline(0, color=INK, lw=0.8)
        axes.plot([], [], "_", color=INK, ms=9, mew=2, label="with covariates in the censoring distribution")
        axes.set_xticks(range(len(gains)), labels=list(gains))
        axes.set_ylabel("CRPS saved against\nKaplan-Meier, %")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=9)
        return figure


@picture
def engression_ablations() -> Figure:
    """Excess of the variants of the last table of the page."""
    rows = [row for row in _rows("engression_ablations.md", 2) if "±" in row[1]]
    start = next(i for i, row in enumerate(rows) if "default" in row[0])
    names, values = zip(*[(row[0].strip("* "), row[1].strip("* ")) for row in rows[start:]], strict=True)
    means, errors = np.array([[float(x) for x in value.split("±")] for value in values]).T
    with styled(grid=True):
        figure = new_figure(8.2, 4.6)
        axes = figure.subplots()
        place = np.arange(len(names))[::-1]
        axes.errorbar(means, place, xerr=1.96 * errors, fmt="o", color=M0, ms=5, lw=1.8)
        axes.axvline(means[0], color=INK, lw=1, ls="--")
        axes.set_yticks(place, labels=names)
        axes.set(
            xlabel="energy score above that of the true distribution, %, with 95 % intervals", xlim=(0, None)
        )
        return figure


@picture
def icu_study() -> Figure:
    """Energy scores on the synthetic database, and those of the paper on MIMIC-IV."""
    table = pd.read_csv(RESULTS / "aki" / "energy.csv")
    with styled(grid=True):
        figure = new_figure(8.4, 3.2)
        ours, paper = figure.subplots(1, 2, sharey=True)
        place = np.arange(len(table))[::-1]
        ours.errorbar(table.joint, place, xerr=1.96 * table.joint_error, fmt="o", color=M0, ms=6, lw=1.8)
        ours.set(
            title="synthetic database, 95 % intervals", xlabel="joint energy score, hours", xlim=(0, None)
        )
        ours.set_yticks(place, labels=list(table.method))
        paper.plot(table.joint_printed, place, "o", mfc="white", color=GREY, ms=6)
        paper.set(title="printed in the paper, MIMIC-IV", xlabel="joint energy score, hours", xlim=(0, None))
        return figure
