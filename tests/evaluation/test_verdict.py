"""The verdict in words agrees with the numbers, and says where it cannot tell."""

from __future__ import annotations

import re

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.report.table_lines import (
    AMONG_BEST,
    CLEARLY_BEST,
    blocks,
    difference_lines,
    marks,
    mean_lines,
)
from censcore.evaluation.report.text import grids_of


def outcomes(n: int, seed: int = 0) -> tuple[np.ndarray, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(x)), rng.uniform(0, 3, n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def compared(n: int = 400, forecasts=None, seed: int = 0, **options) -> cs.Comparison:
    x, y = outcomes(n, seed)
    if forecasts is None:
        forecasts = {
            "pooled": cs.Exponential(0.8),
            "nearly": cs.Exponential(1.03 * np.exp(-x)),
            "true": cs.Exponential(np.exp(-x)),
        }
    options = {"horizon": 2.0, "discrimination": False, "reference": None} | options
    return cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier()), **options)


def test_best_tied_and_worse_are_those_of_the_differences():
    found = compared()
    verdict, alpha = found.verdict, 0.05
    pairs = found.differences()
    pairs = pairs[pairs.score == verdict.score]
    frame = found.frame()
    means = frame[frame.score == verdict.score].set_index("model")["mean"]
    assert verdict.best == means.idxmin()
    with_best = pairs[(pairs.model == verdict.best) | (pairs.versus == verdict.best)]
    others = np.where(with_best.model == verdict.best, with_best.versus, with_best.model)
    assert (
        set(verdict.tied) == set(others[with_best.p_adjusted >= alpha]) == {"true", "nearly"} - {verdict.best}
    )
    assert [gap["model"] for gap in verdict.worse] == list(others[with_best.p_adjusted < alpha]) == ["pooled"]
    gap = verdict.worse[0]
    assert gap["difference"] == pytest.approx(means["pooled"] - means[verdict.best])
    assert 0 < gap["low"] < gap["difference"] < gap["high"]
    assert gap["percent"] == pytest.approx(100 * gap["difference"] / means["pooled"])
    for words in (
        "is best by the integrated Brier score (ipcw) up to time 2",
        "tied with",
        "Clearly worse than",
    ):
        assert words in str(verdict)


def test_the_default_scores_are_few_and_all_are_there_on_request():
    assert [score.name for score in compared().scores] == list(DEFAULT_SCORES)
    every = compared(scores="all")
    assert {"brier_score", "binomial_log_score", "pinball_score"} < {score.name for score in every.scores}
    assert every.verdict.score == DEFAULT_SCORES[0]


