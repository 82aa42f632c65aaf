r"""Comparison of models by cross-validation: every model is fitted once per fold and scored on the rest.

With folds :math:`I_1,\ldots,I_K` and the model :math:`\hat F_k` (and the censoring distribution
:math:`\hat G_k`) fitted without :math:`I_k`, the mean loss and what it estimates are

.. math::
    \bar\ell=\frac1n\sum_k\sum_{i\in I_k}\ell(y_i,\hat F_k(x_i),\hat G_k(x_i)),\qquad
    R=\sum_k\frac{|I_k|}n\,\mathrm E\{\ell(Y,\hat F_k(X),G(X))\mid\hat F_k\}.

R is the expected loss of the K fitted models for new subjects. Errors are those of :math:`\bar\ell-R`: the
spread of the losses over subjects, the influence of every training subject on each :math:`\hat G_k`, and,
with repeats, that subjects train each other's models (:mod:`censcore.evaluation.refit_influence`). They do
not cover how much R would change with another sample to train on, nor that models fitted to more subjects
are better.

References
----------
.. [1] Bengio, Y. and Grandvalet, Y. (2004). No unbiased estimator of the variance of K-fold cross-validation.
   Journal of Machine Learning Research 5, 1089-1105.
.. [2] Bayle, P., Bayle, A., Janson, L. and Mackey, L. (2020). Cross-validation confidence intervals for test
   error. Advances in Neural Information Processing Systems 33.
.. [3] Bates, S., Hastie, T. and Tibshirani, R. (2024). Cross-validation: what does it estimate and how well
   does it do it? Journal of the American Statistical Association 119, 1434-1445.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, make_dataclass, replace
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, cast, overload

import numpy as np
from sklearn.base import clone

from censcore._arrays import is_torch, to_numpy
from censcore._validation import check_option
from censcore.distributions import Distribution, Independent
from censcore.estimators import AalenJohansen, Censoring, KaplanMeier
from censcore.estimators.censoring import Origin
from censcore.estimators.covariates import check_rows, check_weights, take_rows
from censcore.estimators.event_histories import event_histories
from censcore.estimators.subjects import Shared, SubjectKeys
from censcore.evaluation.case import in_time
from censcore.evaluation.censoring_influence import has_influence
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.cross_validated import CrossValidated, average
from censcore.evaluation.fold_fits import check_model
from censcore.evaluation.fold_runs import FoldRuns, out_of_fold, run_folds
from censcore.evaluation.horizon import given_horizon
from censcore.evaluation.inference import group_codes
from censcore.evaluation.intervals import TURNBULL, drop_out_estimator, followed, turnbull_for
from censcore.evaluation.joint_compare import find_joint_horizon
from censcore.evaluation.joint_scores import JointNames
from censcore.evaluation.reference import AALEN_JOHANSEN, KAPLAN_MEIER
from censcore.evaluation.resolved_censoring import Refit, ResolvedCensoring, _parts, describe
from censcore.evaluation.splits import Split, make_splits, notes_on_splits
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import CenscoreError, FoldError, InvalidInputError, InvalidTypeError
from censcore.outcomes import (
    CompetingRisks,
    IntervalCensored,
    RightCensored,
    SemiCompetingRisks,
    as_competing_risks,
    as_followed,
    as_outcome,
    is_competing,
)
from censcore.outcomes.base import Outcome
from censcore.outcomes.ended_follow_up import check_no_event_ends_follow_up
from censcore.scores.inputs import known_censoring

if TYPE_CHECKING:
    from censcore.evaluation.landmarks import LandmarkComparison

__all__ = ["Folds", "cross_validate", "cross_validating"]

P = ParamSpec("P")


class Splitter(Protocol):
    """A splitter of scikit-learn."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[tuple[Any, Any]]:
        """Pairs of training and test subjects."""


Folds = int | Splitter | Iterable[tuple[Any, Any]]
"""What ``cv`` may be."""


#: Options that only a cross-validation has, with their defaults.
OPTIONS: dict[str, Any] = {"repeats": 1, "n_jobs": None, "store": None, "on_error": "raise"}


