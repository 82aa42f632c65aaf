r"""Comparison of models by cross-validation: every model is fitted once per fold and scored on the rest.

With folds :math:`I_1,\ldots,I_K` and the model :math:`\hat F_k` (and the censoring distribution
:math:`\hat G_k`) fitted without :math:`I_k`, the mean loss and what it estimates are

.. math::
    \bar\ell=\frac1n\sum_k\sum_{i\in I_k}\ell(y_i,\hat F_k(x_i),\hat G_k(x_i)),\qquad
    R=\sum_k\frac{|I_k|}n\,\mathrm E\{\ell(Y,\hat F_k(X),G(X))\mid\hat F_k\}.

R is the expected loss of the K fitted models for new subjects. Errors are those of :math:`\bar\ell-R`: the
spread of the losses over subjects, the influence of every training subject on each :math:`\hat G_k`, and,
with repeats, that subjects train each other's models
(:mod:`censcore.evaluation.inference.refits_of_models`). They do not cover how much R would change with
another sample to train on, nor that models fitted to more subjects are better.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator, clone

from censcore._arrays import Array
from censcore._validation import check_option
from censcore.distributions import Distribution
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.covariates import take_rows
from censcore.estimators.subjects import Shared
from censcore.evaluation.compare import compare_asked, decided, note_on_pooled
from censcore.evaluation.comparison import Comparison, concluded
from censcore.evaluation.decisions.asked import Asked, read
from censcore.evaluation.decisions.decide import Decided, Settled, decide, follow_through, make_cases, settle
from censcore.evaluation.decisions.forecasts import KAPLAN_MEIER, as_named, check_model, default_or_name
from censcore.evaluation.decisions.horizon import find_horizon, given_horizon
from censcore.evaluation.decisions.subsets import labels_by
from censcore.evaluation.evaluation import Repeat, evaluate_all
from censcore.evaluation.inference.estimates import group_codes
from censcore.evaluation.inference.refits_of_models import refit_influence
from censcore.evaluation.inference.resolved_censoring import (
    ResolvedCensoring,
    as_censoring,
    describe,
    resolve_censoring,
    with_influence,
)
from censcore.evaluation.kinds import Kind, choose_scores, default_censoring
from censcore.evaluation.measures.availability import FOLDS
from censcore.evaluation.measures.case import in_time
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.outcome_table import check_in_memory
from censcore.evaluation.parts.bootstrap import Bootstrap, bootstrap_splits, compare_out_of_bag
from censcore.evaluation.parts.folded import Folded
from censcore.evaluation.parts.folds import (
    FoldRuns,
    Split,
    make_splits,
    notes_on_searches,
    notes_on_splits,
    out_of_fold,
    run_folds,
)
from censcore.evaluation.report.provenance import what_was_compared
from censcore.evaluation.sample import Sample
from censcore.exceptions import FoldError, InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.outcomes.outcome import Outcome

CONDITIONAL = "for the models as fitted in the folds"


class Splitter(Protocol):
    """A splitter of scikit-learn."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterable[tuple[Any, Any]]:
        """Pairs of training and test subjects."""


@dataclass(frozen=True)
class Folds:
    """How models are fitted and tested.

    Parameters
    ----------
    cv : int, splitter or list of (train, test)
        A number gives shuffled folds with equal shares of events; where there are groups, folds that keep
        them together.
    repeats : int
        How often a number of folds is drawn; losses are averaged over the repeats. Two or more show how much
        losses depend on who trains the models, which errors then include: without it, those of differences
        between similar models are too small.
    n_jobs : int, optional
        Fits at a time, through joblib: a backend chosen with ``joblib.parallel_config`` is respected.
    store : path, optional
        Folder for the forecasts of finished folds, so that a run that was stopped goes on, to the numbers of
        an uninterrupted one to the last bit where fits are reproducible (random models have a seed). A change
        of data, folds or models leads to new fits.
    on_error : "raise" or "skip"
        Whether a model that fails in a fold ends the comparison, or is left out with a note.

    Examples
    --------
    >>> import censcore as cs
    >>> cs.Folds(5, repeats=3)
    Folds(cv=5, repeats=3, n_jobs=None, store=None, on_error='raise')
    """

    cv: int | Splitter | Iterable[tuple[Any, Any]] = 5
    repeats: int = 1
    n_jobs: int | None = None
    store: str | PathLike[str] | None = None
    on_error: str = "raise"

    def __post_init__(self) -> None:
        check_option(self.on_error, "on_error", ("raise", "skip"))


