"""Regressions, curves and their errors: the numbers of R's survival, number by number."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs

CASES = {
    "pbc": ["age", "bili", "albumin", "edema", "trt"],
    "lung": ["age", "sex", "ph.ecog"],
    "lungmonths": ["age", "sex", "ph.ecog"],
    "lunguntied": ["age", "sex", "ph.ecog"],
    "veteran": ["karno", "age", "diagtime", "trt"],
    "melanoma": ["age", "thick", "sex"],
}


HISTORIES = {
    "entry": ["sex", "hgb", "mspike"],
    "entrytied": ["sex", "hgb", "mspike"],
    "heart": ["age", "surgery", "transplant"],
    "cgd": ["treat", "age", "inherit"],
}


def outcome(data: pd.DataFrame) -> cs.RightCensored:
    if "start" in data:
        return cs.RightCensored(data["stop"], data["status"] > 0, entry=data["start"])
    return cs.RightCensored(data["time"], data["status"] > 0, entry=data.get("entry"))


def errors(model, data: pd.DataFrame, option: str) -> np.ndarray:
    """Model-based, robust, or by clusters, as the option of R says."""
    if "cluster" in option:
        return np.sqrt(np.diag(model.robust_covariance(data["cluster" if "cluster" in data else "id"])))
    return np.sqrt(np.diag(model.robust_covariance())) if "robust" in option else model.standard_errors_


@pytest.mark.parametrize("ties", ["efron", "breslow"])
@pytest.mark.parametrize("case", [*CASES, *HISTORIES])
def test_cox_coefficients_and_their_errors(r_data, lines, case, ties):
    """Of coxph: model-based, robust, clustered and weighted."""
    data, columns = pd.read_csv(r_data / f"data_{case}.csv"), {**CASES, **HISTORIES}[case]
    found = lines[(lines["case"] == case) & (lines["quantity"] == "coef.cox")]
    found = found[found["option"].str.startswith(ties)]
    assert len(found) >= 6
    for option, some in found.groupby("option"):
        model = cs.CoxRegression(ties=ties)
        model.fit(data[columns], outcome(data), data["w"] if "weights" in option else None)
        assert list(some["model"]) == columns
        np.testing.assert_allclose(model.coef_, some["value"], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(errors(model, data, option), some["se"], rtol=1e-6)


PARAMETRIC = {
    "weibull": cs.WeibullRegression,
    "lognormal": cs.LogNormalRegression,
    "loglogistic": cs.LogLogisticRegression,
}


@pytest.mark.parametrize("name", PARAMETRIC)
@pytest.mark.parametrize("case", [*CASES, "interval"])
def test_parametric_regressions(r_data, lines, case, name):
    """Of survreg: coefficients, scale, log-likelihoods and errors."""
    data, columns = pd.read_csv(r_data / f"data_{case}.csv"), CASES.get(case, ["age", "sex"])
    if case == "interval":
        y = cs.IntervalCensored(data["lo"].fillna(0.0), data["hi"].fillna(np.inf))
    else:
        y = outcome(data)
    of_case = lines[(lines["case"] == case) & lines["quantity"].str.endswith(f".{name}")]
    assert len(of_case) >= 5
    for option, some in of_case.groupby("option"):
        weight = data["w"] if option == "weights" else None
        model = PARAMETRIC[name]().fit(data[columns], y, weight)
        coef = some[some["quantity"].str.startswith("coef")].set_index("model")
        names, values = model.estimates()
        sign = -1.0 if names[-1] == "log shape" else 1.0  # the logarithm of survreg's scale is minus that
        order = [*columns, "(Intercept)", "Log(scale)"]
        values = np.append(values[:-1], sign * values[-1])
        np.testing.assert_allclose(values, coef.loc[order, "value"], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(errors(model, data, option), coef.loc[order, "se"], rtol=1e-5)
        F = model.predict_distribution(data[columns])
        loss = cs.log_score(y, F)
        likelihood = -np.sum(loss * (1.0 if weight is None else weight))
        expected = some[some["quantity"].str.startswith("loglik")]["value"].iloc[0]
        assert likelihood == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("model", ["small", "full", "weibull"])
@pytest.mark.parametrize("case", CASES)
def test_predicted_risks(r_data, lines, case, model):
    """Of coxph, with Efron's baseline for Efron's coefficients, and of survreg."""
    train, test = (pd.read_csv(r_data / f"data_{case}{part}.csv") for part in ("_train", ""))
    columns = CASES[case][:1] if model == "small" else CASES[case]
    estimator = cs.WeibullRegression() if model == "weibull" else cs.CoxRegression(ties="efron")
    estimator.fit(train[columns], cs.RightCensored(train["time"], train["status"] > 0))
    found = lines[(lines["case"] == case) & (lines["quantity"] == "risk")]
    found = found[found["model"].str.startswith(f"{model},")]
    row = found["model"].str.extract(r"row(\d+)")[0].astype(int) - 1
    F = estimator.predict_distribution(test[columns].iloc[row])
    assert len(found) == 30
    np.testing.assert_allclose(F.cdf(found["time"].to_numpy()), found["value"], atol=1e-8)


# library(cmprsk)                                                            # 2.2-11, R 4.2.2
# f <- crr(d$time, d$status, X, failcode = cause, gtol = 1e-14)              # f$coef, sqrt(diag(f$var))
# e <- finegray(Surv(time, factor(status, 0:2)) ~ ., d, etype = cause)       # survival 3.5-3
# coxph(Surv(fgstart, fgstop, fgstatus) ~ ..., e, weights = fgwt, ties = "breslow")
FINE_GRAY = {
    ("cr_melanoma", 1): [0.0108723469118374, 0.668793442680519, 0.449627042800529],
    ("cr_melanoma", 2): [0.0600433088412881, -0.267384966754276, 0.476632884935024],
    ("mgus2", 1): [-0.0180939516192959, -0.200741218464732, -0.0138933878153796, 0.922105815567987],
    ("mgus2", 2): [0.0524172903987452, 0.477052355126454, -0.117926440247945, -0.166805080192972],
}
CRR_ERRORS = {
    ("cr_melanoma", 1): [0.0139949688244017, 0.206639015097678, 0.420567590811232],
    ("cr_melanoma", 2): [0.0193277079603885, 0.324488344039203, 0.638244504930148],
    ("mgus2", 1): [0.00602173405452592, 0.190389642597075, 0.0477232974650083, 0.155236119108119],
    ("mgus2", 2): [0.00388274036114049, 0.0698120497466923, 0.0226537775654546, 0.0686668217363961],
}
CRR_RISKS = [0.12800256359558, 0.243919724667881, 0.320813709110281]  # cr_melanoma, cause 1, first rows, 1621


@pytest.mark.parametrize(("case", "cause"), FINE_GRAY)
def test_fine_gray(r_data, survival_data, case, cause):
    """crr, where events and censored times are not tied; mgus2, where they are, by finegray of survival.

    crr keeps events in the risk set of censoring at ties, and takes d / n for the derivative of
    -log(1 - d / n) in its errors: 5e-5 to 1e-3 of them. Ours are the derivatives by the weights of subjects.
    """
    if case == "mgus2":
        data = pd.read_csv(survival_data / "mgus2.csv").assign(sex=lambda d: (d["sex"] == "M") * 1.0)
        columns = ["age", "sex", "hgb", "mspike"]
        data = data.dropna(subset=columns)
        status = np.where(data["pstat"] == 1, 1, 2 * data["death"])
        y = cs.CompetingRisks(np.where(data["pstat"] == 1, data["ptime"], data["futime"]) * 1.0, status)
    else:
        data, columns = pd.read_csv(r_data / f"data_{case}.csv"), ["age", "thick", "sex"]
        y = cs.CompetingRisks(data["time"], data["status"])
    model = cs.FineGray(cause).fit(data[columns], y)
    np.testing.assert_allclose(model.coef_, FINE_GRAY[case, cause], rtol=1e-9)
    np.testing.assert_allclose(model.standard_errors_, CRR_ERRORS[case, cause], rtol=1e-3)
    if (case, cause) == ("cr_melanoma", 1):
        F = model.predict_distribution(data[columns].iloc[:3])
        np.testing.assert_allclose(F.cdf(1621.0), CRR_RISKS, rtol=1e-9)


def test_stratified_cox_regression(r_data, lines):
    """coxph(~ age + size + strata(hormon)); then with two more covariates, and curves of two subjects."""
    data = pd.read_csv(r_data / "data_strata.csv")
    y = cs.RightCensored(data["time"], data["status"] > 0)
    model = cs.CoxRegression(ties="efron", strata="hormon").fit(data[["age", "size", "hormon"]], y)
    found = lines[(lines["case"] == "strata") & (lines["source"] == "coxph")]
    assert found["value"].tolist() == pytest.approx(model.coef_.tolist(), abs=1e-9)
    assert found["se"].tolist() == pytest.approx(model.standard_errors_.tolist(), rel=1e-8)
    columns = ["age", "size", "grade", "nodes", "hormon"]
    two = pd.DataFrame([[50, 30, 2, 3, 0], [50, 30, 2, 3, 1]], columns=columns)
    expected = {  # by survival 3.5-3: coefficients, and survfit at 500, 1000 and 1500 in both strata
        "efron": (
            [0.000477470449162, 0.006743148408770, 0.389621553315690, 0.051856344376454],
            [0.858996845884, 0.677828154024, 0.564068613462, 0.916863178565, 0.759496087360, 0.664736688679],
        ),
        "breslow": (
            [0.000476922736305, 0.006746329993072, 0.389396686340172, 0.051848929379693],
            [0.859037600512, 0.677871721277, 0.564110258833, 0.916878108221, 0.759531802934, 0.664765134280],
        ),
    }
    for ties, (coef, curves) in expected.items():
        model = cs.CoxRegression(ties=ties, strata="hormon").fit(data[columns], y)
        assert model.coef_.tolist() == pytest.approx(coef, abs=1e-9)
        sf = model.predict_distribution(two).sf(np.array([[500.0, 1000.0, 1500.0]]))
        assert sf.ravel().tolist() == pytest.approx(curves, abs=1e-9)