class Comparing(Protocol[P]):
    """``compare``, for type checkers: with ``cv=`` the arguments are those of scikit-learn.

    With ``landmarks=`` the result is a comparison per landmark.
    """

    @overload
    def __call__(
        self, models: Mapping[str, Any], *data: Any, cv: Folds, **options: Any
    ) -> CrossValidated: ...

    @overload
    def __call__(  # type: ignore[overload-overlap]  # P holds landmarks too, as None
        self, forecasts: Mapping[str, Any], *data: Any, landmarks: Iterable[float], **options: Any
    ) -> LandmarkComparison: ...

    @overload
    def __call__(self, *args: P.args, **options: P.kwargs) -> Comparison: ...


def cross_validating(compare: Callable[P, Comparison]) -> Comparing[P]:
    """``compare`` that fits models fold by fold where it is called with ``cv=``.

    Arguments then have the order of scikit-learn, ``compare(models, X, y, cv=5)``, which differs from that of
    ``compare(forecasts, y, censoring)``; so they are sorted out before they are bound to names.
    """

    @wraps(compare)
    def either(*args: P.args, **options: P.kwargs) -> Comparison:
        if options.get("cv") is not None:
            if "forecasts" in options:
                options["models"] = options.pop("forecasts")
            return cross_validate(compare, *args, **options)  # type: ignore[arg-type]
        given = [name for name, default in OPTIONS.items() if not _is(options.get(name, default), default)]
        if given:
            raise InvalidInputError(
                f"{', '.join(given)}: an option of cross-validation; got no cv. Pass cv=5 and models that "
                "are not fitted yet."
            )
        return compare(*args, **options)

    return cast(Comparing[P], either)


def _is(value: Any, default: Any) -> bool:
    """Whether an option has its default; what compares entry by entry, as arrays do, has not."""
    return value is default or (isinstance(value, str | int | float | np.number) and bool(value == default))


def cross_validate(
    compare: Callable[..., Comparison],
    models: Mapping[str, Any],
    *data: Any,
    cv: Any,
    X: Any = None,
    y: Any = None,
    censoring: Any = None,
    reference: Any = KAPLAN_MEIER,
    horizon: float | str = "auto",
    by: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    seed: int = 0,
    progress: bool = False,
    repeats: int = 1,
    n_jobs: int | None = None,
    store: Any = None,
    on_error: str = "raise",
    **options: Any,
) -> CrossValidated:
    """Fit all models in all folds, and compare their forecasts of the subjects left out.

    Each repeat is a comparison by ``compare``, of out-of-fold forecasts under out-of-fold censoring
    distributions; their means and influences are averaged.
    """
    _check_options(compare, options, on_error)
    X, y, censoring = _data(data, X, y, censoring)
    y = _as_outcome(y, options.get("mask"))
    if isinstance(y, IntervalCensored):
        censoring = drop_out_estimator(censoring, y, given_horizon(horizon))
    n = len(y)
    check_rows(X, n)
    code, weight = group_codes(groups, n), None if sample_weight is None else check_weights(sample_weight, n)
    subjects = Subjects(X, y, weight)
    splits = make_splits(cv, X, y, code, repeats, seed)
    everything, reference = _with_reference(models, reference, y)
    for name, model in everything.items():
        check_model(name, model, n)
    runs = run_folds(everything, subjects, splits, n_jobs, store, on_error, progress)
    _check_any_left(runs, everything)
    notes = [*notes_on_splits(splits, n, code), *runs.notes]
    if reference is not None and reference not in runs.models:
        reference = None
    tested = np.unique(np.concatenate([split.test for split in splits]))
    layers = [[i for i, split in enumerate(splits) if split.repeat == r] for r in range(_count(splits))]
    resolved = [
        _censoring_of(censoring, subjects, [splits[i] for i in layer], tested, layer is layers[0])
        for layer in layers
    ]
    scored = subjects if len(tested) == n else subjects.take(tested)
    if len(layers) > 1 and given_horizon(horizon) is None:
        horizon = _common_horizon(resolved, scored, code, tested, options.get("names"), notes)
    labels = None if groups is None else to_numpy(groups)
    if options.get("mask") is not None:  # of several event times
        options["mask"] = to_numpy(options["mask"])[tested]
    found: list[Comparison] = []
    for layer, C in zip(layers, resolved, strict=True):
        fixed = {} if not found else _decided(found[0])
        forecasts = {name: out_of_fold(runs.of(name, layer), tested) for name in runs.models}
        found.append(
            compare(
                forecasts, scored.y, C, X=scored.X, reference=reference, seed=seed, progress=progress,
                by=_taken(by, tested, n), sample_weight=scored.weight,
                groups=None if labels is None else labels[tested],
                train_groups=labels if isinstance(C, ResolvedCensoring) else None,
                **{**options, "horizon": horizon, **fixed},
            )
        )  # fmt: skip
    return _together(found, runs, splits, tested, code, [*notes, *found[0].notes])


