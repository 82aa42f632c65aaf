"""Competing risks: IPCW Brier score of one cause, against hazardous; the size of a common error; mgus2.

The validation of inputs counts. Both start from arrays of times, causes and cumulative incidences and end
with one mean per time; censcore gives one loss per subject and time on the way. The pictures of
``docs/competing_risks.md`` are drawn here too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hazardous.metrics import brier_score_incidence

import censcore as cs
from benchmarks.timing import alternate, one_thread, print_ratios
from censcore.evaluation.report.style import AMBER, GREY, RED, TEAL, new_figure, styled, svg_of

SUBJECTS, TIMES, REPEATS = 20_000, np.linspace(0.05, 2, 100), 7
PICTURES = Path(__file__).parent.parent / "docs" / "_static"


def data(seed: int, end: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    T = np.stack([rng.weibull(1.5, SUBJECTS), 1.5 * rng.weibull(0.9, SUBJECTS)])
    c = np.minimum(rng.exponential(1.5, SUBJECTS), end + 0.2 * rng.random(SUBJECTS))
    time = np.minimum(T.min(axis=0), c)
    return time, np.where(time < c, 1 + T.argmin(axis=0), 0)


def against_hazardous() -> None:
    train, test = data(1, 2.6), data(2, 2.3)  # the peer expects longer follow-up in the training data
    scale = np.random.default_rng(0).uniform(0.7, 1.3, SUBJECTS)
    cif = cs.CauseSpecificHazards([cs.Weibull(1.5, scale), cs.Weibull(0.9, 1.5)]).cif(TIMES)

    def ours() -> Any:
        y_train, y_test = cs.CompetingRisks(*train), cs.CompetingRisks(*test)
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y_train).predict_distribution()
        F = cs.CumulativeIncidence(TIMES, cif)
        return cs.brier_score(y_test.cause(1), F.cause(1), C, TIMES, scale="ipcw").mean(axis=0)

    def ours_alone() -> Any:
        with one_thread():
            return ours()

    def hazardous() -> Any:
        frames = (pd.DataFrame({"event": cause, "duration": time}) for time, cause in (train, test))
        return brier_score_incidence(*frames, cif[:, 0], TIMES, event_of_interest=1)

    worst = float(np.abs(hazardous() / ours() - 1).max())
    print_ratios(
        f"{SUBJECTS:,} subjects x {len(TIMES)} times, two causes (largest relative difference {worst:.0e})",
        alternate(REPEATS, censcore=ours, **{"censcore, one thread": ours_alone}, hazardous=hazardous),
    )


def rules_for_ties_of_c(n: int = 1280) -> None:
    """A comparison under a Cox regression of C by Efron's rule, and by the default; C is rounded."""
    X = np.random.default_rng(0).normal(size=(n, 3))
    hazards = [cs.Exponential(np.exp(X[:, 0])), cs.Exponential(0.5 * np.exp(X[:, 1]))]
    time, cause = (part[:, 0] for part in cs.CauseSpecificHazards(hazards).sample(1, seed=1))
    c = np.ceil(8 * cs.Exponential(np.exp(-0.3 * X[:, 2])).sample(1, seed=2)[:, 0]) / 8
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0))
    models = {"Aalen-Johansen": cs.AalenJohansen(), "Cox": cs.CauseSpecific(cs.CoxRegression())}
    forecasts = {name: model.fit(X, y).predict_distribution(X) for name, model in models.items()}

    def compared(ties: str) -> Any:
        C = cs.Censoring(cs.CoxRegression(ties=ties)).fit(X, y).predict_distribution(X)
        return cs.compare(forecasts, y, C)

    functions = {ties: lambda ties=ties: compared(ties) for ties in ("product-limit", "efron")}
    print_ratios(f"compare, {n:,} subjects, two causes, Cox regression of C", alternate(5, **functions))


# ---- the error of censoring competing events ---------------------------------------------------------

