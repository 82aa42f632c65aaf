"""What every score receives: an outcome, a forecast and a law of C that fit together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, common_rows, is_neutral, namespace, one_namespace, to_numpy
from censcore._validation import check_positive, name_rows
from censcore.distributions import Distribution, Independent, PointMass
from censcore.exceptions import (
    ContradictionError,
    InvalidInputError,
    InvalidTypeError,
    MissingCensoringError,
    PositivityError,
)
from censcore.outcomes import RightCensored, as_outcome

__all__ = ["Problem", "evaluation_times", "pose"]


@dataclass(frozen=True)
class Problem:
    """An outcome y, a forecast F and a law C in one array library, horizon applied, checked against each other."""

    y: RightCensored
    F: Any
    C: Any
    n: int

    @property
    def xp(self) -> Any:
        return namespace(self.y.time)

    def take(self, rows: Any) -> Problem:
        """Some rows of the problem; parts that serve all rows stay as they are."""
        y, F, C = (part if len(part) == 1 else part.take(rows) for part in (self.y, self.F, self.C))
        size = len(range(self.n)[rows]) if isinstance(rows, slice) else len(rows)
        return Problem(y, F, C, size)


def pose(
    y: Any,
    forecast: Any,
    censoring: Any,
    horizon: Array = None,
    *,
    joint: bool = False,
    needs_law: bool = True,
) -> Problem:
    """Check and align what a score receives.

    ``joint`` admits several event times; ``needs_law=False`` is for scores whose value does not depend on
    the law of C (the log score), where a missing law is no guess.
    """
    y = as_outcome(y)
    _check_kind(forecast, "forecast")
    if censoring is None and not needs_law:
        censoring = known_law(y) or PointMass(np.inf)
    elif censoring is None:
        censoring = _law_of_known_censoring(y)
    _check_kind(censoring, "censoring")
    y, forecast, censoring = _one_library(y, forecast, censoring)
    n = common_rows(outcome=len(y), forecast=len(forecast), censoring=len(censoring))
    _check_dimensions(y, forecast, censoring, joint)
    if needs_law:
        _refuse_contradictions(y, censoring)
    if horizon is not None:
        tau = check_horizon(horizon, y)
        y, censoring = y.censor_at(tau), censoring.censor_at(tau)
    if needs_law:
        _refuse_impossible_events(y, censoring)
    return Problem(y, forecast, censoring, n)


def known_law(y: RightCensored) -> Distribution | None:
    """The law of C that needs no estimate: known times, or none where nothing is censored."""
    c = y.censoring_time
    if c is not None:
        return PointMass(c) if c.ndim == 1 else Independent([PointMass(c[:, j]) for j in range(y.k)])
    return PointMass(np.inf) if bool(y.event.all()) else None


def _law_of_known_censoring(y: RightCensored) -> Distribution:
    law = known_law(y)
    if law is None:
        censored = int((~y.event).sum())
        raise MissingCensoringError(
            f"{censored} of {y.event.size if hasattr(y.event, 'size') else y.event.numel()} times are censored and "
            "no law of C was given. Pass censoring=... : PointMass(c) if the censoring times are known (or give "
            "them to RightCensored as censoring_time), a known law such as Uniform(0, 5), or an estimate such as "
            "Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
        )
    return law


def _check_kind(law: Any, name: str) -> None:
    if not isinstance(law, Distribution):
        raise InvalidTypeError(
            f"{name} must be a censcore Distribution; {type(law).__name__} came. Wrap it: Step(times, sf=matrix) for "
            "survival curves, Ensemble(samples), Quantiles(levels, values), or a parametric law such as "
            "Weibull(shape, scale)."
        )


def _one_library(y: RightCensored, F: Distribution, C: Distribution) -> tuple[RightCensored, Any, Any]:
    """Laws of plain numbers join the library of the others; real mixtures are refused."""
    named = {"outcome": y.time}
    named |= {
        name: law._reference for name, law in (("forecast", F), ("censoring", C)) if not law._is_neutral
    }
    one_namespace(**named)
    return y, (F.like(y.time) if F._is_neutral else F), (C.like(y.time) if C._is_neutral else C)


def _check_dimensions(y: RightCensored, F: Distribution, C: Distribution, joint: bool) -> None:
    if y.k > 1 and not joint:
        raise InvalidInputError(
            f"This score is for one event time per row; the outcome has {y.k}. Score each coordinate, "
            "score(y.marginal(j), forecast.marginal(j), ...), or the joint law by energy_score."
        )
    if F.k != y.k:
        raise InvalidInputError(
            f"The outcome has {y.k} event times per row and the forecast {F.k}; they must agree."
        )
    if C.k not in (1, y.k):
        raise InvalidInputError(
            f"The law of C has {C.k} coordinates; one (shared) or {y.k} (one per event time) were expected."
        )
    if C.k == 1 and y.k > 1 and y.censoring_time is None and not y.shares_censoring:
        y._require_shared("A shared law of C: the score")


def check_horizon(horizon: Array, y: RightCensored) -> Array:
    """A horizon as a positive number or one per row."""
    if isinstance(horizon, str):
        raise InvalidInputError(
            f"horizon must be a time; {horizon!r} came. horizon='auto' is an option of compare()."
        )
    tau = as_float(horizon, "horizon", like=y.time)
    check_positive(tau, "horizon")
    if tau.ndim > 1:
        raise InvalidInputError(f"horizon must be a number or one per row; shape {tuple(tau.shape)} came.")
    return tau if tau.ndim == 0 or len(y) == tau.shape[0] else tau.reshape(())


def _refuse_contradictions(y: RightCensored, C: Distribution) -> None:
    for j in range(C.k):
        law = C.marginal(j)
        if isinstance(law, PointMass):
            y_j = y if C.k == 1 else y.marginal(j)
            _refuse_other_censoring_times(y_j, law)


def _refuse_other_censoring_times(y: RightCensored, law: PointMass) -> None:
    c = law.location if y.time.ndim == 1 else law.location[:, None]
    late = np.unique(np.nonzero(to_numpy(y.time > c))[0])
    if late.size:
        raise ContradictionError(
            f"The law of C says that follow-up ends at c, but {name_rows(late)} have a time beyond it. "
            "Cut the outcome with y.censor_at(c), or pass the c that applied."
        )
    wrong = np.unique(np.nonzero(to_numpy(~y.event & (y.time != c)))[0])
    if wrong.size:
        raise ContradictionError(
            f"{name_rows(wrong)} are censored at a time that the law of C excludes (PointMass says C = c exactly, "
            "PointMass(inf) that nothing is censored). Scoring them so would be improper: pass the law that "
            "censored them, for instance Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
        )


def _refuse_impossible_events(y: RightCensored, C: Distribution) -> None:
    """Every event needs P(C >= y) > 0, since that is what it is divided by."""
    for j in range(C.k):
        law = C.marginal(j)
        if isinstance(law, PointMass):
            continue
        y_j = y if y.time.ndim == 1 else y.marginal(j) if C.k > 1 else _fully_observed(y)
        bad = np.nonzero(to_numpy(y_j.event & (law.sf_left(y_j.time) <= 0)))[0]
        if bad.size:
            ends = to_numpy(law.isf(0.0)).reshape(-1)
            end = float(ends.min() if ends.size == 1 else ends[bad].min())
            earliest = float(to_numpy(y_j.time)[bad].min())
            raise PositivityError(
                f"The law of C gives no chance to follow-up as long as the event times of {name_rows(bad)} (the "
                f"earliest is {earliest:g}), so their scores are undefined. Pass horizon={end:g} or less to score "
                "the forecasts up to a time that the law supports, or a law of C with a longer support.",
                rows=bad,
                horizon=end,
            )


def _fully_observed(y: RightCensored) -> RightCensored:
    """Under one shared C only the largest time of rows without a censored coordinate asks for its law."""
    xp = namespace(y.time)
    return RightCensored(xp.max(y.time, axis=1), xp.all(y.event, axis=1))


def evaluation_times(times: Array, y: RightCensored, horizon: Array) -> tuple[Array, bool]:
    """Times as (1, q) or (n, q), and whether a single number came."""
    if not is_neutral(times):
        one_namespace(outcome=y.time, times=times)
    t = as_float(times, "times", like=y.time)
    check_positive(t, "times", zero=True)
    if t.ndim > 2 or 0 in t.shape:
        raise InvalidInputError(f"times must be a number, (q,) or (n, q); shape {tuple(t.shape)} came.")
    if horizon is not None:
        tau = check_horizon(horizon, y)
        limit = tau[:, None] if tau.ndim == 1 else tau
        if bool((t >= limit).any()):
            raise InvalidInputError(
                f"Evaluation times must lie below the horizon ({float(to_numpy(tau).min()):g}); "
                f"{float(to_numpy(t).max()):g} came. At the horizon everything is censored and the score is zero "
                "for every forecast."
            )
    single = t.ndim == 0
    t = t.reshape(1, -1) if t.ndim < 2 else t
    common_rows(outcome=len(y), times=t.shape[0])
    return t, single
