"""Models of hazardous."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.libraries.curves import Curves, monotone, needs_covariates
from censcore.estimators.libraries.pipelines import fit_weighted
from censcore.outcomes import RightCensored


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Curves | None:
    r"""SurvivalBoost: survival to the first event of any kind, at the times of ``time_grid_``.

    :math:`P(T>t\mid x)=1-\sum_jF_j(t\mid x)` with the cumulative incidence functions of the model, which
    classifies each time on its own: its curves are made monotone, with a warning that says by how much.
    """
    if not hasattr(model, "time_grid_"):
        return None
    needs_covariates(model, X)
    incidence = model.predict_cumulative_incidence(np.asarray(X))
    times, first = np.unique(np.asarray(model.time_grid_, dtype=np.float64), return_index=True)
    sf = 1 - incidence[:, 1:].sum(axis=1)[:, first]
    return Curves(times, monotone(sf, model))


def fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> Any:
    """Fit to a frame of ``event`` and ``duration``."""
    import pandas as pd

    outcome = pd.DataFrame({"event": to_numpy(y.event).astype(int), "duration": to_numpy(y.time)})
    return fit_weighted(model, np.asarray(X), outcome, weight)
