"""Validation of one model: the published example, identities, errors, what is said in place of numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.evaluation.validations import T0, drawn, of_two_causes, rotterdam, two_causes

import censcore as cs
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.evaluation.measures.performance import performance
from censcore.evaluation.measures.recalibration import pseudo_values
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.exceptions import InvalidInputError

SLOW = ("ICI", "E50", "E90", "calibration, joint test")


@pytest.fixture(scope="module")
def gbsg() -> tuple[pd.DataFrame, cs.RightCensored]:
    data = pytest.importorskip("lifelines.datasets").load_gbsg2()
    return data, cs.RightCensored(data.time / 365.25, data.cens == 1).censor_at(5.0)


def by_measure(found: cs.Validation) -> pd.DataFrame:
    return found.frame().set_index("measure")


def test_the_published_example(gbsg):
    """Numbers of survival 3.5-3, rms 6.5-0 and riskRegression 2022.11.28."""
    data, y = gbsg
    lines = by_measure(cs.validate(rotterdam(), y, time=5.0, X=data, thresholds=[0.23]))
    value, error = lines["value"], lines["standard_error"]
    assert value["O/E"] == pytest.approx(1.01775407918427, abs=1e-12)
    assert value["observed"] == pytest.approx(0.508355129705995, abs=1e-12)
    assert error["observed"] == pytest.approx(0.0230039879782197, rel=1e-3)
    assert value["expected"] == pytest.approx(0.499487194503257, abs=1e-12)
    assert value["calibration slope, Cox"] == pytest.approx(1.05535723812525, abs=2e-4)
    assert error["calibration slope, Cox"] == pytest.approx(0.1274, rel=0.015)
    assert value["concordance, Harrell"] == pytest.approx(0.652370510396975, abs=1e-10)
    assert value["concordance, Uno"] == pytest.approx(0.635346324180864, abs=1e-10)
    assert value["ICI"] == pytest.approx(0.0301, abs=0.005)  # of another smooth curve
    assert lines["high"]["ICI"] > value["ICI"]
    assert np.isnan(lines["low"]["ICI"])
    low, high = lines.loc["O/E", ["low", "high"]]
    # by Kaplan-Meier with a fixed expected risk 0.931 to 1.112; risks and events go together
    assert (low, high) == (pytest.approx(0.931, abs=0.01), pytest.approx(1.112, abs=0.01))
    at_499 = cs.as_forecast(rotterdam().predict_distribution(data).sf(5.0), times=4.99)
    lines = by_measure(cs.validate(at_499, y, time=4.99))
    assert lines["value"]["Brier"] == pytest.approx(0.224782183600401, abs=1e-8)
    assert lines["standard_error"]["Brier"] == pytest.approx(0.00785729219530377, rel=2e-3)
    assert lines["value"]["IPA"] == pytest.approx(0.100620129266155, abs=1e-7)
    assert lines["value"]["AUC"] == pytest.approx(0.677463695119848, abs=1e-6)
    assert lines["standard_error"]["AUC"] == pytest.approx(0.028027391673023, rel=5e-3)


def test_observed_risk_is_kaplan_meier_or_aalen_johansen():
    x, y = drawn(300, 0)
    lines = by_measure(cs.validate(cs.Exponential(np.exp(x)), y, time=T0))
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    assert lines["value"]["observed"] == pytest.approx(1 - float(curve.sf(T0)[0]), abs=1e-12)
    x, y = two_causes(300, 1)
    lines = cs.validate(of_two_causes(x), y, time=T0).frame().set_index(["outcome", "measure"])["value"]
    curve = cs.AalenJohansen().fit(None, y).predict_distribution()
    for j, cause in enumerate(y.names):
        assert lines[cause, "observed"] == pytest.approx(float(np.ravel(curve.cif(T0))[j]), abs=1e-12)


def test_a_mean_without_weights_does_not_move_with_the_censoring_distribution():
    """Its error is that of a plain mean, however C was estimated."""
    x, y = drawn(200, 2)
    found = cs.validate(cs.Exponential(np.exp(x)), y, time=T0).comparison
    p = -np.expm1(-T0 * np.exp(x))
    mean = found.mean_of(OfRisk(T0, lambda known: known.p[:, None], weighted=False), "Exponential")
    assert mean.standard_error[0] == pytest.approx(p.std(ddof=1) / np.sqrt(200), rel=1e-9)
    with pytest.raises(InvalidInputError, match="weighted=False"):
        found.mean_of(OfRisk(T0, lambda known: known.p[:, None]), "Exponential")


@pytest.mark.parametrize(
    "censoring",
    [
        cs.Censoring(cs.KaplanMeier(stratify="site")),
        cs.Censoring(cs.KaplanMeier(), cv=4),
        cs.Censoring(cs.CoxRegression()),
    ],
)
def test_curves_of_strata_and_of_folds_are_taken_part_by_part(censoring):
    """The estimate of C is made of parts, and measures are of all subjects at once."""
    x, y = drawn(300, 19)
    X = pd.DataFrame({"x": x, "site": np.where(np.arange(300) % 2, 1.0, 0.0)})
    lines = by_measure(cs.validate(cs.Exponential(np.exp(x)), y, censoring, X=X, time=T0))
    pooled = by_measure(cs.validate(cs.Exponential(np.exp(x)), y, time=T0))
    for name in ("O/E", "calibration slope", "ICI", "AUC", "linear predictor, sd"):
        assert lines["value"][name] == pytest.approx(pooled["value"][name], abs=0.15), name
    for name in ("O/E", "calibration slope", "AUC", "linear predictor, sd"):
        assert lines["standard_error"][name] == pytest.approx(pooled["standard_error"][name], rel=0.2), name


def test_estimating_equations_are_zero_at_the_estimates():
    x, y = drawn(300, 3)
    found = cs.validate(cs.Exponential(1.3 * np.exp(0.8 * x)), y, time=T0)
    of, value = RiskOfModel(found.comparison, "Exponential", T0), by_measure(found)["value"]
    eta, known = np.log(1.3 * T0) + 0.8 * x, of.known
    for b in (1.0, value["calibration slope"]):
        a = value["calibration intercept"] if b == 1 else _intercept_given(of, eta, b)
        pi = -np.expm1(-np.exp(a + b * eta))
        U = (known.event * (1 - pi) - known.free * pi) * np.exp(a + b * eta) / pi
        assert abs(U.mean()) < 1e-8
        if b != 1:
            assert abs((U * eta).mean()) < 1e-6


def _intercept_given(of: RiskOfModel, eta: np.ndarray, b: float) -> float:
    """The root of the first equation by bisection."""
    from scipy.optimize import brentq

    def equation(a: float) -> float:
        m = np.exp(a + b * eta)
        return float((of.known.event * m / np.expm1(m) - of.known.free * m).mean())

    return float(brentq(equation, -1.5, 1.0, xtol=1e-13))


def test_pseudo_values_are_those_of_curves_without_each_subject():
    x, y = two_causes(40, 4)
    found = cs.validate(of_two_causes(x), y, time=T0)
    for j, cause in enumerate(y.names):
        theta = pseudo_values(RiskOfModel(found.of(cause), "CauseSpecificHazards", T0))

        def curve(rows: np.ndarray, j: int = j) -> float:
            fitted = cs.AalenJohansen().fit(None, y[rows]).predict_distribution()
            return float(np.ravel(fitted.cif(T0))[j])

        every = np.arange(40)
        expected = [40 * curve(every) - 39 * curve(every[every != i]) for i in every]
        assert theta == pytest.approx(np.array(expected), abs=1e-9)


def test_pseudo_values_without_censoring_are_the_outcomes():
    x, _ = drawn(150, 5)
    T = np.random.default_rng(5).exponential(np.exp(-x))
    found = cs.validate(
        cs.Exponential(np.exp(x)), cs.RightCensored(T, np.ones(150)), time=T0, method="pseudo"
    )
    theta = pseudo_values(RiskOfModel(found.comparison, "Exponential", T0))
    assert theta == pytest.approx(1.0 * (T <= T0), abs=1e-9)


def jackknife(n: int, seed: int, weighted: bool = False) -> dict[str, tuple[float, float]]:
    """Standard errors of all smooth measures, by influences and by leaving out each subject."""
    x, y = drawn(n, seed)
    noise = np.random.default_rng(seed).normal(size=n)
    w = np.random.default_rng(seed + 1).integers(1, 4, n) if weighted else None

    def estimates(rows: np.ndarray):
        F = cs.Exponential(np.exp(0.9 * x[rows] + 0.1 + 0.2 * noise[rows]))
        weight = None if w is None else w[rows]
        found = cs.validate(F, y[rows], time=T0, thresholds=[0.5], sample_weight=weight)
        measured = performance(RiskOfModel(found.comparison, "Exponential", T0), [0.5], "binomial")
        return {each.name: each.estimate for each in measured if each.estimate is not None}

    every = np.arange(n)
    left = [estimates(every[every != i]) for i in every]
    errors = {}
    for name, estimate in estimates(every).items():
        values = np.array([each[name].value[0] for each in left])
        errors[name] = float(estimate.standard_error[0]), float(np.sqrt(n - 1) * values.std())
    return errors


def test_errors_are_those_of_the_jackknife():
    for name, (error, expected) in jackknife(100, 3).items():
        assert error == pytest.approx(expected, rel=0.15), name


@pytest.mark.slow
@pytest.mark.parametrize(("n", "within"), [(200, 0.1), (1000, 0.02)])
def test_errors_are_those_of_the_jackknife_with_weights_too(n, within):
    for weighted in (False, True):
        for name, (error, expected) in jackknife(n, 7, weighted).items():
            assert error == pytest.approx(expected, rel=within * (1.5 if weighted else 1)), name


def test_weights_are_copies_and_clusters_count():
    x, y = drawn(120, 8)
    copies = np.repeat(np.arange(120), np.arange(120) % 3 + 1)
    weighted = by_measure(
        cs.validate(cs.Exponential(np.exp(x)), y, time=T0, sample_weight=np.arange(120) % 3 + 1.0)
    )
    repeated = by_measure(cs.validate(cs.Exponential(np.exp(x[copies])), y[copies], time=T0, groups=copies))
    same = weighted.index.difference(["Royston D", "AUC if right", "linear predictor, sd", *SLOW, "observed"])
    for name in same[~same.str.contains("benefit")]:
        assert weighted["value"][name] == pytest.approx(repeated["value"][name], rel=1e-6), name
        if name not in ("calibration slope", "calibration slope, Cox", "calibration intercept"):
            assert weighted["standard_error"][name] == pytest.approx(
                repeated["standard_error"][name], rel=1e-5
            ), name


def test_the_joint_test_finds_what_is_wrong():
    x, y = drawn(500, 9)
    for rate, wrong in ((np.exp(x), False), (1.6 * np.exp(x), True), (np.exp(2 * x), True)):
        p = by_measure(cs.validate(cs.Exponential(rate), y, time=T0))["p"]["calibration, joint test"]
        assert bool(p < 0.01) is wrong


def test_subgroups_are_the_subjects_alone_under_the_same_censoring_distribution():
    x, y = drawn(400, 10)
    older, C = x > 0.3, cs.Uniform(0.2, 3.0)
    whole = cs.validate(cs.Exponential(np.exp(x)), y, C, time=T0, by={"older": older}, thresholds=[0.4])
    alone = cs.validate(cs.Exponential(np.exp(x[older])), y[older], C, time=T0, thresholds=[0.4])
    part = whole.frame().query("group == 'True'").set_index("measure")
    for name in ("O/E", "calibration slope", "calibration slope, Cox", "AUC", "Royston D", "Brier", "ICI"):
        assert part["value"][name] == pytest.approx(by_measure(alone)["value"][name], rel=1e-9), name
        expected = by_measure(alone)["standard_error"][name]
        assert part["standard_error"][name] == pytest.approx(expected, rel=1e-9, nan_ok=True), name


def test_several_models_have_paired_differences():
    x, y = drawn(300, 11)
    models = {"right": cs.Exponential(np.exp(x)), "noise": cs.Exponential(np.exp(x[::-1]))}
    found = cs.validate(models, y, time=T0, thresholds=[0.5])
    lines = found.differences().set_index("measure")
    assert set(lines.index) == {"Brier", "IPA", "AUC", "concordance, Uno", "net benefit at 0.5"}
    by_model = found.frame().set_index(["model", "measure"])["value"]
    for name in lines.index:
        expected = by_model["right", name] - by_model["noise", name]
        assert lines["difference"][name] == pytest.approx(expected)
        assert lines["p"][name] < 0.001


def test_competing_risks_have_no_cox_slope():
    x, y = two_causes(300, 12)
    lines = cs.validate(of_two_causes(x), y, time=T0).frame().set_index(["outcome", "measure"])
    for cause in y.names:
        assert np.isnan(lines["value"][cause, "calibration slope, Cox"])
        assert "one kind of event" in lines["note"][cause, "calibration slope, Cox"]
    away = (lines["value"]["relapse", "calibration slope"] - 1) / lines["standard_error"][
        "relapse", "calibration slope"
    ]
    assert abs(away) < 3


def test_risks_of_zero_are_named_and_not_clipped():
    x, y = drawn(200, 13)
    p = -np.expm1(-np.exp(x))
    p[[3, 7]] = 0.0, 1.0
    lines = by_measure(cs.validate(cs.as_forecast(1 - p, times=T0), y, time=T0))
    for name in ("calibration intercept", "calibration slope", "calibration slope, Cox", "Royston D"):
        assert np.isnan(lines["value"][name])
        assert "2 of 200 subjects have a risk of 0 or 1" in lines["note"][name]
        assert "3, 7" in lines["note"][name]
    assert np.isfinite(lines["value"][["O/E", "AUC", "Brier", "ICI"]]).all()


def test_too_little_information_is_said():
    x, y = drawn(60, 14)
    few = cs.RightCensored(y.time, np.where(np.arange(60) < 3, y.event, False))
    lines = by_measure(cs.validate(cs.Exponential(np.exp(x)), few, time=T0))
    assert np.isnan(lines["value"][["calibration slope", "AUC", "Brier", "ICI"]]).all()
    assert lines["note"]["calibration slope"].startswith("cannot tell")
    assert np.isfinite(lines["value"][["observed", "expected"]]).all()
    assert np.isnan(lines["standard_error"]["O/E"])
    none = cs.RightCensored(y.time, np.zeros(60))
    lines = by_measure(cs.validate(cs.Exponential(np.exp(x)), none, time=T0))
    assert lines["value"]["O/E"] == 0
    assert lines["note"]["O/E"] == "no event by the time was observed"


def test_known_censoring_times_leave_the_subjects_who_are_followed():
    """Their status is known, whatever it is, so that means over them are those of uncensored data."""
    rng = np.random.default_rng(20)
    x, c = rng.normal(size=300), rng.uniform(0.2, 3.0, 300)
    T = rng.exponential(np.exp(-x))
    y = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    found = cs.validate(cs.Exponential(np.exp(x)), y, time=T0)
    value, p, followed = by_measure(found)["value"], -np.expm1(-T0 * np.exp(x)), c > T0
    had = (T <= T0)[followed]
    assert value["observed"] == pytest.approx(had.mean())
    assert value["expected"] == pytest.approx(p[followed].mean())
    assert value["Brier"] == pytest.approx(((p[followed] - had) ** 2).mean())
    assert by_measure(found)["note"]["AUC"]


def test_one_risk_for_all_has_no_slope():
    _, y = drawn(200, 15)
    lines = by_measure(cs.validate(cs.Exponential(0.9), y, time=T0))
    assert "one risk" in lines["note"]["calibration slope"]
    assert np.isfinite(lines["value"][["calibration intercept", "O/E", "Brier"]]).all()


def test_a_forecast_of_another_time_is_an_error():
    x, y = drawn(100, 16)
    F = cs.as_forecast(np.exp(-np.exp(x)), times=T0)
    with pytest.raises(InvalidInputError, match="got time=2, expected 1, the one time"):
        cs.validate(F, y, time=2.0)


def test_beyond_follow_up_nothing_is_known():
    x, y = drawn(100, 17)
    lines = by_measure(cs.validate(cs.Exponential(np.exp(x)), y, time=50.0))
    assert np.isnan(lines["standard_error"]["O/E"])
    assert lines["note"]["O/E"]
    assert lines["note"]["calibration slope"]


def test_the_case_mix_is_that_of_right_risks():
    """If the outcomes were drawn from the risks, the AUC would be the expected one."""
    x, _ = drawn(400, 18)
    p = -np.expm1(-np.exp(x))
    rng = np.random.default_rng(18)
    T = rng.exponential(np.exp(-x))
    value = by_measure(cs.validate(cs.Exponential(np.exp(x)), cs.RightCensored(T, np.ones(400)), time=T0))[
        "value"
    ]
    pairs = (p[:, None] * (1 - p))[~np.eye(400, dtype=bool)]
    right = (p[:, None] > p)[~np.eye(400, dtype=bool)]
    assert value["AUC if right"] == pytest.approx((pairs * right).sum() / pairs.sum())
    assert value["AUC"] == pytest.approx(value["AUC if right"], abs=0.05)
    assert value["linear predictor, mean"] == pytest.approx(x.mean())
    assert value["linear predictor, sd"] == pytest.approx(x.std(ddof=1))
