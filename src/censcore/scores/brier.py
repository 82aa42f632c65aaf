"""Brier score at given times."""

from __future__ import annotations

from typing import Any

from censcore._arrays import Array, to_numpy
from censcore._validation import name_rows
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.scores._problem import Problem, evaluation_times, pose

__all__ = ["brier_score", "censoring_weights"]


def brier_score(
    y: Any,
    forecast: Any,
    censoring: Any = None,
    times: Array = None,
    *,
    scale: str = "localized",
    horizon: Array = None,
) -> Array:
    r"""Brier score of a right-censored event time at given times.

    .. math::
        \mathbb 1\{y>\tau\}\,F(\tau)^2+\delta\,\mathbb 1\{y\le\tau\}\,\frac{G(\tau)}{G(y-)}\,(1-F(\tau))^2

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the Brier score of :math:`\min(T,C)`, averaged over
    the values of C that the observation allows. Proper for :math:`F(\tau)` wherever :math:`G(\tau)>0`, if C is
    independent of T given the covariates and its law is right; the law must not be fitted to the forecast.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome, n rows.
    forecast : Distribution
        Law of T, one per row.
    censoring : Distribution, optional
        Law of C. It may be left out only where it is known: nothing is censored, or ``y.censoring_time`` is given.
    times : array or number
        Evaluation times, (q,) or (n, q), in any order, below the horizon.
    scale : {"localized", "ipcw"}
        ``"ipcw"`` divides by :math:`G(\tau)`, the classical inverse-probability-of-censoring-weighted score, whose
        mean estimates the uncensored Brier score; it refuses times where any row has :math:`G(\tau)=0`.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon).

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per row and time; lower is better.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.brier_score(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5, 2.5]).round(4)
    array([[0.1952, 0.0513],
           [0.2784, 0.5091],
           [0.2784, 0.    ]])
    """
    if scale not in ("localized", "ipcw"):
        raise InvalidInputError(f"scale must be 'localized' or 'ipcw'; {scale!r} came.")
    if times is None:
        raise InvalidInputError("brier_score needs times=..., the times at which F is judged.")
    problem = pose(y, forecast, censoring, horizon)
    t, single = evaluation_times(times, problem.y, horizon)
    loss = _brier(problem, t)
    if scale == "ipcw":
        loss = loss / _positive_survival(problem, t)
    return loss[:, 0] if single else loss


def _brier(problem: Problem, t: Array) -> Array:
    survival = problem.F.sf(t)
    alive, weight = censoring_weights(problem, t)
    return problem.xp.where(alive, (1 - survival) ** 2, weight * survival**2)


def censoring_weights(problem: Problem, t: Array) -> tuple[Array, Array]:
    r"""Who is alive at t, (n, q), and :math:`\delta\,G(t)/G(y-)`, the weight of those who are not."""
    xp, y, C = problem.xp, problem.y, problem.C
    time, event = y.time.reshape(-1, 1), y.event.reshape(-1, 1)
    reached = C.sf_left(xp.where(event, time, xp.zeros_like(time)))
    weight = xp.astype(event, time.dtype) / xp.where(event, reached, xp.ones_like(reached))
    return time > t, weight * C.sf(t)


def _positive_survival(problem: Problem, t: Array) -> Array:
    G = problem.C.sf(t)
    bad = to_numpy(G) <= 0
    if bad.any():
        rows, columns = bad.nonzero()
        first = float(to_numpy(t + 0 * G)[rows, columns].min())
        raise PositivityError(
            f"scale='ipcw' divides by P(C > t), which is zero from t = {first:g} in {name_rows(sorted(set(rows)))}. "
            "Evaluate at smaller times, or use scale='localized', which needs no such division.",
            rows=sorted(set(rows.tolist())),
        )
    return G
