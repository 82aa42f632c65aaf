"""Numbers of the studies that the pages quote are those of the committed tables.

Each quote prints a sentence from a table; the sentence has to stand on the page. Whoever computes a table
again learns here which sentences are stale.
"""

from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from tests.quotes import Quotes, output, spread, stands_on, table

BLOCKS = ("mixture_k2", "mixture_k3", "mixture_k5", "mixture_k10", "lognormal_k2")
QUOTES = Quotes()


# ---- the ICU study ------------------------------------------------------------------------------------


@QUOTES.on("icu_study.md")
def epoch_on_a_gpu() -> str:
    seconds = float(re.search(r"grouped rows, compiled: ([\d.]+) s", output("engression_gpu"))[1])
    return f"An epoch at the paper's size takes {seconds:.1f} s on one H200."


@QUOTES.on("icu_study.md")
def build() -> str:
    found = re.search(r"^ +20,000 +\S+ +([\d,]+) +\S+ +(\S+) +\S+ +(\d+)$", output("aki_build_20000"), re.M)
    rows, seconds, memory = int(found[1].replace(",", "")), float(found[2]), found[3]
    return (
        f"{rows / 1e6:.1f} million prediction rows) take {seconds:.0f} s of one processor and at most "
        f"{memory} MiB"
    )


@QUOTES.on("icu_study.md")
def memory_of_a_fit() -> str:
    features, mapped = re.search(r"^ +4,831,810 +(\d+) +(\d+)", output("training_memory"), re.M).groups()
    return f"takes {mapped} MiB beyond the libraries themselves, less than the {features} MiB of its features"


@QUOTES.on("censored_engression.md")
def memory_with_unknown_censoring() -> str:
    found = re.search(r"^ +5,000,000 +420 +(\d+) +(\d+) +\d+ +\d+$", output("training_memory"), re.M)
    return (
        "With 5,000,000 subjects, 22 covariates in a mapped file, two event times and unknown C, an epoch "
        f"takes {found[2]} MiB beyond the libraries themselves, most of them for the curve of C; a table of "
        f"quantiles would add {found[1]} MiB (`python -m benchmarks training_memory`)."
    )


@QUOTES.on("icu_study.md")
def cost() -> str:
    seconds = table("aki/cost").set_index("stage")["seconds"]
    train = seconds[seconds.index.str.startswith("models/")].sum()
    methods = seconds[seconds.index.str.match("evaluation/(?!results)")]
    return (
        f"The stages of the second command add up to {seconds.sum() / 60:.1f} minutes: "
        f"{seconds.iloc[0]:.0f} s to build, {train / 60:.1f} minutes "
        f"to train seven methods on 3.26 million rows, and "
        f"{spread(methods, '.0f')} s a method"
    )


@QUOTES.on("icu_study.md")
def better_than_naive() -> str:
    return f"on every score, by more than {least_errors('Naive')} standard errors of the paired difference"


@QUOTES.on("icu_study.md")
def better_than_weibull() -> str:
    least = min(least_errors("Indep. Weibull"), least_errors("Clayton Weibull"))
    return f"better than the log-linear Weibull models on every score, by more than {least}."


def least_errors(method: str) -> int:
    """Standard errors, rounded down, by which censored engression leads on every score at least."""
    line = table("aki/differences").set_index("method").loc[method]
    scores = [name for name in line.index if not name.endswith("_error")]
    return math.floor(min(line[name] / line[f"{name}_error"] for name in scores))


@QUOTES.on("icu_study.md")
def behind_flexible_likelihoods() -> str:
    lines = table("aki/differences").set_index("method")
    lines = lines.loc[["Joint grid", "Cond. indep. Weibull", "Cond. Clayton Weibull"]]
    ours = table("aki/energy").set_index("method").loc["Censored", "joint"]
    return (
        f"by {spread(-100 * lines.joint / ours)} %, which is {spread(-lines.joint / lines.joint_error)} "
        "standard errors"
    )


@QUOTES.on("icu_study.md")
def above_the_truth() -> str:
    lines = table("aki/truth").set_index("method").joint
    error = table("aki/truth").set_index("method").loc["Truth", "joint_error"]
    conditional = sorted(lines[["Cond. indep. Weibull", "Cond. Clayton Weibull"]])
    return (
        f"Censored engression is {lines['Censored']:.2f} h above the true joint score of "
        f"{lines['Truth']:.2f} ± {error:.2f}, the joint grid {lines['Joint grid']:.2f} and the conditional "
        f"models {conditional[0]:.2f} and {conditional[1]:.2f}"
    )


