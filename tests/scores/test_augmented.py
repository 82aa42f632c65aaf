"""Augmented scores are right if the censoring distribution or the event model is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError, PositivityError

TIMES = [0.4, 0.9]


def uncensored(T, F, t):
    """The Brier score of uncensored times, (n, q)."""
    t = np.asarray(t)
    return ((T[:, None] > t) - F.sf(t[None, :])) ** 2


# ---- discrete time: expectations by enumeration ----------------------------------------------------

SUPPORT = np.array([0.0, 1.0, 2.0, 3.0, 5.0])
P_T = np.array([0.05, 0.2, 0.3, 0.25, 0.2])
P_C = np.array([0.1, 0.15, 0.2, 0.3, 0.25])
OTHER = np.array([0.3, 0.3, 0.1, 0.1, 0.2])


def discrete(probabilities):
    """A distribution with atoms at SUPPORT."""
    return cs.Step(SUPPORT, cdf=np.minimum(np.cumsum(probabilities), 1.0))


def all_outcomes():
    """Every pair (T, C), its probability, and the outcome: events first at ties."""
    pairs = list(product(range(5), range(5)))
    T = np.array([SUPPORT[i] for i, _ in pairs])
    C = np.array([SUPPORT[j] for _, j in pairs])
    probability = np.array([P_T[i] * P_C[j] for i, j in pairs])
    return T, cs.RightCensored(np.minimum(T, C), T <= C), probability


@pytest.mark.parametrize(
    ("censoring", "event_model", "is_right"),
    [(P_C, OTHER, True), (P_C, None, True), (OTHER, P_T, True), (P_C, P_T, True), (OTHER, OTHER, False)],
    ids=["right C, wrong W", "right C, smooth W", "wrong C, right W", "both right", "both wrong"],
)
def test_expectations_in_discrete_time(censoring, event_model, is_right):
    T, y, probability = all_outcomes()
    C, t = discrete(censoring), [0.0, 1.0, 1.5, 2.0, 3.0]
    W = cs.Weibull(0.8, 1.5) if event_model is None else discrete(event_model)
    F = cs.Step([1.0, 2.5, 4.0], sf=[0.8, 0.45, 0.1])
    bias = probability @ (cs.augmented_brier_score(y, F, C, t, event_model=W) - uncensored(T, F, t))
    whole = cs.augmented_integrated_brier_score(y, F, C, event_model=W, horizon=4.0)
    truth = cs.integrated_brier_score(cs.RightCensored(T, T >= 0), F, horizon=4.0)
    log = cs.augmented_binomial_log_score(y, cs.Weibull(1.2, 2.0), C, t[1:], event_model=W)
    log_bias = probability @ (
        log - cs.binomial_log_score(cs.RightCensored(T, T >= 0), cs.Weibull(1.2, 2.0), times=t[1:])
    )
    if is_right:
        np.testing.assert_allclose(bias, 0, atol=1e-14)
        np.testing.assert_allclose(log_bias, 0, atol=1e-14)
        assert abs(probability @ (whole - truth)) < 1e-13
    else:
        assert np.abs(bias[1:]).min() > 1e-3
        assert abs(probability @ (whole - truth)) > 1e-2


# ---- one subject: the definition by an independent route -------------------------------------------


def indicator(y, event, t, G, g, S_W):
    """Z(t) for continuous C with density g, from the martingale written out."""
    s = min(y, t)
    drift = quad(lambda u: S_W(t) / S_W(u) * g(u) / G(u) ** 2, 0, s, epsabs=1e-13, epsrel=1e-12)[0]
    if y > t:
        return 1 / G(t) - drift
    return (0 if event else S_W(t) / S_W(y) / G(y)) - drift


SMOOTH = {
    "weibull": (cs.Weibull(0.6, 2.0), cs.LogLogistic(1.4, 1.0)),
    "uniform C": (cs.Uniform(0.0, 1.5), cs.Gamma(2.0, 0.5)),
    "mixture": (cs.Mixture([cs.Exponential(0.5), cs.LogNormal(0.1, 0.6)], [0.4, 0.6]), cs.Weibull(2.0, 1.1)),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_distributions_match_the_definition(name):
    C, W = SMOOTH[name]
    F = cs.Weibull(1.3, 0.8)
    y = cs.RightCensored([0.2, 0.2, 0.7, 0.7, 1.1], [1, 0, 1, 0, 1])
    G, S_W, S = (
        lambda u, distribution=distribution: float(distribution.sf(u)[0]) for distribution in (C, W, F)
    )
    g = lambda u: float(np.exp(C.logpdf(u)[0]))  # noqa: E731

    def expected(i, t):
        Z = indicator(float(y.time[i]), bool(y.event[i]), t, G, g, S_W)
        return Z * (1 - S(t)) ** 2 + (1 - Z) * S(t) ** 2

    losses = cs.augmented_brier_score(y, F, C, TIMES, event_model=W)
    np.testing.assert_allclose(
        losses, [[expected(i, t) for t in TIMES] for i in range(5)], rtol=1e-8, atol=1e-10
    )
    whole = cs.augmented_integrated_brier_score(y, F, C, event_model=W, horizon=0.9)
    np.testing.assert_allclose(whole, integral_of_brier(y, F, C, W, 0.9), rtol=1e-8)


def integral_of_brier(y, F, C, W, h):
    """Gauss-Legendre between points where nothing bends, by the Brier score at the nodes."""
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 0.05, 20), np.linspace(0.1, h, 9), y.time])
    edges = np.unique(np.minimum(edges, h))
    x, w = np.polynomial.legendre.leggauss(20)
    half = np.diff(edges)[:, None] / 2
    t = (edges[:-1, None] + half * (x + 1)).ravel()
    return cs.augmented_brier_score(y, F, C, t, event_model=W) @ (half * w).ravel()


def fine_steps(distribution, until=1.5):
    """A step function close to a smooth distribution, with a step at 0.5."""
    times = np.union1d(np.linspace(0, until, 6001)[1:], [0.5])
    return cs.Step(times, sf=distribution.sf(times[None, :])[0])


@pytest.mark.parametrize("which", ["C", "W", "F", "all"])
def test_steps_and_smooth_routes_agree(which):
    C, W, F = cs.Weibull(1.5, 1.3), cs.LogLogistic(1.4, 1.0), cs.Weibull(1.3, 0.8)
    y = cs.RightCensored([0.2, 0.2, 0.7, 0.7, 1.1], [1, 0, 1, 0, 1])
    coarse = {"C": C, "W": W, "F": F} | {
        k: fine_steps(v) for k, v in {"C": C, "W": W, "F": F}.items() if which in (k, "all")
    }
    for score, options in (
        (cs.augmented_brier_score, {"times": TIMES}),
        (cs.augmented_integrated_brier_score, {"horizon": 1.0}),
    ):
        smooth = score(y, F, C, event_model=W, **options)
        stepped = score(y, coarse["F"], coarse["C"], event_model=coarse["W"], **options)
        np.testing.assert_allclose(stepped, smooth, atol=1e-3)


def test_atoms_within_a_smooth_distribution_of_c():
    """A clinic closes at 0.5 for a part of the subjects; some are censored at that very time."""
    C = cs.Mixture([cs.PointMass(0.5), cs.Exponential(0.8)], [0.3, 0.7])
    W, F = cs.Weibull(2.0, 1.1), cs.Weibull(0.9, 1.2)
    y = cs.RightCensored([0.2, 0.5, 0.5, 0.7, 0.7, 1.1], [0, 0, 1, 0, 1, 1])
    for score, options in (
        (cs.augmented_brier_score, {"times": [0.4, 0.5, 0.8]}),
        (cs.augmented_integrated_brier_score, {"horizon": 0.8}),
    ):
        smooth = score(y, F, C, event_model=W, **options)
        stepped = score(y, F, fine_steps(C), event_model=W, **options)
        np.testing.assert_allclose(smooth, stepped, atol=1e-3)


def test_the_integral_is_that_of_the_brier_score():
    y = cs.RightCensored([0.2, 0.2, 0.7, 0.7, 1.1], [1, 0, 1, 0, 1])
    C = cs.Step([0.1, 0.3, 0.6, 0.8], sf=[0.9, 0.8, 0.5, 0.4])
    W, F = cs.Step([0.15, 0.5, 0.75], sf=[0.9, 0.5, 0.2]), cs.Step([0.25, 0.6], sf=[0.7, 0.3])
    edges = np.array([0, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9])
    middle = (edges[1:] + edges[:-1]) / 2
    by_hand = cs.augmented_brier_score(y, F, C, middle, event_model=W) @ np.diff(edges)
    whole = cs.augmented_integrated_brier_score(y, F, C, event_model=W, horizon=0.9)
    np.testing.assert_allclose(whole, by_hand, atol=1e-14)
    mean = cs.augmented_integrated_brier_score(y, F, C, event_model=W, horizon=0.9, normalize=True)
    np.testing.assert_allclose(mean, by_hand / 0.9)


# ---- simulated data --------------------------------------------------------------------------------

N = 3000


@pytest.fixture(scope="module")
def sample():
    """Subjects whose event and censoring times depend on x; T, the outcome, and the distributions."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=N)
    scale = np.exp(0.7 * x)
    truth, censoring = cs.Weibull(1.5, scale), cs.Weibull(1.0, 1.5 * np.exp(0.8 * x))
    T, C = truth.sample(1, seed=6)[:, 0], censoring.sample(1, seed=7)[:, 0]
    return T, cs.RightCensored(np.minimum(T, C), T <= C), truth, censoring, scale


