"""Random numbers where they are needed: NumPy's generators in memory, torch's on a device."""

from __future__ import annotations

from typing import Any, Protocol

from censcore._arrays import Array, convert
from censcore._validation import as_generator

__all__ = ["Draws", "as_draws"]


class Draws(Protocol):
    """The random numbers that distributions ask for, with NumPy's names."""

    def random(self, size: tuple[int, ...]) -> Array:
        """Uniform in [0, 1)."""

    def standard_normal(self, size: tuple[int, ...]) -> Array:
        """Standard normal."""

    def standard_exponential(self, size: tuple[int, ...]) -> Array:
        """Exponential with rate one."""

    def standard_gamma(self, shape: Array, size: tuple[int, ...]) -> Array:
        """Gamma with scale one."""


class TorchDraws:
    """Draws of a torch generator, on its device.

    Parameters
    ----------
    generator : torch.Generator
        Where the numbers come from.
    dtype : torch.dtype
        Of the numbers.

    Examples
    --------
    >>> import torch
    >>> TorchDraws(torch.Generator().manual_seed(0), torch.float32).random((2, 3)).shape
    torch.Size([2, 3])
    """

    def __init__(self, generator: Any, dtype: Any) -> None:
        self._generator, self._dtype = generator, dtype

    def _empty(self, size: tuple[int, ...]) -> Any:
        import torch

        return torch.empty(size, dtype=self._dtype, device=self._generator.device)

    def random(self, size: tuple[int, ...]) -> Any:
        """Uniform in [0, 1)."""
        return self._empty(size).uniform_(generator=self._generator)

    def standard_normal(self, size: tuple[int, ...]) -> Any:
        """Standard normal."""
        return self._empty(size).normal_(generator=self._generator)

    def standard_exponential(self, size: tuple[int, ...]) -> Any:
        """Exponential with rate one."""
        return self._empty(size).exponential_(generator=self._generator)

    def standard_gamma(self, shape: Any, size: tuple[int, ...]) -> Any:
        """Gamma with scale one."""
        import torch

        alpha = convert(shape, self._empty((0,))).expand(size).contiguous()
        return torch._standard_gamma(alpha, generator=self._generator)


def as_draws(seed: Any, like: Array) -> Draws:
    """Random numbers for distributions of the kind of ``like``.

    >>> as_draws(0, np.empty(0)).random((2,)).shape
    (2,)
    """
    if type(seed).__module__.startswith("torch") and type(seed).__name__ == "Generator":
        dtype = like.dtype if type(like).__module__.startswith("torch") else None
        if dtype is None:
            import torch

            dtype = torch.float64
        return TorchDraws(seed, dtype)
    return as_generator(seed)
