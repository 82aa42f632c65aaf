"""Comparisons of tables that are read in batches: from sums over batches to evaluations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.notes import note_on_few, note_on_units
from censcore.evaluation.evaluation import Evaluation
from censcore.evaluation.inference.estimates import Estimate, beside
from censcore.evaluation.inference.mean_losses import method_of, notes_on_unavailable
from censcore.evaluation.inference.moments import Moments, power_sums
from censcore.evaluation.inference.pooling import estimate_by_unit
from censcore.evaluation.inference.units import Units, sums_within
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.classification import quantiles_of
from censcore.evaluation.measures.joint_scores import View
from censcore.evaluation.outcome_table import IN_MEMORY, OutcomeTable
from censcore.evaluation.parts.batches.counts import Counted, Places
from censcore.evaluation.parts.batches.decisions import TableDecided, decide_table
from censcore.evaluation.parts.batches.phases import (
    Centre,
    Facts,
    Kept,
    Powers,
    event_scores,
    event_weights,
)
from censcore.evaluation.parts.batches.runners import Runner, cluster
from censcore.evaluation.parts.batches.sums import PartialSums
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.outcomes import RightCensored

PAIRS = (
    "Concordance and AUC are over all pairs of subjects, and calibration over their order: neither is a sum "
    "over batches. Compare a sample in memory for these."
)
Means = dict[tuple[int, str, str], Estimate]  # by number of the subset, model and name of the score
OfMeans = Callable[[dict[str, Estimate]], dict[Any, Estimate]]


def compare_table(asked: Asked) -> Comparison:
    """Compare forecasts of the subjects in a table; see :func:`censcore.compare`."""
    table = asked.sample.y
    other = [name for name in ("X", "mask") if getattr(asked.sample, name) is not None]
    if other:
        raise InvalidInputError(f"{', '.join(other)}: {IN_MEMORY}")
    with _runner(table, asked.progress) as runner:
        ready = decide_table(asked, runner)
        kept = Kept() if runner.store is None and runner.in_one_process(ready.batches) else None
        facts = runner.total(Facts(ready.task, kept), ready.batches, "scoring")
        centres, apart = _centres(ready, facts)
        means = _means(ready, runner, centres, apart, kept)
    return _comparison(ready, facts, means, asked)


@contextmanager
def _runner(table: OutcomeTable, progress: bool | None) -> Iterator[Runner]:
    store = None if table.store is None else Path(table.store)
    with cluster(table.dask) as client:
        yield Runner(table.n_jobs, client, store, progress)


def functions_of_means(
    table: OutcomeTable, ready: TableDecided, score: CaseScore, of_means: OfMeans, view: View | None
) -> tuple[dict[Any, Estimate], float]:
    """Estimate smooth functions of the mean of a score of all forecasts, in two more phases.

    Contributions to a function are those to the means times its derivatives, which follow from the function
    of means with the unit vectors as contributions. Last is the effective number of events.
    """
    decided = replace(ready.decided, scores=[score], subsets=ready.decided.subsets[:1], reference=None)
    task = replace(ready.task, scores=[score], subsets=ready.task.subsets[:1], view=view)
    ready = replace(ready, decided=decided, task=task)
    with _runner(table, decided.asked.progress) as runner:
        facts = runner.total(Facts(task), ready.batches, score.title)
        centres, apart = _centres(ready, facts)
        if not centres:
            raise PositivityError(next(iter(facts.unavailable.values())))
        centre = centres[score.name]
        _, M, q = centre.mean.shape
        units = np.eye(M * q).reshape(M * q, M, q)
        each = {m: Estimate(centre.mean[0, a], units[:, a]) for a, m in enumerate(centre.models)}
        found = of_means(each)
        value, combine = beside(list(found.values())).value, beside(list(found.values())).influence
        centre = replace(centre, combine=combine)
        (every,) = _means(ready, runner, {score.name: centre}, apart, None, value).values()
        # differences of what is equal are rounding of the means
        every = every._beyond_rounding(np.abs(centre.mean).reshape(-1) @ np.abs(combine))
    ends = np.cumsum([0] + [len(each.value) for each in found.values()])
    parts = (every.columns(slice(a, b)) for a, b in pairwise(ends))
    effective, _, _ = _effective(ready, facts)
    return dict(zip(found, parts, strict=True)), float(effective[score.outcome, score.axis][0].min())


# ---- means and their errors ------------------------------------------------------------------------------


def _centres(ready: TableDecided, facts: PartialSums) -> tuple[dict[str, Centre], dict[str, np.ndarray]]:
    """What contributions are taken from, by score, and the influence of those whom C was fitted to."""
    centres, apart = {}, {}
    for name in (score.name for score in ready.decided.scores):
        models = [model for model in ready.task.forecasts if f"{model}|{name}" not in facts.unavailable]
        if not models:
            continue
        total, used = (facts.sums[f"{what}|{models[0]}|{name}"] for what in ("total", "used"))
        if ready.in_sample:
            used = np.full(len(used), ready.decided.subsets[0].count)
        mean = np.stack([facts.sums[f"loss|{m}|{name}"] / total[:, None] for m in models], axis=1)
        xi = None
        if ready.task.censoring.moves:
            each = [_influence(ready, facts, f"{model}|{name}", mean[:, 0].shape) for model in models]
            xi = np.stack(each, axis=2) / total[:, None, None]
        centres[name] = Centre(models, total, mean, used, xi if ready.in_sample else None)
        if xi is not None and not ready.in_sample:
            apart[name] = xi
    return centres, apart


def _influence(ready: TableDecided, facts: PartialSums, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """What each training subject, of unit weight where it stands for several, adds to sums, (J, m, q)."""
    (part,), (m, q) = ready.decided.censoring.parts, shape
    curves = range(len(getattr(part.estimator, "distributions_", (None,))))
    A = {i: facts.sums[key] for i in curves if (key := f"A|{i}|{name}") in facts.sums}
    xi = np.zeros((ready.task.censoring.n_train, m, q))
    xi[part.training] = part.influence(A, m, q)
    if (counted := ready.fitted_to) is None:
        return xi
    return xi / np.where(counted.weight > 0, counted.weight, 1.0)[:, None, None]


def _means(
    ready: TableDecided,
    runner: Runner,
    centres: dict[str, Centre],
    apart: dict[str, np.ndarray],
    kept: Kept | None,
    values: np.ndarray | None = None,
) -> Means:
    """Means, or functions of them with these ``values``: with contributions of groups, or sums of powers."""
    places = Places.of(ready.counted) if any(each.xi is not None for each in centres.values()) else None
    work = Powers(ready.task, centres, ready.decided.reference, places, kept)
    powers = runner.total(work, ready.batches, "standard errors")
    means: Means = {}
    start, repeat = 0, None
    if ready.fitted_to is not None and not ready.in_sample:
        repeat = ready.fitted_to.rows.astype(np.intp)
    for name, centre in centres.items():
        for s, mean in enumerate(centre.mean if values is None else values[None, None]):
            M, q = mean.shape
            more = centre.combined(apart[name][:, s]) if name in apart else np.zeros((0, M, q))
            if ready.task.columns.groups is not None:
                psi = powers.keyed["psi"].values[:, start : start + M * q + 1]
                more = more if repeat is None else np.repeat(more, repeat, axis=0)
                every: list[Estimate] = _by_group(ready, mean, psi, more)
                start += M * q + 1
            else:
                kinds = ("single", "pair", "product", "mixed")
                sums = {kind: powers.sums.get(f"{kind}|{s}|{name}") for kind in kinds}
                size = int(centre.used[s])
                if len(more):
                    added = power_sums(more, centre.number(ready.decided.reference), repeat)
                    sums = {kind: sums[kind] + value for kind, value in added.items()}
                    size += len(more) if repeat is None else int(repeat.sum())
                every = [*Moments(mean, sums, size).means()]
            means |= {(s, m, name): e for m, e in zip(centre.models, every, strict=values is None)}
    return means


def _by_group(ready: TableDecided, mean: np.ndarray, psi: np.ndarray, more: np.ndarray) -> list[Estimate]:
    """Means (M, q) from the contributions of groups, the last column of which counts who has a weight.

    Training subjects, who add ``more`` (n, M, q), may be in some of the groups.
    """
    labels, G, used = ready.counted.by["groups"].keys[0], len(psi), np.nonzero(psi[:, -1] > 0)[0]
    number = np.arange(G) if ready.in_sample else G + np.arange(len(more))
    if len(more) and ready.trained is not None and (theirs := ready.trained.labels) is not None:
        if theirs.dtype.kind != labels.dtype.kind:  # of text files
            theirs, labels = theirs.astype(str), labels.astype(str)
        known = {label: i for i, label in enumerate(labels.tolist())}
        number = np.array([known.setdefault(label, len(known)) for label in theirs.tolist()])
    units = Units(np.arange(G), number, max(G, int(number.max(initial=-1)) + 1))
    every = np.zeros((units.count, *mean.shape))
    every[:G] = psi[:, :-1].reshape(G, *mean.shape)
    if len(more):
        every += sums_within(more, number, units.count)
    everyone, fitted = ready.counted.groups, ready.in_sample or len(more) > 0
    return [estimate_by_unit(v, every[:, a], units, used, everyone, fitted) for a, v in enumerate(mean)]


# ---- what else is known of a table -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Summed:
    """What sums over batches tell of the subjects of a table.

    There are tables, tests, verdict, page and exports. What needs all subjects at once is missing: see
    :mod:`censcore.evaluation.measures.availability`.
    """

    rows: int  #: that were read at a time
    counted: Counted
    #: Effective numbers of events, (subsets, columns), by outcome and axis of the scores.
    effective: dict[tuple[str, str], np.ndarray]
    #: Events up to the horizon, and their effective number under inverse-probability weights, by outcome.
    weighted: dict[str, tuple[int, float]]
    #: How many losses are infinite, (subsets, columns), by model and score.
    infinite: dict[tuple[str, str], np.ndarray]
    n_groups: int | None
    diagnostic: CensoringDiagnostic  #: of the censoring distribution
    again: Callable[..., tuple[dict[Any, Estimate], float]] | None  #: reads the table for functions of means
    view: View | None = None  #: of the outcome, where it alone is asked for

    def __getstate__(self) -> dict[str, Any]:
        """Without the table: its forecasts may be functions of any kind."""
        return vars(self) | {"again": None}

    def of_means(self, score: CaseScore, function: Any) -> tuple[dict[Any, Estimate], float]:
        """Estimate functions of the means of a score, and the effective number of events behind them."""
        if self.again is None:
            raise InvalidInputError("got a comparison that was pickled, without its table: compare it again.")
        return self.again(score, function, self.view)

    @property
    def y(self) -> RightCensored:
        """The distinct outcomes."""
        return self.counted.followed

    def settings(self, of: Comparison, settings: dict[str, Any]) -> dict[str, Any]:
        """Count all subjects, events and groups, and say how the table was read."""
        counts = self.counted
        settings |= {"subjects": counts.n, "events": counts.n_events, "groups": self.n_groups}
        settings |= {"read in batches of": self.rows, "censcore": settings.pop("censcore")}
        return settings | ({} if of.kind.y is None else of.kind.settings(counts.rows))

    def of(self, view: View, names: dict[str, CaseScore]) -> Summed:
        """Return what is of one view, by the new names of its scores."""
        effective = {("", axis): n for (outcome, axis), n in self.effective.items() if outcome == view.name}
        weighted = {"": self.weighted[view.name]} if effective else {}
        infinite = {(m, names[s].name): n for (m, s), n in self.infinite.items() if s in names}
        return replace(self, effective=effective, weighted=weighted, infinite=infinite, view=view)


def _comparison(ready: TableDecided, facts: PartialSums, means: Means, asked: Asked) -> Comparison:
    decided, models = ready.decided, list(ready.task.forecasts)
    missing = {key.rpartition("|")[::2]: why for key, why in facts.unavailable.items()}
    effective, weighted, few = _effective(ready, facts)
    notes = [*decided.notes, *_notes(ready, facts), *([PAIRS] if asked.discrimination else []), *few]
    notes += notes_on_unavailable(missing)
    infinite = {
        (model, score.name): facts.sums[f"infinite|{model}|{score.name}"]
        for score in decided.scores
        for model in models
        if (model, score.name) not in missing
    }
    decided = replace(decided, notes=notes)
    evaluations, method = {}, method_of(decided.censoring)
    for model in models:
        own = {(s, name): mean for (s, m, name), mean in means.items() if m == model}
        why = {name: reason for (m, name), reason in missing.items() if m == model}
        evaluations[model] = Evaluation(model, decided, own, why, method=method)
    groups = ready.counted.by.get("groups")
    summed = Summed(
        ready.task.rows, ready.counted, effective, weighted, infinite,
        None if groups is None else len(groups.values), _diagnostic(ready, facts),
        partial(functions_of_means, asked.sample.y, ready),
    )  # fmt: skip
    return Comparison(evaluations, decided, notes, summed=summed)


def _effective(
    ready: TableDecided, facts: PartialSums
) -> tuple[dict[tuple[str, str], np.ndarray], dict[str, tuple[int, float]], list[str]]:
    """Effective numbers of events, those of events with inverse-probability weights, and where they are few.

    The first are by outcome and axis, (subsets, columns): the fewer of events and of subjects without.
    """
    decided, effective, weighted, notes = ready.decided, {}, dict[str, tuple[int, float]](), list[str]()
    for (outcome, axis), score in event_scores(decided.scores).items():
        q = {"time": len(decided.times), "level": len(decided.levels)}.get(score.axis, 1)
        numbers = _kish(facts, f"{axis}|{outcome}").reshape(len(decided.subsets), -1, q)
        effective[outcome, axis] = numbers.min(axis=1)
    outcomes = dict.fromkeys(score.outcome for score in decided.scores)
    main = (outcomes.keys() & set(decided.kind.ranked)) or {decided.scores[0].outcome}
    for outcome in outcomes:
        all_equal, by_weight = _kish(facts, f"all|{outcome}")
        weighted[outcome] = int(facts.sums[f"seen|{outcome}"]), float(by_weight)
        if outcome in main:
            about = f"{outcome}: " if outcome else ""
            few = note_on_few(weighted[outcome][0], float(all_equal), ready.counted.n, decided.horizon)
            notes += [about + note for note in few]
    return effective, weighted, notes


def _kish(facts: PartialSums, name: str) -> np.ndarray:
    """Kish's effective number of each column."""
    if f"events|{name}" in facts.keyed:
        table = facts.keyed[f"events|{name}"].values
        total, square = table.sum(axis=0), (table**2).sum(axis=0)
    else:
        total, square = facts.sums[f"events|{name}"]
    return np.where(square > 0, total**2 / np.where(square > 0, square, 1.0), 0.0)


