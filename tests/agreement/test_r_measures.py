"""Other measures of forecasts: the numbers of R's pec, survival and riskRegression."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.evaluation import concordance_estimate
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import Followed, pair_statistic

CASES = ["pbc", "lung", "lungmonths", "lunguntied", "veteran", "melanoma"]


class Case:
    """Data of a case, its forecasts, and the curve of C, with weights or without."""

    def __init__(self, folder, name: str, weights: bool = False) -> None:
        self.data = data = pd.read_csv(folder / f"data_{name}.csv")
        self.y = cs.RightCensored(data["time"], data["status"] > 0)
        self.weight = data["w"].to_numpy() if weights else np.ones(len(data))
        self.C = cs.Censoring(cs.KaplanMeier()).fit(None, self.y, self.weight).predict_distribution()
        columns = [column for column in data if "__cdf@" in column]
        names = dict.fromkeys(column.split("__")[0] for column in columns)
        self.times = [float(column.split("@")[1]) for column in columns if column.startswith("full")]
        self.models = {
            model: cs.Step(self.times, cdf=data[[f"{model}__cdf@{t:g}" for t in self.times]].to_numpy())
            for model in names
        }
        self.models["Reference"] = cs.KaplanMeier().fit(None, self.y).predict_distribution()

    def brier(self, model: str, times) -> np.ndarray:
        losses = cs.brier_score(self.y, self.models[model], self.C, times, scale="ipcw")
        return np.average(losses, axis=0, weights=self.weight)


@pytest.mark.parametrize("case", CASES)
def test_brier_scores_of_pec_and_of_weights_by_rttright(r_data, lines, case):
    """rttright counts a subject censored at t as alive at t, which matters for times in months."""
    found = lines.query("case == @case and quantity == 'Brier' and source in ('pec', 'rttright')")
    cases = {option: Case(r_data, case, option == "weights") for option in ("", "weights")}
    assert len(found) == 30
    for line in found.itertuples():
        here, t = cases[line.option], line.time
        value = here.brier(line.model, [t])[0]
        at_t = ~here.y.event & (here.y.time == t)
        if line.source == "rttright" and at_t.any():
            risk = here.models[line.model].cdf(t)
            alive = (here.y.time > t) | at_t
            case_of = here.y.event & (here.y.time <= t)
            losses = np.where(alive, risk**2 / here.C.sf_left(t), 0.0)
            losses += np.where(case_of, (1 - risk) ** 2 / here.C.sf_left(here.y.time), 0.0)
            assert value != pytest.approx(line.value, abs=1e-5)
            value = np.average(losses, weights=here.weight)
        assert value == pytest.approx(line.value, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_integrated_brier_scores(r_data, lines, case):
    """An integral of step functions with exact = TRUE; without it a sum over a grid, from its left ends."""
    found, here = lines.query("case == @case and quantity == 'IBS' and source != 'Score'"), Case(r_data, case)
    if (path := r_data / f"data_{case}_curves.csv").exists():
        curves = pd.read_csv(path).iloc[:, 1:]  # from the second time on; the first is zero
        here.models["full curves"] = cs.Step([float(c.split("@")[1]) for c in curves], sf=curves.to_numpy())
    for line in found.itertuples():
        if line.source == "pec,grid":
            b = np.append(0.0, here.brier(line.model, here.times))[:-1]
            value = b @ np.diff(here.times, prepend=0.0) / line.time
        elif line.source == "pec,exact" and (line.model == "Reference" or "full curves" in here.models):
            F = here.models["Reference" if line.model == "Reference" else "full curves"]
            options = {"scale": "ipcw", "normalize": True, "horizon": line.time}
            value = cs.integrated_brier_score(here.y, F, here.C, **options).mean()
        else:
            continue
        assert value == pytest.approx(line.value, abs=1e-12)
    assert len(found) >= 5


@pytest.mark.parametrize("case", CASES)
def test_calibration_in_groups(r_data, lines, case):
    """Fifths of the risk; the share of events by Kaplan-Meier in each."""
    found = lines[(lines["case"] == case) & lines["quantity"].str.startswith("calibration")]
    here, t = Case(r_data, case), found["time"].iloc[0]
    risk = here.models["full"].cdf(t)
    fifth = np.clip(np.searchsorted(np.quantile(risk, np.linspace(0, 1, 6)), risk, side="left"), 1, 5)
    assert len(found) == 10
    for line in found.dropna(subset="value").itertuples():
        rows = np.nonzero(fifth == int(line.option[1]))[0]
        value = risk[rows].mean()
        if line.quantity == "calibration.obs":
            value = cs.KaplanMeier().fit(None, here.y.take(rows)).predict_distribution().cdf(t)[0]
        assert value == pytest.approx(line.value, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_concordance(r_data, lines, case):
    """Harrell's and Uno's, up to and including a time; weighted and with clusters.

    Errors there are those of first order. Ours have factors for few subjects, or clusters, as the jackknife.
    """
    found = lines.query("case == @case and quantity == 'concordance'")
    assert len(found) == 8
    for line in found.itertuples():
        here = Case(r_data, case, "weights" in line.option)
        options = {"sample_weight": here.weight} if "weights" in line.option else {}
        options |= {"groups": here.data["cluster"]} if "cluster" in line.option else {}
        options |= {"horizon": np.nextafter(line.time, np.inf)} if np.isfinite(line.time) else {}
        C = here.C if "G2" in line.option else None
        value = concordance_estimate(here.y, here.data["lp"], C, **options)
        assert value.value[0] == pytest.approx(line.value, abs=1e-12)
        clusters = here.data["cluster"].to_numpy() if "cluster" in line.option else np.arange(len(here.y))
        used = np.flatnonzero(here.weight > 0)
        pairs = comparable_pairs(
            Followed(here.y, cs.PointMass(np.inf) if C is None else C, used),
            here.data["lp"].to_numpy()[used],
            horizon=options.get("horizon"),
        )
        share = here.weight[used] / here.weight.sum()
        first = pair_statistic(pairs, share)
        psi = np.bincount(clusters[used], share * (first.excess + first.excess_later) / first.total)
        assert np.sqrt(psi @ psi) == pytest.approx(line.se, rel=1e-12)
        g = np.unique(clusters[used]).size
        assert 1 < value.standard_error[0] / line.se < 1 + 3 / g + 0.04


@pytest.mark.parametrize("case", [case for case in CASES if "tied" not in case and case != "melanoma"])
def test_differences_of_concordances(r_data, lines, case):
    found = lines.query("case == @case and quantity == 'delta.concordance'")
    here, scores = Case(r_data, case), pd.read_csv(r_data / f"data_{case}_lp.csv")
    assert len(found) == 2
    for line in found.itertuples():
        C, horizon = here.C if "G2" in line.option else None, np.nextafter(line.time, np.inf)
        a, b = (
            concordance_estimate(here.y, scores[name], C, horizon=horizon)
            for name in (line.model, line.versus)
        )
        assert (a.value - b.value)[0] == pytest.approx(line.value, abs=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_cindex_of_pec(r_data, lines, case):
    """Its rules for tied times are its own, so that tied data differ in the third digit."""
    line, here = (
        lines.query("case == @case and source == 'pec' and quantity == 'cindex'").iloc[0],
        Case(r_data, case),
    )
    risk = here.models["full"].cdf(line["time"])
    value = concordance_estimate(here.y, risk, here.C, horizon=line["time"]).value[0]
    tied = len(np.unique(here.y.time)) < len(here.y) and case != "melanoma"
    assert value == pytest.approx(line["value"], abs=0.01 if tied else 1e-12)


@pytest.mark.parametrize("case", ["cr_melanoma", "cr_melanomauntied"])
def test_cindex_of_each_cause(r_data, lines, case):
    found, data = (
        lines.query("case == @case and quantity == 'cindex'"),
        pd.read_csv(r_data / f"data_{case}.csv"),
    )
    y = cs.CompetingRisks(data["time"], data["status"])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    assert len(found) == 2
    for line in found.itertuples():
        risk = data[f"csc__cif_{line.cause}@{line.time:g}"]
        value = concordance_estimate(y.cause(line.cause), risk, C, horizon=line.time).value[0]
        assert value == pytest.approx(line.value, abs=1e-12)


@pytest.mark.parametrize("case", ["cr_melanoma", "cr_melanomauntied"])
def test_cause_specific_cox_models(r_data, lines, case):
    """survfit of two coxph models is CauseSpecific; CSC has the product limit instead of the exponential."""
    found = lines[(lines["case"] == case) & lines["quantity"].str.startswith("CSC")]
    data = pd.read_csv(r_data / f"data_{case}.csv")
    X = data[["age", "thick", "sex", "ulcer"]]
    y = cs.CompetingRisks(data["time"], data["status"])
    model = cs.CauseSpecific(cs.CoxRegression(ties="efron")).fit(X, y)
    times = np.unique(found["time"])
    incidences = {
        "survfit(coxph)": model.predict_distribution(X).cif(times),
        "CSC": product_limit(model, X, times),
    }
    assert len(found) == 132
    for line in found.itertuples():
        cif = incidences[line.source][:, int(line.cause) - 1, np.searchsorted(times, line.time)]
        value = cif.mean() if line.quantity == "CSC.meanrisk" else cif[int(line.model[3:]) - 1]
        assert value == pytest.approx(line.value, abs=1e-10)


def product_limit(model, X, times) -> np.ndarray:
    """The incidences sum S(u-) dLambda_j(u), S being the product of 1 - sum dLambda_j, (n, m, q)."""
    u = np.unique(np.concatenate([part.baseline_times_ for part in model.estimators_]))
    hazards = []
    for part in model.estimators_:
        jumps = np.zeros(len(u))
        jumps[np.searchsorted(u, part.baseline_times_)] = np.diff(part.baseline_hazard_, prepend=0.0)
        hazards.append(np.exp((X.to_numpy() - part.center_) @ part.coef_)[:, None] * jumps)
    S = np.cumprod(1 - sum(hazards), axis=1)
    before = np.column_stack([np.ones(len(S)), S[:, :-1]])
    return np.stack([[(before * h)[:, u <= t].sum(axis=1) for t in times] for h in hazards]).transpose(
        2, 0, 1
    )


@pytest.mark.parametrize("s", [365, 730])
def test_landmarks(r_data, lines, s):
    data = pd.read_csv(r_data / f"data_landmark_{s}.csv")
    y = cs.RightCensored(data["time"], data["status"] > 0)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    models = {name: cs.Step([500.0], cdf=data[[name]].to_numpy()) for name in ("full", "small")}
    models["Null model"] = cs.KaplanMeier().fit(None, y).predict_distribution()
    losses = {name: cs.brier_score(y, F, C, [500.0], scale="ipcw").mean() for name, F in models.items()}
    found = lines[lines["option"] == f"s{s}"]
    for line in found[~found["quantity"].str.endswith("AUC")].itertuples():
        value = losses[line.model] - (losses[line.versus] if line.versus else 0.0)
        value = 1 - value / losses["Null model"] if line.quantity == "IPA" else value
        assert value == pytest.approx(line.value, abs=1e-12)


def test_cross_validation(r_data, lines):
    """split.method = "cv5" on folds that are given; C is estimated from all subjects."""
    data = pd.read_csv(r_data / "data_cv.csv")
    y, times = cs.RightCensored(data["time"], data["status"] > 0), np.array([1000.0, 1500.0])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    models = {"Null model": [], "two": ["age", "nodes"], "five": ["age", "size", "grade", "nodes", "hormon"]}
    losses = {}
    for name, columns in models.items():
        risk = np.zeros((len(data), 2))
        for fold in np.unique(data["fold"]):
            train, test = (np.nonzero((data["fold"] == fold) == held_out)[0] for held_out in (False, True))
            X = data[columns].iloc[train] if columns else None
            model = cs.CoxRegression(ties="efron") if columns else cs.KaplanMeier()
            F = model.fit(X, y.take(train)).predict_distribution(
                data[columns].iloc[test] if columns else None
            )
            risk[test] = F.cdf(times[None, :])
        losses[name] = cs.brier_score(y, cs.Step(times, cdf=risk), C, times, scale="ipcw").mean(axis=0)
    found = lines[lines["option"] == "cv5"]
    assert len(found) == 18
    for line in found.itertuples():
        at = list(times).index(line.time)
        value = losses[line.model][at] - (losses[line.versus][at] if line.versus else 0.0)
        value = 1 - value / losses["Null model"][at] if line.quantity == "IPA" else value
        assert value == pytest.approx(line.value, abs=1e-9)


def samples_of_r(seed: int, n: int, count: int) -> np.ndarray:
    """What ``set.seed(seed); replicate(count, sample(n, n, TRUE))`` draws, from 0, one sample per line."""
    word = seed
    for _ in range(51):
        word = (69069 * word + 1) % 2**32
    state = []
    for _ in range(624):
        word = (69069 * word + 1) % 2**32
        state.append(word)
    twister = np.random.MT19937()
    twister.state = {"bit_generator": "MT19937", "state": {"key": np.array(state, np.uint32), "pos": 624}}
    bits = int(np.ceil(np.log2(n)))
    draws = (twister.random_raw(3 * n * count) >> 16) & (2**bits - 1)  # "Rejection", for n up to 2^16
    return draws[draws < n][: n * count].reshape(count, n).astype(int)


def test_bootstrap_cross_validation(r_data, lines):
    """split.method = "loob" with 50 samples; AUC is averaged over samples here, over pairs there."""
    data = pd.read_csv(r_data / "data_cv.csv")
    y = cs.RightCensored(data["time"], data["status"] > 0)
    X, cox = data[["age", "size", "grade", "nodes", "hormon"]], cs.CoxRegression(ties="efron")
    scored = cs.cross_validate(
        {"two": (cox, X[["age", "nodes"]]), "five": cox}, X, y,
        cv=cs.Bootstrap(samples=samples_of_r(9, len(data), 50)), scores="brier_score:ipcw",
        times=[1000.0, 1500.0], horizon=1600.0,
    )  # fmt: skip
    frame = scored.frame().replace("kaplan-meier", "Null model")
    found = lines[lines["option"] == "loob"]
    assert len(found) == 30
    for line in found.itertuples():
        score = "auc" if line.quantity.endswith("AUC") else "brier_score:ipcw"
        at = frame[(frame["score"] == score) & (frame["at"] == line.time)].set_index("model")
        value = at["mean"][line.model] - (at["mean"][line.versus] if line.versus else 0.0)
        value = at["skill"][line.model] if line.quantity == "IPA" else value
        assert value == pytest.approx(line.value, abs=2e-3 if score == "auc" else 1e-9)
        if line.quantity in ("Brier", "AUC"):
            error = at["standard_error"][line.model]
            if score != "auc":  # R has no term of the refits, which comes after the subjects here
                model = line.model.replace("Null model", "kaplan-meier")
                psi = scored.estimate(model, score).influence[: scored.settings["subjects"]]
                whole, error = error, np.sqrt((psi**2).sum(axis=0))[[1000.0, 1500.0].index(line.time)]
                assert error < whole
            assert error == pytest.approx(line.se, rel=1e-2 if score == "auc" else 1e-4)


#: Numbers of R without a counterpart here, and why.
LEFT_OUT = {
    ("Score,4", ""): "a sum over 4 times",
    ("Score,40", ""): "a sum over 40 times",
    ("Score,400", ""): "a sum over 400 times",
}


def test_few_numbers_are_left_out(lines):
    """All others are compared in the modules named test_r_... ."""
    pairs = pd.Series(list(zip(lines["source"], lines["option"], strict=True)))
    assert pairs.isin(LEFT_OUT).sum() == 3
    assert set(LEFT_OUT) <= set(pairs)
