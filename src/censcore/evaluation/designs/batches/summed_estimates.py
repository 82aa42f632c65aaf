r"""Means whose influences are known by sums of powers alone, which add up over batches.

Standard errors, skewness and degrees of freedom need :math:`\sum\psi^p` for p = 2, 3, 4, 6 of every mean and
every difference; simultaneous tests need the products of differences; the interval of a skill needs
:math:`\sum(\psi-\psi_0)^i\psi_0^j`. Powers of differences are summed as such, so that nothing cancels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from censcore.evaluation.inference.estimates import POWERS, ROUNDING, Estimate, powers_up_to_6

__all__ = ["Moments", "SummedEstimate", "power_sums"]

DEGREE = POWERS[-1]
SUMS = ("single", "pair", "product", "mixed")


@np.errstate(invalid="ignore")  # infinite losses have no spread
def power_sums(
    psi: np.ndarray, reference: int | None, repeat: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """Sums over the influences (n, M, q) of M models, each counted ``repeat`` times.

    ``single`` (4, M, q) and ``pair`` (4, P, q): powers of each model and each difference; ``product``
    (P, P, q); ``mixed`` (7, 7, M, q): products of powers of a difference from the reference and of that.
    """
    _, M, q = psi.shape
    times = None if repeat is None else repeat[:, None, None]
    pairs = list(combinations(range(M), 2))
    D = np.stack([psi[:, a] - psi[:, b] for a, b in pairs], axis=1) if pairs else psi[:, :0]
    weighted = D if times is None else D * times
    sums = {"single": _powers(psi, times), "pair": _powers(D, times)}
    sums["product"] = np.einsum("naq,nbq->abq", weighted, D, optimize=True)
    if reference is None:
        return sums
    mixed = np.zeros((DEGREE + 1, DEGREE + 1, M, q))
    for j in range(q):
        of_reference = powers_up_to_6(psi[:, reference, j]) * (1.0 if repeat is None else repeat)
        for a in range(M):
            if a != reference:
                mixed[:, :, a, j] = powers_up_to_6(psi[:, a, j] - psi[:, reference, j]) @ of_reference.T
    return sums | {"mixed": mixed}


def _powers(psi: np.ndarray, times: np.ndarray | None) -> np.ndarray:
    square = psi * psi
    first = square if times is None else square * times
    return np.stack([first.sum(0), (first * psi).sum(0), (first * square).sum(0), (first * square**2).sum(0)])


@dataclass(frozen=True, eq=False)
class Moments:
    """The means of several models by one score in one subset, and the sums of powers of their influences."""

    value: np.ndarray  #: mean losses of M models, (M, q)
    sums: dict[str, Any]  #: see :func:`power_sums`
    size: int  #: how many contributions there are

    def means(self) -> list[SummedEstimate]:
        """The mean of each model."""
        single = self.sums["single"]
        return [SummedEstimate(v, _EMPTY, single[:, a], self, (a,)) for a, v in enumerate(self.value)]

    def difference(self, a: int, b: int) -> SummedEstimate:
        """The difference of two."""
        sign = 1.0 if a < b else -1.0
        number = self.pairs.index((min(a, b), max(a, b)))
        powers = self.sums["pair"][:, number] * np.array([1.0, sign, 1.0, 1.0])[:, None]
        with np.errstate(invalid="ignore"):
            value = self.value[a] - self.value[b]
            size = np.maximum(np.abs(value), np.sqrt(powers[0]))
            scale = np.maximum(np.abs(self.value[a]), np.abs(self.value[b]))
            equal = (size <= ROUNDING * scale) & np.isfinite(scale)  # two equal forecasts
        value, powers = np.where(equal, 0.0, value), np.where(equal, 0.0, powers)
        return SummedEstimate(value, _EMPTY, powers, self, (a, b))

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """All pairs, in the order of the sums."""
        return list(combinations(range(len(self.value)), 2))

    def column(self, j: int) -> Moments:
        """Those of one column."""
        sums = {name: value[..., j : j + 1] for name, value in self.sums.items() if value is not None}
        return Moments(self.value[:, j : j + 1], sums, self.size)


_EMPTY = np.zeros((0, 1))


@dataclass(frozen=True, eq=False)
class SummedEstimate(Estimate):
    """A mean, or a difference of two; the influence is empty, and the sums of its powers are known."""

    summed: np.ndarray  #: sums of the powers 2, 3, 4 and 6, (4, q)
    moments: Moments  #: where it belongs
    who: tuple[int, ...]  #: the model, or the two models

    @property
    def powers(self) -> np.ndarray:
        """As they were summed over batches."""
        return self.summed

    @property
    def size(self) -> int:
        """How many contributions there are."""
        return self.moments.size

    def column(self, j: int) -> SummedEstimate:
        """The estimate of one column."""
        moments = self.moments.column(j)
        return moments.means()[self.who[0]] if len(self.who) == 1 else moments.difference(*self.who)

    def __sub__(self, other: Estimate) -> SummedEstimate:
        assert isinstance(other, SummedEstimate)
        return self.moments.difference(self.who[0], other.who[0])

    def correlations(self, estimates: Sequence[Estimate]) -> np.ndarray:
        """The correlations (p, p) of several differences of one column."""
        who = [estimate.who for estimate in estimates if isinstance(estimate, SummedEstimate)]
        number = [self.moments.pairs.index((min(pair), max(pair))) for pair in who]
        sign = np.array([1.0 if a < b else -1.0 for a, b in who])
        product = self.moments.sums["product"][np.ix_(number, number)][:, :, 0] * np.outer(sign, sign)
        error = np.sqrt(np.diag(product))
        return product / np.outer(error, error)

    def skill(self, reference: Estimate) -> Estimate:
        """1 - value / reference, by the delta method."""
        mixed = self.moments.sums["mixed"][:, :, self.who[0]]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.value / reference.value
            s = 1 - ratio  # psi - ratio psi_0 is their difference plus s psi_0
            square = mixed[2, 0] + 2 * s * mixed[1, 1] + s**2 * mixed[0, 2]
            error = np.sqrt(np.maximum(square, 0.0)) / np.abs(reference.value)
        return Estimate(1 - ratio, error[None, :])._beyond_rounding(np.ones_like(ratio))

    def residual_products(self, reference: Estimate) -> tuple[float, float, np.ndarray, int]:
        """See :meth:`Estimate.residual_products`; from products of the difference and the reference."""
        mixed = self.moments.sums["mixed"][:, :, self.who[0], 0]
        scale = float(np.hypot(self.standard_error[0], reference.standard_error[0]))
        mixed = mixed / scale ** np.add.outer(np.arange(DEGREE + 1), np.arange(DEGREE + 1))
        slope = -mixed[1, 1] / max(float(mixed[0, 2]), 1e-300)  # the residual is the difference + slope psi_0
        products = np.zeros_like(mixed)
        for i in range(DEGREE + 1):
            for j in range(DEGREE + 1 - i):
                products[i, j] = sum(comb(i, k) * slope**k * mixed[i - k, j + k] for k in range(i + 1))
        return scale, float(1 - slope), products, self.moments.size