WRONG_C, WRONG_W = cs.Exponential(0.1), cs.Weibull(1.0, 15.0)


def z_value(losses, reference):
    """Paired: how many standard errors the mean loss is off that of uncensored data."""
    mean, error = cs.mean_loss(losses - reference)
    return mean / error


def test_doubly_robust_means(sample):
    T, y, truth, censoring, _ = sample
    F, t = cs.Exponential(0.2), 0.9
    reference = uncensored(T, F, [t])[:, 0]
    z = {
        "right C": z_value(cs.augmented_brier_score(y, F, censoring, t, event_model=WRONG_W), reference),
        "right W": z_value(cs.augmented_brier_score(y, F, WRONG_C, t, event_model=truth), reference),
        "neither": z_value(cs.augmented_brier_score(y, F, WRONG_C, t, event_model=WRONG_W), reference),
        "ipcw": z_value(cs.brier_score(y, F, WRONG_C, t, scale="ipcw"), reference),
    }
    assert max(abs(z["right C"]), abs(z["right W"])) < 3
    assert min(abs(z["neither"]), abs(z["ipcw"])) > 6


def test_doubly_robust_integral(sample):
    T, y, truth, censoring, _ = sample
    F, h = cs.Exponential(0.2), 1.2
    reference = cs.integrated_brier_score(cs.RightCensored(T, T > 0), F, horizon=h)
    score = cs.augmented_integrated_brier_score
    assert abs(z_value(score(y, F, censoring, event_model=WRONG_W, horizon=h), reference)) < 3
    assert abs(z_value(score(y, F, WRONG_C, event_model=truth, horizon=h), reference)) < 3
    assert abs(z_value(score(y, F, WRONG_C, event_model=WRONG_W, horizon=h), reference)) > 6
    ipcw = cs.integrated_brier_score(y, F, WRONG_C, scale="ipcw", horizon=h)
    assert abs(z_value(ipcw, reference)) > 6


