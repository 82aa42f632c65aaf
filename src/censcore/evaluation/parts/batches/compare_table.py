"""Comparisons of tables that are read in batches: from sums over batches to evaluations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.notes import note_on_few, note_on_units
from censcore.evaluation.evaluation import Evaluation
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import method_of, notes_on_unavailable
from censcore.evaluation.inference.moments import Moments, power_sums
from censcore.evaluation.inference.pooling import estimate_by_unit
from censcore.evaluation.inference.units import Units, sums_within
from censcore.evaluation.measures.classification import quantiles_of
from censcore.evaluation.outcome_table import IN_MEMORY
from censcore.evaluation.parts.batches.counts import Places
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
from censcore.evaluation.parts.batches.summed import Summed
from censcore.evaluation.parts.batches.sums import PartialSums
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic
from censcore.exceptions import InvalidInputError

PAIRS = (
    "Concordance and AUC are over all pairs of subjects, and calibration over their order: neither is a sum "
    "over batches. Compare a sample in memory for these."
)
Means = dict[tuple[int, str, str], Estimate]  # by number of the subset, model and name of the score


def compare_table(asked: Asked) -> Comparison:
    """Compare forecasts of the subjects in a table; see :func:`censcore.compare`."""
    table = asked.sample.y
    other = [name for name in ("X", "mask") if getattr(asked.sample, name) is not None]
    if other:
        raise InvalidInputError(f"{', '.join(other)}: {IN_MEMORY}")
    with cluster(table.dask) as client:
        store = None if table.store is None else Path(table.store)
        runner = Runner(table.n_jobs, client, store, asked.progress)
        ready = decide_table(asked, runner)
        kept = Kept() if store is None and runner.in_one_process(ready.batches) else None
        facts = runner.total(Facts(ready.task, kept), ready.batches, "scoring")
        centres, xi = _centres(ready, facts)
        places = Places.of(ready.counted) if any(each.xi is not None for each in centres.values()) else None
        work = Powers(ready.task, centres, ready.decided.reference, places, kept)
        powers = runner.total(work, ready.batches, "standard errors")
    return _comparison(ready, facts, _means(ready, centres, xi, powers), asked.discrimination)


# ---- means and their errors ------------------------------------------------------------------------------


def _centres(ready: TableDecided, facts: PartialSums) -> tuple[dict[str, Centre], dict[str, np.ndarray]]:
    """What contributions are taken from, by score, and the influence of those whom C was fitted to."""
    centres, apart, subsets = {}, {}, ready.decided.subsets
    total = np.array([subset.weight[0] for subset in subsets])
    grouped = ready.task.columns.groups is not None
    g = np.array([subsets[0 if ready.in_sample else s].count for s in range(len(subsets))])
    factor = np.ones(len(g)) if grouped else np.where(g > 1, np.sqrt(g / np.maximum(g - 1, 1)), np.nan)
    for name in (score.name for score in ready.decided.scores):
        models = [model for model in ready.task.forecasts if f"{model}|{name}" not in facts.unavailable]
        if not models:
            continue
        sums = np.stack([facts.sums[f"loss|{model}|{name}"] for model in models], axis=1)  # (m, M, q)
        xi = None
        if ready.task.censoring.moves:
            each = [_influence(ready, facts, f"{model}|{name}", sums[:, 0].shape) for model in models]
            xi = np.stack(each, axis=2) / total[:, None, None]
        mean = sums / total[:, None, None]
        centres[name] = Centre(models, total, mean, factor, xi if ready.in_sample else None)
        if xi is not None and not ready.in_sample:
            apart[name] = xi
    return centres, apart


def _influence(ready: TableDecided, facts: PartialSums, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """What each training subject, of unit weight where it stands for several, adds to sums, (J, m, q)."""
    estimate, (m, q) = ready.task.censoring, shape
    part = estimate.part(ready.head)
    assert part is not None
    curves = range(len(getattr(part.estimator, "distributions_", (None,))))
    A = {i: facts.sums[key] for i in curves if (key := f"A|{i}|{name}") in facts.sums}
    xi = np.zeros((estimate.n_train, m, q))
    xi[part.training] = part.influence(A, m, q)
    if (counted := ready.fitted_to) is None:
        return xi
    return xi / np.where(counted.weight > 0, counted.weight, 1.0)[:, None, None]


def _means(
    ready: TableDecided, centres: dict[str, Centre], apart: dict[str, np.ndarray], powers: PartialSums
) -> Means:
    """Means with the contribution of each group, or with sums of powers of those of subjects."""
    of_groups = ready.task.columns.groups is not None
    means: Means = {}
    start, repeat = 0, None
    if ready.fitted_to is not None and not ready.in_sample:
        repeat = ready.fitted_to.rows.astype(np.intp)
    for name, centre in centres.items():
        m, M, q = centre.mean.shape
        for s in range(m):
            more = apart[name][:, s] if name in apart else np.zeros((0, M, q))
            if of_groups:
                psi = powers.keyed["psi"].values[:, start : start + M * q].reshape(-1, M, q)
                every: list[Estimate] = _by_group(
                    ready, s, centre.mean[s], psi, more if repeat is None else np.repeat(more, repeat, axis=0)
                )
                start += M * q
            else:
                kinds = ("single", "pair", "product", "mixed")
                sums = {kind: powers.sums.get(f"{kind}|{s}|{name}") for kind in kinds}
                size = ready.decided.subsets[0 if ready.in_sample else s].count
                if len(more):
                    added = power_sums(more, centre.number(ready.decided.reference), repeat)
                    sums = {kind: sums[kind] + value for kind, value in added.items()}
                    size += len(more) if repeat is None else int(repeat.sum())
                every = [*Moments(centre.mean[s], sums, size).means()]
            means |= {(s, model, name): each for model, each in zip(centre.models, every, strict=True)}
    return means


def _by_group(
    ready: TableDecided, s: int, mean: np.ndarray, psi: np.ndarray, more: np.ndarray
) -> list[Estimate]:
    """Means from the contributions of groups (G, M, q), and of training subjects that are in some of them."""
    counted, subset, G = ready.counted, ready.decided.subsets[s], len(psi)
    labels = counted.by["groups"].keys[0]
    used = every_group = counted.groups
    if subset.by:
        of, group = counted.by[f"groups by {subset.by}"].keys
        used = np.nonzero(np.isin(labels, group[of.astype(str) == subset.label]))[0]
    number = np.arange(G) if ready.in_sample else G + np.arange(len(more))
    if len(more) and ready.trained is not None and (theirs := ready.trained.labels) is not None:
        if theirs.dtype.kind != labels.dtype.kind:  # of text files
            theirs, labels = theirs.astype(str), labels.astype(str)
        known = {label: i for i, label in enumerate(labels.tolist())}
        number = np.array([known.setdefault(label, len(known)) for label in theirs.tolist()])
    units = Units(np.arange(G), number, max(G, int(number.max(initial=-1)) + 1))
    every = np.concatenate([psi, np.zeros((units.count - G, *psi.shape[1:]))])
    if len(more):
        every += sums_within(more, number, units.count)
    fitted = ready.in_sample or len(more) > 0
    return [estimate_by_unit(v, every[:, a], units, used, every_group, fitted) for a, v in enumerate(mean)]


# ---- what else is known of a table -----------------------------------------------------------------------


def _comparison(ready: TableDecided, facts: PartialSums, means: Means, discrimination: bool) -> Comparison:
    decided, models = ready.decided, list(ready.task.forecasts)
    missing = {key.rpartition("|")[::2]: why for key, why in facts.unavailable.items()}
    effective, weighted, few = _effective(ready, facts)
    notes = [*decided.notes, *_notes(ready, facts), *([PAIRS] if discrimination else []), *few]
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
