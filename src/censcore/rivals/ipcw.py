"""Inverse-probability-of-censoring-weighted scores, with the conventions that libraries differ in."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._numerics import safe_log
from censcore._validation import name_rows
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.scores._problem import Problem, evaluation_times, pose

__all__ = ["CONVENTIONS", "ipcw_binomial_log", "ipcw_brier"]

#: What common implementations do: which survival of C an event is divided by, how the mean is taken, a floor
#: on G; and, as a property of the law that is passed, who comes first where an event and a censoring share a
#: time. Events first is ``Censoring(KaplanMeier())``; censorings first is a Kaplan-Meier curve of the negated
#: events, ``KaplanMeier().fit(None, RightCensored(time, ~event))``.
CONVENTIONS: dict[str, dict[str, Any]] = {
    "graf": {"left_limit": True, "normalize": "rows", "floor": 0.0, "ties": "events first"},
    "gerds-schumacher": {"left_limit": True, "normalize": "rows", "floor": 0.0, "ties": "events first"},
    "scikit-survival": {"left_limit": False, "normalize": "rows", "floor": 0.0, "ties": "events first"},
    "pycox": {"left_limit": True, "normalize": "weights", "floor": 0.0, "ties": "censorings first"},
    "hazardous": {"left_limit": False, "normalize": "rows", "floor": 0.05, "ties": "censorings first"},
    "survival-eval": {"left_limit": False, "normalize": "rows", "floor": 0.0, "ties": "censorings first"},
}


def ipcw_brier(
    y: Any,
    forecast: Any,
    censoring: Any = None,
    times: Array = None,
    *,
    convention: str = "graf",
    left_limit: bool | None = None,
    normalize: str | None = None,
    floor: float | None = None,
) -> Array:
    r"""IPCW Brier score at given times, one loss per row, (n, q).

    .. math:: \frac{S(t)^2\,\mathbb 1\{y\le t\}\,\delta}{G(y-)}+\frac{(1-S(t))^2\,\mathbb 1\{y>t\}}{G(t)}

    With the left limit, means over rows, no floor and the law of C given the covariates it is proper on the
    region where G is positive. With a marginal law of C and covariate-dependent censoring, with G(y) at
    ties, with a floor or with random normalisation it is not.

    Parameters
    ----------
    y, forecast, censoring : outcome and Distributions
        As for every score. The order of events and censorings at ties is a property of the law of C, see
        ``CONVENTIONS``.
    times : array
        Evaluation times.
    convention : str
        A key of ``CONVENTIONS``; the options below override single choices.
    left_limit : bool, optional
        Divide events by G(y-), or by G(y).
    normalize : {"rows", "weights"}, optional
        ``"weights"`` divides by the sum of the weights instead of n; the rows are scaled so that their plain
        mean is that ratio.
    floor : float, optional
        Smallest value of G that is divided by.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.rivals import ipcw_brier
    >>> y = cs.RightCensored([1.0, 3.0, 2.0], [1, 1, 0])
    >>> ipcw_brier(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5]).round(4)
    array([[0.2789],
           [0.3977],
           [0.3977]])
    """
    problem, t, options = _prepare(y, forecast, censoring, times, convention, left_limit, normalize, floor)
    S = problem.F.sf(t)
    return _weighted(problem, t, options, event=S**2, survivor=(1 - S) ** 2)


def ipcw_binomial_log(
    y: Any,
    forecast: Any,
    censoring: Any = None,
    times: Array = None,
    *,
    convention: str = "graf",
    left_limit: bool | None = None,
    normalize: str | None = None,
    floor: float | None = None,
) -> Array:
    """IPCW binomial log score, (n, q): :func:`ipcw_brier` with -log F(t) and -log S(t) for the squares.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.rivals import ipcw_binomial_log
    >>> y = cs.RightCensored([1.0, 3.0, 2.0], [1, 1, 0])
    >>> ipcw_binomial_log(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5]).round(4)
    array([[0.7992],
           [1.0714],
           [1.0714]])
    """
    problem, t, options = _prepare(y, forecast, censoring, times, convention, left_limit, normalize, floor)
    return _weighted(problem, t, options, event=-safe_log(problem.F.cdf(t)), survivor=-problem.F.logsf(t))


def _prepare(
    y: Any, forecast: Any, censoring: Any, times: Array, convention: str, *overrides: Any
) -> tuple[Problem, Array, dict[str, Any]]:
    if times is None:
        raise InvalidInputError("IPCW scores need times=..., the times at which F is judged.")
    if convention not in CONVENTIONS:
        raise InvalidInputError(f"convention must be one of {sorted(CONVENTIONS)}; {convention!r} came.")
    options = dict(CONVENTIONS[convention])
    options |= {
        name: value
        for name, value in zip(("left_limit", "normalize", "floor"), overrides, strict=True)
        if value is not None
    }
    if options["normalize"] not in ("rows", "weights"):
        raise InvalidInputError(f"normalize must be 'rows' or 'weights'; {options['normalize']!r} came.")
    problem = pose(y, forecast, censoring)
    t, _ = evaluation_times(times, problem.y, None)
    return problem, t, options


def _weighted(problem: Problem, t: Array, options: dict[str, Any], event: Array, survivor: Array) -> Array:
    weight, dead = _weights(problem, t, options)
    loss = np.where(weight > 0, weight * np.where(dead, to_numpy(event), to_numpy(survivor)), 0.0)
    if options["normalize"] == "weights":
        loss = loss * len(weight) / weight.sum(axis=0)
    return loss


def _weights(problem: Problem, t: Array, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Inverse probabilities (n, q), zero for rows censored before t, and who has had the event by t."""
    time, delta = to_numpy(problem.y.time)[:, None], to_numpy(problem.y.event)[:, None]
    at_event = problem.C.sf_left(problem.y.time) if options["left_limit"] else problem.C.sf(problem.y.time)
    at_event = np.maximum(np.broadcast_to(to_numpy(at_event), (problem.n,)), options["floor"])[:, None]
    at_time = np.maximum(to_numpy(problem.C.sf(t)), options["floor"])
    dead, alive = (time <= t) & delta, time > t
    divisor = np.where(dead, at_event, at_time)
    bad = (dead | alive) & (divisor <= 0)
    if bad.any():
        rows = np.unique(bad.nonzero()[0])
        raise PositivityError(
            f"This score divides by P(C > t) and P(C > y), and one of them is zero in {name_rows(rows)}. "
            "Evaluate at earlier times.",
            rows=rows.tolist(),
        )
    return np.where(dead | alive, 1.0 / np.where(divisor > 0, divisor, 1.0), 0.0), dead
