"""IPCW scores: by hand, and equal to the numbers of the libraries whose conventions they name."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, MissingCensoringError, PositivityError
from censcore.published import CONVENTIONS, Convention, administrative_brier, ipcw_binomial_log, ipcw_brier

TIMES = np.array([1.0, 2.0, 3.0, 4.0])


@pytest.fixture
def tied(rng) -> tuple[cs.RightCensored, cs.Step, np.ndarray]:
    """Whole-numbered times, so that events and censorings meet, and a forecast that differs by row."""
    n = 500
    T, c = rng.geometric(0.2, n).astype(float), np.minimum(rng.geometric(0.15, n), 7.0)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    S = rng.uniform(0.6, 0.95, n)[:, None] ** TIMES
    return y, cs.Step(TIMES, sf=S), S


def censoring_distribution(y: cs.RightCensored, ties: str) -> cs.Distribution:
    if ties == "events first":
        return cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    return cs.KaplanMeier().fit(None, cs.RightCensored(y.time, ~y.event)).predict_distribution()


def mean_under(convention: str, y: cs.RightCensored, F: cs.Distribution, score=ipcw_brier) -> np.ndarray:
    C = censoring_distribution(y, CONVENTIONS[convention].ties)
    return score(y, F, C, TIMES, convention=convention).mean(axis=0)


def test_by_hand():
    """Event at 1 before t, survivor at 3, censored at 0.5: S(t)^2 / G(y-), (1 - S)^2 / G(t), nothing."""
    y = cs.RightCensored([1.0, 3.0, 0.5], [1, 1, 0])
    F, C, t = cs.Exponential(1.0), cs.Uniform(0.0, 4.0), 2.0
    S = np.exp(-2.0)
    expected = [S**2 / 0.75, (1 - S) ** 2 / 0.5, 0.0]
    np.testing.assert_allclose(ipcw_brier(y, F, C, [t])[:, 0], expected)
    logs = [-np.log(1 - S) / 0.75, 2.0 / 0.5, 0.0]
    np.testing.assert_allclose(ipcw_binomial_log(y, F, C, [t])[:, 0], logs)


def test_normalisation_by_weights_is_a_ratio_of_sums():
    y = cs.RightCensored([1.0, 3.0, 0.5], [1, 1, 0])
    F, C = cs.Exponential(1.0), cs.Uniform(0.0, 4.0)
    plain = ipcw_brier(y, F, C, [2.0])[:, 0]
    weights = np.array([1 / 0.75, 1 / 0.5, 0.0])
    ratio = ipcw_brier(y, F, C, [2.0], convention=Convention(normalize="weights")).mean()
    assert ratio == pytest.approx(plain.sum() / weights.sum())


def test_left_limit_and_floor_by_hand():
    C = cs.Step([1.0, 2.0], sf=[0.4, 0.02])
    y = cs.RightCensored([1.0, 2.5], [1, 1])
    F = cs.Exponential(1.0)
    S = np.exp(-2.0)
    right, floored = Convention(left_limit=False), Convention(floor=0.05)
    assert ipcw_brier(y, F, C, [2.0])[0, 0] == pytest.approx(S**2 / 1.0)
    assert ipcw_brier(y, F, C, [2.0], convention=right)[0, 0] == pytest.approx(S**2 / 0.4)
    assert ipcw_brier(y, F, C, [2.0])[1, 0] == pytest.approx((1 - S) ** 2 / 0.02)
    assert ipcw_brier(y, F, C, [2.0], convention=floored)[1, 0] == pytest.approx((1 - S) ** 2 / 0.05)


def test_the_default_is_the_proper_score_on_the_ipcw_scale(tied):
    y, F, _ = tied
    C = censoring_distribution(y, "events first")
    np.testing.assert_allclose(ipcw_brier(y, F, C, TIMES), cs.brier_score(y, F, C, TIMES, scale="ipcw"))


def test_scikit_survival_on_tied_data(tied):
    metrics = pytest.importorskip("sksurv.metrics")
    surv = pytest.importorskip("sksurv.util").Surv
    y, F, S = tied
    known = surv.from_arrays(y.event, y.time)
    _, expected = metrics.brier_score(known, known, S, TIMES)
    np.testing.assert_allclose(mean_under("scikit-survival", y, F), expected, rtol=1e-10)


def test_hazardous_on_tied_data(tied):
    metrics = pytest.importorskip("hazardous.metrics")
    pd = pytest.importorskip("pandas")
    y, F, S = tied
    frame = pd.DataFrame({"event": y.event.astype(int), "duration": y.time})
    expected = metrics.brier_score_survival(frame, frame, S, TIMES)
    np.testing.assert_allclose(mean_under("hazardous", y, F), expected, rtol=1e-10)


def test_hazardous_where_its_floor_binds(rng):
    """Nine in ten are censored early: P(C > 3) is under the floor of 0.05."""
    metrics = pytest.importorskip("hazardous.metrics")
    pd = pytest.importorskip("pandas")
    n = 400
    T, c = rng.geometric(0.1, n).astype(float), rng.geometric(0.8, n).astype(float)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    S = np.tile(0.9**TIMES, (n, 1))
    assert censoring_distribution(y, "censorings first").sf(np.array([[3.0]])) < 0.05
    frame = pd.DataFrame({"event": y.event.astype(int), "duration": y.time})
    expected = metrics.brier_score_survival(frame, frame, S, TIMES)
    np.testing.assert_allclose(mean_under("hazardous", y, cs.Step(TIMES, sf=S)), expected, rtol=1e-10)


def test_scikit_survival_gives_no_weight_where_the_censoring_distribution_ends(rng):
    """The last time is censored, so that G = 0 from there on: events and survivors there count nothing."""
    metrics = pytest.importorskip("sksurv.metrics")
    surv = pytest.importorskip("sksurv.util").Surv
    train = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0])
    y = cs.RightCensored([1.0, 2.5, 4.0, 6.0], [1, 1, 1, 0])
    S = rng.uniform(0.2, 0.9, 4)[:, None] ** np.array([1.5, 3.0, 4.5])
    at = np.array([1.5, 3.0, 4.5])
    _, expected = metrics.brier_score(
        surv.from_arrays(train.event, train.time), surv.from_arrays(y.event, y.time), S, at
    )
    C = censoring_distribution(train, "events first")
    assert C.sf(4.5)[0] == 0
    found = ipcw_brier(y, cs.Step(at, sf=S), C, at, convention="scikit-survival")
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=1e-12)


def test_hazardous_where_the_censoring_distribution_ends(rng):
    metrics = pytest.importorskip("hazardous.metrics")
    pd = pytest.importorskip("pandas")
    train = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0])
    y = cs.RightCensored([1.0, 2.5, 4.0, 6.0], [1, 1, 1, 0])
    at = np.array([1.5, 3.0, 4.5])
    S = rng.uniform(0.2, 0.9, 4)[:, None] ** at
    frames = [pd.DataFrame({"event": o.event.astype(int), "duration": o.time}) for o in (train, y)]
    expected = metrics.brier_score_survival(*frames, S, at)
    C = censoring_distribution(train, "censorings first")
    # its floor is the larger of 0.05 and the smallest positive value of G
    smallest = min(G for G in C.sf(train.time[None, :])[0] if G > 0)
    rule = replace(CONVENTIONS["hazardous"], floor=max(0.05, smallest))
    found = ipcw_brier(y, cs.Step(at, sf=S), C, at, convention=rule)
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=1e-12)


def test_mlr3proba_by_hand():
    """Its own test case: G(1), G(2), G(3) = 0.9, 0.8, 0.6; an event at 2 and a subject censored at 1.5."""
    C = cs.Step([1.0, 2.0, 3.0], sf=[0.9, 0.8, 0.6])
    y = cs.RightCensored([2.0, 1.5], [1, 0])
    S = np.array([0.7, 0.5, 0.3])
    found = ipcw_brier(y, cs.Step([1.0, 2.0, 3.0], sf=S), C, [1.0, 2.0, 3.0], convention="mlr3proba")
    expected = [[0.3**2 / 0.9, 0.5**2 / 0.8, 0.3**2 / 0.8], [0.3**2 / 0.9, 0.0, 0.0]]
    np.testing.assert_allclose(found, expected)
    ended = cs.Step([2.0], sf=[0.0])
    assert ipcw_brier(y[:1], cs.Step([2.0], sf=[0.5]), ended, [2.0], convention="mlr3proba") == 0.25 / 1e-3


def test_yardstick_by_hand():
    """Left limits for survivors too, and a floor that yields to small values of G."""
    C = cs.Step([1.0, 2.0, 3.0], sf=[0.9, 0.5, 0.004])
    y = cs.RightCensored([2.0, 5.0, 4.0], [1, 1, 1])
    F = cs.Step([1.0, 2.0, 3.0, 3.5], sf=[0.8, 0.6, 0.4, 0.2])
    at_two = ipcw_brier(y, F, C, [2.0], convention="yardstick")[:, 0]
    np.testing.assert_allclose(at_two, [0.6**2 / 0.9, 0.4**2 / 0.9, 0.4**2 / 0.9])
    at_end = ipcw_brier(y, F, C, [3.5], convention="yardstick")[:, 0]
    np.testing.assert_allclose(at_end, [0.2**2 / 0.9, 0.8**2 / 0.004, 0.8**2 / 0.004])
    ended = cs.Step([1.0], sf=[0.0])
    found = ipcw_brier(y[1:], F, ended, [2.0], convention="yardstick")[:, 0]
    np.testing.assert_allclose(found, 0.4**2 / 0.01)


def pycox_weighted(kind: str, y: cs.RightCensored, S: np.ndarray) -> np.ndarray:
    """pycox's kernels, called without its class (which wants an older scipy)."""
    ipcw = pytest.importorskip("pycox.evaluation.ipcw")
    kaplan_meier = pytest.importorskip("pycox.utils").kaplan_meier
    event = y.event.astype(float)
    curve = kaplan_meier(y.time, 1 - event)
    G = np.repeat(curve.to_numpy()[:, None], len(y), axis=1)
    return getattr(ipcw, kind)(
        TIMES, y.time, event, np.ascontiguousarray(S.T), G, TIMES, curve.index.to_numpy()
    )


