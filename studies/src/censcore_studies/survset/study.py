"""The default stack, ridge Cox regression and Kaplan-Meier on the splits, beside the published results."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from censcore.estimators import Adapted, CoxRegression, KaplanMeier
from censcore.evaluation import concordance
from censcore.scores import integrated_brier_score
from censcore_studies.kit.cells import Cell, finished_cells, run_cells
from censcore_studies.kit.follow_up import censoring_curve, eighty_percent_gone
from censcore_studies.kit.tables import StudyTable
from censcore_studies.survset.convention import predicted_time, published_brier_score
from censcore_studies.survset.data import SPLITS, TABLES, load_table, published_results, split_table

__all__ = ["LEARNERS", "report_survset", "run_survset", "score_split", "survset_cells"]

#: Raise the number when the same settings give other scores.
STUDY = "survset 3"
OURS = "BestForecast"

#: The simple learner that each metric of the stack is compared with on the splits that it was run on.
CONTROLS = {"IBS": "Kaplan-Meier", "CI": "ridge Cox", "proper": "Kaplan-Meier"}


def _stack(seed: int) -> Any:
    from censcore.learning.best_forecast import BestForecast

    return BestForecast(random_state=seed, device="cpu")


def _cox(seed: int) -> Any:
    """Missing values become medians, covariates have one unit."""
    ridge = CoxRegression(alpha=1.0)
    return Adapted(make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), ridge))


#: Models at their defaults, by split.
LEARNERS: dict[str, Callable[[int], Any]] = {
    OURS: _stack,
    "ridge Cox": _cox,
    "Kaplan-Meier": lambda seed: KaplanMeier(),
}


def score_split(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit a learner to the training subjects of a split and score its forecasts of the others.

    Parameters
    ----------
    settings : dict
        ``table``, ``split`` (from 0, as published, and the seed), ``learner``.

    Returns
    -------
    dict
        ``IBS`` and ``CI`` in the published convention; ``proper``, the mean localized integrated Brier score
        up to the time before which 80 % of the subjects left the risk set; ``weights`` of a stack.
    """
    X, y, X_new, y_new = split_table(settings["table"], settings["split"])
    pooled = settings["learner"] == "Kaplan-Meier"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # far covariates and dependent censoring do not change the default
        model = LEARNERS[settings["learner"]](settings["split"]).fit(None if pooled else X, y)
        F = model.predict_distribution(None if pooled else X_new)
    horizon = eighty_percent_gone(np.asarray(load_table(settings["table"])[1].time))
    C = censoring_curve(y, events_first=True)
    proper = integrated_brier_score(y_new, F, C, horizon=horizon, normalize=True)
    risk = np.broadcast_to(-predicted_time(F, y), len(y_new))
    return {
        "IBS": published_brier_score(y_new, F, y),
        "CI": concordance(y_new, risk),
        "proper": float(proper.mean()),
        "weights": getattr(model, "weights_", {}),
    }


def survset_cells(tables: Sequence[str] | None = None, splits: int = SPLITS) -> list[Cell]:
    """All splits of the simple learners, then the first split of all tables for the stack, the second, ..."""
    fixed = {"study": STUDY}
    counts = {learner: splits if learner == OURS else SPLITS for learner in LEARNERS}
    return [
        Cell(
            f"{split:02d}-{table}-{learner.replace(' ', '-')}",
            {"table": table, "split": split, "learner": learner},
            fixed,
        )
        for learner in sorted(LEARNERS, key=lambda name: name == OURS)
        for split in range(counts[learner])
        for table in tables or TABLES
    ]


def run_survset(
    out: str | os.PathLike[str],
    tables: Sequence[str] | None = None,
    splits: int = SPLITS,
    *,
    jobs: int = 1,
    progress: bool = True,
) -> None:
    """Score the chosen splits; finished ones are kept in ``out/cells``."""
    run_cells(score_split, survset_cells(tables, splits), out, jobs=jobs, progress=progress)


