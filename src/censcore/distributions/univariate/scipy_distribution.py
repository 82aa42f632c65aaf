"""Distributions of SciPy and of torch.distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from censcore._arrays import Array, is_torch
from censcore.distributions._panels import merge_edges
from censcore.distributions._special import interior
from censcore.distributions.derived.mixture import Mixture
from censcore.distributions.distribution import Distribution
from censcore.distributions.joint.joint import Independent
from censcore.distributions.univariate.hazard import Exponential, Weibull
from censcore.distributions.univariate.parametric import Gamma, LogNormal, Uniform
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError, InvalidTypeError


class ScipyDistribution(Univariate):
    r"""A frozen continuous distribution of :mod:`scipy.stats` on [0, inf), one per subject.

    Parameters
    ----------
    frozen : frozen distribution
        For instance ``scipy.stats.burr12(c, d, scale=scale)``. Its parameters are numbers or have one value
        per subject (n,); its support must not reach below zero.

    Notes
    -----
    NumPy only: SciPy computes no gradients. Accuracy and speed are those of SciPy's own methods, so prefer
    the distributions of this package where they exist. Discrete distributions are not accepted, since their
    atoms matter: use ``Step(times, cdf=frozen.cdf(times))``.

    Examples
    --------
    >>> import censcore as cs, scipy.stats
    >>> from censcore.distributions import ScipyDistribution
    >>> distribution = ScipyDistribution(scipy.stats.burr12(2.0, 1.5, scale=[1.0, 3.0]))
    >>> distribution.sf(1.0).round(3)
    array([0.354, 0.854])
    """

    only_in = "NumPy"

    def __init__(self, frozen: Any) -> None:
        self._dist = _continuous(frozen)
        positional = {f"argument_{i}": value for i, value in enumerate(frozen.args)}
        self.store_columns(**(positional | frozen.kwds or {"loc": 0.0}))
        self._positional = tuple(f"_{name}" for name in positional)
        low = np.asarray(self._call("support")[0])
        if np.isnan(low).any():
            given = {name[1:]: getattr(self, name)[:3, 0].tolist() for name in self.array_names}
            raise InvalidInputError(
                f"SciPy finds parameters of {self._dist.name} outside their range: {given}."
            )
        if (low < 0).any():
            raise InvalidInputError(
                f"The support of {self._dist.name} starts at {low.min():g}; expected one in [0, inf). "
                "Truncate it (scipy.stats.truncate, truncnorm) or shift it with loc."
            )

    def breaks(self) -> Array | None:
        """Ends of the support, where the survival function bends."""
        low, high = (np.reshape(end, (-1, 1)).astype(self.reference.dtype) for end in self._call("support"))
        return None if not low.any() and np.isinf(high).all() else merge_edges(low, high)

    def excludes_at(self, t: Array) -> Array:
        low, high = self._call("support")
        return (t < low) | (t > high)

    def _call(self, method: str, *x: Array) -> Any:
        """A method of the SciPy distribution at the parameters of all subjects."""
        args = [getattr(self, name) for name in self._positional]
        kwds = {name[1:]: getattr(self, name) for name in self.array_names if name not in self._positional}
        with np.errstate(all="ignore"):
            return getattr(self._dist, method)(*x, *args, **kwds)

    def _values(self, method: str, x: Array) -> Array:
        values = np.asarray(self._call(method, x), dtype=np.result_type(x, self.reference))
        if np.isnan(values).any():
            raise InvalidInputError(
                f"scipy.stats.{self._dist.name}.{method} returned NaN for valid input. "
                "Check its parameters, or use a distribution of censcore."
            )
        return values

    def sf_at(self, t: Array) -> Array:
        return interior(lambda t: self._values("sf", t), t, 1.0, 0.0)

    def cdf_at(self, t: Array) -> Array:
        return interior(lambda t: self._values("cdf", t), t, 0.0, 1.0)

    def logsf_at(self, t: Array) -> Array:
        return interior(lambda t: self._values("logsf", t), t, 0.0, -np.inf)

    def logpdf_at(self, t: Array) -> Array:
        endless = np.isinf(t)
        density = self._values("logpdf", np.where(endless, 1.0, t))
        return np.where(endless, np.asarray(-np.inf, density.dtype), density)

    def isf_at(self, p: Array) -> Array:
        t = self._quantiles("isf", p)
        end = np.asarray(self._call("support")[1], dtype=t.dtype)
        # Units in the last place before the end, SciPy's quantile may leave more than p above it.
        next_to_end = np.isfinite(end) & (t * (1 + 16 * np.finfo(t.dtype).eps) >= end)
        if next_to_end.any():
            t = np.where(next_to_end & (self._values("sf", t) > p), end, t)
        return np.where(p < 1, t, 0.0)

    def icdf_at(self, p: Array) -> Array:
        t = self._quantiles("ppf", p)
        return np.where(p > 0, t, 0.0)

    def _quantiles(self, method: str, p: Array) -> Array:
        """Quantiles in the support; SciPy's may lie beyond its ends by rounding."""
        t = self._values(method, p)
        return np.clip(t, *(np.asarray(end, dtype=t.dtype) for end in self._call("support")))


