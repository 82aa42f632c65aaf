"""Curves and their standard errors: the numbers of R's survival, prodlim, cmprsk and etm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs

CASES = ["pbc", "lung", "lungmonths", "lunguntied", "veteran", "melanoma"]
ENTRIES = ["entry", "entrytied"]


def table(r_data, case: str) -> pd.DataFrame:
    return pd.read_csv(r_data / f"data_{case}.csv")


def since(data: pd.DataFrame):
    return data.get("entry")


@pytest.mark.parametrize("option", ["", "weights"])
@pytest.mark.parametrize("case", [*CASES, *ENTRIES, "strata"])
def test_kaplan_meier(r_data, lines, case, option):
    found = lines.query("quantity == 'KM' and case == @case and option == @option")
    if case == "strata" and option:
        assert found.empty
        return
    data = table(r_data, case)
    y = cs.RightCensored(data["time"], data["status"] > 0, entry=since(data))
    by = "hormon" if case == "strata" else None
    model = cs.KaplanMeier(stratify=by).fit(data, y, data["w"] if option else None)
    times = np.unique(found["time"])
    X = pd.DataFrame({"hormon": model.strata_}) if by else None
    S = model.predict_distribution(X).sf(times[None, :])
    assert found.shape[0] == S.size >= 3
    np.testing.assert_allclose(S.ravel(), found["value"], rtol=1e-10)
    np.testing.assert_allclose(model.standard_errors(times).ravel(), found["se"], rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_the_censoring_curve(r_data, lines, case):
    """P(C > t), events first at ties: the reverse Kaplan-Meier curve of prodlim."""
    found, data = lines.query("quantity == 'G' and case == @case"), table(r_data, case)
    y = cs.RightCensored(data["time"], data["status"] > 0)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    assert len(found) == 3
    np.testing.assert_allclose(C.sf(found["time"].to_numpy()[None, :])[0], found["value"], rtol=1e-10)


@pytest.mark.parametrize(
    ("case", "source", "option"),
    [(case, "survfit", "") for case in ("cr_melanoma", "cr_melanomauntied", *ENTRIES)]
    + [(case, source, option) for case in ("cr_melanoma", "cr_melanomauntied")
       for source, option in (("survfit", "weights"), ("cuminc", ""))]
    + [(case, "etm", "") for case in ENTRIES],
)  # fmt: skip
def test_aalen_johansen(r_data, lines, case, source, option):
    """survfit's errors are robust, etm's of Greenwood's kind; cuminc's terms are n / (n - 1) times those."""
    found, data = (
        lines.query("case == @case and quantity == 'CIF' and source == @source"),
        table(r_data, case),
    )
    found = found[found["option"] == option]
    time, cause = ("ctime", "cs") if case in ENTRIES else ("time", "status")
    y = cs.CompetingRisks(data[time], data[cause], entry=since(data))
    model = cs.AalenJohansen().fit(None, y, data["w"] if option else None)
    times = np.unique(found["time"])
    at = found["cause"] - 1, np.searchsorted(times, found["time"])
    assert len(found) >= 6
    np.testing.assert_allclose(model.predict_distribution().cif(times)[0][at], found["value"], rtol=1e-10)
    errors = model.standard_errors(times, robust=source == "survfit")[0]
    if source == "cuminc":
        np.testing.assert_allclose(errors[at], found["se"], rtol=0.01)
        errors = cuminc_errors(data, times)
    np.testing.assert_allclose(errors[at], found["se"], rtol=1e-10)


def cuminc_errors(data, times):
    """The formula by hand, (m, q), for times without ties of two causes."""
    u = np.unique(data["time"][data["status"] > 0])
    n = (data["time"].to_numpy() >= u[:, None]).sum(axis=1)
    events = [
        ((data["time"].to_numpy() == u[:, None]) & (data["status"] == j).to_numpy()).sum(1) for j in (1, 2)
    ]
    d = sum(events)
    before = np.append(1.0, np.cumprod(1 - d / n)[:-1])
    result = np.empty((2, len(times)))
    for j, dj in enumerate(events):
        F = np.cumsum(before * dj / n)
        for q, t in enumerate(times):
            rest = F[u <= t][-1] - F
            terms = (
                rest**2 * d / (n * (n - d)) + before**2 * dj * (n - dj) / n**3 - 2 * rest * before * dj / n**2
            )
            result[j, q] = (n / (n - 1) * terms)[u <= t].sum()
    return np.sqrt(result)


def test_turnbull(r_data, lines):
    found, data = lines.query("quantity == 'Turnbull'"), table(r_data, "interval")
    y = cs.IntervalCensored(data["lo"].fillna(0.0), data["hi"].fillna(np.inf))
    F = cs.Turnbull().fit(None, y).predict_distribution()
    np.testing.assert_allclose(F.sf(found["time"].to_numpy()[None, :])[0], found["value"], atol=1e-6)
