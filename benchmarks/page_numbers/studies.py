"""Numbers of the studies, from their committed tables."""

from __future__ import annotations

import math
import re

import pandas as pd

from benchmarks.page_numbers.pages import match, on, output, spread, table

BLOCKS = ("mixture_k2", "mixture_k3", "mixture_k5", "mixture_k10", "lognormal_k2")


@on("icu_study.md")
def epoch_on_a_gpu() -> list[str]:
    seconds = float(match(r"grouped rows, compiled: ([\d.]+) s", output("engression_gpu"))[1])
    return [f"{seconds:.1f}"]


@on("icu_study.md")
def build() -> list[str]:
    found = match(r"^ +20,000 +\S+ +([\d,]+) +\S+ +(\S+) +\S+ +(\d+)$", output("aki_build_20000"))
    rows, seconds, memory = int(found[1].replace(",", "")), float(found[2]), found[3]
    return [f"{rows / 1e6:.1f}", f"{seconds:.0f}", f"{memory}"]


@on("icu_study.md")
def memory_of_a_fit() -> list[str]:
    features, mapped = match(r"^ +4,831,810 +(\d+) +(\d+)", output("training_memory")).groups()
    return [f"{mapped}", f"{features}"]


@on("censored_engression.md")
def memory_with_unknown_censoring() -> list[str]:
    found = match(r"^ +5,000,000 +420 +(\d+) +(\d+) +\d+ +\d+$", output("training_memory"))
    return [f"{found[2]}", f"{found[1]}"]


@on("icu_study.md")
def cost() -> list[str]:
    seconds = table("aki/cost").set_index("stage")["seconds"]
    train = seconds[seconds.index.str.startswith("models/")].sum()
    methods = seconds[seconds.index.str.match("evaluation/(?!results)")]
    return [
        f"{seconds.sum() / 60:.1f}",
        f"{seconds.iloc[0]:.0f}",
        f"{train / 60:.1f}",
        spread(methods, ".0f"),
    ]


@on("icu_study.md")
def better_than_naive() -> list[str]:
    return [f"{least_errors('Naive')}"]


@on("icu_study.md")
def better_than_weibull() -> list[str]:
    least = min(least_errors("Indep. Weibull"), least_errors("Clayton Weibull"))
    return [f"{least}"]


def least_errors(method: str) -> int:
    """Standard errors, rounded down, by which censored engression leads on every score at least."""
    line = table("aki/differences").set_index("method").loc[method]
    scores = [name for name in line.index if not name.endswith("_error")]
    return math.floor(min(line[name] / line[f"{name}_error"] for name in scores))


@on("icu_study.md")
def behind_flexible_likelihoods() -> list[str]:
    lines = table("aki/differences").set_index("method")
    lines = lines.loc[["Joint grid", "Cond. indep. Weibull", "Cond. Clayton Weibull"]]
    ours = table("aki/energy").set_index("method").loc["Censored", "joint"]
    return [spread(-100 * lines.joint / ours), spread(-lines.joint / lines.joint_error)]


@on("icu_study.md")
def above_the_truth() -> list[str]:
    lines = table("aki/truth").set_index("method").joint
    error = table("aki/truth").set_index("method").loc["Truth", "joint_error"]
    conditional = sorted(lines[["Cond. indep. Weibull", "Cond. Clayton Weibull"]])
    return [
        f"{lines['Censored']:.2f}",
        f"{lines['Truth']:.2f}",
        f"{error:.2f}",
        f"{lines['Joint grid']:.2f}",
        f"{conditional[0]:.2f}",
        f"{conditional[1]:.2f}",
    ]


@on("results/forecast_evaluation.md")
def ranks() -> list[str]:
    found = table("forecast_evaluation/oracle_ranks")
    sentence = found["rule"].str.endswith("oracle")
    assert (found["printed"][sentence] == 1).all()
    return [
        f"{found['reproduced'].sum()}",
        f"{len(found)}",
        f"{(~sentence).sum()}",
        f"{len(found)}",
        f"{sentence.sum()}",
    ]


