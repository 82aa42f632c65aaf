r"""The scores of a comparison by name: their losses, and how their mean moves with the law of C.

Every score here is an integral over times s of what it pays for s, weighted by :math:`G(s)/G(y-)` for events
and by 1 for rows still followed (divided by G(s) on the ipcw scale). If the hazard of C at time u is a
little larger, everything that lies beyond u weighs less. So the derivative of a mean loss with respect to
:math:`\log\{1-d\Lambda_C(u)\}` is

.. math::
    A(u)=\sum_{i:\,y_i\le u}w_i\{\ell_i-\ell_i^{(u)}\}\quad\text{(localized)},\qquad
    A(u)=-\sum_{i:\,y_i>u}w_i\{\ell_i-\ell_i^{(u)}\}\quad\text{(ipcw)},

where :math:`\ell^{(u)}` is the loss under the horizon u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Univariate
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores import (
    binomial_log_score,
    brier_score,
    crps,
    integrated_brier_score,
    log_score,
    pinball_score,
)

__all__ = ["DEFAULT_SCORES", "SCORES", "Case", "Score", "named_scores"]

CELLS = 40  # of the time axis, for derivatives of integrated scores
HORIZONS = 24  # at which a score of the user's own is taken again, for the same purpose


@dataclass(frozen=True)
class Case:
    """One forecast of the outcomes y under the law C, and at what it is judged."""

    y: RightCensored
    F: Distribution
    C: Distribution
    horizon: float
    times: np.ndarray
    levels: np.ndarray

    def take(self, rows: np.ndarray) -> Case:
        """Some rows of the case."""
        F, C = (law if len(law) == 1 else law.take(rows) for law in (self.F, self.C))
        return replace(self, y=self.y.take(rows), F=F, C=C)

    @cached_property
    def time(self) -> np.ndarray:
        """Observed times up to the horizon, (n,)."""
        return np.minimum(to_numpy(self.y.time), self.horizon)

    @cached_property
    def cells(self) -> np.ndarray:
        """Edges from 0 to the horizon, between quantiles of the observed times."""
        inner = np.quantile(self.time, np.linspace(0, 1, CELLS + 1)[1:-1])
        even = np.linspace(0, self.horizon, CELLS // 4 + 1)
        edges = np.unique(np.concatenate([inner, even]))
        return edges[(edges <= self.horizon)]

    @cached_property
    def brier_in_cells(self) -> np.ndarray:
        """Brier losses in the middle of every cell, (n, cells)."""
        return self.at(brier_score, (self.cells[:-1] + self.cells[1:]) / 2)

    def at(self, score: Callable[..., Any], times: np.ndarray, **options: Any) -> np.ndarray:
        """Losses of a score at times, (n, q)."""
        return as_losses(score(self.y, self.F, self.C, times, horizon=self.horizon, **options))

    @cached_property
    def quantiles(self) -> np.ndarray:
        """Forecast quantiles up to the horizon, (n, levels)."""
        q = np.minimum(to_numpy(self.F.marginal(0).icdf(self.levels[None, :])), self.horizon)
        return np.broadcast_to(q, (len(self.y), len(self.levels)))


def as_losses(values: Any) -> np.ndarray:
    """Losses of any library and precision as (n, q) doubles."""
    losses = to_numpy(values).astype(np.float64)
    return losses[:, None] if losses.ndim == 1 else losses


def sums_up_to(
    time: np.ndarray, weight: np.ndarray, values: np.ndarray, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums of ``values`` (n, q) over rows with time <= u, (J, q), and over all rows, (q,).

    u is ascending. Infinite values, whose mean has no error, are left out.
    """
    from scipy.sparse import csr_array

    n, J = len(time), len(u)
    first = np.searchsorted(u, time)  # the first u that a row counts for
    counts = csr_array((weight, first, np.arange(n + 1)), shape=(n, J + 1)).T
    finite = values if np.isfinite(values).all() else np.where(np.isfinite(values), values, 0.0)
    sums = np.cumsum(counts @ finite, axis=0)
    return sums[:-1], sums[-1]


