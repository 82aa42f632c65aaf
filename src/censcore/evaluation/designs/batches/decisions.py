"""What is decided before a table is scored: the censoring distribution, the horizon, times and subsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore.distributions import Distribution
from censcore.distributions.survival_matrix import settled
from censcore.estimators import Censoring, KaplanMeier
from censcore.evaluation.designs.batches.counts import Counts
from censcore.evaluation.designs.batches.fitted_censoring import estimator_of, regression_of
from censcore.evaluation.designs.batches.outcome_table import OutcomeTable
from censcore.evaluation.designs.batches.partial_sums import PartialSums
from censcore.evaluation.designs.batches.passes import Counting, Support
from censcore.evaluation.designs.batches.runners import Runner
from censcore.evaluation.designs.batches.table_plan import Columns, Curve, Plan, rows_of
from censcore.evaluation.inference.resolved_censoring import describe
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES, named_scores
from censcore.evaluation.plan.checks import check_units
from censcore.evaluation.plan.delayed_entry import note_on_entry
from censcore.evaluation.plan.forecast_columns import column_forecasts
from censcore.evaluation.plan.horizon import FollowUp, reach_of, settle_horizon
from censcore.evaluation.plan.reference import KAPLAN_MEIER, check_reference_name
from censcore.evaluation.plan.times_and_levels import times_and_levels
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError
from censcore.tables import Batch, FrameBatch, batches_of, check_columns, column_names

__all__ = ["Prepared", "count_of", "prepare", "strata_numbers"]

HEAD = 1000  # rows from which the times of survival matrices are learned


NOT_SEARCHED_FOR = (
    "The subjects that the censoring distribution was fitted to before count as others than those scored: a "
    "table read in batches is not searched for them. If they are the subjects of the table, pass the "
    "estimator without fitting it."
)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A table that is ready to be scored.

    ``fitted`` is the estimator of the censoring distribution, None where it is known or given covariates
    (``plan.fitted``); ``before`` says that it was fitted before. ``trained`` are the counts of training
    subjects, None where there are none.
    ``ends`` are the last times that all censoring distributions given covariates reach, see ``Support``.
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
    before: bool = False
    ends: np.ndarray | None = None

    @property
    def in_sample(self) -> bool:
        """Whether the censoring distribution was fitted to the scored subjects."""
        return self.fitted is not None and self.trained is None and not self.before

    def training(self) -> tuple[int, np.ndarray | None]:
        """How many subjects C was fitted to apart, and how many each of their influences stands for."""
        if self.plan.fitted is not None:
            return self.plan.fitted.n_train, None
        if self.before and self.fitted is not None:
            return len(self.fitted.trained_on_), None
        return (0, None) if self.trained is None else (self.trained.n, self.trained.rows)


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
    estimator, given = estimator_of(censoring)
    before = train is None and hasattr(estimator, "estimators_")
    regression = regression_of(estimator, before, train)
    stratify = None if estimator is None or regression is not None else estimator.estimator.stratify
    columns = Columns(
        y.time, y.event, y.censoring_time, _name(sample_weight, "sample_weight"), _name(groups, "groups"),
        _names(by), _name(stratify, "stratify"), y.entry,
    )  # fmt: skip
    batches = batches_of(y.data, y.rows)
    if not batches:
        raise InvalidInputError("data: got a table without rows, expected at least one subject.")
    there = column_names(batches)
    check_columns([*columns.all, *(() if regression is None else regression.columns)], there, "the table")
    models = _forecasts(forecasts, there, columns)
    counted = runner.total(Counting(columns, y.rows), batches, "counting")
    if "outcomes" not in counted.keyed:
        raise InvalidInputError("data: got a table without rows, expected at least one subject.")
    counts = Counts.of(counted.keyed["outcomes"], "the table")
    trained = None if train is None else _train_counts(runner, train, columns, y.rows)
    notes = [] if trained is None else _notes_on_training(counts, trained)
    notes += [NOT_SEARCHED_FOR] if before else []
    _check_censoring(estimator, given, counts, columns)
    fitted = None
    if estimator is not None and regression is None:
        fitted = estimator if before else _fit(counts if trained is None else trained, stratify)
    curves: list[Any] = [given] if fitted is None and given is not None else []
    curves = curves if fitted is None else list(fitted.estimators_[0].distributions_)
    reach, ends = reach_of(curves), None
    if regression is not None:
        support = runner.total(Support(columns, y.rows, regression), batches, "follow-up")
        ends = -support.keyed["ends"].values[0]
        reach = float(ends[1])
        notes += [] if regression.has_influence else [regression.taken_as_known]
    notes += check_reference_name(models, reference, KAPLAN_MEIER, trained)
    reference = _with_reference(models, reference, trained, notes)
    estimated = fitted is not None or regression is not None
    end = settle_horizon(horizon, reach, _samples(counts, counted, trained if estimated else None), notes)
    if counts.late and counts.entry is not None:
        notes.append(note_on_entry(counts.entry, counts.rows, end))
    sample = counts if trained is None else trained
    whose = "scored events" if trained is None else "training events"
    head = _head(models, batches[0], columns, sample.events(), whose)
    at, alpha = _places(head, counts, trained, end, times, levels)
    strata = np.zeros(1) if fitted is None else fitted.estimators_[0].strata_
    plan = Plan(
        columns, y.rows, models, named_scores(scores), end, at, alpha,
        strata if stratify is not None else np.zeros(1), [], given,
        _subsets(counted, counts, columns), sample.events(),
        whose, _edges(counts, end), regression,
    )  # fmt: skip
    if fitted is not None:
        plan = replace(plan, curves=_curves(fitted, counts, plan))
    return Prepared(
        plan, batches, counts, counted, fitted, trained,
        _description(estimator, given, trained, before), reference, notes, before, ends,
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
        named = Columns(train.time, train.event, stratify=columns.stratify, entry=train.entry)
        batches = batches_of(train.data, train.rows)
        check_columns(named.all, column_names(batches), "train")
        counted = runner.total(Counting(named, train.rows), batches, "counting training subjects")
    else:
        frame = _frame(train, columns.stratify)
        stratum, entry = (name if name in frame else None for name in ("stratum", "entry"))
        counted = Counting(Columns("time", "event", stratify=stratum, entry=entry), rows)(FrameBatch(frame))
    return Counts.of(counted.keyed["outcomes"], "train")


def _frame(train: Any, stratify: str | None) -> Any:
    import pandas as pd

    from censcore._arrays import to_numpy
    from censcore.estimators.covariates import column_of

    subjects = Sample.of(train).checked()
    y = subjects.y
    columns = {"time": to_numpy(y.time), "event": to_numpy(y.event)}
    columns |= {} if y.entry is None else {"entry": to_numpy(y.entry)}
    return pd.DataFrame(columns | ({} if stratify is None else {"stratum": column_of(subjects.X, stratify)}))


def _notes_on_training(counts: Counts, trained: Counts) -> list[str]:
    return [
        *check_units(counts.typical(), Sample(None, trained.typical())),
        "Training subjects count as others than those scored: a table read in batches is not searched for "
        "subjects of both.",
    ]


def _check_censoring(
    estimator: Censoring | None, given: Distribution | None, counts: Counts, columns: Columns
) -> None:
    if estimator is None and given is None and columns.censoring_time is None and not counts.event.all():
        raise MissingCensoringError(
            f"{int(counts.rows[~counts.event].sum())} of {counts.n} subjects are censored, and the censoring "
            "distribution is missing. Pass censoring=Censoring(KaplanMeier()), or a distribution."
        )


def _fit(counts: Counts, stratify: str | None) -> Censoring:
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


def _samples(counts: Counts, counted: PartialSums, trained: Counts | None) -> list[FollowUp]:
    """How long the scored subjects, their groups, and those that C was estimated from were followed."""
    samples = [counts.followed()]
    if "last" in counted.keyed:
        last = counted.keyed["last"].values[:, 0]
        samples.append(FollowUp.of(last))
    return samples if trained is None else [*samples, trained.followed()]


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
    return times_and_levels(head, (counts if trained is None else trained).subjects(None), end, times, levels)


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
    table, number = km.event_table_, strata_numbers(counts, plan)
    curves = []
    for i, distribution in enumerate(km.distributions_):
        jumps = table["time"][(table["stratum"] == i) & (table["sf"] > 0)]
        here = number == i
        edges = _edges(counts.take(here), plan.horizon) if here.any() else np.zeros(0)
        curves.append(Curve(distribution, jumps, edges))
    return curves


def strata_numbers(counts: Counts, plan: Plan) -> np.ndarray:
    """The number of the stratum of each distinct outcome, (J,)."""
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


def _description(
    estimator: Censoring | None, given: Distribution | None, trained: Counts | None, before: bool
) -> str:
    if given is not None:
        return f"given: {type(given).__name__}, taken as known"
    if estimator is None:
        return "known: the censoring times are given"
    if before:
        return f"{describe(estimator)}, fitted before to {len(estimator.trained_on_)} subjects"
    whom = "scored" if trained is None else "training"
    return f"{describe(estimator)}, fitted to the {whom} subjects"


def count_of(ready: Prepared, s: int) -> int:
    """How many subjects of positive weight a subset has."""
    by, label, _ = ready.plan.subsets[s]
    if not by:
        return int(ready.counts.positive.sum())
    keyed = ready.counted.keyed[f"by {by}"]
    return int(keyed.values[keyed.keys[0].astype(str) == label, 1].sum())
