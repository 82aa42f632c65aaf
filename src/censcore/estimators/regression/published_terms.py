"""Terms of a published linear predictor: a covariate as the paper prints it, times its coefficients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_number, as_numbers, check_kind, check_option, name_subjects
from censcore.estimators.covariates import column_of
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.plain_text import some_of


@dataclass(frozen=True)
class Column:
    r"""A covariate, transformed as a published model prints it; :func:`censcore.column` makes one.

    Each method gives another column; they are read from left to right, so that
    ``column("nodes").capped(high=19).spline(0, 1, 9)`` is a spline of the capped covariate. A product of
    columns is their interaction.

    Parameters
    ----------
    name : str or int
        Name of a column of X, or its number in an array.
    steps : tuple
        Transformations, each as its name and its numbers; set by the methods.
    factors : tuple of Column
        Further columns that it is multiplied by; set by ``*``.
    """

    name: str | int
    steps: tuple[tuple[Any, ...], ...] = ()
    factors: tuple[Column, ...] = ()

    def _then(self, *step: Any) -> Column:
        if self.factors or (self.steps and self.steps[-1][0] in ("spline", "bands", "equals")):
            raise InvalidInputError(
                f"{self}: got {step[0]!r} after a product, a spline or categories, expected it before."
            )
        return Column(self.name, (*self.steps, step))

    def capped(self, low: float | None = None, high: float | None = None) -> Column:
        """Values below ``low`` are ``low``, values above ``high`` are ``high``."""
        ends = [end if end is None else as_number(end, "An end of capped") for end in (low, high)]
        known = [end for end in ends if end is not None]
        if not known or (known[0] >= known[-1] and len(known) == 2):
            raise InvalidInputError(
                f"capped: got low = {low} and high = {high}, expected one of them, or low below high."
            )
        return self._then("capped", *ends)

    def log(self) -> Column:
        """Take the natural logarithm, of positive values."""
        return self._then("log")

    def power(self, exponent: float) -> Column:
        """Take a power, as fractional polynomials do: 0.5 is the square root, -1 the reciprocal."""
        return self._then("power", as_number(exponent, "The exponent of power"))

    def __sub__(self, number: float) -> Column:
        return self._then("minus", as_number(number, "What is subtracted from a column"))

    def __truediv__(self, number: float) -> Column:
        if as_number(number, "What a column is divided by") == 0:
            raise InvalidInputError(f"{self}: got a division by zero.")
        return self._then("over", float(number))

    def spline(self, *knots: float) -> Column:
        r"""Restricted cubic spline with k knots, which has k - 1 coefficients.

        The convention is that of Harrell's ``rcs`` [1]_: x itself, then for j = 1, ..., k - 2

        .. math:: \Bigl\{(x-t_j)_+^3-(x-t_{k-1})_+^3\frac{t_k-t_j}{t_k-t_{k-1}}
            +(x-t_k)_+^3\frac{t_{k-1}-t_j}{t_k-t_{k-1}}\Bigr\}\Big/(t_k-t_1)^2.

        Coefficients of software without the division by the square of :math:`t_k-t_1` (``norm=0`` in Hmisc)
        are multiplied by it first.

        References
        ----------
        .. [1] F. E. Harrell (2015). Regression Modeling Strategies, second edition. Springer, Cham.
        """
        return self._then("spline", *_increasing(knots, 3, "spline"))

    def bands(self, *cuts: float, closed: str = "right") -> Column:
        """Categories of a number: one indicator for each band above the first cut.

        Values up to the first cut are the reference. A value at a cut belongs to the band below it, or to the
        one above it with ``closed="left"``.
        """
        check_option(closed, "closed", ("right", "left"))
        return self._then("bands", *_increasing(cuts, 1, "bands"), closed)

    def equals(self, *levels: Any) -> Column:
        """Take one indicator for each of the levels; every other value is the reference."""
        if not levels:
            raise InvalidInputError(f"{self}.equals: got no level, expected at least one.")
        return self._then("equals", *levels)

    def __mul__(self, other: Column) -> Column:
        check_kind(other, "A factor of a column", Column, "another column: column('age') * column('sex')")
        return Column(self.name, self.steps, (*self.factors, Column(other.name, other.steps), *other.factors))

    # ---- values --------------------------------------------------------------------------------------

    @property
    def labels(self) -> list[str]:
        """One label for each coefficient."""
        found = [self.name if isinstance(self.name, str) else f"column {self.name}"]
        for step, *given in self.steps:
            found = _labels(found[0], step, given)
        for factor in self.factors:
            found = [f"{a} * {b}" for a in found for b in factor.labels]
        return found

    def values(self, X: Any) -> np.ndarray:
        """One number for each subject and coefficient, (n, q)."""
        raw = column_of(X, self.name)
        _check_known(raw, self.name)
        if self.steps and self.steps[0][0] == "equals":
            x = np.array([[float(value == level) for level in self.steps[0][1:]] for value in raw.tolist()])
        else:
            x = _as_numbers(raw, self.name)[:, None]
            for step, *given in self.steps:
                x = _transformed(x, step, given, self.name)
        for factor in self.factors:
            other = factor.values(X)
            x = (x[:, :, None] * other[:, None, :]).reshape(len(x), -1)
        return x

    def __str__(self) -> str:
        return ", ".join(self.labels)


def column(name: str | int) -> Column:
    """Name a covariate of a published model, to be transformed as the paper prints it.

    Parameters
    ----------
    name : str or int
        Name of a column of X, or its number in an array.

    Returns
    -------
    Column
        ``.capped(low, high)``, ``.log()``, ``.power(p)``, ``- number``, ``/ number``, ``.bands(*cuts)``,
        ``.equals(*levels)`` and ``.spline(*knots)`` (Harrell's restricted cubic spline) transform it, and
        ``*`` multiplies it by another one.

    See Also
    --------
    PublishedCox : The model that it is a key of.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> nodes = cs.column(0).capped(high=19)
    >>> nodes.spline(0, 1, 9).values(np.array([[3.0], [40.0]])).round(3)
    array([[ 3.   ,  0.222],
           [19.   ,  5.222]])
    """
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise InvalidTypeError(f"column: got {type(name).__name__}, expected the name of a column of X.")
    return Column(name)


@dataclass(frozen=True)
class Term:
    """A column with its coefficients (q,), and the means (q,) that its values are centred at.

    ``complete`` says that every subject must have one of the levels.
    """

    column: Column
    coef: np.ndarray
    center: np.ndarray
    complete: bool = False

    @classmethod
    def of(cls, key: Any, value: Any, center: Any) -> Term:
        """From an entry of a mapping of coefficients: a name, a column or several of them, and numbers."""
        column = _as_column(key)
        complete = isinstance(value, Mapping)
        if complete:
            if column.steps or column.factors or not value:
                raise InvalidInputError(
                    f"coefficients: got {value} for {column}, expected levels and their coefficients for the "
                    "name of a column, such as {'grade': {1: 0, 2: 0.2, 3: 0.4}}."
                )
            column = column.equals(*value)
        coef = _numbers_of(value, column, "coefficients")
        means = np.zeros(len(coef)) if center is None else _numbers_of(center, column, "center")
        return cls(column, coef, means, complete)

    def values(self, X: Any) -> np.ndarray:
        """The columns that the coefficients belong to, centred, (n, q)."""
        found = self.column.values(X)
        if self.complete:
            unknown = np.flatnonzero(~found.any(axis=1))
            if unknown.size:
                raw = column_of(X, self.column.name).tolist()
                levels = some_of([repr(level) for level in self.column.steps[0][1:]])
                raise InvalidInputError(
                    f"{self.column.name!r}: got the level {raw[unknown[0]]!r} for {name_subjects(unknown)}, "
                    f"expected one of {levels}. Give the reference level the coefficient 0."
                )
        return found - self.center


def _as_column(key: Any) -> Column:
    """A name, a column, or a tuple of them, which is their product."""
    if isinstance(key, Column):
        return key
    if isinstance(key, tuple) and key:
        first, *others = (_as_column(part) for part in key)
        for other in others:
            first = first * other
        return first
    return column(key)


def _numbers_of(value: Any, column: Column, name: str) -> np.ndarray:
    """As many finite numbers as a column has coefficients."""
    labels = column.labels
    if isinstance(value, Mapping):
        levels = list(column.steps[0][1:]) if column.steps and column.steps[0][0] == "equals" else []
        if set(value) - set(levels):
            raise InvalidInputError(
                f"{name} of {column.name!r}: got the levels {list(value)}, expected {levels}."
            )
        value = [value.get(level, 0.0) for level in levels]
    several = isinstance(value, list | tuple | np.ndarray)
    numbers = as_numbers(value if several else [value], f"{name} of {column}")
    if len(numbers) != len(labels) or not np.isfinite(numbers).all():
        raise InvalidInputError(
            f"{name}: got {len(numbers)} numbers for {column}, expected {len(labels)} finite ones"
            + (f", of {some_of(labels)}." if len(labels) > 1 else ".")
        )
    return numbers


def _increasing(values: tuple[Any, ...], least: int, name: str) -> tuple[float, ...]:
    numbers = tuple(as_number(value, f"A number of {name}") for value in values)
    if len(numbers) < least or any(b <= a for a, b in pairwise(numbers)):
        raise InvalidInputError(
            f"{name}: got {list(values)}, expected at least {least} numbers, each larger than the one before."
        )
    return numbers


def _check_known(raw: np.ndarray, name: str | int) -> None:
    """Check that no value is missing: a published model does not say what it is then."""
    missing = np.array([value is None or value != value for value in raw.tolist()], dtype=bool)
    if missing.any():
        raise InvalidInputError(
            f"{name!r}: got missing values for {name_subjects(np.flatnonzero(missing))}, of which the "
            "published model says nothing. Impute them, or leave these subjects out."
        )


def _as_numbers(raw: np.ndarray, name: str | int) -> np.ndarray:
    if raw.dtype.kind not in "biuf":
        word = next((value for value in raw.tolist() if isinstance(value, str)), raw.tolist()[:1])
        raise InvalidTypeError(
            f"{name!r}: got {word!r}, expected numbers. The coefficients of a category are given by level, "
            "{'grade': {'I': 0, 'II': 0.2, 'III': 0.4}}."
        )
    return to_numpy(raw).astype(np.float64)


#: Transformations to one column, and how they are printed.
_FORMULAS: dict[str, tuple[Callable[..., np.ndarray], str]] = {
    "minus": (np.subtract, "({x} - {0:g})"),
    "over": (np.divide, "({x}/{0:g})"),
    "log": (np.log, "log({x})"),
    "power": (np.power, "{x}^{0:g}"),
}


def _transformed(x: np.ndarray, step: str, given: list[Any], name: str | int) -> np.ndarray:
    """One transformation of a column of numbers (n, 1), to (n, q)."""
    if step == "capped":
        return np.clip(x, *given)
    if step == "bands":
        *cuts, closed = given
        band = np.digitize(x, cuts, right=closed == "right")
        return (band == np.arange(1, len(cuts) + 1)).astype(np.float64)
    if step == "spline":
        return restricted_cubic_spline(x[:, 0], np.array(given))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = _FORMULAS[step][0](x, *given)
    bad = np.flatnonzero(~np.isfinite(value[:, 0]) & np.isfinite(x[:, 0]))
    if bad.size:
        raise InvalidInputError(
            f"{name!r}: got {x[bad[0], 0]:g} for {name_subjects(bad)}, expected values that have a {step}."
        )
    return value


def restricted_cubic_spline(x: np.ndarray, knots: np.ndarray) -> np.ndarray:
    """Harrell's basis of a restricted cubic spline, (n, k - 1): see :meth:`Column.spline`."""

    def cubed(knot: float) -> np.ndarray:
        return np.maximum(x - knot, 0.0) ** 3

    *inner, before, last = knots
    a, b = (last - np.array(inner)) / (last - before), (before - np.array(inner)) / (last - before)
    bends = [cubed(t) - cubed(before) * a[j] + cubed(last) * b[j] for j, t in enumerate(inner)]
    return np.column_stack([x, *(bend / (last - knots[0]) ** 2 for bend in bends)])


def _labels(x: str, step: str, given: list[Any]) -> list[str]:
    """How a transformation of x is printed, one label for each coefficient."""
    if step == "capped":
        low, high = given
        x = x if low is None else f"max({x}, {low:g})"
        return [x if high is None else f"min({x}, {high:g})"]
    if step in _FORMULAS:
        return [_FORMULAS[step][1].format(*given, x=x)]
    if step == "equals":
        return [f"[{x} = {level}]" for level in given]
    if step == "bands":
        *cuts, closed = given
        less, more = ("<", "<=") if closed == "right" else ("<=", "<")
        inner = [f"[{a:g} {less} {x} {more} {b:g}]" for a, b in pairwise(cuts)]
        return [*inner, f"[{x} {'>' if closed == 'right' else '>='} {cuts[-1]:g}]"]
    knots = ", ".join(f"{knot:g}" for knot in given)
    return [x, *(f"rcs{j}({x}; {knots})" for j in range(1, len(given) - 1))]
