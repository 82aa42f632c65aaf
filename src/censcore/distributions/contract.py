"""The contract of a distribution: what a subclass writes, and what scores and estimators ask.

It has two storeys. Methods such as ``sf`` check what they get and bring it into one array library. Below each
of them is a formula, ``sf_at``, which does not: it is what a subclass writes, and what scores call after they
have checked their inputs once. Names that begin with an underscore belong to the class that has them.

**One event time** (:class:`~censcore.distributions.Univariate`). Formulas receive times t or levels p as
(1 or n, q) arrays in the library of the distribution, and answer in that shape. Parameters are (n, 1)
columns, so that formulas read like the textbook. Times may be infinite.

=============================  =========================================================  ==================
formula                        what it is                                                 unless written
=============================  =========================================================  ==================
``sf_at(t)``                   P(T > t)                                                   must be written
``sf_left_at(t)``              P(T >= t)                                                  no finite atoms
``cdf_at(t)``                  P(T <= t)                                                  1 - P(T > t)
``logsf_at(t)``                log P(T > t)                                               from both of these
``logpdf_at(t)``               log density; ``has_density`` is True where it is written   an error
``isf_at(p)``                  inf{t: P(T > t) <= p}                                      by search
``icdf_at(p)``                 inf{t: F(t) >= p}                                          by search
``icdf_beyond_at(y, p)``       quantiles given T >= y                                     from quantiles
``integrated_sf_at(a, b)``     the integral of P(T > t) from a to b                       by quadrature
``log_likelihood_at(t, d)``    log density where d, log P(T > t) elsewhere                from these two
``excludes_at(t)``             whether the time cannot be t                               t beyond the end
``prob_never()``               P(T = inf), (1 or n,)                                      zero
``support_end()``              inf{t: P(T > t) = 0}, (1 or n, 1)                          ``isf_at(0)``
``form``                       "steps", "lines" or "smooth": P(T > t) between breaks      "smooth"
``breaks()``                   where P(T > t) jumps or bends, (1 or n, b) ascending       None: nowhere
``steps()``                    of steps: the jumps, and P(T > t) after each, (1 or n, b)  ``sf_at`` at breaks
``panel_edges()``              times between which quadrature is accurate                 quantiles, breaks
``dense_edges``                whether they are so from and to any time                   False
``knows_cdf``                  whether small P(T <= t) have all digits                    ``cdf_at`` written
``is_estimate``                whether it is an estimate, so that nothing is certain      False
``draw(m, rng)``               m draws for each subject, (n, m)                           random quantiles
=============================  =========================================================  ==================

**Several event times** (:class:`~censcore.distributions.Joint`), of times (n, q, k): ``logsf_at(t, left)``,
``log_likelihood_at(t, event)``, ``prob_never()`` and ``draw(m, rng)``. **Time and cause**
(:class:`~censcore.distributions.TimeAndCause`): ``of_cause(j)``, ``of_any_cause()`` and ``draw(m, rng)``.

**Storage**, of every distribution. With it ``take``, ``like`` and copies work.

=======================  ===================================================================================
``store(name=array)``    keeps arrays, the subjects first, as ``_name`` in one library and dtype
``store_columns(...)``   keeps numbers, or one value for each subject, as (1 or n, 1) columns
``array_names``          names of the attributes that hold arrays; ``store`` sets them
``part_names``           names of the attributes that hold another distribution, or a list of them
``parts()``              the distributions that it is made of
``reference``, ``xp``    one of the arrays, which tells library, dtype and device; the array namespace
``is_neutral``           whether it was built from Python numbers alone, and follows any library
``mapped(f)``            the same distribution with f applied to every array
``replaced(name=...)``   the same with other attributes, unchecked
``rebuilt(f, g)``        the same with f applied to its arrays and g to its parts
``remember(name, f)``    what f derives from the arrays, made once
=======================  ===================================================================================
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, Literal

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


Form = Literal["steps", "lines", "smooth"]

#: The degree of the polynomials that a form is made of; "smooth" has none.
DEGREES: dict[Form, int] = {"steps": 0, "lines": 1}


def common_form(parts: Iterable[Any]) -> Form:
    """Return the form of a sum of survival functions: that of the least simple one."""
    return max((part.form for part in parts), key=("steps", "lines", "smooth").index)


class Formulas(Distribution):
    """The formulas of a distribution of one event time; the module lists them."""

    #: Whether ``logpdf`` exists: True for a subclass that writes ``logpdf_at``, if it is made of other
    #: distributions where all of them have one, unless it says otherwise.
    has_density: ClassVar[bool] = False

    #: What the survival function is between its breaks: constant, linear, or smooth.
    form: ClassVar[Form] = "smooth"

    #: Whether the panel edges suffice for integrals that begin or end anywhere between them; else scores add
    #: quantiles beside the observed time, so that it may lie anywhere in a tail.
    dense_edges: ClassVar[bool] = False

    #: Whether the distribution was estimated from data, so that all mass at one time does not mean certainty.
    is_estimate: bool = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        told_by = next(parent for parent in cls.__mro__ if "has_density" in vars(parent))
        if told_by is Formulas and cls.logpdf_at is not Formulas.logpdf_at:
            cls.has_density = Distribution.has_density if cls.part_names else True  # type: ignore

    _form_of_parts = property(lambda self: self.remember("form", lambda: common_form(self.parts())))

    @property
    def knows_cdf(self) -> bool:
        """Whether small probabilities P(T <= t) have all their digits, in every part too."""
        own = type(self).cdf_at is not Formulas.cdf_at
        return own and (not self.part_names or super().knows_cdf)

    @abstractmethod
    def sf_at(self, t: Array) -> Array:
        """Return P(T > t)."""

    def sf_left_at(self, t: Array) -> Array:
        """Return P(T >= t), here of a distribution without finite atoms: only infinity can have mass."""
        xp = self.xp
        endless = xp.isinf(t)
        if not possibly(endless.any()):
            return self.sf_at(t)
        s = self.sf_at(xp.where(endless, 0.0, t))
        return xp.where(endless, self.prob_never()[:, None], s)

    def cdf_at(self, t: Array) -> Array:
        """Return P(T <= t)."""
        return 1 - self.sf_at(t)

    def logsf_at(self, t: Array) -> Array:
        """Return log P(T > t), here from the smaller of the two probabilities, which has the digits."""
        xp = namespace(t)
        s, F = self.sf_at(t), self.cdf_at(t)
        early = F < 0.5
        return xp.where(early, log1p(-xp.where(early, F, 0.0)), safe_log(xp.where(early, 1.0, s)))

    def logpdf_at(self, t: Array) -> Array:
        """Return the log density, or raise an error where there is none."""
        raise NoDensityError(
            f"{type(self).__name__} has no density, so it has no log score. Score it by crps, brier_score or "
            "pinball_score, or give the forecast a density (PiecewiseLinear, PiecewiseExponential, ...)."
        )

    def isf_at(self, p: Array) -> Array:
        """Return inf{t: P(T > t) <= p}."""
        return self._with_gradient(invert_decreasing(self.detach().sf_at, detach(p)), self.sf_at, p, -1)

    def icdf_at(self, p: Array) -> Array:
        """Return inf{t: F(t) >= p}."""
        xp, distribution = self.xp, self.detach()
        t = invert_decreasing(lambda t: -distribution.cdf_at(t), -detach(p))
        if possibly(xp.any(p == 1)):  # F reaches 1 by rounding long before the support ends
            t = xp.where(p == 1, distribution.isf_at(xp.zeros_like(p)), t)
        return self._with_gradient(t, self.cdf_at, p, 1)

    def _log_slope(self, t: Array) -> Array | None:
        """Log density of the continuous part, along which quantiles move; None where there is none."""
        return self.logpdf_at(t) if self.has_density else None

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
            movable = movable & (distribution.sf_left_at(inside) == distribution.sf_at(inside))
        step = (p - f(inside)) / (sign * xp.where(movable, slope, 1.0))
        return once_differentiable(xp.where(movable, inside + (step - detach(step)), t))

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        """Integrate P(T > t) from a to b, here between the quantiles and breaks of the distribution."""
        return integrated_survival(self, a, b)

    def prob_never(self) -> Array:
        """Return P(T = inf), (n,) or (1,)."""
        return self.xp.zeros((1,), dtype=self.reference.dtype, device=self.reference.device)

    def support_end(self) -> Array:
        """Return the end of the support, inf{t: P(T > t) = 0}, (1 or n, 1)."""

        def make() -> Array:
            x = self.reference
            return self.detach().isf_at(self.xp.zeros((1, 1), dtype=x.dtype, device=x.device))

        return self.remember("end", make)

    def excludes_at(self, t: Array) -> Array:
        """Tell whether the time cannot be t, as :meth:`excludes` does."""
        end = self.support_end()
        if self.is_estimate:
            return t > end
        return (t > end) | ((self.sf_left_at(end) >= 1) & (t != end))

    def breaks(self) -> Array | None:
        """Return ascending times (1 or n, b) where P(T > t) jumps or bends; None where it never does."""
        return None

    def steps(self) -> tuple[Array, Array]:
        """Return where a step function jumps, (1 or n, J) ascending, and the survival after each jump."""
        times = self.breaks()
        return times, self.sf_at(times)

    def panel_edges(self) -> Array:
        """Return ascending finite times (1 or n, p) between which the survival function is smooth.

        They have no gradient. Scores integrate by Gauss-Legendre between them:
        ``integrate(f, merge_edges(F.panel_edges(), C.panel_edges()))`` is right to 1e-8 and better for f made
        of the survival functions of F and C.
        """
        return self.remember("panel edges", self.detach()._make_panel_edges)

    def _make_panel_edges(self) -> Array:
        breaks = self.breaks()
        if breaks is None:
            return quantile_edges(self)
        return merge_edges(breaks) if self.form == "steps" else merge_edges(quantile_edges(self), breaks)

    def icdf_beyond_at(self, y: Array, p: Array) -> Array:
        """Return quantiles given T >= y: inf{t >= y: P(T <= t | T >= y) >= p}.

        Here by the level left over, or by the level passed while that is smaller and so more exact.
        """
        xp = self.xp
        alive = self.sf_left_at(y)
        gone = xp.where(alive == self.sf_at(y), self.cdf_at(y), 1 - alive)
        left, passed = (1 - p) * alive, gone + p * alive
        early = passed < 0.5
        half = xp.full_like(left, 0.5)
        t = xp.where(
            early, self.icdf_at(xp.where(early, passed, half)), self.isf_at(xp.where(early, half, left))
        )
        return xp.where((alive > 0) & (p > 0), xp.maximum(t, y), y)

    def log_likelihood_at(self, time: Array, event: Array) -> Array:
        """Return the log density where there is an event, and log P(T > t) elsewhere."""
        xp = self.xp
        # each branch sees only times of its own kind, so neither gradient can meet the other's infinities
        inner = xp.ones_like(time)
        any_event = possibly(xp.any(event))
        density = self.logpdf_at(xp.where(event, time, inner)) if any_event else xp.zeros_like(time)
        survival = self.logsf_at(xp.where(event, inner, time))
        return xp.where(event, density, survival)

    def _isf_given(self, a: Array, alive: Array, p: Array) -> Array:
        """inf{t: P(T > t) <= p P(T > a)} for alive = P(T > a)."""
        return self.isf_at(p * alive)

    def draw(self, m: int, rng: Draws) -> Array:
        return self.isf_at(self._uniforms((len(self), m), rng))