def test_pycox_on_tied_data(tied):
    y, F, S = tied
    expected = pycox_weighted("brier_score", y, S)
    np.testing.assert_allclose(mean_under("pycox", y, F), expected, rtol=1e-10)
    logs = -pycox_weighted("binomial_log_likelihood", y, S)
    np.testing.assert_allclose(mean_under("pycox", y, F, ipcw_binomial_log), logs, rtol=1e-10)


def test_conventions_disagree_on_tied_data(tied):
    y, F, _ = tied
    values = np.array([mean_under(name, y, F) for name in ("graf", "scikit-survival", "pycox", "hazardous")])
    gaps = np.abs(values[:, None] - values[None]) + np.eye(4)[:, :, None]
    assert (gaps[:, :, 1:] > 1e-4).all()


def test_conventions_agree_without_ties_up_to_normalisation(rng):
    n = 300
    T, c = rng.weibull(1.4, n) * 3, rng.exponential(6.0, n)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    F = cs.Weibull(1.4, 3.0)
    graf = mean_under("graf", y, F)
    for name in ("gerds-schumacher", "scikit-survival", "survival-eval"):
        np.testing.assert_allclose(mean_under(name, y, F), graf, rtol=1e-12)


def test_administrative_brier_equals_pycox(rng):
    admin = pytest.importorskip("pycox.evaluation.admin")
    n = 300
    T, c = np.ceil(rng.weibull(1.4, n) * 6) / 2, np.ceil(rng.uniform(1, 5, n) * 2) / 2
    y = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    S = rng.uniform(0.6, 0.95, n)[:, None] ** TIMES
    expected = admin.brier_score(TIMES, y.time, c, y.event.astype(float), np.ascontiguousarray(S.T), TIMES)
    found = administrative_brier(y, cs.Step(TIMES, sf=S), times=TIMES)
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=1e-12)


