"""What every score receives: an outcome, a forecast and a law of C that fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import (
    Array,
    as_float,
    common_rows,
    convert,
    is_neutral,
    namespace,
    one_namespace,
    to_numpy,
)
from censcore._validation import check_positive, name_rows
from censcore.distributions import Distribution, PointMass, Univariate
from censcore.distributions.independent import Independent
from censcore.exceptions import (
    ContradictionError,
    InvalidInputError,
    InvalidTypeError,
    MissingCensoringError,
    PositivityError,
)
from censcore.outcomes import RightCensored, as_outcome

__all__ = [
    "Problem",
    "as_columns",
    "check_horizon",
    "check_scale",
    "evaluation_times",
    "inverse_reach",
    "known_law",
    "pose",
    "refuse_infinite",
    "refuse_unreached",
]


@dataclass(frozen=True)
class Problem:
    """An outcome y of n rows, a forecast F and a law C in one array library, checked against each other."""

    y: RightCensored
    F: Any
    C: Any
    #: P(C >= y), (n,), for one event time under a law of C.
    reached: Any = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def xp(self) -> Any:
        """The array namespace of all parts."""
        return namespace(self.y.time)

    @property
    def time(self) -> Array:
        """Observed times as a column, (n, 1)."""
        return self.y.time[:, None]

    @property
    def event(self) -> Array:
        """Event indicators as a column, (n, 1)."""
        return self.y.event[:, None]

    def take(self, rows: Any) -> Problem:
        """Some rows of the problem; laws that serve all rows stay as they are."""
        F, C = (law if len(law) == 1 else law.take(rows) for law in (self.F, self.C))
        return Problem(self.y.take(rows), F, C, None if self.reached is None else self.reached[rows])

    def in_groups(self, score: Callable[[Problem], Array]) -> Array:
        """A score of each group of rows under the group's own law of C, the rows back in order."""
        parts = [score(replace(self.take(rows), C=law)) for rows, law in self.C._groups()]
        return self.C._in_row_order(parts)


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
    given = censoring is not None
    if not given:
        censoring = _law_of_known_censoring(y) if needs_law else known_law(y) or PointMass(np.inf)
    _check_kind(censoring, "censoring")
    y, forecast, censoring = _one_library(y, forecast, censoring)
    n = common_rows(outcome=len(y), forecast=len(forecast), censoring=len(censoring))
    if len(y) != n:
        y = y.take(np.zeros(n, dtype=np.int64))
    _check_dimensions(y, forecast, censoring, joint)
    if given or needs_law:
        _refuse_contradictions(y, censoring)
    if horizon is not None:
        tau = check_horizon(horizon, y)
        y, censoring = y.censor_at(tau), censoring.censor_at(tau)
    if not needs_law:
        return Problem(y, forecast, censoring)
    if y.time.ndim == 1:
        return Problem(y, forecast, censoring, _chance_to_be_seen(y, censoring))
    _refuse_impossible_joint_events(y, censoring)
    return Problem(y, forecast, censoring)


def known_law(y: RightCensored) -> Distribution | None:
    """The law of C that needs no estimate: known times, or none where nothing is censored."""
    c = y.censoring_time
    if c is not None:
        return PointMass(c) if c.ndim == 1 else Independent([PointMass(c[:, j]) for j in range(y.k)])
    return PointMass(np.inf) if bool(y.event.all()) else None


def _law_of_known_censoring(y: RightCensored) -> Distribution:
    law = known_law(y)
    if law is None:
        event = to_numpy(y.event)
        raise MissingCensoringError(
            f"{int((~event).sum())} of {event.size} times are censored and no law of C was given. Pass "
            "censoring=... : PointMass(c) if the censoring times are known (or give them to RightCensored as "
            "censoring_time), a known law such as Uniform(0, 5), or an estimate such as "
            "Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
        )
    return law