def _count(splits: list[Split]) -> int:
    return max(split.repeat for split in splits) + 1


def _together(
    found: list[Comparison],
    runs: FoldRuns,
    splits: list[Split],
    tested: np.ndarray,
    groups: np.ndarray | None,
    notes: list[str],
) -> CrossValidated:
    """One comparison of averages over repeats."""
    first = found[0]
    same = {field.name: getattr(first, field.name) for field in fields(first) if field.init}
    losses, means = average(found, splits)
    notes = [*notes, *first.censoring.warnings]  # one test of C beside many fits
    known = {"losses": losses, "means": means, "notes": notes}
    return _kind_of(first)(
        **{**same, **known}, splits=splits, repeats=found, tested=tested, runs=runs, all_groups=groups
    )


def _kind_of(comparison: Comparison) -> type[CrossValidated]:
    """The class of the result; a comparison of a special kind, as of joint forecasts, stays one."""
    kind = type(comparison)
    if kind is Comparison:
        return CrossValidated
    name = f"{CrossValidated.__name__}{kind.__name__}"
    return make_dataclass(name, [], bases=(CrossValidated, kind), frozen=True, eq=False, repr=False)


# ---- arguments -------------------------------------------------------------------------------------


def _check_options(compare: Callable[..., Comparison], options: dict[str, Any], on_error: str) -> None:
    check_option(on_error, "on_error", ("raise", "skip"))
    without = {"train", "train_groups", "train_weight"}
    given = [name for name in sorted(without) if options.get(name) is not None]
    if given:
        raise InvalidInputError(
            f"{', '.join(given)}: got it together with cv=, in which the other folds are the training "
            "subjects. Leave it out, or compare fitted models without cv=."
        )
    unknown = [name for name in options if name not in signature(compare).parameters]
    if unknown:
        raise TypeError(f"compare() got an unexpected keyword argument {unknown[0]!r}")
    for name in without & set(options):
        del options[name]


def _data(data: tuple[Any, ...], X: Any, y: Any, censoring: Any) -> tuple[Any, Any, Any]:
    """X, y and the censoring distribution from (X, y), (y,) with X=, or (y, censoring) with X=."""
    given = list(data)
    if len(given) > 1 and _is_outcome(given[0]) and not _is_censoring(given[1]):
        raise InvalidInputError(
            "With cv= the order is that of scikit-learn, compare(models, X, y, cv=5); got the outcome "
            f"second, and {type(given[1]).__name__} third."
        )
    covariates_first = y is not None or (len(given) > 1 and not _is_censoring(given[1]))
    if X is None and given and covariates_first:
        X = given.pop(0)
    if y is None and given:
        y = given.pop(0)
    if censoring is None and given:
        censoring = given.pop(0)
    if given or y is None:
        raise InvalidTypeError(
            "With cv= pass the covariates and the outcome of all subjects, compare(models, X, y, cv=5); got "
            f"{len(data)} positional arguments after the models."
        )
    return X, y, censoring


