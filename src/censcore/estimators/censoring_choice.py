"""Choose an estimator of the censoring distribution by its cross-validated log score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Univariate
from censcore.estimators.base import SurvivalEstimator
from censcore.estimators.censoring import Censoring
from censcore.estimators.covariates import take_rows
from censcore.estimators.cox import CoxRegression
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.exceptions import CenscoreError
from censcore.outcomes import RightCensored

__all__ = ["CensoringChoice", "choose_censoring"]

_INTERVALS = 20  # of time, at most, in which C is scored
_PER_INTERVAL = 10  # censored subjects, at least
_SPREAD = 1e-3  # weight of the uniform distribution over the intervals, so that none is impossible


@dataclass(frozen=True)
class CensoringChoice:
    """The estimator that was chosen, and why.

    Attributes
    ----------
    censoring : Censoring
        The estimator, not fitted.
    scores : dict
        Mean log score of C of every candidate, lower is better; nan where it could not be fitted.
    """

    censoring: Censoring
    scores: dict[str, float]

    @property
    def words(self) -> str:
        """The scores in one line."""
        listed = ", ".join(f"{name} {score:.4f}" for name, score in self.scores.items())
        return f"by its cross-validated log score of C ({listed})"


def choose_censoring(
    X: Any,
    y: RightCensored,
    candidates: Mapping[str, SurvivalEstimator] | None = None,
    *,
    groups: np.ndarray | None = None,
    folds: int = 5,
    seed: int = 0,
) -> CensoringChoice:
    r"""Choose the estimator of C with the smallest cross-validated log score.

    Time is cut into intervals with about equally many censored times, and C is scored by the interval that
    it lies in: :math:`-\log P(C\in I\mid x)` where it was seen, and :math:`-\log P(C\ge y\mid x)` for a
    subject with an event at y. This score is proper, and defined for curves with steps at other times.

    The candidates, by name, compete with a pooled Kaplan-Meier curve and Cox regression; the first wins ties.
    Subjects of one group stay in one fold.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(400, 1))
    >>> T, C = rng.exponential(size=400), rng.exponential(np.exp(x[:, 0]))
    >>> choose_censoring(x, RightCensored(np.minimum(T, C), T <= C)).censoring
    Censoring(estimator=CoxRegression())
    """
    candidates = {"KaplanMeier": KaplanMeier(), "CoxRegression": CoxRegression()} | dict(candidates or {})
    split = list(_folds(len(y), groups, folds, seed))
    scores: dict[str, float] = {}
    for name, estimator in candidates.items():
        try:
            losses = [_held_out(Censoring(estimator), X, y, *fold) for fold in split]
            scores[name] = float(np.concatenate(losses).mean())
        except (CenscoreError, np.linalg.LinAlgError):
            scores[name] = np.nan
    best = min(scores, key=lambda name: np.inf if np.isnan(scores[name]) else scores[name])
    return CensoringChoice(Censoring(candidates[best]), scores)


def _folds(n: int, groups: np.ndarray | None, folds: int, seed: int) -> Any:
    from sklearn.model_selection import GroupKFold, KFold

    splitter = (KFold if groups is None else GroupKFold)(folds, shuffle=True, random_state=seed)
    return splitter.split(np.empty((n, 0)), groups=groups)


def _held_out(censoring: Censoring, X: Any, y: RightCensored, train: Any, test: Any) -> np.ndarray:
    """Log scores of C of the subjects ``test``, by an estimator that is fitted to ``train``."""
    inside, outside = y.take(train), y.take(test)
    C = censoring.fit(take_rows(X, train), inside).predict_distribution(take_rows(X, test))
    if C.k == 1:
        return _log_score(inside.flip(), outside, C.marginal(0))
    parts = [_log_score(inside.marginal(j).flip(), outside.marginal(j), C.marginal(j)) for j in range(C.k)]
    return np.sum(parts, axis=0)


def _log_score(train: RightCensored, y: RightCensored, C: Univariate) -> np.ndarray:
    """Log scores of C in intervals between quantiles of the censored training times, (n,)."""
    seen = to_numpy(train.time)[to_numpy(train.event)]
    count = int(np.clip(len(seen) // _PER_INTERVAL, 1, _INTERVALS))
    edges = np.unique(np.quantile(seen, np.arange(1, count) / count)) if len(seen) else np.empty(0)
    time, event = to_numpy(y.time), to_numpy(y.event)
    if time.ndim > 1:
        time, event = time.max(axis=1), np.logical_and.reduce(event, axis=1)
    # P(C > edge), between the edges 0 and infinity
    after = np.broadcast_to(to_numpy(C.sf(edges[None, :])), (len(y), len(edges)))
    after = np.column_stack([np.ones(len(y)), after, np.zeros(len(y))])
    place = np.searchsorted(edges, time, side="left")
    interval = np.take_along_axis(after, place[:, None], 1) - np.take_along_axis(after, place[:, None] + 1, 1)
    reached = np.broadcast_to(to_numpy(C.sf_left(y.time if y.time.ndim == 1 else time)), (len(y),))
    share = (len(edges) + 1 - place) / (len(edges) + 1)  # of the intervals that are still to come
    likelihood = np.where(
        event,
        (1 - _SPREAD) * reached + _SPREAD * share,
        (1 - _SPREAD) * interval[:, 0] + _SPREAD / (len(edges) + 1),
    )
    return -np.log(likelihood)