# ---- which scores find the truth ----------------------------------------------------------------------


@QUOTES.on("results/forecast_evaluation.md")
def ranks() -> str:
    found = table("forecast_evaluation/oracle_ranks")
    sentence = found["rule"].str.endswith("oracle")
    assert (found["printed"][sentence] == 1).all()
    return (
        f"{found['reproduced'].sum()} of the {len(found)} ranks that the paper reports are the rank of most "
        f"draws. {(~sentence).sum()} of the {len(found)} stand in its table; the other {sentence.sum()}, "
        "of the five rules with oracle weights in four regimes, in one sentence: all are first."
    )


@QUOTES.on("results/forecast_evaluation.md")
def which_ranks_differ() -> str:
    found = table("forecast_evaluation/oracle_ranks")
    missed = found[~found["reproduced"]]
    assert set(missed["rule"]) == {"NLL, Yanagisawa plug-in"}
    assert list(missed["regime"]) == ["B", "D"]
    first = 100 * missed.set_index("regime").loc["B", "rank 1"]
    return f"In regime B it ranks the truth first in {first:.0f} % of the draws"


@QUOTES.on("results/forecast_evaluation.md")
def expected_gaps() -> str:
    lines = (
        table("forecast_evaluation/raw_scores").set_index(["rule", "regime"]).loc["NLL, Yanagisawa plug-in"]
    )
    b, d = lines.loc["B"], lines.loc["D"]
    return (
        f"the printed means differ by {b['printed gap']:.4f}, and the expected ones by "
        f"{b['large-n gap']:.4f} ± {b['large-n gap se']:.4f}. "
        f"In regime D, where the truth is ahead by {d['large-n gap']:.4f} ± "
        f"{d['large-n gap se']:.4f} in expectation"
    )


@QUOTES.on("results/forecast_evaluation.md")
def printed_means() -> str:
    most = table("forecast_evaluation/raw_scores")["z"].abs().max()
    return f"Every printed mean score of the truth lies within {most:.2f} standard deviations of one draw"


@QUOTES.on("results/forecast_evaluation.md")
def estimated_censoring() -> str:
    found = table("forecast_evaluation/sensitivity")
    known = found["censoring distribution"] == "true"
    shares = 100 * found["oracle first"]
    return (
        "With an estimated censoring distribution the truth is first in "
        f"{spread(shares[~known], '.0f')} % of 100 draws, with the true one in "
        f"{spread(shares[known], '.0f')} %"
    )


# ---- several event times ------------------------------------------------------------------------------


def blocks() -> pd.DataFrame:
    return pd.concat([table(f"multivariate/{name}") for name in BLOCKS])


@QUOTES.on("results/multivariate.md")
def excess_of_censored_engression() -> str:
    lines = blocks()
    feasible = lines[~lines["method"].isin(["DGP", "Latent engression"])].sort_values("censored")
    best = feasible.groupby(["scenario", "k", "censoring"])["method"].first()
    assert set(best) == {"Censored engression"}
    ours = lines[(lines["method"] == "Censored engression") & (lines["censoring"] != "componentwise")]
    return (
        f"Its excess over the true distribution is {spread(ours['censored excess %'])} %, below the printed "
        f"{spread(ours['printed excess %'])} %."
    )


@QUOTES.on("../README.md")
def excess_in_the_readme() -> str:
    lines = blocks()
    lines = lines[lines["censoring"] != "componentwise"]
    assert len(lines[["scenario", "k", "censoring"]].drop_duplicates()) == 15
    most = lines.groupby("method")["censored excess %"].max()
    return (
        f"In the paper's fifteen settings its energy score is at most {most['Censored engression']:.1f} % "
        f"above that of the true distribution. The same network trained naively is up to "
        f"{most['Naive observed engression']:.0f} % above it."
    )


