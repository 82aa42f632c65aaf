"""Distributions given by a few numbers per subject."""

from __future__ import annotations

from collections.abc import Collection
from typing import ClassVar

from censcore._arrays import Array
from censcore._validation import check_between, check_finite
from censcore.distributions.univariate import Univariate

__all__ = ["Parametric"]


class Parametric(Univariate):
    """A distribution with parameters: each a number or one value per subject.

    The constructor of a subclass calls ``self._set_parameters(name=value, ...)``; its formulas then find each
    parameter as an (n, 1) column ``self._name``.

    Notes
    -----
    Shapes lie between 0.001 and 1e8, scales and rates between 1e-100 and 1e100, logarithms of times between
    -230 and 230 and their standard deviations between 1e-8 and 100. Outside, formulas have no digits left,
    and a parameter there is an error.

    See Also
    --------
    ByHazard : Distributions known by their cumulative hazard.

    Examples
    --------
    >>> from censcore.distributions import Parametric
    >>> class Lomax(Parametric):
    ...     def __init__(self, shape, scale):
    ...         self._set_parameters(shape=shape, scale=scale)
    ...
    ...     def _sf(self, t):
    ...         return (1 + t / self._scale) ** -self._shape
    >>> distribution = Lomax(shape=2.0, scale=[1.0, 3.0])
    >>> distribution.parameters["scale"], distribution.isf(0.25), distribution.has_density
    (array([1., 3.]), array([1., 3.]), False)
    """

    _names: tuple[str, ...]

    #: Between which numbers a parameter may lie, by its name: outside the formulas lose all digits. Other
    #: positive parameters are scales and rates, whose unit of time may be anything.
    _ranges: ClassVar[dict[str, tuple[float, float]]] = {"shape": (1e-3, 1e8)}
    _SCALES = (1e-100, 1e100)

    def _set_parameters(self, *, real: Collection[str] = (), **parameters: Array) -> None:
        """Keep every parameter as an (n, 1) column ``_<name>``: positive, or any number if ``real``."""
        self._store_columns(**parameters)
        self._names = tuple(parameters)
        for name, value in self.parameters.items():
            if name in real and name not in self._ranges:
                check_finite(value, name)
            else:
                check_between(value, name, *self._ranges.get(name, self._SCALES))

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by name, each (n,) or (1,)."""
        return {name: getattr(self, f"_{name}")[:, 0] for name in self._names}
