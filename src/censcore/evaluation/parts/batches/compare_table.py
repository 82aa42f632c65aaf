"""Comparisons of tables that are read in batches: from sums over batches to means and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from censcore.evaluation.comparison import Comparison
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.decide import Decided
from censcore.evaluation.decisions.notes import note_on_few, note_on_units
from censcore.evaluation.evaluation import Evaluation
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import method_of, notes_on_unavailable
from censcore.evaluation.inference.units import sums_within
from censcore.evaluation.outcome_table import IN_MEMORY
from censcore.evaluation.parts.batches.decisions import TablePlan
from censcore.evaluation.parts.batches.passes import (
    SUMS,
    Centre,
    Influences,
    LossSums,
    Moments,
    event_scores,
    event_weights,
    power_sums,
)
from censcore.evaluation.parts.batches.runners import PartialSums, Runner, cluster
from censcore.evaluation.parts.batches.summed import Summed
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic
from censcore.exceptions import InvalidInputError

Values = dict[tuple[int, str, str], Estimate]  # means by subset number, model and score name


def compare_table(asked: Asked) -> Comparison:
    """Compare forecasts of the subjects in a table; see :func:`censcore.compare`."""
    table = asked.sample.y
    other = [name for name in ("X", "mask") if getattr(asked.sample, name) is not None]
    if other:
        raise InvalidInputError(f"{', '.join(other)}: {IN_MEMORY}")
    with cluster(table.dask) as client:
        store = None if table.store is None else Path(table.store)
        runner = Runner(table.n_jobs, client, store, asked.progress)
        ready = TablePlan(runner, asked).decide()
        losses = runner.total(LossSums(ready.task), ready.batches, "scoring")
        centres, apart = _centres_of(ready, losses)
        task = Influences(ready.task, centres, ready.reference, ready.counts)
        influences = runner.total(task, ready.batches, "standard errors")
    return _result(asked, ready, losses, _means_of(ready, centres, apart, influences))


def _result(asked: Asked, ready: TablePlan, losses: PartialSums, values: Values) -> Comparison:
    plan = ready.task
    effective, weighted, few = _effective(ready, losses)
    missing = {key.rpartition("|")[::2]: why for key, why in losses.unavailable.items()}
    censoring = replace(ready.censoring, parts=[] if ready.part is None else [ready.part])
    notes = [*ready.notes, *_notes(ready, losses, asked.discrimination), *few]
    notes += notes_on_unavailable(missing)
    pairs = {(m, score.name): f"infinite|{m}|{score.name}" for score in plan.scores for m in plan.forecasts}
    infinite = {pair: losses.sums[key] for pair, key in pairs.items() if pair not in missing}
    groups = ready.counted.by.get("groups")
    n_groups = None if groups is None else len(groups.values)
    diagnostic = _diagnostic(ready, losses)
    asked = replace(asked.bare, discrimination=False, horizon=ready.asked.horizon)
    decisions = Decided(
        asked, ready.kind, plan.scores, ready.reference, censoring, plan.horizon, plan.times,
        plan.levels, plan.subsets, None, None, notes,
    )  # fmt: skip
    evaluations = {}
    for model in plan.forecasts:
        means = {(s, name): mean for (s, m, name), mean in values.items() if m == model}
        why = {name: reason for (m, name), reason in missing.items() if m == model}
        evaluations[model] = Evaluation(model, decisions, means, why, method=method_of(censoring))
    summed = Summed(plan.rows, ready.counted, effective, weighted, infinite, n_groups, diagnostic)
    return Comparison(evaluations, decisions, notes, summed=summed)


def _effective(
    ready: TablePlan, losses: PartialSums
) -> tuple[dict[tuple[str, str], np.ndarray], dict[str, tuple[int, float]], list[str]]:
    """Effective numbers of events, those of events with inverse-probability weights, and where they are few.

    The first are by outcome and axis, (subsets, columns): the fewer of events and of subjects without.
    """
    plan, m = ready.task, len(ready.task.subsets)
    effective, weighted, notes = {}, dict[str, tuple[int, float]](), list[str]()
    for (outcome, axis), score in event_scores(plan.scores).items():
        numbers = _effective_numbers(losses, f"{axis}|{outcome}")
        q = {"time": len(plan.times), "level": len(plan.levels)}.get(score.axis, 1)
        effective[outcome, axis] = numbers.reshape(m, -1, q).min(axis=1)
    outcomes = dict.fromkeys(score.outcome for score in plan.scores)
    main = (outcomes.keys() & set(ready.kind.ranked)) or {plan.scores[0].outcome}
    for outcome in outcomes:
        all_equal, by_weight = _effective_numbers(losses, f"all|{outcome}")
        weighted[outcome] = int(losses.sums[f"seen|{outcome}"]), float(by_weight)
        if outcome in main:
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


def _notes(ready: TablePlan, losses: PartialSums, discrimination: bool) -> list[str]:
    notes = []
    for model in ready.task.forecasts:
        if f"expected|{model}" in losses.sums:
            notes += note_on_units(model, float(losses.sums[f"expected|{model}"]), ready.counts.n_events)
        if count := int(losses.sums[f"repaired|{model}"]):
            notes.append(f"{model!r}: curves of {count} subjects were made monotone, as asked for.")
    if discrimination:
        notes.append(
            "Concordance and AUC are over all pairs of subjects, and calibration over their order: neither "
            "is a sum over batches. Compare a sample in memory for these."
        )
    return notes


# ---- means and their errors ------------------------------------------------------------------------------


def _centres_of(ready: TablePlan, losses: PartialSums) -> tuple[dict[str, Centre], dict[str, np.ndarray]]:
    """What the third pass measures influences from, and the influences of training subjects apart."""
    plan, centres, apart = ready.task, {}, {}
    g = np.array([_contributing(ready, s) for s in range(len(plan.subsets))])
    factor = np.where(g > 1, np.sqrt(g / np.maximum(g - 1, 1)), np.nan)
    for name in (score.name for score in plan.scores):
        models = [model for model in plan.forecasts if f"{model}|{name}" not in losses.unavailable]
        if not models:
            continue
        mean = np.stack([losses.sums[f"loss|{model}|{name}"] for model in models], axis=1)  # (m, M, q)
        xi = None
        if ready.part is not None:
            every = (_influence(ready, losses, f"{model}|{name}", mean) for model in models)
            xi = np.stack(list(every), axis=2)
        centres[name] = Centre(models, mean, factor, xi if ready.in_sample else None)
        if xi is not None and not ready.in_sample:
            apart[name] = xi
    return centres, apart


def _influence(ready: TablePlan, losses: PartialSums, name: str, mean: np.ndarray) -> np.ndarray:
    """What a subject of unit weight with each outcome moves through the estimate of C, (J, m, q).

    Of an estimate that was made before, or given covariates, what each of its training subjects moves.
    """
    part, fitted, (m, _, q) = ready.part, ready.task.censoring.fitted, mean.shape
    assert part is not None
    assert fitted is not None
    curves = range(len(getattr(part.estimator, "distributions_", (None,))))
    A = {i: losses.sums[key] for i in curves if (key := f"A|{i}|{name}") in losses.sums}
    xi = np.zeros((len(fitted.trained_on_), m, q))
    weight = np.ones(len(xi)) if ready.trained is None else ready.trained.weight
    xi[part.training] = part.influence(A, m, q)
    return xi / np.where(weight > 0, weight, 1.0)[:, None, None]


def _contributing(ready: TablePlan, s: int) -> int:
    """How many subjects, or groups of them, contribute to the means of a subset."""
    if ready.task.columns.groups is not None:
        return (
            len(ready.counted.by["groups"].values)
            if ready.all_groups_count
            else int(_present(ready, s).sum())
        )
    return ready.task.subsets[0 if ready.in_sample else s].count


def _means_of(
    ready: TablePlan, centres: dict[str, Centre], apart: dict[str, np.ndarray], influences: PartialSums
) -> Values:
    """Means with the influence of each group, or with sums of powers of the influences of subjects."""
    values: Values = {}
    start, repeat = 0, None
    if apart and ready.trained is not None:
        repeat = ready.trained.rows.astype(np.intp)
    for name, centre in centres.items():
        m, M, q = centre.mean.shape
        for s in range(m):
            mean, more = centre.mean[s], apart[name][:, s] if name in apart else np.zeros((0, M, q))
            if ready.task.columns.groups is not None:
                psi = influences.keyed["psi"].values[:, start : start + M * q].reshape(-1, M, q)
                if ready.train_groups is not None and len(more):  # their sums, by group
                    count = max(len(psi), int(ready.train_groups.max()) + 1)
                    of_groups = sums_within(more, ready.train_groups, count)
                    psi, more = psi + centre.factor[s] * of_groups[: len(psi)], of_groups[len(psi) :]
                if not ready.all_groups_count:  # groups without a subject of the subset do not count
                    psi = psi[_present(ready, s)]
                start += M * q
                psi = np.concatenate([psi, more if repeat is None else np.repeat(more, repeat, axis=0)])
                every: Sequence[Estimate] = [Estimate(mean[a], psi[:, a]) for a in range(M)]
            else:
                sums = {key: influences.sums.get(f"{key}|{s}|{name}") for key in SUMS}
                if len(more):
                    added = power_sums(more, centre.number(ready.reference), repeat)
                    sums = {key: sums[key] + value for key, value in added.items()}
                size = _contributing(ready, s) + (ready.n_train if len(more) else 0)
                every = Moments(mean, sums, size).means()
            values |= {(s, model, name): each for model, each in zip(centre.models, every, strict=True)}
    return values


def _present(ready: TablePlan, s: int) -> np.ndarray:
    """Which groups have subjects of a subset."""
    subset, by = ready.task.subsets[s], ready.counted.by
    present = by["last"].keys[0]
    if subset.by:
        labels, present = by[f"groups by {subset.by}"].keys
        present = present[labels.astype(str) == subset.label]
    return np.isin(by["groups"].keys[0], present)


def _diagnostic(ready: TablePlan, losses: PartialSums) -> CensoringDiagnostic:
    """How far the censoring distribution can be trusted, by the weights of the events under it."""
    counts, end, plan = ready.counts, ready.horizon, ready.task
    if plan.censoring.pooled:  # otherwise the weights differ by subject and were summed by batches
        y = counts.subjects(None).y
        losses = event_weights(y, ready.censoring.distribution, end, counts.rows)
    weight, count = losses.keyed["weights"].keys[0], losses.keyed["weights"].values[:, 0]
    return CensoringDiagnostic(
        subjects=counts.n,
        events=counts.n_events,
        censored=counts.n - counts.n_events,
        horizon=end,
        support=ready.ends[0],
        safe_horizon=float(min(end, ready.ends[1])),
        beyond=int(losses.sums["beyond"]),
        cut=int(counts.rows[counts.time > end].sum()),
        weights=_quantiles(weight, count),
        effective=float((weight @ count) ** 2 / (weight**2 @ count)) if count.sum() else 0.0,
        events_in=int(count.sum()),
        conditional=not plan.censoring.pooled or len(plan.by_curve) > 1,
        covariates=None,
        not_tested="covariates stay in the table",
    )


def _quantiles(weight: np.ndarray, count: np.ndarray) -> dict[str, float]:
    if not count.sum():
        return {"median": np.nan, "90 %": np.nan, "largest": np.nan}
    order = np.argsort(weight)
    share = np.cumsum(count[order]) / count.sum()
    middle, high = weight[order][np.minimum(np.searchsorted(share, [0.5, 0.9]), len(order) - 1)]
    return {"median": float(middle), "90 %": float(high), "largest": float(weight.max())}
