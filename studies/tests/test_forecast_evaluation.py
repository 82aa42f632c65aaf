"""The forecast study: printed constants, closed forms, ranks, and conventions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import gamma

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.simulation import TargetedScenario, WeibullScenario
from censcore_studies import forecast_evaluation as study
from censcore_studies.forecast_evaluation import GridSettings, StudySettings, build_scenario, score_cell
from censcore_studies.forecast_evaluation.candidates import bin_masses
from censcore_studies.forecast_evaluation.completed import completed_log
from censcore_studies.forecast_evaluation.printed import PRINTED_RANKS, PRINTED_RAW
from censcore_studies.forecast_evaluation.ranks import rank_table, rank_view
from censcore_studies.forecast_evaluation.raw import raw_view
from censcore_studies.forecast_evaluation.rules import RULES, family
from censcore_studies.forecast_evaluation.scenario import estimated_censoring
from censcore_studies.forecast_evaluation.scoring import best_competitor, oracle_rank
from censcore_studies.forecast_evaluation.sensitivity import sensitivity_view

GRID = GridSettings()
STEP = GRID.z_max / GRID.bins


def targeted_draw(interior: int, late: int, n: int = 1000) -> cs.RightCensored:
    """A draw of regime D with given numbers of interior and late events, spread evenly."""
    low, quarter, start, end = TargetedScenario().interior
    censored = n - interior - late
    spread = [
        start + (end - start) * (np.arange(interior) + 0.5) / interior,
        GRID.edges[-2] + STEP * (np.arange(late) + 0.5) / late,
        low + (quarter - low) * (np.arange(censored) + 0.5) / censored,
    ]
    return cs.RightCensored(np.concatenate(spread), np.repeat([1, 0], [interior + late, censored]))


def test_the_grid_has_the_printed_edges():
    np.testing.assert_allclose(GRID.edges[[24, 25, 49, 50]], [9.8626, 10.2736, 20.1362, 20.5471], atol=6e-5)
    assert pytest.approx(0.410942, abs=1e-6) == STEP


def test_closed_forms_of_the_oracle_in_the_targeted_regime():
    """Two equal blocks: log 2 for the log score of bins, 25 thresholds at 1/4, half for classes."""
    means = score_cell({"regime": "D", "n": 300, "seed": 3})["means"]
    for weights in ("plug-in", "oracle"):
        assert means[f"NLL, Yanagisawa {weights}"]["F0"] == pytest.approx(np.log(2), abs=1e-5)
        assert means[f"RPS, Yanagisawa {weights}"]["F0"] == pytest.approx(25 * 0.25)
        assert means[f"Brier MC, Yanagisawa {weights}"]["F0"] == pytest.approx(0.5)
        assert means[f"Brier, Yanagisawa {weights}"]["F0"] == pytest.approx(0.25 / 10)
    assert means["Brier, latent"]["F0"] == pytest.approx(0.25 / 10)


def test_latent_log_score_of_the_targeted_regime_is_the_printed_one_for_its_split():
    """503 interior and 497 late times: the interior half lies on half a bin."""
    _, _, start, end = TargetedScenario().interior
    T = np.repeat([(start + end) / 2, GRID.z_max - STEP / 2], [503, 497])
    oracle = TargetedScenario().event_distribution(np.zeros((1, 3)))
    loss = cs.log_score(cs.RightCensored(T, np.ones(1000)), oracle, None)
    assert loss.mean() == pytest.approx(0.503 * np.log(STEP) + 0.497 * np.log(2 * STEP))
    assert loss.mean() == pytest.approx(PRINTED_RAW["NLL, latent"]["D"][0], abs=5e-5)


def test_the_printed_plug_in_log_score_belongs_to_a_draw_with_184_interior_events():
    """The printed event rate and censored log score determine the counts; the exploit's score follows."""
    rate, censored_nll = 0.395, PRINTED_RAW["Censored NLL"]["D"][0]
    late = (censored_nll - rate * np.log(STEP)) / np.log(2)
    assert round(1000 * late) == 211
    exploit = study.exploit_candidates(TargetedScenario(), GRID)["F5(0.05)"].binned
    score = completed_log(targeted_draw(184, 211), exploit, grid=GRID.edges).mean()
    assert score == pytest.approx(PRINTED_RAW["NLL, Yanagisawa plug-in"]["D"][1], abs=2e-4)


