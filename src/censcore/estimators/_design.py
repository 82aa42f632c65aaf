"""Covariates as a matrix of numbers, and whether a regression on them has one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["Standardised", "as_matrix"]


def as_matrix(estimator: Any, X: Any, *, reset: bool) -> np.ndarray | None:
    """X as an (n, p) matrix in double precision, None for no covariates.

    Sets (``reset=True``) or checks ``n_features_in_`` and ``feature_names_in_``.
    """
    from sklearn.utils.validation import validate_data

    if X is None or (hasattr(X, "shape") and len(X.shape) == 2 and X.shape[1] == 0):
        if not reset and estimator.n_features_in_:
            raise InvalidInputError(
                f"This {type(estimator).__name__} was fitted with {estimator.n_features_in_} covariates; "
                "got none."
            )
        if reset:
            estimator.n_features_in_ = 0
            vars(estimator).pop("feature_names_in_", None)
        return None
    if not reset and estimator.n_features_in_ == 0:
        return None
    _check_categories(X)
    X = X if hasattr(X, "columns") or hasattr(X, "tocsr") else to_numpy(X)  # sparse: scikit-learn refuses
    return np.asarray(validate_data(estimator, X, reset=reset, dtype=np.float64), dtype=np.float64)


def _check_categories(X: Any) -> None:
    if not hasattr(X, "columns"):
        return
    import narwhals as nw

    schema = nw.from_native(X, eager_only=True).schema
    bad = [name for name, kind in schema.items() if not (kind.is_numeric() or kind == nw.Boolean)]
    if bad:
        kinds = ", ".join(f"{name!r} ({schema[name]})" for name in bad[:10])
        raise InvalidTypeError(
            f"X must hold numbers; these columns do not: {kinds}. Encode categories first, for instance by "
            "sklearn.preprocessing.OneHotEncoder(drop='first') in a pipeline."
        )


@dataclass(frozen=True)
class Standardised:
    """Centred and scaled columns Z of X, in which a regression is fitted and from which it is mapped back."""

    Z: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    names: list[str]

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray, estimator: Any) -> Standardised:
        """Weighted means and standard deviations; constant columns are centred and not scaled."""
        share = weight / weight.sum()
        center = share @ X
        spread = np.sqrt(share @ (X - center) ** 2)
        constant = spread <= 1e-12 * np.maximum(np.abs(center), np.finfo(float).tiny)
        scale = np.where(constant, 1.0, spread)
        Z = np.where(constant, 0.0, (X - center) / scale)
        names = getattr(estimator, "feature_names_in_", [f"column {j}" for j in range(X.shape[1])])
        return cls(Z, center, scale, [str(name) for name in names])

    def check_collinear(self, weight: np.ndarray, estimator: str) -> None:
        """Without a penalty, linearly dependent columns leave the coefficients undetermined."""
        gram = (self.Z * (weight / weight.sum())[:, None]).T @ self.Z
        values, vectors = np.linalg.eigh(gram)
        if values[0] < 1e-10:
            raise InvalidInputError(
                f"The columns {self._largest(vectors[:, 0])} are constant or linear combinations of each "
                "other, so their coefficients are not determined. Drop one of them, or add a penalty: "
                f"{estimator}(alpha=...)."
            )

    def _largest(self, direction: np.ndarray) -> list[str]:
        involved = np.abs(direction) > 0.05 * np.abs(direction).max()
        return [name for name, there in zip(self.names, involved, strict=True) if there][:10]

    def check_separation(self, information: np.ndarray, estimator: str) -> None:
        """Where the likelihood grows without end in some direction, its curvature there is nil.

        The last rows and columns of ``information`` belong to the columns of X, others may come before.
        """
        values, vectors = np.linalg.eigh(information)
        if values[0] < 1e-6:
            raise InvalidInputError(
                f"The likelihood grows without end in {self._largest(vectors[-len(self.names) :, 0])}, which "
                "happens when a column tells rows with an event from rows without (a group without events, "
                "or fewer events than columns). Drop it, merge its groups, or add a penalty: "
                f"{estimator}(alpha=...)."
            )
