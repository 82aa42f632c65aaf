"""Random numbers where they are needed: NumPy's generators in memory, torch's on a device.

Scores draw numbers that belong to a subject and not to its place among others (:class:`SubjectDraws`), so
that they are the same however the data are split.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from censcore._arrays import Array, convert, is_torch
from censcore._numerics import bits_of, scramble
from censcore._validation import as_generator


class _TorchDraws:
    """Draws of a torch generator, on its device."""

    def __init__(self, generator: Any, dtype: Any) -> None:
        self._generator, self._dtype = generator, dtype

    def _empty(self, size: tuple[int, ...]) -> Any:
        import torch

        return torch.empty(size, dtype=self._dtype, device=self._generator.device)

    def random(self, size: tuple[int, ...]) -> Any:
        return self._empty(size).uniform_(generator=self._generator)

    def standard_normal(self, size: tuple[int, ...]) -> Any:
        return self._empty(size).normal_(generator=self._generator)

    def standard_exponential(self, size: tuple[int, ...]) -> Any:
        return self._empty(size).exponential_(generator=self._generator)

    def standard_gamma(self, shape: Any, size: tuple[int, ...]) -> Any:
        import torch

        alpha = convert(shape, self._empty((0,))).expand(size).contiguous()
        return torch._standard_gamma(alpha, generator=self._generator)


class SubjectDraws:
    r"""Random numbers of n subjects, each from a generator of its own: SplitMix64 [1]_, started at its key.

    Number c of a subject with the key k is :math:`\mathrm{mix}(k+c\gamma)` with an odd constant
    :math:`\gamma`, whatever the others are. With ``flat`` one distribution serves all subjects: draws of
    the shape (1, n m) are then m of each subject.

    References
    ----------
    .. [1] Steele, G. L., Lea, D. and Flood, C. H. (2014). Fast splittable pseudorandom number generators.
       OOPSLA 2014, 453-472.

    Examples
    --------
    >>> keys = keys_of([np.array([1.5, 2.5, 3.5])], seed=0)
    >>> bool((SubjectDraws(keys).random((3, 4))[1:2] == SubjectDraws(keys[1:2]).random((1, 4))).all())
    True
    """

    def __init__(self, keys: np.ndarray, flat: bool = False) -> None:
        self.keys, self.flat = keys, flat
        self._used = 0

    def random(self, size: tuple[int, ...]) -> np.ndarray:
        """Uniform in [0, 1)."""
        n = len(self.keys)
        per_subject = int(np.prod(size[1:])) // (n if self.flat else 1)
        # a part that all subjects share, of a distribution that differs between them, has numbers of its own
        keys = self.keys if self.flat or size[0] == n else keys_of([np.zeros(size[0])])
        place = np.arange(self._used + 1, self._used + 1 + per_subject, dtype=np.uint64)
        self._used += per_subject
        numbers = scramble(keys[:, None] + place * _GAMMA)
        return ((numbers >> np.uint64(11)) * 2.0**-53).reshape(size)

    def standard_normal(self, size: tuple[int, ...]) -> np.ndarray:
        """Standard normal."""
        from scipy.special import ndtri

        return ndtri(self.random(size) + 2.0**-54)

    def standard_exponential(self, size: tuple[int, ...]) -> np.ndarray:
        """Exponential with rate one."""
        return -np.log1p(-self.random(size))

    def standard_gamma(self, shape: Array, size: tuple[int, ...]) -> np.ndarray:
        """Gamma with scale one."""
        from scipy.special import gammaincinv

        return gammaincinv(np.broadcast_to(shape, size), self.random(size) + 2.0**-54)

    def take(self, rows: Any, stream: int = 0) -> SubjectDraws:
        """Numbers of some subjects, other ones for every stream."""
        keys = self.keys[rows]
        return SubjectDraws(scramble(keys ^ np.uint64(stream)) if stream else keys, self.flat)


_GAMMA = np.uint64(0x9E3779B97F4A7C15)

#: The random numbers that distributions ask for, by NumPy's names.
Draws = np.random.Generator | _TorchDraws | SubjectDraws


def some_draws(rng: Draws, rows: Any, stream: int) -> Draws:
    """The random numbers of some subjects, where numbers belong to subjects; otherwise the next ones."""
    return rng.take(rows, stream) if isinstance(rng, SubjectDraws) else rng


def keys_of(columns: Iterable[Array], seed: int = 0) -> np.ndarray:
    """A hash of the seed and of what is known of each subject, one array (n,) or (n, k) after the other.

    >>> one, other, again = keys_of([np.array([0.5, 1.5, 0.5]), np.array([True, True, True])], seed=3)
    >>> one == again, one == other
    (np.True_, np.False_)
    """
    key = scramble(np.array([int(seed) % 2**64], dtype=np.uint64))
    for values in columns:
        for column in np.asarray(values).reshape(len(values), -1).T:
            key = scramble(key ^ bits_of(column))
    return key


def as_draws(seed: Any, like: Array) -> Draws:
    """Random numbers for distributions of the kind of ``like``.

    >>> as_draws(0, np.empty(0)).random((2,)).shape
    (2,)
    """
    if isinstance(seed, SubjectDraws):
        return seed
    if type(seed).__module__.startswith("torch") and type(seed).__name__ == "Generator":
        return _TorchDraws(seed, like.dtype if is_torch(like) else sys.modules["torch"].float64)
    return as_generator(seed)