def cross_validate(
    models: Mapping[str, Any] | Sequence[Any] | BaseEstimator,
    X: Array | None,
    y: OutcomeLike | Sample,
    *,
    cv: int | Splitter | Iterable[tuple[Any, Any]] | Folds = 5,
    censoring: Distribution | BaseEstimator | str | None = None,
    landmarks: Any = None,
    window: float | None = None,
    scores: Any = DEFAULT_SCORES,
    times: Array | None = None,
    levels: Array | None = None,
    reference: Any = KAPLAN_MEIER,
    horizon: float | str = "auto",
    by: Any = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    names: Any = None,
    events: Any = None,
    confidence: float = 0.95,
    discrimination: bool = True,
    time_unit: str = "",
    seed: int = 0,
    progress: bool | None = None,
) -> Any:
    """Fit models fold by fold, and compare their forecasts of the subjects left out.

    Each model is copied and fitted to the training subjects of every fold, as are the reference and the
    censoring distribution, and is scored on the others. Each repeat is a comparison of out-of-fold forecasts
    under out-of-fold censoring distributions, as :func:`compare` makes it; means and influences are averaged.

    Parameters
    ----------
    models : dict, list or one model
        *What to compare.* Name -> model that is not fitted yet; of a list, the class is the name. Models are
        estimators of this library, pipelines, searches over parameters, scikit-survival, lifelines, functions
        ``f(X_train, y_train, X_test)`` that give a forecast, or pairs ``(model, X)`` with covariates of their
        own. A class of your own with ``predict_distribution`` gets the outcome in ``fit`` (``y.time``,
        ``y.event``), one with ``predict_survival_function`` a structured array with the fields "event" and
        "time", as models of scikit-survival do.
    X : array or frame, (n, p), or None
        Covariates of all subjects.
    y : outcome, or Sample
        What happened to them; a :class:`Sample` also brings weights, groups and a mask.
    cv : int, splitter, list of (train, test), or Folds
        *How.* A number of folds; :class:`Bootstrap` samples, out of which subjects are scored; or
        :class:`Folds`, which also has repeats, jobs, a store, and what to do about models that fail.
    censoring : distribution, estimator or "auto", optional
        ``Censoring(KaplanMeier())`` by default, fitted to the training subjects of every fold; none is needed
        where nothing is censored or ``y.censoring_time`` is known. "auto" chooses once, on all subjects,
        between this and a penalised Cox regression of C, see :func:`compare`.
    landmarks, window : numbers and number, optional
        Judge forecasts given survival to each landmark, with scores of times at landmark + window, as
        :func:`compare_landmarks` does. The folds are of subjects, the same at all landmarks. With intervals
        of covariates that change (:class:`~censcore.StartStop`) models that learn from them are fitted to all
        rows of the training subjects; all others at each landmark, to the rows in force there.
    scores, times, levels, reference, horizon, by, names, events
        As in :func:`compare`; the reference is fitted in every fold.
    sample_weight : array, (n,), optional
        Sampling weights, of fitting and of scoring.
    groups : array, (n,), optional
        Labels of subjects that depend on each other: they stay in one fold.
    confidence, discrimination, seed
        *Inference*, as in :func:`compare`; the seed is also that of the folds.
    time_unit, progress
        *Output*, as in :func:`compare`.

    Returns
    -------
    Comparison
        Also ``folds()`` and ``plot("folds")``. With ``landmarks``, a :class:`LandmarkComparison`.

    See Also
    --------
    compare : Forecasts that were made before.
    censcore.scorer : The same scores for tuning and for scikit-learn's cross-validation.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 1))
    >>> T, C = rng.weibull(1.5, 300) * np.exp(x[:, 0]), rng.uniform(0, 4, 300)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> models = {"cox": cs.CoxRegression()}
    >>> comparison = cs.cross_validate(models, x, y, cv=3, scores="crps", discrimination=False)
    >>> comparison.frame()[["model", "mean", "standard_error", "skill"]].round(3)
              model   mean  standard_error  skill
    0           cox  0.205           0.014  0.401
    1  kaplan-meier  0.342           0.018  0.000
    """
    if isinstance(X, Outcome) and not isinstance(y, Outcome | Sample):
        raise InvalidInputError(
            "The order is that of scikit-learn, cross_validate(models, X, y); got the outcome second, and "
            f"{type(y).__name__} third."
        )
    folds = cv if isinstance(cv, Folds) else Folds(cv)
    sample = Sample.scored(y, X, sample_weight, groups)
    check_in_memory(sample.y, "cross_validate")
    options = {
        "scores": scores, "times": times, "levels": levels, "reference": reference, "horizon": horizon,
        "by": by, "names": names, "events": events, "confidence": confidence,
        "discrimination": discrimination, "time_unit": time_unit, "seed": seed, "progress": progress,
    }  # fmt: skip
    if landmarks is not None:
        from censcore.evaluation.landmark_folds import cross_validate_at_landmarks

        options |= {"censoring": censoring}
        return cross_validate_at_landmarks(cross_validate, models, sample, folds, landmarks, window, options)
    if window is not None:
        raise InvalidInputError("window: got one without landmarks=, the times that it is counted from.")
    asked = read(models, sample, censoring, **options)
    given = settle(asked)
    kind, n, code = given.kind, len(given.kind.y), given.groups
    choose_scores(kind.named({}, None)[0], asked.scores)
    sample = replace(sample, y=kind.read_outcome(sample.y), weight=given.weight)
    out_of_bag = folds.cv if isinstance(folds.cv, Bootstrap) else None
    if out_of_bag is not None:
        splits = bootstrap_splits(out_of_bag, n, code, folds.repeats)
    else:
        splits = make_splits(folds.cv, X, kind.strata(), code, folds.repeats, asked.seed)
    everything, name = _with_reference(kind, models, reference)
    for model_name, model in everything.items():
        check_model(model_name, model, n)
    runs = run_folds(kind, everything, sample, splits, folds, progress)
    if not runs.models:
        raise FoldError(f"None of the {len(everything)} models could be fitted. {' '.join(runs.notes)}")
    first = {model: runs.forecasts[model, 0] for model in runs.models if model != name}
    given, _, _ = follow_through(given, first)
    notes = list(runs.notes)
    if code is not None or out_of_bag is not None:
        notes += notes_on_searches({name: everything[name] for name in runs.models})
    estimator, chosen = _chosen_censoring(given, asked.censoring, sample, notes)
    compared = what_was_compared("cross_validate", asked, everything, cv=cv)
    asked = replace(
        asked, sample=sample, horizon=given.asked.horizon, reference=name if name in runs.models else None
    )
    if out_of_bag is not None:
        return compare_out_of_bag(given, asked, runs, out_of_bag, estimator, notes, compared)
    return _compare_folds(given, asked, runs, estimator, chosen, notes, compared)


