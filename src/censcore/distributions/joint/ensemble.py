"""Forecasts that are samples: the empirical distribution of an ensemble, of one event time or of several."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    common_rows,
    detach,
    is_torch,
    namespace,
    searchsorted,
    take_along,
    to_numpy,
)
from censcore._numerics import run_threads
from censcore._validation import as_coordinate, check_positive, name_subjects
from censcore.distributions.derived.truncated import check_possible
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.step import ByStep, Step
from censcore.exceptions import InvalidInputError, NoDensityError


class Ensemble(ByStep):
    r"""The empirical distribution of m samples per subject, of one event time or jointly of k.

    .. math:: P(T\le t)=\sum_{i=1}^m w_i\,\mathbb 1\{x_i\le t\},\qquad w_i=1/m\text{ unless given.}

    Quantiles are those of this step function (the inverted CDF, no interpolation). An ensemble of several
    event times answers for one of them through ``marginal(j)`` and for the earliest through ``first()``.

    Parameters
    ----------
    samples : array, (n, m) or (n, m, k)
        Non-negative; infinity means that the event never comes. n = 1 serves all subjects.
    weights : array, (m,) or (n, m), optional
        Non-negative weights of the members, scaled to sum to one.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Ensemble([[3.0, 1.0, 2.0, 2.0], [4.0, 8.0, 6.0, float("inf")]])
    >>> distribution.cdf(2.0), distribution.icdf(0.5), distribution.mass_at_infinity()
    (array([0.75, 0.  ]), array([2., 6.]), array([0.  , 0.25]))
    >>> joint = cs.Ensemble([[[1.0, 5.0], [2.0, 1.5]]])
    >>> joint.shape, joint.first().samples, joint.marginal(1).mean()
    ((1, 2), array([[1. , 1.5]]), array([3.25]))
    """

    _kept: ClassVar[frozenset[str]] = frozenset({"panel edges", "step"})  # sorted once
    _samples: Array
    _weights: Array

    def __init__(self, samples: ArrayLike, weights: ArrayLike | None = None) -> None:
        arrays = {"samples": samples} if weights is None else {"samples": samples, "weights": weights}
        self.store(**arrays)
        x = detach(self._samples)
        if x.ndim not in (2, 3) or 0 in x.shape:
            raise InvalidInputError(
                "samples must have shape (n, m), or (n, m, k) for k event times, with at least one member; "
                f"got {tuple(x.shape)}. One ensemble for all subjects is samples[None, :]."
            )
        if not float(self.xp.min(x)) >= 0:
            check_positive(x, "samples", zero=True, infinite=True)
        if weights is not None:
            self._weights = _normalised(self._weights, self._samples)

    @property
    def samples(self) -> Array:
        """The members, (n, m) or (n, m, k), in the order given."""
        return self._samples

    @property
    def weights(self) -> Array | None:
        """Weights of the members, (1, m) or (n, m), summing to one; None where all are equal."""
        return self._weights if "_weights" in self.array_names else None

    @property
    def _is_joint(self) -> bool:  # type: ignore[override]
        return self._samples.ndim == 3

    @property
    def k(self) -> int:
        """Number of event times."""
        return int(self._samples.shape[2]) if self._is_joint else 1

    @property
    def m(self) -> int:
        """Number of members."""
        return int(self._samples.shape[1])

    def with_samples(self, samples: Array) -> Ensemble:
        """An ensemble of other samples with the same weights."""
        return self.replaced(_samples=samples)

    # ---- several event times -------------------------------------------------------------------

    def marginal(self, j: int) -> Ensemble:
        """The ensemble of event time ``j``."""
        if not self._is_joint:
            super().marginal(j)
            return self
        return self.with_samples(self._samples[:, :, as_coordinate(j, self.k, "The ensemble")])

    def first(self) -> Ensemble:
        """The ensemble of the earliest event time of each member."""
        return self.with_samples(self.xp.min(self._samples, axis=2)) if self._is_joint else self

    def censor_at(self, tau: ArrayLike) -> Ensemble:
        """The ensemble of min(samples, tau): ``tau`` is a number, (n,), or (n, k) for one per event time."""
        distribution, end = self._with_end(tau)
        samples, end = distribution._samples, end[:, None, :] if self._is_joint else end
        return distribution.with_samples(distribution.xp.where(samples < end, samples, end))

    def given_survival(self, a: ArrayLike) -> Ensemble:
        """The members beyond ``a`` (in all event times): the others keep their place with weight zero."""
        ensemble, column = self._with_start(a)
        xp, x = ensemble.xp, detach(ensemble._samples)
        beyond = x > (column if x.ndim == 2 else column[:, :, None])
        beyond = beyond if x.ndim == 2 else xp.all(beyond, axis=2)
        weights = ensemble.weights
        dead = ~beyond if weights is None else ~beyond & (weights > 0)
        if not bool(xp.any(dead)):
            return self
        equal = xp.full_like(x[:1, :, 0] if x.ndim == 3 else x[:1], 1.0)
        remaining = xp.where(beyond, equal if weights is None else weights, xp.zeros_like(equal))
        total = xp.sum(remaining, axis=1, keepdims=True)
        check_possible(total <= 0, column)
        return ensemble.replaced(array_names=("_samples", "_weights"), _weights=remaining / total)

    def log_likelihood(self, time: ArrayLike, event: ArrayLike) -> Array:
        """A :class:`~censcore.exceptions.NoDensityError`: an empirical distribution has no density."""
        raise NoDensityError(
            "An Ensemble has no density, so it has no likelihood and no log score. Score it by energy_score, "
            "or its marginals by crps, brier_score or pinball_score."
        )

    def draw(self, m: int, rng: Draws) -> Array:
        """Members drawn with replacement by their weights."""
        xp = self.xp
        u = self._uniforms((len(self), m), rng)
        if self.weights is None:
            index = xp.astype(u * self.m, xp.int64)
        else:
            index = searchsorted(_cumulative(detach(self._weights)), u, "right")
        index = xp.clip(index, max=self.m - 1)
        if self._samples.shape[0] == 1:
            return self._samples[0][index]
        rows = xp.arange(len(self), device=self._samples.device)[:, None]
        return self._samples[rows, index]

    # ---- one event time: a step distribution ------------------------------------------------------------

    def as_step(self) -> Step:
        """The members in order as jumps."""
        if self._is_joint:
            if self.k == 1:
                return self.marginal(0).as_step()
            raise InvalidInputError(
                f"This ensemble has {self.k} event times and the question is about one. Ask "
                "ensemble.marginal(j) for one of them or ensemble.first() for the earliest."
            )
        return super().as_step()

    def _make_step(self) -> Step:
        xp, m = self.xp, self.m
        if self.weights is None:
            steps = xp.arange(1, m + 1, dtype=self._samples.dtype, device=self._samples.device)
            return Step.trusted(_sort_rows(self._samples), (steps / m)[None, :], falls=False)
        n = len(self)
        samples, weights = (xp.broadcast_to(part, (n, m)) for part in (self._samples, self._weights))
        order = xp.argsort(detach(samples), axis=1, stable=True)
        samples, weights = (take_along(part, order) for part in (samples, weights))
        return Step.trusted(samples, _cumulative(weights), falls=False)

    def breaks(self) -> Array:
        return self.as_step()._times

    def __repr__(self) -> str:
        size = ", ".join(str(extent) for extent in self.shape) + ("," if len(self.shape) == 1 else "")
        return f"Ensemble(shape=({size}), m={self.m}{'' if self.weights is None else ', weighted'})"


def _normalised(weights: Array, samples: Array) -> Array:
    """Weights (1 or n, m) that sum to one for every subject."""
    xp = namespace(weights)
    n, m = int(samples.shape[0]), int(samples.shape[1])
    weights = weights[None, :] if weights.ndim == 1 else weights
    if weights.ndim != 2 or weights.shape[1] != m:
        raise InvalidInputError(
            f"weights must have shape ({m},) or ({n}, {m}), one per member; got {tuple(weights.shape)}."
        )
    common_rows(samples=n, weights=weights.shape[0])
    check_positive(detach(weights), "weights", zero=True)
    total = xp.sum(weights, axis=1, keepdims=True)
    empty = np.nonzero(to_numpy(total[:, 0]) <= 0)[0]
    if empty.size:
        raise InvalidInputError(f"weights must not all be zero; they are in {name_subjects(empty)}.")
    return weights / total


def _cumulative(weights: Array) -> Array:
    """Cumulative weights whose last is exactly one, members of no weight after it included."""
    total = namespace(weights).cumulative_sum(weights, axis=1)
    return total / total[:, -1:]


# Numbers that stay in the cache while they are sorted.
_SORTED_AT_ONCE = 131_072


def _sort_rows(samples: Array) -> Array:
    """A copy of ``samples`` (n, m) sorted along the members, NumPy's block by block in threads."""
    if is_torch(samples):
        return namespace(samples).sort(samples, axis=1)
    ordered = np.array(samples, order="C")
    n, m = ordered.shape
    step = max(1, _SORTED_AT_ONCE // m)
    run_threads(
        lambda block: block.sort(axis=1), [ordered[start : start + step] for start in range(0, n, step)]
    )
    return ordered
