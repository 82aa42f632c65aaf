"""Comparisons of forecasts in a table that is read in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from censcore.evaluation.comparison import Comparison
from censcore.evaluation.designs.batches.batch_means import centres_of, means_of
from censcore.evaluation.designs.batches.decisions import Prepared, count_of, prepare
from censcore.evaluation.designs.batches.design import Batches, CountedSubset, Weights
from censcore.evaluation.designs.batches.outcome_table import IN_MEMORY
from censcore.evaluation.designs.batches.partial_sums import PartialSums
from censcore.evaluation.designs.batches.passes import Influences, LossSums, event_scores
from censcore.evaluation.designs.batches.runners import Runner, cluster
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.losses import Losses, Means
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.plan.checks import note_on_few, note_on_units
from censcore.evaluation.plan.request import Request
from censcore.exceptions import InvalidInputError

__all__ = ["compare_table"]


def compare_table(asked: Request) -> Comparison:
    """Compare forecasts of the subjects in a table; see :func:`censcore.compare`."""
    table = asked.sample.y
    other = [name for name in ("X", "mask") if getattr(asked.sample, name) is not None]
    if other:
        raise InvalidInputError(f"{', '.join(other)}: {IN_MEMORY}")
    with cluster(table.dask) as client:
        store = None if table.store is None else Path(table.store)
        runner = Runner(table.n_jobs, client, store, asked.progress)
        ready = prepare(runner, asked)
        losses = runner.total(LossSums(ready.plan), ready.batches, "scoring")
        centres, apart = centres_of(ready, losses)
        strata = ready.plan.stratum_of(ready.counts.stratum)
        task = Influences(ready.plan, centres, ready.reference, ready.counts, strata)
        influences = runner.total(task, ready.batches, "standard errors")
    means = means_of(ready, centres, apart, influences)
    return _result(asked, ready, losses, means)


def _result(
    asked: Request, ready: Prepared, losses: PartialSums, values: dict[tuple[int, str, str], Estimate]
) -> Comparison:
    plan = ready.plan
    effective, weighted, few = _effective(ready, losses)
    pairs = {(m, score.name): f"{m}|{score.name}" for score in plan.scores for m in plan.forecasts}
    missing = {pair: losses.unavailable[key] for pair, key in pairs.items() if key in losses.unavailable}
    of_losses = Losses({}, missing, plan.scores)
    subsets = [
        CountedSubset(by, label, np.ones(1), count_of(ready, s), plan.columns.weight is not None)
        for s, (by, label, _) in enumerate(plan.subsets)
    ]
    C: Any = plan.given or (plan.curves[0].distribution if plan.curves else None)
    estimated = ready.fitted is not None or plan.fitted is not None
    notes = [*ready.notes, *_notes(ready, losses, asked.discrimination), *few, *of_losses.notes]
    infinite = {pair: losses.sums[f"infinite|{key}"] for pair, key in pairs.items() if pair not in missing}
    groups = ready.counted.by.get("groups")
    n_groups = None if groups is None else len(groups.values)
    design = Batches(plan, ready.counted, effective, weighted, infinite, n_groups, _weights(ready, losses))
    return Comparison(
        kind=ready.kind, design=design, scores=plan.scores, losses=of_losses,
        means=Means(values, _method(ready)), cases={}, subsets=list(subsets),
        resolved_censoring=ResolvedCensoring(C, ready.description, estimated, ready.in_sample),
        reference=ready.reference, confidence=asked.confidence, discrimination=False, seed=asked.seed,
        notes=notes, time_unit=asked.time_unit,
    )  # fmt: skip


def _weights(ready: Prepared, losses: PartialSums) -> Weights | None:
    """Weights under censoring distributions given covariates, of which curves and counts tell nothing."""
    if ready.ends is None:
        return None
    weights, beyond = losses.keyed["weights"], int(losses.sums["beyond"])
    return Weights(weights.keys[0], weights.values[:, 0], beyond, *ready.ends.tolist())


def _method(ready: Prepared) -> str:
    regression = ready.plan.fitted
    if regression is not None and not regression.has_influence:
        return "per subject, the censoring distribution being taken as known"
    if ready.fitted is not None or regression is not None:
        return "influence function, with the term of the estimated censoring distribution"
    return "per subject, the censoring distribution being known"


def _effective(
    ready: Prepared, losses: PartialSums
) -> tuple[dict[tuple[str, str], np.ndarray], dict[str, tuple[int, float]], list[str]]:
    """Effective numbers of events, those of events with inverse-probability weights, and where they are few.

    The first are by outcome and axis, (subsets, columns): the fewer of events and of subjects without.
    """
    plan, m = ready.plan, len(ready.plan.subsets)
    effective, weighted, notes = {}, dict[str, tuple[int, float]](), list[str]()
    for (outcome, axis), score in event_scores(plan.scores).items():
        numbers = _effective_numbers(losses, f"{axis}|{outcome}")
        q = {"time": len(plan.times), "level": len(plan.levels)}.get(score.axis, 1)
        effective[outcome, axis] = numbers.reshape(m, -1, q).min(axis=1)
    outcomes = dict.fromkeys(score.outcome for score in plan.scores)
    told = (outcomes.keys() & set(ready.kind.ranked)) or {plan.scores[0].outcome}
    for outcome in outcomes:
        all_equal, by_weight = _effective_numbers(losses, f"all|{outcome}")
        weighted[outcome] = int(losses.sums[f"seen|{outcome}"]), float(by_weight)
        if outcome in told:
            about = f"{outcome}: " if outcome else ""
            few = note_on_few(weighted[outcome][0], float(all_equal), ready.counts.n, plan.horizon)
            notes += [about + note for note in few]
    return effective, weighted, notes


def _effective_numbers(losses: PartialSums, name: str) -> np.ndarray:
    """Kish's effective number of each column."""
    if f"events|{name}" in losses.keyed:
        table = losses.keyed[f"events|{name}"].values
        total, square = table.sum(axis=0), (table**2).sum(axis=0)
    else:
        total, square = losses.sums[f"events|{name}"]
    return np.where(square > 0, total**2 / np.where(square > 0, square, 1.0), 0.0)


def _notes(ready: Prepared, losses: PartialSums, discrimination: bool) -> list[str]:
    notes = []
    observed = int(ready.counts.rows[ready.counts.event].sum())
    for model in ready.plan.forecasts:
        if f"expected|{model}" in losses.sums:
            notes += note_on_units(model, float(losses.sums[f"expected|{model}"]), observed)
        if count := int(losses.sums[f"repaired|{model}"]):
            notes.append(f"{model!r}: curves of {count} subjects were made monotone, as asked for.")
    if discrimination:
        notes.append(
            "Concordance and AUC are over all pairs of subjects, and calibration over their order: neither "
            "is a sum over batches. Compare a sample in memory for these."
        )
    return notes