def _compare_folds(
    given: Settled,
    asked: Asked,
    runs: FoldRuns,
    estimator: Any,
    chosen: bool,
    notes: list[str],
    compared: dict[str, Any],
) -> Comparison:
    """Compare all models by the subjects that the folds leave out, averaged over repeats."""
    kind, splits, code, sample = given.kind, runs.splits, given.groups, asked.sample
    n, followed = len(sample), replace(sample, y=kind.followed(kind.y))
    notes = [*notes_on_splits(splits, n, code), *notes]
    tested = np.unique(np.concatenate([split.test for split in splits]))
    repeats = range(max(split.repeat for split in splits) + 1)
    layers = [[i for i, split in enumerate(splits) if split.repeat == r] for r in repeats]
    resolved = [_censoring_of(estimator, followed, [splits[i] for i in layer], tested) for layer in layers]
    labels = {key: values[tested] for key, values in labels_by(asked.by, sample.X, n).items()}
    asked = replace(asked, by=labels or None, sample=sample.take(tested) if len(tested) < n else sample)
    if len(layers) > 1 and given_horizon(asked.horizon) is None:
        end = _common_horizon(kind, resolved, followed.take(tested), code, tested, notes)
        asked = replace(asked, horizon=end)
    out = [{model: out_of_fold(runs.of(model, layer), tested) for model in runs.models} for layer in layers]
    decisions, cases = decide(replace(asked, forecasts=out[0], censoring=resolved[0]))
    taken = [Repeat(cases, decisions.censoring)]
    taken += [_repeat(decisions, *each) for each in zip(out[1:], resolved[1:], strict=True)]
    refits = None
    if len(layers) > 1:
        sizes = [[len(splits[i].test) for i in layer] for layer in layers]
        refits = partial(refit_influence, groups=decisions.groups, sizes=sizes)
    count = len(layers[0])
    about = f"{count} folds" + (f", {len(layers)} repeats" if len(layers) > 1 else "")
    places = [np.searchsorted(tested, split.test) for split in splits]
    folded = Folded(FOLDS, splits, places, runs, np.arange(n) if code is None else code, about)
    evaluations = evaluate_all(decisions, taken, refits)
    term = "without" if refits is None else "with"
    for model, each in evaluations.items():
        method = f"{each.method}; {CONDITIONAL}, {term} the term of the refits"
        evaluations[model] = replace(each, method=method)
    found = concluded(evaluations, folded=folded, compared=compared)
    if chosen:
        C = _censoring_of(Censoring(KaplanMeier()), followed, [splits[i] for i in layers[0]], tested)
        again = replace(asked, forecasts=out[0], censoring=C, **decided(found))
        first = found if len(layers) == 1 else concluded(evaluate_all(decisions, taken[:1]))
        notes.append(note_on_pooled(first, compare_asked(again)))
    notes += [*found.notes, *found.censoring.warnings]  # one test of C beside many fits
    return replace(found, notes=notes)


