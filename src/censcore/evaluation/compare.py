"""Compare forecasts: which is better, by how much, and is the difference more than noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator

from censcore._arrays import Array
from censcore._validation import check_kind, check_option
from censcore.distributions import Distribution
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.censoring.censoring_choice import is_automatic
from censcore.evaluation.comparison import Comparison, concluded
from censcore.evaluation.decisions.asked import Asked, read
from censcore.evaluation.decisions.decide import decide
from censcore.evaluation.decisions.forecasts import KAPLAN_MEIER, as_named
from censcore.evaluation.evaluation import Evaluation, Repeat, check_same, evaluate_all
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.outcome_table import OutcomeTable, as_table, check_in_memory
from censcore.evaluation.report.provenance import what_was_compared
from censcore.evaluation.report.table_lines import deciding, mean_lines
from censcore.evaluation.report.verdict import Verdict
from censcore.evaluation.sample import Sample
from censcore.evaluation.sensitivity.diagnostic import given_covariates
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import OutcomeLike, SemiCompetingRisks
from censcore.outcomes.outcome import Outcome


def compare(
    forecasts: Mapping[str, Any] | Sequence[Any],
    y: OutcomeLike | SemiCompetingRisks | OutcomeTable | Sample | None = None,
    censoring: Distribution | BaseEstimator | str | None = None,
    *,
    X: Array | None = None,
    train: tuple[Array | None, OutcomeLike] | Sample | OutcomeTable | None = None,
    scores: str | Iterable[str] | Mapping[str, Any] = DEFAULT_SCORES,
    times: Array | None = None,
    levels: Array | None = None,
    reference: str | Distribution | BaseEstimator | None = KAPLAN_MEIER,
    horizon: float | str = "auto",
    by: str | Sequence[str] | Array | Mapping[str, Array] | None = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    names: Sequence[str] | None = None,
    events: str | Iterable[str] | Mapping[str, Any] | None = None,
    confidence: float = 0.95,
    discrimination: bool = True,
    time_unit: str = "",
    seed: int = 0,
    progress: bool | None = None,
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
    forecasts : dict, list or one forecast
        *What to compare.* Name -> forecast; of a list, the class is the name. A forecast is a distribution,
        or whatever :func:`as_forecast` takes (a fitted model, which is asked for the subjects of X). A pair
        (model, X_a) gives a model covariates of its own; where the model has risk scores only, a third entry
        gives those of the training subjects. ``notes`` say how survival matrices are read, and where the
        answer depends on it. Or evaluations by name (:func:`evaluate`) of the same subjects, with no other
        argument but ``reference``, the name of one of them.
    y : outcome, Sample or OutcomeTable
        What happened to n subjects: one event time each, (n,); several, (n, k), of which the forecasts are
        joint distributions; :class:`SemiCompetingRisks`, of which they are joint distributions too, and an
        event after the terminal one is read as one that never happens; :class:`CompetingRisks`, of which they
        are distributions of time and cause (whatever :func:`as_competing_forecast` takes); or
        :class:`~censcore.IntervalCensored` data with visits, which are compared by the detection time and by
        the log score of the intervals, with drop-out estimated by the number of the visit
        (``Censoring(KaplanMeier())`` by default) and :class:`~censcore.Turnbull` as the reference. A
        :class:`Sample` also brings covariates, weights, groups, and a mask of event times that are not
        followed. An :class:`~censcore.OutcomeTable` stays in its files or on a Dask cluster and is read in
        batches; forecasts are then functions of rows or names of columns, as are ``groups``, ``by`` and
        weights.
    censoring : distribution, estimator or "auto", optional
        A censoring distribution; or an estimator such as ``Censoring(KaplanMeier())``, fitted on ``train``,
        or on the scored subjects without it (``Censoring(..., cv=5)`` predicts every subject from the other
        folds; subjects of one of ``groups`` stay in one fold). One that was fitted before, and what it
        predicted, are recognised as the estimates they are. It may be left out where nothing is censored,
        ``y.censoring_time`` is known, or there is ``train``, to which ``Censoring(KaplanMeier())`` is then
        fitted. "auto" is Kaplan-Meier unless a test finds that the covariates predict censoring, and else a
        penalised Cox regression of C; a note reports the choice, and the verdict under Kaplan-Meier.
    X : array or frame, optional
        Covariates of the n subjects, for fitted models, conditional censoring distributions and ``by``.
    train : pair (X_train, y_train), or Sample, optional
        Subjects that the reference and the censoring distribution are fitted to. Scored subjects among them
        are recognised by equal covariates, time and event, and the errors account for them. A label of
        ``groups`` that is in both samples marks the same group. Without weights of their own, the scored
        subjects themselves keep those of ``sample_weight``.
    scores : names, or dict of functions
        *How.* By default ``integrated_brier_score:ipcw`` (a mean over [0, horizon]), ``crps``,
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
        event times, independent curves of each; for competing and semi-competing risks the Aalen-Johansen
        estimate, called "aalen-johansen"). Without ``train`` it is the null model of the scored subjects,
        against which the skill of the Brier score at a time is the index of prediction accuracy (IPA).
    horizon : "auto" or number
        End of the comparison. "auto" is the largest time h with P(C >= h) >= 0.1 for 98 % of the subjects
        (0.001 for all) and at least ten subjects at risk; where C is known, the last follow-up time.
        ``notes`` report it, and where a given horizon is longer than follow-up supports.
    by : name, array, dict of arrays, optional
        Subgroups: a column of X, labels, or several of them.
    sample_weight : array, (n,), optional
        Sampling weights of the scored subjects. They enter the scores, the censoring distribution, the
        reference and the default times and levels; a weight of k gives the estimates of k equal subjects.
        Errors are robust: they hold for one subject of weight k, not for k independent ones.
    groups : array, (n,), optional
        Labels of subjects that depend on each other, such as visits of one patient or patients of one
        hospital.
    names : sequence of str, optional
        Names of several event times, or of causes; by default those of ``y``, or numbers.
    events : names, or dict of functions, optional
        Joint events whose Brier score is taken: by default "either" and "both" ("any" and "all" for more than
        two event times), and "death first" for each name. A dict may bring others, which mean what has
        happened by t: ``{"relapse, then death": in_order(0, 1)}``, see
        :mod:`censcore.distributions.joint_events`.
    confidence : float
        *Inference.* Of intervals.
    discrimination : bool
        Also report concordance and AUC, which are descriptive and not proper; for competing risks those of
        each cause, where another event means never, and of the first event of any cause.
    seed : int
        Of the bootstrap, of simultaneous p-values, and of the draws of the energy score.
    time_unit : str
        *Output.* Of the times, such as "days": for tables, axes and the verdict. Nothing is converted.
    progress : bool, optional
        Show a progress bar on refits and batches; by default in terminals and notebooks, where the work takes
        longer than two seconds.

    Returns
    -------
    Comparison
        ``frame()``, ``differences()``, ``plot()``, ``to_html()``, ``to_json()``; for several event times or
        causes ``of("death")`` is the comparison of one of them.

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
    censcore.cross_validate : Fit models fold by fold, and compare them.
    censcore.compare_landmarks : Forecasts of what comes next, for those at risk at a time.

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
    if isinstance(forecasts, Mapping) and any(isinstance(F, Evaluation) for F in forecasts.values()):
        return _side_by_side(forecasts, None if reference == KAPLAN_MEIER else reference, y)
    options = {
        "scores": scores, "times": times, "levels": levels, "reference": reference, "horizon": horizon,
        "by": by, "names": names, "events": events, "confidence": confidence,
        "discrimination": discrimination, "time_unit": time_unit, "seed": seed, "progress": progress,
    }  # fmt: skip
    y = as_table(y)
    asked = read(forecasts, Sample.scored(y, X, sample_weight, groups), censoring, train, **options)
    if not asked.in_memory:
        from censcore.evaluation.parts.batches.compare_table import compare_table

        return compare_table(asked)
    if isinstance(censoring, Outcome) and not isinstance(y, Outcome):
        raise InvalidTypeError(
            "compare(forecasts, y, censoring) judges forecasts that were made before; got models, X and y. "
            "Pass them to cross_validate(models, X, y, cv=5), which fits the models fold by fold."
        )
    return compare_asked(replace(asked, forecasts=as_named(forecasts)))


def evaluate(
    forecast: Any,
    y: OutcomeLike | Sample,
    censoring: Distribution | BaseEstimator | str | None = None,
    *,
    name: str = "",
    X: Array | None = None,
    train: Any = None,
    scores: Any = DEFAULT_SCORES,
    times: Array | None = None,
    levels: Array | None = None,
    horizon: float | str = "auto",
    by: Any = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    names: Sequence[str] | None = None,
    events: Any = None,
    confidence: float = 0.95,
    time_unit: str = "",
    seed: int = 0,
    progress: bool | None = None,
) -> Evaluation:
    """Estimate the mean losses of one forecast, with errors that cover the estimation of C.

    Parameters
    ----------
    forecast : Distribution, fitted model, or what else :func:`as_forecast` takes
        Of the subjects of y.
    y, censoring
        As in :func:`compare`.
    name : str
        Of the forecast, in tables; by default that of its class.
    X, train, scores, times, levels, horizon, by, sample_weight, groups, names, events
        As in :func:`compare`. Evaluations that are to be compared need the same.
    confidence, time_unit, seed, progress
        As in :func:`compare`.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=400)
    >>> T, C = rng.weibull(1.5, 400) * np.exp(x), rng.uniform(0, 4, 400)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> km, options = cs.Censoring(cs.KaplanMeier()), {"scores": "crps", "horizon": 2.0}
    >>> with_x = cs.evaluate(cs.Weibull(1.5, np.exp(x)), y, km, **options)
    >>> with_x.frame()[["score", "mean", "standard_error"]].round(3)
      score  mean  standard_error
    0  crps  0.16           0.008
    >>> without = cs.evaluate(cs.Weibull(1.5, 1.0), y, km, **options)
    >>> found = cs.compare({"with x": with_x, "without": without})
    >>> found.differences(discrimination=False)["difference"].round(3).tolist()
    [-0.154]
    """
    options = {
        "scores": scores, "times": times, "levels": levels, "reference": None, "horizon": horizon, "by": by,
        "names": names, "events": events, "confidence": confidence, "time_unit": time_unit, "seed": seed,
        "progress": progress,
    }  # fmt: skip
    check_kind(name, "name", str, "a text")
    named = {name or type(forecast).__name__: forecast}
    asked = read(named, Sample.scored(y, X, sample_weight, groups), censoring, train, **options)
    check_in_memory(asked.sample.y, "evaluate")
    decided, cases = decide(asked)
    (found,) = evaluate_all(decided, [Repeat(cases, decided.censoring)]).values()
    return found


def _side_by_side(evaluations: Mapping[str, Any], reference: Any, y: Any) -> Comparison:
    """Compare evaluations of the same subjects."""
    others = [name for name, each in evaluations.items() if not isinstance(each, Evaluation)]
    if others or y is not None:
        got = ", ".join(map(repr, others)) or "y"
        raise InvalidTypeError(
            f"got evaluations together with {got}, expected evaluations alone: they have their outcomes. "
            "Evaluate the other forecasts with evaluate(forecast, y, censoring)."
        )
    if reference is not None:
        check_option(reference, "reference", list(evaluations))
    check_same(evaluations)
    named = {str(name): each for name, each in evaluations.items()}
    decisions = replace(next(iter(named.values())).decided, reference=reference)
    return concluded({n: replace(each, name=n, decided=decisions) for n, each in named.items()})


def compare_asked(asked: Asked) -> Comparison:
    """Compare forecasts of subjects in memory as asked."""
    comparison = _compared(asked)
    if not is_automatic(asked.censoring) or not given_covariates(comparison.resolved_censoring.distribution):
        return comparison
    pooled = _compared(replace(asked, censoring=Censoring(KaplanMeier()), **decided(comparison)))
    return replace(comparison, notes=[*comparison.notes, note_on_pooled(comparison, pooled)])


def _compared(asked: Asked) -> Comparison:
    decisions, cases = decide(asked)
    evaluations = evaluate_all(decisions, [Repeat(cases, decisions.censoring)])
    about = what_was_compared("compare", asked, asked.forecasts)
    return concluded(evaluations, compared=about)


def decided(comparison: Comparison) -> dict[str, Any]:
    """What another comparison of the same subjects takes over."""
    return {name: comparison.settings[name] for name in ("horizon", "times", "levels")}


def note_on_pooled(chosen: Comparison, pooled: Comparison) -> str:
    """What a pooled Kaplan-Meier estimate of C would have led to, in place of a regression of C."""
    verdict, other = chosen.verdict, pooled.verdict
    (means, errors), (others, _) = (_means_of(comparison, verdict) for comparison in (chosen, pooled))
    shift = {name: others[name] - mean for name, mean in means.items() if name in others}
    if not shift:
        return "With a pooled Kaplan-Meier estimate of C no change can be judged: no mean has an error."
    moved = max(shift, key=lambda name: abs(shift[name]) / errors[name])
    same = all(getattr(verdict, name) == getattr(other, name) for name in ("best", "tied", "beats_reference"))
    return (
        f"With a pooled Kaplan-Meier estimate of C, {verdict.score} of {moved} would be {others[moved]:.4g} "
        f"in place of {means[moved]:.4g} ± {errors[moved]:.2g}, which is the largest change; the verdict "
        "would " + ("be the same." if same else f"be another: {other.sentences[0]}")
    )


def _means_of(comparison: Comparison, verdict: Verdict) -> tuple[dict[str, float], dict[str, float]]:
    """Means and errors of the score that decides, by the forecasts that have it."""
    lines = deciding(comparison, mean_lines(comparison, discrimination=False), verdict.outcome)
    lines = [x for x in lines if x["standard_error"] > 0]
    return {x["model"]: x["mean"] for x in lines}, {x["model"]: x["standard_error"] for x in lines}
