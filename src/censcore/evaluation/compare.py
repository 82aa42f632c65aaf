"""Compare forecasts: which is better, by how much, and is the difference more than noise."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from censcore._arrays import Array, is_torch, to_numpy
from censcore._validation import as_confidence, as_count, as_seed, check_flag, check_kind, check_levels
from censcore.distributions import Distribution
from censcore.estimators import KaplanMeier, NotFitted, as_forecast
from censcore.estimators.adapted import as_estimator
from censcore.estimators.covariates import check_rows, check_weights, column_of, fit_weighted
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import DEFAULT_SCORES, named_scores
from censcore.evaluation.checks import (
    as_numbers,
    check_reference_name,
    check_units,
    notes_on_censoring,
    notes_on_events,
    notes_on_forecasts,
    notes_on_training,
)
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.cross_validation import Folds, cross_validating
from censcore.evaluation.delayed_entry import from_entry_on
from censcore.evaluation.horizon import find_horizon
from censcore.evaluation.inference import group_codes, shares
from censcore.evaluation.intervals import taking_intervals
from censcore.evaluation.landmarks import taking_landmarks
from censcore.evaluation.losses import Subset
from censcore.evaluation.readings import on_grid, reading_notes, settle_readings
from censcore.evaluation.resolved_censoring import resolve_censoring
from censcore.evaluation.streaming.compare_table import taking_tables
from censcore.evaluation.subjects import Subjects, common_codes
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import OutcomeLike, RightCensored, as_outcome, is_competing

__all__ = ["compare"]

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9])
TIME_LEVELS = np.array([0.25, 0.5, 0.75])
KAPLAN_MEIER = "kaplan-meier"

D = TypeVar("D", bound=Distribution)


@taking_tables
@taking_landmarks
@cross_validating
@taking_intervals
def compare(
    forecasts: Mapping[str, Any],
    y: OutcomeLike,
    censoring: Distribution | BaseEstimator | None = None,
    *,
    X: Array | None = None,
    train: tuple[Array | None, OutcomeLike] | None = None,
    scores: str | Iterable[str] | Mapping[str, Any] = DEFAULT_SCORES,
    times: Array | None = None,
    levels: Array | None = None,
    reference: str | Distribution | BaseEstimator | None = KAPLAN_MEIER,
    horizon: float | str = "auto",
    by: str | Sequence[str] | Array | Mapping[str, Array] | None = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    train_groups: Array | None = None,
    train_weight: Array | None = None,
    names: Sequence[str] | None = None,
    events: str | Iterable[str] | Mapping[str, Any] | None = None,
    mask: Array | None = None,
    train_mask: Array | None = None,
    confidence: float = 0.95,
    discrimination: bool = True,
    time_unit: str = "",
    refits: int = 60,
    seed: int = 0,
    progress: bool = False,
    cv: Folds | None = None,
    repeats: int = 1,
    n_jobs: int | None = None,
    store: str | PathLike[str] | None = None,
    on_error: str = "raise",
    landmarks: Iterable[float] | None = None,
    window: float | None = None,
) -> Comparison:
    r"""Compare forecasts of event times by proper scores, with errors that cover the estimation of C.

    A mean score is an average over subjects of losses that depend on the censoring distribution. Where that
    is estimated, the same training subjects move all losses at once, which the spread of the losses over
    subjects does not show. The default errors add the missing term: the influence function of the
    Kaplan-Meier estimator or of Cox regression, or, for any other estimator, its refits on bootstrap samples.
    A subject that is scored and in the training sample contributes the sum of both terms. Forecasts count
    as fixed: the errors are those of judging these forecasts on new subjects, not of training them again.

    Parameters
    ----------
    forecasts : dict
        Name -> forecast: a distribution, or whatever :func:`as_forecast` takes (a fitted model, which is
        asked for the subjects of X). A pair (model, X_a) gives a model covariates of its own; where the
        model has risk scores only, a third entry gives those of the training subjects. ``notes`` say how
        survival matrices are read, and where the answer depends on it.
    y : outcome
        What happened to n subjects: one event time each, (n,); several, (n, k), of which the forecasts are
        joint distributions; or :class:`CompetingRisks`, of which they are distributions of time and cause
        (whatever :func:`as_competing_forecast` takes). :class:`~censcore.IntervalCensored` data with visits
        are compared by the detection time and by the log score of the intervals; ``censoring`` is then
        needed only where subjects drop out, and the reference is :class:`~censcore.Turnbull`; also with
        ``cv``. An
        :class:`~censcore.OutcomeTable` stays in its files or on a Dask cluster and is read in batches;
        forecasts are then functions of rows or names of columns, as are ``groups``, ``by`` and weights.
    censoring : distribution or estimator, optional
        A censoring distribution; or an estimator such as ``Censoring(KaplanMeier())``, fitted on ``train``,
        or on the scored subjects without it (``cv=5`` predicts every subject from the other folds; subjects
        of one of ``groups`` stay in one fold). One that was fitted before, and what it predicted, are
        recognised as the estimates they are. It may be left out only where nothing is censored or
        ``y.censoring_time`` is known.
    X : array or frame, optional
        Covariates of the n subjects, for fitted models, conditional censoring distributions and ``by``.
    train : pair (X_train, y_train), optional
        Subjects that the reference and the censoring distribution are fitted to. Scored subjects among them
        are recognised by equal covariates, time and event, and the errors account for them.
    scores : names, or dict of functions
        By default ``integrated_brier_score:ipcw`` (a mean over [0, horizon]), ``crps``,
        ``brier_score:ipcw`` and ``log_score``; the first that all forecasts have decides the verdict. "all"
        adds ``brier_score`` (localized), ``binomial_log_score`` and ``pinball_score``. A dict may bring
        custom scores: ``{"mine": f}`` with ``f(y, forecast, censoring, horizon=h)`` giving one loss per
        subject, lower is better, on any scale. For several event times: ``energy_score`` and
        ``log_score`` of all of them together, ``crps`` and all others of each of them, ``brier_score`` also
        of joint events; ``crps[death]`` is of one alone. The default is ``energy_score``, ``log_score``,
        ``crps`` and ``brier_score``. For competing risks each score is of all causes together, of each cause
        and of any; ``crps[death]``, ``crps[all causes]`` and ``crps[any cause]`` are of one of these.
    times, levels : array, optional
        Evaluation times below the horizon, by default the quartiles of the event times before it, of
        ``train`` where it is given (each the smallest event time that reaches the quartile; where forecasts
        are matrices that are interpolated, the nearest times that all of them have); quantile
        levels, by default those of 0.05, 0.1, 0.25, 0.5, 0.75, 0.9 that are reached by the horizon (by the
        cumulative incidence of every cause).
    reference : "kaplan-meier", name, distribution, estimator or None
        What skill is measured against. The default is fitted on ``train`` and joins the table (for several
        event times, independent curves of each; for competing risks the Aalen-Johansen estimate, called
        "aalen-johansen"); without ``train`` there is no skill.
    horizon : "auto" or number
        End of the comparison. "auto" is the largest time h with P(C >= h) >= 0.1 for every subject and at
        least ten subjects at risk; where C is known, the last follow-up time. ``notes`` report it,
        and where a given horizon is longer than follow-up supports.
    by : name, array, dict of arrays, optional
        Subgroups: a column of X, labels, or several of them.
    sample_weight, train_weight : array, optional
        Sampling weights of the scored subjects, (n,), and of those of ``train``. They enter the scores, the
        censoring distribution, the reference and the default times and levels; a weight of k gives the
        estimates of k equal subjects. Errors are robust: they hold for one subject of weight k, not for k
        independent ones. Without ``train``, or where it is the scored subjects, ``sample_weight`` serves
        for both.
    groups, train_groups : array, optional
        Labels of subjects that depend on each other, such as visits of one patient or patients of one
        hospital. A label that is in both marks the same group.
    names : sequence of str, optional
        Names of several event times, or of causes; by default those of ``y``, or numbers.
    events : names, or dict of functions, optional
        Joint events whose Brier score is taken: by default "either" and "both" ("any" and "all" for more than
        two event times), and "death first" for each name. A dict may bring others: ``{"relapse, then death":
        in_order(0, 1)}``, see :mod:`censcore.distributions.joint_events`.
    mask, train_mask : array of bool, (n, k), optional
        False where a subject is not followed for one of several event times, for instance because it has
        happened before. The subject does not count in scores of that time or of joint events, and the
        time is left out of the energy and log score and of the censoring distribution.
    confidence : float
        Of intervals.
    discrimination : bool
        Also report concordance and AUC, which are descriptive and not proper; for competing risks those of
        each cause, where another event means never, and of the first event of any cause.
    time_unit : str
        Of the times, such as "days": for tables, axes and the verdict. Nothing is converted.
    refits : int
        Bootstrap samples, where the estimator of the censoring distribution has no influence function.
    seed : int
        Of the bootstrap, of simultaneous p-values, and of the draws of the energy score.
    progress : bool
        Show a progress bar on refits and folds.
    cv : int, splitter or list of (train, test), optional
        Cross-validation: ``compare(models, X, y, cv=5)``, with models that are not fitted yet in place of
        forecasts (estimators of this library, pipelines, searches over parameters, scikit-survival,
        lifelines, functions ``f(X_train, y_train, X_test)`` that give a forecast, or pairs ``(model, X)``
        with covariates of their own). Each is copied and fitted to the training subjects of every fold, as
        are the reference and the censoring distribution (``Censoring(KaplanMeier())`` by default), and is
        scored on the others. A number gives shuffled folds with equal shares of events; where there are
        ``groups``, folds that keep them together. The result is a :class:`CrossValidated` comparison.
    repeats : int
        How often a number of folds is drawn; losses are averaged over the repeats.
    n_jobs : int, optional
        Fits at a time, through joblib: a backend chosen with ``joblib.parallel_config`` is respected.
    store : path, optional
        Folder for the forecasts of finished folds, so that a run that was stopped goes on. A change of data,
        folds or models leads to new fits.
    on_error : "raise" or "skip"
        Whether a model that fails in a fold ends the comparison, or is left out with a note.
    landmarks : numbers, optional
        Compare at each of these times s, of the subjects at risk at s and given T > s; the result is a
        :class:`~censcore.evaluation.LandmarkComparison`. A forecast may then also be a mapping
        ``{s: forecast}`` or a function ``f(s, subjects)``: predictions that are made anew at s, see
        :func:`compare_landmarks`.
    window : float, optional
        With ``landmarks``: scores of times are taken at s + window.

    Returns
    -------
    Comparison
        ``frame()``, ``differences()``, ``plot()``, ``to_html()``, ``to_json()``. For several event times a
        :class:`~censcore.evaluation.JointComparison`, whose ``of("death")`` is the comparison of one of them;
        for competing risks a :class:`~censcore.evaluation.CompetingRisksComparison`, with one per cause.

    Notes
    -----
    Out-of-fold distributions ``Censoring(KaplanMeier(), cv=k)`` count as k estimates, each with its training
    subjects; that the folds share most of those is accounted for. For estimators without an influence
    function the bootstrap refits one distribution to all drawn subjects, which differs from out-of-fold
    distributions in the second order.

    See Also
    --------
    censcore.censoring_diagnostic : How far the censoring distribution can be trusted.
    censcore.scorer : The same scores for tuning and for scikit-learn's cross-validation.
    censcore.mean_loss : A mean and its error where the censoring distribution is known.
    censcore.compare_landmarks : What ``landmarks`` does.

    References
    ----------
    .. [1] Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of
       prognostic classification schemes for survival data. Statistics in Medicine 18, 2529-2545.
    .. [2] Diebold, F. X. and Mariano, R. S. (1995). Comparing predictive accuracy. Journal of Business and
       Economic Statistics 13, 253-263.
    .. [3] Hothorn, T., Bretz, F. and Westfall, P. (2008). Simultaneous inference in general parametric
       models. Biometrical Journal 50, 346-363.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(600, 1))
    >>> T, C = rng.weibull(1.5, 600) * np.exp(x[:, 0]), rng.uniform(0, 4, 600)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> train, test = slice(0, 300), slice(300, 600)
    >>> cox = cs.CoxRegression().fit(x[train], y[train])
    >>> comparison = cs.compare(
    ...     {"cox": cox}, y[test], cs.Censoring(cs.KaplanMeier()), X=x[test],
    ...     train=(x[train], y[train]), scores="crps", discrimination=False,
    ... )
    >>> comparison.frame()[["model", "mean", "standard_error", "skill"]].round(3)
              model   mean  standard_error  skill
    0           cox  0.207           0.014  0.386
    1  kaplan-meier  0.337           0.019  0.000
    """
    confidence = as_confidence(confidence)
    refits, seed = as_count(refits, "refits", least=0, most=10**6), as_seed(seed)
    check_flag(discrimination, "discrimination")
    check_kind(forecasts, "forecasts", Mapping, "a dictionary {name: forecast}")
    of_joint = {"names": names, "events": events, "mask": mask, "train_mask": train_mask}
    if is_competing(y):
        from censcore.evaluation.competing_compare import compare_competing

        check_one_time({name: value for name, value in of_joint.items() if name != "names"})
        return compare_competing(
            forecasts, y, censoring, X=X, train=train, scores=None if scores is DEFAULT_SCORES else scores,
            times=times, levels=levels, reference=reference, horizon=horizon, by=by,
            sample_weight=sample_weight, groups=groups, train_groups=train_groups, train_weight=train_weight,
            names=names, confidence=confidence, discrimination=discrimination, refits=refits, seed=seed,
            progress=progress, time_unit=str(time_unit or ""),
        )  # fmt: skip
    y = as_outcome(y)
    if y.time.ndim > 1:
        from censcore.evaluation.joint_compare import compare_joint

        return compare_joint(
            forecasts, y, censoring, X=X, train=train, scores=None if scores is DEFAULT_SCORES else scores,
            times=times, levels=levels, reference=reference, horizon=horizon, by=by,
            sample_weight=sample_weight, groups=groups, train_groups=train_groups, train_weight=train_weight,
            confidence=confidence, discrimination=discrimination, refits=refits, seed=seed, progress=progress,
            time_unit=str(time_unit or ""), **of_joint,
        )  # fmt: skip
    check_one_time(of_joint)
    y = in_numpy(y)
    n = len(y)
    check_rows(X, n)
    code, weight = group_codes(groups, n), None if sample_weight is None else check_weights(sample_weight, n)
    notes: list[str] = []
    trained = training_subjects(train, train_weight, y, weight, notes)
    notes += check_units(y, trained) + notes_on_training(X, y, trained)
    notes += notes_on_censoring(censoring, X, trained)
    resolved = resolve_censoring(censoring, y, X, trained, weight, code)
    distributions = as_distributions(forecasts, X, y, trained)
    notes += notes_on_forecasts(distributions, y)
    notes += check_reference_name(distributions, reference, KAPLAN_MEIER, trained)
    learned = None if trained is None else partial(fitted_reference, train=trained, X=X, n=n)
    reference_name = add_reference(distributions, reference, KAPLAN_MEIER, notes, lambda F: F, learned)
    train_code = common_codes(groups, train_groups, resolved.n_train or count_of(trained))
    scored = Subjects(X, y, weight)
    end = find_horizon(horizon, resolved, scored, notes, code, train_code)
    notes += notes_on_events(y, end, shares(weight, n), code, trained)
    distributions = settle_readings(distributions, y, None if trained is None else trained.y, end)
    distributions, discrimination = from_entry_on(distributions, y, end, discrimination, notes)
    chosen = named_scores(scores)
    cases = make_cases(distributions, scored, resolved.distribution, end, times, levels, trained)
    subsets = make_subsets(by, X, y, shares(weight, n))
    comparison = Comparison.of_cases(
        cases, chosen, subsets, resolved, notes, X=X, groups=code, train_groups=train_code, refits=refits,
        reference=reference_name, confidence=confidence, discrimination=discrimination, seed=seed,
        time_unit=str(time_unit or ""), progress=progress,
    )  # fmt: skip
    losses, means, share = comparison.losses, comparison.means, subsets[0].weight
    comparison.notes.extend(reading_notes(cases, losses, means, share, confidence, seed))
    return comparison


def check_one_time(of_joint: dict[str, Any]) -> None:
    """Options of joint forecasts are for several event times."""
    given = [name for name, value in of_joint.items() if value is not None]
    if given:
        raise InvalidInputError(
            f"{', '.join(given)}: got an outcome of one event time per subject, expected several, (n, k)."
        )


def in_numpy(y: RightCensored) -> RightCensored:
    """The outcome as arrays of NumPy, in their precision."""
    c, entry = (None if part is None else to_numpy(part) for part in (y.censoring_time, y.entry))
    return RightCensored(to_numpy(y.time), to_numpy(y.event), c)._with_entry(entry)


def count_of(subjects: Subjects | None) -> int:
    return 0 if subjects is None else len(subjects.y)


def training_subjects(
    train: Any, train_weight: Any, y: RightCensored, weight: np.ndarray | None, notes: list[str]
) -> Subjects | None:
    """The training subjects with their weights; the scored subjects themselves keep those they have."""
    if train is None:
        if train_weight is not None:
            raise InvalidInputError("train_weight: got weights without train=(X_train, y_train).")
        return None
    subjects = Subjects.of(train, train_weight)
    if weight is None or subjects.weight is not None:
        return subjects
    if subjects.same_as(y):
        return replace(subjects, weight=weight)
    notes.append(
        "The scored subjects have weights (sample_weight), the training subjects have none: pass "
        "train_weight= if they were sampled alike."
    )
    return subjects


def as_distributions(
    forecasts: Mapping[str, Any], X: Any, y: RightCensored, train: Subjects | None = None
) -> dict[str, Distribution]:
    """All forecasts as distributions in NumPy; the training subjects serve models that lack a baseline."""
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            "forecasts must be a dictionary of at least one forecast, {'cox': distribution, ...}; got "
            f"{type(forecasts).__name__}."
        )
    distributions = {}
    for name, forecast in forecasts.items():
        try:
            model, covariates, X_train = with_covariates(forecast, X, train)
            pair = None if train is None else (X_train, train.y)
            distribution = as_forecast(model, covariates, n=len(y), train=pair)
        except (InvalidInputError, InvalidTypeError, NotFitted) as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        distributions[str(name)] = (
            distribution.like(y.time) if is_torch(distribution._reference) else distribution
        )
    return distributions


def with_covariates(forecast: Any, X: Any, train: Subjects | None) -> tuple[Any, Any, Any]:
    """A forecast, the covariates it is asked for, and those of the training subjects."""
    X_train = None if train is None else train.X
    if not isinstance(forecast, tuple) or len(forecast) not in (2, 3) or hasattr(forecast[0], "x"):
        return forecast, X, X_train
    return forecast[0], forecast[1], forecast[2] if len(forecast) == 3 else None


def add_reference(
    distributions: dict[str, Any],
    reference: Any,
    default: str,
    notes: list[str],
    given: Callable[[Any], Any],
    learned: Callable[[Any], Any] | None,
) -> str | None:
    """Put the reference among the forecasts and give its name; None where there is none.

    ``default`` names the estimate that stands for a reference of that name. ``given`` checks a distribution;
    ``learned`` gives the forecast of an estimator fitted to the training subjects, or of the default for
    None, and is None without training subjects.
    """
    if reference is None or (isinstance(reference, str) and reference in distributions):
        return reference
    if isinstance(reference, str) and reference != default:
        raise InvalidInputError(
            f"reference {reference!r} is none of the forecasts: {', '.join(distributions)}."
        )
    if isinstance(reference, Distribution):
        distributions["reference"] = given(reference)
        return "reference"
    if learned is None:
        notes.append("No skill: the reference is fitted on train=(X_train, y_train), which is missing.")
        return None
    name, estimator = (default, None) if isinstance(reference, str) else ("reference", reference)
    distributions[name] = learned(estimator)
    return name


def fitted_reference(estimator: Any, train: Subjects, X: Any, n: int) -> Distribution:
    """The forecast of an estimator, by default Kaplan-Meier, fitted to the training subjects."""
    model = KaplanMeier() if estimator is None else as_estimator(estimator)
    return as_forecast(fit_weighted(model, train.X, train.y, train.weight), X, n=n)


def make_cases(
    distributions: dict[str, Distribution],
    scored: Subjects,
    C: Distribution,
    horizon: float,
    times: Any,
    levels: Any,
    train: Subjects | None,
) -> dict[str, Case]:
    """One case per forecast, with times and levels that suit the data where none are given."""
    sample = scored if train is None else train  # times chosen on scored subjects would fix their events
    if times is None:
        at = on_grid(default_times(sample.y, horizon, sample.weight), distributions, horizon)
    else:
        at = as_numbers(times, "times")
        if not ((at >= 0) & (at < horizon)).all():
            raise InvalidInputError(
                f"times must lie between 0 and the horizon, {horizon:g}; got {np.asarray(times).tolist()}. "
                "Pass smaller times, or a horizon= that the censoring distribution supports."
            )
    if levels is None:
        curve = KaplanMeier().fit(None, sample.y, sample.weight).predict_distribution()
        reached = 1 - float(curve.sf_left(horizon)[0])
        alpha = LEVELS[reached > LEVELS]
        alpha = alpha if len(alpha) else np.array([max(reached / 2, 1e-3)])
    else:
        alpha = as_numbers(levels, "levels")
        check_levels(alpha)
    return {name: Case(scored.y, F, C, horizon, at, alpha) for name, F in distributions.items()}


def default_times(y: RightCensored, horizon: float, weight: np.ndarray | None = None) -> np.ndarray:
    """Quartiles of the event times before the horizon, each an event time; half the horizon without any."""
    w = check_weights(weight, len(y))
    time = to_numpy(y.time)
    seen = np.nonzero(to_numpy(y.event) & (time < horizon) & (w > 0))[0]
    if not len(seen):
        return np.array([horizon / 2])
    order = seen[np.argsort(time[seen], kind="stable")]
    reached = np.cumsum(w[order])
    return np.unique(time[order][np.searchsorted(reached, TIME_LEVELS * reached[-1] * (1 - 1e-12))])


def make_subsets(by: Any, X: Any, y: RightCensored, weight: np.ndarray) -> list[Subset]:
    """All subjects, and every subgroup, with weights that sum to one."""
    subsets = [Subset("", "all", weight)]
    for name, labels in _labels(by, X, len(y)).items():
        for value in np.unique(labels):
            inside = np.where(labels == value, weight, 0.0)
            if inside.any():
                subsets.append(Subset(name, str(value), inside / inside.sum()))
    return subsets


def _labels(by: Any, X: Any, n: int) -> dict[str, np.ndarray]:
    if by is None:
        return {}
    if isinstance(by, str):
        by = {by: column_of(X, by)}
    elif isinstance(by, list | tuple) and all(isinstance(name, str) for name in by) and len(by) != n:
        by = {name: column_of(X, name) for name in by}
    elif not isinstance(by, Mapping):
        by = {str(getattr(by, "name", None) or "group"): by}
    labels = {str(name): np.asarray(to_numpy(values)) for name, values in by.items()}
    for name, values in labels.items():
        if values.shape != (n,):
            raise InvalidInputError(
                f"by: {name!r} must have one label per subject, ({n},); got {values.shape}."
            )
        if values.dtype.kind == "O":
            labels[name] = values.astype(str)
    return labels
