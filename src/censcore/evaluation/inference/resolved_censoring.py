"""The censoring distribution that a comparison uses: given or fitted, and to whom it was fitted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from censcore._arrays import to_numpy
from censcore._validation import check_instance
from censcore.distributions import Distribution, Step
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.censoring.censoring import Origin
from censcore.estimators.covariates import take_rows
from censcore.estimators.libraries.pipelines import last_estimator
from censcore.estimators.subjects import NO_PAIRS, Shared, SubjectKeys, shared_subjects
from censcore.evaluation.inference.censoring_influence import Part, has_influence, parts_of
from censcore.evaluation.measures.case import in_time
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidTypeError, MissingCensoringError
from censcore.outcomes import RightCensored
from censcore.scores.inputs.scoring_inputs import known_censoring

NONE_SHARED = Shared(NO_PAIRS)


@dataclass(frozen=True)
class Refit:
    """The estimator of a censoring distribution, to be fitted to other training subjects."""

    censoring: Censoring
    coordinate: int | None = None  #: which of several censoring times is wanted; None for all
    most: int | None = None  #: at most so many refits

    @property
    def count(self) -> int:
        """How many bootstrap samples it is fitted to."""
        refits: int = self.censoring.refits
        return refits if self.most is None else min(refits, self.most)

    def __call__(self, train: Sample, X: Any) -> Distribution:
        """The distribution of subjects with covariates X that these training subjects lead to."""
        C = train.fit(clone(self.censoring)).predict_distribution(X)
        return C if self.coordinate is None else C.marginal(self.coordinate)


@dataclass(frozen=True, eq=False)
class ResolvedCensoring:
    """The censoring distribution of the scored subjects, and how it was obtained."""

    distribution: Distribution
    description: str
    estimated: bool
    in_sample: bool = False
    parts: list[Part] = field(default_factory=list)  #: of estimators with an influence function
    refit: Refit | None = None  #: of others
    train: Sample | None = None
    scored_X: Any = None
    n_train: int = 0
    shared: Shared = NONE_SHARED  #: pairs scored subjects with the training subjects that they are
    notes: list[str] = field(default_factory=list)
    notes_on_ties: list[str] = field(default_factory=list)  #: where no labels name the training subjects

    def of_time(self, j: int) -> ResolvedCensoring:
        """The censoring distribution of event time j alone, where every event time has one."""
        C = self.distribution
        if C.k == 1:
            return self
        parts = [part for part in self.parts if part.coordinate == j]
        refit = None if self.refit is None else replace(self.refit, coordinate=j)
        return replace(self, distribution=C.marginal(j), parts=parts, refit=refit)

    def with_refits(self, most: int) -> ResolvedCensoring:
        """The same with at most so many refits."""
        return self if self.refit is None else replace(self, refit=replace(self.refit, most=most))


def resolve_censoring(
    censoring: Distribution | BaseEstimator | ResolvedCensoring | None,
    y: RightCensored,
    X: Any,
    train: Sample | None,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> ResolvedCensoring:
    """The censoring distribution of the subjects (X, y), from a distribution, an estimator or nothing.

    ``weight`` and ``groups`` are those of the scored subjects: they count where these are also the
    training subjects.
    """
    resolved = _resolved(censoring, y, X, train, weight, groups)
    return replace(resolved, distribution=in_time(resolved.distribution, y))


def _resolved(
    censoring: Any, y: RightCensored, X: Any, train: Sample | None, weight: Any, groups: Any
) -> ResolvedCensoring:
    if isinstance(censoring, ResolvedCensoring):
        return censoring
    scored = Sample(X, y, weight, groups)
    if censoring is None:
        known = known_censoring(y)
        if known is None:
            raise MissingCensoringError(
                f"{int((~to_numpy(y.event)).sum())} of {len(y)} subjects are censored, and the censoring "
                "distribution is missing. Pass censoring=Censoring(KaplanMeier()), which is fitted on train, "
                "or a distribution."
            )
        return ResolvedCensoring(known, "known: the censoring times are given", False)
    if isinstance(censoring, Distribution):
        return _given(censoring, scored, train)
    estimator = as_censoring(censoring)
    if y.k > 1 and train is not None and estimator.shared is None:
        shared = bool(y.shares_censoring and train.y.shares_censoring)  # as far as both samples show
        estimator = clone(estimator).set_params(shared=shared)
    if train is None and hasattr(estimator, "estimators_"):
        return _fitted_before(estimator.predict_distribution(X), Origin(estimator, X), scored)
    if train is None or train.same_as(y):
        if train is not None and train.groups is None:
            train = replace(train, groups=groups)
        return _in_sample(clone(estimator), scored if train is None else train)
    return _fitted_to(train, clone(estimator).set_params(cv=None), scored)


def as_censoring(censoring: Any) -> Censoring:
    """The estimator of C that was passed."""
    check_instance(censoring, "censoring")
    if not hasattr(censoring, "fit"):
        raise InvalidTypeError(
            f"censoring: got {type(censoring).__name__}, expected a censoring distribution or an estimator "
            "of it, such as Censoring(KaplanMeier())."
        )
    return censoring if isinstance(censoring, Censoring) else Censoring(censoring)


# ---- distributions that are given ----------------------------------------------------------------------


def _given(C: Distribution, scored: Sample, train: Sample | None) -> ResolvedCensoring:
    """A distribution as it is; one that was predicted by an estimator is recognised as the estimate it is."""
    origin = C.estimated_from
    n = len(scored.y)
    if origin is not None and (len(C) in (1, n) if origin.subjects is None else len(origin.subjects) == n):
        return _fitted_before(C, origin, scored)
    if isinstance(C, Step) and len(C) == 1:
        pooled = Censoring(KaplanMeier())
        if _is_curve_of(C, scored):
            return _in_sample(pooled, replace(scored, X=None))
        if train is not None and _is_curve_of(C, train):
            return _fitted_to(replace(train, X=None), pooled, replace(scored, X=None))
    return ResolvedCensoring(C, f"given: {type(C).__name__}, taken as known", estimated=False)


def _is_curve_of(C: Step, subjects: Sample) -> bool:
    """Whether C is the Kaplan-Meier curve of these subjects."""
    curve = Censoring(KaplanMeier()).fit(None, subjects.y, subjects.weight).estimators_[0].distributions_[0]
    return all(
        np.array_equal(to_numpy(a), to_numpy(b)) for a, b in zip(curve.steps(), C.steps(), strict=True)
    )


def _fitted_before(C: Distribution, origin: Origin, scored: Sample) -> ResolvedCensoring:
    """An estimate that was made before, from subjects that the scored ones may be among."""
    censoring, X, subjects = origin
    n, n_train = len(scored.y), len(censoring.trained_on_)
    X = scored.X if X is None or np.shape(X)[0] != n else X  # one for all serves any subjects
    name, fits = f"{describe(censoring)}, fitted before", [censoring]
    if subjects is None:
        shared = shared_subjects(SubjectKeys.of(X, scored.y), censoring.trained_on_)
    else:  # each distribution belongs to the training subject that its fold left out
        name, fits = f"{name} out of fold", censoring.fold_estimators_
        shared = Shared(np.column_stack([np.arange(n), subjects]), in_order=n == n_train)
    count = f"{n_train} subjects, {len(shared.pairs)} of them {'scored' if shared.certain else 'recognised'}"
    if not all(has_influence(fit) for fit in fits):
        what = f"{name} to {count}; taken as known, since it cannot be fitted again: pass train="
        notes = _notes_on_shared(shared, n, "standard errors take it as known; pass train= to account for it")
        return ResolvedCensoring(C, what, estimated=False, notes=notes)
    parts = _parts(censoring, X, n, None if subjects is None else censoring.fold_[subjects])
    return ResolvedCensoring(
        C, f"{name} to {count}", True, parts=parts, n_train=n_train, shared=shared,
        notes=_notes_on_shared(shared, n), notes_on_ties=_notes_on_ties(shared, other=False),
    )  # fmt: skip


# ---- distributions that are fitted here ----------------------------------------------------------------


def _in_sample(censoring: Censoring, subjects: Sample) -> ResolvedCensoring:
    """The scored subjects are the training subjects: one fit to all of them, or out of fold with cv."""
    n = len(subjects.y)
    C = censoring.fit_predict_distribution(subjects.X, subjects.y, subjects.weight, groups=subjects.groups)
    out_of_fold = censoring.cv is not None
    name = f"{describe(censoring)}, {'out of fold' if out_of_fold else 'fitted to the scored subjects'}"
    everyone = Shared(np.column_stack([np.arange(n)] * 2))
    resolved = ResolvedCensoring(C, name, True, True, [], None, subjects, subjects.X, n, everyone)
    return with_influence(resolved, censoring, n, censoring.fold_ if out_of_fold else None)


def _fitted_to(train: Sample, censoring: Censoring, scored: Sample) -> ResolvedCensoring:
    """A fit to training subjects, some of which may be scored as well."""
    censoring = train.fit(censoring)
    C = censoring.predict_distribution(scored.X)
    shared = shared_subjects(SubjectKeys.of(scored.X, scored.y), SubjectKeys.of(train.X, train.y))
    name = f"{describe(censoring)}, fitted to the training subjects"
    if len(shared.pairs):
        name += f", {len(shared.pairs)} of which are scored"
    resolved = ResolvedCensoring(
        C, name, True, False, [], None, train, scored.X, len(train.y), shared,
        _notes_on_shared(shared, len(scored.y)), _notes_on_ties(shared, other=True),
    )  # fmt: skip
    return with_influence(resolved, censoring, len(scored.y))


def with_influence(
    resolved: ResolvedCensoring, censoring: Censoring, n: int, fold: np.ndarray | None = None
) -> ResolvedCensoring:
    """With the influence of training subjects on n scored ones, or with refits where there is none."""
    if all(map(has_influence, [censoring] if fold is None else censoring.fold_estimators_)):
        return replace(resolved, parts=_parts(censoring, resolved.scored_X, n, fold))
    return replace(resolved, refit=Refit(clone(censoring).set_params(cv=None)))


def _parts(censoring: Censoring, X: Any, n: int, fold: np.ndarray | None = None) -> list[Part]:
    """Fitted estimators with the scored subjects that they serve, and who they were fitted to."""
    everyone = np.arange(n)
    if fold is None:
        return parts_of(censoring, X, everyone, np.arange(len(censoring.trained_on_)))
    folds = zip(censoring.fold_estimators_, censoring.fold_training_, strict=True)
    parts = []
    for number, (fit, train) in enumerate(folds):
        if len(subjects := everyone[fold == number]):
            parts += parts_of(fit, take_rows(X, subjects), subjects, train)
    return parts


def _notes_on_shared(shared: Shared, n: int, so: str = "standard errors account for it") -> list[str]:
    """Scored subjects who are among those that C was fitted to."""
    if not len(shared.pairs):
        return []
    who = (
        "The scored subjects are those that the censoring distribution was fitted to" if shared.in_order else
        f"{len(shared.pairs)} of {n} scored subjects are among those that the censoring distribution was "
        "fitted to (same covariates, time and event)"
    )  # fmt: skip
    return [f"{who}; {so}."]


def _notes_on_ties(shared: Shared, other: bool) -> list[str]:
    """That ties may hide shared subjects; ``other`` says that the caller has kept the samples apart."""
    taken = (
        "Standard errors take the two samples as independent; to name the subjects, pass groups= and "
        "train_groups= with one label per subject."
    )
    fitted_to = "among those that the censoring distribution was fitted to"
    if shared.undecided:
        return [
            f"Some scored subjects seem to be {fitted_to}, but ties make it impossible to say which. {taken}"
        ]
    if not (shared.certain or other):
        return [f"Ties hide whether scored subjects are {fitted_to}. {taken}"]
    return []


def describe(censoring: Censoring) -> str:
    """The estimator of a censoring distribution in words."""
    if getattr(censoring, "by_visit_", False):
        return f"drop-out by the number of the visit ({_described(censoring.estimator)})"
    return _described(censoring.estimator)


def _described(estimator: Any) -> str:
    last = last_estimator(estimator)
    if last is not estimator:
        return f"{type(estimator).__name__} of {type(last).__name__}"
    name = type(estimator).__name__
    if isinstance(estimator, KaplanMeier):
        by = estimator.stratify
        return "Kaplan-Meier" if by is None else f"Kaplan-Meier within strata of {by!r}"
    inner = getattr(estimator, "model", None)
    return name if inner is None else f"{name}({type(inner).__name__})"