def _continuous(frozen: Any) -> Any:
    from scipy.stats import rv_continuous, rv_discrete

    dist = getattr(frozen, "dist", None)
    if isinstance(dist, rv_discrete):
        raise InvalidTypeError(
            f"Got the discrete distribution {dist.name}, expected a continuous one. Its atoms matter: give "
            "them by Step(times, cdf=frozen.cdf(times)) with every time that has mass."
        )
    if not isinstance(dist, rv_continuous):
        raise InvalidTypeError(
            f"A frozen continuous distribution of scipy.stats was expected, such as burr12(2.0, 1.5); "
            f"got {type(frozen).__name__}."
        )
    return dist


#: Families that this package has itself, with the parameters torch gives in the order of ours.
_FAMILIES: dict[str, tuple[Callable[..., Univariate], tuple[str, ...]]] = {
    "Weibull": (Weibull, ("concentration", "scale")),
    "Exponential": (Exponential, ("rate",)),
    "LogNormal": (LogNormal, ("loc", "scale")),
    "Gamma": (Gamma, ("concentration", "rate")),
    "Chi2": (Gamma, ("concentration", "rate")),
    "Uniform": (Uniform, ("low", "high")),
}


def from_torch(distribution: Any) -> Distribution:
    """The distribution of a ``torch.distributions`` object with batch shape (n,) or (); gradients are kept.

    Families that this package has become its own distributions, ``MixtureSameFamily`` a mixture of them, and
    ``Independent(..., 1)`` a joint distribution with independent coordinates.

    >>> import torch
    >>> from_torch(torch.distributions.Weibull(scale=torch.tensor([1.0, 2.0]), concentration=1.5))
    Weibull(shape=(2,))
    """
    kind, batch = type(distribution).__name__, tuple(distribution.batch_shape)
    if kind == "MixtureSameFamily":
        inner = distribution.component_distribution
        parts = [_one(inner, j) for j in range(inner.batch_shape[-1])]
        return Mixture(parts, distribution.mixture_distribution.probs)
    if kind == "Independent" and len(distribution.event_shape) == 1:
        base = distribution.base_dist
        return Independent([_one(base, j) for j in range(base.batch_shape[-1])])
    if distribution.event_shape or len(batch) > 1:
        raise InvalidInputError(
            f"Got torch.distributions.{kind} of batch shape {batch} and event shape "
            f"{tuple(distribution.event_shape)}, expected one event time per subject, batch shape (n,). For "
            "several event times use torch.distributions.Independent(base, 1) with base of shape (n, k)."
        )
    return _one(distribution)


def _one(distribution: Any, *j: int) -> Univariate:
    """The distribution of one time: time or component j, where there are several."""
    name = type(distribution).__name__
    if name in _FAMILIES:
        family, parameters = _FAMILIES[name]
        return family(*(getattr(distribution, parameter)[(..., *j)] for parameter in parameters))
    return TorchDistribution(distribution, *j)


class TorchDistribution(Univariate):
    """Any other continuous family of ``torch.distributions`` on (0, inf) with a ``cdf``.

    Its batch shape is (n,) or (). Its upper tail is as accurate as 1 - cdf.

    >>> import torch
    >>> TorchDistribution(torch.distributions.HalfNormal(torch.tensor([1.0, 2.0]))).sf(1.0)
    tensor([0.3173, 0.6171])
    """

    only_in = "torch"

    def __init__(self, distribution: Any, *j: int) -> None:
        self._family = type(distribution)
        names = list(distribution.arg_constraints)
        if not names:
            raise InvalidTypeError(
                f"torch.distributions.{self._family.__name__} does not say what its parameters are, so its "
                "subjects cannot be taken apart. Give its curve: PiecewiseLinear(times, "
                "cdf=distribution.cdf(times))."
            )
        self.store_columns(**{name: getattr(distribution, name)[(..., *j)].reshape(-1) for name in names})
        self._check(distribution)

    def _check(self, distribution: Any) -> None:
        support = distribution.support
        lower, upper = getattr(support, "lower_bound", -np.inf), getattr(support, "upper_bound", np.inf)
        if is_torch(lower) or lower != 0 or upper != np.inf or support.is_discrete:
            raise InvalidInputError(
                f"Event times are continuous on (0, inf); torch.distributions.{self._family.__name__} has "
                f"the support {support}. Truncate it, or give a curve: PiecewiseLinear(times, cdf=...)."
            )
        try:
            self.sf_at(self.xp.ones_like(self.reference))
        except NotImplementedError as error:
            raise InvalidTypeError(
                f"torch.distributions.{self._family.__name__} has no cdf, which every score needs. Draw from "
                "it: Ensemble(distribution.sample((m,)).T)."
            ) from error

    def _torch(self) -> Any:
        parameters = {name[1:]: getattr(self, name) for name in self.array_names}
        return self._family(**parameters, validate_args=False)

    def cdf_at(self, t: Array) -> Array:
        return interior(self._torch().cdf, t, 0.0, 1.0)

    def sf_at(self, t: Array) -> Array:
        return 1 - self.cdf_at(t)

    def logpdf_at(self, t: Array) -> Array:
        return interior(self._torch().log_prob, t, -np.inf, -np.inf)
