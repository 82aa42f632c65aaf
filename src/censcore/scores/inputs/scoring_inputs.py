"""Scoring inputs: an outcome, a forecast and a censoring distribution, checked against each other.

Every score starts here: :func:`scoring_inputs` checks and aligns what it was called with, in one array
library, dtype and device. The formula then reads ``inputs.y``, ``inputs.F``, ``inputs.C``, ``inputs.xp`` and
``inputs.known_at(t)``. :func:`inverse_probability_weights` are the weights of events,
:func:`evaluation_times` and :func:`quantile_levels` bring times and levels into shape. A custom score is a
formula of these inputs, decorated with :func:`~censcore.scores.score`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from censcore._arrays import (
    Array,
    as_float,
    common_rows,
    convert,
    is_neutral,
    is_torch,
    namespace,
    one_namespace,
    to_numpy,
)
from censcore._validation import (
    check_between,
    check_levels,
    check_option,
    check_positive,
    check_same_order,
)
from censcore.distributions import Distribution, PointMass, ProportionalHazards, Univariate
from censcore.distributions.derived.semi_competing import before_terminal
from censcore.exceptions import InvalidInputError
from censcore.outcomes import (
    EventOfCause,
    IntervalCensored,
    OutcomeLike,
    RightCensored,
    SemiCompetingRisks,
    as_outcome,
)
from censcore.scores.inputs.alignment import (
    by_censoring_time,
    check_dimensions,
    check_given_entry,
    check_is_distribution,
    one_library,
    size_of,
)
from censcore.scores.inputs.known_at import (
    KnownAt,
    followed_to_entry,
    inverse_probability_weights,
    known_at,
    known_censoring,
    known_or_raise,
    known_to_exceed,
)
from censcore.scores.inputs.support import LOCALIZED, chance_to_be_seen

__all__ = [
    "ScoringInputs",
    "as_columns",
    "check_horizon",
    "check_scale",
    "evaluation_times",
    "inverse_probability_weights",
    "known_censoring",
    "known_to_exceed",
    "left_out",
    "quantile_levels",
    "scoring_inputs",
    "without_forecast",
]


_UNCENSORED = PointMass(np.inf)  # with what it keeps of horizons; tensors may not outlive a call


@dataclass(frozen=True)
class ScoringInputs:
    """An outcome, a forecast and a censoring distribution in one array library, checked against each other.

    Parameters
    ----------
    y : RightCensored
        The outcome of n subjects.
    F, C : Distribution
        Forecast and censoring distribution, of n subjects or one that serves all. With delayed entry F is
        the forecast given survival to the entry.
    reached : array, (n,), optional
        P(C >= y), for one event time.
    horizon : array, () or (n,), optional
        End of follow-up for the score, at which y and C are censored already.

    See Also
    --------
    scoring_inputs : Builds them.
    """

    y: RightCensored
    F: Any
    C: Any
    reached: Any = None
    horizon: Any = None
    #: The array namespace of all parts.
    xp: Any = field(init=False, repr=False, compare=False)
    #: Number of subjects.
    n: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        time = self.y.time
        object.__setattr__(self, "xp", np if type(time) is np.ndarray else namespace(time))
        object.__setattr__(self, "n", int(time.shape[0]))

    @property
    def time(self) -> Array:
        """Observed times as a column, (n, 1)."""
        return self.y.time[:, None]

    @property
    def event(self) -> Array:
        """Event indicators as a column, (n, 1)."""
        return self.y.event[:, None]

    @property
    def never(self) -> Array:
        """Whether a competing event showed that the event never happens, as a column, (n, 1)."""
        return self.y.never[:, None]

    @property
    def has_never(self) -> bool:
        """Whether there are such subjects; without competing risks there are none."""
        return isinstance(self.y, EventOfCause) and bool(self.y.never.any())

    @property
    def followed_to_entry(self) -> Array | None:
        """P(C > entry), (n,), by which scores on the ipcw scale are multiplied; None without entries."""
        return followed_to_entry(self.y, self.C)

    def known_at(self, t: Array, scale: str = "localized", remedy: str = LOCALIZED) -> KnownAt:
        """What is known at times t, (1 or n, q): the weights of "event by t" and of "no event by t"."""
        return known_at(self.y, self.C, t, scale, reached=self.reached, remedy=remedy)

    def given_entry(self) -> ScoringInputs:
        """The same inputs with C given C > entry, for scores that divide by P(C > t) itself."""
        if not self.y.has_delayed_entry:
            return self
        return replace(self, C=self.C.given_survival(known_to_exceed(self.y.entry)), reached=None)

    def take(self, rows: Any) -> ScoringInputs:
        """The inputs of some subjects; a distribution that serves all of them stays as it is."""
        if isinstance(rows, slice) and rows == slice(0, self.n):
            return self
        reached, tau = self.reached, self.horizon
        reached = reached if reached is None else reached[rows]
        tau = tau if tau is None or tau.ndim == 0 else tau[rows]
        return ScoringInputs(self.y.take(rows), self.F.take(rows), self.C.take(rows), reached, tau)

    def of_events(self, function: Callable[[ScoringInputs], Array]) -> Array:
        """``function`` of the inputs of subjects with an event, (n,); zero for the others."""
        return self._of(self.y.event, function)

    def of_never(self, function: Callable[[ScoringInputs], Array]) -> Array:
        """``function`` of the inputs of subjects with a competing event, (n,); zero for the others."""
        return self._of(self.y.never, function) if self.has_never else self.xp.zeros_like(self.y.time)

    def _of(self, chosen: Array, function: Callable[[ScoringInputs], Array]) -> Array:
        rows = np.nonzero(to_numpy(chosen))[0]
        if rows.size == self.n:
            return function(self)
        values = self.xp.zeros_like(self.y.time)
        if rows.size:
            values[rows] = function(self.take(rows))
        return values


def scoring_inputs(
    y: OutcomeLike | SemiCompetingRisks,
    forecast: Distribution,
    censoring: Distribution | None,
    horizon: Array = None,
    *,
    joint: bool = False,
    needs_censoring: bool = True,
    check_censoring: bool = True,
    one_cause: bool = False,
    without_entry: str = "",
) -> ScoringInputs:
    """Check and align what a score receives.

    With delayed entry, ``y.entry`` = a, the forecast becomes that of T given T > a.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome.
    forecast, censoring : Distribution
        Of T and of C given the covariates, one per subject or one for all. ``censoring=None`` is allowed
        where C is known.
    horizon : number or (n,) array, optional
        C becomes min(C, horizon).
    joint : bool
        Admit several event times per subject, also those of semi-competing risks. For these the censoring
        distribution is checked against the terminal event, the end of follow-up, and an event that the
        forecast puts after the terminal one is one that never happens.
    needs_censoring : bool
        False for scores that do not depend on the censoring distribution, such as the log score, which
        may be called without it.
    check_censoring : bool
        False for published scores that are defined where the censoring distribution excludes what was
        observed.
    one_cause : bool
        Admit the outcome of one of several competing risks, ``CompetingRisks.cause(j)``: the formula then
        reads ``inputs.never``, the subjects whose event never comes and whose C is at least y.
    without_entry : str
        The name of a score that is not defined for delayed entry: an outcome with entries is an error then.

    Returns
    -------
    ScoringInputs

    Raises
    ------
    MissingCensoringError, ContradictionError, PositivityError, InvalidInputError, InvalidTypeError, \
    ImpossibleForecastError
        Each says what was got, what was expected and what to do.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.scores.inputs.scoring_inputs import scoring_inputs
    >>> y = cs.RightCensored(time=[1.0, 3.0], event=[1, 0])
    >>> scoring_inputs(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), horizon=2.0).y.time
    array([1., 2.])
    """
    if not getattr(y, "row_labels", y) is getattr(forecast, "row_labels", None) is None:
        check_same_order(y=y, forecast=forecast, censoring=censoring)
    if joint and isinstance(y, SemiCompetingRisks):
        return _of_semi_competing_risks(y, forecast, censoring, horizon, needs_censoring)
    y = y if type(y) is RightCensored else as_outcome(y, one_cause=one_cause)
    if without_entry:
        y.require_no_entry(without_entry)
    # after an event of another cause every score is an average over C
    needs_censoring = needs_censoring or (isinstance(y, EventOfCause) and bool(y.never.any()))
    if not isinstance(forecast, Univariate):
        check_is_distribution(forecast, "forecast")
    was_passed = censoring is not None
    if censoring is not None:
        if not isinstance(censoring, Univariate):
            check_is_distribution(censoring, "censoring")
    elif type(y.time) is np.ndarray and y.censoring_time is None and not y.censored.any():
        censoring = _UNCENSORED
    else:
        censoring = known_or_raise(y) if needs_censoring else known_censoring(y) or PointMass(np.inf)
    rows, F, C = int(y.time.shape[0]), size_of(forecast), size_of(censoring)
    y, forecast, censoring = one_library(y, forecast, F.model, censoring, C.model)
    if not (F.n in (1, rows) and C.n in (1, rows)):
        y = y.take(np.zeros(common_rows(outcome=rows, forecast=F.n, censoring=C.n), dtype=np.int64))
    if not y.time.ndim == F.k == C.k == 1:
        check_dimensions(y, forecast, censoring, joint)
    tau = None if horizon is None else check_horizon(horizon, y)
    if tau is not None:
        y, censoring = y.censor_at(tau), _censored_at(censoring, tau, C.n)
    if y.entry is not None and y.has_delayed_entry:
        if isinstance(y, EventOfCause):
            check_given_entry(y, forecast.marginal(0))
        forecast = forecast.given_survival(known_to_exceed(y.entry))
    reached = None
    if check_censoring and (was_passed or needs_censoring):
        if y.time.ndim == 1:
            reached = chance_to_be_seen(y, censoring.marginal(0))
        else:
            for part, C_j in by_censoring_time(y, censoring):
                chance_to_be_seen(part, C_j)
    return ScoringInputs(y, forecast, censoring, reached, tau)


def without_forecast(y: OutcomeLike, censoring: Distribution) -> ScoringInputs:
    """An outcome and its censoring distribution, aligned, where no forecast is scored."""
    C = censoring.marginal(0)
    return scoring_inputs(y, PointMass(np.inf), C, check_censoring=False, one_cause=True)


def _censored_at(C: Distribution, tau: Array, n: int) -> Distribution:
    """The distribution of min(C, tau); a small C keeps the last one, with what that has cached."""
    small = n == 1 or isinstance(C, ProportionalHazards)
    if not small or type(tau) is not np.ndarray or tau.ndim:
        return C.censor_at(tau)
    last: dict[float, Distribution] = C.remember("censored", dict)
    censored = last.get(float(tau))
    if censored is None:
        censored = C.censor_at(tau)
        last.clear()
        last[float(tau)] = censored
    return censored


HORIZONS = 1e-300, 1e300  # fractions of others would lose their digits


def check_horizon(horizon: Array, y: RightCensored) -> Array:
    """A horizon as a positive number or one per subject."""
    if type(horizon) is float and y.time.dtype == np.float64 and HORIZONS[0] <= horizon <= HORIZONS[1]:
        return np.asarray(horizon)
    if isinstance(horizon, str):
        raise InvalidInputError(
            f"horizon must be a time; got {horizon!r}. horizon='auto' is an option of compare()."
        )
    if not is_neutral(horizon):
        one_namespace(outcome=y.time, horizon=horizon)
    tau = as_float(horizon, "horizon", like=y.time)
    check_between(tau, "horizon", *HORIZONS)
    if tau.ndim > 1:
        raise InvalidInputError(f"horizon must be a number or one per subject; got shape {tuple(tau.shape)}.")
    if tau.ndim == 0 or tau.shape[0] == 1:
        return tau.reshape(())
    common_rows(outcome=len(y), horizon=tau.shape[0])
    return tau


def check_scale(scale: str) -> None:
    """Check that a scale is one of the two."""
    if not isinstance(scale, str) or scale != "localized":
        check_option(scale, "scale", ("localized", "ipcw"))


def evaluation_times(times: Array, inputs: ScoringInputs) -> tuple[Array, bool]:
    """Times as (1, q) or (n, q), and whether a single number was given."""
    if times is None:
        raise InvalidInputError("times=... is missing: the times, (q,) or (n, q), at which F is judged.")
    t, single = as_columns(times, "times", inputs.y)
    check_positive(t, "times", zero=True)
    tau = inputs.horizon
    if tau is not None and bool((t >= (tau[:, None] if tau.ndim == 1 else tau)).any()):
        raise InvalidInputError(
            f"Evaluation times must lie below the horizon ({float(to_numpy(tau).min()):g}); got "
            f"{float(to_numpy(t).max()):g}. At the horizon everything is censored and the score is zero for "
            "every forecast."
        )
    return t, single


def quantile_levels(levels: Array, inputs: ScoringInputs) -> tuple[Array, bool]:
    """Levels as (1, q) or (n, q), and whether a single number was given."""
    if levels is None:
        raise InvalidInputError(
            "levels=... is missing: the quantile levels, (q,) or (n, q), strictly in (0, 1)."
        )
    alpha, single = as_columns(levels, "levels", inputs.y)
    check_levels(alpha)
    return alpha, single


def as_columns(values: Array, name: str, y: RightCensored) -> tuple[Array, bool]:
    """A number, (q,) or (n, q) as (1 or n, q) in the library of ``y``, and whether a number was given."""
    time = y.time
    if type(values) is type(time) is np.ndarray and values.dtype == time.dtype:
        array = values
    elif type(values) is float or is_neutral(values):
        array = as_float(values, name, like=time)
    else:
        one_namespace(outcome=time, **{name: values})
        array = convert(as_float(values, name, like=time), time)
    if array.ndim > 2 or 0 in array.shape:
        raise InvalidInputError(f"{name} must be a number, (q,) or (n, q); got shape {tuple(array.shape)}.")
    columns = array.reshape(1, -1) if array.ndim < 2 else array
    if columns.shape[0] != 1:
        common_rows(outcome=time.shape[0], **{name: columns.shape[0]})
    return columns, array.ndim == 0


def _of_semi_competing_risks(
    y: SemiCompetingRisks,
    forecast: Distribution,
    censoring: Distribution | None,
    horizon: Array,
    needs_censoring: bool,
) -> ScoringInputs:
    """The inputs of all event times, from those of the terminal event."""
    check_is_distribution(forecast, "forecast")
    if forecast.k != y.k:
        raise InvalidInputError(f"forecast: got {forecast.k} event times, expected {y.k}, as in the outcome.")
    forecast = before_terminal(forecast, y.terminal)
    end = scoring_inputs(
        y.terminal_event(), forecast.marginal(y.terminal), censoring, horizon, needs_censoring=needs_censoring
    )
    outcome = y if len(y) == end.n else y.take(np.zeros(end.n, dtype=np.int64))
    outcome = outcome.like(end.y.time)
    outcome = outcome if end.horizon is None else outcome.censor_at(end.horizon)
    return replace(end, y=cast(RightCensored, outcome), F=forecast.like(end.y.time))


def left_out(y: Any, censoring: Any, mask: Array) -> tuple[RightCensored, Any, Array]:
    """The outcome with an event at time zero, which says nothing of C, wherever the mask is False."""
    if isinstance(y, SemiCompetingRisks | IntervalCensored):
        raise InvalidInputError(f"mask: not available for {type(y).__name__}; leave it out.")
    y = as_outcome(y)  # competing risks have no mask
    if censoring is None:
        censoring = known_or_raise(y)
    xp = namespace(y.time)
    mask = convert(mask, y.time) if is_torch(y.time) else to_numpy(mask, "mask")
    if mask.dtype != xp.bool:
        raise InvalidInputError(f"mask must be boolean, True where a time counts; got dtype {mask.dtype}.")
    mask = mask.reshape(-1, 1) if mask.ndim == 1 and y.k == 1 else mask
    if tuple(mask.shape) != (len(y), y.k):
        raise InvalidInputError(
            f"mask must have one entry per subject and coordinate, {(len(y), y.k)}; got {tuple(mask.shape)}."
        )
    counts = mask.reshape(y.shape)
    left = RightCensored(xp.where(counts, y.time, 0.0), y.event | ~counts, y.censoring_time)
    return left.with_entry(y.entry), censoring, mask