def _repeat(decisions: Decided, forecasts: dict[str, Any], censoring: Any) -> Repeat:
    """Take the same subjects by the forecasts, and the C, of another repeat."""
    kind, sample = decisions.kind, decisions.asked.sample
    y = kind.followed(kind.y)
    C = resolve_censoring(censoring, y, sample.X, None, sample.weight, sample.groups)
    forecasts = kind.settled(forecasts, None, decisions.horizon, [])
    return Repeat(make_cases(replace(decisions, censoring=C), forecasts), C)


def _chosen_censoring(given: Settled, censoring: Any, sample: Sample, notes: list[str]) -> tuple[Any, bool]:
    """Choose what C is estimated by in every fold; also whether a regression was chosen by a test."""
    kind = given.kind
    if censoring is None or given.automatic:
        censoring = given.asked.censoring or default_censoring(kind)
    if not given.automatic:
        return censoring, False
    choice = kind.choose_censoring(censoring, replace(sample, y=kind.followed(kind.y)), given.asked.seed)
    notes.append(choice.note)
    return choice.censoring, not choice.pooled


def _with_reference(kind: Kind, models: Any, reference: Any) -> tuple[dict[str, Any], str | None]:
    """All models, the reference among them, and its name."""
    everything = as_named(models)
    if reference is None:
        return everything, None
    if not isinstance(reference, str):
        return everything | {"reference": reference}, "reference"
    reference = default_or_name(kind, reference, everything)
    if reference not in everything:
        everything[reference] = kind.reference_model(kind.y)
    return everything, reference


# ---- the censoring distribution --------------------------------------------------------------------


def _censoring_of(
    censoring: Any, subjects: Sample, splits: list[Split], tested: np.ndarray
) -> ResolvedCensoring | Distribution | None:
    """The censoring distributions of the tested of subjects as followed, each estimated from other folds."""
    if censoring is None:
        return None
    if isinstance(censoring, Distribution):
        if censoring.estimated_from is not None:  # it knows the subjects that each fold is tested on
            raise InvalidInputError(
                f"censoring: got a distribution that {censoring.estimated_from.censoring} predicted, "
                "expected one that is known, or the estimator itself: it is then fitted to the training "
                "subjects of every fold."
            )
        return censoring.take(tested) if len(tested) < len(subjects) else censoring
    plain = clone(as_censoring(censoring)).set_params(cv=None)
    parts = [(s.train, s.test) for s in splits]
    C = plain.fit_folds(subjects.X, subjects.y, parts, subjects.weight, groups=subjects.groups)
    X, n = take_rows(subjects.X, tested), len(subjects)
    who = Shared(np.column_stack([np.arange(len(tested)), tested]))
    name = f"{describe(plain.fold_estimators_[0])}, fitted to the training subjects of each fold"
    resolved = ResolvedCensoring(
        in_time(C, subjects.y.take(tested)), name, True, len(tested) == n, [], None, subjects, X, n, who
    )
    return with_influence(resolved, plain, len(tested), plain.fold_[tested])


def _common_horizon(
    kind: Kind, resolved: list[Any], scored: Sample, groups: Any, tested: np.ndarray, notes: list[str]
) -> float | str:
    """The smallest of the horizons that follow-up supports in each repeat."""
    if not all(isinstance(C, ResolvedCensoring) for C in resolved):  # the same in all repeats
        return "auto"
    code = None if groups is None else group_codes(groups[tested], len(tested))
    each: list[list[str]] = [[] for _ in resolved]
    ends = [
        find_horizon("auto", C, scored, remarks, code, groups, kind.ranked)
        for C, remarks in zip(resolved, each, strict=True)
    ]
    notes += each[int(np.argmin(ends))]
    return min(ends)