@QUOTES.on("results/multivariate.md")
def clayton() -> str:
    lines = blocks()
    lines = lines[lines["method"].str.contains("Clayton") & lines["k"].isin([5, 10])]
    return (
        f"The Clayton models for k = 5 and 10 are worse than printed "
        f"({spread(lines['censored excess %'], '.0f')} "
        f"% instead of {spread(lines['printed excess %'], '.0f')} %)."
    )


@QUOTES.on("results/multivariate.md")
def margins_first() -> str:
    found = [
        table(f"multivariate/extension_{name}").set_index("method").loc["Clayton-Weibull, margins first"]
        for name in ("clayton", "clayton-k10")
    ]
    five, ten = (line["censored excess %"] for line in found)
    return f"fitted margins first it gives {five:.1f} and {ten:.1f} %"


@QUOTES.on("results/multivariate.md")
def log_scores_of_a_wrong_copula() -> str:
    lines = table("multivariate/extension_clayton-k10").set_index("method")["log_score"]
    joint, first = lines["Clayton-Weibull"], lines["Clayton-Weibull, margins first"]
    return f"(at k = 10 {joint:.2f} against {first:.2f})"


@QUOTES.on("results/multivariate.md")
def devices() -> str:
    return f"{(table('multivariate/cells')['device'] == 'cpu').sum()} on a CPU (torch"


@QUOTES.on("results/multivariate.md")
def converged_clayton() -> str:
    lines = blocks()
    linear = lines[(lines["method"] == "Clayton-Weibull") & (lines["censoring"] != "componentwise")]
    mixture = linear[linear["scenario"] == "mixture"]
    three, ten = (mixture[mixture["k"] == k]["censored excess %"] for k in (3, 10))
    return (
        f"in the mixture scenario their dependence is now {spread(mixture['theta'], '.0f')} instead of "
        f"5 to 7 where both were recorded, and their excess at k = 3 is {spread(three, '.0f')} instead of "
        f"10 to 11 %, at k = 10 {spread(ten, '.0f')} instead of 35 to 42 %."
    )


@QUOTES.on("results/multivariate.md")
def intervals_with_zero() -> str:
    pairs = table("multivariate/paired")
    count = ((pairs["low"] < 0) & (pairs["high"] > 0)).sum()
    more = table("multivariate/paired_administrative")
    assert (more["high"] < 0).all()
    number = ("None", "One", "Two", "Three")[count]
    return f"{number} of the five-repetition intervals include zero. With fifteen repetitions they do not"


@QUOTES.on("results/multivariate.md")
def large_training_sets() -> str:
    lines = table("multivariate/extension_training-size")
    ours = lines[lines["method"] == "Censored engression"]["censored excess %"].min()
    return f"censored engression comes down to {ours:.1f} %."


@QUOTES.on("gallery/naive_against_censored.md")
def cost_of_naive_training() -> str:
    lines = blocks()
    naive = lines[lines["method"].str.startswith("Naive") & (lines["scenario"] == "mixture")]
    leaving = naive[naive["censoring"] != "administrative"]["censored excess %"]
    assert 19 < leaving.min() < leaving.max() < 26
    return "If patients leave at different times it costs a fifth to a quarter of the score"


@QUOTES.on("results/engression_ablations.md")
def layer_norm() -> str:
    lines = table("engression_ablations")
    lines = lines[(lines["round"] == "C") & lines["settings"].str.endswith("lr=0.004")].set_index("variant")
    with_both, with_norm, neither = lines.loc[["R res", "R", "R noln"], "latest_within_se"]
    return (
        f"Layer norm pays together with residual layers ({with_both:.2f}). Without them it does not: the "
        f"excess is {with_norm:.2f} with it and {neither:.2f} without."
    )


@QUOTES.on("censored_engression.md")
def recovered_dependence() -> str:
    line = table("recovery").set_index("quantity").loc["mean tau, by 4"]
    return f"which is {line['censored']:.3f} on average and {line['truth']:.3f} in truth"


# ---- real data ----------------------------------------------------------------------------------------


def behind(method: str) -> pd.DataFrame:
    lines = table("real_data/real-data")
    return lines[lines["method"] == method].set_index("data")


@QUOTES.on("results/real_data.md")
def level_with_clayton() -> str:
    lines = behind("Clayton-Weibull")
    line = lines[lines.index == "rhDNase"].iloc[0]
    return f"Level with a Clayton copula on rhDNase, {line['behind %']:.1f} ± {line['error %']:.1f} %"