def report_survset(
    out: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None
) -> list[StudyTable]:
    """Tables of all finished splits: every score, means by table, and how often the stack is ahead."""
    rows = [
        {**found["settings"], **{name: found[name] for name in ("IBS", "CI", "proper")}}
        for found in finished_cells(out, STUDY)
    ]
    scores = pd.DataFrame(rows).sort_values(["table", "split", "learner"], ignore_index=True)
    means = _means(scores, published_results(folder))
    return [StudyTable("scores", scores, scores, "Every split."), _by_table(means), _summary(means)]


def _means(scores: pd.DataFrame, published: pd.DataFrame) -> pd.DataFrame:
    """Means over all ten splits, one line per table, smallest tables first.

    The scores of a table differ much between splits. Where the stack was run on some of them, its mean over
    all is the mean difference from a simple learner on these plus the mean of that learner over all.
    """
    rows = []
    for table in [name for name in TABLES if name in set(scores["table"])]:
        wide = scores[scores["table"] == table].pivot(index="split", columns="learner")
        run = wide.index[wide["IBS", OURS].notna()]
        row = {"table": table, "subjects": len(load_table(table)[1]), "splits": len(run)}
        for metric, simple in CONTROLS.items():
            means = wide[metric].mean()
            means[OURS] = (wide[metric][OURS] - wide[metric][simple])[run].mean() + means[simple]
            row |= {f"{metric}, {learner}": means[learner] for learner in LEARNERS}
        for name in ("IBS", "CI", "IBS sd", "CI sd"):
            row[f"{name}, published"] = published.loc[table, name]
        rows.append(row)
    return pd.DataFrame(rows)


def _by_table(means: pd.DataFrame) -> StudyTable:
    view = means[["table", "subjects", "splits"]].astype(str)
    for metric in ("IBS", "CI"):
        for learner in (OURS, "published", "ridge Cox"):
            view[f"{metric}, {learner}"] = means[f"{metric}, {learner}"].map("{:.3f}".format)
    gain = 1 - means[f"proper, {OURS}"] / means["proper, Kaplan-Meier"]
    cox = 1 - means["proper, ridge Cox"] / means["proper, Kaplan-Meier"]
    view["gain, %"] = (100 * gain).map("{:.1f}".format)
    view["gain of ridge Cox, %"] = (100 * cox).map("{:.1f}".format)
    caption = (
        "Means over ten splits: integrated Brier score (IBS, lower is better) and C-index (CI, higher is "
        "better) in the published convention, where published is SurvivalPFN; and by how much the proper "
        "score (localized integrated Brier score) is below that of Kaplan-Meier."
    )
    if (means["splits"] < SPLITS).any():
        caption += (
            " The stack was run on the first splits; its mean over ten is the mean difference from "
            "Kaplan-Meier (IBS and proper score) or ridge Cox regression (CI) on these, plus the mean of "
            "that learner over ten."
        )
    return StudyTable("by_table", means, view, caption)


def _summary(means: pd.DataFrame) -> StudyTable:
    """How often the stack is ahead, and means over tables."""
    rows = []
    for metric, sign in (("IBS", -1), ("CI", 1), ("proper", -1)):
        for versus in ("published", "ridge Cox", "Kaplan-Meier"):
            if f"{metric}, {versus}" in means:
                lead = sign * (means[f"{metric}, {OURS}"] - means[f"{metric}, {versus}"])
                row = {
                    "metric": metric,
                    "versus": versus,
                    "tables": len(lead),
                    "ahead": int((lead > 0).sum()),
                }
                row |= {"mean": means[f"{metric}, {OURS}"].mean()}
                rows.append(row | {"versus mean": means[f"{metric}, {versus}"].mean()})
    table = pd.DataFrame(rows)
    names = {"published": "SurvivalPFN, published", "proper": "proper score"}
    view = pd.DataFrame(
        {
            "metric": table["metric"].replace(names),
            "versus": table["versus"].replace(names),
            "ahead": [f"{row.ahead} of {row.tables}" for row in table.itertuples()],
            "mean over tables": table["mean"].map("{:.4f}".format),
            "of the other": table["versus mean"].map("{:.4f}".format),
        }
    )
    caption = "On how many tables the mean over splits of the default stack is better."
    return StudyTable("summary", table, view, caption)
