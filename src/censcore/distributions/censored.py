"""The law of min(T, tau)."""

from __future__ import annotations

from typing import ClassVar

from censcore._arrays import Array, as_float, common_rows, is_neutral
from censcore._validation import check_positive
from censcore.distributions._base import Univariate

__all__ = ["Censored"]


class Censored(Univariate):
    r"""The law of :math:`\min(T,\tau)`: what is left of a law when follow-up ends at :math:`\tau`.

    .. math:: P(\min(T,\tau)>t)=P(T>t)\,\mathbb 1\{t<\tau\}.

    Made by ``law.censor_at(tau)``; ``tau`` is a number or one per row.

    Examples
    --------
    >>> import censcore as cs
    >>> law = cs.Exponential(rate=1.0).censor_at(2.0)
    >>> law.sf([1.0, 2.0]).round(3), law.sf_left([2.0]).round(3)
    (array([0.368, 0.   ]), array([0.135]))
    """

    has_density: ClassVar[bool] = False
    _arrays: ClassVar[tuple[str, ...]] = ("_tau",)
    _laws: ClassVar[tuple[str, ...]] = ("_inner",)

    def __init__(self, law: Univariate, tau: Array) -> None:
        tau = as_float(tau, "tau", like=law._reference)
        check_positive(tau, "tau", zero=True, infinite=True)
        law = law._fitting(tau)
        common_rows(law=len(law), tau=tau.reshape(-1).shape[0])
        self._tau = law._xp.astype(tau.reshape(-1, 1), law._reference.dtype)
        self._inner = [law]
        self._neutral = law._is_neutral and is_neutral(tau)

    @property
    def _law(self) -> Univariate:
        return self._inner[0]

    @property
    def _degree(self) -> int | None:  # type: ignore[override]
        return self._law._degree

    def _sf(self, t: Array) -> Array:
        xp = self._xp
        s = self._law._sf(t)
        return xp.where(t < self._tau, s, xp.zeros_like(s))

    def _sf_left(self, t: Array) -> Array:
        xp = self._xp
        s = self._law._sf_left(t)
        return xp.where(t <= self._tau, s, xp.zeros_like(s))

    def _isf(self, p: Array) -> Array:
        return self._cut(self._law._isf(p))

    def _icdf(self, p: Array) -> Array:
        return self._cut(self._law._icdf(p))

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        return self._law._integrated_sf(self._cut(a), self._cut(b))

    def _cut(self, t: Array) -> Array:
        return self._xp.minimum(t, self._tau + self._xp.zeros_like(t))

    def _mass_at_infinity(self) -> Array:
        xp = self._xp
        mass = self._law._mass_at_infinity()
        unlimited = xp.isinf(self._tau[:, 0])
        return xp.where(unlimited, mass, xp.zeros_like(self._tau[:, 0]))

    def _breaks(self) -> Array:
        """Break points of the law below tau, and tau itself."""
        xp = self._xp
        inner = self._law._breaks()
        if inner is None:
            return self._tau
        n = common_rows(law=inner.shape[0], tau=self._tau.shape[0])
        inner = self._cut(xp.broadcast_to(inner, (n, inner.shape[1])))
        return xp.concat([inner, xp.broadcast_to(self._tau, (n, 1))], axis=1)
