"""Comparisons of forecasts in a table that is read in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np

from censcore.evaluation.comparison import Comparison
from censcore.evaluation.designs.batches.batch_means import centres_of, means_of
from censcore.evaluation.designs.batches.decisions import Prepared, count_of, prepare, strata_numbers
from censcore.evaluation.designs.batches.design import Batches, CountedSubset, Weights
from censcore.evaluation.designs.batches.partial_sums import PartialSums
from censcore.evaluation.designs.batches.passes import Influences, LossSums
from censcore.evaluation.designs.batches.runners import Runner, cluster
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.losses import Losses, Means
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.kinds.one_time import OneTime
from censcore.evaluation.lines import MINIMUM_EVENTS
from censcore.evaluation.plan.checks import EXPECTED
from censcore.evaluation.plan.request import Request
from censcore.exceptions import InvalidInputError

__all__ = ["compare_table"]


def compare_table(asked: Request) -> Comparison:
    """Compare forecasts of the subjects in a table; see :func:`censcore.compare`."""
    sample, table = asked.sample, asked.sample.y
    other = [name for name in ("names", "events") if getattr(asked, name) is not None]
    other += [name for name in ("X", "mask") if getattr(sample, name) is not None]
    if other:
        raise InvalidInputError(
            f"{', '.join(other)}: not available for a table that is read in batches. Read the table into "
            "memory, and pass its outcome in place of OutcomeTable."
        )
    with cluster(table.dask) as client:
        store = None if table.store is None else Path(table.store)
        runner = Runner(table.n_jobs, client, store, asked.progress)
        ready = prepare(
            runner, asked.forecasts, table, asked.censoring, train=asked.train, scores=asked.scores,
            times=asked.times, levels=asked.levels, reference=asked.reference, horizon=asked.horizon,
            by=asked.by, sample_weight=sample.weight, groups=sample.groups,
        )  # fmt: skip
        losses = runner.total(LossSums(ready.plan), ready.batches, "scoring")
        centres, apart = centres_of(ready, losses)
        strata = strata_numbers(ready.counts, ready.plan)
        task = Influences(ready.plan, centres, ready.reference, ready.counts, strata)
        influences = runner.total(task, ready.batches, "standard errors")
    means = means_of(ready, centres, apart, influences)
    return _result(asked, ready, losses, means)


def _result(
    asked: Request, ready: Prepared, losses: PartialSums, values: dict[tuple[int, str, str], Estimate]
) -> Comparison:
    plan, counts = ready.plan, ready.counts
    effective, weighted = _effective(ready, losses)
    unavailable = {cast(tuple[str, str], tuple(k.split("|", 1))): v for k, v in losses.unavailable.items()}
    of_losses = Losses({}, unavailable, plan.scores)
    subsets = [
        CountedSubset(
            by,
            label,
            np.ones(1),
            subjects=count_of(ready, s),
            weights_given=ready.plan.columns.weight is not None,
        )
        for s, (by, label, _) in enumerate(plan.subsets)
    ]
    C: Any = plan.given or (plan.curves[0].distribution if plan.curves else None)
    estimated = ready.fitted is not None or plan.fitted is not None
    notes = [*ready.notes, *_notes(ready, losses, effective[0, 0], asked.discrimination), *of_losses.notes]
    infinite = {
        (model, score.name): losses.sums[f"infinite|{model}|{score.name}"]
        for score in plan.scores
        for model in plan.forecasts
        if f"infinite|{model}|{score.name}" in losses.sums
    }
    groups = ready.counted.keyed.get("groups")
    n_groups = None if groups is None else len(groups.values)
    design = Batches(plan, counts, effective, weighted, infinite, n_groups, _weights(ready, losses))
    return Comparison(
        kind=OneTime(None), design=design, scores=plan.scores, losses=of_losses,
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


def _effective(ready: Prepared, losses: PartialSums) -> tuple[np.ndarray, tuple[int, float]]:
    """Effective numbers of events by subset and kind, and of events with inverse-probability weights."""
    if "events" in losses.keyed:
        table = losses.keyed["events"].values
        total, square = table.sum(axis=0), (table**2).sum(axis=0)
    else:
        total, square = losses.sums["events"]
    found = np.where(square > 0, total**2 / np.where(square > 0, square, 1.0), 0.0)
    m = len(ready.plan.subsets)
    return found[:-1].reshape(m, -1), (int(losses.sums["seen"]), float(found[-1]))


def _notes(ready: Prepared, losses: PartialSums, effective: float, discrimination: bool) -> list[str]:
    notes = []
    observed = int(ready.counts.rows[ready.counts.event].sum())
    for model in ready.plan.forecasts:
        expected = float(losses.sums[f"expected|{model}"])
        if max(expected, observed) >= EXPECTED * max(min(expected, observed), 1.0):
            notes.append(
                f"Forecast {model!r} expects {expected:.3g} events in the time that subjects were followed, "
                f"and {observed} were seen. Check that it is in the unit of time of the outcome."
            )
        if f"repaired|{model}" in losses.sums:
            count = int(losses.sums[f"repaired|{model}"])
            notes.append(f"{model!r}: curves of {count} subjects were made monotone, as asked for.")
    if effective < MINIMUM_EVENTS:
        notes.append(
            f"{losses.sums['seen']:.0f} events (worth {effective:.2g} independent ones) among "
            f"{ready.counts.n} scored subjects up to the horizon {ready.plan.horizon:.6g}: no forecast can "
            f"be called better, since at least {MINIMUM_EVENTS} are needed."
        )
    if discrimination:
        notes.append(
            "Concordance and AUC are over all pairs of subjects, and calibration over their order: neither "
            "is a sum over batches. Compare a sample in memory for these."
        )
    return notes