def _as_outcome(y: Any, mask: Any) -> Any:
    """The outcome in NumPy: of one event time, several, competing or semi-competing risks, or intervals."""
    if not isinstance(y, IntervalCensored | SemiCompetingRisks):
        y = as_competing_risks(y) if is_competing(y) else as_outcome(y)
    if isinstance(y, RightCensored) and y.k > 1:  # before any time is spent on models
        check_no_event_ends_follow_up(y, None if mask is None else to_numpy(mask))
    return y.like(np.zeros(1)) if is_torch(y._reference) else y


def _is_outcome(value: Any) -> bool:
    structured = isinstance(value, np.ndarray) and value.dtype.names is not None
    return structured or isinstance(value, Outcome)


def _is_censoring(value: Any) -> bool:
    return value is None or isinstance(value, Distribution) or hasattr(value, "fit")


def _with_reference(
    models: Mapping[str, Any],
    reference: Any,
    y: RightCensored | CompetingRisks | SemiCompetingRisks | IntervalCensored,
) -> tuple[dict[str, Any], str | None]:
    """All models, the reference among them, and its name."""
    if not isinstance(models, Mapping) or not models:
        raise InvalidTypeError(
            "models must be a dictionary of at least one model, {'cox': CoxRegression(), ...}; got "
            f"{type(models).__name__}."
        )
    everything = {str(name): model for name, model in models.items()}
    if reference is None:
        return everything, None
    if not isinstance(reference, str):
        return everything | {"reference": reference}, "reference"
    default, fitted = _default_reference(y)
    reference = default if reference == KAPLAN_MEIER else reference
    if reference not in everything:
        if reference != default:
            raise InvalidInputError(
                f"reference: got {reference!r}, expected one of the models, {', '.join(everything)}, "
                f"{default!r}, an estimator or None."
            )
        several = isinstance(y, RightCensored) and y.k > 1
        everything[reference] = kaplan_meier_curves if several else fitted
    return everything, reference


def _default_reference(y: Any) -> tuple[str, Any]:
    """The name and the estimator of the reference that learns nothing from covariates."""
    if isinstance(y, CompetingRisks):
        return AALEN_JOHANSEN, AalenJohansen()
    if isinstance(y, SemiCompetingRisks):
        return AALEN_JOHANSEN, event_histories
    if isinstance(y, IntervalCensored):
        return TURNBULL, turnbull_for(y)
    return KAPLAN_MEIER, KaplanMeier()


def kaplan_meier_curves(X: Any, y: RightCensored, X_test: Any, sample_weight: Any = None) -> Independent:
    """The reference for several event times: their Kaplan-Meier curves."""
    curves = [KaplanMeier().fit(None, y.marginal(j), sample_weight) for j in range(y.k)]
    return Independent([curve.predict_distribution() for curve in curves])


def _check_any_left(runs: FoldRuns, models: dict[str, Any]) -> None:
    if not runs.models:
        raise FoldError(f"None of the {len(models)} models could be fitted. {' '.join(runs.notes)}")


def _taken(by: Any, tested: np.ndarray, n: int) -> Any:
    """Labels of subgroups of those who are tested."""
    if by is None or len(tested) == n or isinstance(by, str):
        return by
    if isinstance(by, Mapping):
        return {name: to_numpy(labels)[tested] for name, labels in by.items()}
    if isinstance(by, list | tuple) and len(by) != n:
        return by
    return {str(getattr(by, "name", None) or "group"): to_numpy(by)[tested]}


# ---- the censoring distribution --------------------------------------------------------------------


def _check_not_fitted(C: Distribution) -> None:
    """An estimate from subjects of all folds knows the subjects that each fold is tested on."""
    if C.estimated_from is not None:
        raise InvalidInputError(
            f"censoring: got a distribution that {C.estimated_from.censoring} predicted, expected one that "
            "is known, or the estimator itself: it is then fitted to the training subjects of every fold."
        )