def test_administrative_brier_by_hand_and_beside_the_localized_score():
    y = cs.RightCensored([1.0, 3.0, 2.0], [1, 1, 0], censoring_time=[4.0, 5.0, 2.0])
    F, t = cs.Exponential(0.5), 2.5
    S = np.exp(-1.25)
    by_hand = np.array([[S**2], [(1 - S) ** 2], [0.0]]) * 3 / 2  # two rows are followed to 2.5
    np.testing.assert_allclose(administrative_brier(y, F, times=[t]), by_hand)
    localized = cs.brier_score(y, F, None, [t])
    np.testing.assert_allclose(administrative_brier(y, F, times=[t]), localized * 3 / 2)


UNIFORM = cs.Uniform(0.0, 4.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda y, F: ipcw_brier(y, F, UNIFORM), InvalidInputError, "times="),
        (lambda y, F: ipcw_brier(y, F, UNIFORM, [1.0], convention="mine"), InvalidInputError, "convention"),
        (
            lambda y, F: ipcw_brier(y, F, UNIFORM, [1.0], convention=Convention(normalize="max")),
            InvalidInputError,
            "normalize",
        ),
        (lambda y, F: ipcw_brier(y, F, cs.Step([2.0], sf=[0.0]), [2.5]), PositivityError, "zero in"),
        (lambda y, F: ipcw_brier(y, F, None, [1.0]), MissingCensoringError, "no censoring distribution"),
        (lambda y, F: administrative_brier(y, F, UNIFORM, [1.0]), MissingCensoringError, "every subject"),
        (lambda y, F: administrative_brier(y, F, UNIFORM), InvalidInputError, "times="),
        (lambda y, F: administrative_brier(y[:1], F, cs.PointMass(2.0), [3.0]), InvalidInputError, "earlier"),
    ],
)
def test_what_cannot_be_scored_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call(cs.RightCensored([1.0, 3.0], [1, 0]), cs.Exponential(1.0))
