"""The question of every comparison: which forecast is better, by how much, and is it noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import is_torch, to_numpy
from censcore._validation import check_levels
from censcore.distributions import Distribution
from censcore.estimators import KaplanMeier, as_forecast
from censcore.estimators._covariates import check_rows, column_of
from censcore.evaluation.catalogue import DEFAULT_SCORES, Case, named_scores
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.horizon import find_horizon
from censcore.evaluation.inference import group_codes, shares
from censcore.evaluation.law_of_c import Rows, law_of_c, refuse_joint
from censcore.evaluation.losses import Subset, estimate_means, score_all
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import RightCensored, as_outcome

__all__ = ["compare"]

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9])
TIME_LEVELS = np.array([0.25, 0.5, 0.75])
KAPLAN_MEIER = "kaplan-meier"


def compare(
    forecasts: Mapping[str, Any],
    y: Any,
    censoring: Any = None,
    *,
    X: Any = None,
    train: Any = None,
    scores: str | Iterable[str] | Mapping[str, Any] = DEFAULT_SCORES,
    times: Any = None,
    levels: Any = None,
    reference: Any = KAPLAN_MEIER,
    horizon: Any = "auto",
    by: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    train_groups: Any = None,
    confidence: float = 0.95,
    discrimination: bool = True,
    refits: int = 60,
    seed: int = 0,
    progress: bool = False,
) -> Comparison:
    r"""Compare forecasts of one event time by proper scores, with errors that cover the law of C.

    A mean score is an average over rows of losses that depend on the law of C. Where that law is
    estimated, the same training rows move all losses at once, which the spread of the losses over rows does
    not show. The default errors add the missing term: the influence function of the Kaplan-Meier estimator
    (:math:`\sum_u A(u)^2 d/\{Y(Y-d)\}`, with A the derivative of the mean score with respect to the hazard
    of C at u), or, for any other estimator, its refits on bootstrap samples. Forecasts count as fixed:
    the errors are those of judging these forecasts on new rows, not of training them again.

    Parameters
    ----------
    forecasts : dict
        Name -> forecast: a law, or whatever :func:`as_forecast` takes (a fitted model, which is asked for
        the rows of X).
    y : outcome
        What happened, n rows.
    censoring : law or estimator, optional
        A law of C; or an estimator such as ``Censoring(KaplanMeier())``, fitted on ``train``, or on the
        rows themselves without it (``cv=5`` keeps every row out of its own law). It may be left out only
        where nothing is censored or ``y.censoring_time`` is known.
    X : array or frame, optional
        Covariates of the n rows, for fitted models, conditional laws of C and ``by``.
    train : pair (X_train, y_train), optional
        Rows that the reference and the law of C are fitted to. If they are the scored rows themselves,
        errors account for that.
    scores : names, or dict of functions
        By default all of ``log_score``, ``crps``, ``brier_score``, ``brier_score:ipcw``,
        ``integrated_brier_score:ipcw`` (a mean over [0, horizon]), ``binomial_log_score`` and
        ``pinball_score``. A dict may bring your own: ``{"mine": f}`` with ``f(y, forecast, censoring,
        horizon=h)`` giving one loss per row, lower is better.
    times, levels : array, optional
        Evaluation times below the horizon, by default the quartiles of the event times before it; quantile
        levels, by default those of 0.05, 0.1, 0.25, 0.5, 0.75, 0.9 that are reached by the horizon.
    reference : "kaplan-meier", name, law, estimator or None
        What skill is measured against. The default is fitted on ``train`` and joins the table; without
        ``train`` there is no skill.
    horizon : "auto" or number
        End of the comparison. "auto" is the largest time h with P(C >= h) >= 0.1 for every subject and at
        least ten subjects at risk; where C is known, the last follow-up time. ``notes`` say what it found,
        and where a given horizon asks more of follow-up than that.
    by : name, array, dict of arrays, optional
        Subgroups: a column of X, labels, or several of them.
    sample_weight : array, (n,), optional
        Weights of the rows.
    groups, train_groups : array, optional
        Labels of rows that depend on each other, such as rows of one patient.
    confidence : float
        Of intervals.
    discrimination : bool
        Also report concordance and AUC, which are descriptive and not proper.
    refits : int
        Bootstrap samples, where the law of C needs them.
    seed : int
        Of the bootstrap and of simultaneous p-values.
    progress : bool
        Show a progress bar on refits.

    Returns
    -------
    Comparison
        ``frame()``, ``differences()``, ``plot()``, ``to_html()``, ``to_json()``.

    Notes
    -----
    Out-of-fold laws ``Censoring(KaplanMeier(), cv=k)`` count as k laws, each with its own training rows; that
    the folds share most of those is accounted for. For other estimators with ``cv`` the bootstrap refits one
    law to all drawn rows, which differs from out-of-fold laws in the second order.

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
    y = as_outcome(y)
    refuse_joint(y)
    _check_confidence(confidence)
    y = RightCensored(to_numpy(y.time), to_numpy(y.event), _numpy(y.censoring_time))
    n = len(y)
    check_rows(X, n)
    rows = None if train is None else Rows.of(train)
    law = law_of_c(censoring, y, X, rows)
    laws = as_laws(forecasts, X, y)
    notes: list[str] = []
    reference_name = add_reference(laws, reference, rows, X, y, notes)
    end = find_horizon(horizon, law, y, notes)
    chosen = named_scores(scores)
    cases = make_cases(laws, y, law.law, end, times, levels, rows)
    code = group_codes(groups, n)
    subsets = make_subsets(by, X, y, shares(sample_weight, n))
    losses = score_all(cases, chosen)
    train_code = group_codes(train_groups, _count(rows))
    means = estimate_means(losses, cases, subsets, law, code, train_code, refits, seed, progress)
    return Comparison(
        scores=chosen,
        losses=losses,
        means=means,
        cases=cases,
        subsets=subsets,
        law=law,
        X=X,
        groups=code,
        train_groups=train_code,
        refits=refits,
        reference=reference_name,
        confidence=confidence,
        discrimination=discrimination,
        seed=seed,
        notes=[*notes, *losses.notes, *means.notes],
    )


