"""Numbers that other projects have published, with where they stand; nobody here computed them.

Each test names the repository and the file. Inputs are the small arrays of these files, or data sets that
the libraries install.
"""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation import concordance, dynamic_auc
from censcore.published import Convention, ipcw_brier


def censoring(y: cs.RightCensored):
    return cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()


# ---- scikit-survival: sebp/scikit-survival, tests/test_metrics.py ------------------------------------------

TIED = [1, 5, 6, 11, 11, 34, 45, 45, 50]
SOME = [5, 8, 11, 19, 34, 12, 3, 9, 12]


@pytest.mark.parametrize(
    ("time", "event", "risk", "published"),
    [
        ([1, 5, 6, 11, 34, 45, 46, 50], [0, 1, 1, 0, 0, 1, 0, 0], [5, 8, 11, 34, 12, 3, 9, 12], 0.2307692),
        ([1, 5, 6, 11, 34, 45, 46, 50], [0, 1, 1, 0, 1, 1, 0, 0], [5, 15, 11, 34, 12, 3, 9, 12], 0.59375),
        (TIED, [0, 1, 1, 0, 1, 0, 1, 0, 0], SOME, 0.4),
        (TIED, [0, 1, 1, 0, 0, 0, 1, 0, 0], SOME, 0.2),
        (TIED, [0, 1, 0, 1, 1, 0, 1, 0, 0], SOME, 0.5294118),
        (
            [34, 11, 11, 5, 1, 89, 13, 45, 7, 13, 9, 13],
            [1, 0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 1],
            [1, 19, 13, 13, 15, 14, 19, 23, 11, 10, 11, 1],
            0.5681818,
        ),
    ],
)
def test_harrell_of_scikit_survival_ties_included(time, event, risk, published):
    assert concordance(cs.RightCensored(time, event), risk) == pytest.approx(published, abs=5e-8)


@pytest.mark.parametrize(
    ("risk", "published"),
    [
        ([5, 8, 11, 19, 34, 12, 3, 9, 12, 20], 0.347890360332615),
        ([5, 8, 11, 11, 34, 12, 3, 9, 12, 20], 0.365629810028969),
        ([5, 8, 11, 11, 34, 12, 11, 9, 12, 20], 0.387865723332956),
    ],
)
def test_uno_of_scikit_survival(risk, published):
    y = cs.RightCensored([1, 5, 6, 10, 11, 34, 45, 46, 50, 56], [0, 1, 1, 0, 1, 0, 1, 0, 0, 1])
    assert concordance(y, risk, censoring(y)) == pytest.approx(published, abs=1e-8)


def test_uno_of_scikit_survival_with_training_data():
    C = censoring(cs.RightCensored([2, 4, 6, 8, 10, 11, 15, 19], [0, 1, 0, 1, 0, 0, 0, 0]))
    y = cs.RightCensored([1, 3, 5, 8, 12, 13], [1, 0, 0, 1, 1, 1])
    assert concordance(y, [5, 8, 13, 11, 9, 4], C, horizon=19) == pytest.approx(0.7543736528146774)
    y = cs.RightCensored([1, 3, 5, 7, 12, 13, 20], [1, 0, 0, 1, 1, 0, 0])
    assert concordance(y, [5, 8, 13, 11, 9, 7, 4], C) == pytest.approx(0.8126567565914234)


FIFTEEN = cs.RightCensored(
    [10.88, 19.78, 40.92, 98.7, 70.19, 10.15, 28.95, 29.57, 17.9, 63.78, 36.22, 83.14, 13.69, 99.51, 3.19],
    [1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 1],
)
RISK = [
    *(-1.019, -0.016, 0.132, 0.269, -0.777, -1.077, 0.894, -1.227),
    *(-0.417, 0.072, -1.275, -0.91, -0.825, -0.292, -0.045),
]


