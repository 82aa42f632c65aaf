"""A validation in words: the table of its measures, and the sentences that people quote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.lines import Line
from censcore.evaluation.report.risk_charts import at_time
from censcore.evaluation.report.shown_table import ShownTable
from censcore.evaluation.report.text import about, p_text
from censcore.plain_text import one_line

if TYPE_CHECKING:
    from censcore.evaluation.validation import Validation


def number(value: float) -> str:
    """A number of a table; nothing where there is none."""
    return "" if np.isnan(value) else f"{value:.3f}".replace("-", "−")


def interval(line: Line) -> str:
    """An interval, or an upper bound where there is no lower one."""
    if np.isnan(line["high"]):
        return ""
    return f"{number(line['low'])} to {number(line['high'])}" if line["low"] == line["low"] else (
        f"at most {number(line['high'])}"
    )  # fmt: skip


#: What subgroups are compared by.
SHORT = ("O/E", "calibration intercept", "calibration slope", "AUC", "Brier")


def table_of(validation: Validation, whole: bool = False) -> ShownTable:
    """All lines with columns of outcome, subgroup and model where there are several; or no subgroups."""
    extra = {
        "outcome": len(validation.outcomes) > 1,
        "group": len(validation.comparison.subsets) > 1 and not whole,
        "model": len(validation.models) > 1,
    }
    level = f"{100 * validation.comparison.confidence:g} % interval"
    head = ["measure", *(name for name, there in extra.items() if there), "value", level, "by chance", "p"]
    rows, notes = [], dict[str, list[str]]()
    for line in validation.lines:
        if whole and line["by"]:
            continue
        who = {"group": f"{line['by']} = {line['group']}" if line["by"] else "all"}
        place = [str(who.get(name, line[name])) for name, there in extra.items() if there]
        p = p_text(line["p"]) if line["p"] == line["p"] else ""
        rows.append(
            [line["measure"], *place, number(line["value"]), interval(line), number(line["by_chance"]), p]
        )
        if line["note"]:
            notes.setdefault(line["note"], []).append(" ".join([line["measure"], *place]))
    words = [f"{', '.join(of)}: {note.rstrip('.')}." for note, of in notes.items()]
    s = validation.comparison.settings
    caption = (
        f"Validation of the risk by {at_time(validation.comparison, validation.time)}: {s['subjects']} "
        f"subjects with {validation.events} events by then."
    )
    return ShownTable(caption, head, rows, words)


def text_of(validation: Validation) -> str:
    """The table and how it was made, as plain text."""
    shown, s = validation.table, validation.comparison.settings
    text = [shown.caption, "", *shown.text(), "", *shown.notes]
    if validation.sites is not None:
        text += ["", repr(validation.sites), ""]
    text += [f"censoring distribution: {one_line(s['censoring distribution'])}"]
    text += [f"standard errors: {s['standard errors']}"]
    text += [f"note: {one_line(note)}" for note in validation.notes]
    return "\n".join(line.rstrip() for line in text)


def sentences(validation: Validation, outcome: str = "", model: str | None = None) -> list[str]:
    """Two sentences: are the risks right, and what are they good for."""
    of = {name: validation.line(name, outcome, model) for name in ("observed", "expected", "O/E", "AUC")}
    slope = validation.line("calibration slope", outcome, model)
    t, n = at_time(validation.comparison, validation.time), validation.comparison.settings["subjects"]
    level = f"{100 * validation.comparison.confidence:g} % intervals in brackets"
    first = (
        f"{about(outcome)}by {t}, {_percent(of['observed'])} of the {n} subjects had the event, where the "
        f"model forecast {_percent(of['expected'])} on average: observed / expected {_with(of['O/E'])}, "
        f"calibration slope {_with(slope)} ({level})."
    )
    second = (
        "Of a subject with the event and one without it, it gave the higher risk to the former in "
        f"{_share(of['AUC'])}"
    )
    thresholds = validation.thresholds_of(outcome)
    if thresholds:
        name = f"net benefit at {thresholds[0]:.4g}"
        benefit, more = (validation.line(x, outcome, model) for x in (name, f"{name}, less treating all"))
        second += (
            f"; acting on risks above {thresholds[0]:.4g} has a net benefit of {_with(benefit)}, "
            f"{_with(more)} more than treating everybody"
        )
    return [first[0].upper() + first[1:], second + "."]


def _percent(line: Line) -> str:
    return "an unknown share" if np.isnan(line["value"]) else f"{100 * line['value']:.1f}\u00a0%"


def _with(line: Line) -> str:
    if np.isnan(line["value"]):
        return "unknown"
    return number(line["value"]) + (f" ({interval(line)})" if interval(line) else "")


def _share(line: Line) -> str:
    if np.isnan(line["value"]):
        return "an unknown share of pairs"
    known = "" if np.isnan(line["low"]) else f", {100 * line['low']:.0f} to {100 * line['high']:.0f}\u00a0%"
    return f"{100 * line['value']:.0f}\u00a0% of pairs (AUC{known})"