def test_the_event_model_lowers_the_variance(sample):
    _, y, truth, censoring, _ = sample
    augmented = cs.augmented_brier_score(y, truth, censoring, TIMES, event_model=truth)
    plain = cs.brier_score(y, truth, censoring, TIMES, scale="ipcw")
    assert (augmented.var(axis=0) < 0.8 * plain.var(axis=0)).all()


def test_the_truth_wins_if_either_is_right(sample):
    _, y, truth, censoring, scale = sample
    for C, W in ((censoring, WRONG_W), (WRONG_C, truth)):
        best = cs.augmented_brier_score(y, truth, C, 0.9, event_model=W)
        for rival in (cs.Weibull(1.5, 1.25 * scale), cs.Weibull(1.0, scale), WRONG_W):
            mean, error = cs.mean_loss(cs.augmented_brier_score(y, rival, C, 0.9, event_model=W) - best)
            assert mean > 3 * error


# ---- identities and bad input ----------------------------------------------------------------------


def test_without_censoring_nothing_is_augmented():
    T = np.array([0.2, 0.5, 0.9, 1.7])
    y, F, W = cs.RightCensored(T, np.ones(4)), cs.Weibull(1.5, [1.0, 2.0, 0.5, 1.0]), cs.Exponential(2.0)
    np.testing.assert_allclose(
        cs.augmented_brier_score(y, F, times=TIMES, event_model=W), uncensored(T, F, TIMES)
    )
    np.testing.assert_allclose(
        cs.augmented_integrated_brier_score(y, F, event_model=W, horizon=1.0),
        cs.integrated_brier_score(y, F, horizon=1.0),
    )
    np.testing.assert_allclose(
        cs.augmented_binomial_log_score(y, F, times=TIMES, event_model=W),
        cs.binomial_log_score(y, F, times=TIMES),
    )