def test_auc_of_scikit_survival():
    times = [28, 15, 66, 3.19, 99.51 - 1e-6]
    published = [0.362963, 0.3030303, 0.45, 0.6428571, 0.3162996]
    found = dynamic_auc(FIFTEEN, RISK, censoring(FIFTEEN), times)
    np.testing.assert_allclose(found, published, atol=5e-7)


def test_auc_of_scikit_survival_with_training_data():
    train = cs.RightCensored(
        [
            *(77.6, 57.6, 66.6, 67.0, 31.5, 5.5, 67.4, 43.7, 31.7, 71.9),
            *(81.1, 56.2, 88.1, 2.9, 62.0, 17.2, 88.0, 26.4, 93.5, 79.9),
        ],
        [1, 1, 0, 1, 0, 1, 1, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1],
    )
    found = dynamic_auc(FIFTEEN, RISK, censoring(train), [15, 66])
    np.testing.assert_allclose(found, [0.3030303, 0.4357061], atol=5e-8)


def test_brier_score_in_the_reference_of_scikit_survival():
    """Its pages on brier_score and integrated_brier_score: a Cox model of GBSG2, which has ties."""
    datasets = pytest.importorskip("sksurv.datasets")
    X, structured = datasets.load_gbsg2()
    X["tgrade"] = X.loc[:, "tgrade"].map(len).astype(int)
    X = pytest.importorskip("sksurv.preprocessing").OneHotEncoder().fit_transform(X).to_numpy(float)
    y = cs.RightCensored(structured["time"], structured["cens"])
    model = pytest.importorskip("sksurv.linear_model").CoxPHSurvivalAnalysis(ties="efron")
    F, C = cs.as_forecast(model.fit(X, structured), X), censoring(y)
    found = ipcw_brier(y, F, C, [1825.0], convention="scikit-survival").mean()
    assert found == pytest.approx(0.20881843, abs=5e-9)
    left_limits = cs.brier_score(y, F, C, [1825.0], scale="ipcw").mean()
    assert left_limits == pytest.approx(0.20881843, abs=1e-4)
    times = np.arange(365.0, 1826.0)
    curve = ipcw_brier(y, F, C, times, convention="scikit-survival").mean(axis=0)
    assert np.trapezoid(curve, times) / (times[-1] - times[0]) == pytest.approx(0.1816, abs=5e-5)


# ---- hazardous: soda-inria/hazardous, hazardous/tests/test_metrics.py -----------------


def test_brier_score_in_the_tests_of_hazardous():
    """Numbers of scikit-survival for a Cox model of lifelines, at every whole time."""
    lifelines = pytest.importorskip("lifelines")
    data = pytest.importorskip("lifelines.datasets").load_regression_dataset()
    train, test = data.iloc[:150], data.iloc[150:]
    times = np.arange(test["T"].min(), test["T"].max() - 1)
    model = lifelines.CoxPHFitter().fit(train, duration_col="T", event_col="E")
    S = model.predict_survival_function(test, times).T.to_numpy()
    outcome = [cs.RightCensored(part["T"].to_numpy(), part["E"].to_numpy()) for part in (train, test)]
    found = cs.brier_score(outcome[1], cs.Step(times, sf=S), censoring(outcome[0]), times, scale="ipcw")
    published = [
        *(0.019210159012786377, 0.08987547845995612, 0.11693114655908207, 0.1883220229893822),
        *(0.2134659930805141, 0.24300206373683012, 0.242177758373255, 0.2198792376648805),
        *(0.199871735321175, 0.16301317649264274, 0.07628880587676132, 0.05829175905913857),
        *(0.0663998034737539, 0.04524901436623458, 0.045536886754156194, 0.022500377138006216),
        0.022591326598969338,
    ]
    np.testing.assert_allclose(found.mean(axis=0), published, rtol=1e-6)
    mean = np.trapezoid(found.mean(axis=0), times) / (times[-1] - times[0])
    assert mean == pytest.approx(0.12573162513447791, rel=1e-6)


