"""R beside the library, on tables of R's own: run where R has survival and riskRegression.

Other tables than those of the recorded numbers, among them times in units of two months. ``live.R`` writes
one line per number.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.agreement import fine_gray_data

import censcore as cs
from censcore.evaluation import concordance_estimate, dynamic_auc

SINGLE, CAUSES = ["colon", "gbsg", "ovarian", "rats", "months"], ["transplant", "pbc"]
PARAMETRIC = {
    "weibull": cs.WeibullRegression,
    "lognormal": cs.LogNormalRegression,
    "loglogistic": cs.LogLogisticRegression,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    if shutil.which("Rscript") is None:
        pytest.skip("there is no Rscript on the path")
    place = tmp_path_factory.mktemp("r")
    command = ["Rscript", str(Path(__file__).with_name("live.R"))]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("R has no package survival, riskRegression or prodlim")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return place


class Table:
    """A table, the lines of R on it, and its outcome."""

    def __init__(self, folder: Path, case: str, part: str = "data") -> None:
        self.data = pd.read_csv(folder / f"{part}_{case}.csv")
        lines = pd.read_csv(folder / "lines.csv", keep_default_na=False, na_values=["NA"])
        self.lines = lines[lines["case"] == case]

    def outcome(self, option: str = "") -> cs.RightCensored | cs.CompetingRisks:
        time, status = self.data["time"], self.data["status"]
        entry = self.data["entry"] if option == "entry" else None
        if status.max() > 1:
            return cs.CompetingRisks(time, status, entry=entry)
        return cs.RightCensored(time, status > 0, entry=entry)

    def weight(self, option: str):
        return self.data["w"].to_numpy() if option == "weights" else None

    def of(self, *quantities: str) -> pd.DataFrame:
        found = self.lines[self.lines["quantity"].isin(quantities)]
        assert len(found) >= 9
        return found


@pytest.mark.parametrize("case", [*SINGLE, *CAUSES])
def test_curves_with_errors_and_intervals(folder, case):
    """All scales of survfit; its errors of competing risks are robust ones."""
    table = Table(folder, case)
    found, causes = table.of("KM", "CIF"), case in CAUSES
    for option, lines in found.groupby("option"):
        transform, kind = option.split(",")
        model = cs.AalenJohansen() if causes else cs.KaplanMeier()
        model.fit(None, table.outcome(kind), table.weight(kind))
        for cause, some in lines.groupby("cause", dropna=False):
            part = (0, int(cause) - 1) if causes else (0,)
            times = some["time"].to_numpy()
            F = model.predict_distribution()
            value = F.cif(times)[part] if causes else F.sf(times[None, :])[part]
            np.testing.assert_allclose(value, some["value"], rtol=1e-10)
            np.testing.assert_allclose(
                model.standard_errors(times, robust=causes)[part], some["se"], rtol=1e-9
            )
            ends = model.confidence_interval(times, transform=transform, robust=causes)[part]
            np.testing.assert_allclose(ends, some[["lower", "upper"]], rtol=1e-9)


@pytest.mark.parametrize("case", SINGLE)
def test_regressions(folder, case):
    """Weighted, with delayed entry, robust, and with strata of the Cox model."""
    table = Table(folder, case)
    for (name, option), some in table.of("coxph", *PARAMETRIC).groupby(["quantity", "option"]):
        X = table.data[["age", "nodes", "group"]]
        strata = "group" if option == "strata" else None
        model = cs.CoxRegression(ties="efron", strata=strata) if name == "coxph" else PARAMETRIC[name]()
        model.fit(X, table.outcome(option), table.weight(option))
        names, values = model.estimates()
        error = np.sqrt(np.diag(model.robust_covariance())) if option == "robust" else model.standard_errors_
        names = [word.replace("log sigma", "log shape") for word in names]
        sign = np.where(["shape" in word for word in names], -1.0, 1.0)
        values = values * (sign if name != "lognormal" else 1.0)
        here = pd.DataFrame({"value": values, "se": error}, [w.replace("log shape", "scale") for w in names])
        theirs = some.set_index("model")[["value", "se"]]
        assert set(theirs.index) == set(here.index)
        np.testing.assert_allclose(here.loc[theirs.index, "value"], theirs["value"], rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(here.loc[theirs.index, "se"], theirs["se"], rtol=1e-6)


@pytest.mark.parametrize("case", SINGLE)
def test_concordance(folder, case):
    """All weights of pairs: 1 (n), 1/G (S), 1/G² (S/G and n/G2), and one over the number at risk (I).

    A weight 1/H is that of a C with the square root of H. Errors there leave out that a subject is in the
    number of pairs too.
    """
    table = Table(folder, case)
    for line in table.of("concordance").itertuples():
        weighting, option = line.option.split(",")
        weight, y = table.weight(option), table.outcome(option)
        seen, at = cs.RightCensored(y.time, y.event), np.unique(y.time)
        G = cs.Censoring(cs.KaplanMeier()).fit(None, seen, weight).predict_distribution()
        followed = cs.RightCensored(y.time, np.ones(len(y)))
        H = cs.KaplanMeier().fit(None, followed, weight).predict_distribution()
        roots = {
            "S": cs.Step(at, sf=np.sqrt(G.sf(at[None, :]))),
            "I": cs.Step(at, sf=np.sqrt(H.sf(at[None, :]))),
        }
        C = {"n": None, "S/G": G, "n/G2": G, **roots}[weighting]
        options = {} if weight is None else {"sample_weight": weight}
        options |= {"horizon": np.nextafter(line.time, np.inf)} if option == "ymax" else {}
        risk = table.data["group" if option == "tied" else "risk"]
        found = concordance_estimate(y, risk, C, **options)
        assert found.value[0] == pytest.approx(line.value, abs=1e-12)
        assert line.se < found.standard_error[0] < 1.12 * line.se


@pytest.mark.parametrize("case", [*SINGLE, *CAUSES])
def test_score(folder, case):
    """Brier, IPA, AUC and their differences; with a Cox model of C its curve has events last at ties."""
    table = Table(folder, case, "test")
    y, data = table.outcome(), table.data
    found = table.of("Brier", "IPA", "AUC", "delta.Brier", "delta.AUC")
    times = np.unique(found["time"])
    null = (cs.AalenJohansen() if case in CAUSES else cs.KaplanMeier()).fit(None, y).predict_distribution()
    C = {"km": cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()}
    events_last = cs.RightCensored(y.time, data["status"] == 0)
    X = data[["age", "nodes"]]
    C["cox"] = cs.CoxRegression(ties="efron").fit(X, events_last).predict_distribution(X)
    for (option, cause), lines in found.groupby(["option", "cause"]):
        target = y.cause(int(cause)) if case in CAUSES else y
        models = {"Null model": null.cause(int(cause)) if case in CAUSES else null}
        for model in ("full", "small", "tied"):
            risks = data[[f"{model}__{int(cause)}@{k}" for k in (1, 2, 3)]].to_numpy()
            models[model] = cs.Step(times, cdf=risks)
        brier, auc = {}, {}
        for model, F in models.items():
            brier[model] = cs.brier_score(target, F, C[option], times, scale="ipcw").mean(axis=0)
            risk = [F.cdf(np.full(len(y), t)) for t in times]
            auc[model] = [dynamic_auc(target, r, C[option], [t])[0] for r, t in zip(risk, times, strict=True)]
        for line in lines.itertuples():
            at = np.searchsorted(times, line.time)
            means = auc if line.quantity.endswith("AUC") else brier
            value = means[line.model][at] - (means[line.versus][at] if line.versus else 0.0)
            value = 1 - value / brier["Null model"][at] if line.quantity == "IPA" else value
            assert value == pytest.approx(line.value, abs=1e-11 if option == "km" else 1e-6)


@pytest.mark.parametrize("seed", [11, 12])
def test_fine_gray_with_entries_and_strata(tmp_path, seed):
    """Needs survival only; the numbers of one table are recorded in test_r_fine_gray.py."""
    if shutil.which("Rscript") is None:
        pytest.skip("there is no Rscript on the path")
    data = fine_gray_data.drawn(200, seed)
    for case in fine_gray_data.CASES:
        data.to_csv(tmp_path / f"data_{case}.csv", index=False)
    command = ["Rscript", str(Path(__file__).with_name("fine_gray.R"))]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("R has no package survival")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = pd.read_csv(tmp_path / "lines.csv")
    for case in fine_gray_data.CASES:
        theirs = lines["value"][lines["case"] == case]
        np.testing.assert_allclose(fine_gray_data.numbers(data, case), theirs, rtol=1e-8)