@pytest.fixture
def few():
    return cs.RightCensored([0.2, 0.5, 0.5, 1.7], [1, 0, 1, 0])


def test_one_distribution_per_subject_equals_one_at_a_time(few):
    F, W = cs.Weibull(1.5, [1.0, 2.0, 0.5, 1.0]), cs.Exponential([0.5, 1.0, 2.0, 3.0])
    for C in (
        cs.Exponential([0.3, 0.6, 0.9, 1.2]),
        cs.Step([0.3, 0.5], sf=[[0.9, 0.6], [0.8, 0.5], [0.7, 0.4], [0.6, 0.3]]),
    ):
        for score, options in (
            (cs.augmented_brier_score, {"times": TIMES}),
            (cs.augmented_integrated_brier_score, {"horizon": 1.0}),
        ):
            together = score(few, F, C, event_model=W, **options)
            apart = [
                score(few.take([i]), F.take([i]), C.take([i]), event_model=W.take([i]), **options)[0]
                for i in range(4)
            ]
            np.testing.assert_allclose(together, apart, rtol=1e-12)


@pytest.mark.parametrize("event_model", [cs.Exponential(0.7), cs.Step([0.2, 0.6, 1.2], sf=[0.9, 0.5, 0.2])])
def test_strata_are_scored_under_their_distribution(few, event_model):
    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    y_train = cs.RightCensored([0.1, 0.3, 0.6, 0.4, 0.8, 2.0, 2.5, 2.2], [0, 1, 0, 0, 1, 0, 0, 1])
    X_train = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0], [0.0], [1.0]])
    C = cs.Censoring(cs.KaplanMeier(stratify=0)).fit(X_train, y_train).predict_distribution(X)
    for score, options in (
        (cs.augmented_brier_score, {"times": TIMES}),
        (cs.augmented_integrated_brier_score, {"horizon": 1.0}),
    ):
        together = score(few, cs.Weibull(1.5, 1.0), C, event_model=event_model, **options)
        for i in range(4):
            alone = score(
                few.take([i]), cs.Weibull(1.5, 1.0), C.take([i]), event_model=event_model, **options
            )
            np.testing.assert_allclose(together[i], alone[0], rtol=1e-12)


