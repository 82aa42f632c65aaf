"""A score from its formula: what every score of one event time does before and after the formula, once."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import update_wrapper
from inspect import Parameter, Signature, cleandoc, signature
from textwrap import fill
from typing import Any, Protocol, TypeVar

from censcore._arrays import Array, as_loss
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import CompetingRisks, IntervalCensored, OutcomeLike
from censcore.scores.inputs import ScoringInputs, evaluation_times, quantile_levels, scoring_inputs
from censcore.scores.interval import through_visits
from censcore.scores.over_causes import over_all_causes
from censcore.scores.registry import Axis, ScoreInfo, register

__all__ = ["score"]

Formula = Callable[..., Array]
Losses = TypeVar("Losses", bound=Callable[..., Array])


class Score(Protocol):
    """How scores are called, with ``times`` or ``levels`` after ``censoring`` where there is such an axis."""

    def __call__(
        self,
        y: OutcomeLike,
        forecast: Distribution,
        censoring: Distribution | None = None,
        *at: Array,
        horizon: Array = None,
        **options: Any,
    ) -> Array: ...


COLUMNS = {"time": "times", "level": "levels", "": ""}  # the argument of each axis

#: What scores take alike. Docstrings that do not describe it are completed.
SHARED = {
    "y": """RightCensored, CompetingRisks, IntervalCensored, structured array or frame
    The outcome of n subjects. For interval-censored data the detection time is scored, the first visit at
    or after T, with the forecast sent through the same visits.""",
    "forecast": """Distribution
    Distribution of T given the covariates, one per subject or one for all.""",
    "censoring": """Distribution, optional
    Distribution of C given the covariates. It may be left out only where it is known: nothing is
    censored, or ``y.censoring_time`` is given.""",
    "times": """array or number
    Evaluation times, (q,) or (n, q), in any order, below the horizon.""",
    "levels": """array or number
    Quantile levels strictly between 0 and 1, (q,) or (n, q).""",
    "horizon": """number or (n,) array, optional
    End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
    count; of discrete times take the first one after those that count (13 to judge month 12).""",
}


def score(
    name: str | None = "",
    *,
    title: str = "",
    formula: str = "",
    reference: str = "",
    axis: Axis = "",
    over_causes: Callable[..., Array] | None = over_all_causes,
    **known: Any,
) -> Callable[[Formula], Score]:
    r"""Make a score of a formula, and register it.

    The decorated function is the formula: it receives checked inputs and returns losses. What it becomes is
    called as all scores are, ``score(y, forecast, censoring, horizon=...)``, with ``times`` or ``levels``
    after ``censoring`` where it has such an axis. Its name works in :func:`compare`, in :func:`scorer` and on
    the command line.

    Parameters
    ----------
    name : str or None
        By which it is asked for; by default the name of the function. None does not register the score.
    title, formula, reference : str
        For tables, axes and the card of the score: a title (by default the name), the loss in TeX, and where
        it comes from.
    axis : {"time", "level", ""}
        Whether there is one loss per subject and evaluation time, or quantile level: ``formula(inputs, t)``
        then gets them as (1 or n, q) and returns (n, q). Otherwise ``formula(inputs)`` returns (n,).
    over_causes : callable, optional
        The score of competing risks as a whole, ``over_causes(score, y, forecast, censoring, ...)``. By
        default half the sum of the scores of any cause and of each; None if there is none.
    **known
        Further fields of :class:`~censcore.scores.registry.ScoreInfo`, above all ``uses_censoring``.

    Returns
    -------
    callable
        A decorator. Keyword arguments of the formula become arguments of the score. The docstring of the
        formula is that of the score; if it has a section Returns, arguments that all scores have are added to
        its parameters, and the reference where it has none.

    Notes
    -----
    Before the formula, competing risks as a whole become their causes, and interval-censored data and their
    forecast those of the detection time. All inputs are checked and brought into one array library, dtype and
    device; y and C are censored at the horizon. After it, losses of one subject that serve all are repeated,
    and the axis of a single time is dropped.

    ``inputs`` are :class:`~censcore.scores.inputs.ScoringInputs`: ``inputs.F`` and ``inputs.C``, the
    distributions of T and C, and ``inputs.known_at(t).weights()``, the weights of "event by t" and "no event
    by t", also with delayed entry and for one of several causes. A formula of ``inputs.time`` and
    ``inputs.event`` must read ``inputs.never`` too, the subjects who never have the event, since one of
    another cause was first; :func:`~censcore.testing.check_score` checks that.

    See Also
    --------
    censcore.testing.check_score : Checks that a score keeps the contract, propriety included.
    censcore.scores.register : Registers a function that is a score already.

    Examples
    --------
    The asymmetric Brier score, by which missed events cost more:

    >>> import censcore as cs
    >>> from censcore.scores import score
    >>> @score(title="asymmetric Brier score", axis="time", uses_censoring="at times")
    ... def asymmetric_brier(inputs, times, *, missed=2.0):
    ...     event, free = inputs.known_at(times).weights()
    ...     F = inputs.F.cdf(times)
    ...     return missed * event * (F**2 / 2 - F + 1 / 2) + free * F**2 / 2
    >>> y = cs.RightCensored(time=[0.5, 3.0, 2.0], event=[1, 1, 0])
    >>> asymmetric_brier(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.0, 2.5]).round(4)
    array([[0.327 , 0.0456],
           [0.0774, 0.2545],
           [0.0774, 0.    ]])
    """

    def decorate(function: Formula) -> Score:
        losses = described(_score_of(function, axis, over_causes), over_causes is not None, reference)
        word = getattr(function, "__name__", "") if name == "" else name
        if word is not None:
            fields = known | {"over_causes": over_causes is not None}
            register(ScoreInfo(word, losses, title or word, formula, reference, axis, **fields))
        return losses

    if not (name is None or isinstance(name, str)):
        raise InvalidTypeError(f"name: got {type(name).__name__}, expected a string: @score('name', ...).")
    if axis not in COLUMNS:
        raise InvalidInputError(f"axis: got {axis!r}, expected 'time', 'level' or ''.")
    return decorate


def _score_of(function: Formula, axis: Axis, over_causes: Callable[..., Array] | None) -> Score:
    columns = COLUMNS[axis]

    def losses(
        y: OutcomeLike,
        forecast: Distribution,
        censoring: Distribution | None = None,
        *at: Array,
        horizon: Array = None,
        **options: Any,
    ) -> Array:
        if len(at) > bool(columns):
            raise InvalidTypeError(
                f"{function.__name__}: got {3 + len(at)} positional arguments, expected y, forecast, "
                f"censoring{columns and ', '}{columns}; pass others by name."
            )
        if columns and not at:
            at = (options.pop(columns, None),)
        if over_causes is not None and isinstance(y, CompetingRisks):
            return over_causes(losses, y, forecast, censoring, *at, horizon=horizon, **options)
        if isinstance(y, IntervalCensored):
            times = at[0] if axis == "time" else None
            y, forecast, censoring = through_visits(y, forecast, censoring, horizon, times=times)
        return of_inputs(scoring_inputs(y, forecast, censoring, horizon, one_cause=True), *at, **options)

    def of_inputs(inputs: ScoringInputs, *at: Array, **options: Any) -> Array:
        if not columns:
            loss = function(inputs, **options)
            return loss if loss.shape == (inputs.n,) else _of_all(loss, inputs, function)
        if axis == "time":
            t, single = evaluation_times(at[0], inputs.y, inputs.horizon)
        else:
            t, single = quantile_levels(at[0], inputs.y)
        loss = _of_all(function(inputs, t, **options), inputs, function, int(t.shape[1]))
        return loss[:, 0] if single else loss

    update_wrapper(losses, function)
    losses.__signature__ = _signature(function, columns)  # type: ignore[attr-defined]
    losses.of_inputs = of_inputs  # type: ignore[attr-defined]  # for several scores of the same inputs
    losses.over_causes = over_causes  # type: ignore[attr-defined]
    return as_loss(losses)


def described(score: Losses, causes: bool = True, reference: str = "") -> Losses:
    """The score, its docstring completed by the parameters that all scores have, and by its reference."""
    text, returns, rest = cleandoc(score.__doc__ or "").partition("\nReturns\n")
    if returns:
        text, _, own = text.partition("\nParameters\n----------\n")
        left_out = [name for name in signature(score).parameters if not re.search(rf"(?m)^{name}\b", own)]
        entries = {name: f"{name} : {SHARED[name]}\n" for name in SHARED if name in left_out}
        last = entries.pop("horizon", "")
        first = "".join(entries.values()).replace("" if causes else "CompetingRisks, ", "")
        if reference and "\nReferences\n" not in rest:
            cited = fill(f".. [1] {reference}", 100, subsequent_indent="   ")
            rest = rest.replace("\nExamples\n", f"\nReferences\n----------\n{cited}\n\nExamples\n", 1)
        score.__doc__ = f"{text}\nParameters\n----------\n{first}{own}{last}{returns}{rest}"
    return score


def _of_all(loss: Array, inputs: ScoringInputs, function: Formula, *columns: int) -> Array:
    """The losses, (n, *columns); those of one subject that serve all are repeated."""
    shape, expected = tuple(loss.shape), (inputs.n, *columns)
    if shape == expected:
        return loss
    if shape != (1, *columns):
        raise InvalidInputError(
            f"The formula of {function.__name__}: got losses of shape {shape}, expected one per subject"
            f"{' and column' if columns else ''}, {expected}."
        )
    return inputs.xp.broadcast_to(loss, expected)


def _signature(function: Formula, columns: str) -> Signature:
    """That of the score: the outcome and the distributions in place of the inputs, and a horizon."""
    _, *own = signature(function).parameters.values()
    options = [part.replace(kind=Parameter.KEYWORD_ONLY) for part in own[bool(columns) :]]
    _, y, forecast, censoring, at, horizon, _ = signature(Score.__call__).parameters.values()
    at = at.replace(name=columns or "at", kind=Parameter.POSITIONAL_OR_KEYWORD, default=None)
    shared = [y, forecast, censoring, at] if columns else [y, forecast, censoring]
    return Signature([*shared, *options, horizon], return_annotation="Array")