@pytest.mark.parametrize(("interior", "exploit_wins"), [(184, True), (190, True), (193, False), (200, False)])
def test_the_plug_in_log_score_in_the_targeted_regime_turns_on_the_interior_count(interior, exploit_wins):
    exploit = study.exploit_candidates(TargetedScenario(), GRID)["F5(0.05)"].binned
    score = completed_log(targeted_draw(interior, 395 - interior), exploit, grid=GRID.edges).mean()
    assert (score < np.log(2)) == exploit_wins


def test_the_latent_crps_of_the_oracle_is_its_closed_form():
    """E CRPS = Gamma(5/3) (1 - 2^(-2/3)) E lambda(X), with E lambda = exp(0.3 + 0.98 / 2)."""
    process = WeibullScenario("none")
    data = process.sample(6000, 0)
    loss = cs.crps(data.latent, process.event_distribution(data.X), None)
    exact = gamma(5 / 3) * (1 - 2 ** (-2 / 3)) * np.exp(0.79)
    assert exact == pytest.approx(0.7360, abs=1e-4)
    assert loss.mean() == pytest.approx(exact, abs=5 * loss.std() / np.sqrt(len(loss)))


def test_candidates_are_distributions_and_perturbed_as_described():
    X = np.array([[0.0, 0, 0], [1.0, -1.0, 0.5]])
    candidates = study.weibull_candidates(X, GRID)
    assert list(candidates) == ["F0", "F1", "F2", "F3", "F4"]
    masses = {}
    for name, candidate in candidates.items():
        cdf = candidate.binned.cdf(np.tile(GRID.edges, (2, 1)))
        np.testing.assert_allclose(cdf[:, -1], 1.0)
        masses[name] = np.diff(cdf, axis=1)
        assert (masses[name] >= -1e-12).all()
        np.testing.assert_allclose(candidate.stepped.cdf(np.tile(GRID.edges, (2, 1))), cdf, atol=1e-12)
    p, i = masses["F0"], np.arange(GRID.bins)
    tilted = p * np.exp(i / GRID.bins)
    np.testing.assert_allclose(masses["F4"], tilted / tilted.sum(axis=1, keepdims=True), atol=1e-12)
    np.testing.assert_allclose(
        candidates["F1"].continuous.icdf(0.3), np.exp(0.25) * candidates["F0"].continuous.icdf(0.3)
    )
    blend = masses["F3"] - 0.3 * p
    np.testing.assert_allclose(blend.sum(axis=1), 0.7)
    median_bin = (np.cumsum(p, axis=1) < 0.5).sum(axis=1)
    np.testing.assert_array_equal(blend.argmax(axis=1), median_bin + 2)


def test_smoothing_is_symmetric_and_the_shift_is_two_bins():
    """On a fine grid, away from its ends, the overdispersed forecast has the mean moved by two bins."""
    fine = GridSettings(bins=200)
    candidates = study.weibull_candidates(np.array([[1.3, 0.0, 0.0]]), fine)
    p0, p2 = (np.diff(candidates[name].binned.cdf(fine.edges[None]))[0] for name in ("F0", "F2"))
    i = np.arange(200)
    assert (p2 * i).sum() - (p0 * i).sum() == pytest.approx(2.0, abs=0.05)
    spread = (p2 * i**2).sum() - (p2 * i).sum() ** 2 - (p0 * i**2).sum() + (p0 * i).sum() ** 2
    assert spread == pytest.approx((2 * 4 + 4 * 1) / 9, abs=0.3)  # variance of the kernel 1 2 3 2 1


