"""Outcomes among tensors: moved to a device like them, and joined to batches by a DataLoader."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from censcore._arrays import Array, is_torch, like_moved, namespace
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["InTorch"]


class InTorch:
    """What all outcomes share: ``to`` and ``concat``. Once one is indexed, a DataLoader can collate them.

    Examples
    --------
    >>> import torch, censcore as cs
    >>> y = cs.RightCensored([2.0, 5.0, 3.5], [1, 0, 1])
    >>> next(iter(torch.utils.data.DataLoader(y, batch_size=2)))
    RightCensored(n=2, events=1 (50.0 %), time 2 to 5)
    """

    @property
    def _reference(self) -> Array:
        """One of the arrays of times, which tells dtype and device."""
        return self.time  # type: ignore[attr-defined]

    def like(self, array: Array) -> Any:
        """The same outcome in the library, on the device and in the dtype of ``array``."""
        raise NotImplementedError

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same outcome as tensors on another device or in another dtype.

        Parameters
        ----------
        *args, **kwargs
            As of ``torch.Tensor.to``: a device, a dtype (float32 or float64), both, or a tensor.

        Returns
        -------
        outcome
            Of the same class. An outcome in NumPy becomes one in torch.

        Examples
        --------
        >>> import torch, censcore as cs
        >>> cs.RightCensored([2.0, 5.0], [1, 0]).to(torch.float32).time
        tensor([2., 5.])
        """
        moved: Self = self.like(like_moved(self._reference, *args, **kwargs))
        return moved

    @classmethod
    def concat(cls, outcomes: Sequence[Self]) -> Self:
        """The subjects of several outcomes of one kind, in their order.

        Parameters
        ----------
        outcomes : sequence of outcomes
            In one array library and on one device. What is known of some only (censoring times, entries) is
            an error.

        Returns
        -------
        outcome
            Of the same class.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.RightCensored([2.0, 5.0, 3.5], [1, 0, 1])
        >>> cs.RightCensored.concat([y[2], y[:2]]).time
        array([3.5, 2. , 5. ])
        """
        outcomes = list(outcomes)
        if not outcomes:
            raise InvalidInputError("concat needs at least one outcome; got an empty list.")
        first = outcomes[0]
        if any(type(other) is not type(first) for other in outcomes):
            kinds = sorted({type(other).__name__ for other in outcomes})
            raise InvalidTypeError(f"concat joins outcomes of one kind; got {', '.join(kinds)}.")
        joined = copy.copy(first)
        for name, value in vars(first).items():
            setattr(joined, name, _join(name, [vars(other).get(name) for other in outcomes], value))
        return joined


def _join(name: str, values: list[Any], first: Any) -> Any:
    if isinstance(first, InTorch):
        return type(first).concat(values)
    if is_torch(first) or isinstance(first, np.ndarray):
        if all(value is not None and value.shape[1:] == first.shape[1:] for value in values):
            return namespace(first).concat(values, axis=0)
    elif all(value is None if first is None else value == first for value in values):
        return first
    raise InvalidInputError(f"concat: {name} is not the same kind of thing in all outcomes.")


def register_collate() -> None:
    """Tell torch's ``default_collate`` how outcomes join, once torch is there; without effect before."""
    module = sys.modules.get("torch.utils.data._utils.collate")
    if module is not None:
        module.default_collate_fn_map.setdefault(InTorch, _collate)


def _collate(batch: list[Any], *, collate_fn_map: Any = None) -> Any:
    """The outcomes of a batch as one, in torch like everything else that ``default_collate`` returns."""
    return type(batch[0]).concat(batch).to()
