"""Comparisons of forecasts in a table that is read in batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, cast

import numpy as np

from censcore.distributions import Distribution
from censcore.distributions.survival_matrix import settled
from censcore.estimators import Censoring, KaplanMeier
from censcore.evaluation.case_scores import DEFAULT_SCORES, Case, named_scores
from censcore.evaluation.checks import EXPECTED, check_reference_name, check_units
from censcore.evaluation.cross_validation import Comparing
from censcore.evaluation.forecast_columns import column_forecasts
from censcore.evaluation.inference import MINIMUM_EVENTS, Estimate
from censcore.evaluation.losses import Losses, Means
from censcore.evaluation.resolved_censoring import ResolvedCensoring, describe
from censcore.evaluation.streaming.batches import Batch, FrameBatch, batches_of, check_columns, column_names
from censcore.evaluation.streaming.counts import Counts, Followed, horizon_of
from censcore.evaluation.streaming.outcome_table import OutcomeTable
from censcore.evaluation.streaming.partial_sums import PartialSums
from censcore.evaluation.streaming.passes import Centre, Counting, Influences, LossSums
from censcore.evaluation.streaming.plan import Columns, Curve, Plan, rows_of
from censcore.evaluation.streaming.runners import Runner, cluster
from censcore.evaluation.streaming.streamed_comparison import CountedSubset, StreamedComparison
from censcore.evaluation.streaming.summed_estimates import Moments, power_sums
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError
from censcore.outcomes import as_outcome

__all__ = ["compare_table", "prepare", "taking_tables"]

P = ParamSpec("P")
KAPLAN_MEIER = "kaplan-meier"
HEAD = 1000  # rows from which the times of survival matrices are learned
TAKEN = (
    "forecasts", "y", "censoring", "train", "scores", "times", "levels", "reference", "horizon", "by",
    "sample_weight", "groups", "confidence", "discrimination", "time_unit", "seed", "progress", "n_jobs",
    "store", "refits",
)  # fmt: skip


def taking_tables(compare: Comparing[P]) -> Comparing[P]:
    """``compare`` that also takes an :class:`~censcore.OutcomeTable` in place of the outcome."""

    @wraps(compare)
    def either(*args: Any, **options: Any) -> Any:
        if not isinstance(options.get("y", args[1] if len(args) > 1 else None), OutcomeTable):
            return compare(*args, **options)
        bound = signature(compare).bind(*args, **options)
        defaults = {name: p.default for name, p in signature(compare).parameters.items()}
        given = {n: v for n, v in bound.arguments.items() if n in TAKEN or not _same(v, defaults[n])}
        other = [name for name in given if name not in TAKEN]
        if other:
            raise InvalidInputError(
                f"{', '.join(other)}: not available for a table that is read in batches. Read the table into "
                "memory, and pass its outcome in place of OutcomeTable."
            )
        return compare_table(**{name: value for name, value in given.items() if name != "refits"})

    return cast(Comparing[P], either)


def _same(value: Any, default: Any) -> bool:
    return value is default or (np.isscalar(value) and bool(value == default))


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that is ready to be scored.

    ``fitted`` is the estimator of the censoring distribution, None where it is known; ``trained`` are the
    counts of its subjects, None where these are the scored ones.
    """

    plan: Plan
    batches: list[Batch]
    counts: Counts
    counted: PartialSums
    fitted: Censoring | None
    trained: Counts | None
    description: str
    reference: str | None
    notes: list[str]

    @property
    def in_sample(self) -> bool:
        """Whether the censoring distribution was fitted to the scored subjects."""
        return self.fitted is not None and self.trained is None