def test_effective_events_count_inverse_probability_weights_and_clusters():
    found = compared()
    y = found.outcome
    G = found.resolved_censoring.distribution
    inside = y.event & (y.time <= 2.0)
    w = 1 / np.broadcast_to(G.sf_left(y.time), (400,))[inside]
    assert found.verdict.events == inside.sum()
    assert found.verdict.effective_events == pytest.approx(w.sum() ** 2 / (w**2).sum())
    clustered = compared(groups=np.arange(400) // 4)
    assert clustered.verdict.effective_events < found.verdict.effective_events / 2


def test_noise_is_called_noise():
    """Equal means that differ by noise alone: nothing is best, and nothing is marked."""
    rng = np.random.default_rng(1)
    shifts = {name: cs.Exponential(np.exp(rng.normal(0, 0.05, 100))) for name in "abc"}
    found = compared(100, shifts, scores="crps")
    assert found.verdict.worse == []
    assert "No clear difference between the 3 forecasts" in str(found.verdict)
    assert "chance can explain" in str(found.verdict)
    assert marks(found) == {}
    assert "clearly" not in repr(found)


@pytest.mark.parametrize("seed", range(30))
def test_the_first_sentence_holds_for_all_pairs(seed):
    """The smallest mean may be tied with all others although one of these clearly beats the reference."""
    x, _ = outcomes(110, seed)
    forecasts = {
        "shy": cs.Exponential(np.exp(-0.6 * x)),
        "bold": cs.Exponential(np.exp(-1.9 * x)),
        "bold again": cs.Exponential(np.exp(-1.9 * x + 0.03)),
        "pooled": cs.Exponential(0.8),
    }
    found = compared(110, forecasts, seed, scores="crps", reference="pooled")
    verdict, pairs = found.verdict, found.differences()
    clear = pairs[pairs.p_adjusted < 0.05]
    assert ("No clear difference" in str(verdict)) == clear.empty
    beaten = clear[(clear.model == "pooled") | (clear.versus == "pooled")]
    beaten = beaten[(beaten.difference > 0) == (beaten.model == "pooled")]
    winners = set(beaten.model) | set(beaten.versus) - {"pooled"}
    assert set(verdict.beats_reference) == winners - {"pooled"}
    for name in verdict.beats_reference:
        assert name in str(verdict).partition("Clearly better than the reference, pooled: ")[2]
    for line in clear.itertuples():
        assert line.model in str(verdict)
        assert line.versus in str(verdict)


def test_no_marks_where_one_model_has_the_score():
    x, y = outcomes(300)
    forecasts = {
        "with a density": cs.Exponential(np.exp(-x)),
        "steps": cs.Step([0.5, 1.0, 2.0], sf=[0.7, 0.5, 0.2]),
    }
    options = {"horizon": 2.0, "discrimination": False, "reference": None}
    found = cs.compare(forecasts, y, cs.Uniform(0.0, 3.0), **options)
    grid = grids_of(found)[0]
    column = grid.columns.index("log score")
    assert [row[column].mark for row in grid.rows.values()] == ["", ""]
    assert grid.rows["with a density"][0].mark == CLEARLY_BEST


def test_marks_agree_with_adjusted_p_values():
    found = compared()
    pairs, means = blocks(difference_lines(found)), blocks(mean_lines(found))
    assert marks(found)
    for key, block in means.items():
        best = next(line["model"] for line in block if line["rank"] == 1)
        worse = {
            line["versus"] if line["model"] == best else line["model"]
            for line in pairs[key]
            if best in (line["model"], line["versus"]) and line["p_adjusted"] < 0.05
        }
        top = set(found.models) - worse
        expected = {} if not worse else dict.fromkeys(top, CLEARLY_BEST if len(top) == 1 else AMONG_BEST)
        assert marks(found).get(key, {}) == expected


def test_one_forecast_and_identical_forecasts():
    x, _ = outcomes(200)
    one = compared(200, {"only": cs.Exponential(np.exp(-x))})
    assert "no other forecast to compare it with" in str(one.verdict)
    same = compared(200, {"a": cs.Exponential(np.exp(-x)), "b": cs.Exponential(np.exp(-x))})
    assert same.verdict.worse == []
    assert marks(same) == {}


def test_a_score_that_disagrees_is_named():
    """The first score of the list decides; another that clearly prefers another forecast is named."""
    x, y = outcomes(600)
    early = cs.Exponential(np.exp(-x))
    late = cs.Mixture([cs.Exponential(0.9 * np.exp(-x)), cs.Weibull(3.0, np.exp(x))], [0.5, 0.5])
    scores = {"mine": lambda y, F, C, horizon: np.asarray(F.sf(0.2)).reshape(-1), "crps": None}
    found = cs.compare(
        {"early": early, "late": late},
        y,
        cs.Uniform(0.0, 3.0),
        scores=scores,
        horizon=2.0,
        reference=None,
        discrimination=False,
    )
    assert found.verdict.best == "early"
    assert "Other scores disagree" not in str(found.verdict)
    backwards = {"mine": lambda y, F, C, horizon: -np.asarray(F.sf(0.2)).reshape(-1), "crps": None}
    found = cs.compare(
        {"early": early, "late": late},
        y,
        cs.Uniform(0.0, 3.0),
        scores=backwards,
        horizon=2.0,
        reference=None,
        discrimination=False,
    )
    assert found.verdict.best == "late"
    assert "Other scores disagree: late is clearly worse than early by the CRPS." in str(found.verdict)


def test_infinite_losses_are_named():
    x, _ = outcomes(200)
    forecasts = {
        "finite": cs.Exponential(np.exp(-x)),
        "endless": cs.Uniform(0.0, 0.5),
        "other": cs.Exponential(0.5),
    }
    found = compared(200, forecasts, scores="log_score")
    assert "Infinite mean: endless." in str(found.verdict)
    assert found.verdict.best == "finite"
    two = compared(200, {name: forecasts[name] for name in ("finite", "endless")}, scores="log_score")
    assert str(two.verdict).startswith("finite is best by the log score")


def test_the_unit_of_time_is_in_tables_and_words():
    found = compared(time_unit="days", scores=["crps", "brier_score:ipcw"], times=[1.0])
    assert re.search(r"up to 2 of [\d.]+ days", str(found.verdict))
    assert grids_of(found)[0].columns == ["CRPS (days)", "rank", "Brier score, ipcw, t = 1 days"]
    assert found.settings["time unit"] == "days"
    assert "horizon 2 days" in repr(found)


def test_subgroups_are_shown_where_asked_for():
    x, _ = outcomes(400)
    found = compared(by={"side": np.where(x > 0, "right", "left")})
    assert "integrated Brier score, ipcw by side" in repr(found)
    assert "integrated Brier score, ipcw by side" in found._repr_html_().replace("Integrated", "integrated")
    assert " by side" not in repr(compared())


def test_wide_tables_are_cut_into_parts():
    text = repr(compared(scores="all"))
    body = [line for line in text.splitlines() if not line.startswith(("note:", "warning:"))]
    assert max(map(len, body)) <= 110


def test_skill_and_ranks_are_beside_the_deciding_score():
    found = compared(reference="pooled")
    grid = grids_of(found)[0]
    assert grid.columns[1:3] == ["rank", "skill"]
    assert grid.rows[found.verdict.best][1].text == "1"
    assert grid.rows["pooled"][2].text == "0.0 %"


def test_tiny_and_large_numbers_are_readable():
    x, y = outcomes(200)
    for scale, shown in ((1e-6, "e-07"), (1e6, "")):
        scaled = cs.RightCensored(y.time * scale, y.event)
        found = cs.compare(
            {"F": cs.Exponential(np.exp(-x) / scale), "G": cs.Exponential(1 / scale)}, scaled,
            cs.Uniform(0.0, 3.0 * scale), horizon=2.0 * scale, scores="crps", discrimination=False,
        )  # fmt: skip
        text = grids_of(found)[0].rows["F"][0].text
        assert shown in text
        assert "0.0000" not in text
        assert len(text) < 24


def test_a_short_horizon_is_told_beside_the_end_of_follow_up():
    rng = np.random.default_rng(0)
    T, c = rng.exponential(1.0, 300), rng.uniform(0.5, 6.0, 300)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    forecasts = {"right": cs.Exponential(1.0), "late": cs.Exponential(0.3)}
    short = cs.compare(forecasts, y, cs.Uniform(0.5, 6.0), horizon=0.5, scores="crps", time_unit="years")
    assert f"up to 0.5 of {y.time.max():.4g} years" in str(short.verdict)
    whole = cs.compare(forecasts, y, cs.Uniform(0.5, 6.0), horizon=0.95 * y.time.max(), scores="crps")
    assert " of " not in str(whole.verdict).split("(")[0]
