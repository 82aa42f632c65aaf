"""A comparison as text, and the cells that text, notebook, page and exports show."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from censcore.evaluation.lines import CANNOT_TELL, MINIMUM_EVENTS, Line
from censcore.evaluation.report.table_lines import (
    AMONG_BEST,
    CLEARLY_BEST,
    NOT_AVAILABLE,
    Key,
    blocks,
    decides,
    marks,
    mean_lines,
    measures_of,
    title_of,
)
from censcore.plain_text import one_line
from censcore.scores import crps, energy_score, pinball_score

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

WIDTH = 110  # letters of a line of text; wider tables are cut into several below each other
MARKED = f"{CLEARLY_BEST} clearly the best; {AMONG_BEST} tied with the best, while others are clearly worse"


def capital(text: str) -> str:
    """A title as the beginning of a line."""
    return text[:1].upper() + text[1:]


def with_unit(t: float, unit: str, digits: int = 4) -> str:
    """A time with its unit."""
    return f"{t:.{digits}g} {one_line(unit)}".rstrip()


def label(score: str, at: float, axis: str, unit: str = "") -> str:
    """A column of the table: the score, and the time or level it is taken at."""
    if np.isnan(at):
        return score
    return f"{score}, t = {with_unit(at, unit)}" if axis == "time" else f"{score}, level {at:.4g}"


def p_text(p: float) -> str:
    """A p-value in words; never zero, and "cannot tell" where there is none."""
    if np.isnan(p):
        return CANNOT_TELL
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def p_is(p: float) -> str:
    """A p-value in a sentence."""
    return f"p {p_text(p)}" if p < 1e-4 else f"p = {p_text(p)}"


@dataclass(frozen=True)
class Cell:
    """What a table shows of one line: the number with its error, and a mark where something is clear."""

    text: str
    mark: str = ""
    line: Line = field(default_factory=dict)


@dataclass(frozen=True)
class Grid:
    """A table with one row per model and one column per score, time or level."""

    title: str
    columns: list[str]
    rows: dict[str, list[Cell]]
    outcome: str = ""


def grids_of(comparison: Comparison, subgroups: bool = False) -> list[Grid]:
    """Tables of all subjects, or of the subgroups: for each outcome its scores, then concordance and AUC."""
    known: dict[tuple[str, str, str, bool], list[Line]] = {}
    for line in mean_lines(comparison):
        if (line["by"] != "") is subgroups:
            known.setdefault((line["by"], line["group"], line["outcome"], line["proper"]), []).append(line)
    outcomes = [outcome for _, _, outcome, _ in known]
    grids = []
    for (by, group, outcome, proper), lines in sorted(known.items(), key=lambda x: outcomes.index(x[0][2])):
        title = SCORES if proper else DISCRIMINATION
        if subgroups:
            title = f"{one_line(by)} = {one_line(group)}, {lines[0]['n']} subjects"
            title += "" if proper else ", discrimination"
        grid = _grid(comparison, about(outcome) + title, _available(blocks(lines)), outcome)
        grids.append(with_ranks(comparison, grid) if proper and not subgroups else grid)
    return grids


def _available(columns: dict[Key, list[Line]]) -> dict[Key, list[Line]]:
    """The columns that say something: a note names scores that no forecast has."""
    known = {key: block for key, block in columns.items() if any(x["note"] != NOT_AVAILABLE for x in block)}
    return known or columns


SCORES = "mean loss ± standard error, lower is better"
DISCRIMINATION = (
    "share of pairs ranked correctly ± standard error, higher is better (descriptive, not proper)"
)


def subgroup_summary(comparison: Comparison) -> list[Grid]:
    """One table per variable and outcome: a column per subgroup, of the score that decides the verdict."""
    by_variable: dict[tuple[str, str], dict[Key, list[Line]]] = {}
    for key, block in blocks(mean_lines(comparison, discrimination=False)).items():
        by, _, outcome, *_ = key
        if by and decides(comparison, block[0]):
            by_variable.setdefault((by, outcome), {})[key] = block
    grids = []
    for (by, outcome), of_groups in by_variable.items():
        first = next(iter(of_groups.values()))[0]
        title = f"{about(outcome)}{column_label(comparison, first)} by {one_line(by)}"
        columns = [f"{one_line(key[1])}, {block[0]['n']} subjects" for key, block in of_groups.items()]
        grids.append(replace(_grid(comparison, title, of_groups, outcome), columns=columns))
    return grids


def shown_grids(comparison: Comparison) -> list[Grid]:
    """The tables of text, notebooks and exports."""
    return grids_of(comparison) + subgroup_summary(comparison)


def about(outcome: str) -> str:
    """What a title or a sentence of one of several outcomes begins with."""
    return f"{one_line(outcome)}: " if outcome else ""


def _grid(comparison: Comparison, title: str, of_columns: dict[Key, list[Line]], outcome: str) -> Grid:
    clear = marks(comparison)
    columns: list[str] = []
    rows: dict[str, list[Cell]] = {model: [] for model in comparison.models}
    for key, block in of_columns.items():
        columns.append(column_label(comparison, block[0]))
        of_model = {line["model"]: line for line in block}
        form = _form(block)
        for model, cells in rows.items():
            line = of_model.get(model)
            mark = clear.get(key, {}).get(model, "")
            cells.append(Cell(NOT_AVAILABLE) if line is None else Cell(_text(line, form), mark, line))
    return Grid(title, columns, rows, outcome)


def time_of(comparison: Comparison, shown: Cell) -> float:
    """The time that a cell is about; NaN for one of all times, or of a level."""
    known = shown.line and measures_of(comparison)[shown.line["score"]].axis == "time"
    return float(shown.line["at"]) if known else np.nan


def column_label(comparison: Comparison, line: Line) -> str:
    """The score of a line with its time or level; scores that are times say their unit."""
    score, unit = measures_of(comparison)[line["score"]], comparison.time_unit
    title = one_line(title_of(score))
    if unit and getattr(getattr(score, "info", None), "function", None) in TIMES:
        title += f" ({one_line(unit)})"
    return label(title, line["at"], score.axis, unit)


TIMES = (crps, pinball_score, energy_score)  # scores in units of time


def _form(block: list[Line]) -> str:
    """How numbers are written: four decimals, fewer for large numbers, powers of ten for tiny ones.

    More of them where these would show no digit of any standard error, as with millions of subjects.

    >>> [_form([{"mean": 0.1354, "standard_error": error}]) for error in (0.0002, 0.00005, 0.0000112)]
    ['.4f', '.4f', '.5f']
    """
    sizes = [abs(line["mean"]) for line in block if np.isfinite(line["mean"]) and line["mean"] != 0]
    if not sizes:
        return ".4f"
    if max(sizes) < TINY:
        return ".3g"
    decimals = min(max(4 - int(np.floor(np.log10(max(sizes)))), 0), 4)
    errors = [line["standard_error"] for line in block if line["standard_error"] > ROUNDING * max(sizes)]
    error = max(errors, default=1.0)
    return f".{decimals if error >= 0.5 * 10.0**-decimals else int(np.ceil(-np.log10(error)))}f"


TINY = 5e-5  # four decimals would show nothing
ROUNDING = 1e-10  # errors of losses that are all equal


def _text(line: Line, form: str = ".4f") -> str:
    mean, error = line["mean"], line["standard_error"]
    if line["note"].startswith(NOT_AVAILABLE):
        return NOT_AVAILABLE
    if np.isinf(mean):
        return f"inf ({line['infinite']} subjects)"
    if line["note"].startswith(CANNOT_TELL):
        return f"{mean:{form}} ({CANNOT_TELL})"
    return f"{mean:{form}}" if np.isnan(error) else f"{mean:{form}} ± {error:{form}}"


def with_ranks(comparison: Comparison, grid: Grid) -> Grid:
    """The table with rank and skill by the score that decides the verdict, behind the column of it."""
    lines = [[row[j].line for row in grid.rows.values()] for j in range(len(grid.columns))]
    ranked = [j for j, column in enumerate(lines) if all(x and np.isfinite(x["rank"]) for x in column)]
    j = next((j for j in ranked if decides(comparison, lines[j][0])), None)
    if j is None or len(grid.rows) < 2:
        return grid
    skilled = comparison.reference is not None and not np.isnan(lines[j][0]["skill"])
    columns = [*grid.columns[: j + 1], "rank", *(["skill"] if skilled else []), *grid.columns[j + 1 :]]
    rows = {}
    for model, row in grid.rows.items():
        line = row[j].line
        added = [Cell(f"{line['rank']:.0f}")]
        added += [Cell(_percent(line["skill"], line["skill_standard_error"]))] if skilled else []
        rows[model] = [*row[: j + 1], *added, *row[j + 1 :]]
    return replace(grid, columns=columns, rows=rows)


def _percent(value: float, error: float) -> str:
    spread = "" if np.isnan(error) or error == 0 else f" ± {100 * error:.1f}"
    return f"{100 * value:.1f}{spread} %"


def text_of(comparison: Comparison) -> str:
    """The verdict, the tables and how they were made, as plain text."""
    settings = comparison.settings
    grids = shown_grids(comparison)
    text = [
        f"Comparison of {len(comparison.models)} forecasts on {settings['subjects']} subjects "
        f"({settings['events']} events), horizon {with_unit(settings['horizon'], comparison.time_unit, 6)}"
    ]
    for verdict in comparison.verdicts:
        wrapped = textwrap.wrap(str(verdict), WIDTH, break_long_words=False, break_on_hyphens=False)
        text += ["", *wrapped]
    for grid in grids:
        text += ["", grid.title, *_lines(grid)]
    text += ["", *legend_of(grids)]
    text += [f"censoring distribution: {one_line(settings['censoring distribution'])}"]
    text += [f"standard errors: {settings['standard errors']}"]
    warnings = comparison.censoring.warnings
    text += [f"note: {one_line(note)}" for note in comparison.notes if note not in warnings]
    text += [f"warning: {one_line(warning)}" for warning in warnings]
    return "\n".join(line.rstrip() for line in text)


def legend_of(grids: list[Grid], marked: str = MARKED) -> list[str]:
    """What the marks and words in these tables mean."""
    cells = [cell for grid in grids for row in grid.rows.values() for cell in row]
    words = [marked] if any(cell.mark for cell in cells) else []
    if any(CANNOT_TELL in cell.text for cell in cells):
        words.append(
            f"{CANNOT_TELL}: fewer than {MINIMUM_EVENTS} effective events, or subjects beyond the time"
        )
    return words


def _lines(grid: Grid) -> list[str]:
    """The table, cut into parts that fit; titles of columns take two lines where there is a comma."""
    names = [one_line(model) for model in grid.rows]
    first = max(map(len, names))
    heads = [_two_lines(column) for column in grid.columns]
    cells = [[cell.text + (cell.mark or " ") for cell in row] for row in grid.rows.values()]
    widths = [max(*map(len, head), *(len(row[j]) for row in cells)) for j, head in enumerate(heads)]
    lines: list[str] = []
    start = 0
    while start < len(widths):
        stop, used = start + 1, first + widths[start] + 2
        while stop < len(widths) and used + widths[stop] + 2 <= WIDTH:
            used += widths[stop] + 2
            stop += 1
        part = range(start, stop)
        lines += [] if start == 0 else [""]
        for k in (0, 1):
            if k == 0 or any(heads[j][1] for j in part):
                lines.append(" " * first + "".join(f"  {heads[j][k] + ' ':>{widths[j]}}" for j in part))
        for name, row in zip(names, cells, strict=True):
            lines.append(f"{name:{first}}" + "".join(f"  {row[j]:>{widths[j]}}" for j in part))
        start = stop
    return lines


def _two_lines(column: str) -> tuple[str, str]:
    """Of the title of a column: the score above, its time or level below."""
    name, comma, at = column.rpartition(", ")
    return (name, at) if comma and at != "ipcw" else (column, "")