def compare_table(
    forecasts: Any,
    y: OutcomeTable,
    censoring: Any = None,
    *,
    train: Any = None,
    scores: Any = DEFAULT_SCORES,
    times: Any = None,
    levels: Any = None,
    reference: Any = KAPLAN_MEIER,
    horizon: float | str = "auto",
    by: Any = None,
    sample_weight: str | None = None,
    groups: str | None = None,
    confidence: float = 0.95,
    discrimination: bool = True,
    time_unit: str = "",
    seed: int = 0,
    progress: bool = False,
    n_jobs: int | None = None,
    store: Any = None,
) -> StreamedComparison:
    """Compare forecasts of the subjects in a table; see :func:`censcore.compare`."""
    with cluster(y.dask) as client:
        runner = Runner(n_jobs, client, None if store is None else Path(store), progress)
        ready = prepare(
            runner, forecasts, y, censoring, train=train, scores=scores, times=times, levels=levels,
            reference=reference, horizon=horizon, by=by, sample_weight=sample_weight, groups=groups,
        )  # fmt: skip
        losses = runner.total(LossSums(ready.plan), ready.batches, "scoring")
        centres, apart = _centres(ready, losses)
        outcomes = _strata_numbers(ready.counts, ready.plan), ready.counts.time
        task = Influences(ready.plan, centres, ready.reference, outcomes)
        influences = runner.total(task, ready.batches, "standard errors")
    means = _means(ready, centres, apart, influences)
    return _result(ready, losses, means, confidence, discrimination, time_unit, seed)


# ---- what is decided before scoring ----------------------------------------------------------------------


def prepare(
    runner: Runner,
    forecasts: Any,
    y: OutcomeTable,
    censoring: Any,
    *,
    train: Any = None,
    scores: Any = DEFAULT_SCORES,
    times: Any = None,
    levels: Any = None,
    reference: Any = None,
    horizon: float | str = "auto",
    by: Any = None,
    sample_weight: str | None = None,
    groups: str | None = None,
) -> Prepared:
    """Count the outcomes, fit the censoring distribution, and decide on the horizon, times and levels."""
    estimator, given = _censoring(censoring)
    stratify = None if estimator is None else estimator.estimator.stratify
    columns = Columns(
        y.time, y.event, y.censoring_time, _name(sample_weight, "sample_weight"), _name(groups, "groups"),
        _names(by), _name(stratify, "stratify"),
    )  # fmt: skip
    batches = batches_of(y.data, y.rows)
    if not batches:
        raise InvalidInputError("The table has no rows.")
    there = column_names(batches)
    check_columns(columns.all, there, "the table")
    models = _forecasts(forecasts, there, columns)
    counted = runner.total(Counting(columns, y.rows), batches, "counting")
    if "outcomes" not in counted.keyed:
        raise InvalidInputError("The table has no rows.")
    counts = Counts.of(counted.keyed["outcomes"], "the table")
    trained = None if train is None else _train_counts(runner, train, columns, y.rows)
    notes = [] if trained is None else _notes_on_training(counts, trained)
    _check_censoring(estimator, given, counts, columns)
    fitted = None if estimator is None else _fit(estimator, counts if trained is None else trained, stratify)
    curves: list[Any] = [given] if fitted is None and given is not None else []
    curves = curves if fitted is None else list(fitted.estimators_[0].distributions_)
    notes += check_reference_name(models, reference, KAPLAN_MEIER, trained)
    reference = _with_reference(models, reference, trained, notes)
    end = horizon_of(horizon, curves, _samples(counts, counted, trained, fitted), notes)
    sample = counts if trained is None else trained
    whose = "scored events" if trained is None else "training events"
    head = _head(models, batches[0], columns, sample.events(), whose)
    at, alpha = _places(head, counts, trained, end, times, levels)
    strata = np.zeros(1) if fitted is None else fitted.estimators_[0].strata_
    plan = Plan(
        columns, y.rows, models, named_scores(scores), end, at, alpha,
        strata if stratify is not None else np.zeros(1), [], given,
        _subsets(counted, counts, columns), sample.events(),
        whose, _edges(counts, end),
    )  # fmt: skip
    if fitted is not None:
        plan = replace(plan, curves=_curves(fitted, counts, plan))
    return Prepared(
        plan, batches, counts, counted, fitted, trained,
        _description(estimator, given, trained), reference, notes,
    )  # fmt: skip


