"""Covariates as the pandas frame that some libraries ask for."""

from __future__ import annotations

from typing import Any

from censcore._arrays import to_numpy

__all__ = ["as_frame"]


def as_frame(X: Any, names: list[str] | None = None) -> Any:
    """Covariates as a pandas frame with rows numbered from 0.

    Columns of arrays are called ``names``, where there are as many, and x0, x1, ... otherwise.
    """
    import numpy as np
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X.reset_index(drop=True)
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    array = to_numpy(X) if hasattr(X, "shape") else np.asarray(X)
    if names is None or len(names) != array.shape[1]:
        names = [f"x{j}" for j in range(array.shape[1])]
    return pd.DataFrame(array, columns=names)