def test_torch_gives_the_same_losses_and_gradients(few):
    torch = pytest.importorskip("torch")
    like = torch.zeros(1, dtype=torch.float64)
    scale = torch.tensor([1.0, 2.0, 0.5, 1.0], dtype=torch.float64, requires_grad=True)
    for C in (cs.Exponential(0.3), cs.Step([0.3, 0.5], sf=[0.9, 0.6])):
        for score, options in (
            (cs.augmented_brier_score, {"times": TIMES}),
            (cs.augmented_binomial_log_score, {"times": TIMES}),
            (cs.augmented_integrated_brier_score, {"horizon": 1.0}),
        ):

            def loss(scale, score=score, options=options, C=C):
                return score(
                    few.like(like),
                    cs.Weibull(1.5, scale),
                    C.like(like),
                    event_model=cs.Exponential(0.7),
                    **options,
                )

            expected = score(
                few, cs.Weibull(1.5, scale.detach().numpy()), C, event_model=cs.Exponential(0.7), **options
            )
            np.testing.assert_allclose(loss(scale).detach().numpy(), expected, rtol=1e-10)
            assert torch.autograd.gradcheck(loss, (scale,))


def test_a_censoring_distribution_that_ends_is_an_error(few):
    C, W = cs.Uniform(0.0, 2.0), cs.Exponential(1.0)
    with pytest.raises(PositivityError, match="zero from t = 2 on"):
        cs.augmented_brier_score(few, W, C, [1.0, 2.0], event_model=W)
    with pytest.raises(PositivityError, match="zero from t = 3 on"):
        cs.augmented_integrated_brier_score(few, W, C, event_model=W, horizon=3.0)


@pytest.mark.parametrize("W", [cs.Uniform(0.0, 0.5), cs.Step([0.3, 0.4], sf=[0.5, 0.0])])
def test_an_event_model_that_contradicts_the_data_is_an_error(few, W):
    F, C = cs.Exponential(1.0), cs.Exponential(0.2)
    with pytest.raises(PositivityError, match="no chance of survival") as caught:
        cs.augmented_brier_score(few, F, C, 1.0, event_model=W)
    assert caught.value.rows[0] == 1
    assert cs.augmented_brier_score(few, F, C, 0.9 * caught.value.horizon, event_model=W).shape == (4,)
    with pytest.raises(PositivityError, match="no chance of survival"):
        cs.augmented_integrated_brier_score(few, F, C, event_model=W, horizon=1.0)


def test_other_bad_input(few):
    F, C = cs.Exponential(1.0), cs.Exponential(0.2)
    with pytest.raises(InvalidTypeError, match="got float"):
        cs.augmented_brier_score(few, F, C, 1.0, event_model=0.5)
    with pytest.raises(InvalidInputError, match="event_model has 3"):
        cs.augmented_brier_score(few, F, C, 1.0, event_model=cs.Exponential([1.0, 2.0, 3.0]))
    with pytest.raises(MissingCensoringError):
        cs.augmented_brier_score(few, F, times=1.0, event_model=F)
    with pytest.raises(InvalidInputError, match="below the horizon"):
        cs.augmented_brier_score(few, F, C, [0.5, 1.0], event_model=F, horizon=1.0)
    with pytest.raises(InvalidInputError, match="times"):
        cs.augmented_brier_score(few, F, C, event_model=F)
    with pytest.raises(InvalidInputError, match="got None"):
        cs.augmented_integrated_brier_score(few, F, C, event_model=F, horizon=None)
    with pytest.raises(InvalidInputError, match="certain forecast in 4"):
        cs.augmented_binomial_log_score(few, cs.Step([0.1], sf=[0.0]), C, 0.5, event_model=F)