@QUOTES.on("results/real_data.md")
def ahead_of_clayton() -> str:
    lines = behind("Clayton-Weibull").loc[["colon", "lymph node", "nafld"], "behind %"]
    return f"and of a Clayton copula by {spread(lines)} %"


@QUOTES.on("results/real_data.md")
def ahead_of_independence() -> str:
    lines = pd.concat([behind("Independent Kaplan-Meier"), behind("Independent Weibull")])
    lines = lines.loc[["colon", "lymph node", "nafld"]]
    errors = {5: "five", 6: "six"}[math.floor((lines["behind %"] / lines["error %"]).min())]
    return f"of independent Kaplan-Meier and Weibull models by {errors} standard errors or more"


@QUOTES.on("results/public_data.md")
def sample_of_flchain() -> str:
    subjects = int(re.search(r"flchain: \{'subjects': (\d+)", output("public_data"))[1])
    return f"flchain is a random sample of {subjects:,} of its 7,874 subjects"


# ---- the default stack --------------------------------------------------------------------------------


@QUOTES.on("results/neutral_benchmark.md")
def ranks_on_the_same_folds() -> str:
    rank = table("neutral_benchmark/same_folds").set_index("learner")["mean rank"]
    oblique, conditional = rank["oblique random forest (aorsf)"], rank["conditional inference forest"]
    assert list(rank.sort_values().iloc[:3]) == [rank["BestForecast"], oblique, conditional]
    return (
        f"the mean rank {rank['BestForecast']:.1f} [among {len(rank)}](#ranks), ahead of the oblique "
        f"forest ({oblique:.1f}) and the conditional inference forest ({conditional:.1f})."
    )


@QUOTES.on("../README.md")
def ranks_in_the_readme() -> str:
    rank = table("neutral_benchmark/same_folds").set_index("learner")["mean rank"].sort_values()
    assert list(rank.index[:2]) == ["BestForecast", "oblique random forest (aorsf)"]
    return (
        f"its mean rank among {len(rank)} learners is {rank.iloc[0]:.1f}, that of the next, a tuned forest, "
        f"{rank.iloc[1]:.1f}."
    )


@QUOTES.on("results/neutral_benchmark.md")
def first_and_last_places() -> str:
    ranks = table("neutral_benchmark/ranks").query("learner == 'BestForecast'").set_index("task")["rank"]
    first = list(ranks.index[ranks == 1])
    words = {6: "sixth", 7: "seventh", 8: "eighth"}
    worst = [f"{words[rank]} on {task}" for task, rank in ranks.items() if rank > 5]
    return f"It is first on {', '.join(first[:-1])} and {first[-1]}, {' and '.join(worst)}."


@QUOTES.on("results/neutral_benchmark.md")
def level_with_the_oblique_forest() -> str:
    lines = table("neutral_benchmark/differences").query("learner == 'BestForecast' and versus == 'ORSF'")
    assert (len(lines), set(lines["folds"])) == (11, {3})
    assert ((lines["low"] < 0) & (lines["high"] > 0)).all()
    return "that of the difference from the oblique forest includes zero on every data set"


@QUOTES.on("results/survset.md")
def ahead_of_survival_pfn() -> str:
    lines = table("survset/summary").query("versus == 'published'").set_index("metric")
    ibs, ci = lines.loc["IBS"], lines.loc["CI"]
    return (
        f"The stack has the lower integrated Brier score on {ibs['ahead']} of {ibs['tables']} tables (mean "
        f"{ibs['mean']:.3f}, SurvivalPFN {ibs['versus mean']:.3f}) and the higher C-index on {ci['ahead']} "
        f"({ci['mean']:.3f}, SurvivalPFN {ci['versus mean']:.3f})."
    )


@QUOTES.on("results/survset.md")
def ahead_of_ridge_cox() -> str:
    ahead = table("survset/summary").query("versus == 'ridge Cox'").set_index("metric")["ahead"]
    return (
        f"Ridge Cox regression is behind it on {ahead['proper']} tables by the proper score, on "
        f"{ahead['IBS']} by the integrated Brier score and on {ahead['CI']} by the C-index."
    )


@QUOTES.on("results/survset.md")
def splits_of_the_stack() -> str:
    splits = table("survset/by_table")["splits"]
    assert splits.nunique() == 1
    return f"the first {splits[0]} splits of all {len(splits)} tables"


