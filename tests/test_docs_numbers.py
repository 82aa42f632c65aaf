"""Numbers that the pages quote are those of the committed tables.

Each check prints a sentence from a table; the sentence has to stand on the page. Whoever computes a table
again learns here which sentences are stale.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS, BENCHMARKS = ROOT / "docs", ROOT / "benchmarks" / "results"
BLOCKS = ("mixture_k2", "mixture_k3", "mixture_k5", "mixture_k10", "lognormal_k2")

Check = Callable[[], str]
CHECKS: list[tuple[str, Check]] = []


def on(page: str) -> Callable[[Check], Check]:
    """Register a function that prints a sentence of the page."""

    def register(check: Check) -> Check:
        CHECKS.append((page, check))
        return check

    return register


@cache
def table(name: str) -> pd.DataFrame:
    """A committed table of the results."""
    return pd.read_csv(DOCS / "results" / f"{name}.csv")


@cache
def output(name: str) -> str:
    """The committed output of a benchmark."""
    return (BENCHMARKS / f"{name}.txt").read_text(encoding="utf-8")


def words(text: str) -> str:
    """The text with single blanks and without emphasis."""
    return " ".join(text.replace("**", "").split())


def spread(values: pd.Series, form: str = ".1f") -> str:
    """Smallest and largest value."""
    return f"{values.min():{form}} to {values.max():{form}}"


# ---- the ICU study ------------------------------------------------------------------------------------


@on("icu_study.md")
def epoch_on_a_gpu() -> str:
    seconds = float(re.search(r"grouped rows, compiled: ([\d.]+) s", output("engression_gpu"))[1])
    return f"An epoch at the paper's size takes {seconds:.1f} s on one H200."


@on("icu_study.md")
def build() -> str:
    found = re.search(r"^ +20,000 +\S+ +([\d,]+) +\S+ +(\S+) +\S+ +(\d+)$", output("aki_build_20000"), re.M)
    rows, seconds, memory = int(found[1].replace(",", "")), float(found[2]), found[3]
    return (
        f"{rows / 1e6:.1f} million prediction rows) take {seconds:.0f} s of one processor and at most "
        f"{memory} MiB"
    )


@on("icu_study.md")
def memory_of_a_fit() -> str:
    features, mapped = re.search(r"^ +4,831,810 +(\d+) +(\d+)", output("training_memory"), re.M).groups()
    return f"takes {mapped} MiB beyond the libraries themselves, less than the {features} MiB of its features"


@on("icu_study.md")
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


@on("icu_study.md")
def better_than_naive() -> str:
    return f"on every score, by more than {least_errors('Naive')} standard errors of the paired difference"


@on("icu_study.md")
def better_than_weibull() -> str:
    least = min(least_errors("Indep. Weibull"), least_errors("Clayton Weibull"))
    return f"better than the log-linear Weibull models on every score, by more than {least}."


def least_errors(method: str) -> int:
    """Standard errors, rounded down, by which censored engression leads on every score at least."""
    line = table("aki/differences").set_index("method").loc[method]
    scores = [name for name in line.index if not name.endswith("_error")]
    return math.floor(min(line[name] / line[f"{name}_error"] for name in scores))


@on("icu_study.md")
def behind_flexible_likelihoods() -> str:
    lines = table("aki/differences").set_index("method")
    lines = lines.loc[["Joint grid", "Cond. indep. Weibull", "Cond. Clayton Weibull"]]
    ours = table("aki/energy").set_index("method").loc["Censored", "joint"]
    return (
        f"by {spread(-100 * lines.joint / ours)} %, which is {spread(-lines.joint / lines.joint_error)} "
        "standard errors"
    )


@on("icu_study.md")
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


@on("results/forecast_evaluation.md")
def ranks() -> str:
    found = table("forecast_evaluation/oracle_ranks")
    sentence = found["rule"].str.endswith("oracle")
    assert (found["printed"][sentence] == 1).all()
    return (
        f"{found['reproduced'].sum()} of the {len(found)} ranks that the paper reports are the rank of most "
        f"draws. {(~sentence).sum()} of the {len(found)} stand in its table; the other {sentence.sum()}, "
        "of the five rules with oracle weights in four regimes, in one sentence: all are first."
    )


@on("results/forecast_evaluation.md")
def which_ranks_differ() -> str:
    found = table("forecast_evaluation/oracle_ranks")
    missed = found[~found["reproduced"]]
    assert set(missed["rule"]) == {"NLL, Yanagisawa plug-in"}
    assert list(missed["regime"]) == ["B", "D"]
    first = 100 * missed.set_index("regime").loc["B", "rank 1"]
    return f"In regime B it ranks the truth first in {first:.0f} % of the draws"


@on("results/forecast_evaluation.md")
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


@on("results/forecast_evaluation.md")
def printed_means() -> str:
    most = table("forecast_evaluation/raw_scores")["z"].abs().max()
    return f"Every printed mean score of the truth lies within {most:.2f} standard deviations of one draw"


@on("results/forecast_evaluation.md")
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


@on("results/multivariate.md")
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


@on("results/multivariate.md")
def clayton() -> str:
    lines = blocks()
    lines = lines[lines["method"].str.contains("Clayton") & lines["k"].isin([5, 10])]
    return (
        f"The Clayton models for k = 5 and 10 are worse than printed "
        f"({spread(lines['censored excess %'], '.0f')} "
        f"% instead of {spread(lines['printed excess %'], '.0f')} %)."
    )


@on("results/multivariate.md")
def margins_first() -> str:
    found = [
        table(f"multivariate/extension_{name}").set_index("method").loc["Clayton-Weibull, margins first"]
        for name in ("clayton", "clayton-k10")
    ]
    five, ten = (line["censored excess %"] for line in found)
    return f"fitted margins first it gives {five:.1f} and {ten:.1f} %"


@on("results/multivariate.md")
def log_scores_of_a_wrong_copula() -> str:
    lines = table("multivariate/extension_clayton-k10").set_index("method")["log_score"]
    joint, first = lines["Clayton-Weibull"], lines["Clayton-Weibull, margins first"]
    return f"(at k = 10 {joint:.2f} against {first:.2f})"


@on("results/multivariate.md")
def devices() -> str:
    return f"{(table('multivariate/cells')['device'] == 'cpu').sum()} on a CPU (torch"


@on("results/multivariate.md")
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


@on("results/multivariate.md")
def intervals_with_zero() -> str:
    pairs = table("multivariate/paired")
    count = ((pairs["low"] < 0) & (pairs["high"] > 0)).sum()
    more = table("multivariate/paired_administrative")
    assert (more["high"] < 0).all()
    number = ("None", "One", "Two", "Three")[count]
    return f"{number} of the five-repetition intervals include zero. With fifteen repetitions they do not"


@on("results/multivariate.md")
def large_training_sets() -> str:
    lines = table("multivariate/extension_training-size")
    ours = lines[lines["method"] == "Censored engression"]["censored excess %"].min()
    return f"censored engression comes down to {ours:.1f} %."


@on("gallery/naive_against_censored.md")
def cost_of_naive_training() -> str:
    lines = blocks()
    naive = lines[lines["method"].str.startswith("Naive") & (lines["scenario"] == "mixture")]
    leaving = naive[naive["censoring"] != "administrative"]["censored excess %"]
    assert 19 < leaving.min() < leaving.max() < 26
    return "If patients leave at different times it costs a fifth to a quarter of the score"


@on("censored_engression.md")
def recovered_dependence() -> str:
    line = table("recovery").set_index("quantity").loc["mean tau, by 4"]
    return f"which is {line['censored']:.3f} on average and {line['truth']:.3f} in truth"


# ---- real data ----------------------------------------------------------------------------------------


def behind(method: str) -> pd.DataFrame:
    lines = table("real_data/real-data")
    return lines[lines["method"] == method].set_index("data")


@on("results/real_data.md")
def behind_clayton() -> str:
    lines = behind("Clayton-Weibull")
    line = lines[lines.index == "rhDNase"].iloc[0]
    return f"Behind a Clayton copula on rhDNase, by {-line['behind %']:.1f} ± {line['error %']:.1f} %"


@on("results/real_data.md")
def ahead_of_clayton() -> str:
    lines = behind("Clayton-Weibull").loc[["colon", "lymph node", "nafld"], "behind %"]
    return f"and by {spread(lines)} % of a Clayton copula"


@on("results/real_data.md")
def ahead_of_independence() -> str:
    lines = pd.concat([behind("Independent Kaplan-Meier"), behind("Independent Weibull")])
    lines = lines.loc[["colon", "lymph node", "nafld"]]
    assert math.floor((lines["behind %"] / lines["error %"]).min()) == 4
    return (
        "by four standard errors or more in the comparison with independent Kaplan-Meier and Weibull models"
    )


@on("results/public_data.md")
def sample_of_flchain() -> str:
    subjects = int(re.search(r"flchain: \{'subjects': (\d+)", output("public_data"))[1])
    return f"flchain is a random sample of {subjects:,} of its 7,874 subjects"


# ---- tables that are typed into a page ----------------------------------------------------------------


def cells(page: str) -> list[list[str]]:
    """Cells of all tables of a page, without emphasis."""
    lines = (DOCS / page).read_text(encoding="utf-8").splitlines()
    rows = [line.strip("|").replace("*", "").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows]


@pytest.mark.parametrize(("page", "check"), CHECKS, ids=lambda value: getattr(value, "__name__", value))
def test_the_sentence_is_on_the_page(page, check):
    assert words(check()) in words((DOCS / page).read_text(encoding="utf-8"))


def test_a_stale_number_is_caught():
    with pytest.raises(AssertionError):
        test_the_sentence_is_on_the_page("icu_study.md", lambda: "An epoch at the paper's size takes 3.1 s")


def test_the_table_of_ties_is_that_of_the_benchmark():
    whole = output("ties").split("whole-number times")[1]
    found = {
        name: [float(value) for value in numbers.split()]
        for name, numbers in re.findall(
            r"^(no censoring|[a-z-]+) +((?:[-+]?[\d.]+ *)+)$", whole, re.MULTILINE
        )
    }
    shown = {
        row[0].split(" 0.")[0].replace("without", "no"): [float(c) for c in row[1:4]]
        for row in cells("gallery/ties.md")
        if re.fullmatch(r"0\.\d{4}", row[1])
    }
    assert len(shown) == 6
    assert shown == {name: found[name][:3] for name in shown}
    assert len({tuple(found[name]) for name in shown if name != "no censoring"}) == 4  # as the title says


def test_the_bias_of_conditional_censoring_is_that_of_the_benchmark():
    pattern = r"^(pooled Kaplan-Meier|Cox given x) +(\S+) +\S+ +(\S+) +\S+ +(\S+)"
    found = re.findall(pattern, output("conditional_censoring"), re.MULTILINE)
    rows = [row for row in cells("gallery/conditional_censoring.md") if row[1] in {line[0] for line in found}]
    assert len(rows) == len(found) == 6
    for row, line in zip(rows, found, strict=True):
        for shown, value in zip(row[2:5], line[1:], strict=True):
            number = float(shown.replace("−", "-").split(" %")[0])
            assert abs(number - float(value)) <= (0.05 if "." in shown else 0.51), row


def test_coverage_is_that_of_the_benchmark():
    rows = [row for row in cells("results/coverage.md") if len(row) == 5 and " to " in row[1]]
    sections = re.split(r"\n\n(?=\S.*\(\w+\)\n)", output("coverage"))[1:]
    assert len(rows) == len(sections)
    low, high = 100.0, 0.0
    for row, section in zip(rows, sections, strict=True):
        assert section.startswith(row[0].split(",")[0][:12]), (row[0], section[:60])
        for column in range(3):
            values = coverages(section, column)
            assert row[1 + column] == f"{min(values):.1f} to {max(values):.1f}", row
            low, high = min(low, *values), max(high, *values)
    text = words((DOCS / "results" / "coverage.md").read_text(encoding="utf-8"))
    assert f"lies between {low:.1f} and {high:.1f} %" in text


def coverages(section: str, column: int) -> list[float]:
    """Coverages of means, differences or skills by score, without those in parentheses."""
    values = []
    for line in section.split("\n\n")[0].splitlines()[2:]:
        found = line[30:].split()
        if len(found) > 3 and not found[column].startswith("(") and found[column] != "-":
            values.append(float(found[column].rstrip("!")))
    return values


#: Settings of the last table of the page, and what finds their line in the CSV: variant, more settings.
ABLATIONS = {
    "default: with residual layers": ("R res", ""),
    "without residual layers": ("R", ""),
    "without residual layers and without layer norm": ("R noln", ""),
    "ReLU": ("R relu", ""),
    "softplus output": ("R softplus", ""),
    "no linear skip": ("R noskip", ""),
    "noise of 128": ("R noise128", ""),
    "16 samples per subject": ("R m16", ""),
    "batches of 128": ("R B128", ""),
    "150 epochs": ("R ep150", ""),
    "dropout 0.1": ("R drop.1", ""),
    "weight decay 0.1": ("R", "wd=0.1"),
    "exponent beta 0.5": ("R beta.5", ""),
    "one draw of C per subject": ("R onec", ""),
    "one lag of pairs": ("R lags1", ""),
    "four generators pooled": ("R J4", ""),
    "five generators, each validated on a fold of its own": ("R J5folds", ""),
    "refitted on training and validation data together": ("R refit", ""),
    "one regime instead of two, k = 2": ("R uni k2", ""),
    "64,000 training subjects, 15 epochs (3 training sets)": ("64k R ep15", ""),
    "trained on the latent times": ("latent k3", ""),
}


def test_the_ablations_are_those_of_the_csv():
    page = cells("results/engression_ablations.md")
    start = next(i for i, row in enumerate(page) if row[0].startswith("default"))
    shown = {row[0]: row[1] for row in page[start:] if "±" in row[1]}
    best = shown.pop("best validation loss restored instead")
    lines = table("engression_ablations")
    lines = lines[(lines["round"] == "C") & lines["settings"].str.contains("lr=0.004")]

    def line(variant: str, more: str) -> pd.Series:
        found = lines[(lines["variant"] == variant) & (lines["settings"].str.endswith(more or "lr=0.004"))]
        assert len(found) == 1, variant
        return found.iloc[0]

    assert set(shown) == set(ABLATIONS)
    for name, key in ABLATIONS.items():
        agree(shown[name], *line(*key)[["latest_within_se", "latest_within_se_se"]])
    agree(best, *line("R", "")[["best", "best_se"]])


def agree(shown: str, mean: float, error: float) -> None:
    """Two rounded numbers are those of the table; either way of rounding a half is right."""
    for number, value in zip(shown.split("±"), (mean, error), strict=True):
        assert abs(float(number) - value) < 0.00501, (shown, mean, error)


def test_no_p_value_is_printed_as_zero():
    for page in sorted(DOCS.rglob("*.md")):
        if {"_build", "generated"} & set(page.parts):
            continue
        for header, *rows in tables_with_p_values(page.read_text(encoding="utf-8")):
            zero = [row for row in rows if re.search(r" (0|0\.0+)$", row)]
            assert not zero, f"{page.name}: {header}: {zero}"


def tables_with_p_values(text: str) -> list[list[str]]:
    """Printed frames whose last column is a p-value: the header and its lines."""
    return [
        found.rstrip("\n").splitlines()
        for found in re.findall(r"^ .* p_value\n(?:\d.*\n)+", text, re.MULTILINE)
    ]