HAZARDS = cs.CauseSpecificHazards([cs.Weibull(1.3, 6.0), cs.Weibull(1.1, 4.0)], names=["relapse", "death"])
HORIZON = 8.0


def censored_competing_events(n: int = 5000) -> None:
    """Which forecast of relapse a score prefers: the truth, or the one of those who censor deaths."""
    rng = np.random.default_rng(0)
    time, cause = (part[0] for part in HAZARDS.sample(n, seed=rng))
    c = rng.uniform(2.0, 12.0, n)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=HAZARDS.names)
    naive = cs.RightCensored(y.time, y.causes == 1)
    forecasts = {
        "truth": HAZARDS.cause(1),
        "1 - Kaplan-Meier": cs.KaplanMeier().fit(None, naive).predict_distribution(),
    }
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    C_naive = cs.Censoring(cs.KaplanMeier()).fit(None, naive).predict_distribution()
    outcomes = {"y.cause(1)": (y.cause(1), C), "deaths censored": (naive, C_naive)}
    print("Mean CRPS of relapse, simulated, 5,000 subjects; difference to the truth (standard error)")
    for name, (seen, censoring) in outcomes.items():
        losses = {what: cs.crps(seen, F, censoring, horizon=HORIZON) for what, F in forecasts.items()}
        mean, error = cs.mean_loss(losses["1 - Kaplan-Meier"] - losses["truth"])
        means = ", ".join(f"{what} {loss.mean():.4f}" for what, loss in losses.items())
        print(f"  {name:16s} {means}; difference {float(mean):+.4f} ({float(error):.4f})")
    print()
    _draw_censored(y, forecasts, outcomes)


def _draw_censored(y: cs.CompetingRisks, forecasts: dict[str, Any], outcomes: dict[str, Any]) -> None:
    t = np.linspace(0.05, HORIZON - 0.05, 80)
    aalen_johansen = cs.AalenJohansen().fit(None, y).predict_distribution()
    with styled(grid=True):
        figure = new_figure(10, 3.6)
        left, *right = figure.subplots(1, 3)
        left.plot(t, forecasts["truth"].cdf(t[None, :])[0], color=TEAL, lw=2.2, label="truth")
        left.step(t, aalen_johansen.cif(t)[0, 0], color=GREY, where="post", label="Aalen-Johansen")
        left.step(
            t,
            forecasts["1 - Kaplan-Meier"].cdf(t[None, :])[0],
            color=RED,
            where="post",
            label="1 - Kaplan-Meier",
        )
        left.set(title="Probability of relapse by t", xlabel="t", ylim=(0, None))
        left.legend()
        for axes, (name, (seen, C)) in zip(right, outcomes.items(), strict=True):
            for what, color in (("truth", TEAL), ("1 - Kaplan-Meier", RED)):
                loss = cs.brier_score(seen, forecasts[what], C, t, horizon=HORIZON).mean(axis=0)
                axes.plot(t, loss, color=color, lw=2, label=what)
            axes.set(title=f"Brier score, {name}", xlabel="t", ylim=(0, None))
            axes.legend()
        (PICTURES / "competing_risks_censored.svg").write_bytes(svg_of(figure))


# ---- progression or death in mgus2 -------------------------------------------------------------------


def mgus2_data(path: Path) -> tuple[pd.DataFrame, cs.CompetingRisks]:
    """Covariates, and months to progression or to death without it."""
    table = pd.read_csv(path)
    progressed = table["pstat"] == 1
    y = cs.CompetingRisks(
        np.where(progressed, table["ptime"], table["futime"]).astype(float),
        np.where(progressed, 1, 2 * table["death"]),
        names=["progression", "death"],
    )
    columns = {
        "age": table["age"] / 10,
        "male": table["sex"] == "M",
        "mspike": table["mspike"],
        "hgb": table["hgb"],
    }
    X = pd.DataFrame(columns).astype(float)
    return X.fillna(X.median()), y


