"""All mass at one time."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore._validation import check_positive
from censcore.distributions.derived.truncated import check_possible
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError


class PointMass(Univariate):
    r"""The distribution with all mass at one time: :math:`P(T>t)=\mathbb 1\{t<c\}`.

    As a censoring distribution it says that the censoring time is known: ``PointMass(c)`` for administrative
    or observed censoring times, ``PointMass(inf)`` for no censoring at all.

    Parameters
    ----------
    location : array or number
        c >= 0, one per subject or one for all; infinity is allowed.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.PointMass([2.0, float("inf")])
    >>> distribution.sf(2.0), distribution.sf_left(2.0)
    (array([0., 1.]), array([1., 1.]))
    """

    form = "steps"
    _location: Array

    def __init__(self, location: ArrayLike) -> None:
        self.store(location=location)
        if self._location.ndim > 1:
            raise InvalidInputError(
                f"PointMass takes one location per subject, (n,); got an array of shape "
                f"{tuple(self._location.shape)}. For one censoring time per coordinate use "
                "Independent([PointMass(c1), PointMass(c2), ...])."
            )
        check_positive(self._location, "location", zero=True, infinite=True)
        self._location = self._location.reshape(-1, 1)

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether all mass sits at infinity: then the density is zero at every time."""
        return bool(self.xp.all(self.xp.isinf(self._location)))

    @property
    def location(self) -> Array:
        """Where the mass sits, (n,) or (1,)."""
        return self._location[:, 0]

    def _indicator(self, condition: Array) -> Array:
        return self.xp.astype(condition, self._location.dtype)

    def sf_at(self, t: Array) -> Array:
        return self._indicator(t < self._location)

    def sf_left_at(self, t: Array) -> Array:
        return self._indicator(t <= self._location)

    def logpdf_at(self, t: Array) -> Array:
        if not self.has_density:
            return super().logpdf_at(t)
        return self.xp.full_like(t + self._indicator(t < self._location), -np.inf)

    def isf_at(self, p: Array) -> Array:
        return self.xp.where(p < 1, self._location, self.xp.zeros_like(p + self._location))

    def icdf_at(self, p: Array) -> Array:
        return self.xp.where(p > 0, self._location, self.xp.zeros_like(p + self._location))

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        cut = self.xp.minimum(b, self._location + self.xp.zeros_like(b))
        return self.xp.where(cut > a, cut - a, self.xp.zeros_like(cut))

    def prob_never(self) -> Array:
        return self._indicator(self.xp.isinf(self._location))[:, 0]

    def breaks(self) -> Array:
        return self._location

    def censor_at(self, tau: ArrayLike) -> PointMass:
        """The point mass at min(c, tau)."""
        distribution, end = self._with_end(tau)
        return PointMass(distribution.xp.minimum(distribution._location, end)[:, 0])

    def given_survival(self, a: ArrayLike) -> PointMass:
        """The point mass itself, where it lies beyond ``a``."""
        distribution, column = self._with_start(a)
        check_possible(column >= distribution._location, column)
        return self
