"""One step forecast for all subjects is read from one antiderivative: the same numbers, less work."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.scores.integration import cdf_integrals as _squares

N = 300


def outcome(seed: int, n: int, rounded: bool = False) -> cs.RightCensored:
    rng = np.random.default_rng(seed)
    T, C = rng.exponential(1.0, n), rng.uniform(0.0, 2.0, n)
    time = np.minimum(T, C)
    return cs.RightCensored(np.ceil(time * 10) / 10 if rounded else time, T <= C)


def forecasts(y: cs.RightCensored) -> dict[str, cs.Distribution]:
    members = np.append(np.random.default_rng(5).exponential(1.0, 50), [np.inf, np.inf])
    return {
        "Kaplan-Meier": cs.KaplanMeier().fit(None, y).predict_distribution(),
        "mass at infinity": cs.Ensemble(members[None, :]),
        "never": cs.Step([1.0], sf=[1.0]),
        "atom at zero": cs.Step([0.0, 1.0], sf=[0.8, 0.0]),
    }


def censoring(y: cs.RightCensored) -> dict[str, cs.Distribution]:
    later = np.random.default_rng(6).exponential(1.0, len(y))
    return {
        "Kaplan-Meier": cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(),
        "uniform": cs.Uniform(0.0, 2.5),
        "exponential": cs.Exponential(1.0),
        "known": cs.PointMass(np.where(y.event, y.time + later, y.time)),
        "folds": cs.Censoring(cs.KaplanMeier(), cv=3).fit_predict_distribution(None, y),
    }


def one_for_each(F: cs.Distribution, n: int) -> cs.Step:
    times, sf = F.steps()
    return cs.Step.trusted(np.repeat(times, n, axis=0), np.repeat(sf, n, axis=0), falls=True)


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("of_C", ["Kaplan-Meier", "uniform", "exponential", "known", "folds"])
@pytest.mark.parametrize("of_F", ["Kaplan-Meier", "mass at infinity", "never", "atom at zero"])
def test_shared_curves_have_the_scores_of_a_curve_for_each_subject(of_F, of_C, rounded):
    y = outcome(1, N, rounded)
    F, C = forecasts(outcome(2, 200, rounded))[of_F], censoring(y)[of_C]
    each = one_for_each(F, N)
    np.testing.assert_allclose(cs.crps(y, F, C, horizon=1.2), cs.crps(y, each, C, horizon=1.2), rtol=1e-12)
    if of_C != "known":
        options = {"scale": "ipcw", "horizon": 1.2}
        one = cs.integrated_brier_score(y, F, C, **options)
        np.testing.assert_allclose(one, cs.integrated_brier_score(y, each, C, **options), rtol=1e-12)


def test_against_sums_over_the_definition():
    F = cs.Step([0.5, 1.0, 3.0], sf=[0.7, 0.4, 0.0])
    y = np.array([[0.2], [0.5], [2.0], [4.0]])
    below = [0.0, 0.0, 0.3**2 * 0.5 + 0.6**2, 0.3**2 * 0.5 + 0.6**2 * 2 + 1.0]
    beyond = [0.3 + 0.7**2 * 0.5 + 0.4**2 * 2, 0.7**2 * 0.5 + 0.4**2 * 2, 0.4**2, 0.0]
    np.testing.assert_allclose(_squares.square_below(F, y), below, rtol=1e-14)
    np.testing.assert_allclose(_squares.square_beyond(F, y, cs.PointMass(np.inf)), beyond, rtol=1e-14)
    ends = cs.PointMass([0.3, 0.5, 2.5, np.inf])
    np.testing.assert_allclose(
        _squares.square_beyond(F, y, ends), [0.1, 0.0, 0.4**2 * 0.5, 0.0], rtol=1e-13, atol=1e-16
    )


def test_an_infinite_tail_is_an_error_as_before():
    y, F = cs.RightCensored([1.0, 2.0], [1, 1]), cs.Step([1.5], sf=[0.3])
    with pytest.raises(cs.exceptions.PositivityError, match="The score is infinite in 2 subjects"):
        cs.crps(y, F)
    assert np.isfinite(cs.crps(y, F, horizon=9.0)).all()


def test_single_precision_and_tensors_with_gradients():
    torch = pytest.importorskip("torch")
    y = outcome(1, 50)
    times, sf = forecasts(outcome(2, 80))["Kaplan-Meier"].steps()
    exact = cs.crps(y, cs.Step(times[0], sf=sf[0]), cs.Uniform(0.0, 2.5), horizon=1.2)
    low = cs.crps(
        cs.RightCensored(y.time.astype(np.float32), y.event),
        cs.Step(times[0].astype(np.float32), sf=sf[0].astype(np.float32)), cs.Uniform(0.0, 2.5), horizon=1.2,
    )  # fmt: skip
    assert low.dtype == np.float32
    np.testing.assert_allclose(low, exact, rtol=2e-5, atol=1e-6)
    gradients = []
    for rows in (1, 50):
        level = torch.tensor(sf[:, :-1], requires_grad=True)
        F = cs.Step(torch.tensor(times[0, :-1]), sf=level.expand(rows, -1))
        loss = cs.crps(y.like(level.detach()), F, cs.Uniform(0.0, 2.5), horizon=1.2)
        np.testing.assert_allclose(loss.detach().numpy(), exact, atol=0.02)
        loss.sum().backward()
        gradients.append(level.grad.numpy())
    np.testing.assert_allclose(gradients[0], gradients[1], rtol=1e-9, atol=1e-10)


def test_work_grows_with_the_number_of_subjects_and_not_with_its_square(monkeypatch):
    """Arrays of subjects times jumps are never made: 200,000 subjects and 100,000 jumps would be 160 GB."""
    y = outcome(1, 200_000)
    train = outcome(2, 200_000)
    F = cs.KaplanMeier().fit(None, train).predict_distribution()
    C = cs.Censoring(cs.KaplanMeier()).fit(None, train).predict_distribution()

    def never(*arguments, **options):
        raise AssertionError("a sum over the jumps for every subject")

    for name in ("_step_below", "_step_beyond"):
        monkeypatch.setattr(_squares, name, never)
    for scale in ("localized", "ipcw"):
        assert cs.scores.routes(y, F, C, 1.5, scale=scale).taken == ("sums",)
    assert np.isfinite(cs.crps(y, F, C, horizon=1.5)).all()
    assert np.isfinite(cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.5)).all()
