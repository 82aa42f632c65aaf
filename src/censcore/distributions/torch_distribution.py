"""Distributions of torch.distributions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from censcore._arrays import Array, is_torch
from censcore.distributions._special import interior
from censcore.distributions.base import Distribution
from censcore.distributions.hazard import Exponential, Weibull
from censcore.distributions.joint import Independent
from censcore.distributions.mixture import Mixture
from censcore.distributions.parametric import Gamma, LogNormal, Uniform
from censcore.distributions.univariate import Univariate
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["TorchDistribution", "from_torch"]

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
        parts = [_one(inner, _column(j)) for j in range(inner.batch_shape[-1])]
        return Mixture(parts, distribution.mixture_distribution.probs)
    if kind == "Independent" and len(distribution.event_shape) == 1:
        base = distribution.base_dist
        return Independent([_one(base, _column(j)) for j in range(base.batch_shape[-1])])
    if distribution.event_shape or len(batch) > 1:
        raise InvalidInputError(
            f"Got torch.distributions.{kind} of batch shape {batch} and event shape "
            f"{tuple(distribution.event_shape)}, expected one event time per subject, batch shape (n,). For "
            "several event times use torch.distributions.Independent(base, 1) with base of shape (n, k)."
        )
    return _one(distribution, lambda value: value)


def _column(j: int) -> Callable[[Array], Array]:
    return lambda value: value[..., j]


def _one(distribution: Any, chosen: Callable[[Array], Array]) -> Univariate:
    """The distribution of one time; ``chosen`` picks the part of every parameter that belongs to it."""
    name = type(distribution).__name__
    if name in _FAMILIES:
        family, parameters = _FAMILIES[name]
        return family(*(chosen(getattr(distribution, parameter)) for parameter in parameters))
    return TorchDistribution(distribution, chosen)


class TorchDistribution(Univariate):
    """Any other continuous family of ``torch.distributions`` on (0, inf) with a ``cdf``.

    Its batch shape is (n,) or (). Its upper tail is as accurate as 1 - cdf.

    >>> import torch
    >>> TorchDistribution(torch.distributions.HalfNormal(torch.tensor([1.0, 2.0]))).sf(1.0)
    tensor([0.3173, 0.6171])
    """

    def __init__(self, distribution: Any, chosen: Callable[[Array], Array] = lambda value: value) -> None:
        self._family = type(distribution)
        names = list(distribution.arg_constraints)
        if not names:
            raise InvalidTypeError(
                f"torch.distributions.{self._family.__name__} does not say what its parameters are, so its "
                "subjects cannot be taken apart. Give its curve: PiecewiseLinear(times, "
                "cdf=distribution.cdf(times))."
            )
        self._store_columns(**{name: chosen(getattr(distribution, name)).reshape(-1) for name in names})
        self._names = tuple(names)
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
            self._sf(self._xp.ones_like(self._reference))
        except NotImplementedError as error:
            raise InvalidTypeError(
                f"torch.distributions.{self._family.__name__} has no cdf, which every score needs. Draw from "
                "it: Ensemble(distribution.sample((m,)).T)."
            ) from error

    def _torch(self) -> Any:
        return self._family(**{name: getattr(self, f"_{name}") for name in self._names}, validate_args=False)

    def like(self, array: Array) -> Self:
        """The same distributions in the dtype and on the device of ``array``, a tensor."""
        if not is_torch(array):
            raise InvalidTypeError(
                f"torch.distributions.{self._family.__name__} computes in torch only and met a NumPy array. "
                "Convert the outcome: y.like(tensor)."
            )
        return super().like(array)

    def _cdf(self, t: Array) -> Array:
        return interior(self._torch().cdf, t, 0.0, 1.0)

    def _sf(self, t: Array) -> Array:
        return 1 - self._cdf(t)

    def _logpdf(self, t: Array) -> Array:
        return interior(self._torch().log_prob, t, -np.inf, -np.inf)