def test_mass_beyond_the_grid_goes_where_the_settings_say():
    F = cs.Weibull(1.5, [15.0])
    cdf = F.cdf(GRID.edges[None])
    last = bin_masses(F, GRID)
    assert last[0, -1] == pytest.approx(1 - cdf[0, -2])
    spread = bin_masses(F, GridSettings(overflow="renormalise"))
    np.testing.assert_allclose(spread, np.diff(cdf) / cdf[0, -1])
    with pytest.raises(InvalidInputError, match="overflow"):
        bin_masses(F, GridSettings(overflow="drop"))


def test_the_administrative_regime_stops_at_the_sample_median_or_at_a_fixed_time():
    median = build_scenario("A", 201, 0)
    assert median.y.event.mean() == pytest.approx(0.5, abs=0.01)
    fixed = build_scenario("A", 201, 0, StudySettings(administrative="fixed"))
    assert fixed.y.time.max() == 0.9833
    heavier = build_scenario("A", 201, 0, StudySettings(severity=4.0))
    assert heavier.y.event.mean() < 0.25


def test_every_rule_gives_a_loss_per_row_and_agrees_on_its_family():
    scenario = build_scenario("C", 40, 0)
    for name, rule in RULES.items():
        assert np.shape(rule(scenario, scenario.candidates["F0"])) == (40,), name
    kinds = [family(name) for name in RULES]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "latent": 4,
        "plug-in": 5,
        "oracle weights": 5,
        "ours": 4,
    }


def test_rules_do_not_depend_on_the_censoring_of_others():
    """The latent rules see the same times under every kind of censoring of regimes A to C."""
    means = [score_cell({"regime": r, "n": 60, "seed": 5, "rules": ["NLL, latent"]})["means"] for r in "ABC"]
    assert means[0] == means[1] == means[2]


def test_ranks_of_the_targeted_regime_are_printed_ones_where_chance_plays_no_part():
    means = score_cell({"regime": "D", "n": 1000, "seed": 0})["means"]
    for rule, printed in PRINTED_RANKS.items():
        if rule != "NLL, Yanagisawa plug-in":
            assert oracle_rank(means[rule]) == printed[3], rule


def test_a_rank_counts_the_forecasts_that_are_better():
    assert oracle_rank({"F0": 1.0, "F1": 2.0}) == 1
    assert oracle_rank({"F0": 1.0, "F1": 0.5, "F2": 0.9, "F3": np.inf}) == 3
    assert oracle_rank({"F0": 1.0, "F1": 1.0}) == 1
    assert best_competitor({"F0": 0.1, "F1": 0.3, "F2": 0.2}) == 0.2


def test_rank_frequencies_from_two_draws():
    draws = []
    for first in (True, False):
        means = {rule: {"F0": 1.0, "F1": 2.0 if first else 0.5} for rule in RULES}
        draws += [{"settings": {"regime": regime}, "means": means} for regime in "ABCD"]
    table = rank_table(draws)
    assert len(table) == 4 * len(PRINTED_RANKS)
    assert (table["rank 1"] == 0.5).all()
    assert (table["rank 2"] == 0.5).all()
    assert not table["reproduced"].any()
    assert rank_view(table).shape == (len(PRINTED_RANKS), 5)
    assert "1 (50 %) *" in rank_view(table)["A"].to_list()


def test_studies_share_cells_and_jobs_do_not_matter(tmp_path):
    ranks = study.oracle_ranks(2, 50, out=tmp_path, progress=False)
    files = set((tmp_path / "cells").iterdir())
    raw = study.raw_scores(50, 2, out=tmp_path, progress=False)
    assert set((tmp_path / "cells").iterdir()) == files
    pd.testing.assert_frame_equal(ranks, study.oracle_ranks(2, 50, jobs=2, progress=False))
    assert len(raw_view(raw)) == len(raw) == 4 * len(PRINTED_RAW)