def _censoring_of(
    censoring: Any, subjects: Subjects, splits: list[Split], tested: np.ndarray, first: bool
) -> ResolvedCensoring | Distribution | None:
    """The censoring distributions of the tested subjects, each estimated from the other folds."""
    seen: Any = subjects.y
    if censoring is None:  # of intervals: all planned visits took place
        if isinstance(seen, IntervalCensored) or known_censoring(as_followed(seen)) is not None:
            return None
        censoring = Censoring(KaplanMeier())
    if isinstance(censoring, Distribution):
        _check_not_fitted(censoring)
        return censoring.take(tested) if len(tested) < len(subjects.y) else censoring
    if not hasattr(censoring, "fit"):
        raise InvalidTypeError(
            "censoring: got "
            f"{type(censoring).__name__}, expected an estimator such as Censoring(KaplanMeier()), which is "
            "fitted to the training subjects of every fold, or a censoring distribution."
        )
    censoring = censoring if isinstance(censoring, Censoring) else Censoring(censoring)
    subjects = replace(subjects, y=followed(subjects.y))
    shared = subjects.y.shares_censoring if censoring.shared is None else censoring.shared
    plain = clone(censoring).set_params(cv=None, shared=bool(shared))  # the same in every fold
    fits = [_fit_censoring(plain, subjects, split) for split in splits]
    forecasts = [
        in_time(fit.predict_distribution(take_rows(subjects.X, s.test)), subjects.y.take(s.test))
        for fit, s in zip(fits, splits, strict=True)
    ]
    C = out_of_fold([(s.test, D) for s, D in zip(splits, forecasts, strict=True)], tested)
    X_tested = take_rows(subjects.X, tested)
    n = len(subjects.y)
    common: dict[str, Any] = {
        "in_sample": len(tested) == n,
        "train": subjects,
        "last_time": min(float(to_numpy(subjects.y.time)[split.train].max()) for split in splits),
        "n_train": n,
        "shared": Shared(np.column_stack([np.arange(len(tested)), tested])),
    }
    plain.trained_on_ = SubjectKeys.of(subjects.X, subjects.y)
    plain.fold_estimators_, plain.fold_training_ = fits, [split.train for split in splits]
    plain.fold_ = np.full(n, -1)
    for split in splits:
        plain.fold_[split.test] = split.fold
    C.estimated_from = Origin(plain, X_tested, tested)
    name = f"{describe(fits[0])}, fitted to the training subjects of each fold"
    if all(has_influence(fit) for fit in fits):
        parts = _parts(plain, X_tested, len(tested), plain.fold_[tested])
        return ResolvedCensoring(C, name, True, parts=parts, **common)
    return ResolvedCensoring(C, name, True, refit=Refit(plain), scored_X=X_tested, **common)


def _fit_censoring(censoring: Censoring, subjects: Subjects, split: Split) -> Censoring:
    fold = subjects.take(split.train)
    try:
        return clone(censoring).fit(fold.X, fold.y, fold.weight)
    except CenscoreError as error:
        raise type(error)(f"The censoring distribution, {split.name}: {error}") from error


def _common_horizon(
    resolved: list[Any],
    scored: Subjects,
    groups: np.ndarray | None,
    tested: np.ndarray,
    names: Any,
    notes: list[str],
) -> float | str:
    """The smallest of the horizons that follow-up supports in each repeat."""
    ends: list[tuple[float, list[str]]] = []
    if not all(isinstance(C, ResolvedCensoring) for C in resolved):  # the same in all repeats
        return "auto"
    scored = replace(scored, y=followed(scored.y))
    for C in resolved:
        said: list[str] = []
        code = None if groups is None else group_codes(groups[tested], len(tested))
        k = scored.y.k
        named = JointNames.of(scored.y.names if names is None else names, None, k) if k > 1 else None
        ends.append((find_joint_horizon("auto", C, scored, named, said, code, groups), said))
    end, said = min(ends, key=lambda pair: pair[0])
    notes += said
    return end


def _decided(first: Comparison) -> dict[str, Any]:
    """What later repeats take over from the first."""
    settings = first.settings
    return {name: settings[name] for name in ("horizon", "times", "levels")}
