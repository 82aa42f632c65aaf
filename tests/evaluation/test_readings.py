"""Survival matrices in comparisons: the true forecast wins, times are on the grid, coarse grids are named."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, RepairWarning

SCORES = ["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw"]


def sample(n: int, seed: int = 0):
    """Times T with scale s, censored by a uniform C."""
    rng = np.random.default_rng(seed)
    s = np.exp(0.5 * rng.normal(size=n))
    T, C = s * rng.weibull(1.5, n), rng.uniform(0, 4, n)
    return s, cs.RightCensored(np.minimum(T, C), T <= C)


def matrices(s: np.ndarray, times: np.ndarray) -> dict[str, np.ndarray]:
    """The true curves, and those of times that are 10 % too short."""
    return {
        "true": cs.Weibull(1.5, s).sf(times[None, :]),
        "short": cs.Weibull(1.5, 0.9 * s).sf(times[None, :]),
    }


def compared(forecasts, y, **options):
    options = {"scores": SCORES, "reference": None, "discrimination": False} | options
    return cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), **options)


def as_frames(found: dict[str, np.ndarray], times: np.ndarray) -> dict[str, pd.DataFrame]:
    return {name: pd.DataFrame(sf.T, index=times) for name, sf in found.items()}


def about(comparison, words: str) -> list[str]:
    return [note for note in comparison.notes if words in note]


@pytest.mark.parametrize(("columns", "grid"), [(30, "even"), (30, "quantiles"), (100, "quantiles")])
def test_the_true_forecast_wins(columns, grid):
    """As steps, the one that is 10 % too short was better by every score, with p-values below 1e-5."""
    s, y = sample(20_000)
    times = np.linspace(0, 4, columns + 1)[1:]
    if grid == "quantiles":
        times = np.quantile(y.time, np.linspace(0, 1, columns + 1)[1:])
    comparison = compared(as_frames(matrices(s, times), times), y)
    pairs = comparison.differences()
    assert (pairs.model == "true").all()
    assert (pairs.difference < 0).all()
    assert (pairs.p_value < 1e-4).all()
    assert set(comparison.settings["times"]) <= set(times)
    assert all("linear between the times" in how for how in comparison.settings["survival matrices"].values())
    (note,) = about(comparison, "survival matrix of")
    assert f"'true', 'short': survival matrix of {columns} times: linear" in note


def test_steps_on_a_coarse_grid_are_wrong_and_the_comparison_says_so():
    s, y = sample(20_000)
    times = np.linspace(0, 4, 31)[1:]
    found = matrices(s, times)
    steps = {name: cs.as_forecast(sf, times=times, interpolation="step") for name, sf in found.items()}
    comparison = compared(steps, y)
    pairs = comparison.differences().set_index("score")
    assert pairs.difference["crps"] > 0
    assert pairs.p_value["crps"] < 1e-3
    (note,) = about(comparison, "too few to tell")
    assert "'true' against 'short' (30 times): CRPS" in note
    assert "'short' is better as read here, 'true' is better with lines" in note
    assert not about(comparison, "survival matrix of")  # it was asked for


def test_two_columns_do_not_pass_in_silence():
    s, y = sample(20_000)
    times = np.array([2.0, 4.0])
    comparison = compared(as_frames(matrices(s, times), times), y)
    (note,) = about(comparison, "too few to tell. 'true' against 'short' (2 times): ")
    assert (
        "CRPS; integrated Brier score, ipcw: 'short' is better as read here, 'true' is better with early"
        in note
    )
    assert comparison.settings["times"] == [2.0]


def test_two_columns_read_as_steps():
    s, y = sample(500)
    times = np.array([2.0, 4.0])
    F = cs.as_forecast(matrices(s, times)["true"], times=times, interpolation="step")
    comparison = compared({"a": F}, y, scores=["binomial_log_score"], times=[1.0], discrimination=True)
    assert comparison.frame().set_index("score")["mean"]["auc"] == 0.5
    assert "before its first time 2): it cannot rank them there" in about(comparison, "same survival")[0]
    assert "an AUC of 0.5 says nothing" in about(comparison, "same survival at t = 1")[0]
    assert "binomial log score of 'a': infinite for" in about(comparison, "infinite")[0]
    lines = cs.as_forecast(matrices(s, times)["true"], times=times)
    quiet = compared({"a": lines}, y, scores=["binomial_log_score"], times=[1.0], discrimination=True)
    assert quiet.frame().set_index("score")["mean"]["auc"] > 0.6
    assert not about(quiet, "infinite")
    assert not about(quiet, "same survival")


def test_a_fine_grid_needs_no_warning():
    s, y = sample(500)
    times = np.linspace(0, 4, 201)[1:]
    comparison = compared(as_frames(matrices(s, times), times), y)
    assert not about(comparison, "to tell")


def test_step_models_at_their_jump_times_keep_their_numbers():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(240, 1))
    T, C = rng.weibull(1.5, 240) * np.exp(x[:, 0]), rng.uniform(0, 4, 240)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    a, b = slice(0, 120), slice(120, 240)
    F = cs.CoxRegression().fit(x[a], y[a]).predict_distribution(x[b])
    jumps = np.unique(y[a].time[y[a].event])
    frame = pd.DataFrame(F.sf(jumps[None, :]).T, index=jumps)
    comparison = compared({"cox": F, "frame": frame}, y[b], train=(x[a], y[a]))
    means = comparison.frame().pivot(index=["score", "at"], columns="model", values="mean")
    np.testing.assert_allclose(means["frame"], means["cox"], rtol=1e-9)
    assert "100 % of the training events" in about(comparison, "survival matrix of")[0]
    assert not about(comparison, "to tell")


def test_a_grid_that_ends_before_the_horizon_is_named():
    s, y = sample(400)
    times = np.linspace(0, 1.5, 31)[1:]
    comparison = compared(as_frames(matrices(s, times), times), y)
    (note,) = about(comparison, "before the horizon")
    assert "'true', 'short': the last time is 1.5" in note
    assert "tail='exponential'" in note
    exact = cs.as_forecast(matrices(s, times)["true"], times=times)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    loss = cs.crps(y, exact, C, horizon=comparison.horizon).mean()
    means = comparison.frame().query("score == 'crps'").set_index("model")["mean"]
    assert means["true"] == pytest.approx(loss, rel=1e-5)


def test_log_score_of_lines_is_that_of_the_slopes():
    s, y = sample(400)
    times = np.linspace(0, 4, 41)[1:]
    comparison = compared(as_frames(matrices(s, times), times), y, scores=["log_score"])
    true = cs.log_score(y, cs.Weibull(1.5, s), horizon=comparison.horizon).mean()
    assert comparison.frame().set_index("model")["mean"]["true"] == pytest.approx(true, abs=0.02)
    flat = matrices(s, times)["true"]
    flat[:, 5:9] = flat[:, 5:6]
    flat[:, 9:] = np.minimum(flat[:, 9:], flat[:, 5:6])
    noted = compared({"flat": pd.DataFrame(flat.T, index=times)}, y, scores=["log_score"])
    assert "log score of 'flat': infinite for" in about(noted, "infinite")[0]


def test_default_times_on_a_common_grid_only():
    s, y = sample(400)
    one, two = np.linspace(0, 4, 21)[1:], np.linspace(0, 4, 17)[1:]
    found = as_frames({"one": matrices(s, one)["true"]}, one) | as_frames(
        {"two": matrices(s, two)["true"]}, two
    )
    common = set(np.intersect1d(one, two))
    assert common
    assert set(compared(found, y).settings["times"]) <= common
    apart = as_frames({"two": matrices(s, two + 0.01)["true"]}, two + 0.01) | {"one": found["one"]}
    assert set(compared(apart, y).settings["times"]) <= set(y.time)
    assert compared(found, y, times=[0.77]).settings["times"] == [0.77]


def entered_late(y: cs.RightCensored) -> cs.RightCensored:
    """Half of the subjects enter at a share of their time."""
    share = np.random.default_rng(5).uniform(0, 0.9, len(y)) * (np.arange(len(y)) % 2)
    return cs.RightCensored(y.time, y.event, entry=share * y.time)


def test_delayed_entry_changes_nothing_of_how_matrices_are_read():
    """Default times on the grid, and the notes: as without entry."""
    s, y = sample(400)
    late, times = entered_late(y), np.linspace(0, 4, 9)[1:]
    forecasts = as_frames(matrices(s, times), times)
    without, found = compared(forecasts, y, horizon=2.6), compared(forecasts, late, horizon=2.6)
    assert set(without.settings["times"]) <= set(times)
    assert found.settings["times"] == without.settings["times"]
    assert found.settings["survival matrices"] == without.settings["survival matrices"]
    assert about(found, "survival matrix of") == about(without, "survival matrix of")
    assert compared(forecasts, late, horizon=2.6, times=[0.77]).settings["times"] == [0.77]
    table = pd.DataFrame({"t": late.time, "d": late.event, "since": late.entry})
    columns = [f"true__sf@{t:g}" for t in times]
    table[columns] = matrices(s, times)["true"]
    streamed = compared(["true"], cs.OutcomeTable(table, "t", "d", rows=90, entry="since"), horizon=2.6)
    assert list(streamed.settings["times"]) == list(found.settings["times"])


def test_steps_on_a_coarse_grid_are_wrong_for_late_entries_too():
    s, y = sample(3_000)
    entry = np.random.default_rng(6).uniform(0, 1.0, len(y)) * (np.arange(len(y)) % 2)
    seen = np.nonzero(y.time > entry)[0]
    s, late = s[seen], cs.RightCensored(y.time[seen], y.event[seen], entry=entry[seen])
    times = np.linspace(0, 4, 11)[1:]
    found = matrices(s, times)
    steps = {name: cs.as_forecast(sf, times=times, interpolation="step") for name, sf in found.items()}
    (note,) = about(compared(steps, late, horizon=3.0, scores=["crps"]), "too few to tell")
    assert "'short' is better as read here" in note
    assert "'true' is better with early steps" in note


def test_precision_and_layout_change_nothing():
    s, y = sample(300)
    times = np.linspace(0, 4, 41)[1:]
    sf = matrices(s, times)["true"]
    torch = pytest.importorskip("torch")
    found = {
        "double": cs.as_forecast(sf, times=times),
        "single": cs.as_forecast(sf.astype("f4"), times=times.astype("f4")),
        "tensor": cs.as_forecast(torch.tensor(sf), times=torch.tensor(times)),
        "per subject": cs.as_forecast(sf, times=np.repeat(times[None, :], 300, axis=0)),
    }
    comparison = compared(
        found, y, scores=["crps", "brier_score", "log_score", "integrated_brier_score:ipcw"]
    )
    means = comparison.frame().pivot(index=["score", "at"], columns="model", values="mean")
    for name in found:
        np.testing.assert_allclose(means[name], means["double"], rtol=1e-5)
    assert set(comparison.settings["times"]) <= set(times)
    assert not about(comparison, "to tell")


def test_repairs_are_reported():
    s, y = sample(100)
    times = np.linspace(0, 4, 11)[1:]
    wrong = matrices(s, times)["true"]
    wrong[3, 4] += 0.1
    with pytest.raises(
        InvalidInputError, match=r"Forecast 'a'.*time 1\.6 .*time 2 in subject 3.*repair=True"
    ):
        compared({"a": pd.DataFrame(wrong.T, index=times)}, y)
    with pytest.warns(RepairWarning):
        F = cs.as_forecast(wrong, times=times, repair=True)
    (note,) = about(compared({"a": F}, y), "made monotone")
    assert note.startswith("'a': curves of 1 subject (3)")


class OnGrid(cs.KaplanMeier):
    """A continuous model that gives its curves on a grid."""

    def predict_distribution(self, X=None):
        grid = np.linspace(0, 3, 13)[1:]
        return cs.as_forecast(np.repeat(np.exp(-grid)[None, :], len(X), axis=0), times=grid)


class AtJumps(cs.KaplanMeier):
    """A step model that gives its curves at its jump times."""

    def predict_distribution(self, X=None):
        F = super().predict_distribution(X)
        times, sf = F.steps()
        return cs.as_forecast(np.repeat(sf, len(X), axis=0), times=times[0])


def test_scorers_read_matrices_as_comparisons_do():
    _, y = sample(200)
    X = np.zeros((200, 1))
    case = cs.WithCensoring(OnGrid()).fit(X, y).case(X, y)
    assert isinstance(case.F, cs.PiecewiseLinear)
    assert set(case.times) <= set(np.linspace(0, 3, 13))
    jumps, plain = cs.WithCensoring(AtJumps()).fit(X, y), cs.WithCensoring(cs.KaplanMeier()).fit(X, y)
    assert isinstance(jumps.case(X, y).F, cs.Step)
    assert cs.scorer("crps")(jumps, X, y) == pytest.approx(cs.scorer("crps")(plain, X, y), rel=1e-9)