def _name(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidTypeError(
        f"{what}: got {type(value).__name__}, expected the name of a column, since the outcome is in a table."
    )


def _names(by: Any) -> tuple[str, ...]:
    if by is None:
        return ()
    names = [by] if isinstance(by, str) else list(by)
    return tuple(str(_name(name, "by")) for name in names)


def _censoring(censoring: Any) -> tuple[Censoring | None, Distribution | None]:
    """The estimator of the censoring distribution, or the distribution itself; neither where it is known."""
    if censoring is None:
        return None, None
    if isinstance(censoring, Distribution):
        if len(censoring) > 1 or censoring.k > 1 or censoring.estimated_from is not None:
            raise InvalidInputError(
                "censoring: got a distribution for given subjects, or an estimate; for a table read in "
                "batches expected an estimator, Censoring(KaplanMeier()), with train= where it is fitted to "
                "others, or one known distribution for all subjects."
            )
        return None, censoring
    estimator = censoring if isinstance(censoring, Censoring) else Censoring(censoring)
    if not isinstance(estimator.estimator, KaplanMeier) or estimator.cv is not None:
        raise InvalidInputError(
            f"censoring: got {describe(estimator)}{', out of fold' if estimator.cv is not None else ''}; "
            "for a table read in batches expected Censoring(KaplanMeier()), pooled or with stratify=, whose "
            " fit and influence function are sums over subjects. Others are compared in memory."
        )
    return estimator, None


def _forecasts(forecasts: Any, there: list[str], columns: Columns) -> dict[str, Any]:
    """Functions of the rows of a batch, and distributions that serve all subjects, by name."""
    if isinstance(forecasts, str) and forecasts == "columns":
        return dict(column_forecasts(there, columns.all))
    if isinstance(forecasts, list | tuple) and all(isinstance(name, str) for name in forecasts):
        forecasts = {name: name for name in forecasts}
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            f"forecasts: got {type(forecasts).__name__}; for a table expected 'columns' (all columns named "
            "MODEL__KIND@NUMBER), a list of such models, or a dictionary of functions of rows, such "
            "as {'weibull': lambda rows: Weibull(1.5, rows['scale'])}."
        )
    found: dict[str, Any] = {}
    for name, forecast in forecasts.items():
        if isinstance(forecast, str):
            of_columns = column_forecasts(there, columns.all)
            if forecast not in of_columns:
                raise InvalidInputError(
                    f"Forecast {name!r}: there is no model {forecast!r} among the columns: "
                    f"{', '.join(of_columns)}."
                )
            found[str(name)] = of_columns[forecast]
        elif callable(forecast) or (isinstance(forecast, Distribution) and len(forecast) == 1):
            found[str(name)] = forecast
        else:
            raise InvalidTypeError(
                f"Forecast {name!r}: got {type(forecast).__name__}, expected a function of the rows of a "
                "batch, the name of a model in the columns, or one distribution for all subjects."
            )
    return found


def _train_counts(runner: Runner, train: Any, columns: Columns, rows: int) -> Counts:
    """The outcomes of the training subjects, of a table or of a pair (X, y)."""
    if isinstance(train, OutcomeTable):
        named = Columns(train.time, train.event, stratify=columns.stratify)
        batches = batches_of(train.data, train.rows)
        check_columns(named.all, column_names(batches), "train")
        counted = runner.total(Counting(named, train.rows), batches, "counting training subjects")
    else:
        counted = Counting(replace(Columns("time", "event"), stratify=columns.stratify), rows)(
            FrameBatch(_frame(train, columns.stratify))
        )
    return Counts.of(counted.keyed["outcomes"], "train")


def _frame(train: Any, stratify: str | None) -> Any:
    import pandas as pd

    from censcore._arrays import to_numpy
    from censcore.estimators.covariates import column_of

    subjects = Subjects.of(train)
    y = as_outcome(subjects.y)
    frame = pd.DataFrame({"time": to_numpy(y.time), "event": to_numpy(y.event)})
    return frame if stratify is None else frame.assign(**{stratify: column_of(subjects.X, stratify)})


