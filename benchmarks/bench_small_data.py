"""Ten-fold cross-validation on small, heavily tied data, where test events meet P(C >= y) = 0.

``without`` counts folds in which some score is undefined without a horizon; the other columns are what the
scorers do by default, with the horizons that they used.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from lifelines.datasets import load_waltons
from sklearn.model_selection import KFold, cross_validate
from sksurv.datasets import load_veterans_lung_cancer, load_whas500

import censcore as cs
from censcore.exceptions import PositivityError

SCORES = ["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw", "pinball_score"]
FOLDS = KFold(10, shuffle=True, random_state=0)


def data_sets() -> Iterator[tuple[str, np.ndarray, cs.RightCensored]]:
    waltons = load_waltons()
    y = cs.RightCensored(waltons["T"].to_numpy(float), waltons["E"].to_numpy())
    yield "waltons", (waltons[["group"]] == "control").to_numpy(float), y
    for name, load in (("veterans", load_veterans_lung_cancer), ("whas500", load_whas500)):
        X, structured = load()
        numbers = pd.get_dummies(X, drop_first=True).astype(float).to_numpy()
        yield name, numbers, cs.RightCensored.from_structured(structured)


def fails_without_horizon(x: np.ndarray, y: cs.RightCensored) -> int:
    failed = 0
    for train, test in FOLDS.split(x):
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y[train]).predict_distribution()
        F = cs.KaplanMeier().fit(None, y[train]).predict_distribution()
        try:
            cs.crps(y[test], F, C)
            cs.integrated_brier_score(y[test], F, C, scale="ipcw")
        except PositivityError:
            failed += 1
    return failed


def main() -> None:
    print(f"{'':10s}{'subjects':>9s}{'events':>8s}{'distinct':>10s}{'without':>9s}  horizons")
    for name, x, y in data_sets():
        model = cs.WithCensoring(cs.CoxRegression(alpha=1.0))
        found = cross_validate(model, x, y, cv=FOLDS, scoring=cs.scorers(SCORES), error_score="raise")
        h = found["test_horizon"]
        assert all(np.isfinite(found[f"test_{score}"]).all() for score in SCORES)
        print(
            f"{name:10s}{len(y):9d}{int(y.event.sum()):8d}{len(np.unique(y.time)):10d}"
            f"{fails_without_horizon(x, y):6d}/10  {h.min():g} to {h.max():g} "
            f"({len(np.unique(h))} different; longest time {y.time.max():g})"
        )
        for score in SCORES:
            values = -found[f"test_{score}"]
            print(
                f"{'':12s}{score:30s}{values.mean():10.4f} (folds {values.min():.4f} to {values.max():.4f})"
            )


if __name__ == "__main__":
    main()