class Score(ABC):
    """A score by name."""

    name: str
    title: str
    #: What the columns are: "time", "level" or nothing for a single column.
    axis: str = ""

    def at(self, case: Case) -> np.ndarray:
        """The times or levels of the columns; NaN for a score without any."""
        return {"time": case.times, "level": case.levels}.get(self.axis, np.array([np.nan]))

    @abstractmethod
    def losses(self, case: Case) -> np.ndarray:
        """One loss per row and column, (n, q)."""

    @abstractmethod
    def derivative(
        self, case: Case, losses: np.ndarray, weight: np.ndarray, law: Univariate, u: np.ndarray
    ) -> np.ndarray:
        """A(u), (J, q), for rows that share one ``law`` of C; weights (n,) need not sum to one."""


@dataclass(frozen=True)
class LogScore(Score):
    """The law of C drops out of it."""

    name: str = "log_score"
    title: str = "log score"

    def losses(self, case: Case) -> np.ndarray:
        return as_losses(log_score(case.y, case.F, case.C, horizon=case.horizon))

    def derivative(
        self, case: Case, losses: np.ndarray, weight: np.ndarray, law: Univariate, u: np.ndarray
    ) -> np.ndarray:
        return np.zeros((len(u), 1))


@dataclass(frozen=True)
class AtTimes(Score):
    """A score of F(tau): whoever pays it, pays it at the one time s = tau."""

    name: str
    title: str
    function: Callable[..., Any]
    ipcw: bool = False
    axis: str = "time"

    def losses(self, case: Case) -> np.ndarray:
        return case.at(self.function, case.times, **({"scale": "ipcw"} if self.ipcw else {}))

    def derivative(
        self, case: Case, losses: np.ndarray, weight: np.ndarray, law: Univariate, u: np.ndarray
    ) -> np.ndarray:
        return of_single_times(case, losses, weight, case.times, u, self.ipcw)


def of_single_times(
    case: Case, losses: np.ndarray, weight: np.ndarray, times: np.ndarray, u: np.ndarray, ipcw: bool
) -> np.ndarray:
    before, everything = sums_up_to(case.time, weight, losses, u)
    return np.where(u[:, None] <= times, before - everything if ipcw else before, 0.0)


@dataclass(frozen=True)
class Integrated(Score):
    """A Brier score integrated over time; the derivative is taken cell by cell and interpolated."""

    name: str
    title: str
    ipcw: bool = False

    def losses(self, case: Case) -> np.ndarray:
        if not self.ipcw:
            return as_losses(crps(case.y, case.F, case.C, horizon=case.horizon))
        loss = integrated_brier_score(
            case.y, case.F, case.C, scale="ipcw", normalize=True, horizon=case.horizon
        )
        return as_losses(loss)

    def derivative(
        self, case: Case, losses: np.ndarray, weight: np.ndarray, law: Univariate, u: np.ndarray
    ) -> np.ndarray:
        edges = case.cells
        middle, width = (edges[:-1] + edges[1:]) / 2, np.diff(edges)
        brier = case.brier_in_cells
        if self.ipcw:
            brier, width = brier / to_numpy(law.sf(middle[None, :])), width / case.horizon
        A = of_single_times(case, brier, weight, middle, edges, self.ipcw) @ width
        return np.interp(u, edges, A)[:, None]


