"""Formulas of a distribution of one event time: what a subclass writes, and what is derived from it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from censcore._arrays import Array, detach, namespace, possibly, requires_grad
from censcore._numerics import invert_decreasing, log1p, safe_log
from censcore.distributions._panels import integrated_survival, merge_edges, quantile_edges
from censcore.distributions._special import exp, once_differentiable
from censcore.distributions.distribution import Distribution
from censcore.distributions.random_draws import Draws
from censcore.exceptions import NoDensityError


def forwarded(*names: str) -> Iterator[Any]:
    """Formulas of a distribution that asks others for them, by ``_forward(name, *arrays)``."""
    return (lambda self, *arrays, name=name: self._forward(name, *arrays) for name in names)


class Formulas(Distribution):
    """The hooks of :class:`~censcore.distributions.Univariate`; :mod:`censcore.distributions` lists them."""

    #: Whether ``logpdf`` exists: True for a subclass that writes ``_logpdf``, if it is made of other
    #: distributions where all of them have one, unless it says otherwise.
    has_density: ClassVar[bool] = False

    #: 0 where the survival function is a step function, 1 where it is piecewise linear, None otherwise.
    _degree: ClassVar[int | None] = None

    #: Whether the panel edges suffice for integrals that begin or end anywhere between them; else scores add
    #: quantiles beside the observed time, so that it may lie anywhere in a tail.
    _dense_edges: ClassVar[bool] = False

    #: Whether the distribution was estimated from data, so that all mass at one time does not mean certainty.
    _is_estimate: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        told_by = next(parent for parent in cls.__mro__ if "has_density" in vars(parent))
        if told_by is Formulas and cls._logpdf is not Formulas._logpdf:
            cls.has_density = Distribution.has_density if cls._distributions else True  # type: ignore

    @property
    def _degree_of_parts(self) -> int | None:
        """The largest degree of the distributions that it is made of; None where one has none."""
        parts: list[Any] = list(self._parts())
        degrees = [part._degree for part in parts]
        return None if None in degrees else max(degrees)

    @abstractmethod
    def _sf(self, t: Array) -> Array: ...

    def _sf_left(self, t: Array) -> Array:
        """P(T >= t) of a distribution without finite atoms: only infinity can have mass."""
        xp = self._xp
        endless = xp.isinf(t)
        if not possibly(endless.any()):
            return self._sf(t)
        s = self._sf(xp.where(endless, 0.0, t))
        return xp.where(endless, self._mass_at_infinity()[:, None], s)

    def _cdf(self, t: Array) -> Array:
        return 1 - self._sf(t)

    def _logsf(self, t: Array) -> Array:
        """From the smaller of the two probabilities, which has the digits."""
        xp = namespace(t)
        s, F = self._sf(t), self._cdf(t)
        early = F < 0.5
        return xp.where(early, log1p(-xp.where(early, F, 0.0)), safe_log(xp.where(early, 1.0, s)))

    def _logpdf(self, t: Array) -> Array:
        raise NoDensityError(
            f"{type(self).__name__} has no density, so it has no log score. Score it by crps, brier_score or "
            "pinball_score, or give the forecast a density (PiecewiseLinear, PiecewiseExponential, ...)."
        )

    def _isf(self, p: Array) -> Array:
        return self._with_gradient(invert_decreasing(self.detach()._sf, detach(p)), self._sf, p, -1)

    def _icdf(self, p: Array) -> Array:
        xp, distribution = self._xp, self.detach()
        t = invert_decreasing(lambda t: -distribution._cdf(t), -detach(p))
        if possibly(xp.any(p == 1)):  # F reaches 1 by rounding long before the support ends
            t = xp.where(p == 1, distribution._isf(xp.zeros_like(p)), t)
        return self._with_gradient(t, self._cdf, p, 1)

    def _log_slope(self, t: Array) -> Array | None:
        """Log density of the continuous part, along which quantiles move; None where there is none."""
        return self._logpdf(t) if self.has_density else None

    def _with_gradient(self, t: Array, f: Callable[[Array], Array], p: Array, sign: int) -> Array:
        """One Newton step from the root leaves its value alone and gives it the gradient of the root."""
        if not (self._requires_grad or requires_grad(p)):
            return t
        xp, distribution = namespace(t), self.detach()
        finite = xp.isfinite(t)
        inside = xp.where(finite, t, 1.0)
        log_slope = distribution._log_slope(inside)
        if log_slope is None:
            return t
        slope = exp(log_slope)
        movable = finite & (slope > 0) & xp.isfinite(slope)
        if not self.has_density:  # an atom stays where it is
            movable = movable & (distribution._sf_left(inside) == distribution._sf(inside))
        step = (p - f(inside)) / (sign * xp.where(movable, slope, 1.0))
        return once_differentiable(xp.where(movable, inside + (step - detach(step)), t))

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        """Quadrature between the distribution's own quantiles and breaks; a and b are (1 or n, q)."""
        return integrated_survival(self, a, b)

    def _mass_at_infinity(self) -> Array:
        """P(T = inf), (n,) or (1,)."""
        return self._xp.zeros((1,), dtype=self._reference.dtype, device=self._reference.device)

    def _end(self) -> Array:
        """The end of the support, inf{t: P(T > t) = 0}, (1 or n, 1)."""
        x = self._reference
        return self._remember(
            "end", lambda: self.detach()._isf(self._xp.zeros((1, 1), dtype=x.dtype, device=x.device))
        )

    def _excludes(self, t: Array) -> Array:
        """What :meth:`excludes` says at times (1 or n, q)."""
        end = self._end()
        if self._is_estimate:
            return t > end
        return (t > end) | ((self._sf_left(end) >= 1) & (t != end))

    def _breaks(self) -> Array | None:
        """Times (1 or n, b), ascending, where the survival function jumps or bends; None if it never does."""
        return None

    def _steps(self) -> tuple[Array, Array]:
        """Where a distribution of degree 0 jumps, (1 or n, J) ascending, and the survival after each jump."""
        times = self._breaks()
        return times, self._sf(times)

    def _panel_edges(self) -> Array:
        """Ascending finite times (1 or n, p) between which the survival function is smooth; no gradient.

        Scores integrate by Gauss-Legendre between them: ``integrate(f, merge_edges(F._panel_edges(),
        C._panel_edges()))`` is right to 1e-8 and better for f made of the survival functions of F and C.
        """
        return self._remember("panel edges", self.detach()._make_panel_edges)

    def _make_panel_edges(self) -> Array:
        breaks = self._breaks()
        if breaks is None:
            return quantile_edges(self)
        return merge_edges(breaks) if self._degree == 0 else merge_edges(quantile_edges(self), breaks)

    def _icdf_beyond(self, y: Array, p: Array) -> Array:
        """By the level left over, or by the level passed while that is smaller and so more exact."""
        xp = self._xp
        alive = self._sf_left(y)
        gone = xp.where(alive == self._sf(y), self._cdf(y), 1 - alive)
        left, passed = (1 - p) * alive, gone + p * alive
        early = passed < 0.5
        half = xp.full_like(left, 0.5)
        t = xp.where(early, self._icdf(xp.where(early, passed, half)), self._isf(xp.where(early, half, left)))
        return xp.where((alive > 0) & (p > 0), xp.maximum(t, y), y)

    def _log_likelihood(self, time: Array, event: Array) -> Array:
        xp = self._xp
        # each branch sees only times of its own kind, so neither gradient can meet the other's infinities
        inner = xp.ones_like(time)
        any_event = possibly(xp.any(event))
        density = self._logpdf(xp.where(event, time, inner)) if any_event else xp.zeros_like(time)
        survival = self._logsf(xp.where(event, inner, time))
        return xp.where(event, density, survival)

    def _isf_given(self, a: Array, alive: Array, p: Array) -> Array:
        """inf{t: P(T > t) <= p P(T > a)} for alive = P(T > a)."""
        return self._isf(p * alive)

    def _sample(self, m: int, rng: Draws) -> Array:
        return self._isf(self._uniforms((len(self), m), rng))