def _numpy(values: Any) -> np.ndarray | None:
    return None if values is None else to_numpy(values)


def _count(rows: Rows | None) -> int:
    return 0 if rows is None else len(rows.y)


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise InvalidInputError(f"confidence must lie between 0 and 1, such as 0.95; {confidence} came.")


def as_laws(forecasts: Mapping[str, Any], X: Any, y: RightCensored) -> dict[str, Distribution]:
    """All forecasts as laws in NumPy."""
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            "forecasts must be a dictionary of at least one forecast, {'cox': law, ...}; "
            f"{type(forecasts).__name__} came."
        )
    laws = {}
    for name, forecast in forecasts.items():
        try:
            law = as_forecast(forecast, X, n=len(y))
        except (InvalidInputError, InvalidTypeError) as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        laws[str(name)] = law.like(y.time) if is_torch(law._reference) else law
    return laws


def add_reference(
    laws: dict[str, Distribution],
    reference: Any,
    train: Rows | None,
    X: Any,
    y: RightCensored,
    notes: list[str],
) -> str | None:
    """Put the reference among the forecasts and give its name; None where there is none."""
    if reference is None or (isinstance(reference, str) and reference in laws):
        return reference
    if isinstance(reference, str) and reference != KAPLAN_MEIER:
        raise InvalidInputError(f"reference {reference!r} is none of the forecasts: {', '.join(laws)}.")
    if isinstance(reference, Distribution):
        laws["reference"] = reference
        return "reference"
    if train is None:
        notes.append("No skill: the reference is fitted on train=(X_train, y_train), which did not come.")
        return None
    estimator = KaplanMeier() if isinstance(reference, str) else clone(reference)
    name = KAPLAN_MEIER if isinstance(reference, str) else "reference"
    laws[name] = as_forecast(estimator.fit(train.X, train.y), X, n=len(y))
    return name


def make_cases(
    laws: dict[str, Distribution],
    y: RightCensored,
    C: Distribution,
    horizon: float,
    times: Any,
    levels: Any,
    train: Rows | None,
) -> dict[str, Case]:
    """What every forecast is judged on, at times and levels that suit the data where none are given."""
    of = y if train is None else train.y  # times chosen on the scored subjects would fix their event counts
    time, event = to_numpy(of.time), to_numpy(of.event)
    seen = time[event & (time < horizon)]
    if times is None:
        at = np.unique(np.quantile(seen if len(seen) else [horizon / 2], TIME_LEVELS))
    else:
        at = np.atleast_1d(np.asarray(times, dtype=np.float64))
        if at.ndim != 1 or not ((at >= 0) & (at < horizon)).all():
            raise InvalidInputError(
                f"times must lie between 0 and the horizon, {horizon:g}; {np.asarray(times).tolist()} came. "
                "Pass smaller times, or a horizon= that the law of C supports."
            )
    if levels is None:
        curve = KaplanMeier().fit(None, y if train is None else train.y).predict_distribution()
        reached = 1 - float(curve.sf_left(horizon)[0])
        alpha = LEVELS[reached > LEVELS]
        alpha = alpha if len(alpha) else np.array([max(reached / 2, 1e-3)])
    else:
        alpha = np.atleast_1d(np.asarray(levels, dtype=np.float64))
        check_levels(alpha)
    return {name: Case(y, F, C, horizon, at, alpha) for name, F in laws.items()}


def make_subsets(by: Any, X: Any, y: RightCensored, weight: np.ndarray) -> list[Subset]:
    """All rows, and every subgroup, with weights that sum to one."""
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
            raise InvalidInputError(f"by: {name!r} must have one label per row, ({n},); {values.shape} came.")
        if values.dtype.kind == "O":
            labels[name] = values.astype(str)
    return labels