@dataclass(frozen=True)
class Pinball(Score):
    """An event pays for the area under G between y and the quantile."""

    name: str = "pinball_score"
    title: str = "pinball score"
    axis: str = "level"

    def losses(self, case: Case) -> np.ndarray:
        return as_losses(pinball_score(case.y, case.F, case.C, case.levels, horizon=case.horizon))

    def derivative(
        self, case: Case, losses: np.ndarray, weight: np.ndarray, law: Univariate, u: np.ndarray
    ) -> np.ndarray:
        event = to_numpy(case.y.event) & (to_numpy(case.y.time) <= case.horizon)
        reach = np.broadcast_to(to_numpy(law.sf_left(case.time)), case.time.shape)
        share = np.where(event, weight / np.where(event, reach, 1.0), 0.0)
        # the sum of share (1 - level) (area up to q - area up to u) over y <= u < q
        q = case.quantiles
        area = to_numpy(law.integrated_sf(0.0, q.reshape(1, -1))).reshape(q.shape)
        late = q > case.time[:, None]
        both = np.column_stack([np.where(late, area, 0.0), late])
        inside = sums_up_to(case.time, share, both, u)[0]
        for k, column in enumerate(q.T):
            of_level = [k, k + q.shape[1]]
            inside[:, of_level] -= sums_up_to(column, share, both[:, of_level], u)[0]
        areas, shares = np.split(inside, 2, axis=1)
        area_up_to_u = to_numpy(law.integrated_sf(0.0, u[None, :])).reshape(-1, 1)
        return (1 - case.levels) * (areas - shares * area_up_to_u)


@dataclass(frozen=True)
class Own(Score):
    """A score of the user's own, ``f(y, forecast, censoring, horizon=h)``, on the localized scale."""

    name: str
    function: Callable[..., Any]

    @property
    def title(self) -> str:  # type: ignore[override]
        return self.name

    def losses(self, case: Case) -> np.ndarray:
        return self._until(case, case.horizon)

    def _until(self, case: Case, horizon: float) -> np.ndarray:
        losses = as_losses(self.function(case.y, case.F, case.C, horizon=horizon))
        if losses.shape != (len(case.y), 1):
            raise InvalidInputError(
                f"The score {self.name!r} must give one loss per row, ({len(case.y)},); {losses.shape} came."
            )
        return losses

    def derivative(
        self, case: Case, losses: np.ndarray, weight: np.ndarray, law: Univariate, u: np.ndarray
    ) -> np.ndarray:
        seen = to_numpy(case.y.event) & (to_numpy(case.y.time) <= case.horizon)
        knots = u if len(u) <= HORIZONS else np.quantile(u, np.linspace(0, 1, HORIZONS))
        A = np.zeros(len(knots))
        for k, knot in enumerate(knots):
            rows = np.nonzero(seen & (case.time <= knot))[0]
            if rows.size and knot > 0:
                beyond = losses[rows] - self._until(case.take(rows), knot)
                A[k] = weight[rows] @ np.where(np.isfinite(beyond), beyond, 0.0)[:, 0]
        return np.interp(u, knots, A)[:, None] if len(u) else np.zeros((0, 1))


SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        LogScore(),
        Integrated("crps", "CRPS"),
        AtTimes("brier_score", "Brier score", brier_score),
        AtTimes("brier_score:ipcw", "Brier score, ipcw", brier_score, ipcw=True),
        Integrated("integrated_brier_score:ipcw", "integrated Brier score, ipcw", ipcw=True),
        AtTimes("binomial_log_score", "binomial log score", binomial_log_score),
        Pinball(),
    )
}
DEFAULT_SCORES = tuple(SCORES)


def named_scores(scores: str | Iterable[str] | Mapping[str, Any]) -> list[Score]:
    """Scores by name, in the order asked for; a mapping may bring functions of the user's own."""
    if isinstance(scores, str):
        scores = [scores]
    given: dict[str, Any] = dict(scores) if isinstance(scores, Mapping) else dict.fromkeys(scores)
    found: list[Score] = []
    for name, function in given.items():
        if callable(function):
            found.append(Own(name, function))
        elif name in SCORES:
            found.append(SCORES[name])
        else:
            raise InvalidInputError(
                f"There is no score called {name!r}. There are {', '.join(SCORES)}; a score of your own "
                "comes as {name: function}, with function(y, forecast, censoring, horizon=h) giving one "
                "loss per row."
            )
    if not found:
        raise InvalidInputError("scores must name at least one score.")
    return found