@on("results/forecast_evaluation.md")
def which_ranks_differ() -> list[str]:
    found = table("forecast_evaluation/oracle_ranks")
    missed = found[~found["reproduced"]]
    assert set(missed["rule"]) == {"NLL, Yanagisawa plug-in"}
    assert list(missed["regime"]) == ["B", "D"]
    first = 100 * missed.set_index("regime").loc["B", "rank 1"]
    return [f"{first:.0f}"]


@on("results/forecast_evaluation.md")
def expected_gaps() -> list[str]:
    lines = (
        table("forecast_evaluation/raw_scores").set_index(["rule", "regime"]).loc["NLL, Yanagisawa plug-in"]
    )
    b, d = lines.loc["B"], lines.loc["D"]
    return [
        f"{b['printed gap']:.4f}",
        f"{b['large-n gap']:.4f}",
        f"{b['large-n gap se']:.4f}",
        f"{d['large-n gap']:.4f}",
        f"{d['large-n gap se']:.4f}",
    ]


@on("results/forecast_evaluation.md")
def printed_means() -> list[str]:
    most = table("forecast_evaluation/raw_scores")["z"].abs().max()
    return [f"{most:.2f}"]


@on("results/forecast_evaluation.md")
def estimated_censoring() -> list[str]:
    found = table("forecast_evaluation/sensitivity")
    known = found["censoring distribution"] == "true"
    shares = 100 * found["oracle first"]
    return [spread(shares[~known], ".0f"), spread(shares[known], ".0f")]


def blocks() -> pd.DataFrame:
    return pd.concat([table(f"multivariate/{name}") for name in BLOCKS])


@on("results/multivariate.md")
def excess_of_censored_engression() -> list[str]:
    lines = blocks()
    feasible = lines[~lines["method"].isin(["DGP", "Latent engression"])].sort_values("censored")
    best = feasible.groupby(["scenario", "k", "censoring"])["method"].first()
    assert set(best) == {"Censored engression"}
    ours = lines[(lines["method"] == "Censored engression") & (lines["censoring"] != "componentwise")]
    return [spread(ours["censored excess %"]), spread(ours["printed excess %"])]


@on("../README.md")
def excess_in_the_readme() -> list[str]:
    lines = blocks()
    lines = lines[lines["censoring"] != "componentwise"]
    assert len(lines[["scenario", "k", "censoring"]].drop_duplicates()) == 15
    most = lines.groupby("method")["censored excess %"].max()
    return [f"{most['Censored engression']:.1f}", f"{most['Naive observed engression']:.0f}"]


@on("results/multivariate.md")
def clayton() -> list[str]:
    lines = blocks()
    lines = lines[lines["method"].str.contains("Clayton") & lines["k"].isin([5, 10])]
    return [spread(lines["censored excess %"], ".0f"), spread(lines["printed excess %"], ".0f")]


@on("results/multivariate.md")
def margins_first() -> list[str]:
    found = [
        table(f"multivariate/extension_{name}").set_index("method").loc["Clayton-Weibull, margins first"]
        for name in ("clayton", "clayton-k10")
    ]
    five, ten = (line["censored excess %"] for line in found)
    return [f"{five:.1f}", f"{ten:.1f}"]


@on("results/multivariate.md")
def log_scores_of_a_wrong_copula() -> list[str]:
    lines = table("multivariate/extension_clayton-k10").set_index("method")["log_score"]
    joint, first = lines["Clayton-Weibull"], lines["Clayton-Weibull, margins first"]
    return [f"{joint:.2f}", f"{first:.2f}"]


@on("results/multivariate.md")
def devices() -> list[str]:
    return [f"{(table('multivariate/cells')['device'] == 'cpu').sum()}"]


@on("results/multivariate.md")
def converged_clayton() -> list[str]:
    lines = blocks()
    linear = lines[(lines["method"] == "Clayton-Weibull") & (lines["censoring"] != "componentwise")]
    mixture = linear[linear["scenario"] == "mixture"]
    three, ten = (mixture[mixture["k"] == k]["censored excess %"] for k in (3, 10))
    return [spread(mixture["theta"], ".0f"), spread(three, ".0f"), spread(ten, ".0f")]