def test_large_samples_come_as_a_reference_with_errors(tmp_path):
    table = study.raw_scores(40, 2, large_n=120, large_replications=2, out=tmp_path, progress=False)
    line = table.query("rule == 'CRPS, ours' and regime == 'B'").iloc[0]
    cells = [score_cell({"regime": "B", "n": 120, "seed": s, "rules": ["CRPS, ours"]}) for s in (0, 1)]
    values = [c["means"]["CRPS, ours"]["F0"] for c in cells]
    assert line["large-n oracle"] == pytest.approx(np.mean(values))
    assert line["large-n oracle se"] == pytest.approx(np.std(values, ddof=1) / np.sqrt(2))


@pytest.mark.parametrize("name", ["kaplan-meier", "weibull", "cox", "weibull-x", "cox-cv", "weibull-cv"])
def test_estimated_distributions_are_close_to_the_truth_where_the_model_holds(name):
    """Regime B: C does not depend on x; a Weibull curve follows a uniform distribution roughly."""
    data = WeibullScenario("uniform").sample(600, 1)
    C = estimated_censoring(name, data)
    t = np.tile([1.0, 3.0, 5.0], (600, 1))
    truth = 1 - t / (0.4 * 20.5471)
    error = np.abs(C.sf(t if len(C) == 600 else t[:1]) - truth).mean()
    assert error < 0.08


def test_a_curve_of_another_fold_that_ends_before_a_time_cuts_the_data():
    scenarios = [build_scenario("B", 1000, seed, estimator="kaplan-meier-cv") for seed in range(3)]
    cut = [scenario for scenario in scenarios if scenario.y.time.max() < scenario.data.y.time.max()]
    assert cut
    for scenario in scenarios:
        assert np.isfinite(RULES["CRPS, ours"](scenario, scenario.candidates["F0"])).all()


def test_sensitivity_under_the_true_distribution_is_unbiased_and_printed_numbers_stand_beside():
    table = study.sensitivity(80, 2, estimators=["kaplan-meier"], progress=False)
    assert (table.query("`censoring distribution` == 'true'")["bias %"] == 0).all()
    line = table.query(
        "`censoring distribution` == 'kaplan-meier' and regime == 'B' and score == 'CRPS'"
    ).iloc[0]
    assert line["printed F0"] == 0.3748
    assert line["z"] == pytest.approx((0.3748 - line["F0"]) / line["F0 sd"])
    assert len(sensitivity_view(table)) == 12


def test_convergence_counts_first_places_by_size_and_severity(tmp_path):
    table = study.convergence([30, 60], [1.0, 3.0], 2, regimes=["B"], out=tmp_path, progress=False)
    assert set(zip(table["n"], table["severity"], strict=True)) == {(30, 1.0), (60, 1.0), (1000, 3.0)}
    assert table["oracle first"].isin([0.0, 0.5, 1.0]).all()
    heavy = table.query("n == 1000")["event rate"].iloc[0]
    assert heavy < table.query("n == 60")["event rate"].iloc[0]


@pytest.mark.parametrize("name", study.DATA_REGIMES)
def test_scenarios_like_real_studies(name):
    scenario = build_scenario(name, 80, 0)
    assert scenario.grid.z_max == 1.0
    assert scenario.y.time.max() <= 1.0
    for rule in ("CRPS, ours", "Brier, ours", "RPS, Yanagisawa plug-in"):
        assert np.isfinite(RULES[rule](scenario, scenario.candidates["F0"])).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: build_scenario("E", 10, 0), "regime must be one of"),
        (lambda: build_scenario("B", 10, 0, estimator="forest"), "estimator must be one of"),
        (lambda: study.data_scenario("heart"), "data set must be one of"),
    ],
)
def test_unknown_names_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
