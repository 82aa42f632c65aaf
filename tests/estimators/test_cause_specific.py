"""Estimators of competing risks, against other libraries and closed forms; adapters."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, NotFittedError


def data(n: int = 300, seed: int = 0, ties: bool = False) -> tuple[np.ndarray, cs.CompetingRisks]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    F = cs.CauseSpecificHazards([cs.Weibull(1.4, 2.0 * np.exp(-0.5 * X[:, 0])), cs.Weibull(0.9, 3.0)])
    time, cause = (part[:, 0] for part in F.sample(1, seed=rng))
    c = rng.uniform(0.0, 4.0, n)
    if ties:
        time, c = np.ceil(time * 3) / 3, np.ceil(c * 3) / 3
    return X, cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0))


@pytest.mark.parametrize("ties", [False, True])
def test_aalen_johansen_is_that_of_scikit_survival(ties):
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    _, y = data(ties=ties)
    times, cif = nonparametric.cumulative_incidence_competing_risks(y.causes, y.time)
    ours = cs.AalenJohansen().fit(None, y).predict_distribution()
    np.testing.assert_allclose(ours.cif(times)[0], cif[1:], atol=1e-12)
    np.testing.assert_allclose(1 - ours.sf(times)[0], cif[0], atol=1e-12)
    theirs = cs.as_competing_forecast(cif, times=times, first="any cause")
    np.testing.assert_allclose(theirs.cif(times), ours.cif(times), atol=1e-12)


def test_aalen_johansen_is_that_of_lifelines_and_hazardous():
    lifelines = pytest.importorskip("lifelines")
    _, y = data()
    ours = cs.AalenJohansen().fit(None, y).predict_distribution()
    for j in (1, 2):
        model = lifelines.AalenJohansenFitter(calculate_variance=False)
        curve = model.fit(y.time, y.causes, event_of_interest=j).cumulative_density_.iloc[:, 0]
        np.testing.assert_allclose(ours.cause(j).cdf(curve.index.to_numpy()[None, :])[0], curve, atol=1e-12)
    fitted = [
        lifelines.AalenJohansenFitter(calculate_variance=False).fit(y.time, y.causes, event_of_interest=j)
        for j in (1, 2)
    ]
    times = np.array([0.1, 0.5, 1.0, 2.0])
    theirs = cs.as_competing_forecast(fitted)
    np.testing.assert_allclose(theirs.cif(times), ours.cif(times), atol=1e-12)
    assert theirs.names == ("CIF_1", "CIF_2")
    alone = cs.as_forecast(fitted[0])
    np.testing.assert_allclose(alone.cdf(times[None, :]), ours.cause(1).cdf(times[None, :]), atol=1e-12)
    np.testing.assert_allclose(alone.sf(1e9), ours.cause(1).sf(1e9), atol=1e-12)  # of never
    sampler = pytest.importorskip("hazardous._km_sampler")._AalenJohansenSampler()
    pd = pytest.importorskip("pandas")
    sampler.fit(pd.DataFrame({"event": y.causes, "duration": y.time}))
    for j in (1, 2):
        np.testing.assert_allclose(
            ours.cause(j).cdf([[0.5, 1.0, 2.0]])[0], sampler.incidence_func_[j]([0.5, 1.0, 2.0]), atol=1e-12
        )


def test_aalen_johansen_by_hand_with_ties_and_left_limits():
    y = cs.CompetingRisks([1.0, 1.0, 1.0, 2.0, 2.0, 3.0], [1, 2, 0, 1, 0, 2])
    F = cs.AalenJohansen().fit(None, y).predict_distribution()
    S1 = 1 - 2 / 6
    S2 = S1 * (1 - 1 / 3)
    np.testing.assert_allclose(F.cif([1.0, 2.0, 3.0])[0, 0], [1 / 6, 1 / 6 + S1 / 3, 1 / 6 + S1 / 3])
    np.testing.assert_allclose(F.cif([1.0, 2.0, 3.0])[0, 1], [1 / 6, 1 / 6, 1 / 6 + S2])
    np.testing.assert_allclose(F.any_cause().sf_left([[1.0, 2.0, 3.0]])[0], [1.0, S1, S2])
    kaplan_meier = cs.KaplanMeier().fit(None, y.any_cause()).predict_distribution()
    np.testing.assert_allclose(F.sf([1.0, 2.0, 3.0])[0], kaplan_meier.sf([[1.0, 2.0, 3.0]])[0], atol=1e-15)


def test_aalen_johansen_weights_are_counts():
    _, y = data(60, ties=True)
    counts = np.random.default_rng(1).integers(0, 4, 60)
    repeated = y.take(np.repeat(np.arange(60), counts))
    at = np.linspace(0, 4, 30)
    weighted = cs.AalenJohansen().fit(None, y, counts).predict_distribution().cif(at)
    np.testing.assert_allclose(
        weighted, cs.AalenJohansen().fit(None, repeated).predict_distribution().cif(at), atol=1e-13
    )


def test_aalen_johansen_per_stratum():
    pd = pytest.importorskip("pandas")
    X, y = data(200)
    frame = pd.DataFrame({"sex": np.where(X[:, 0] > 0, "f", "m")})
    F = cs.AalenJohansen(stratify="sex").fit(frame, y).predict_distribution(frame[:5])
    assert F.shape == (5, 2)
    for i in range(5):
        alone = (
            cs.AalenJohansen()
            .fit(None, y[(frame["sex"] == frame["sex"][i]).to_numpy()])
            .predict_distribution()
        )
        np.testing.assert_allclose(F.cif([0.5, 2.0])[i], alone.cif([0.5, 2.0])[0], atol=1e-13)
    with pytest.raises(InvalidInputError, match="not seen in fitting"):
        cs.AalenJohansen(stratify="sex").fit(frame, y).predict_distribution(pd.DataFrame({"sex": ["x"]}))


@pytest.mark.parametrize("ties", [False, True])
def test_cause_specific_kaplan_meier_is_aalen_johansen(ties):
    _, y = data(100, ties=ties)
    at = np.linspace(0, 4, 41)
    by_hazards = cs.CauseSpecific(cs.KaplanMeier()).fit(None, y).predict_distribution()
    expected = cs.AalenJohansen().fit(None, y).predict_distribution()
    np.testing.assert_allclose(by_hazards.cif(at), expected.cif(at), atol=1e-12)
    np.testing.assert_allclose(by_hazards.sf(at), expected.sf(at), atol=1e-12)
    crps = [cs.crps(y.cause(1), F.cause(1), cs.Uniform(0, 5.0)) for F in (by_hazards, expected)]
    np.testing.assert_allclose(*crps, atol=1e-12)


def test_cause_specific_cox_by_its_formula():
    X, y = data(200)
    F = cs.CauseSpecific(cs.CoxRegression(ties="breslow")).fit(X, y).predict_distribution(X[:3])
    models = [
        cs.CoxRegression(ties="breslow").fit(X, cs.RightCensored(y.time, y.causes == j)) for j in (1, 2)
    ]
    times = np.unique(y.time[y.causes > 0])
    S = [model.predict_distribution(X[:3]).sf(times[None, :]) for model in models]
    before = [np.concatenate([np.ones((3, 1)), s[:, :-1]], axis=1) for s in S]
    hazard = [1 - s / b for s, b in zip(S, before, strict=True)]
    left = np.cumprod(1 - hazard[0] - hazard[1], axis=1)
    increments = np.concatenate([np.ones((3, 1)), left[:, :-1]], axis=1) * hazard[0]
    np.testing.assert_allclose(F.cause(1).cdf(times[None, :]), increments.cumsum(axis=1), atol=1e-12)
    np.testing.assert_allclose(F.cif(times).sum(axis=1) + F.sf(times), 1.0, atol=1e-12)


def test_cause_specific_weibull_finds_the_truth():
    X, y = data(2000)
    model = cs.CauseSpecific(cs.WeibullRegression()).fit(X, y)
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    truth = cs.CauseSpecificHazards([cs.Weibull(1.4, 2.0 * np.exp(-0.5 * x[:, 0])), cs.Weibull(0.9, 3.0)])
    np.testing.assert_allclose(
        model.predict_distribution(x).cif([0.5, 1.0, 3.0]), truth.cif([0.5, 1.0, 3.0]), atol=0.03
    )


def test_censoring_distribution_from_competing_risks():
    _, y = data(100, ties=True)
    for part in (y, y.cause(1), y.cause(2)):
        C = cs.Censoring(cs.KaplanMeier()).fit(None, part).predict_distribution()
        expected = cs.Censoring(cs.KaplanMeier()).fit(None, y.any_cause()).predict_distribution()
        np.testing.assert_array_equal(C.sf([[0.5, 1.0, 2.0]]), expected.sf([[0.5, 1.0, 2.0]]))


def test_what_estimators_do_not_accept():
    _, y = data(50)
    absent = cs.CompetingRisks(y.time, y.causes, names=["relapse", "death", "churn"])
    for model in (cs.AalenJohansen(), cs.CauseSpecific(cs.CoxRegression())):
        with pytest.raises(InvalidInputError, match="got none of churn among 50 subjects"):
            model.fit(None, absent)
        with pytest.raises(InvalidTypeError, match="CompetingRisks"):
            model.fit(None, cs.RightCensored(y.time, y.causes > 0))
        with pytest.raises(NotFittedError):
            model.predict_distribution()
    with pytest.raises(InvalidInputError, match="a list of 2 of them"):
        cs.CauseSpecific([cs.CoxRegression()]).fit(None, y)


# ---- adapters ----------------------------------------------------------------------------------------


def test_hazardous_survival_boost():
    hazardous = pytest.importorskip("hazardous")
    pd = pytest.importorskip("pandas")
    X, y = data(150)
    frame = pd.DataFrame({"event": y.causes, "duration": y.time})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = hazardous.SurvivalBoost(n_iter=3, show_progressbar=False, random_state=0).fit(X, frame)
        curves = model.predict_cumulative_incidence(X[:20])
        F = cs.as_competing_forecast(model, X[:20], repair=True, names=["relapse", "death"])
    assert F.shape == (20, 2)
    moved = np.abs(F.cif(model.time_grid_) - curves[:, 1:]).max()
    np.testing.assert_allclose(moved, 0.0 if F.repaired is None else F.repaired.largest, atol=2e-6)


def test_pycox_deephit():
    tt = pytest.importorskip("torchtuples")
    models = pytest.importorskip("pycox.models")
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(2, 2 * 5)

        def forward(self, x):
            return self.layer(x).reshape(-1, 2, 5)

    torch.manual_seed(0)
    grid = np.linspace(0, 4, 5)
    model = models.DeepHit(Net(), tt.optim.Adam(0.01), duration_index=grid)
    X = np.random.default_rng(0).normal(size=(7, 2)).astype(np.float32)
    F = cs.as_competing_forecast(model, X)
    np.testing.assert_allclose(F.cif(grid), np.moveaxis(model.predict_cif(X), 2, 0), atol=1e-6)


@pytest.mark.parametrize("at_zero", [(2, 2), (1, 1), (1, 2)], ids=str)
def test_ties_at_time_zero_in_lifelines(at_zero):
    lifelines = pytest.importorskip("lifelines")
    time, cause = np.array([0.0, 0.0, 1.0, 1.0, 2.0, 3.0]), np.array([*at_zero, 1, 2, 1, 0])
    below = []
    for seed in range(4):
        fitter = lifelines.AalenJohansenFitter(calculate_variance=False, seed=seed)
        with pytest.warns(Warning, match="Tied"):
            fitter.fit(time, cause, event_of_interest=1)
        below.append(fitter.cumulative_density_.index.min() < 0)
        alone, risks = cs.as_forecast(fitter), cs.as_competing_forecast(fitter)
        np.testing.assert_allclose(alone.cdf([[1.5, 5.0]]), risks.cif([1.5, 5.0])[0])
        assert 0.1 < alone.cdf(1.5)[0] < alone.cdf(5.0)[0] < 1
    assert any(below)


def test_frames_with_a_column_per_cause():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"death": [0.3, 0.1], "relapse": [0.4, 0.2]}, index=[2.0, 1.0])
    F = cs.as_competing_forecast(frame)
    assert F.names == ("death", "relapse")
    np.testing.assert_array_equal(F.cif([0.5, 1.0, 2.0]), [[[0.0, 0.1, 0.3], [0.0, 0.2, 0.4]]])
    apart = cs.as_competing_forecast([frame[["death"]], frame[["relapse"]].iloc[1:]], names=["d", "r"])
    np.testing.assert_array_equal(apart.cif([1.0, 2.0]), [[[0.1, 0.3], [0.2, 0.2]]])


def test_matrices_in_other_conventions():
    cif = np.array([[[0.1, 0.3], [0.2, 0.4]]])
    survival = np.concatenate([1 - cif.sum(axis=1, keepdims=True), cif], axis=1)
    F = cs.as_competing_forecast(survival, times=[1.0, 2.0], first="survival")
    np.testing.assert_array_equal(F.cif([1.0, 2.0]), cif)
    assert cs.as_competing_forecast(F) is F
    with pytest.raises(InvalidInputError, match="not the any cause curve"):
        cs.as_competing_forecast(survival, times=[1.0, 2.0], first="any cause")
    with pytest.raises(InvalidInputError, match=r"sum to at most 1.*survival function among them"):
        cs.as_competing_forecast(survival[:, [1, 2, 1, 2]], times=[1.0, 2.0])
    with pytest.raises(InvalidInputError, match=r"times=\.\.\. is missing"):
        cs.as_competing_forecast(cif)
    with pytest.raises(InvalidTypeError, match="predict_cif"):
        cs.as_competing_forecast("forecast")
    with pytest.raises(InvalidTypeError, match="of one event time"):
        cs.as_competing_forecast(cs.KaplanMeier().fit(None, cs.RightCensored([1.0], [1])))


def test_columns_that_are_called_alike_are_an_error():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.full((3, 2), 0.1), columns=["relapse", "relapse"])
    with pytest.raises(InvalidInputError, match="got the name 'relapse' of 2 columns"):
        cs.as_competing_forecast(frame)