@on("results/multivariate.md")
def intervals_with_zero() -> list[str]:
    pairs = table("multivariate/paired")
    count = ((pairs["low"] < 0) & (pairs["high"] > 0)).sum()
    more = table("multivariate/paired_administrative")
    assert (more["high"] < 0).all()
    number = ("none", "one", "two", "three")[count]
    return [f"{number}"]


@on("results/multivariate.md")
def large_training_sets() -> list[str]:
    lines = table("multivariate/extension_training-size")
    ours = lines[lines["method"] == "Censored engression"]["censored excess %"].min()
    return [f"{ours:.1f}"]


@on("gallery/naive_against_censored.md")
def cost_of_naive_training() -> list[str]:
    lines = blocks()
    naive = lines[lines["method"].str.startswith("Naive") & (lines["scenario"] == "mixture")]
    leaving = naive[naive["censoring"] != "administrative"]["censored excess %"]
    assert 19 < leaving.min() < leaving.max() < 26
    return []


@on("results/engression_ablations.md")
def layer_norm() -> list[str]:
    lines = table("engression_ablations")
    lines = lines[(lines["round"] == "C") & lines["settings"].str.endswith("lr=0.004")].set_index("variant")
    with_both, with_norm, neither = lines.loc[["R res", "R", "R noln"], "latest_within_se"]
    return [f"{with_both:.2f}", f"{with_norm:.2f}", f"{neither:.2f}"]


@on("censored_engression.md")
def recovered_dependence() -> list[str]:
    line = table("recovery").set_index("quantity").loc["mean tau, by 4"]
    return [f"{line['censored']:.3f}", f"{line['truth']:.3f}"]


def behind(method: str) -> pd.DataFrame:
    lines = table("real_data/real-data")
    return lines[lines["method"] == method].set_index("data")


@on("results/real_data.md")
def level_with_clayton() -> list[str]:
    lines = behind("Clayton-Weibull")
    line = lines[lines.index == "rhDNase"].iloc[0]
    return [f"{line['behind %']:.1f}", f"{line['error %']:.1f}"]


@on("results/real_data.md")
def ahead_of_clayton() -> list[str]:
    lines = behind("Clayton-Weibull").loc[["colon", "lymph node", "nafld"], "behind %"]
    return [spread(lines)]


@on("results/real_data.md")
def ahead_of_independence() -> list[str]:
    lines = pd.concat([behind("Independent Kaplan-Meier"), behind("Independent Weibull")])
    lines = lines.loc[["colon", "lymph node", "nafld"]]
    errors = {5: "five", 6: "six"}[math.floor((lines["behind %"] / lines["error %"]).min())]
    return [f"{errors}"]


@on("results/public_data.md")
def sample_of_flchain() -> list[str]:
    subjects = int(match(r"flchain: \{'subjects': (\d+)", output("public_data"))[1])
    return [f"{subjects:,}"]


@on("results/neutral_benchmark.md")
def ranks_on_the_same_folds() -> list[str]:
    rank = table("neutral_benchmark/same_folds").set_index("learner")["mean rank"]
    oblique, conditional = rank["oblique random forest (aorsf)"], rank["conditional inference forest"]
    assert list(rank.sort_values().iloc[:3]) == [rank["BestForecast"], oblique, conditional]
    return [f"{rank['BestForecast']:.1f}", f"{len(rank)}", f"{oblique:.1f}", f"{conditional:.1f}"]


@on("../README.md")
def ranks_in_the_readme() -> list[str]:
    rank = table("neutral_benchmark/same_folds").set_index("learner")["mean rank"].sort_values()
    assert list(rank.index[:2]) == ["BestForecast", "oblique random forest (aorsf)"]
    return [f"{len(rank)}", f"{rank.iloc[0]:.1f}", f"{rank.iloc[1]:.1f}"]


@on("results/neutral_benchmark.md")
def first_and_last_places() -> list[str]:
    ranks = table("neutral_benchmark/ranks").query("learner == 'BestForecast'").set_index("task")["rank"]
    first = list(ranks.index[ranks == 1])
    words = {6: "sixth", 7: "seventh", 8: "eighth"}
    worst = [f"{words[rank]} on {task}" for task, rank in ranks.items() if rank > 5]
    return [f"{', '.join(first[:-1])}", f"{first[-1]}", f"{' and '.join(worst)}"]


