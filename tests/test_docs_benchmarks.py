"""Numbers of the benchmarks that the pages quote, and tables typed into pages, are those of the outputs."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from tests.quotes import DOCS, Quotes, cells, output, spread, stands_on, table, words

QUOTES = Quotes()


def columns_of(name: str, line: str) -> list[list[float]]:
    """Percentages of the lines that match, by column."""
    found = re.findall(rf"^ *{line}.*$", output(name), re.MULTILINE)
    rows = [[float(value) for value in re.findall(r"([\d.]+)%", text)] for text in found]
    return [list(column) for column in zip(*rows, strict=True)]


@QUOTES.on("censored_engression.md")
def engression_beside_simple_models() -> str:
    lines = re.findall(
        r"^(\w.*?) +(\d+) +[01]((?: +[\d.]+){5}) ", output("engression_baselines"), re.MULTILINE
    )
    fits = [(design, int(n), [float(v) for v in values.split()]) for design, n, values in lines]
    gaps = [round(values[4] - min(values[:4]), 2) for *_, values in fits]
    sparse = [values for design, n, values in fits if (design, n) == ("30 covariates", 2000)]
    return (
        f"In {len(fits)} fits (seven designs, 300 to 10,000 subjects, other data than those of the choice) "
        f"the defaults were ahead of the best of four simple models {sum(gap < 0 for gap in gaps)} times, "
        f"and behind it by at most {max(gaps):.2f} % of the score. With 30 covariates and 2,000 subjects the "
        f"excess over the truth is {sparse[0][4]:.1f} and {sparse[1][4]:.1f} %, that of the best simple "
        f"model {min(min(values[:4]) for values in sparse):.0f} %."
    )


def validation_coverage() -> tuple[list[float], list[float], list[float]]:
    """Coverage with few events, with more, and how often the joint test rejects the true model."""
    lines = re.findall(r"^(\D[^:]*?(?:0\.5(?:, [\w ]+)?)?)((?: +\d+\.\d){4,6})\s*$",
                       output("validation_coverage"), re.MULTILINE)  # fmt: skip
    values = {name.strip(): [float(v) for v in numbers.split()] for name, numbers in lines}
    rejected = values.pop("rejected by the joint test")
    del values["rejected by ICI"], values["ICI"]
    assert len(values) == 18
    few = [row[j] for row in values.values() for j in (0, 3)]
    return few, [row[j] for row in values.values() for j in (1, 2, 4, 5)], rejected


@QUOTES.on("validation.md")
def intervals_of_a_validation() -> str:
    few, more, rejected = validation_coverage()
    return (
        f"95 % intervals of all two-sided measures cover {min(more)} to {max(more)} % in four simulated "
        f"designs of 105 to 288 events by the time, and {min(few)} to {max(few)} % in two of 38 and 58 "
        "events. The joint test "
        f"rejects the true model in {min(rejected)} to {max(rejected)} %"
    )


@QUOTES.on("calibration.md")
def intervals_of_calibration_curves() -> str:
    bins, curve, *_ = columns_of("calibration_curve", r"\d+ +1\.0")
    wrong = columns_of("calibration_curve", r"\d+ +0\.6")[1][0]
    return (
        f"95 % intervals of bins cover {spread(bins)} %, those of the curve of a calibrated forecast "
        f"{spread(curve)} % (`python -m benchmarks calibration_curve`). Where the true curve bends, the "
        "smoothed one is biased a little towards a straight line: for a forecast with 60 % of the true "
        f"log-hazard ratio it covers {wrong:.1f} %."
    )


@QUOTES.on("calibration.md")
def rejections_at_a_time() -> str:
    rejected = columns_of("calibration_curve", r"\d+ +1\.0")[5]
    return f"it rejects the true forecast in {spread(rejected)} % at the 5 % level"


@QUOTES.on("calibration.md")
def intervals_of_net_benefit() -> str:
    benefit, gain = columns_of("calibration_curve", r"\d+ +[01]\.\d")[3:5]
    return (
        f"95 % intervals of the net benefit cover {spread(benefit)} % at thresholds of 0.2, 0.4 and 0.6, "
        f"those of the gain {spread(gain)} %."
    )


@QUOTES.on("calibration.md")
def d_calibration() -> str:
    true = [x for column in columns_of("calibration", r"\d+ %, (?:continuous|discrete)")[:3] for x in column]
    third = columns_of("calibration", "33 %, continuous")[4][0]
    most = columns_of("calibration", "75 %, continuous")[4][0]
    return (
        f"a nominal 5 % test rejects the true forecast in {spread(true)} %. A hazard that is a "
        f"quarter too large is rejected in {third:.0f} % of data sets of 500 subjects with a third censored, "
        f"and in {most:.0f} % with three quarters censored"
    )


@QUOTES.on("results/multivariate.md")
def precision_of_the_energy_score() -> str:
    default, random = (
        float(re.search(rf"^{name}.* (0\.\d+)$", output("energy"), re.MULTILINE)[1])
        for name in ("default", "512 random")
    )
    return f"(root mean square error {default:.3f} instead of {random:.3f} of the score of a subject"


def streams() -> list[dict]:
    """The runs of the benchmark of streams, the largest last."""
    found = [
        json.loads(text) for text in re.findall(r"^\{$.*?^\}$", output("stream"), re.MULTILINE | re.DOTALL)
    ]
    return sorted(found, key=lambda run: run["rows"])


@QUOTES.on("at_scale.md")
def hundred_million() -> str:
    run = streams()[-1]
    return (
        f"| subjects | {run['rows']:,} |\n"
        f"| CPU time per subject | {run['CPU microseconds per row']:.1f} µs |\n"
        f"| subjects per second of CPU time | {run['rows per CPU second']:,} |\n"
        f"| time on the clock, with {run['cores busy on average']:.2f} cores' worth of CPU time | "
        f"{run['wall seconds'] / 60:.0f} minutes |\n"
        f"| peak memory of all processes | {run['peak memory of all processes, GB']:.2f} GB |\n"
        f"| peak memory of the largest process | {run['peak memory of the largest process, GB']:.2f} GB |"
    )


@QUOTES.on("at_scale.md")
def billion() -> str:
    run = streams()[-1]
    speed, hours = 2 * run["rows per CPU second"], run["hours for 1e9 rows on two free cores"]
    return (
        f"two free cores score {speed / 1000:.0f},000 subjects per second, a hundred million in "
        f"{1e8 / speed / 60:.0f} minutes and 10⁹ in {hours:.1f} hours; 64 cores of a cluster score 10⁹ in "
        f"{hours * 2 / 64 * 60:.0f} minutes"
    )


@QUOTES.on("at_scale.md")
def one_process() -> str:
    run = streams()[0]
    return (
        f"In one process {run['rows'] / 1e6:.0f} million subjects take "
        f"{run['CPU microseconds per row']:.1f} µs each and {run['peak memory of all processes, GB']:.2f} GB"
    )


def similar_models() -> list[tuple[str, list[str], list[float]]]:
    """Of each difference: name, coverage and standard error by repeats, and the shares of rejections."""
    found = []
    for section in re.split(r"\n\n(?=[^\n]+ subjects, 5 folds)", output("similar_models"))[1:]:
        shown = []
        for repeats in ("1 repeat", "3 repeats"):
            lines = re.findall(rf", {repeats} +([\d.]+) % +([\d.]+)$", section, re.MULTILINE)
            covered, ratio = (list(map(float, column)) for column in zip(*lines, strict=True))
            shown.append(f"{spread(covered)} ({spread(ratio, '.2f')})")
        rejected = [float(x) for x in re.findall(r"([\d.]+) % by", section)]
        found.append((section.split(", 250 subjects")[0].strip(), shown, rejected))
    return found


def test_the_coverage_of_similar_models_is_that_of_the_benchmark():
    rows = [row for row in cells("cross_validation.md") if len(row) == 3]
    for name, shown, _ in similar_models():
        assert [name, *shown] in rows


@QUOTES.on("cross_validation.md")
def rejections_of_calibration_in_folds() -> str:
    rejected = [share for *_, shares in similar_models() for share in shares]
    return f"reject a model of the right kind in {spread(rejected)} % of data sets at a nominal 5 %"


@pytest.mark.parametrize(("page", "quote"), QUOTES, ids=lambda value: getattr(value, "__name__", value))
def test_the_sentence_is_on_the_page(page, quote):
    assert stands_on(page, quote), quote()


def test_the_coverage_of_cross_validation_is_that_of_the_benchmark():
    sections = re.split(r"\n\n(?=\d+ subjects)", output("cross_validation"))[1:]
    rows = [row for row in cells("cross_validation.md") if len(row) == 4 and " to " in row[1]]
    found = []
    for section in sections:
        lines = [line for line in section.splitlines() if "Cox" in line]
        numbers = [[float(x) for x in re.findall(r"([\d.]+) %", line)] for line in lines]
        found.append([spread(list(column)) for column in zip(*numbers, strict=True)])
    assert len(rows) == len(found) == 4
    assert sorted(row[1:] for row in rows) == sorted(found)


def test_the_numbers_of_mgus2_are_those_of_the_benchmark():
    line = re.compile(r"^  (progression|death|all causes) +(\S.*?) +([\d.]+) +(\S+) \((\S+)\)$", re.MULTILINE)
    found = {(model, outcome): rest for outcome, model, *rest in line.findall(output("competing_risks"))}
    rows = {row[0]: row[1:] for row in cells("competing_risks.md") if row[0] in {key[0] for key in found}}
    assert len(rows) == 3
    for model, shown in rows.items():
        for outcome, cell in zip(("progression", "death", "all causes"), shown, strict=True):
            mean, difference, error = found[model, outcome]
            wanted = mean if model == "Aalen-Johansen" else f"{difference} ({error})"
            assert cell.replace("−", "-") == wanted, (model, outcome)


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
