"""What every distribution is made of: arrays with the subjects first, and other distributions."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    Numbers,
    as_float,
    as_rows,
    common_rows,
    convert,
    detach,
    in_transform,
    is_neutral,
    is_torch,
    like_moved,
    namespace,
    not_compiled,
    one_namespace,
    requires_grad,
    take_rows,
    to_numpy,
)
from censcore._kept_values import KeepsValues
from censcore._validation import as_count, check_finite, check_positive, check_same_order, no_array
from censcore.distributions.random_draws import Draws, as_draws
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError

if TYPE_CHECKING:
    from censcore.distributions.univariate.univariate import Univariate

Made = TypeVar("Made")

#: What :func:`numpy.random.default_rng` accepts.
Seed = int | Sequence[int] | np.random.SeedSequence | np.random.Generator | Any | None


#: Draws, over all subjects, from which an error of the array library is one of their number.
_MANY = 10**8


class _Abstract(ABCMeta):
    """Abstract classes whose instances are those of subclasses alone, so that isinstance runs no Python."""

    __instancecheck__ = type.__instancecheck__


class Distribution(KeepsValues, metaclass=_Abstract):
    """One distribution of an event time, or of several, per subject.

    The base of :class:`~censcore.distributions.Univariate` (one event time) and of
    :class:`~censcore.distributions.Joint` (several).
    Distributions are immutable. Their arrays have the subjects as the first axis; a first axis of length one
    serves all subjects, so a distribution that is the same for everybody is stored once.

    Notes
    -----
    What a subclass writes and finds here is listed in :mod:`censcore.distributions.contract`.

    Examples
    --------
    >>> import censcore as cs
    >>> isinstance(cs.Weibull(1.5, 2.0), cs.Distribution)
    True
    >>> cs.Weibull(1.5, [1.0, 2.0, 3.0]).take([0, 2])
    Weibull(shape=(2,))
    """

    #: Names of the attributes that hold arrays, and of those that hold other distributions or lists of them.
    array_names: ClassVar[tuple[str, ...]] = ()
    part_names: ClassVar[tuple[str, ...]] = ()

    #: What is remembered with subjects as its first axis, so that some of them keep it.
    _kept: ClassVar[frozenset[str]] = frozenset({"panel edges"})

    #: The only array library that it computes in; empty where both serve.
    only_in: str = ""

    #: Whether it is of several event times, though their number may be one.
    _is_joint: bool = False

    #: Whether the distribution was built from Python numbers alone and so fits any array library.
    _neutral: bool = False

    #: What :meth:`remember` keeps.
    _remembered: dict[Hashable, Any]

    #: The origin of an estimate, set by the estimator: an object with ``take(rows)``. None for a
    #: distribution that was given, and for one derived from an estimate, other than by ``take`` and ``like``.
    estimated_from: Any = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in cls.__dict__:  # it checks values, which torch.compile cannot trace
            cls.__init__ = not_compiled(cls.__init__)  # type: ignore[method-assign]

    #: Labels of the subjects, from the index of what the distribution was made of; None without.
    row_labels: Any = None

    def store(self, **arrays: Array) -> None:
        """Keep ``arrays`` (numbers, or arrays with the subjects first) as ``_name`` in one array library."""
        if (labels := check_same_order(**arrays)) is not None:
            self.row_labels = labels
        xp = one_namespace(**arrays)
        self._neutral = all(is_neutral(value) for value in arrays.values())
        reference = next((as_float(v, n) for n, v in arrays.items() if not is_neutral(v)), None)
        values = {name: as_float(value, name, like=reference) for name, value in arrays.items()}
        dtype = xp.result_type(*values.values())
        for name, value in values.items():
            setattr(self, f"_{name}", xp.astype(value, dtype, copy=False))
        self.array_names = tuple(f"_{name}" for name in arrays)  # type: ignore[misc]

    def store_columns(self, **parameters: Array) -> None:
        """Keep ``parameters`` (numbers, or one value per subject) as (1 or n, 1) columns ``_name``."""
        self.store(**parameters)
        for name in parameters:
            setattr(self, f"_{name}", as_column(getattr(self, f"_{name}"), name, type(self).__name__))
        common_rows(**{name: getattr(self, f"_{name}").shape[0] for name in parameters})

    def parts(self) -> list[Distribution]:
        """Return the distributions that it is made of."""
        held = [getattr(self, name) for name in self.part_names]
        return [part for value in held for part in (value if isinstance(value, list) else [value])]

    @property
    def reference(self) -> Array:
        """Any array of the distribution: it tells the library, the dtype and the device."""
        if self.array_names:
            return getattr(self, self.array_names[0])
        if not (parts := self.parts()):
            raise InvalidTypeError(
                f"{type(self).__name__} holds no arrays: got none in __init__, expected its numbers, kept by "
                "self.store(name=array, ...), by self.set_parameters(name=value, ...) of Parametric, or in "
                "attributes that array_names or part_names name."
            )
        return parts[0].reference

    @cached_property
    def xp(self) -> Any:
        """The array namespace of the distribution."""
        return namespace(self.reference)

    @property
    def is_neutral(self) -> bool:
        """Whether the distribution and its parts were built from Python numbers alone."""
        parts = self.parts() if self.part_names else ()
        return all(part.is_neutral for part in parts) if parts else self._neutral

    @property
    def _requires_grad(self) -> bool:
        if self.xp is np:
            return False
        own = any(requires_grad(getattr(self, name)) for name in self.array_names)
        return own or any(part._requires_grad for part in self.parts())

    def __len__(self) -> int:
        n = 1
        for name in self.array_names:
            rows = getattr(self, name).shape[0]
            n = rows if n == 1 else n if rows in (1, n) else common_rows(arrays=n, **{name: rows})
        for part in self.parts() if self.part_names else ():
            n = common_rows(arrays=n, parts=len(part))
        return n

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state.pop("xp", None)  # modules are neither pickled nor copied
        return state

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,) for one event time, (n, k) for several; n = 1 stands for any number of subjects."""
        return (len(self), self.k) if self._is_joint else (len(self),)

    @property
    def k(self) -> int:
        """Number of event times."""
        return 1

    @property
    def only_time(self) -> float | None:
        """The one time at which its probabilities are known; None where they are at every time."""
        return None

    @property
    def knows_cdf(self) -> bool:
        """Whether all distributions that it is made of know small probabilities to all digits."""
        return all(part.knows_cdf for part in self.parts())

    @property
    def has_density(self) -> bool:
        """Whether every distribution that it is made of has a density."""
        return all(part.has_density for part in self.parts())

    def rebuilt(self, array: Callable[[Array], Array], distribution: Callable[[Any], Any]) -> Self:
        """The same kind of distribution, made of other arrays and other parts."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, _remembered={}, estimated_from=None)
        other.__dict__.pop("xp", None)
        for name in self.array_names:
            setattr(other, name, array(getattr(self, name)))
        for name in self.part_names:
            held = getattr(self, name)
            changed = [distribution(part) for part in held] if isinstance(held, list) else distribution(held)
            setattr(other, name, changed)
        return other

    def mapped(self, f: Callable[[Array], Array]) -> Self:
        """The same kind of distribution with ``f`` applied to every array it holds."""
        return self.rebuilt(f, lambda part: part.mapped(f))

    def replaced(self, **attributes: Any) -> Self:
        """The same kind of distribution with some other attributes, which are not checked again."""
        other = self.rebuilt(lambda array: array, lambda part: part)
        vars(other).update(attributes)
        return other

    def remember(self, name: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` derives from the arrays, made once; again each time where a gradient is recorded."""
        remembered = self.__dict__.setdefault("_remembered", {})
        if name in remembered:
            return remembered[name]
        value = make()
        if not (self._requires_grad or in_transform()):
            remembered[name] = value
        return value

    def take(self, rows: ArrayLike | slice) -> Self:
        """The distributions of some subjects; a distribution that serves all of them stays as it is.

        Parameters
        ----------
        rows : array of int or bool, slice or int
            Which subjects.

        Returns
        -------
        Distribution
            Of the same class.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.Exponential([1.0, 2.0, 4.0]).take([True, False, True]).mean()
        array([1.  , 0.25])
        """
        n, rows = len(self), rows if type(rows) is slice else as_rows(rows)
        if n == 1 or (isinstance(rows, slice) and rows == slice(0, n)):
            return self
        if isinstance(rows, slice) and (rows.step or 1) < 0:
            rows = np.arange(n)[rows].copy()  # torch has no slices that run backwards
        taken = self.rebuilt(
            lambda array: array if array.shape[0] == 1 else take_rows(array, rows),
            lambda part: part.take(rows),
        )
        if self.row_labels is not None and len(self.row_labels) == n:
            taken.row_labels = self.row_labels[rows if type(rows) is slice else to_numpy(rows)]
        for name in self._kept & self.__dict__.get("_remembered", {}).keys():
            stored = self._remembered[name]
            taken._remembered[name] = take_rows(stored, rows) if stored.shape[0] > 1 else stored
        if type(rows) is not slice or not range(n)[rows]:
            taken._of_someone()
        return taken if self.estimated_from is None else taken._estimated_like(self, rows)

    def _of_someone(self) -> Self:
        """The distribution itself; an error if it has no subject."""
        if not len(self):
            raise InvalidInputError(
                f"{type(self).__name__}: got no subject, expected at least one. Choose existing rows."
            )
        return self

    def _estimated_like(self, other: Distribution, rows: Any = None) -> Self:
        """Notes that the distribution is the estimate ``other``, or that of some of its subjects."""
        source = other.estimated_from
        self.estimated_from = source if source is None or rows is None else source.take(rows)
        return self

    def __getitem__(self, rows: Any) -> Self:
        return self.take(rows)

    def __iter__(self) -> Iterator[Self]:
        return (self.take([i]) for i in range(len(self)))  # by index, a shared one would never end

    __array__ = no_array

    def like(self, array: Numbers) -> Self:
        """The same distributions in the library, on the device and in the dtype of ``array``.

        Parameters
        ----------
        array : array of NumPy or torch
            Only its library, device and dtype matter.

        Returns
        -------
        Distribution
            The distribution itself where nothing changes.

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> cs.Exponential([1.0, 2.0]).like(np.ones(1, np.float32)).mean().dtype
        dtype('float32')
        """
        model: Array = array
        if type(model) is not np.ndarray or model.dtype != np.float64:
            model = as_float(model, "array")
        if self.only_in and is_torch(model) != (self.only_in == "torch"):
            got = "a torch tensor" if is_torch(model) else "a NumPy array"
            raise InvalidTypeError(
                f"{self!r} computes in {self.only_in} only; got {got}. Convert the outcome, y.like(array), "
                "or use a distribution of censcore: Weibull, LogNormal, ..., or marginal(j) of a joint one."
            )

        def make() -> Any:
            return self.rebuilt(lambda own: convert(own, model), lambda part: part.like(model))._bound()

        neutral = self.is_neutral
        if not neutral and self._is_like(model):
            return self
        # a distribution that serves all subjects is small, and is needed in every training step
        place = ("like", model.dtype, model.device)
        made = self.remember(place, make) if neutral or len(self) == 1 else make()
        return made if self.estimated_from is None else made._estimated_like(self)

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """The same distributions as tensors on another device or in another dtype.

        Parameters
        ----------
        *args, **kwargs
            As of ``torch.Tensor.to``: a device, a dtype (float32 or float64), both, or a tensor.

        Returns
        -------
        Distribution
            Of the same class, itself where nothing changes. A distribution in NumPy becomes one in torch.
            Gradients flow through the move.

        Examples
        --------
        >>> import torch, censcore as cs
        >>> cs.Exponential([1.0, 2.0]).to(torch.float32).mean()
        tensor([1.0000, 0.5000])
        """
        return self.like(like_moved(self.reference, *args, **kwargs))

    def _is_like(self, array: Array) -> bool:
        """Whether library, device and dtype of all numbers are those of ``array``."""
        own = (getattr(self, name) for name in self.array_names)
        return all(_are_alike(part, array) for part in own) and all(p._is_like(array) for p in self.parts())

    def _bound(self) -> Self:
        """Marks the distribution and its parts as belonging to an array library."""
        self._neutral = False
        for distribution in self.parts():
            distribution._bound()
        return self

    def detach(self) -> Self:
        """The same distributions, cut from any gradient graph."""
        return self.mapped(detach) if self._requires_grad else self

    def sample(self, m: int, seed: Seed = None) -> Array:
        """Random draws from every distribution.

        Parameters
        ----------
        m : int
            Draws per subject.
        seed : int, sequence of int, numpy.random.Generator, torch.Generator or None
            As in :func:`numpy.random.default_rng`. The generator of torch draws on its device, for
            distributions that are there.

        Returns
        -------
        array, (n, m), or (n, m, k) for joint distributions
            Gradients flow through the draws where the class says so.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.Weibull(1.5, [1.0, 2.0]).sample(5, seed=1).shape
        (2, 5)
        """
        m, draws = as_count(m, "m, the number of draws,"), as_draws(seed, self.reference)
        try:
            return self.draw(m, draws)
        except (MemoryError, ValueError, RuntimeError) as error:
            if m * len(self) < _MANY:
                raise
            raise InvalidInputError(
                f"m: got {m} draws of {len(self)} subjects, which do not fit into memory. Draw fewer at once."
            ) from error

    @abstractmethod
    def draw(self, m: int, rng: Draws) -> Array:
        """Draw m times for each subject, (n, m), or (n, m, k) of several event times."""

    @abstractmethod
    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``."""

    @abstractmethod
    def first(self) -> Univariate:
        """The distribution of the smallest of the event times."""

    @abstractmethod
    def log_likelihood(self, time: ArrayLike, event: ArrayLike) -> Array:
        """Log density in the coordinates with an event, log survival in the censored ones, (n,)."""

    def censor_at(self, tau: ArrayLike) -> Distribution:
        """The distribution of min(T, tau), coordinate by coordinate; an error where there is none."""
        raise UnsupportedOutcomeError(
            f"{type(self).__name__} has no version that is censored at tau. Pass horizon=tau to the score, "
            "or censor the distribution of one event time, such as forecast.cause(j)."
        )

    @abstractmethod
    def given_survival(self, a: ArrayLike) -> Distribution:
        """The distribution given that the event time, or all of them, exceed ``a``."""

    def _fitting(self, values: Array) -> Self:
        """The distribution in the library of ``values``, where it was built from plain numbers."""
        return self if is_neutral(values) or not self.is_neutral else self.like(as_float(values, "values"))

    def _with_columns(
        self, values: Array, name: str, check: Callable[[Array, str], None], k: int | None = None
    ) -> tuple[Self, Array]:
        """The distribution in the library of ``values``, and these, for all or each, as (1 or n, 1).

        With k there may be one value for each of so many event times: (1 or n, k).
        """
        distribution = self._fitting(values)
        reference = distribution.reference
        one_namespace(**{name: values, "distribution": reference})
        array = as_float(values, name, like=reference)
        check(array, name)
        of_each = k is not None and array.ndim == 2 and array.shape[1] == k
        if (array.ndim > 1 and not of_each) or 0 in array.shape:
            expected = "a number or one per subject, (n,)" if k is None else f"a number, (n,) or (n, {k})"
            raise InvalidInputError(f"{name} must be {expected}; got an array of shape {tuple(array.shape)}.")
        xp, columns = distribution.xp, array if of_each else array.reshape(-1, 1)
        common_rows(**{"distribution": len(distribution), name: columns.shape[0]})
        columns = xp.astype(columns, reference.dtype, copy=False)
        return distribution, columns if k is None else xp.broadcast_to(columns, (columns.shape[0], k))

    def _with_end(self, tau: Array) -> tuple[Self, Array]:
        """The distribution in the library of ``tau``, and that end of follow-up as (1 or n, 1).

        Of a joint distribution the end of each event time, (1 or n, k).
        """
        check = partial(check_positive, zero=True, infinite=True)
        return self._with_columns(tau, "tau", check, self.k if self._is_joint else None)

    def _with_start(self, a: Array) -> tuple[Self, Array]:
        """The distribution in the library of ``a``, and that time which T exceeds as a column (1 or n, 1)."""
        return self._with_columns(a, "a", check_finite)

    def _uniforms(self, size: tuple[int, ...], rng: Draws) -> Array:
        """Levels strictly between 0 and 1 also after rounding to float32, so that no draw falls on an end."""
        u = convert(rng.random(size), self.reference)
        unit = float(self.xp.finfo(u.dtype).eps)
        return self.xp.clip(u, unit / 4, 1 - unit / 2)

    def __repr__(self) -> str:
        size = ", ".join(str(extent) for extent in self.shape)
        return f"{type(self).__name__}(shape=({size}{',' if len(self.shape) == 1 else ''}))"


def as_column(values: Array, name: str, owner: str) -> Array:
    """A number, or one value per subject, as (1 or n, 1)."""
    if values.ndim > 1:
        raise InvalidInputError(
            f"{owner} takes {name} as a number or one value per subject (n,); got an array of shape "
            f"{tuple(values.shape)}."
        )
    return values.reshape(-1, 1)


def _are_alike(own: Array, array: Array) -> bool:
    if is_torch(own) != is_torch(array) or own.device != array.device:
        return False
    return own.dtype == array.dtype or "float" not in str(own.dtype)
