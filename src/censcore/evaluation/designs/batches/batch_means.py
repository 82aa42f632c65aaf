"""From the sums of all batches to means with their errors."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore.evaluation.designs.batches.decisions import Prepared, count_of
from censcore.evaluation.designs.batches.partial_sums import PartialSums
from censcore.evaluation.designs.batches.passes import Centre
from censcore.evaluation.designs.batches.summed_estimates import Moments, power_sums
from censcore.evaluation.inference.estimates import Estimate

__all__ = ["centres_of", "means_of"]


def _available(ready: Prepared, losses: PartialSums) -> dict[str, list[str]]:
    """The models that have each score in every batch."""
    models = ready.plan.forecasts
    return {
        score.name: [model for model in models if f"{model}|{score.name}" not in losses.unavailable]
        for score in ready.plan.scores
    }


def centres_of(ready: Prepared, losses: PartialSums) -> tuple[dict[str, Centre], dict[str, np.ndarray]]:
    """What the third pass measures influences from, and the influences of training subjects apart."""
    centres, apart = {}, {}
    for name, models in _available(ready, losses).items():
        if not models:
            continue
        mean = np.stack([losses.sums[f"loss|{model}|{name}"] for model in models], axis=1)  # (m, M, q)
        xi = None
        if ready.fitted is not None or (ready.plan.fitted is not None and ready.plan.fitted.has_influence):
            xi = np.stack([_influence(ready, losses, model, name, mean) for model in models], axis=2)
        centres[name] = Centre(models, mean, xi if ready.in_sample else None)
        if xi is not None and not ready.in_sample:
            apart[name] = xi
    return centres, apart


def _influence(ready: Prepared, losses: PartialSums, model: str, score: str, mean: np.ndarray) -> np.ndarray:
    """What a subject of unit weight with each outcome moves through the estimate of C, (J, m, q).

    Of an estimate that was made before, or given covariates, what each of its training subjects moves.
    """
    m, q = mean.shape[0], mean.shape[2]
    if ready.plan.fitted is not None:
        return ready.plan.fitted.influence(losses.sums[f"A|0|{model}|{score}"], m)
    assert ready.fitted is not None
    km, used = ready.fitted.estimators_[0], ready.fitted.subjects_[0]
    counts = ready.counts if ready.trained is None else ready.trained.follow_up
    table = km.event_table_
    A = np.zeros((len(table), m, q))
    for i in range(len(km.distributions_)):
        found = losses.sums.get(f"A|{i}|{model}|{score}")
        if found is not None:
            A[(table["stratum"] == i) & (table["sf"] > 0)] = np.moveaxis(found, 0, 1)
    moved = km.influence(A.reshape(len(table), m * q)).reshape(-1, m, q)
    xi = np.zeros((ready.training()[0] if ready.before else len(counts.time), m, q))
    weight = np.ones(1) if ready.before else counts.weight[used]
    xi[used] = moved / np.where(weight > 0, weight, 1.0)[:, None, None]
    return xi


def means_of(
    ready: Prepared, centres: dict[str, Centre], apart: dict[str, np.ndarray], influences: PartialSums
) -> dict[tuple[int, str, str], Estimate]:
    """Means by subset number, model and score name, as those of a comparison in memory."""
    if ready.plan.columns.groups is not None:
        return _grouped_means(ready, centres, apart, influences)
    values: dict[tuple[int, str, str], Estimate] = {}
    n_train, repeat = ready.training()
    for name, centre in centres.items():
        reference = centre.models.index(ready.reference) if ready.reference in centre.models else None
        for s in range(len(ready.plan.subsets)):
            kinds = ("single", "pair", "product", *(("mixed",) if reference is not None else ()))
            g = _subjects(ready, s)
            factor = np.sqrt(g / (g - 1)) if g > 1 else np.nan
            sums = {kind: influences.sums[f"{kind}|{s}|{name}"] * _scale(kind, factor) for kind in kinds}
            if name in apart:
                for kind, more in power_sums(apart[name][:, s], reference, repeat).items():
                    sums[kind] = sums[kind] + more
            size = g + (n_train if name in apart else 0)
            moments = Moments(centre.models, centre.mean[s], sums, size, reference)
            for a, model in enumerate(centre.models):
                values[s, model, name] = moments.mean(a)
    return values


def _scale(kind: str, factor: float) -> Any:
    """What the sums of powers of influences are multiplied by, where influences are by ``factor``."""
    if kind == "product":
        return factor**2
    if kind == "mixed":
        return (factor ** np.add.outer(np.arange(7), np.arange(7)))[:, :, None, None]
    return (factor ** np.array([2, 3, 4, 6]))[:, None, None]


def _subjects(ready: Prepared, s: int) -> int:
    """How many subjects contribute to means of a subset: all of them where they move the estimate of C."""
    return int(ready.counts.positive.sum()) if ready.in_sample else count_of(ready, s)


def _grouped_means(
    ready: Prepared, centres: dict[str, Centre], apart: dict[str, np.ndarray], influences: PartialSums
) -> dict[tuple[int, str, str], Estimate]:
    """Means with the influence of each group."""
    table, start = influences.keyed["psi"].values, 0
    values: dict[tuple[int, str, str], Estimate] = {}
    for name, centre in centres.items():
        m, M, q = centre.mean.shape
        for s in range(m):
            psi = table[:, start : start + M * q].reshape(-1, M, q)
            start += M * q
            if not ready.in_sample:  # groups without a subject of the subset do not count
                psi = psi[_present(ready, s)]
            g = len(psi)
            psi = psi * (np.sqrt(g / (g - 1)) if g > 1 else np.nan)
            if name in apart:
                more, repeat = apart[name][:, s], ready.training()[1]
                more = more if repeat is None else np.repeat(more, repeat.astype(np.intp), axis=0)
                psi = np.concatenate([psi, more])
            for a, model in enumerate(centre.models):
                values[s, model, name] = Estimate(centre.mean[s, a], psi[:, a])
    return values


def _present(ready: Prepared, s: int) -> np.ndarray:
    """Which groups have subjects of a subset."""
    by = ready.plan.subsets[s][0]
    if by:
        labels, present = ready.counted.by[f"groups by {by}"].keys
        present = present[labels.astype(str) == ready.plan.subsets[s][1]]
    else:
        present = ready.counted.by["last"].keys[0]
    return np.isin(ready.counted.by["groups"].keys[0], present)