def _notes_on_training(counts: Counts, trained: Counts) -> list[str]:
    return [
        *check_units(counts.typical(), Subjects(None, trained.typical())),
        "Training subjects count as others than those scored: a table read in batches is not searched for "
        " subjects of both.",
    ]


def _check_censoring(
    estimator: Censoring | None, given: Distribution | None, counts: Counts, columns: Columns
) -> None:
    if estimator is None and given is None and columns.censoring_time is None and not counts.event.all():
        raise MissingCensoringError(
            f"{int(counts.rows[~counts.event].sum())} of {counts.n} subjects are censored, and the censoring "
            "distribution is missing. Pass censoring=Censoring(KaplanMeier()), or a distribution."
        )


def _fit(estimator: Censoring, counts: Counts, stratify: str | None) -> Censoring:
    subjects = counts.subjects(stratify)
    return Censoring(KaplanMeier(stratify=stratify)).fit(subjects.X, subjects.y, subjects.weight)


def _with_reference(
    models: dict[str, Any], reference: Any, trained: Counts | None, notes: list[str]
) -> str | None:
    """Put the reference among the forecasts and give its name; None where there is none."""
    if reference is None or (isinstance(reference, str) and reference in models):
        return reference
    if isinstance(reference, Distribution) and len(reference) == 1:
        models["reference"] = reference
        return "reference"
    if not isinstance(reference, str) or reference != KAPLAN_MEIER:
        raise InvalidInputError(
            f"reference: got {reference!r}, expected 'kaplan-meier', None, one distribution for all, "
            f"or one of the forecasts: {', '.join(models)}."
        )
    if trained is None:
        notes.append("No skill: the reference is fitted on train=(X_train, y_train), which is missing.")
        return None
    subjects = trained.subjects(None)
    models[KAPLAN_MEIER] = KaplanMeier().fit(None, subjects.y, subjects.weight).predict_distribution()
    return KAPLAN_MEIER


def _samples(
    counts: Counts, counted: PartialSums, trained: Counts | None, fitted: Censoring | None
) -> list[Followed]:
    """How long the scored subjects, their groups, and those that C was estimated from were followed."""
    samples = [counts.followed()]
    if "last" in counted.keyed:
        last = counted.keyed["last"].values[:, 0]
        samples.append(Followed.of(last, np.ones(len(last))))
    return samples if trained is None or fitted is None else [*samples, trained.followed()]


def _head(
    models: dict[str, Any], batch: Batch, columns: Columns, events: tuple[np.ndarray, np.ndarray], whose: str
) -> dict[str, Distribution]:
    """The forecasts of the first subjects, which tell the times of survival matrices."""
    from censcore.estimators import as_forecast

    rows = next(rows_of(batch, columns, None, HEAD))
    found = {}
    for name, forecast in models.items():
        F = (
            forecast
            if isinstance(forecast, Distribution)
            else as_forecast(forecast(rows.frame), n=len(rows.y))
        )
        found[name] = settled(F, events[0], whose, events[1])
    return found


