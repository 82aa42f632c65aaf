"""Laws given by a few numbers per row."""

from __future__ import annotations

from collections.abc import Mapping

from censcore._arrays import Array, common_rows
from censcore._validation import check_positive
from censcore.distributions._base import Univariate
from censcore.exceptions import InvalidInputError

__all__ = ["Parametric"]


class Parametric(Univariate):
    """A law with parameters: each a number or one value per row."""

    def _set_parameters(self, positive: Mapping[str, Array], real: Mapping[str, Array] | None = None) -> None:
        """Keep every parameter as an (n, 1) column named ``_<name>``."""
        from censcore._validation import check_finite

        self._store(**positive, **(real or {}))
        self._names = tuple(name.removeprefix("_") for name in self._arrays)
        for name in self._names:
            value = getattr(self, f"_{name}")
            if value.ndim > 1:
                raise InvalidInputError(
                    f"{type(self).__name__} takes {name} as a number or one value per row (n,); "
                    f"an array of shape {tuple(value.shape)} came."
                )
            (check_positive if name in positive else check_finite)(value, name)
            setattr(self, f"_{name}", value.reshape(-1, 1))
        common_rows(**{name: getattr(self, f"_{name}").shape[0] for name in self._names})

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by name, each (n,) or (1,)."""
        return {name: getattr(self, f"_{name}")[:, 0] for name in self._names}
