"""Compare forecasts of competing risks: the part of ``compare`` for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import is_torch
from censcore._validation import as_list
from censcore.distributions import CumulativeIncidence, TimeAndCause
from censcore.estimators import AalenJohansen, NotFitted, as_competing_forecast
from censcore.estimators.competing_risks_adapters import predicts_times_apart
from censcore.estimators.covariates import fit_weighted
from censcore.evaluation.checks import (
    check_units,
    notes_on_censoring,
    notes_on_events,
    notes_on_forecasts,
    notes_on_training,
)
from censcore.evaluation.competing_comparison import CompetingRisksComparison
from censcore.evaluation.competing_scores import ALL_CAUSES, ANY_CAUSE, CompetingCase, competing_scores
from censcore.evaluation.delayed_entry import from_entry_on
from censcore.evaluation.forecast_distributions import check_forecasts, with_covariates
from censcore.evaluation.horizon import find_horizon
from censcore.evaluation.inference import shares
from censcore.evaluation.reference import AALEN_JOHANSEN, KAPLAN_MEIER, add_reference, check_reference_name
from censcore.evaluation.request import Request
from censcore.evaluation.resolved_censoring import resolve_censoring
from censcore.evaluation.subjects import Subjects, common_codes, count_of, training_subjects
from censcore.evaluation.subsets import make_subsets
from censcore.evaluation.times_and_levels import LEVELS, default_levels, make_cases
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import CompetingRisks, as_competing_risks

__all__ = ["as_competing_distributions", "compare_competing"]


def compare_competing(asked: Request) -> CompetingRisksComparison:
    """The comparison of forecasts of time and cause."""
    asked.check_one_time("names")
    risks = _in_numpy(as_competing_risks(asked.y))
    X, n = asked.X, len(risks)
    code, weight = asked.subjects(n)
    notes: list[str] = []
    causes_of_training = _training_outcome(asked.train)
    followed = None if causes_of_training is None else (asked.train[0], causes_of_training.any_cause())
    trained = training_subjects(followed, asked.train_weight, risks.any_cause(), weight, notes)
    distributions = as_competing_distributions(asked.forecasts, X, n, notes)
    risks, causes_of_training = _with_names(risks, causes_of_training, distributions, asked.names)
    distributions = {name: _named(name, F, risks) for name, F in distributions.items()}
    chosen = competing_scores(asked.chosen_scores, risks.names)
    any_cause = risks.any_cause()
    notes += check_units(any_cause, trained) + notes_on_training(X, any_cause, trained)
    notes += notes_on_censoring(asked.censoring, X, trained)
    resolved = resolve_censoring(asked.censoring, any_cause, X, trained, weight, code)
    notes += notes_on_forecasts({name: F.any_cause() for name, F in distributions.items()}, any_cause)
    default = isinstance(asked.reference, str) and asked.reference == KAPLAN_MEIER
    reference = AALEN_JOHANSEN if default else asked.reference
    notes += check_reference_name(distributions, reference, AALEN_JOHANSEN, trained)
    learned = None if trained is None or causes_of_training is None else (trained, causes_of_training)
    reference = add_reference(
        distributions,
        reference,
        AALEN_JOHANSEN,
        notes,
        lambda F: _named("reference", as_competing_forecast(F), risks),
        None if learned is None else partial(_reference, learned=learned, X=X, y=risks),
    )
    train_code = common_codes(asked.groups, asked.train_groups, resolved.n_train or count_of(trained))
    scored = Subjects(X, any_cause, weight)
    end = find_horizon(asked.horizon, resolved, scored, notes, code, train_code)
    notes += _notes_on_causes(risks, end, shares(weight, n), code)
    sample = (scored, risks) if learned is None else learned
    levels = _reached_levels(sample, end) if asked.levels is None else asked.levels
    plain = make_cases(distributions, scored, resolved.distribution, end, asked.times, levels, trained)  # type: ignore[arg-type]
    cases: dict[str, Any] = {
        model: CompetingCase(
            any_cause,
            case.F,
            case.C,
            end,
            case.times,
            case.levels,
            seed=asked.seed,
            prognosis=case.prognosis,
            risks=risks,
        )
        for model, case in from_entry_on(plain, notes).items()
    }
    subsets = make_subsets(asked.by, X, any_cause, shares(weight, n))
    kept = asked.kept(groups=code, train_groups=train_code, reference=reference)
    return CompetingRisksComparison.of_cases(
        cases, chosen, subsets, resolved, notes, names=risks.names, **kept
    )


# ---- outcomes ------------------------------------------------------------------------------------------


def _in_numpy(y: CompetingRisks) -> CompetingRisks:
    return y.like(np.zeros(1)) if is_torch(y.time) else y


def _training_outcome(train: Any) -> CompetingRisks | None:
    """The outcome of the training subjects, which must have causes."""
    if train is None:
        return None
    if not isinstance(train, tuple | list) or len(train) != 2:
        raise InvalidTypeError(
            "train must be a pair (X_train, y_train), with None for no covariates; got "
            f"{type(train).__name__}. Weights of training subjects are train_weight=."
        )
    try:
        return _in_numpy(as_competing_risks(train[1]))
    except (InvalidInputError, InvalidTypeError) as error:
        raise type(error)(
            f"train: got {type(train[1]).__name__} for the outcome of the training subjects, expected "
            "CompetingRisks(time, cause) as that of the scored subjects: the reference and the default "
            f"levels are estimated from their causes. ({error})"
        ) from error


def _default_names(m: int) -> tuple[str, ...]:
    return tuple(f"cause {j + 1}" for j in range(m))


def _is_named(names: Sequence[str]) -> bool:
    return tuple(names) != _default_names(len(names))


def _with_names(
    y: CompetingRisks,
    train: CompetingRisks | None,
    forecasts: Mapping[str, TimeAndCause],
    names: Any,
) -> tuple[CompetingRisks, CompetingRisks | None]:
    """Both outcomes with the same causes: as named, or as many as any of them, or of the forecasts, has.

    A cause that did not happen to any of the scored subjects is still one.
    """
    given = [part for part in (y, train) if part is not None]
    named = [p.names for p in given if _is_named(p.names)]
    if names is not None:
        named = [tuple(map(str, as_list(names, "names", "names of causes")))]
    m = max([*(part.n_causes for part in given), *(F.n_causes for F in forecasts.values())])
    chosen = named[0] if named else _default_names(m)
    for part, what in zip(given, ("y", "train"), strict=False):
        differs = _is_named(part.names) and part.names != chosen and names is None
        if differs or part.n_causes > len(chosen):
            raise InvalidInputError(
                f"{what}: got the causes {', '.join(part.names)}, expected {', '.join(chosen)}, the same "
                "causes in the same order for scored and training subjects."
            )
    if len({*chosen, ALL_CAUSES, ANY_CAUSE}) != len(chosen) + 2:
        raise InvalidInputError(
            f"names: got {list(chosen)}, expected different names of causes, none of them {ALL_CAUSES!r} or "
            f"{ANY_CAUSE!r}, which name outcomes of a comparison."
        )

    def renamed(part: CompetingRisks) -> CompetingRisks:
        return part if part.names == chosen else part.with_names(chosen)

    return renamed(y), None if train is None else renamed(train)


# ---- forecasts -----------------------------------------------------------------------------------------


def as_competing_distributions(
    forecasts: Mapping[str, Any], X: Any, n: int, notes: list[str]
) -> dict[str, TimeAndCause]:
    """All forecasts as distributions of time and cause, in NumPy; ``notes`` gains what was repaired."""
    check_forecasts(forecasts)
    found: dict[str, TimeAndCause] = {}
    for name, forecast in forecasts.items():
        model, covariates, _ = with_covariates(forecast, X, None)
        try:
            F = as_competing_forecast(model, covariates, repair=predicts_times_apart(model))
            if len(F) not in (1, n):
                raise InvalidInputError(f"got forecasts of {len(F)} subjects, expected {n}, or one for all.")
        except (InvalidInputError, InvalidTypeError, NotFitted) as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        repaired = F.repaired if isinstance(F, CumulativeIncidence) else None
        if repaired is not None:
            notes.append(
                f"{name!r}: cumulative incidences that decrease or sum to more than 1 were replaced by "
                f"possible ones in {len(repaired.subjects)} subjects; the largest change is "
                f"{repaired.largest:.2g}."
            )
        found[str(name)] = F.like(np.zeros(1)) if is_torch(F._reference) else F
    return found


def _named(name: str, F: TimeAndCause, y: CompetingRisks) -> TimeAndCause:
    """The forecast, if its causes are those of the outcome; one without names takes them."""
    if F.n_causes != y.n_causes:
        raise InvalidInputError(
            f"Forecast {name!r}: got cumulative incidences of {F.n_causes} cause{'s' * (F.n_causes > 1)}, "
            f"expected {y.n_causes} ({', '.join(y.names)}), one for every cause of the outcome."
        )
    if F.names == y.names:
        return F
    if _is_named(F.names):
        hint = " The order differs." if set(F.names) == set(y.names) else ""
        raise InvalidInputError(
            f"Forecast {name!r}: got the causes {', '.join(F.names)}, expected {', '.join(y.names)}, as the "
            f"outcome has them.{hint} Pass names={list(y.names)} to the forecast if they mean the same."
        )
    other: TimeAndCause = F._map(lambda array: array)
    other.names = y.names
    return other


def _reference(
    estimator: Any, learned: tuple[Subjects, CompetingRisks], X: Any, y: CompetingRisks
) -> TimeAndCause:
    """The forecast of an estimator, by default Aalen-Johansen's, fitted to the training subjects."""
    subjects, outcome = learned
    model = AalenJohansen() if estimator is None else clone(estimator, safe=False)
    fitted = fit_weighted(model, subjects.X, outcome, subjects.weight)
    name = AALEN_JOHANSEN if estimator is None else "reference"
    return _named(name, as_competing_forecast(fitted, X), y)


# ---- defaults ------------------------------------------------------------------------------------------


def _reached_levels(sample: tuple[Subjects, CompetingRisks], horizon: float) -> np.ndarray:
    """Default levels that every cause reaches by the horizon, so that its quantiles are not all infinite."""
    subjects, risks = sample
    if len(np.unique(risks.causes[risks.causes > 0])) < risks.n_causes:  # a cause that nobody has
        return LEVELS[:1]
    curves = AalenJohansen().fit(None, risks, subjects.weight).predict_distribution()
    return default_levels(float(curves.cif(np.nextafter(horizon, 0.0)).min()))


def _notes_on_causes(
    y: CompetingRisks, horizon: float, weight: np.ndarray, groups: np.ndarray | None
) -> list[str]:
    """Too few events of a cause to tell forecasts of it apart."""
    return [
        f"{name}: {note}"
        for j, name in enumerate(y.names, start=1)
        for note in notes_on_events(y.cause(j), horizon, weight, groups, None)
    ]
