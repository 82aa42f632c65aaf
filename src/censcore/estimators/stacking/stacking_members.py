"""Members of a stack: their draws, and their losses on held-out subjects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble
from censcore.distributions.random_draws import SubjectDraws, keys_of
from censcore.estimators.covariates import take_rows
from censcore.estimators.libraries.sample_predictions import MOST_SAMPLES
from censcore.estimators.regression.cause_times import of_draws
from censcore.estimators.stacking.stacking_subjects import StackSubjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores import crps, energy_score, log_score
from censcore.scores.inputs.known_at import over_reached

_ORDERS = 720  # of the times, of more than six not all
_DRAWS = 40_000, 64, 128  # of each forecast for all held-out subjects, and for one at least and at most
_CELLS = 2**20, 256  # of time for the distances between forecasts: of all held-out subjects, and of one


class _Forecast(NamedTuple):
    """A forecast of one event time; a drawn one is a sample of the distribution that is meant."""

    F: Any
    drawn: bool = False


@dataclass(frozen=True)
class MemberDraws:
    """Draws of event times from the forecasts of fitted models."""

    causes: Any  #: names, of competing risks
    ordered: bool = False  #: the times of a draw come in the order of the coordinates
    horizon: float | None = None  #: times are scored up to here

    def of(self, model: Any, X: Any, m: int, seed: int) -> np.ndarray:
        """Event times (n, m, k), or (n, m) of one; the draws of a subject follow from its covariates."""
        if hasattr(model, "sample"):
            z = np.asarray(model.sample(X, m, seed), dtype=np.float64)
        else:
            z = self._drawn(model, X, m, keys_of([np.zeros(1)] if X is None else _columns(X), seed))
        return np.sort(z, axis=2) if self.ordered else z

    def _drawn(self, model: Any, X: Any, m: int, keys: np.ndarray) -> np.ndarray:
        """Draws of the forecast distributions of subjects with these keys."""
        F = model.predict_distribution(X).like(np.empty(0))
        if self.causes is not None and not hasattr(F, "cause"):
            raise InvalidInputError(
                f"{type(model).__name__}: got forecasts of one cause, expected those of all causes, which "
                "CauseSpecific and AalenJohansen give. Leave it out of the stack."
            )
        flat = len(F) == 1 < len(keys)
        drawn = F.sample(m * len(keys) if flat else m, SubjectDraws(keys, flat))
        if self.causes is None:
            z = np.asarray(drawn)
        else:
            causes = np.arange(1, len(self.causes) + 1)
            z = np.where(drawn.cause[..., None] == causes, drawn.time[..., None], np.inf)
        return z.reshape(len(keys), m, *z.shape[2:])

    def apart(self, model: Any, X: Any, y: Any, seed: int, m: int) -> np.ndarray:
        """Draws of subjects that share no random numbers, also where their covariates are equal.

        An error of sampling that subjects share would not average out, nor be part of a standard error. The
        numbers of a forecast distribution belong to places of subjects, so that no unit of a covariate
        changes them. After a delayed entry, they are draws of T given that it is later.
        """
        n = len(y)
        if isinstance(y, RightCensored) and y.has_delayed_entry:
            F = model.predict_distribution(X).like(np.empty(0)).given_survival(y.entry)
            return np.asarray(F.sample(m, SubjectDraws(keys_of([np.arange(n)], seed), False)))
        if not hasattr(model, "sample"):
            z = self._drawn(model, X, m, keys_of([np.arange(n)], seed))
            return np.sort(z, axis=2) if self.ordered else z
        keys = np.zeros(n) if X is None else keys_of(_columns(X))
        _, first, group, count = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(group, kind="stable")
        turn = np.empty(n, dtype=np.int64)  # among the subjects with the same covariates
        turn[order] = np.arange(n) - np.repeat(np.cumsum(count) - count, count)
        most = min(int(count.max()), MOST_SAMPLES // m)
        size = most if len(first) * most <= 4 * n else 1  # subjects that one call draws for
        parts = []
        for start in range(0, int(count.max()), size):
            rows = np.flatnonzero((turn >= start) & (turn < start + size))
            kinds, place = np.unique(group[rows], return_inverse=True)
            z = self.of(model, take_rows(X, first[kinds]), m * size, seed + 104_729 * start)
            z = z.reshape(len(z), size, m, *z.shape[2:])
            parts.append((rows, z[place, turn[rows] - start]))
        drawn = np.empty((n, *parts[0][1].shape[1:]))
        for rows, z in parts:
            drawn[rows] = z
        return drawn

    def count(self, n: int) -> int:
        """Draws of a forecast, whose noise is small beside the spread of n subjects in a comparison."""
        together, least, most = _DRAWS
        return min(most, max(least, together // n))

    def held_out_losses(
        self, held: Sequence[list[tuple[Any, ...]]], subjects: StackSubjects, by_likelihood: bool
    ) -> list[tuple[np.ndarray, ...]]:
        """Losses of every fold, and the weights of its subjects."""
        losses: list[tuple[np.ndarray, ...]] = []
        for i, (X, y, C, weight) in enumerate(subjects.held_out()):
            models = [of_member[i] for of_member in held]
            if by_likelihood:
                scores = [to_numpy(log_score(y, model.predict_distribution(X))) for model, *_ in models]
                losses.append((np.stack(scores, axis=1), weight))
            else:
                energy = self.energy_losses(models, X, y, C, len(subjects.folds), subjects.seed)
                losses.append((*energy, weight))
        return losses

    def energy_losses(
        self, models: list[Any], X: Any, y: Any, C: Distribution, folds: int, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Energy scores (n, J), and half the squared distances between the forecasts (n, J, J)."""
        m = self.count(folds * len(y))
        one_time = isinstance(y, RightCensored) and y.time.ndim == 1
        forecast: Callable[..., Any] = self.apart
        losses: Callable[..., Any] = self.losses_of_draws
        if one_time and self.causes is None:
            forecast, losses = self.forecast, self.losses_of_forecasts
        parts = [
            [forecast(model, X, y, seed + 7919 * j + i, m) for i, model in enumerate(member[:2])]
            for j, member in enumerate(models)
        ]
        s, D = losses([member[0] for member in parts], y, C, seed)
        for j, member in enumerate(parts):
            if len(member) > 1:  # several models are pooled, of which held-out subjects see one
                apart = losses(member, y, C, seed)[1][:, 0, 1]
                gain = (1 - 1 / max(folds, len(models[j]))) / 2 * apart
                s[:, j] -= gain
                others = np.arange(len(parts)) != j
                D[:, j, others] -= gain[:, None]
                D[:, others, j] -= gain[:, None]
        return s, D

    def forecast(self, model: Any, X: Any, y: Any, seed: int, m: int) -> _Forecast:
        """The forecast of one event time; where it is made of draws, m of them that subjects do not share."""
        if hasattr(model, "sample"):
            first = model.predict_distribution(take_rows(X, np.arange(1)))
            if isinstance(first, Ensemble):
                return _Forecast(of_draws(self.apart(model, X, y, seed, m), None), drawn=True)
        F = model.predict_distribution(X).like(np.empty(0))
        return _Forecast(F.given_survival(y.entry) if y.has_delayed_entry else F)

    def losses_of_forecasts(
        self, forecasts: Sequence[_Forecast], y: RightCensored, C: Any, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""CRPS (n, J) of J forecasts of one event time, and half their squared distances (n, J, J).

        The scores are exact. The distances are :math:`\int_0^h(F_j-F_l)^2\,P(C>t\mid y,\delta)\,dt` by
        midpoints; what the noise of draws adds on average is taken off both.
        """
        n, end = len(y), self.horizon or float(y.time.max())
        s = [to_numpy(crps(y, F, C, horizon=end, fair=drawn)) for F, drawn in forecasts]
        noise = [
            to_numpy(crps(y, F, C, horizon=end)) - loss if drawn else np.zeros(n)
            for (F, drawn), loss in zip(forecasts, s, strict=True)
        ]
        q = min(max(_CELLS[0] // n, 1), _CELLS[1])
        t = (np.arange(q) + 0.5) / q * end
        after = over_reached(y.event, to_numpy(C.sf_left(y.time)))[:, None] * to_numpy(C.sf(t[None, :]))
        weight = np.where(t < y.time[:, None], 1.0, after) * (end / q)
        curves = [to_numpy(F.cdf(t[None, :])) for F, _ in forecasts]
        D = np.zeros((n, len(s), len(s)))
        for j, i in combinations(range(len(s)), 2):
            apart = np.einsum("nq,nq->n", weight, (curves[i] - curves[j]) ** 2) - noise[i] - noise[j]
            D[:, i, j] = D[:, j, i] = apart
        return np.stack(s, axis=1), D

    def losses_of_draws(
        self, draws: Sequence[np.ndarray], y: Any, C: Distribution, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Energy scores (n, J) of draws from J forecasts, and half their squared distances (n, J, J)."""

        def loss(*parts: np.ndarray, pairs: str = "auto") -> np.ndarray:
            F, end = of_draws(mixed(parts), self.causes), self.horizon
            return to_numpy(energy_score(y, F, C, fair=True, horizon=end, pairs=pairs, seed=seed))

        s = np.stack([loss(z) for z in draws], axis=1)
        # distances do not contain the outcome, whose noise is the larger one: half of the draws will do
        m = draws[0].shape[1]
        half = np.random.default_rng(seed).permutation(m)[: (m + 1) // 2]
        fewer = [np.ascontiguousarray(z[:, half]) for z in draws]
        pairs = "auto" if draws[0].ndim == 2 else "lagged"  # of a few draws, auto would take all pairs
        alone = [loss(z, pairs=pairs) for z in fewer]
        D = np.zeros((len(s), len(draws), len(draws)))
        for j, i in combinations(range(len(draws)), 2):
            D[:, i, j] = D[:, j, i] = 4 * ((alone[i] + alone[j]) / 2 - loss(fewer[i], fewer[j], pairs=pairs))
        return s, D


def in_turn(z: np.ndarray, share: float) -> np.ndarray:
    """Draws (n, m, k) of which a share, spread evenly, have their times in all orders one after the other.

    >>> in_turn(np.tile([1, 2], (1, 4, 1)), 0.5)[0].tolist()
    [[1, 2], [1, 2], [1, 2], [2, 1]]
    """
    ends = np.floor(share * np.arange(z.shape[1] + 1))
    orders = np.array(list(islice(permutations(range(z.shape[2])), _ORDERS)))
    own = np.arange(z.shape[2])
    order = np.where(np.diff(ends)[:, None] > 0, orders[ends[:-1].astype(int) % len(orders)], own)
    return np.take_along_axis(z, np.broadcast_to(order, z.shape), axis=2)


def mixed(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Draws of several forecasts together, of all subjects also where one forecast serves them."""
    n = max(len(z) for z in parts)
    mixed = np.concatenate([np.broadcast_to(z, (n, *z.shape[1:])) for z in parts], axis=1)
    return np.ascontiguousarray(mixed)  # sums depend on the layout, which a copy does not keep


def _columns(X: Any) -> list[np.ndarray]:
    if hasattr(X, "columns"):
        return [np.asarray(X[name]) for name in X.columns]
    return list(to_numpy(X, "X").T)
