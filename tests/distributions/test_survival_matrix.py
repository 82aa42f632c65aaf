"""Matrices of survival probabilities: which reading is chosen, tails, repairs, other readings."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import PiecewiseLinear, Step
from censcore.distributions.univariate.survival_matrix import (
    MatrixReader,
    columns_of,
    on_columns,
    other_readings,
    reading_of,
    settled,
    up_to,
)
from censcore.exceptions import InvalidInputError, RepairWarning

GRID = np.linspace(0.25, 3, 12)
TRUE = cs.Weibull(1.5, [1.0, 2.0])
SF = TRUE.sf(GRID[None, :])


def sample(n: int = 400, seed: int = 0) -> cs.RightCensored:
    rng = np.random.default_rng(seed)
    T, C = rng.weibull(1.5, n), rng.uniform(0, 2, n)
    return cs.RightCensored(np.minimum(T, C), T <= C)


def events(y: cs.RightCensored) -> np.ndarray:
    return y.time[y.event]


# ---- which reading ---------------------------------------------------------------------------------


def test_a_step_model_at_its_own_jump_times_is_read_as_steps():
    y = sample()
    model = cs.KaplanMeier().fit(None, y).predict_distribution()
    jumps = np.unique(events(y))
    matrix = np.repeat(model.sf(jumps[None, :]), 3, axis=0)
    F = cs.as_forecast(matrix, times=jumps, train=(None, y))
    assert isinstance(F, Step)
    assert reading_of(F).exact
    t = np.linspace(0, 2, 300)[None, :]
    np.testing.assert_array_equal(F.sf(t), np.repeat(model.sf(t), 3, axis=0))
    rounded = np.array([float(f"{t:g}") for t in jumps])  # as in names of columns
    assert isinstance(cs.as_forecast(matrix, times=rounded, train=(None, y)), Step)
    all_times = np.unique(y.time)  # censored times among the columns do no harm
    assert isinstance(cs.as_forecast(model.sf(all_times[None, :]), times=all_times, train=(None, y)), Step)
    early = jumps[:50]  # nor does an early end
    assert isinstance(cs.as_forecast(model.sf(early[None, :]), times=early, train=(None, y)), Step)


@pytest.mark.parametrize("kind", ["regular", "quantiles", "every second event"])
def test_a_matrix_on_another_grid_is_interpolated(kind):
    y = sample()
    grid = {
        "regular": GRID,
        "quantiles": np.unique(np.quantile(events(y), np.linspace(0.1, 0.9, 9), method="higher")),
        "every second event": np.unique(events(y))[::2],
    }[kind]
    F = cs.as_forecast(TRUE.sf(grid[None, :]), times=grid, train=(None, y))
    assert isinstance(F, PiecewiseLinear)
    assert "% of the training events" in reading_of(F).reason
    assert not reading_of(F).exact


def test_time_that_is_as_discrete_as_the_grid_has_steps():
    rng = np.random.default_rng(1)
    months = np.ceil(rng.exponential(6, 300))
    y = cs.RightCensored(np.minimum(months, 24), months <= 24)
    grid = np.arange(1.0, 25)
    sf = np.exp(-grid / 6)[None, :]
    assert isinstance(cs.as_forecast(sf, times=grid, train=(None, y)), Step)
    assert isinstance(cs.as_forecast(sf[:, 5::6], times=grid[5::6], train=(None, y)), PiecewiseLinear)


def test_without_event_times_the_reading_stays_open():
    F = cs.as_forecast(SF, times=GRID)
    assert isinstance(F, PiecewiseLinear)
    assert not reading_of(F).settled
    assert isinstance(settled(F, GRID), Step)
    assert isinstance(settled(F, GRID + 0.1), PiecewiseLinear)
    assert reading_of(settled(F, np.empty(0))).settled
    for asked in ("step", "linear"):
        G = cs.as_forecast(SF, times=GRID, interpolation=asked)
        assert settled(G, GRID) is G
        assert reading_of(G).reason == "as asked"
    assert reading_of(cs.Step(GRID, sf=SF)) is None
    assert reading_of(F.take([1])) == reading_of(F)
    torch = pytest.importorskip("torch")
    assert isinstance(settled(F.like(torch.ones(1)), GRID), Step)


def test_share_of_events_at_columns():
    assert on_columns(np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0, 4.0, 9.0])) == 0.75
    assert on_columns(np.array([1.0]), np.array([2.0])) == 0
    fine = np.linspace(0, 1, 100_001)  # chance meetings do not count
    assert on_columns(fine, np.random.default_rng(0).uniform(size=1000)) < 0.05


def test_models_of_other_libraries_know_what_they_are():
    lifelines = pytest.importorskip("lifelines")
    y = sample(100)
    kaplan_meier = lifelines.KaplanMeierFitter().fit(y.time, y.event)
    weibull = lifelines.WeibullFitter().fit(y.time, y.event)
    assert reading_of(cs.as_forecast(kaplan_meier)).reason == "the model is a step function"
    assert not isinstance(cs.as_forecast(weibull), Step)
    assert isinstance(cs.as_forecast(kaplan_meier, interpolation="linear"), PiecewiseLinear)


# ---- tails, mass at zero ---------------------------------------------------------------------------


def test_tails_by_name():
    far = np.array([[3.0, 6.0]])
    found = {tail: cs.as_forecast(SF, times=GRID, tail=tail).sf(far) for tail in ("infinity", "last")}
    np.testing.assert_array_equal(found["infinity"], np.repeat(SF[:, -1:], 2, axis=1))
    np.testing.assert_array_equal(found["last"], 0)
    default = cs.as_forecast(SF, times=GRID)
    assert default.tail == "exponential"
    assert (default.sf(6.0) < default.sf(3.0)).all()
    steps = cs.as_forecast(SF, times=GRID, interpolation="step", tail="last")
    np.testing.assert_array_equal(steps.sf(far), 0)
    with pytest.raises(InvalidInputError, match="steps have no hazard"):
        cs.as_forecast(SF, times=GRID, interpolation="step", tail="exponential")
    with pytest.raises(InvalidInputError, match="tail must be one of"):
        cs.as_forecast(SF, times=GRID, tail="weibull")


def test_up_to_the_horizon_lines_stand_for_the_tail():
    F = cs.as_forecast(SF, times=GRID)
    t = np.linspace(0, 8, 200)[None, :]
    lines = up_to(F, 8.0)
    assert lines.form == "lines"
    np.testing.assert_allclose(lines.sf(t), F.sf(t), atol=1e-4)
    np.testing.assert_array_equal(columns_of(lines), GRID[None, :])
    assert up_to(F, 2.0)._times.shape == (1, len(GRID))
    per_subject = cs.as_forecast(SF, times=np.stack([GRID, 2 * GRID]))
    np.testing.assert_allclose(up_to(per_subject, 8.0).sf(t), per_subject.sf(t), atol=1e-3)


def test_mass_at_time_zero_is_kept_by_both_readings():
    times, sf = np.array([0.0, 1.0, 2.0]), np.array([[0.9, 0.5, 0.1]])
    for interpolation in ("step", "linear"):
        F = cs.as_forecast(sf, times=times, interpolation=interpolation)
        assert F.sf(0.0) == 0.9
        assert F.cdf(0.0) == pytest.approx(0.1)
        assert F.icdf(0.05) == 0


def test_other_readings_enclose_the_curve():
    t = np.linspace(0, 4, 401)[None, :]
    for times, sf in ((GRID, SF), (np.append(0.0, GRID), np.c_[[0.95, 1.0], SF * 0.9])):
        F = cs.as_forecast(sf, times=times)
        late, early = (other_readings(F)[name] for name in ("late steps", "early steps"))
        assert (early.sf(t) <= F.sf(t) + 1e-12).all()
        assert (late.sf(t) >= F.sf(t) - 1e-12).all()
        np.testing.assert_array_equal(early.sf_left(times[None, 1:]), late.sf(times[None, 1:]))
    steps = cs.as_forecast(SF, times=GRID, interpolation="step")
    assert set(other_readings(steps)) == {"lines", "early steps"}


# ---- curves that are not monotone ------------------------------------------------------------------


@pytest.mark.parametrize("interpolation", ["auto", "step", "linear"])
def test_rounding_is_no_error(interpolation):
    rng = np.random.default_rng(0)
    flat = np.repeat(SF, 2, axis=1)  # every level twice, so that noise turns it back
    times = np.linspace(0.1, 3, flat.shape[1])
    for noisy in (
        flat + rng.normal(0, 1e-9, flat.shape),
        (flat + rng.normal(0, 1e-7, flat.shape)).astype("f4"),
    ):
        F = cs.as_forecast(noisy, times=times, interpolation=interpolation)
        np.testing.assert_allclose(F.sf(times[None, :]), flat, atol=1e-6)
        assert reading_of(F).repair is None


def test_violations_are_errors_and_repaired_on_request():
    wrong = SF.copy()
    wrong[1, 4] += 0.2
    with pytest.raises(InvalidInputError, match=r"at time 1 to .* at time 1\.25 in subject 1.*repair=True"):
        cs.as_forecast(wrong, times=GRID)
    order = np.random.default_rng(0).permutation(len(GRID))
    with pytest.warns(RepairWarning, match=r"1 subject \(1\).*changed by up to 0\.0"):
        F = cs.as_forecast(wrong[:, order], times=GRID[order], repair=True)
    size = reading_of(F).repair.largest
    assert 0.05 < size < 0.1
    assert np.abs(F.sf(GRID[None, :]) - wrong).max() == pytest.approx(size)
    np.testing.assert_allclose(F.sf(GRID[None, :])[0], SF[0])
    with pytest.warns(RepairWarning):
        cs.as_forecast(wrong, times=np.stack([GRID, GRID]), repair=True)
    assert (
        reading_of(cs.as_forecast(SF, times=GRID, repair=True)).repair is None
    )  # nothing to repair, no word


def test_options_are_checked():
    with pytest.raises(InvalidInputError, match="interpolation must be one of"):
        MatrixReader("spline")
