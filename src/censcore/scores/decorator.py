"""A score from its formula: what every score does before and after the formula, once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any, Literal, Protocol

from censcore._arrays import Array, ArrayLike, in_eager
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import CompetingRisks, IntervalCensored, OutcomeLike, SemiCompetingRisks
from censcore.scores.inputs.scoring_inputs import (
    ScoringInputs,
    evaluation_times,
    left_out,
    quantile_levels,
    scoring_inputs,
)
from censcore.scores.registry import Axis, ScoreInfo, register
from censcore.scores.rules.interval import through_visits
from censcore.scores.rules.over_causes import inputs_of_causes, sum_over_classes

__all__ = ["score"]

Formula = Callable[..., Array]


class Score(Protocol):
    """How scores are called, with ``times`` or ``levels`` after ``censoring`` where there is such an axis."""

    def __call__(
        self,
        y: OutcomeLike | SemiCompetingRisks,
        forecast: Distribution,
        censoring: Distribution | None = None,
        *at: ArrayLike,
        horizon: ArrayLike | None = None,
        **options: Any,
    ) -> Array: ...


COLUMNS = {"time": "times", "level": "levels", "": ""}  # the argument of each axis


def score(
    name: str | None = "",
    *,
    title: str = "",
    formula: str = "",
    reference: str = "",
    axis: Axis = "",
    joint: bool = False,
    needs_censoring: bool = True,
    causes: Formula | Literal["sum"] | None = "sum",
    intervals: Callable[..., ArrayLike] | Literal["detection"] | None = "detection",
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
    joint : bool
        Whether it takes several event times per subject.
    needs_censoring : bool
        Whether the loss depends on the censoring distribution, which must be given then unless it is known.
    causes : callable, "sum" or None
        The score of competing risks as a whole: half the sum of the scores of any cause and of each, a
        formula of :class:`~censcore.scores.rules.over_causes.InputsOfCauses`, or none.
    intervals : callable, "detection" or None
        The score of interval-censored data: that of the detection time, a function called as the score
        itself, or none.
    **known
        Further fields of :class:`~censcore.scores.registry.ScoreInfo`, above all ``uses_censoring``.

    Returns
    -------
    callable
        A decorator. Keyword arguments of the formula become arguments of the score, and its docstring is that
        of the score.

    Notes
    -----
    A call is checked, brought into one array library, dtype and device, given to the formula, and brought
    into shape. Before the formula, competing risks as a whole become their causes, interval-censored data and
    their forecast those of the detection time, and y and C are censored at the horizon. After it, losses of
    one subject that serve all are repeated, and the axis of a single time is dropped.

    ``inputs`` are :class:`~censcore.scores.inputs.scoring_inputs.ScoringInputs`: ``inputs.F`` and
    ``inputs.C``, the distributions of T and C, and ``inputs.known_at(t).weights()``, the weights of "event
    by t" and "no event by t", also with delayed entry and for one of several causes. A formula of
    ``inputs.time`` and ``inputs.event`` must read ``inputs.never`` too, the subjects who never have the
    event, since one of another cause was first; :func:`~censcore.testing.check_score` checks that. The
    option ``mask`` of a joint score, (n, k), leaves coordinates out: the formula gets it checked.

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
        own, columns = partial(_shaped, function, axis), COLUMNS[axis]

        def losses(
            y: OutcomeLike | SemiCompetingRisks,
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
            if joint and options.get("mask") is not None:
                y, censoring, options["mask"] = left_out(y, censoring, options["mask"])
            if isinstance(y, CompetingRisks) and causes is not None:
                if causes == "sum":
                    return sum_over_classes(losses, y, forecast, censoring, *at, horizon=horizon, **options)
                of_causes = inputs_of_causes(y, forecast, censoring, horizon, needs_censoring=needs_censoring)
                return _shaped(causes, axis, of_causes, *at, **options)
            if isinstance(y, IntervalCensored) and intervals is not None:
                if intervals != "detection":
                    return intervals(y, forecast, censoring, *at, horizon=horizon, **options)
                members, times = joint or "fair" in options, at[0] if axis == "time" else None
                y, forecast, censoring = through_visits(
                    y, forecast, censoring, horizon, times=times, members=members
                )
            inputs = scoring_inputs(
                y, forecast, censoring, horizon, joint=joint, needs_censoring=needs_censoring, one_cause=True
            )
            return own(inputs, *at, **options)

        eager = in_eager(losses)

        def done(*args: Any, **options: Any) -> Array:
            return (eager if "torch" in sys.modules else losses)(*args, **options)

        update_wrapper(done, function)
        done.__signature__ = _signature(function, columns)  # type: ignore[attr-defined]
        word = function.__name__ if name == "" else name
        if word is not None:
            whole = causes if causes is None or causes == "sum" else "own"
            fields: dict[str, Any] = {"joint": joint, "causes": whole, "losses": own, **known}
            register(ScoreInfo(word, done, title or word, formula, reference, axis, **fields))
        return done

    if not (name is None or isinstance(name, str)):
        raise InvalidTypeError(f"name: got {type(name).__name__}, expected a string: @score('name', ...).")
    if axis not in COLUMNS:
        raise InvalidInputError(f"axis: got {axis!r}, expected 'time', 'level' or ''.")
    return decorate


def _shaped(formula: Formula, axis: Axis, inputs: ScoringInputs, *at: Array, **options: Any) -> Array:
    """A formula of checked inputs, one loss per subject and time: (n,) or (n, q)."""
    expected: tuple[int, ...] = (inputs.n,)
    if not axis:
        loss, single = formula(inputs, **options), False
    else:
        read = evaluation_times if axis == "time" else quantile_levels
        t, single = read(at[0], inputs)
        loss, expected = formula(inputs, t, **options), (inputs.n, int(t.shape[1]))
    if loss.shape != expected:
        if tuple(loss.shape) != (1, *expected[1:]):
            raise InvalidInputError(
                f"The formula of {formula.__name__}: got losses of shape {tuple(loss.shape)}, expected one "
                f"per subject{' and column' if axis else ''}, {expected}."
            )
        loss = inputs.xp.broadcast_to(loss, expected)
    return loss[:, 0] if single else loss


def _signature(function: Formula, columns: str) -> Signature:
    """That of the score: the outcome and the distributions in place of the inputs, and a horizon."""
    _, *own = signature(function).parameters.values()
    options = [part.replace(kind=Parameter.KEYWORD_ONLY) for part in own[bool(columns) :]]
    _, y, forecast, censoring, at, horizon, _ = signature(Score.__call__).parameters.values()
    at = at.replace(name=columns or "at", kind=Parameter.POSITIONAL_OR_KEYWORD, default=None)
    shared = [y, forecast, censoring, at] if columns else [y, forecast, censoring]
    return Signature([*shared, *options, horizon], return_annotation="Array")