def _places(
    head: dict[str, Distribution], counts: Counts, trained: Counts | None, end: float, times: Any, levels: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Evaluation times and levels."""
    from censcore.evaluation.compare import make_cases

    train = None if trained is None else trained.subjects(None)
    known = next(iter(head.values()))  # any distribution: nothing is scored here
    cases = make_cases(head, counts.subjects(None), known, end, times, levels, train)
    case = next(iter(cases.values()))
    return case.times, case.levels


def _subsets(counted: PartialSums, counts: Counts, columns: Columns) -> list[tuple[str, str, float]]:
    """All subjects, and every subgroup with subjects of positive weight, with their total weight."""
    found = [("", "all", float(counts.weight.sum()))]
    for by in columns.by:
        keyed = counted.keyed[f"by {by}"]
        for label, weight in zip(keyed.keys[0], keyed.values[:, 2], strict=True):
            if weight > 0:
                found.append((by, str(label), float(weight)))
    return found


def _edges(counts: Counts, end: float) -> np.ndarray:
    """The cells of time of all subjects, see ``Case.cells``."""
    nothing: Any = None
    return Case(counts.subjects(None).y, nothing, nothing, end, np.zeros(0), np.zeros(0)).cells


def _curves(fitted: Censoring, counts: Counts, plan: Plan) -> list[Curve]:
    km = fitted.estimators_[0]
    table, number = km.event_table_, _strata_numbers(counts, plan)
    curves = []
    for i, distribution in enumerate(km.distributions_):
        jumps = table["time"][(table["stratum"] == i) & (table["sf"] > 0)]
        here = number == i
        some = replace(counts, **{name: getattr(counts, name)[here] for name in vars(counts)})
        edges = _edges(some, plan.horizon) if here.any() else np.zeros(0)
        curves.append(Curve(distribution, jumps, edges))
    return curves


def _strata_numbers(counts: Counts, plan: Plan) -> np.ndarray:
    if plan.columns.stratify is None:
        return np.zeros(len(counts.time), dtype=np.intp)
    number = np.minimum(np.searchsorted(plan.strata, counts.stratum), len(plan.strata) - 1)
    unknown = np.unique(counts.stratum[plan.strata[number] != counts.stratum])
    if len(unknown):
        raise InvalidInputError(
            f"Column {plan.columns.stratify!r}: got values that were not seen in fitting, "
            f"{unknown[:5].tolist()}; expected one of {plan.strata[:10].tolist()}."
        )
    return number


def _description(estimator: Censoring | None, given: Distribution | None, trained: Counts | None) -> str:
    if given is not None:
        return f"given: {type(given).__name__}, taken as known"
    if estimator is None:
        return "known: the censoring times are given"
    whom = "scored" if trained is None else "training"
    return f"{describe(estimator)}, fitted to the {whom} subjects"


# ---- from sums to means ----------------------------------------------------------------------------------


def _available(ready: Prepared, losses: PartialSums) -> dict[str, list[str]]:
    """The models that have each score in every batch."""
    models = ready.plan.forecasts
    return {
        score.name: [model for model in models if f"{model}|{score.name}" not in losses.unavailable]
        for score in ready.plan.scores
    }


def _centres(ready: Prepared, losses: PartialSums) -> tuple[dict[str, Centre], dict[str, np.ndarray]]:
    """What the third pass measures influences from, and the influences of training subjects apart."""
    centres, apart = {}, {}
    for name, models in _available(ready, losses).items():
        if not models:
            continue
        mean = np.stack([losses.sums[f"loss|{model}|{name}"] for model in models], axis=1)  # (m, M, q)
        xi = None
        if ready.fitted is not None:
            xi = np.stack([_influence(ready, losses, model, name, mean) for model in models], axis=2)
        centres[name] = Centre(models, mean, xi if ready.in_sample else None)
        if xi is not None and not ready.in_sample:
            apart[name] = xi
    return centres, apart


def _influence(ready: Prepared, losses: PartialSums, model: str, score: str, mean: np.ndarray) -> np.ndarray:
    """What a subject of unit weight with each outcome moves through the estimate of C, (J, m, q)."""
    assert ready.fitted is not None
    km, used = ready.fitted.estimators_[0], ready.fitted.subjects_[0]
    counts = ready.counts if ready.trained is None else ready.trained
    m, q = mean.shape[0], mean.shape[2]
    table = km.event_table_
    A = np.zeros((len(table), m, q))
    for i in range(len(km.distributions_)):
        found = losses.sums.get(f"A|{i}|{model}|{score}")
        if found is not None:
            A[(table["stratum"] == i) & (table["sf"] > 0)] = np.moveaxis(found, 0, 1)
    xi = np.zeros((len(counts.time), m, q))
    weight = counts.weight[used]
    moved = km.influence(A.reshape(len(table), m * q)).reshape(-1, m, q)
    xi[used] = moved / np.where(weight > 0, weight, 1.0)[:, None, None]
    return xi


def _means(
    ready: Prepared, centres: dict[str, Centre], apart: dict[str, np.ndarray], influences: PartialSums
) -> dict[tuple[int, str, str], Estimate]:
    if ready.plan.columns.groups is not None:
        return _grouped_means(ready, centres, apart, influences)
    values: dict[tuple[int, str, str], Estimate] = {}
    for name, centre in centres.items():
        reference = centre.models.index(ready.reference) if ready.reference in centre.models else None
        for s in range(len(ready.plan.subsets)):
            kinds = ("single", "pair", "product", *(("mixed",) if reference is not None else ()))
            g = _subjects(ready, s)
            factor = np.sqrt(g / (g - 1)) if g > 1 else np.nan
            sums = {kind: influences.sums[f"{kind}|{s}|{name}"] * _scale(kind, factor) for kind in kinds}
            if name in apart:
                repeat = ready.trained.rows if ready.trained is not None else None
                for kind, more in power_sums(apart[name][:, s], reference, repeat).items():
                    sums[kind] = sums[kind] + more
            size = g + (ready.trained.n if ready.trained is not None and name in apart else 0)
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
    return ready.counts.n if ready.in_sample else _count(ready, s)


def _count(ready: Prepared, s: int) -> int:
    by, label, _ = ready.plan.subsets[s]
    if not by:
        return int(ready.counts.positive.sum())
    keyed = ready.counted.keyed[f"by {by}"]
    return int(keyed.values[keyed.keys[0].astype(str) == label, 1].sum())


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
            if name in apart and ready.trained is not None:
                more = np.repeat(apart[name][:, s], ready.trained.rows.astype(np.intp), axis=0)
                psi = np.concatenate([psi, more])
            for a, model in enumerate(centre.models):
                values[s, model, name] = Estimate(centre.mean[s, a], psi[:, a])
    return values


def _present(ready: Prepared, s: int) -> np.ndarray:
    """Which groups have subjects of a subset."""
    by = ready.plan.subsets[s][0]
    if by:
        labels, present = ready.counted.keyed[f"groups by {by}"].keys
        present = present[labels.astype(str) == ready.plan.subsets[s][1]]
    else:
        present = ready.counted.keyed["last"].keys[0]
    return np.isin(ready.counted.keyed["groups"].keys[0], present)


def _result(
    ready: Prepared,
    losses: PartialSums,
    values: dict[tuple[int, str, str], Estimate],
    confidence: float,
    discrimination: bool,
    time_unit: str,
    seed: int,
) -> StreamedComparison:
    plan, counts = ready.plan, ready.counts
    effective, weighted = _effective(ready, losses)
    unavailable = {cast(tuple[str, str], tuple(k.split("|", 1))): v for k, v in losses.unavailable.items()}
    of_losses = Losses({}, unavailable, plan.scores)
    subsets = [
        CountedSubset(by, label, np.ones(1), subjects=_count(ready, s))
        for s, (by, label, _) in enumerate(plan.subsets)
    ]
    C: Any = plan.given or (plan.curves[0].distribution if plan.curves else None)
    resolved = ResolvedCensoring(C, ready.description, ready.fitted is not None, ready.in_sample)
    notes = [*ready.notes, *_notes(ready, losses, effective[0, 0], discrimination), *of_losses.notes]
    return StreamedComparison(
        scores=plan.scores, losses=of_losses, means=Means(values, _method(ready)), cases={},
        subsets=list(subsets), resolved_censoring=resolved, X=None, groups=None, train_groups=None, refits=0,
        reference=ready.reference, confidence=confidence, discrimination=False, seed=seed, notes=notes,
        time_unit=str(time_unit or ""), plan=plan, counts=counts, effective=effective, weighted=weighted,
        infinite={
            (model, score.name): losses.sums[f"infinite|{model}|{score.name}"]
            for score in plan.scores for model in plan.forecasts
            if f"infinite|{model}|{score.name}" in losses.sums
        },
        n_groups=None if "groups" not in ready.counted.keyed else len(ready.counted.keyed["groups"].values),
    )  # fmt: skip


def _method(ready: Prepared) -> str:
    if ready.fitted is not None:
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