def _check_kind(law: Any, name: str) -> None:
    if not isinstance(law, Distribution):
        raise InvalidTypeError(
            f"{name} must be a censcore Distribution; {type(law).__name__} came. Wrap it: "
            "Step(times, sf=matrix) for survival curves, Ensemble(samples), Quantiles(levels, values), or a "
            "parametric law such as Weibull(shape, scale)."
        )


def _one_library(y: RightCensored, F: Distribution, C: Distribution) -> tuple[RightCensored, Any, Any]:
    """All parts in one library; real mixtures are refused, laws of plain numbers join the others.

    The forecast decides the precision, since it is the large part: y and C follow it.
    """
    laws = {"forecast": F, "censoring": C}
    one_namespace(
        outcome=y.time, **{name: law._reference for name, law in laws.items() if not law._is_neutral}
    )
    model = y.time if F._is_neutral else F._reference
    if y.time.dtype != model.dtype:
        y = y.like(model)
    return y, _fitted(F, model), _fitted(C, model)


def _fitted(law: Distribution, model: Array) -> Distribution:
    fits = not law._is_neutral and law._reference.dtype == model.dtype
    return law if fits else law.like(model)


def _check_dimensions(y: RightCensored, F: Distribution, C: Distribution, joint: bool) -> None:
    if y.time.ndim > 1 and not joint:
        raise InvalidInputError(
            f"This score is for one event time per row, (n,); the outcome has shape {y.shape}. Score each "
            "coordinate, score(y.marginal(j), forecast.marginal(j), ...), or the joint law by energy_score."
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
    if not is_neutral(horizon):
        one_namespace(outcome=y.time, horizon=horizon)
    tau = as_float(horizon, "horizon", like=y.time)
    check_positive(tau, "horizon")
    if tau.ndim > 1:
        raise InvalidInputError(f"horizon must be a number or one per row; shape {tuple(tau.shape)} came.")
    if tau.ndim == 0 or tau.shape[0] == 1:
        return tau.reshape(())
    common_rows(outcome=len(y), horizon=tau.shape[0])
    return tau


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
            f"{name_rows(wrong)} are censored at a time that the law of C excludes (PointMass says C = c "
            "exactly, PointMass(inf) that nothing is censored). Scoring them so would be improper: pass the "
            "law that censored them, for instance "
            "Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
        )


def _refuse_impossible_joint_events(y: RightCensored, C: Distribution) -> None:
    for j in range(C.k):
        law = C.marginal(j)
        if not isinstance(law, PointMass):
            _chance_to_be_seen(y.marginal(j) if C.k > 1 else _fully_observed(y), law)


def _chance_to_be_seen(y: RightCensored, C: Any) -> Array:
    """P(C >= y), (n,), by which events are divided; an event where it is zero is refused."""
    law = C.marginal(0)
    reached = law.sf_left(y.time)
    bad = np.nonzero(to_numpy(y.event & (reached <= 0)))[0]
    if bad.size:
        _raise_impossible(bad, to_numpy(y.time)[bad], law)
    return reached


def _raise_impossible(bad: np.ndarray, times: np.ndarray, law: Univariate) -> None:
    end = _largest_horizon(law if len(law) == 1 else law.take(bad), times)
    raise PositivityError(
        f"The law of C gives no chance to follow-up as long as the event times of {name_rows(bad)} (the "
        f"earliest is {float(times.min()):g}), so their scores are undefined. Pass horizon={end!r} or less "
        "to score the forecasts up to a time that the law supports, or a law of C with a longer support.",
        rows=bad.tolist(),
        horizon=end,
    )


def _largest_horizon(law: Univariate, times: np.ndarray) -> float:
    """Where the law ends; just before it if an event sits on an end that C reaches with probability zero."""
    ends = to_numpy(law.isf(0.0)).reshape(-1)
    end = ends.min()
    return float(np.nextafter(end, 0) if (times <= end).any() else end)


def _fully_observed(y: RightCensored) -> RightCensored:
    """Under one shared C only the largest time of rows without a censored coordinate asks for its law."""
    xp = namespace(y.time)
    return RightCensored(xp.max(y.time, axis=1), xp.all(y.event, axis=1))