def mgus2(path: Path, n_train: int = 900, horizon: float = 300.0) -> None:
    """Three models on half of the subjects of mgus2, by cause and overall."""
    X, y = mgus2_data(path)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:n_train], order[n_train:]
    models = {
        "Aalen-Johansen": cs.AalenJohansen(),
        "cause-specific Cox": cs.CauseSpecific(cs.CoxRegression()),
        "cause-specific Weibull": cs.CauseSpecific(cs.WeibullRegression()),
    }
    F: dict[str, Any] = {
        name: model.fit(X.iloc[train], y[train]).predict_distribution(X.iloc[test])
        for name, model in models.items()
    }
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y[train]).predict_distribution()
    print(f"mgus2, {len(test)} test subjects: mean CRPS up to 300 months; difference (standard error)")
    for what in ("progression", "death", "all causes"):
        losses = {name: _crps(y[test], forecast, C, horizon, what) for name, forecast in F.items()}
        for name, loss in losses.items():
            mean, error = cs.mean_loss(loss - losses["Aalen-Johansen"])
            print(f"  {what:12s} {name:24s} {loss.mean():8.3f}  {float(mean):+8.3f} ({float(error):.3f})")
    _draw_mgus2(y, y[test], F, C)
    compared = cs.compare(
        {"Cox": F["cause-specific Cox"], "Weibull": F["cause-specific Weibull"]},
        y[test],
        cs.Censoring(cs.KaplanMeier()),
        train=(None, y[train]),
        scores=["crps", "brier_score:ipcw"],
        times=[120.0],
        by={"age": np.where(X["age"].to_numpy()[test] < 7, "below 70", "70 and above")},
        time_unit="months",
    )
    print(compared)


def _crps(y: cs.CompetingRisks, F: Any, C: Any, horizon: float, what: str) -> np.ndarray:
    if what == "all causes":
        return cs.crps(y, F, C, horizon=horizon)
    return cs.crps(y.cause(what), F.cause(what), C, horizon=horizon)


def _draw_mgus2(y: cs.CompetingRisks, y_test: cs.CompetingRisks, F: dict[str, Any], C: Any) -> None:
    t = np.linspace(2, 300, 75)
    whole = cs.AalenJohansen().fit(None, y).predict_distribution()
    naive = cs.KaplanMeier().fit(None, cs.RightCensored(y.time, y.causes == 1)).predict_distribution()
    with styled(grid=True):
        figure = new_figure(10, 3.6)
        left, *right = figure.subplots(1, 3)
        cif = whole.cif(t)[0]
        left.step(t, cif[1], color=GREY, where="post", label="death without progression")
        left.step(t, cif[0], color=TEAL, lw=2, where="post", label="progression")
        left.step(t, naive.cdf(t[None, :])[0], color=RED, where="post", label="progression, deaths censored")
        left.set(title="Cumulative incidence", xlabel="months", ylim=(0, 1))
        left.legend(fontsize=8.5)
        for axes, cause in zip(right, y.names, strict=True):
            losses = {
                name: cs.brier_score(y_test.cause(cause), f.cause(cause), C, t, scale="ipcw")
                for name, f in F.items()
            }
            for (name, loss), color in zip(losses.items(), (GREY, TEAL, AMBER), strict=True):
                axes.plot(t, loss.mean(axis=0), color=color, lw=1.8, label=name)
            axes.set(title=f"Brier score (ipcw), {cause}", xlabel="months", ylim=(0, None))
            axes.legend(fontsize=8.5)
        (PICTURES / "competing_risks_mgus2.svg").write_bytes(svg_of(figure))


def main() -> None:
    against_hazardous()
    rules_for_ties_of_c()
    censored_competing_events()
    path = Path(os.environ.get("CENSCORE_DATA", "")) / "survival" / "mgus2.csv"
    if path.exists():
        mgus2(path)
    else:
        print("mgus2.csv was not found below CENSCORE_DATA/survival; that part is left out.")


if __name__ == "__main__":
    main()
