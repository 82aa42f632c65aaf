"""What a new user tries, on tables of lifelines and scikit-survival: done, done after a message, or failed.

Every task is written as somebody would write it who has read the first page of the documentation. Where the
first attempt ends in an error of the library, ``after`` is what its message says to do; the task then counts
as done after a message.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from lifelines import AalenJohansenFitter, CoxPHFitter, KaplanMeierFitter, WeibullAFTFitter
from lifelines.datasets import (
    load_diabetes,
    load_gbsg2,
    load_kidney_transplant,
    load_larynx,
    load_lung,
    load_lymphoma,
    load_mice,
    load_multicenter_aids_cohort_study,
    load_rossi,
    load_stanford_heart_transplants,
)
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, RepeatedKFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sksurv.datasets import load_aids, load_bmt, load_flchain, load_veterans_lung_cancer, load_whas500
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest
from sksurv.linear_model import CoxPHSurvivalAnalysis

import censcore as cs
from censcore.exceptions import CenscoreError

Task = tuple[str, Callable[[], object], Callable[[], object] | None]
TASKS: list[Task] = []


def task(name: str, after: Callable[[], object] | None = None) -> Callable[..., Any]:
    def add(attempt: Callable[[], object]) -> Callable[[], object]:
        TASKS.append((name, attempt, after))
        return attempt

    return add


# ---- tables ----------------------------------------------------------------------------------------------


def rossi() -> tuple[pd.DataFrame, cs.RightCensored]:
    frame = load_rossi()
    return frame.drop(columns=["week", "arrest"]), cs.RightCensored(frame["week"], frame["arrest"])


def gbsg2() -> tuple[pd.DataFrame, cs.RightCensored]:
    frame = load_gbsg2()
    return frame.drop(columns=["time", "cens"]), cs.RightCensored(frame["time"], frame["cens"])


def lung() -> tuple[pd.DataFrame, cs.RightCensored]:
    frame = load_lung()
    return frame.drop(columns=["time", "status"]), cs.RightCensored(frame["time"], frame["status"])


def whas500() -> tuple[pd.DataFrame, np.ndarray]:
    X, y = load_whas500()
    return X.astype(float), y


def veterans() -> tuple[pd.DataFrame, np.ndarray]:
    return load_veterans_lung_cancer()


def split(X: pd.DataFrame, y: Any) -> tuple[Any, ...]:
    rows = np.arange(len(X))
    train, test = train_test_split(rows, random_state=0)
    return X.iloc[train], y[train], X.iloc[test], y[test]


def load_bmt_arrays() -> tuple[np.ndarray, np.ndarray]:
    _, y = load_bmt()
    return y["ftime"], y["status"]


def causes() -> tuple[pd.DataFrame, cs.CompetingRisks]:
    X, y = load_bmt()
    return X, cs.CompetingRisks(y["ftime"], y["status"])


# ---- scores ----------------------------------------------------------------------------------------------


@task("score a lifelines Cox model by the CRPS")
def _() -> object:
    frame = load_rossi()
    model = CoxPHFitter().fit(frame[:300], "week", "arrest")
    y = cs.RightCensored(frame["week"][300:], frame["arrest"][300:])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, cs.RightCensored(frame["week"], frame["arrest"]))
    return cs.crps(y, cs.as_forecast(model, frame[300:]), C.predict_distribution())


@task("score a scikit-survival forest by the integrated Brier score")
def _() -> object:
    X, y, X_test, y_test = split(*whas500())
    forest = RandomSurvivalForest(n_estimators=20, random_state=0).fit(X, y)
    C = cs.Censoring(cs.KaplanMeier()).fit(X, y).predict_distribution()
    h = float(np.quantile(y["lenfol"], 0.8))
    F = cs.as_forecast(forest, X_test)
    return cs.integrated_brier_score(y_test, F, C, scale="ipcw", normalize=True, horizon=h)


@task("score a survival matrix of my own by the Brier score")
def _() -> object:
    _, y = lung()
    times = np.linspace(10, 900, 50)
    F = cs.as_forecast(np.tile(np.exp(-times / 400), (len(y), 1)), times=times)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    return cs.brier_score(y, F, C, [200.0, 400.0])


@task("score quantile forecasts by the pinball score")
def _() -> object:
    _, y = gbsg2()
    F = cs.Quantiles([0.1, 0.5, 0.9], [[300.0, 1200.0, 4000.0]])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    return cs.pinball_score(y, F, C, [0.25, 0.5], horizon=2000.0)


@task("score draws of a Bayesian model")
def _() -> object:
    _, y = rossi()
    draws = np.random.default_rng(0).weibull(1.2, size=(len(y), 200, 1)) * 90
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    return cs.crps(y, cs.Ensemble(draws), C, horizon=50.0)


@task("score without thinking about censoring", after=lambda: _with_censoring())
def _() -> object:
    _, y = rossi()
    return cs.crps(y, cs.Weibull(1.2, 90.0))


def _with_censoring() -> object:
    _, y = rossi()
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    return cs.crps(y, cs.Weibull(1.2, 90.0), C, horizon=50.0)


@task("log score of a Weibull regression")
def _() -> object:
    X, y, X_test, y_test = split(*rossi())
    return cs.log_score(y_test, cs.WeibullRegression().fit(X, y).predict_distribution(X_test))


@task("score with torch and take a gradient")
def _() -> object:
    import torch

    _, y = rossi()
    scale = torch.tensor(90.0, dtype=torch.float64, requires_grad=True)
    outcome = cs.RightCensored(torch.as_tensor(y.time), torch.as_tensor(y.event))
    cs.log_score(outcome, cs.Weibull(torch.tensor(1.2, dtype=torch.float64), scale)).mean().backward()
    return scale.grad


# ---- train and test --------------------------------------------------------------------------------------


@task("compare three scikit-survival models on a test set")
def _() -> object:
    X, y, X_test, y_test = split(*whas500())
    models = {
        "cox": CoxPHSurvivalAnalysis(alpha=0.1).fit(X, y),
        "forest": RandomSurvivalForest(n_estimators=20, random_state=0).fit(X, y),
        "boosting": GradientBoostingSurvivalAnalysis(n_estimators=20, random_state=0).fit(X, y),
    }
    return cs.compare(models, y_test, X=X_test, train=(X, y)).verdict


@task("compare lifelines models on a test set")
def _() -> object:
    frame = load_rossi()
    train, test = frame[:300], frame[300:]
    models = {
        "cox": CoxPHFitter().fit(train, "week", "arrest"),
        "weibull": WeibullAFTFitter().fit(train, "week", "arrest"),
    }
    y, y_train = (cs.RightCensored(part["week"], part["arrest"]) for part in (test, train))
    return cs.compare(models, y, X=test, train=(train, y_train)).frame()


@task("compare a lifelines model with a scikit-survival one")
def _() -> object:
    frame = load_rossi()
    train, test = frame[:300], frame[300:]
    X, y = train.drop(columns=["week", "arrest"]), cs.RightCensored(train["week"], train["arrest"])
    structured = np.array(list(zip(y.event, y.time, strict=True)), dtype=[("event", bool), ("time", float)])
    models = {
        "lifelines": (CoxPHFitter().fit(train, "week", "arrest"), test),
        "sksurv": (CoxPHSurvivalAnalysis().fit(X, structured), test.drop(columns=["week", "arrest"])),
    }
    return cs.compare(models, cs.RightCensored(test["week"], test["arrest"]), train=(X, y)).differences()


@task("compare an XGBoost AFT model")
def _() -> object:
    import xgboost

    X, y, X_test, y_test = split(*rossi())
    data = xgboost.DMatrix(X, label_lower_bound=y.time, label_upper_bound=np.where(y.event, y.time, np.inf))
    options = {
        "objective": "survival:aft",
        "aft_loss_distribution": "normal",
        "aft_loss_distribution_scale": 1.0,
    }
    model = xgboost.train(options, data, 30)
    return cs.compare({"xgboost": model}, y_test, X=X_test, train=(X, y)).frame()


@task("compare an XGBoost Cox model, which has risk scores only")
def _() -> object:
    import xgboost

    X, y, X_test, y_test = split(*rossi())
    model = xgboost.XGBRegressor(objective="survival:cox", n_estimators=30)
    model.fit(X, np.where(y.event, y.time, -y.time))
    F = cs.from_risk(np.log(model.predict(X)), y, np.log(model.predict(X_test)))
    return cs.compare({"xgboost": F}, y_test, X=X_test, train=(X, y)).frame()


@task("compare the library's own regressions on a frame with text")
def _() -> object:
    X, y, X_test, y_test = split(*gbsg2())
    models = [cs.CoxRegression().fit(X, y), cs.WeibullRegression().fit(X, y)]
    return cs.compare(models, y_test, X=X_test, train=(X, y)).frame()


@task("subgroups by a column")
def _() -> object:
    X, y, X_test, y_test = split(*gbsg2())
    model = cs.CoxRegression().fit(X, y)
    return cs.compare({"cox": model}, y_test, X=X_test, train=(X, y), by="menostat").frame()


@task("clusters: patients of one hospital")
def _() -> object:
    _X, y = rossi()
    hospital = np.arange(len(y)) % 20
    return cs.compare(
        {"a": cs.Weibull(1.2, 90.0)}, y, cs.Censoring(cs.KaplanMeier()), groups=hospital
    ).frame()


@task("sampling weights")
def _() -> object:
    X, y = rossi()
    weight = 1.0 + X["prio"].to_numpy()
    C = cs.Censoring(cs.KaplanMeier())
    return cs.compare({"a": cs.Weibull(1.2, 90.0)}, y, C, sample_weight=weight).frame()


@task("censoring that depends on the covariates, in one word")
def _() -> object:
    X, y = load_flchain()
    X, y = X.iloc[:1500], y[:1500]
    return cs.compare({"a": cs.Weibull(1.0, 20000.0)}, y, "auto", X=X).notes


@task("a frame as the outcome")
def _() -> object:
    frame = load_rossi().rename(columns={"week": "time", "arrest": "event"})
    return cs.compare({"a": cs.Weibull(1.2, 90.0)}, frame[["time", "event"]], cs.Censoring(cs.KaplanMeier()))


@task("status 1 and 2 as in R", after=lambda: lung()[1])
def _() -> object:
    frame = load_lung()
    return cs.RightCensored(frame["time"], frame["status"] + 1)


@task("misspelled score", after=lambda: _scored("integrated_brier_score:ipcw"))
def _() -> object:
    return _scored("integrated_brier")


def _scored(name: str) -> object:
    _, y = rossi()
    return cs.compare({"a": cs.Weibull(1.2, 90.0)}, y, cs.Censoring(cs.KaplanMeier()), scores=name)


@task("IBS by its usual name")
def _() -> object:
    return _scored("integrated_brier_score")


@task("concordance and AUC")
def _() -> object:
    X, y, X_test, y_test = split(*whas500())
    model = CoxPHSurvivalAnalysis(alpha=0.1).fit(X, y)
    frame = cs.compare({"cox": model}, y_test, X=X_test, train=(X, y)).frame()
    assert frame["score"].str.contains("concordance|auc", case=False).any()
    return frame


@task("calibration at a time")
def _() -> object:
    X, y, X_test, y_test = split(*whas500())
    model = CoxPHSurvivalAnalysis(alpha=0.1).fit(X, y)
    return cs.compare({"cox": model}, y_test, X=X_test, train=(X, y)).calibration("cox")


@task("decision curve")
def _() -> object:
    X, y, X_test, y_test = split(*whas500())
    model = CoxPHSurvivalAnalysis(alpha=0.1).fit(X, y)
    return cs.compare({"cox": model}, y_test, X=X_test, train=(X, y)).net_benefit()


@task("a page for a colleague")
def _() -> object:
    return _small().to_html()


def _small() -> cs.Comparison:
    X, y, X_test, y_test = split(*rossi())
    models = {"cox": cs.CoxRegression().fit(X, y), "weibull": cs.WeibullRegression().fit(X, y)}
    return cs.compare(models, y_test, X=X_test, train=(X, y), time_unit="weeks")


@task("a table for a paper")
def _() -> object:
    return _small().to_latex()


@task("plots")
def _() -> object:
    import matplotlib

    matplotlib.use("Agg")
    comparison = _small()
    return [comparison.plot(), comparison.plot("calibration")]


@task("save and read the numbers")
def _() -> object:
    return pd.read_json(io.StringIO(_small().to_json()), typ="series")


@task("landmarks")
def _() -> object:
    X, y, X_test, y_test = split(*rossi())
    model = cs.CoxRegression().fit(X, y)
    return cs.compare_landmarks({"cox": model}, y_test, landmarks=[10, 20], X=X_test, train=(X, y)).frame()


# ---- cross-validation ------------------------------------------------------------------------------------


@task("cross-validate the library's own models")
def _() -> object:
    X, y = rossi()
    return cs.cross_validate([cs.CoxRegression(), cs.WeibullRegression()], X, y).verdict


@task("cross-validate a scikit-survival pipeline on text and gaps")
def _() -> object:
    X, y = load_aids()
    text = [name for name in X if X[name].dtype.kind not in "if"]
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), text), remainder=SimpleImputer()
    )
    model = make_pipeline(encoder, CoxPHSurvivalAnalysis(alpha=1.0))
    return cs.cross_validate({"cox": model}, X, y, cv=3).frame()


@task("cross-validate a lifelines model")
def _() -> object:
    X, y = rossi()
    return cs.cross_validate({"cox": CoxPHFitter()}, X, y, cv=3).frame()


@task("cross-validate one model")
def _() -> object:
    X, y = veterans()
    return cs.cross_validate(cs.CoxRegression(), X, y).frame()


@task("repeated folds")
def _() -> object:
    X, y = rossi()
    splitter = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    return cs.cross_validate({"cox": cs.CoxRegression()}, X, y, cv=splitter).frame()


@task("models, X, y in compare by mistake", after=lambda: cs.cross_validate([cs.CoxRegression()], *rossi()))
def _() -> object:
    return cs.compare([cs.CoxRegression()], *rossi())


@task("scikit-learn's cross_val_score")
def _() -> object:
    X, y = rossi()
    model = cs.WithCensoring(cs.CoxRegression())
    return cross_val_score(model, X, y, cv=3, scoring=cs.scorer("crps"))


@task("grid search of a scikit-survival model")
def _() -> object:
    X, y = whas500()
    search = GridSearchCV(
        cs.WithCensoring(cs.Adapted(CoxPHSurvivalAnalysis())),
        {"model__model__alpha": [0.1, 10.0]},
        cv=3,
        scoring=cs.scorer("crps"),
    )
    return search.fit(X, cs.RightCensored.from_structured(y)).best_params_


@task("grid search of a lifelines model")
def _() -> object:
    X, y = rossi()
    model = cs.WithCensoring(cs.Adapted(CoxPHFitter()))
    search = GridSearchCV(model, {"model__model__penalizer": [0.1, 1.0]}, cv=3, scoring=cs.scorer("crps"))
    return search.fit(X, y).best_params_


@task("missing values in the library's own regression")
def _() -> object:
    X, y = lung()
    return cs.cross_validate([cs.CoxRegression()], X, y, cv=3).frame()


@task("a level that one fold has not seen")
def _() -> object:
    X, y = gbsg2()
    X = X.assign(tgrade=np.where(np.arange(len(X)) == 0, "IV", X["tgrade"]))
    return cs.cross_validate([cs.CoxRegression()], X, y, cv=3).frame()


@task("nearly nobody is censored")
def _() -> object:
    X, y = veterans()
    X = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(drop="first", sparse_output=False), ["Celltype", "Treatment"])
        ),
        StandardScaler(),
    ).fit_transform(X)
    return cs.cross_validate({"cox": CoxPHSurvivalAnalysis(alpha=0.1)}, X, y, cv=5).frame()


@task("the best forecast, by default")
def _() -> object:
    X, y, X_test, y_test = split(*rossi())
    model = cs.BestForecast(random_state=0).fit(X, y)
    return cs.compare({"best": model}, y_test, X=X_test, train=(X, y)).verdict


# ---- other kinds of data ---------------------------------------------------------------------------------


@task("competing risks from a scikit-survival array")
def _() -> object:
    _, y = load_bmt()
    return cs.CompetingRisks.from_structured(y)


@task("Aalen-Johansen")
def _() -> object:
    _X, y = causes()
    return cs.AalenJohansen().fit(None, y).predict_distribution().cif(500.0)


@task("Fine-Gray")
def _() -> object:
    X, y = causes()
    return cs.FineGray(cause=1).fit(X, y).summary()


@task("compare one cause alone")
def _() -> object:
    X, y = causes()
    F = cs.FineGray(cause=1).fit(X, y).predict_distribution(X)
    return cs.compare({"fine-gray": F}, y.cause(1), cs.Censoring(cs.KaplanMeier()), X=X).frame()


@task("compare forecasts of all causes")
def _() -> object:
    X, y = causes()
    return cs.cross_validate({"aj": cs.AalenJohansen()}, X, y, cv=3, reference=None).frame()


@task("lifelines' Aalen-Johansen curve of one cause")
def _() -> object:
    _X, _y = causes()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = AalenJohansenFitter(calculate_variance=False).fit(*load_bmt_arrays(), event_of_interest=1)
    return cs.as_forecast(fitted)


@task("interval-censored visits")
def _() -> object:
    frame = load_diabetes()
    y = cs.IntervalCensored(frame["left"], frame["right"])
    X = pd.DataFrame({"male": (frame["gender"] == "male").astype(float)})
    return cs.cross_validate({"weibull": cs.WeibullRegression()}, X, y, cv=3).frame()


@task("left- and interval-censored mice")
def _() -> object:
    frame = load_mice()
    return cs.Turnbull().fit(None, cs.IntervalCensored(frame["l"], frame["u"])).predict_distribution()


@task("delayed entry")
def _() -> object:
    frame = load_multicenter_aids_cohort_study()
    frame = frame[frame["T"] > frame["W"]]
    y = cs.RightCensored(frame["T"], frame["D"], entry=frame["W"])
    return cs.compare({"a": cs.Exponential(0.2)}, y, cs.Censoring(cs.KaplanMeier())).frame()


@task("rows with start and stop")
def _() -> object:
    frame = load_stanford_heart_transplants()
    return cs.RightCensored.from_start_stop(frame)


@task("a frame with start, stop and event as the outcome", after=lambda: _start_stop())
def _() -> object:
    return cs.KaplanMeier().fit(None, load_stanford_heart_transplants()[["start", "stop", "event"]])


def _start_stop() -> object:
    frame = load_stanford_heart_transplants()
    y, _ = cs.RightCensored.from_start_stop(frame)
    return cs.KaplanMeier().fit(None, y)


@task("events at time zero")
def _() -> object:
    frame = load_larynx()
    y = cs.RightCensored(np.where(np.arange(len(frame)) < 2, 0.0, frame["time"]), frame["death"])
    return cs.WeibullRegression().fit(frame[["age"]], y).summary()


@task("two event times of each subject")
def _() -> object:
    frame = load_kidney_transplant()
    time = np.column_stack([frame["time"] * 0.8, frame["time"]])
    y = cs.RightCensored(time, np.column_stack([frame["death"]] * 2))
    F = cs.Independent([cs.Exponential(1 / 3000), cs.Exponential(1 / 4000)])
    return cs.compare({"a": F}, y, cs.Censoring(cs.KaplanMeier())).frame()


@task("a Kaplan-Meier curve with confidence limits, as lifelines has it")
def _() -> object:
    frame = load_lymphoma()
    y = cs.RightCensored(frame["Time"], frame["Censor"])
    fitted = KaplanMeierFitter().fit(frame["Time"], frame["Censor"])
    ours = cs.KaplanMeier().fit(None, y)
    np.testing.assert_allclose(
        ours.predict_distribution().sf([[50.0]]).ravel(), fitted.predict(50.0), rtol=1e-9
    )
    return ours.confidence_interval([50.0])


# ---- the command line ------------------------------------------------------------------------------------


def _table(folder: str) -> Path:
    frame = load_rossi()[["week", "arrest"]]
    for t in (10, 20, 30, 40):
        frame[f"cox__sf@{t}"] = np.exp(-((t / 90) ** 1.2))
    path = Path(folder) / "predictions.csv"
    frame.to_csv(path, index=False)
    return path


def _command(*options: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "censcore", "compare", str(_table(folder)), *options]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CenscoreError(done.stderr or done.stdout)
    return done.stdout


@task("compare on the command line")
def _() -> object:
    return _command("--time", "week", "--event", "arrest")


@task(
    "compare on the command line without naming columns",
    after=lambda: _command("--time", "week", "--event", "arrest"),
)
def _() -> object:
    return _command()


@task("JSON on the command line")
def _() -> object:
    return _command("--time", "week", "--event", "arrest", "--json", "-")


# ---- the run ---------------------------------------------------------------------------------------------


def outcome(attempt: Callable[[], object], after: Callable[[], object] | None) -> tuple[str, str]:
    """How a task ended, and the message on the way."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            attempt()
        return "done", ""
    except CenscoreError as error:
        message = " ".join(str(error).split())
        if after is None:
            return "failed", f"{type(error).__name__}: {message}"
        after()
        return "after a message", message
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"


def main() -> None:
    ends: dict[str, int] = {"done": 0, "after a message": 0, "failed": 0}
    for name, attempt, after in TASKS:
        started = time.process_time()
        how, message = outcome(attempt, after)
        ends[how] += 1
        print(f"{how:16} {name} ({time.process_time() - started:.1f} s)")
        if message:
            print(f"{'':16} {message[:240]}")
    print(f"\n{len(TASKS)} tasks: " + ", ".join(f"{count} {how}" for how, count in ends.items()))


if __name__ == "__main__":
    main()
