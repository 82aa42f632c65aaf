"""``censcore demo``: three forecasts of breast-cancer recurrence, cross-validated on a real trial."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import censcore as cs
from censcore.files import write_atomically

if TYPE_CHECKING:
    import pandas as pd


def demo(out: Annotated[Path, typer.Option(help="Folder for the plot and the page.")] = Path("demo")) -> None:
    """Compare three forecasts on the German Breast Cancer Study Group trial: a table, a plot and a page."""
    try:
        for package in ("lifelines", "matplotlib"):
            import_module(package)
    except ModuleNotFoundError as error:
        raise SystemExit(f"The demo needs {error.name}: pip install 'censcore[demo]'.") from error
    comparison, picture = demo_comparison(), io.BytesIO()
    print(f"German Breast Cancer Study Group trial: years to recurrence or death\n\n{comparison!r}\n")
    comparison.plot().savefig(picture, dpi=160)
    print(f"plot: {write_atomically(out / 'overview.png', picture.getvalue())}")
    comparison.to_html(out / "report.html", title="Forecasts of breast-cancer recurrence")
    print(f"page: {out / 'report.html'}")


def demo_comparison() -> cs.Comparison:
    """A Kaplan-Meier curve, a Weibull and a Cox regression, each scored on women that it was not fitted to.

    The censoring distribution is estimated in each training fold, too.
    """
    models = {"Kaplan-Meier": cs.KaplanMeier(), "Weibull": cs.WeibullRegression(), "Cox": cs.CoxRegression()}
    return cs.cross_validate(
        models, *load_trial(), cv=5, censoring=cs.Censoring(cs.KaplanMeier()), times=[1.0, 2.0, 4.0],
        horizon=5.0, reference="Kaplan-Meier", time_unit="years",
    )  # fmt: skip


def load_trial() -> tuple[pd.DataFrame, cs.RightCensored]:
    """Covariates and recurrence-free time in years; the data come with lifelines."""
    import numpy as np
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