@QUOTES.on("results/stack_scenarios.md")
def best_or_level() -> str:
    counts = table("stack_scenarios/counts").query("scenarios == 'all'").set_index("n")
    return (
        f"With 300 subjects the stack has the smallest excess in {counts.loc[300, 'best']} of "
        f"{counts.loc[300, 'of']} scenarios, and is within one standard error of the smallest in "
        f"{counts.loc[300, 'best or level']}."
    )


@QUOTES.on("results/stack_scenarios.md")
def best_with_a_thousand() -> str:
    counts = table("stack_scenarios/counts").query("scenarios == 'all' and n == 1000").iloc[0]
    return (
        f"With 1,000 subjects the stack has the smallest excess in {counts['best']} of {counts['of']}, and "
        f"is within one standard error in {counts['best or level']}."
    )


@QUOTES.on("results/stack_scenarios.md")
def scenarios_of_no_choice() -> str:
    counts = table("stack_scenarios/counts").query("scenarios != 'all' and n == 300").iloc[0]
    return f"in {counts['best']} of the {counts['of']} on which no choice was made"


def _covered(target: str, hard: bool | None = None) -> str:
    """Per cent of cases that intervals cover, with a sine and a sign of 30 covariates, without, or all."""
    covered = table("stack_scenarios/intervals")
    chosen = covered if hard is None else covered[covered["scenario"].str.startswith("sine") == hard]
    return spread(100 * chosen[target], ".0f")


@QUOTES.on("results/stack_scenarios.md")
def what_intervals_cover() -> str:
    return (
        f"They cover the mean forecast in {_covered('mean forecast')} % of the cases and the mean true "
        f"risk of subjects with such a forecast in {_covered('such forecasts')} %. They cover the true risk "
        f"of the subject itself in {_covered('own risk', False)} % in five scenarios, and in "
        f"{_covered('own risk', True)} % with a sine and a sign of 30 covariates, which all models of the "
        "stack miss."
    )


@QUOTES.on("results/stack_scenarios.md")
def data_sets_of_intervals() -> str:
    count = table("stack_scenarios/intervals")["data sets"]
    assert count.nunique() == 1
    return f"censcore reproduce stack-intervals --seeds {count[0]} "


@QUOTES.on("censored_engression.md")
def intervals_of_the_stack() -> str:
    return (
        f"In six simulated scenarios it covers that in {_covered('mean forecast')} % of the cases, and the "
        f"true risk of the subject itself in {_covered('own risk', False)} % in five of them."
    )


@QUOTES.on("censored_engression.md")
def what_no_interval_knows() -> str:
    return (
        "In the sixth scenario, a sine and a sign of 30 covariates, it covers the true risk of the subject "
        f"in {_covered('own risk', True)} %."
    )


@QUOTES.on("results/stack_scenarios.md")
def three_event_times() -> str:
    today = output("engression_excess").partition("Older code")[0]
    excess = re.findall(r"^ +3 +10[0-2] +([\d.]+)", today, re.M)
    alone = re.search(r"^ +3 +100 +\S+ +\S+ +\S+ +([\d.]+)", today, re.M)[1]
    return (
        f"the excess of the stack is {excess[0]}, {excess[1]} and {excess[2]} % (seeds 100 to 102), that of "
        f"one network of censored engression {alone} % (seed 100)"
    )


@QUOTES.on("results/stack_scenarios.md")
def five_and_ten_event_times() -> str:
    today = output("engression_excess").partition("Older code")[0]
    five, ten = (re.findall(rf"^ +{k} +10[0-2] +([\d.]+)", today, re.M) for k in (5, 10))
    return (
        f"With five event times the excess is {five[0]}, {five[1]} and {five[2]} %, with ten {ten[0]}, "
        f"{ten[1]} and {ten[2]} %."
    )


@pytest.mark.parametrize(("page", "quote"), QUOTES, ids=lambda value: getattr(value, "__name__", value))
def test_the_sentence_is_on_the_page(page, quote):
    assert stands_on(page, quote), quote()


def test_a_stale_number_is_caught():
    assert not stands_on("icu_study.md", lambda: "An epoch at the paper's size takes 3.1 s on one H200.")