# ---- numbers of R in torchsurv: Novartis/torchsurv, tests/benchmark_data -----------------


@pytest.fixture
def lung():
    """The lung data of R's survival; the halves are training and test data."""
    data = pytest.importorskip("lifelines.datasets").load_lung()
    return data, cs.RightCensored(data["time"].to_numpy(float), data["status"].to_numpy())


def test_kaplan_meier_of_survival(lung):
    """benchmark_kaplan_meier.json, by the R package survival."""
    _, y = lung
    times = [5, 11, 53, 107, 163, 201, 239, 310, 353, 371, 455, 524, 613, 735, 883, 1022]
    published = [
        *(0.9956, 0.9825, 0.943, 0.8507, 0.7665, 0.6708, 0.607, 0.495),
        *(0.434, 0.3966, 0.3217, 0.2632, 0.2047, 0.0979, 0.0503, 0.0503),
    ]
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    np.testing.assert_allclose(curve.sf(np.array([times], float))[0], published, atol=5.1e-5)


def test_harrell_of_survival(lung):
    """benchmark_cindex.json, by the R package survival: age as the risk, in the second half."""
    data, y = lung
    found = concordance(y[114:], data["age"].to_numpy()[114:])
    assert found == pytest.approx(0.5295, abs=5e-5)


SURVMETRICS = {
    13: 0.0173,
    31: 0.0271,
    54: 0.0406,
    59: 0.0485,
    60: 0.0551,
    62: 0.0619,
    79: 0.0743,
    81: 0.0813,
    92: 0.0922,
    105: 0.1034,
    110: 0.1106,
    116: 0.1169,
    131: 0.13,
    135: 0.1363,
    142: 0.1437,
    145: 0.1497,
    156: 0.1597,
    163: 0.1674,
    179: 0.1797,
    180: 0.1835,
    181: 0.1867,
    182: 0.1908,
    183: 0.192,
    186: 0.1964,
    194: 0.2035,
    197: 0.2076,
    199: 0.2109,
    201: 0.2124,
    202: 0.2165,
    207: 0.2194,
    212: 0.2243,
    222: 0.227,
    229: 0.2294,
    239: 0.2352,
    267: 0.2456,
    268: 0.2493,
    269: 0.247,
    270: 0.2456,
    285: 0.2487,
    286: 0.2504,
    288: 0.2496,
    291: 0.2497,
    293: 0.2502,
    320: 0.2584,
    329: 0.2559,
    337: 0.2584,
    340: 0.2569,
    348: 0.2558,
    350: 0.2519,
    353: 0.2472,
    363: 0.2398,
    371: 0.2355,
    387: 0.2364,
    442: 0.2171,
    457: 0.2101,
    524: 0.1696,
    550: 0.1423,
}


def test_brier_score_of_survmetrics(lung):
    """benchmark_brier_score.json, by the R package SurvMetrics: an exponential regression on age.

    SurvMetrics divides by P(C > y), with a curve of C in which censorings come first; with left limits and
    events first the numbers differ in the fourth digit, since few times are tied.
    """
    data, y = lung
    age = ((data["age"] - data["age"].mean()) / data["age"].std()).to_numpy()
    F = cs.Exponential(exponential_regression(y[:114], age[:114], age[114:]))
    np.testing.assert_allclose(F.sf(13.0)[:3], [0.9728, 0.9572, 0.9755], atol=5e-5)  # as in the file
    test, times = y[114:], np.array([*SURVMETRICS], dtype=float)
    censorings_first = cs.KaplanMeier().fit(None, cs.RightCensored(test.time, ~test.event))
    G = censorings_first.predict_distribution()
    found = ipcw_brier(test, F, G, times, convention=Convention(left_limit=False)).mean(axis=0)
    np.testing.assert_allclose(found, [*SURVMETRICS.values()], atol=5.1e-5)
    ours = cs.brier_score(test, F, censoring(test), times, scale="ipcw").mean(axis=0)
    np.testing.assert_allclose(ours, [*SURVMETRICS.values()], atol=2e-4)


