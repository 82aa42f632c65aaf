"""Members of a stack: their draws, and their losses on held-out subjects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.distributions.random_draws import SubjectDraws, keys_of
from censcore.estimators.cause_times import of_draws
from censcore.estimators.covariates import take_rows
from censcore.estimators.sample_predictions import MOST_SAMPLES
from censcore.estimators.stacking_subjects import StackSubjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores import energy_score, log_score

_ORDERS = 720  # of the times, of more than six not all
_DRAWS = 40_000, 64, 128  # of each forecast for all held-out subjects, and for one at least and at most


@dataclass(frozen=True)
class MemberDraws:
    """Draws of event times from the forecasts of fitted models."""

    causes: Any  #: names, of competing risks
    ordered: bool = False  #: the times of a draw come in the order of the coordinates
    horizon: float | None = None  #: times are scored up to here

    def of(self, model: Any, X: Any, m: int, seed: int) -> np.ndarray:
        """Event times (n, m, k), or (n, m) of one; the draws of a subject follow from its covariates."""
        z = self._drawn(model, X, m, seed)
        return np.sort(z, axis=2) if self.ordered else z

    def _drawn(self, model: Any, X: Any, m: int, seed: int) -> np.ndarray:
        if hasattr(model, "sample"):
            return np.asarray(model.sample(X, m, seed), dtype=np.float64)
        F = model.predict_distribution(X).like(np.empty(0))
        if self.causes is not None and not hasattr(F, "cause"):
            raise InvalidInputError(
                f"{type(model).__name__}: got forecasts of one cause, expected those of all causes, which "
                "CauseSpecific and AalenJohansen give. Leave it out of the stack."
            )
        keys = keys_of([np.zeros(1)] if X is None else _columns(X), seed)
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

        An error of sampling that subjects share would not average out, nor be part of a standard error.
        After a delayed entry, they are draws of T given that it is later.
        """
        n = len(y)
        if isinstance(y, RightCensored) and y.has_delayed_entry:
            F = model.predict_distribution(X).like(np.empty(0)).given_survival(y.entry)
            return np.asarray(F.sample(m, SubjectDraws(keys_of([np.arange(n)], seed), False)))
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
        draws = [
            [self.apart(model, X, y, seed + 7919 * j + i, m) for i, model in enumerate(member[:2])]
            for j, member in enumerate(models)
        ]
        s, D = self.losses_of_draws([member[0] for member in draws], y, C, seed)
        for j, member in enumerate(draws):
            if len(member) > 1:  # several models are pooled, of which held-out subjects see one
                apart = self.losses_of_draws(member, y, C, seed)[1][:, 0, 1]
                gain = (1 - 1 / max(folds, len(models[j]))) / 2 * apart
                s[:, j] -= gain
                others = np.arange(len(draws)) != j
                D[:, j, others] -= gain[:, None]
                D[:, others, j] -= gain[:, None]
        return s, D

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
