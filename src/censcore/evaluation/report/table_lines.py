"""The numbers of a comparison, line by line: means, intervals, ranks, skills and paired differences."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from censcore.evaluation.inference.adjustment import adjust
from censcore.evaluation.inference.estimates import Estimate, skill_interval
from censcore.evaluation.lines import MINIMUM_EVENTS, Line, cannot_tell, lines_of
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.discrimination import Measure, numbers_of_share
from censcore.evaluation.measures.joint_scores import view_called

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison
    from censcore.evaluation.report.verdict import Verdict

Maker = Callable[["Comparison", int, "Column"], Iterable[Line]]
NOT_AVAILABLE = "not available"
DESCRIPTIVE = "descriptive, not proper"
NO_ERROR = "; the pairs, all won, all lost, or all with one subject in common, do not show its error"
UNTOLD = ("standard_error", "low", "high", "rank", "skill_standard_error", "skill_low", "skill_high")
NUMBERS = ("mean", *UNTOLD[:4], "skill", *UNTOLD[4:])


class Column(NamedTuple):
    """A score or measure at one of its times or levels: its number, effective events, estimates by model."""

    score: CaseScore | Measure
    number: int
    at: float
    events: float
    estimates: dict[str, Estimate | None]


def _score_columns(comparison: Comparison, s: int) -> Iterator[Column]:
    """Every time or level of every score."""
    for score in comparison.scores:
        events = comparison.effective_events(score, s)
        means = {model: comparison.estimate(model, score.name, s) for model in comparison.models}
        for j, at in enumerate(comparison.places(score)):
            estimates = {
                model: None if mean is None or np.isnan(mean.value[j]) else mean.column(j)
                for model, mean in means.items()
            }
            yield Column(score, j, float(at), float(events[j]), estimates)


def _share_columns(comparison: Comparison, s: int) -> Iterator[Column]:
    """Concordance, and the AUC at every time."""
    of_pairs = comparison.pair_measures
    for k, measure in enumerate(of_pairs.measures):
        estimates = {model: of_pairs.values.get((s, model, k)) for model in comparison.models}
        events = float(comparison.effective_events(measure, s)[0])
        yield Column(measure, k, measure.at_time, events, estimates)


def _made(comparison: Comparison, what: str, make: Maker, discrimination: bool) -> list[Line]:
    """Lines of all columns, made on first use: text, notebook and page read them several times."""
    sources = [_score_columns, *([_share_columns] if discrimination and comparison.discrimination else [])]

    def lines_of(columns: Callable[[Comparison, int], Iterable[Column]]) -> list[Line]:
        every = ((s, column) for s in range(len(comparison.subsets)) for column in columns(comparison, s))
        return [line for s, column in every for line in make(comparison, s, column)]

    made = (comparison.once(f"{what} of {each.__name__}", partial(lines_of, each)) for each in sources)
    return [line for lines in made for line in lines]


def measures_of(comparison: Comparison) -> dict[str, CaseScore | Measure]:
    """Return scores, and concordance and AUC where the comparison has them, by name."""
    measures: dict[str, CaseScore | Measure] = {score.name: score for score in comparison.scores}
    if comparison.discrimination:
        measures |= {measure.name: measure for measure in comparison.pair_measures.measures}
    return measures


def shown_lines(comparison: Comparison, lines: list[Line]) -> list[Line]:
    """Return lines as ``frame()`` has them: the outcome in a column of its own, and who counts in it."""
    if not comparison.kind.views:
        return lines
    measures = measures_of(comparison)
    return [_shown(comparison, line, measures[line["score"]]) for line in lines]


def _shown(comparison: Comparison, line: Line, score: CaseScore | Measure) -> Line:
    new = line | {"score": line["score"].removesuffix(f"[{score.outcome}]")}
    if "n" in line and comparison.summed is None:
        of = score if isinstance(score, CaseScore) else view_called(score.outcome, comparison.kind.views)
        counted = of.counted(comparison.case)
        if counted is not None:
            subset = next(s for s in comparison.subsets if (s.by, s.label) == (line["by"], line["group"]))
            new["n"] = int(((subset.weight > 0) & counted).sum())
    return new


def title_of(score: CaseScore | Measure) -> str:
    """The title of a score without the outcome, which tables name once."""
    return score.title.removesuffix(f", {score.outcome}")


# ---- means -----------------------------------------------------------------------------------------


def mean_lines(comparison: Comparison, discrimination: bool = True) -> list[Line]:
    """One line per subset, score, time or level, and model; see :meth:`Comparison.frame`."""
    return _made(comparison, "means", _mean_lines, discrimination)


def _mean_lines(comparison: Comparison, s: int, column: Column) -> Iterator[Line]:
    score, subset, confidence = column.score, comparison.subsets[s], comparison.confidence
    proper = isinstance(score, CaseScore)
    known = {model: estimate for model, estimate in column.estimates.items() if estimate is not None}
    ranks = _ranks({model: (1 if proper else -1) * e.value[0] for model, e in known.items()})
    about: Line = {"by": subset.by, "group": subset.label, "score": score.name, "outcome": score.outcome}
    for model in column.estimates:
        line = about | {"at": column.at, "model": model} | dict.fromkeys(NUMBERS, np.nan)
        line |= {"events": column.events, "n": subset.count, "infinite": 0, "proper": proper}
        line["note"] = "" if proper else DESCRIPTIVE
        if model not in known:
            why = "" if proper else f": {comparison.pair_measures.unavailable[s, model, column.number]}"
            yield line | {"note": NOT_AVAILABLE + why}
            continue
        estimate = known[model]
        numbers = (_numbers if proper else numbers_of_share)(estimate, confidence)
        line |= {name: float(value[0]) for name, value in numbers.items()} | {"rank": ranks[model]}
        if isinstance(score, CaseScore):
            infinite = comparison.infinite_losses(model, score.name, column.number, s)
            line["infinite"] = infinite
            if comparison.reference in known and score.info.has_skill:
                same = model == comparison.reference
                line |= NO_SKILL if same else _skill(estimate, known[comparison.reference], confidence)
        if column.events < MINIMUM_EVENTS:
            line |= dict.fromkeys(UNTOLD, np.nan) | {"note": cannot_tell(column.events)}
        elif not proper and np.isnan(line["standard_error"]) and not np.isnan(line["mean"]):
            line["note"] += NO_ERROR
        yield line


def _numbers(estimate: Estimate, confidence: float) -> dict[str, np.ndarray]:
    low, high = estimate.interval(confidence)
    error = np.where(estimate.varies, estimate.standard_error, np.nan)
    return {"mean": estimate.value, "standard_error": error, "low": low, "high": high}


NO_SKILL = dict.fromkeys(("skill", "skill_standard_error", "skill_low", "skill_high"), 0.0)
"""Of the reference against itself, which is certain."""


def _skill(estimate: Estimate, against: Estimate, confidence: float) -> dict[str, float]:
    skill = estimate.skill(against)
    error = float(skill.standard_error[0]) if skill.varies[0] else np.nan
    ends = skill_interval(estimate, against, confidence)
    return dict(zip(NO_SKILL, (float(skill.value[0]), error, *ends), strict=True))


def _ranks(values: dict[str, float]) -> dict[str, float]:
    """1 for the smallest; ties share the better rank, NaN stays."""
    known = np.array([value for value in values.values() if not np.isnan(value)])
    return {m: float("nan") if np.isnan(v) else 1.0 + float((known < v).sum()) for m, v in values.items()}


# ---- paired differences ----------------------------------------------------------------------------


def difference_lines(
    comparison: Comparison, adjustment: str = "max-t", discrimination: bool = True
) -> list[Line]:
    """One line per subset, score, time or level, and pair; see :meth:`Comparison.differences`."""
    what = f"differences, {adjustment},"
    return _made(comparison, what, partial(_pairs, adjustment=adjustment), discrimination)


def _pairs(comparison: Comparison, s: int, column: Column, adjustment: str) -> Iterator[Line]:
    known = {model: estimate for model, estimate in column.estimates.items() if estimate is not None}
    if len(known) < 2:
        return
    estimates = list(known.values())
    differences = estimates[0].differences(estimates)
    together = adjust([differences], adjustment, comparison.confidence, comparison.seed)
    score, subset, events = column.score, comparison.subsets[s], column.events
    proper, reliable = isinstance(score, CaseScore), differences.varies & (events >= MINIMUM_EVENTS)
    names = ("standard_error", "p_value", "p_adjusted", "low", "high")
    ends = differences.interval(together.confidence)
    known_if = (differences.standard_error, differences.p_value, together.p_value, *ends)
    numbers = {name: np.where(reliable, values, np.nan) for name, values in zip(names, known_if, strict=True)}
    about: Line = {"by": subset.by, "group": subset.label, "score": score.name, "outcome": score.outcome}
    about["at"], rows = column.at, lines_of({}, {"difference": differences.value} | numbers)
    note = cannot_tell(events) if events < MINIMUM_EVENTS else ""
    last = {"better": "lower" if proper else "higher", "proper": proper, "events": events, "note": note}
    for (a, b), row in zip(combinations(known, 2), rows, strict=True):
        yield about | {"model": a, "versus": b} | row | last


def notes_on_ranks(comparison: Comparison) -> list[str]:
    """Forecasts at one time that rank the subjects the wrong way round, as probabilities of the event do."""
    known = [model for model, case in comparison.cases.items() if case.F.only_time is not None]
    lines = mean_lines(comparison) if known and comparison.discrimination else []
    return [
        f"Forecast {line['model']!r} ranks the subjects the wrong way round (AUC {line['mean']:.2g} at t = "
        f"{line['at']:.4g}): were probabilities of the event passed as survival probabilities? Pass 1 - F."
        for line in lines
        if line["score"] == "auc" and line["by"] == "" and line["model"] in known and line["high"] < 0.5
    ]


# ---- what decides -------------------------------------------------------------------------------------


def verdict_on(comparison: Comparison, outcome: str) -> Verdict | None:
    """The verdict on an outcome; None for one that has only pictures."""
    return next((verdict for verdict in comparison.verdicts if verdict.outcome == outcome), None)


def decides(comparison: Comparison, line: Line) -> bool:
    """Whether a line has the score, and the time or level, that the verdict on its outcome is about."""
    verdict = verdict_on(comparison, line["outcome"])
    at = line["at"]
    return verdict is not None and line["score"] == verdict.score and bool(np.isnan(at) or at == verdict.at)


def deciding(comparison: Comparison, lines: Iterable[Line], outcome: str) -> list[Line]:
    """The lines of all subjects by the score, and at the time or level, that the verdict is about."""
    return [x for x in lines if x["by"] == "" and x["outcome"] == outcome and decides(comparison, x)]


def ranked(comparison: Comparison, outcome: str) -> list[str]:
    """The forecasts from the best to the worst by the score that decides; those without it last."""
    if verdict_on(comparison, outcome) is None:
        return comparison.models
    means = {x["model"]: x["mean"] for x in deciding(comparison, mean_lines(comparison, False), outcome)}
    known = {m: np.inf if np.isnan(means.get(m, np.nan)) else means[m] for m in comparison.models}
    return sorted(comparison.models, key=known.__getitem__)


# ---- what is clear ---------------------------------------------------------------------------------

Key = tuple[str, str, str, str, float]
"""Subset (its column and group), outcome, score, and time or level; -1 in place of a missing one."""

CLEARLY_BEST, AMONG_BEST = "*", "~"


def key_of(line: Line) -> Key:
    """What a line is about, apart from the model."""
    at = -1.0 if np.isnan(line["at"]) else float(line["at"])
    return line["by"], line["group"], line["outcome"], line["score"], at


def blocks(lines: Iterable[Line]) -> dict[Key, list[Line]]:
    """Lines that differ in the model alone, in order."""
    by_key: dict[Key, list[Line]] = {}
    for line in lines:
        by_key.setdefault(key_of(line), []).append(line)
    return by_key


def marks(comparison: Comparison) -> dict[Key, dict[str, str]]:
    """Per block, which models are clearly the best, or tied with it while others are clearly worse.

    "*" for a model that is better than each of the others by more than chance explains (adjusted p-values);
    "~" for all models that are tied with the best, where another is clearly worse. A block with one
    model, and one without a clear difference from the best, has no marks.
    """
    return comparison.once("marks", partial(_marks, comparison))


def _marks(comparison: Comparison) -> dict[Key, dict[str, str]]:
    pairs = blocks(difference_lines(comparison))
    marked: dict[Key, dict[str, str]] = {}
    for key, block in blocks(mean_lines(comparison)).items():
        best = next((line["model"] for line in block if line["rank"] == 1), "")
        clear = against(pairs.get(key, []), best, comparison.confidence)
        worse = {model for model, is_clear in clear.items() if is_clear}
        known = [line["model"] for line in block if not np.isnan(line["rank"])]
        top = [model for model in known if model not in worse]
        if worse:
            marked[key] = dict.fromkeys(top, CLEARLY_BEST if len(top) == 1 else AMONG_BEST)
    return marked


def differences_from(pairs: Iterable[Line], base: str) -> Iterator[tuple[Line, str, np.ndarray]]:
    """Of every pair with ``base``: its line, the other model, and how much larger that is."""
    for line in pairs:
        value, low, high = line["difference"], line["low"], line["high"]
        if line["versus"] == base:
            yield line, line["model"], np.array([value, low, high])
        elif line["model"] == base:
            yield line, line["versus"], -np.array([value, high, low])


def against(pairs: list[Line], best: str, confidence: float) -> dict[str, bool]:
    """For every model paired with the best one: whether it is clearly worse."""
    pairs_with_best = differences_from(pairs, best)
    return {other: bool(line["p_adjusted"] < 1 - confidence) for line, other, _ in pairs_with_best}
