"""Scores of competing risks: by their definition, over all causes, against hazardous, with bad input."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import (
    InvalidInputError,
    InvalidTypeError,
    MissingCensoringError,
    NoDensityError,
    PositivityError,
    UnsupportedOutcomeError,
)

TIMES = [0.7, 1.6, 2.9]
LEVELS = [0.1, 0.3, 0.6]

SCORES = {
    "log_score": cs.log_score,
    "crps": cs.crps,
    "brier_score": lambda y, F, C, **o: cs.brier_score(y, F, C, TIMES, **o),
    "brier_score:ipcw": lambda y, F, C, **o: cs.brier_score(y, F, C, TIMES, scale="ipcw", **o),
    "integrated_brier_score:ipcw": lambda y, F, C, **o: cs.integrated_brier_score(y, F, C, scale="ipcw", **o),
    "binomial_log_score": lambda y, F, C, **o: cs.binomial_log_score(y, F, C, TIMES, **o),
    "pinball_score": lambda y, F, C, **o: cs.pinball_score(y, F, C, LEVELS, **o),
    "energy_score": lambda y, F, C, **o: cs.energy_score(y, F, C, **o),
}
LOCALIZED = [name for name in SCORES if not name.endswith("ipcw")]

STEP_C = cs.Step([0.5, 1.5, 2.0, 3.5], sf=[0.9, 0.5, 0.3, 0.0])
CENSORING = {
    "step": STEP_C,
    "uniform": cs.Uniform(0.0, 4.0),
    "horizon": cs.Exponential(0.3).censor_at(3.2),
    "known": cs.PointMass(3.3),
    "many steps": cs.Step(np.linspace(0.05, 3.9, 78), sf=np.append(np.linspace(0.99, 0.2, 77), 0.0)),
}

HAZARDS = cs.CauseSpecificHazards([cs.Weibull(1.3, 2.5), cs.Weibull(0.8, 4.0)])
GRID = np.array([0.4, 1.1, 1.9, 2.6, 3.0])
CIF = HAZARDS.cif(GRID)
SAMPLES = HAZARDS.sample(40, seed=3)
FORECASTS = {
    "hazards": HAZARDS,
    "linear": cs.CumulativeIncidence(GRID, CIF, interpolation="linear"),
    "step": cs.CumulativeIncidence(GRID, CIF),
    "samples": cs.CauseEnsemble(*SAMPLES),
}


def has_score(forecast: str, score: str) -> bool:
    return score != "log_score" or FORECASTS[forecast].has_density


def compatible(C, y: float, n: int) -> np.ndarray:
    """Values of C given C >= y, equally likely: quantiles in the middle of n strata."""
    return C.icdf_beyond(np.array([y]), (np.arange(n)[None, :] + 0.5) / n)[0]


@pytest.mark.parametrize("score", LOCALIZED)
@pytest.mark.parametrize("censoring", CENSORING)
@pytest.mark.parametrize("forecast", FORECASTS)
def test_after_a_competing_event_the_subject_is_followed_until_C(score, censoring, forecast):
    """The average over C given C >= y of the score of a subject without the event who is censored at C."""
    if not has_score(forecast, score) or (score == "energy_score" and censoring != "step"):
        return  # the energy score of one time is the CRPS
    C, F = CENSORING[censoring], FORECASTS[forecast].cause(1)
    y = cs.CompetingRisks([1.2], [2], n_causes=2).cause(1)
    n = 900 if censoring in ("step", "known") else 2000
    c = compatible(C, 1.2, n)
    values, counts = np.unique(c, return_counts=True)
    seen = cs.RightCensored(values, np.zeros(len(values)), censoring_time=values)
    by_definition = np.average(SCORES[score](seen, F, cs.PointMass(values)), axis=0, weights=counts)
    np.testing.assert_allclose(
        SCORES[score](y, F, C)[0], by_definition, rtol=1e-3 if n > 900 else 1e-8, atol=1e-7
    )


@pytest.mark.parametrize("forecast", ["hazards", "linear"])
@pytest.mark.parametrize("censoring", ["uniform", "horizon"])
def test_log_score_after_a_competing_event_to_many_digits(forecast, censoring):
    C, F = CENSORING[censoring], FORECASTS[forecast].cause(1)
    end = float(C.isf(0.0)[0])
    edges = np.unique(np.concatenate([np.linspace(1.2, end, 400), GRID[(GRID > 1.2) & (end > GRID)]]))
    x, w = np.polynomial.legendre.leggauss(8)
    t = ((edges[1:] + edges[:-1])[:, None] + np.diff(edges)[:, None] * x) / 2
    density = (0.3 * np.exp(-0.3 * t) if censoring == "horizon" else 0.25 + 0 * t).ravel()
    mass = (np.diff(edges)[:, None] * w / 2).ravel() * density
    mean = mass @ F.logsf(t.reshape(1, -1))[0]
    atom = C.sf_left(end)[0] if censoring == "horizon" else 0.0
    expected = -(mean + atom * F.logsf(end)[0]) / C.sf_left(1.2)[0]
    y = cs.CompetingRisks([1.2], [2], n_causes=2).cause(1)
    np.testing.assert_allclose(cs.log_score(y, F, C), expected, rtol=1e-8)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("forecast", FORECASTS)
def test_other_subjects_are_scored_as_without_competing_risks(score, forecast):
    if not has_score(forecast, score):
        return
    F, C = FORECASTS[forecast].cause(1), cs.Uniform(0.0, 4.0)
    y = cs.CompetingRisks([0.6, 1.9, 1.2], [1, 0, 2]).cause(1)
    alone = cs.RightCensored([0.6, 1.9], [1, 0])
    np.testing.assert_allclose(
        SCORES[score](y, F, C, horizon=3.5)[:2], SCORES[score](alone, F, C, horizon=3.5), rtol=1e-12
    )


def test_brier_score_of_one_cause_is_its_formula():
    rng = np.random.default_rng(0)
    n = 200
    time, cause = rng.uniform(0.1, 3.0, n).round(1), rng.integers(0, 3, n)
    F, C = FORECASTS["step"], cs.Uniform(0.0, 4.0)
    t = np.array(TIMES)
    y, d = time[:, None], cause[:, None]
    F1, weight = F.cif(t)[:, 0], C.sf(t[None, :]) / C.sf_left(time)[:, None]
    formula = np.where(y > t, F1**2, weight * ((d == 1) * (1 - F1) ** 2 + (d == 2) * F1**2))
    found = cs.brier_score(cs.CompetingRisks(time, cause).cause(1), F.cause(1), C, t)
    np.testing.assert_allclose(found, formula, atol=1e-14)


def test_brier_score_over_G_is_that_of_hazardous():
    pd = pytest.importorskip("pandas")
    metrics = pytest.importorskip("hazardous.metrics")
    rng = np.random.default_rng(1)
    n = 300
    time, cause = rng.exponential(2.0, n) + 0.01, rng.choice([0, 1, 2], n, p=[0.4, 0.35, 0.25])
    train, test = slice(0, 200), slice(200, n)
    t = np.quantile(time, [0.2, 0.4, 0.6, 0.7])
    cif = np.sort(rng.uniform(0, 0.5, (100, 2, 4)), axis=2)
    y = cs.CompetingRisks(time, cause)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y[train]).predict_distribution()
    F = cs.CumulativeIncidence(t, cif)
    frame = pd.DataFrame({"event": cause, "duration": time})
    for j in (1, 2):
        ours = cs.brier_score(y[test].cause(j), F.cause(j), C, t, scale="ipcw").mean(axis=0)
        theirs = metrics.brier_score_incidence(
            frame[train], frame[test].reset_index(drop=True), cif[:, j - 1], t, event_of_interest=j
        )
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


# ---- over all causes ---------------------------------------------------------------------------------

Y = cs.CompetingRisks([0.6, 1.9, 1.2, 2.4, 3.0], [1, 0, 2, 2, 1])


@pytest.mark.parametrize("score", [name for name in SCORES if name not in ("pinball_score", "energy_score")])
def test_one_cause_is_an_ordinary_event_time(score):
    y = cs.CompetingRisks([0.6, 1.9, 1.2], [1, 0, 1])
    F, C = cs.CauseSpecificHazards([cs.Weibull(1.3, 2.5)]), cs.Uniform(0.0, 4.0)
    alone = SCORES[score](cs.RightCensored([0.6, 1.9, 1.2], [1, 0, 1]), cs.Weibull(1.3, 2.5), C, horizon=3.5)
    np.testing.assert_allclose(SCORES[score](y, F, C, horizon=3.5), alone, rtol=1e-10)
    np.testing.assert_allclose(SCORES[score](y.cause(1), F.cause(1), C, horizon=3.5), alone, rtol=1e-10)


def test_brier_score_over_all_causes_is_half_the_sum_over_the_classes():
    F, C, t = FORECASTS["step"], cs.Uniform(0.0, 4.0), np.array(TIMES)
    p = np.concatenate([F.sf(t)[:, None], F.cif(t)], axis=1)  # (1, m + 1, q)
    time, cause = Y.time[:, None, None], Y.causes[:, None, None]
    happened = np.where(time > t, 0, cause) == np.arange(3)[None, :, None]
    square = ((happened - p) ** 2).sum(axis=1) / 2
    y = Y.time[:, None]
    weight = np.where(y > t, 1.0, (Y.causes[:, None] > 0) * C.sf(t[None, :]) / C.sf_left(Y.time)[:, None])
    np.testing.assert_allclose(cs.brier_score(Y, F, C, t), weight * square, atol=1e-14)


def test_crps_over_all_causes_is_the_integral_of_the_brier_score():
    F, C = FORECASTS["hazards"], cs.Uniform(0.0, 4.0)
    t = np.linspace(0, 3.5, 7001)
    t = (t[1:] + t[:-1]) / 2
    integral = cs.brier_score(Y, F, C, t, horizon=3.5).sum(axis=1) * 3.5 / 7000
    np.testing.assert_allclose(cs.crps(Y, F, C, horizon=3.5), integral, rtol=1e-3)


@pytest.mark.parametrize("forecast", ["hazards", "linear"])
def test_log_score_over_all_causes_is_the_likelihood(forecast):
    F = FORECASTS[forecast]
    step = 1e-6
    density = (F.cif(Y.time + step) - F.cif(Y.time - step))[0] / (2 * step)  # (m, n)
    if forecast == "linear":
        density[:, -1] = (F.cif([3.0]) - F.cif([3.0 - step]))[0, :, 0] / step
    expected = [
        -np.log(density[d - 1, i]) if d else -np.log(F.sf(Y.time[i])[0]) for i, d in enumerate(Y.causes)
    ]
    np.testing.assert_allclose(cs.log_score(Y, F), expected, rtol=1e-5)
    np.testing.assert_allclose(-F.log_likelihood(Y.time, Y.causes), expected, rtol=1e-5)


def test_multinomial_log_score_is_its_formula():
    F, C, t = FORECASTS["hazards"], cs.Uniform(0.0, 4.0), np.array(TIMES)
    cif, sf = F.cif(t)[0], F.sf(t)[0]
    weight = C.sf(t[None, :]) / C.sf_left(Y.time)[:, None]
    own = np.array([cif[d - 1] if d else np.ones(3) for d in Y.causes])
    formula = np.where(
        Y.time[:, None] > t, -np.log(sf), -1.0 * (Y.causes > 0)[:, None] * weight * np.log(own)
    )
    np.testing.assert_allclose(cs.binomial_log_score(Y, F, C, t), formula, rtol=1e-10)
    assert cs.binomial_log_score(Y, F, C, 1.6).shape == (5,)


def test_a_cause_of_the_forecast_may_be_missing_in_the_outcome():
    y = cs.CompetingRisks([0.6, 1.9], [1, 0])
    assert y.n_causes == 1
    np.testing.assert_array_equal(
        cs.brier_score(y, FORECASTS["step"], cs.Uniform(0.0, 4.0), TIMES),
        cs.brier_score(
            cs.CompetingRisks([0.6, 1.9], [1, 0], n_causes=2), FORECASTS["step"], cs.Uniform(0, 4.0), TIMES
        ),
    )


# ---- compiled kernels, single precision, gradients ---------------------------------------------------


@pytest.mark.parametrize("score", ["crps", "integrated_brier_score:ipcw", "brier_score"])
def test_compiled_formula_agrees(score, monkeypatch):
    rng = np.random.default_rng(2)
    n, q = 400, 30
    time, cause = rng.exponential(1.5, n).round(2), rng.integers(0, 3, n)
    cif = np.sort(rng.dirichlet(np.ones(q), (n, 2)).cumsum(axis=2), axis=2) * rng.uniform(0.1, 0.5, (n, 2, 1))
    F = cs.CumulativeIncidence(np.sort(rng.uniform(0, 4, q)), cif)
    y = cs.CompetingRisks(time, cause).cause(1)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y.any_cause()).predict_distribution()
    plain = SCORES[score](y, F.cause(1), C, horizon=3.0)
    monkeypatch.setattr("censcore._kernels.WORTH_COMPILING", 1)
    np.testing.assert_allclose(SCORES[score](y, F.cause(1), C, horizon=3.0), plain, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("score", ["crps", "brier_score"])
def test_compiled_formula_agrees_where_C_is_known(score, monkeypatch):
    rng = np.random.default_rng(3)
    time, cause = rng.exponential(1.5, 100), rng.integers(0, 3, 100)
    y = cs.CompetingRisks(time, cause, censoring_time=np.where(cause == 0, time, time + 1.0)).cause(2)
    plain = SCORES[score](y, FORECASTS["step"].cause(2), None)
    monkeypatch.setattr("censcore._kernels.WORTH_COMPILING", 1)
    np.testing.assert_allclose(
        SCORES[score](y, FORECASTS["step"].cause(2), None), plain, rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("score", SCORES)
def test_torch_gives_the_same_numbers_and_gradients(score):
    torch = pytest.importorskip("torch")
    shape = torch.tensor([1.3], dtype=torch.float64, requires_grad=True)
    F = cs.CauseSpecificHazards(
        [cs.Weibull(shape, torch.tensor([2.5])), cs.Weibull(torch.tensor([0.8]), 4.0)]
    )
    y, C = Y.like(shape.detach()), cs.Uniform(0.0, 4.0)
    loss = SCORES[score](y.cause(1), F.cause(1), C, horizon=3.5)
    expected = SCORES[score](Y.cause(1), HAZARDS.cause(1), C, horizon=3.5)
    np.testing.assert_allclose(loss.detach().numpy(), expected, rtol=2e-7)
    (gradient,) = torch.autograd.grad(loss.sum(), shape)
    step = 1e-5

    def total(k: float) -> float:
        F = cs.CauseSpecificHazards([cs.Weibull(k, 2.5), cs.Weibull(0.8, 4.0)])
        return float(SCORES[score](Y.cause(1), F.cause(1), C, horizon=3.5).sum())

    np.testing.assert_allclose(
        float(gradient), (total(1.3 + step) - total(1.3 - step)) / (2 * step), rtol=1e-4
    )


@pytest.mark.parametrize("score", ["crps", "brier_score", "log_score", "binomial_log_score"])
def test_gradients_over_all_causes(score):
    torch = pytest.importorskip("torch")
    scale = torch.tensor([2.5], dtype=torch.float64, requires_grad=True)
    F = cs.CauseSpecificHazards([cs.Weibull(1.3, scale), cs.Weibull(0.8, 4.0)])
    loss = SCORES[score](Y.like(scale.detach()), F, cs.Uniform(0.0, 4.0), horizon=3.5).sum()
    (gradient,) = torch.autograd.grad(loss, scale)
    step = 1e-5
    at = [
        SCORES[score](
            Y,
            cs.CauseSpecificHazards([cs.Weibull(1.3, s), cs.Weibull(0.8, 4.0)]),
            cs.Uniform(0.0, 4.0),
            horizon=3.5,
        ).sum()
        for s in (2.5 - step, 2.5 + step)
    ]
    np.testing.assert_allclose(float(gradient), (at[1] - at[0]) / (2 * step), rtol=1e-4)


def test_single_precision():
    F = cs.CumulativeIncidence(GRID.astype(np.float32), CIF.astype(np.float32))
    y = Y.like(np.ones(1, np.float32))
    for score in ("crps", "brier_score", "pinball_score"):
        loss = SCORES[score](y.cause(1), F.cause(1), STEP_C, horizon=3.2)
        assert loss.dtype == np.float32
        np.testing.assert_allclose(
            loss,
            SCORES[score](Y.cause(1), FORECASTS["step"].cause(1), STEP_C, horizon=3.2),
            rtol=1e-4,
            atol=1e-6,
        )


# ---- energy score ------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"beta": 1.5}, {"pairs": "lagged"}, {"fair": True}])
def test_energy_score_of_one_cause_by_definition(options):
    F, C = FORECASTS["samples"].cause(1), STEP_C
    y = cs.CompetingRisks([1.2], [2], n_causes=2).cause(1)
    options = {"draws": 512, **options}
    values, mass = np.array([1.5, 2.0, 3.5]), np.array([0.4, 0.2, 0.3]) / 0.9
    seen = cs.RightCensored(values, np.zeros(3), censoring_time=values)
    expected = mass @ cs.energy_score(seen, F, cs.PointMass(values), **options)
    np.testing.assert_allclose(cs.energy_score(y, F, C, **options), expected, rtol=0.02)


def test_energy_score_over_all_causes_by_definition():
    """That of the joint times (min(T_1, C), min(T_2, C)), all of which are known at a known C."""
    F = FORECASTS["samples"]
    z = np.stack([F.cause(j).samples for j in (1, 2)], axis=2)
    c = np.array([3.3, 1.9, 3.3])
    y = cs.CompetingRisks([0.6, 1.9, 1.2], [1, 0, 2], censoring_time=c)
    joint = cs.RightCensored([[0.6, 3.3], [1.9, 1.9], [3.3, 1.2]], [[1, 0], [0, 0], [0, 1]], censoring_time=c)
    expected = cs.energy_score(joint, cs.Ensemble(z), beta=1.2)
    np.testing.assert_allclose(cs.energy_score(y, F, beta=1.2, pairs="all", draws=1), expected, rtol=1e-10)


def test_energy_score_over_all_causes_finds_the_truth():
    rng = np.random.default_rng(4)
    n = 400
    time, cause = (part[0] for part in HAZARDS.sample(n, seed=rng))
    c = rng.uniform(0.5, 4.0, n)
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0))
    early = cs.CauseSpecificHazards([cs.Weibull(1.3, 1.2), cs.Weibull(0.8, 4.0)])
    C, options = cs.Uniform(0.5, 4.0), {"draws": 4, "members": 64, "horizon": 3.5}
    loss = [cs.energy_score(y, F, C, **options) for F in (HAZARDS, early)]
    mean, error = cs.mean_loss(loss[1] - loss[0])
    assert mean > 4 * error
    with pytest.raises(PositivityError, match="infinite"):
        cs.energy_score(y[y.causes > 0], HAZARDS)


# ---- what is an error --------------------------------------------------------------------------------


def test_without_a_horizon_a_score_may_be_infinite():
    y = cs.CompetingRisks([0.6, 1.2], [1, 2])
    with pytest.raises(PositivityError, match=r"infinite in 2 subjects .* pass horizon=tau"):
        cs.crps(y.cause(1), HAZARDS.cause(1))
    for score in ("pinball_score", "energy_score"):
        with pytest.raises(PositivityError, match="infinite"):
            SCORES[score](y.cause(1), HAZARDS.cause(1), None)
    assert np.isfinite(cs.crps(y.cause(1), HAZARDS.cause(1), horizon=3.0)).all()


def test_censoring_is_asked_for_where_it_is_needed():
    with pytest.raises(MissingCensoringError, match="1 of 5 times are censored"):
        cs.crps(Y.cause(1), HAZARDS.cause(1))
    with pytest.raises(MissingCensoringError):
        cs.log_score(Y.cause(1), HAZARDS.cause(1))
    assert cs.log_score(Y, HAZARDS).shape == (5,)


def test_bad_combinations_are_errors():
    C = cs.Uniform(0.0, 4.0)
    with pytest.raises(InvalidTypeError, match="expected a distribution of time and cause"):
        cs.crps(Y, cs.Weibull(1.0, 2.0), C)
    with pytest.raises(InvalidTypeError, match=r"Pass forecast.cause\(j\)"):
        cs.crps(Y.cause(1), HAZARDS, C)
    with pytest.raises(InvalidInputError, match="forecast has 1 causes and the outcome 2"):
        cs.crps(Y, cs.CauseSpecificHazards([cs.Weibull(1.0, 2.0)]), C, horizon=3.0)
    with pytest.raises(UnsupportedOutcomeError, match=r"y.cause\(j\)"):
        cs.pinball_score(Y, HAZARDS, C, LEVELS)
    with pytest.raises(NoDensityError, match="linear"):
        cs.log_score(Y, FORECASTS["step"])
    with pytest.raises(NoDensityError):
        cs.log_score(Y.cause(1), FORECASTS["step"].cause(1), C)


def test_functions_that_do_not_know_competing_risks_do_not_take_them_for_censored():
    for function in (
        lambda y: cs.augmented_brier_score(
            y, HAZARDS.cause(1), cs.Uniform(0, 4.0), times=TIMES, working=HAZARDS.cause(1)
        ),
        lambda y: cs.published.ipcw_brier(y, HAZARDS.cause(1), cs.Uniform(0, 4.0), times=TIMES),
        lambda y: cs.KaplanMeier().fit(None, y),
    ):
        with pytest.raises((UnsupportedOutcomeError, TypeError)):
            function(Y.cause(1))


# ---- delayed entry -----------------------------------------------------------------------------------


@pytest.mark.parametrize("forecast", FORECASTS)
def test_given_survival_is_given_no_event_of_any_cause(forecast):
    F = FORECASTS[forecast]
    a, t = 0.9, np.array([0.5, 1.1, 1.7, 2.6, 2.9])
    expected = np.clip(F.cif(t) - F.cif([a]), 0, None) / F.sf(a)[:, None, None]
    given = F.given_survival(a)
    np.testing.assert_allclose(given.cif(t), expected, atol=1e-9)
    np.testing.assert_allclose(given.sf(t)[:, 1:], F.sf(t)[:, 1:] / F.sf(a)[:, None], atol=1e-9)
    np.testing.assert_allclose(F.given_survival(-1.0).cif(t), F.cif(t), atol=1e-9)
    several = F.given_survival(np.array([0.9, -1.0]))
    np.testing.assert_allclose(several.cif(t), np.concatenate([given.cif(t), F.cif(t)]), atol=1e-9)


@pytest.mark.parametrize("score", [name for name in SCORES if name not in ("pinball_score", "energy_score")])
def test_delayed_entry_conditions_the_forecast_of_all_causes(score):
    C = cs.Uniform(0.0, 4.0)
    late = cs.CompetingRisks(Y.time, Y.causes, entry=[0.0, 0.9, 0.5, 0.9, 0.0])
    found = SCORES[score](late, HAZARDS, C, horizon=3.5)
    for i, entry in enumerate(late.entry):
        F = HAZARDS.given_survival(entry if entry > 0 else -1.0)
        alone = SCORES[score](Y[[i]], F, C, horizon=3.5)
        factor = C.sf(entry) if score.endswith("ipcw") else 1.0
        np.testing.assert_allclose(found[i], (alone * factor)[0], rtol=1e-8, atol=1e-12)


def test_one_cause_with_delayed_entry():
    C = cs.Uniform(0.0, 4.0)
    late = cs.CompetingRisks(Y.time, Y.causes, entry=[0.0, 0.9, 0.5, 0.9, 0.0])
    with pytest.raises(UnsupportedOutcomeError, match=r"forecast.given_survival\(y.entry\).cause\(j\)"):
        cs.crps(late.cause(1), HAZARDS.cause(1), C)
    F = HAZARDS.given_survival(late.entry)
    found = cs.brier_score(late.cause(1), F.cause(1), C, TIMES)
    np.testing.assert_allclose(found, cs.brier_score(Y.cause(1), F.cause(1), C, TIMES), rtol=1e-9)


def test_aalen_johansen_with_delayed_entry():
    y = cs.CompetingRisks([1.0, 2.0, 3.0, 4.0], [1, 2, 1, 0], entry=[0.0, 0.0, 1.5, 0.0])
    F = cs.AalenJohansen().fit(None, y).predict_distribution()
    np.testing.assert_allclose(
        F.cif([1.0, 2.0, 3.0])[0], [[1 / 3, 1 / 3, 1 / 3 + 4 / 9 / 2], [0, 2 / 9, 2 / 9]]
    )
    by_hazards = cs.CauseSpecific(cs.KaplanMeier()).fit(None, y).predict_distribution()
    np.testing.assert_allclose(by_hazards.cif([1.0, 2.0, 3.0]), F.cif([1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(y.after(1.5).causes, [2, 1, 0])
