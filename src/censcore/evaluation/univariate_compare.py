"""Compare forecasts of one event time per subject: the part of ``compare`` for them."""

from __future__ import annotations

from functools import partial

from censcore.evaluation.case_scores import named_scores
from censcore.evaluation.checks import (
    check_units,
    notes_on_censoring,
    notes_on_events,
    notes_on_forecasts,
    notes_on_training,
)
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.delayed_entry import from_entry_on
from censcore.evaluation.forecast_distributions import as_distributions
from censcore.evaluation.horizon import find_horizon
from censcore.evaluation.inference import shares
from censcore.evaluation.readings import reading_notes, settle_readings
from censcore.evaluation.reference import KAPLAN_MEIER, add_reference, check_reference_name, fitted_reference
from censcore.evaluation.request import Request
from censcore.evaluation.resolved_censoring import resolve_censoring
from censcore.evaluation.subjects import Subjects, common_codes, count_of, in_numpy, training_subjects
from censcore.evaluation.subsets import make_subsets
from censcore.evaluation.times_and_levels import make_cases
from censcore.outcomes import RightCensored

__all__ = ["compare_univariate"]


def compare_univariate(asked: Request, y: RightCensored) -> Comparison:
    """The comparison of forecasts of one event time, (n,)."""
    asked.check_one_time()
    y, X, n = in_numpy(y), asked.X, len(y)
    code, weight = asked.subjects(n)
    notes: list[str] = []
    trained = training_subjects(asked.train, asked.train_weight, y, weight, notes)
    notes += check_units(y, trained) + notes_on_training(X, y, trained)
    notes += notes_on_censoring(asked.censoring, X, trained)
    resolved = resolve_censoring(asked.censoring, y, X, trained, weight, code)
    distributions = as_distributions(asked.forecasts, X, y, trained)
    notes += notes_on_forecasts(distributions, y)
    notes += check_reference_name(distributions, asked.reference, KAPLAN_MEIER, trained)
    learned = None if trained is None else partial(fitted_reference, train=trained, X=X, n=n)
    reference = add_reference(distributions, asked.reference, KAPLAN_MEIER, notes, lambda F: F, learned)
    train_code = common_codes(asked.groups, asked.train_groups, resolved.n_train or count_of(trained))
    scored = Subjects(X, y, weight)
    end = find_horizon(asked.horizon, resolved, scored, notes, code, train_code)
    notes += notes_on_events(y, end, shares(weight, n), code, trained)
    distributions = settle_readings(distributions, y, None if trained is None else trained.y, end)
    chosen = named_scores(asked.scores)
    cases = make_cases(distributions, scored, resolved.distribution, end, asked.times, asked.levels, trained)
    cases = from_entry_on(cases, notes)
    subsets = make_subsets(asked.by, X, y, shares(weight, n))
    kept = asked.kept(groups=code, train_groups=train_code, reference=reference)
    comparison = Comparison.of_cases(cases, chosen, subsets, resolved, notes, **kept)
    losses, means, share = comparison.losses, comparison.means, subsets[0].weight
    comparison.notes.extend(reading_notes(cases, losses, means, share, asked.confidence, asked.seed))
    return comparison