def exponential_regression(y, x, new):
    """Rates at ``new`` of the maximum-likelihood fit, by Newton's method."""
    X, b = np.c_[np.ones(len(x)), x], np.array([-6.0, 0.0])
    for _ in range(20):
        expected = np.exp(X @ b) * y.time
        b = b + np.linalg.solve((X * expected[:, None]).T @ X, X.T @ (y.event - expected))
    return np.exp(b[0] + b[1] * new)


# ---- lifelines: CamDavidsonPilon/lifelines, lifelines/tests/test_estimation.py -----------------


@pytest.mark.parametrize(
    ("entry", "published", "tolerance"),
    [
        ([1.9, 0, 0, 0, 0], [0.8, 0.6, 0.4, 0.2, 0.0], 1e-12),
        ([1, 2, 4, 0, 0], [0.667, 0.444, 0.222, 0.111, 0.0], 5e-4),
    ],
)
def test_late_entry_of_lifelines_and_r(entry, published, tolerance):
    y = cs.RightCensored([2.0, 10, 5, 4, 3], np.ones(5), entry=np.array(entry, float))
    curve = cs.KaplanMeier().fit(None, y).predict_distribution()
    np.testing.assert_allclose(curve.sf(np.array([[2.0, 3, 4, 5, 10]]))[0], published, atol=tolerance)


def test_weighted_curve_of_lifelines():
    y = cs.RightCensored([0.6, 0.4, 0.8, 0.9], [0, 1, 1, 0])
    curve = cs.KaplanMeier().fit(None, y, sample_weight=[1.5, 2, 0.8, 0.9]).predict_distribution()
    published = [1.0, 0.6153846153846154, 0.6153846153846154, 0.32579185520362, 0.32579185520362]
    np.testing.assert_allclose(curve.sf(np.array([[0.0, 0.4, 0.6, 0.8, 0.9]]))[0], published, rtol=1e-12)


# ---- an external validation in R: danielegiardiello/Prediction_performance_survival, 02_predsurv.md ---


def test_validation_of_a_published_model_on_gbsg():
    """Six numbers of survival, timeROC and an IPCW Brier score, printed with two digits.

    A Cox model of the Rotterdam data, given by its coefficients and S(5 years) in 02_predsurv_minimal.R, is
    validated on the German data, censored at five years. Grades 1 and 2 count as one.
    """
    X, structured = pytest.importorskip("sksurv.datasets").load_gbsg2()
    years = structured["time"] / 365.25
    y = cs.RightCensored(np.minimum(years, 5.0), structured["cens"] & (years <= 5.0))
    size, nodes = X["tsize"].to_numpy(), X["pnodes"].to_numpy()
    grade = np.where(X["tgrade"].astype(str) == "III", 3, 2)
    index = 0.3922098 * ((size > 20) & (size <= 50)) + 0.6656456 * (size > 50) + 0.3766110 * grade
    index = index - 0.3538533 * (nodes == 0) + 0.6936283 * (nodes > 3)
    S = 0.8604385 ** np.exp(index)
    C, null = censoring(y), cs.KaplanMeier().fit(None, y).predict_distribution()
    assert concordance(y, index) == pytest.approx(0.65, abs=0.005)
    assert concordance(y, index, C) == pytest.approx(0.64, abs=0.005)
    assert dynamic_auc(y, index, C, [4.99])[0] == pytest.approx(0.69, abs=0.005)
    assert (1 - null.sf(5.0)[0]) / (1 - S).mean() == pytest.approx(1.04, abs=0.005)
    F = cs.Step([4.0], sf=S[:, None])
    brier, of_null = (cs.brier_score(y, model, C, 4.99, scale="ipcw").mean() for model in (F, null))
    assert brier == pytest.approx(0.22, abs=0.005)
    assert 1 - brier / of_null == pytest.approx(0.10, abs=0.005)