@on("results/neutral_benchmark.md")
def level_with_the_oblique_forest() -> list[str]:
    lines = table("neutral_benchmark/differences").query("learner == 'BestForecast' and versus == 'ORSF'")
    assert (len(lines), set(lines["folds"])) == (11, {3})
    assert ((lines["low"] < 0) & (lines["high"] > 0)).all()
    return []


@on("results/survset.md")
def ahead_of_survival_pfn() -> list[str]:
    lines = table("survset/summary").query("versus == 'published'").set_index("metric")
    ibs, ci = lines.loc["IBS"], lines.loc["CI"]
    return [
        f"{ibs['ahead']}",
        f"{ibs['tables']}",
        f"{ibs['mean']:.3f}",
        f"{ibs['versus mean']:.3f}",
        f"{ci['ahead']}",
        f"{ci['mean']:.3f}",
        f"{ci['versus mean']:.3f}",
    ]


@on("results/survset.md")
def ahead_of_ridge_cox() -> list[str]:
    ahead = table("survset/summary").query("versus == 'ridge Cox'").set_index("metric")["ahead"]
    return [f"{ahead['proper']}", f"{ahead['IBS']}", f"{ahead['CI']}"]


@on("results/survset.md")
def splits_of_the_stack() -> list[str]:
    splits = table("survset/by_table")["splits"]
    assert splits.nunique() == 1
    return [f"{splits[0]}", f"{len(splits)}"]


@on("results/stack_scenarios.md")
def best_or_level() -> list[str]:
    counts = table("stack_scenarios/counts").query("scenarios == 'all'").set_index("n")
    return [f"{counts.loc[300, 'best']}", f"{counts.loc[300, 'of']}", f"{counts.loc[300, 'best or level']}"]


@on("results/stack_scenarios.md")
def best_with_a_thousand() -> list[str]:
    counts = table("stack_scenarios/counts").query("scenarios == 'all' and n == 1000").iloc[0]
    return [f"{counts['best']}", f"{counts['of']}", f"{counts['best or level']}"]


@on("results/stack_scenarios.md")
def scenarios_of_no_choice() -> list[str]:
    counts = table("stack_scenarios/counts").query("scenarios != 'all' and n == 300").iloc[0]
    return [f"{counts['best']}", f"{counts['of']}"]


def _covered(target: str, hard: bool | None = None) -> str:
    """Per cent of cases that intervals cover, with a sine and a sign of 30 covariates, without, or all."""
    covered = table("stack_scenarios/intervals")
    chosen = covered if hard is None else covered[covered["scenario"].str.startswith("sine") == hard]
    return spread(100 * chosen[target], ".0f")


@on("results/stack_scenarios.md")
def what_intervals_cover() -> list[str]:
    return [
        _covered("mean forecast"),
        _covered("such forecasts"),
        _covered("own risk", False),
        _covered("own risk", True),
    ]


@on("censored_engression.md")
def intervals_of_the_stack() -> list[str]:
    return [_covered("mean forecast"), _covered("own risk", False)]


@on("censored_engression.md")
def what_no_interval_knows() -> list[str]:
    return [_covered("own risk", True)]


@on("results/stack_scenarios.md")
def three_event_times() -> list[str]:
    today = output("engression_excess").partition("Older code")[0]
    excess = re.findall(r"^ +3 +10[0-2] +([\d.]+)", today, re.M)
    alone = match(r"^ +3 +100 +\S+ +\S+ +\S+ +([\d.]+)", today)[1]
    return [f"{excess[0]}", f"{excess[1]}", f"{excess[2]}", f"{alone}"]


@on("results/stack_scenarios.md")
def five_and_ten_event_times() -> list[str]:
    today = output("engression_excess").partition("Older code")[0]
    five, ten = (re.findall(rf"^ +{k} +10[0-2] +([\d.]+)", today, re.M) for k in (5, 10))
    return [f"{five[0]}", f"{five[1]}", f"{five[2]}", f"{ten[0]}", f"{ten[1]}", f"{ten[2]}"]