def inverse_reach(problem: Problem) -> Array:
    r""":math:`\delta/G(y-)`, (n, 1): how much an event stands for, given that C allowed it to be seen."""
    xp, event = problem.xp, problem.event
    reached = problem.C.sf_left(problem.y.time) if problem.reached is None else problem.reached
    reached = reached[:, None]
    return xp.astype(event, reached.dtype) / xp.where(event, reached, xp.ones_like(reached))


def check_scale(scale: str) -> None:
    """Refuse anything but the two scales."""
    if scale not in ("localized", "ipcw"):
        raise InvalidInputError(f"scale must be 'localized' or 'ipcw'; {scale!r} came.")


def refuse_unreached(problem: Problem, t: Array) -> None:
    """Scores on the ipcw scale divide by P(C > t): at t (n or 1, q), or at all times before t (n,)."""
    G = problem.C.sf_left(t) if t.ndim == 1 else problem.C.sf(t)
    bad = to_numpy(G) <= 0
    if bad.any():
        t, bad = np.broadcast_arrays(to_numpy(t), bad)
        rows = np.unique(np.nonzero(bad)[0]) if bad.shape[0] == problem.n else np.arange(problem.n)
        first = float(t[bad].min())
        raise PositivityError(
            f"scale='ipcw' divides by P(C > t), which is zero from t = {first:g} on in {name_rows(rows)}. "
            "Stop earlier (smaller times, a smaller horizon), or use scale='localized', which needs no such "
            "division.",
            rows=rows.tolist(),
            horizon=first,
        )


def refuse_infinite(loss: Array, problem: Problem) -> Array:
    """``loss``, or an error that names the rows where it is infinite because follow-up never ends."""
    bad = np.unique(np.nonzero(~np.isfinite(to_numpy(loss)))[0])
    if bad.size:
        latest = float(to_numpy(problem.y.time).max())
        raise PositivityError(
            f"The score is infinite in {name_rows(bad)}: the forecast has too heavy a tail, or mass at "
            "infinity, and the law of C never ends follow-up. Score up to a finite time instead: pass "
            f"horizon=tau, for instance the end of the study or the largest observed time, {latest:g}.",
            rows=bad.tolist(),
            horizon=latest if latest > 0 else None,
        )
    return loss


def evaluation_times(times: Array, y: RightCensored, horizon: Array) -> tuple[Array, bool]:
    """Times as (1, q) or (n, q), and whether a single number came."""
    if times is None:
        raise InvalidInputError("times=... is missing: the times, (q,) or (n, q), at which F is judged.")
    t, single = as_columns(times, "times", y)
    check_positive(t, "times", zero=True)
    if horizon is not None:
        tau = check_horizon(horizon, y)
        limit = tau[:, None] if tau.ndim == 1 else tau
        if bool((t >= limit).any()):
            raise InvalidInputError(
                f"Evaluation times must lie below the horizon ({float(to_numpy(tau).min()):g}); "
                f"{float(to_numpy(t).max()):g} came. At the horizon everything is censored and the score is "
                "zero for every forecast."
            )
    return t, single


def as_columns(values: Array, name: str, y: RightCensored) -> tuple[Array, bool]:
    """A number, (q,) or (n, q) as (1 or n, q) in the library of ``y``, and whether a number came."""
    if not is_neutral(values):
        one_namespace(outcome=y.time, **{name: values})
    array = as_float(values, name, like=y.time)
    if array.ndim > 2 or 0 in array.shape:
        raise InvalidInputError(f"{name} must be a number, (q,) or (n, q); shape {tuple(array.shape)} came.")
    if array.dtype != y.time.dtype:
        array = convert(array, y.time)
    columns = array.reshape(1, -1) if array.ndim < 2 else array
    common_rows(outcome=len(y), **{name: columns.shape[0]})
    return columns, array.ndim == 0