def _notes(ready: TableDecided, facts: PartialSums) -> list[str]:
    notes = []
    for model in ready.task.forecasts:
        if f"expected|{model}" in facts.sums:
            notes += note_on_units(model, float(facts.sums[f"expected|{model}"]), ready.counted.n_events)
        if count := int(facts.sums[f"repaired|{model}"]):
            notes.append(f"{model!r}: curves of {count} subjects were made monotone, as asked for.")
    return notes


def _diagnostic(ready: TableDecided, facts: PartialSums) -> CensoringDiagnostic:
    """How far the censoring distribution can be trusted, by the weights of the events under it."""
    counted, end, estimate = ready.counted, ready.decided.horizon, ready.task.censoring
    if estimate.pooled:  # otherwise the weights differ by subject and were summed by batches
        facts = event_weights(counted.followed, ready.decided.censoring.distribution, end, counted.rows)
    weight, count = facts.keyed["weights"].keys[0], facts.keyed["weights"].values[:, 0]
    middle, high = quantiles_of(weight, count, np.array([0.5, 0.9])) if count.sum() else (np.nan, np.nan)
    largest = float(weight.max()) if count.sum() else np.nan
    return CensoringDiagnostic(
        subjects=counted.n,
        events=counted.n_events,
        censored=counted.n - counted.n_events,
        horizon=end,
        support=ready.ends[0],
        safe_horizon=float(min(end, ready.ends[1])),
        beyond=int(facts.sums["beyond"]),
        cut=int(counted.rows[to_numpy(counted.followed.time) > end].sum()),
        weights={"median": float(middle), "90 %": float(high), "largest": largest},
        effective=float((weight @ count) ** 2 / (weight**2 @ count)) if count.sum() else 0.0,
        events_in=int(count.sum()),
        conditional=not estimate.pooled or len(ready.task.by_curve) > 1,
        covariates=None,
        not_tested="covariates stay in the table",
    )
