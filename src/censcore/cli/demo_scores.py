"""What ``censcore demo`` computes: three forecasts of breast-cancer recurrence, scored on a real trial.

Every woman of the German Breast Cancer Study Group trial is scored once. The models and the censoring
distribution that score her are fitted to the other four of five folds: a Kaplan-Meier curve, a Weibull
regression and a Cox regression.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

import censcore as cs
from censcore.exceptions import NoDensityError
from censcore.scores import registry

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from censcore.estimators import SurvivalEstimator
    from censcore.scores import MeanLoss
    from censcore.scores.registry import ScoreInfo

__all__ = ["CURVE_TIMES", "HORIZON", "SCORES", "brier_curve", "cross_fit", "load_trial", "score_table"]

HORIZON = 5.0  # years
FOLDS = 5
MEMBERS = 1000
TIMES = np.array([1.0, 2.0, 4.0])
LEVELS = np.array([0.1, 0.25, 0.5])
CURVE_TIMES = np.linspace(0.05, HORIZON, 100, endpoint=False)

Score = Callable[["cs.RightCensored", "cs.Distribution", "cs.Distribution"], np.ndarray]
Losses = dict[str, dict[str, np.ndarray]]  # score -> model -> (subjects, columns)

#: What the columns of a score are called, by its axis.
COLUMNS = {"time": [f"{t:g} y" for t in TIMES], "level": [f"level {a:g}" for a in LEVELS]}


def _demo_score(info: ScoreInfo) -> Score:
    """A score of the registry at the times and levels of the demo."""

    def score(y: cs.RightCensored, F: cs.Distribution, C: cs.Distribution) -> np.ndarray:
        forecast = F if info.univariate else _ensemble(F)
        return info(y, forecast, C, times=TIMES, levels=LEVELS, horizon=HORIZON)

    return score


#: Each score, and what its columns are called.
SCORES: dict[str, tuple[Score, list[str]]] = {
    info.title.replace(" score", ""): (_demo_score(info), COLUMNS.get(info.axis, []))
    for info in registry.SCORES.values()
    if info.univariate or not (info.options or info.needs_times)  # variants are for joint forecasts
}


def brier_curve(y: cs.RightCensored, F: cs.Distribution, C: cs.Distribution) -> np.ndarray:
    """Brier score over time, for the plot."""
    return cs.brier_score(y, F, C, CURVE_TIMES, scale="ipcw", horizon=HORIZON)


def _ensemble(forecast: cs.Distribution) -> cs.Ensemble:
    """Equally likely members in place of the distribution: what a generative model would hand over."""
    levels = (np.arange(MEMBERS) + 0.5) / MEMBERS
    return cs.Ensemble(forecast.marginal(0).censor_at(HORIZON).icdf(levels[None, :]))


def load_trial() -> tuple[pd.DataFrame, cs.RightCensored]:
    """Covariates and recurrence-free time in years; the data come with lifelines."""
    import pandas as pd
    from lifelines.datasets import load_gbsg2

    trial = load_gbsg2()
    X = pd.DataFrame(
        {
            "hormone_therapy": trial.horTh == "yes",
            "postmenopausal": trial.menostat == "Post",
            "grade_2": trial.tgrade == "II",
            "grade_3": trial.tgrade == "III",
            "age": trial.age,
            "tumour_size": trial.tsize,
            "log_nodes": np.log(trial.pnodes),
            "log_progesterone": np.log1p(trial.progrec),
            "log_estrogen": np.log1p(trial.estrec),
        }
    )
    return X.astype(float), cs.RightCensored(trial.time.to_numpy() / 365.25, trial.cens.to_numpy())


def models() -> dict[str, SurvivalEstimator]:
    """The forecasters that are compared, the simplest first."""
    return {"Kaplan-Meier": cs.KaplanMeier(), "Weibull": cs.WeibullRegression(), "Cox": cs.CoxRegression()}


def cross_fit(X: pd.DataFrame, y: cs.RightCensored, scores: dict[str, Score]) -> Losses:
    """Out-of-fold losses of every score and model; the subjects of all models are in the same order."""
    fold = np.random.default_rng(0).permutation(len(y)) % FOLDS
    parts: dict[str, dict[str, list[np.ndarray]]] = {name: {} for name in scores}
    for test in (fold == held_out for held_out in range(FOLDS)):
        C = cs.Censoring(cs.KaplanMeier()).fit(X[~test], y[~test]).predict_distribution(X[test])
        for model, estimator in models().items():
            F = estimator.fit(X[~test], y[~test]).predict_distribution(X[test])
            for name, score in scores.items():
                with suppress(NoDensityError):  # a step distribution has no log score
                    losses = score(y[test], F, C).reshape(test.sum(), -1)
                    parts[name].setdefault(model, []).append(losses)
    return {
        name: {model: np.concatenate(folds) for model, folds in by_model.items()}
        for name, by_model in parts.items()
    }


def score_table(losses: Losses) -> Table:
    """Mean loss and its standard error; the smallest mean of each line stands out."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    names = list(losses["CRPS"])
    table = Table(
        title=f"Mean loss ± standard error over {HORIZON:g} years, lower is better",
        caption="ipcw: divided by P(C > t), the chance of being followed that long.\n"
        "For one event time the energy score is the CRPS.",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("score")
    for model in names:
        table.add_column(model, justify="right")
    for score, (_, columns) in SCORES.items():
        for j, line in enumerate([f"{score}, {column}" for column in columns] or [score]):
            means = {model: cs.mean_loss(values[:, j]) for model, values in losses[score].items()}
            best = min(means, key=lambda model: means[model].mean)
            cells = [_cell(means.get(model), model == best and len(means) > 1) for model in names]
            table.add_row(line, *cells)
    return table


def _cell(loss: MeanLoss | None, best: bool) -> str:
    if loss is None:
        return "[dim]no density[/dim]"
    text = f"{loss.mean:.4f} ± {loss.standard_error:.4f}"
    return f"[bold green]{text}[/bold green]" if best else text
