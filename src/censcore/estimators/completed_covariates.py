"""Ordinary tables for models of numbers: categories, missing values, and values far from those of the fit."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from censcore._arrays import to_numpy
from censcore.estimators.base import NotFitted
from censcore.estimators.covariates import check_numbers, scikit_learn_errors
from censcore.estimators.encoding import Encoding
from censcore.exceptions import ExtrapolationWarning, InvalidInputError
from censcore.plain_text import one_line, some_of

__all__ = ["CompletedCovariates"]

_MARGIN = 1.0  # standard deviations beyond the range of the fit in which values are taken as they are


class CompletedCovariates(TransformerMixin, BaseEstimator):
    """Covariates as a complete matrix of numbers that stays near those of the fit.

    - Text and categories of a frame get an indicator for every level but the first. A missing value is a
      level of its own. A level that the fit did not have becomes the reference, with a warning.
    - A missing number becomes the median of the fit. Columns with missing numbers in the fit get an indicator
      of these.
    - A number more than one standard deviation outside the range of the fit is held at that border, with an
      :class:`~censcore.exceptions.ExtrapolationWarning`: nothing is known of such subjects, and models would
      extrapolate.

    Parameters
    ----------
    impute : bool
        False leaves missing numbers as they are, without indicators, and far ones too, for models that take
        both, such as trees.

    Attributes
    ----------
    names_ : list of str
        Of the columns of the matrix.
    n_features_in_, feature_names_in_
        Number of columns of X, and their names where X is a frame.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [50.0, None, 60.0, 70.0], "stage": ["I", "II", None, "I"]})
    >>> completed = CompletedCovariates().fit(X)
    >>> completed.names_
    ['age', 'stage = II', 'stage = missing', 'age is missing']
    >>> completed.transform(X)
    array([[50.,  0.,  0.,  0.],
           [60.,  1.,  0.,  1.],
           [60.,  0.,  1.,  0.],
           [70.,  0.,  0.,  0.]])
    """

    _encoding: Encoding

    def __init__(self, impute: bool = True) -> None:
        self.impute = impute

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels, medians and ranges.

        Parameters
        ----------
        X : array or frame, (n, p)
            Covariates.
        y : ignored

        Returns
        -------
        self
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a column without any number: its median is zero
            values = self._numbers(X, reset=True)
            self._median = np.nan_to_num(np.nanmedian(values, axis=0))
            spread = np.nan_to_num(np.nanstd(values, axis=0))
            ends = [np.nan_to_num(end(values, axis=0)) for end in (np.nanmin, np.nanmax)]
        self._least, self._most = ends[0] - _MARGIN * spread, ends[1] + _MARGIN * spread
        self._gaps = np.flatnonzero(np.isnan(values).any(axis=0) & self.impute)
        names = [one_line(name) for name in self._encoding.names]
        self.names_ = [*names, *(f"{names[j]} is missing" for j in self._gaps)]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Covariates as numbers.

        Parameters
        ----------
        X : array or frame, (n, p)
            Covariates, with the columns of the fit.

        Returns
        -------
        array, (n, number of names)
        """
        if not hasattr(self, "names_"):
            raise NotFitted("This CompletedCovariates is not fitted yet. Call fit(X) first.")
        values = self._numbers(X, reset=False)
        if not self.impute:
            return values
        missing = np.isnan(values)
        held = np.clip(values, self._least, self._most)
        self._warn((held != values) & ~missing)
        return np.column_stack([np.where(missing, self._median, held), missing[:, self._gaps]])

    def _numbers(self, X: Any, *, reset: bool) -> np.ndarray:
        """Numbers and indicators of levels, with NaN where a number is missing."""
        from sklearn.utils.validation import check_array, validate_data

        framed = hasattr(X, "columns")
        check_numbers(X, categories=framed)
        if not framed and not reset and self._encoding.levels:
            names = some_of([str(name) for name in self._encoding.levels])
            raise InvalidInputError(
                f"X: got {type(X).__name__}, expected a data frame, since fit had the categories of {names}."
            )
        with scikit_learn_errors():
            if not framed:
                array = X if hasattr(X, "tocsr") else to_numpy(X, "X")
                values = validate_data(
                    self, array, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan"
                )
                if reset:
                    self._encoding = Encoding.of(values)
                return np.asarray(values)
            validate_data(self, X, reset=reset, skip_check_array=True)
            if reset:
                self._encoding = Encoding.of(X)
            return np.asarray(check_array(self._encoding.matrix(X), ensure_all_finite="allow-nan"))

    def _warn(self, far: np.ndarray) -> None:
        """Say how many subjects are far from those of the fit, and where."""
        if far.any():
            names = some_of([self.names_[j] for j in np.flatnonzero(far.any(axis=0))])
            warnings.warn(
                f"{int(far.any(axis=1).sum())} subjects have values more than a standard deviation outside "
                f"the range of the fit, of {names}. They are held at the border: nothing was learned beyond.",
                ExtrapolationWarning,
                stacklevel=4,
            )
