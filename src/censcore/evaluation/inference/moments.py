"""Means whose contributions were not kept: sums of powers, from which errors, tests and intervals follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from censcore.evaluation.inference.estimates import (
    EMPTY,
    POWERS,
    Differences,
    Estimate,
    SummedEstimate,
    pairs_of,
    powers_up_to_6,
)

DEGREE = POWERS[-1]
CACHED = 8192  # subjects whose powers stay in the cache
LARGEST = 2**23  # numbers of all pairs of models that are in memory together


def power_sums(
    psi: np.ndarray, reference: int | None, repeat: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sums over the influences (n, M, q) of M models, each counted ``repeat`` times.

    ``single`` (4, M, q) and ``pair`` (4, P, q): powers of each model and each difference; ``product``
    (M, M, q): products less what models have in common; ``mixed`` (7, 7, M, q): products of powers of a
    difference from the reference and of that.
    """
    times = np.ones(len(psi)) if repeat is None else repeat
    rows = min(CACHED, LARGEST // psi.shape[1] ** 2 + 1)
    columns = []
    for j in range(psi.shape[2]):
        parts = []
        for start in range(0, max(len(psi), 1), rows):
            block = slice(start, start + rows)
            parts.append(_power_sums(np.ascontiguousarray(psi[block, :, j].T), reference, times[block]))
        columns.append({name: sum(part[name] for part in parts) for name in parts[0]})
    return {name: np.stack([column[name] for column in columns], axis=-1) for name in columns[0]}


@np.errstate(invalid="ignore")  # infinite losses have no spread
def _power_sums(psi: np.ndarray, reference: int | None, times: np.ndarray) -> dict[str, np.ndarray]:
    """The same of one column of influences (M, n)."""
    M, n = psi.shape
    a, b = pairs_of(M)
    every = np.concatenate([psi, psi[a] - psi[b]])
    square = every * every
    counted = square * times
    factors = np.ones_like(every), every, square, square * square
    powers = np.stack([np.einsum("mn,mn->m", factor, counted) for factor in factors])
    D = psi - np.nan_to_num(psi, posinf=0.0, neginf=0.0).mean(axis=0)  # any vector gives the same differences
    sums = {"single": powers[:, :M], "pair": powers[:, M:], "product": D @ (D * times).T}
    if reference is None:
        return sums
    others = np.arange(M) != reference
    from_reference = powers_up_to_6(psi[others] - psi[reference]).reshape(-1, n)
    of_reference = powers_up_to_6(psi[reference]) * times
    mixed = np.zeros((DEGREE + 1, M, DEGREE + 1))
    mixed[:, others] = (from_reference @ of_reference.T).reshape(DEGREE + 1, M - 1, DEGREE + 1)
    return sums | {"mixed": mixed.swapaxes(1, 2)}


@dataclass(frozen=True, eq=False)
class Moments:
    r"""The means of several models by one score in one subset, and the sums of powers of their influences.

    Standard errors, skewness and degrees of freedom need :math:`\sum\psi^p` for p = 2, 3, 4, 6 of every mean
    and every difference; simultaneous tests need the products of differences; the interval of a skill needs
    :math:`\sum(\psi-\psi_0)^i\psi_0^j`. Powers of differences are summed as such: nothing cancels.
    """

    value: np.ndarray  #: mean losses of M models, (M, q)
    sums: dict[str, Any]  #: see :func:`power_sums`
    size: int  #: how many contributions there are

    def means(self) -> list[SummedMean]:
        """The mean of each model."""
        single = self.sums["single"]
        one = np.ones(self.value.shape[1])
        return [SummedMean(v, EMPTY, single[:, a], self.size, one, self, a) for a, v in enumerate(self.value)]

    def column(self, j: int) -> Moments:
        """Those of one column."""
        sums = {name: value[..., j : j + 1] for name, value in self.sums.items() if value is not None}
        return Moments(self.value[:, j : j + 1], sums, self.size)


@dataclass(frozen=True, eq=False)
class SummedMean(SummedEstimate):
    """The mean of one of several models."""

    moments: Moments  #: of all of them
    who: int  #: the number of the model

    def column(self, j: int) -> SummedMean:
        """The estimate of one column."""
        return self.moments.column(j).means()[self.who]

    @staticmethod
    def differences(estimates: Sequence[SummedMean]) -> Differences:
        """Of all pairs, side by side; the means are in the order of the sums."""
        moments, models = estimates[0].moments, np.array([each.who for each in estimates])
        every = pairs_of(len(moments.value))
        among = np.isin(every, models).all(axis=0)
        means, (a, b) = moments.value[:, 0], models[pairs_of(len(models))]
        with np.errstate(invalid="ignore"):
            value = means[a] - means[b]
        squares, vectors = np.linalg.eigh(np.nan_to_num(moments.sums["product"][:, :, 0], posinf=0, neginf=0))
        root = np.sqrt(np.maximum(squares, 0.0))[:, None] * vectors.T
        summed, one = moments.sums["pair"][:, among, 0], np.ones(len(value))
        found = Differences(value, EMPTY, summed, moments.size, one, root, np.array([a, b]))
        return found._beyond_rounding(np.maximum(np.abs(means[a]), np.abs(means[b])))

    def skill(self, reference: Estimate) -> Estimate:
        """1 - value / reference, by the delta method."""
        mixed = self.moments.sums["mixed"][:, :, self.who]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.value / reference.value
            s = 1 - ratio  # psi - ratio psi_0 is their difference plus s psi_0
            square = mixed[2, 0] + 2 * s * mixed[1, 1] + s**2 * mixed[0, 2]
            error = np.sqrt(np.maximum(square, 0.0)) / np.abs(reference.value)
        return Estimate(1 - ratio, error[None, :])._beyond_rounding(np.ones_like(ratio))

    def residual_products(self, reference: Estimate) -> tuple[float, float, np.ndarray, int]:
        """See :meth:`Estimate.residual_products`; from products of the difference and the reference."""
        mixed = self.moments.sums["mixed"][:, :, self.who, 0]
        scale = float(np.hypot(self.standard_error[0], reference.standard_error[0]))
        mixed = mixed / scale ** np.add.outer(np.arange(DEGREE + 1), np.arange(DEGREE + 1))
        slope = -mixed[1, 1] / max(float(mixed[0, 2]), 1e-300)  # the residual is the difference + slope psi_0
        products = np.zeros_like(mixed)
        for i in range(DEGREE + 1):
            for j in range(DEGREE + 1 - i):
                products[i, j] = sum(comb(i, k) * slope**k * mixed[i - k, j + k] for k in range(i + 1))
        return scale, float(1 - slope), products, self.moments.size
