"""Numbers of the benchmarks, from what they printed."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.page_numbers.pages import match, on, output, spread, table


def columns_of(name: str, line: str) -> list[list[float]]:
    """Percentages of the lines that match, by column."""
    found = re.findall(rf"^ *{line}.*$", output(name), re.MULTILINE)
    rows = [[float(value) for value in re.findall(r"([\d.]+)%", text)] for text in found]
    return [list(column) for column in zip(*rows, strict=True)]


@on("censored_engression.md")
def engression_beside_simple_models() -> list[str]:
    lines = re.findall(
        r"^(\w.*?) +(\d+) +[01]((?: +[\d.]+){5}) ", output("engression_baselines"), re.MULTILINE
    )
    fits = [(design, int(n), [float(v) for v in values.split()]) for design, n, values in lines]
    gaps = [round(values[4] - min(values[:4]), 2) for *_, values in fits]
    sparse = [values for design, n, values in fits if (design, n) == ("30 covariates", 2000)]
    return [
        f"{len(fits)}",
        f"{sum(gap < 0 for gap in gaps)}",
        f"{max(gaps):.2f}",
        f"{sparse[0][4]:.1f}",
        f"{sparse[1][4]:.1f}",
        f"{min(min(values[:4]) for values in sparse):.0f}",
    ]


@on("calibration.md")
def intervals_of_calibration_curves() -> list[str]:
    bins, curve, *_ = columns_of("calibration_curve", r"\d+ +1\.0")
    wrong = columns_of("calibration_curve", r"\d+ +0\.6")[1][0]
    return [spread(bins), spread(curve), f"{wrong:.1f}"]


@on("calibration.md")
def rejections_at_a_time() -> list[str]:
    rejected = columns_of("calibration_curve", r"\d+ +1\.0")[5]
    return [spread(rejected)]


@on("calibration.md")
def intervals_of_net_benefit() -> list[str]:
    benefit, gain = columns_of("calibration_curve", r"\d+ +[01]\.\d")[3:5]
    return [spread(benefit), spread(gain)]


@on("calibration.md")
def d_calibration() -> list[str]:
    true = [x for column in columns_of("calibration", r"\d+ %, (?:continuous|discrete)")[:3] for x in column]
    third = columns_of("calibration", "33 %, continuous")[4][0]
    most = columns_of("calibration", "75 %, continuous")[4][0]
    return [spread(true), f"{third:.0f}", f"{most:.0f}"]


@on("results/multivariate.md")
def precision_of_the_energy_score() -> list[str]:
    default, random = (
        float(match(rf"^{name}.* (0\.\d+)$", output("energy"))[1]) for name in ("default", "512 random")
    )
    return [f"{default:.3f}", f"{random:.3f}"]


def streams() -> list[dict[str, Any]]:
    """The runs of the benchmark of streams, the largest last."""
    found = [
        json.loads(text) for text in re.findall(r"^\{$.*?^\}$", output("stream"), re.MULTILINE | re.DOTALL)
    ]
    return sorted(found, key=lambda run: run["rows"])


@on("at_scale.md")
def hundred_million() -> list[str]:
    run = streams()[-1]
    return [
        f"{run['rows']:,}",
        f"{run['CPU microseconds per row']:.1f}",
        f"{run['rows per CPU second']:,}",
        f"{run['cores busy on average']:.2f}",
        f"{run['wall seconds'] / 60:.0f}",
        f"{run['peak memory of all processes, GB']:.2f}",
        f"{run['peak memory of the largest process, GB']:.2f}",
    ]


@on("at_scale.md")
def billion() -> list[str]:
    run = streams()[-1]
    speed, hours = 2 * run["rows per CPU second"], run["hours for 1e9 rows on two free cores"]
    return [
        f"{speed / 1000:.0f}",
        f"{1e8 / speed / 60:.0f}",
        f"{hours:.1f}",
        f"{hours * 2 / 64 * 60:.0f}",
    ]


@on("at_scale.md")
def one_process() -> list[str]:
    run = streams()[0]
    return [
        f"{run['rows'] / 1e6:.0f}",
        f"{run['CPU microseconds per row']:.1f}",
        f"{run['peak memory of all processes, GB']:.2f}",
    ]


def sections_of_similar_models() -> list[str]:
    """What was printed of each difference."""
    return re.split(r"\n\n(?=[^\n]+ subjects, 5 folds)", output("similar_models"))[1:]


@on("cross_validation.md")
def similar_models() -> list[str]:
    """Coverage and standard error of each difference, by repeats."""
    shown = []
    for section in sections_of_similar_models():
        for repeats in ("1 repeat", "3 repeats"):
            lines = re.findall(rf", {repeats} +([\d.]+) % +([\d.]+)$", section, re.MULTILINE)
            covered, ratio = (list(map(float, column)) for column in zip(*lines, strict=True))
            shown.append(f"{spread(covered)} ({spread(ratio, '.2f')})")
    return shown


@on("cross_validation.md")
def rejections_of_calibration_in_folds() -> list[str]:
    rejected = [float(x) for part in sections_of_similar_models() for x in re.findall(r"([\d.]+) % by", part)]
    return [spread(rejected)]


@on("cross_validation.md")
def coverage_of_cross_validation() -> list[str]:
    shown = []
    for section in re.split(r"\n\n(?=\d+ subjects)", output("cross_validation"))[1:]:
        lines = [line for line in section.splitlines() if "Cox" in line]
        numbers = [[float(x) for x in re.findall(r"([\d.]+) %", line)] for line in lines]
        shown += [spread(column) for column in zip(*numbers, strict=True)]
    return shown


@on("competing_risks.md")
def mgus2() -> list[str]:
    """Means of the first model, and differences from it of the others, by outcome."""
    line = re.compile(r"^  (progression|death|all causes) +(\S.*?) +([\d.]+) +(\S+) \((\S+)\)$", re.MULTILINE)
    found = {(model, outcome): rest for outcome, model, *rest in line.findall(output("competing_risks"))}
    outcomes = ("progression", "death", "all causes")
    first, *others = dict.fromkeys(model for model, _ in found)
    shown = [found[first, outcome][0] for outcome in outcomes]
    differences = [found[model, outcome][1:] for model in others for outcome in outcomes]
    return shown + [f"{with_minus(value)} ({error})" for value, error in differences]


@on("gallery/ties.md")
def ties() -> list[str]:
    """Scores at three times, without censoring and by each library."""
    whole = output("ties").split("whole-number times")[1]
    lines = re.findall(r"^(no censoring|[a-z-]+) +((?:[-+]?[\d.]+ *)+)$", whole, re.MULTILINE)
    found = {name: tuple(numbers.split()[:3]) for name, numbers in lines}
    libraries = ("censcore", "scikit-survival", "torchsurv", "hazardous", "pycox")
    assert len({found[name] for name in libraries}) == 4  # as the title says
    return [number for name in ("no censoring", *libraries) for number in found[name]]


@on("gallery/conditional_censoring.md")
def bias_under_conditional_censoring() -> list[str]:
    pattern = r"^(?:pooled Kaplan-Meier|Cox given x) +(\S+) +\S+ +(\S+) +\S+ +(\S+)"
    lines = re.findall(pattern, output("conditional_censoring"), re.MULTILINE)
    values = [float(value) for line in lines for value in line]
    return [with_minus(f"{value:+.0f}" if abs(value) >= 10 else f"{value:+.1f}") for value in values]


def with_minus(number: str) -> str:
    """A number with a minus sign in place of a hyphen."""
    return number.replace("-", "−")


@on("results/coverage.md")
def coverage() -> list[str]:
    """Coverages of means, differences and skills in each setting, and in all."""
    shown, every = [], list[float]()
    for section in re.split(r"\n\n(?=\S.*\(\w+\)\n)", output("coverage"))[1:]:
        for column in range(3):
            values = coverages(section, column)
            shown.append(spread(values))
            every += values
    return [*shown, f"{min(every):.1f} and {max(every):.1f}"]


def coverages(section: str, column: int) -> list[float]:
    """Coverages of means, differences or skills by score, without those in parentheses."""
    rows = [line[30:].split() for line in section.split("\n\n")[0].splitlines()[2:]]
    cells = [row[column] for row in rows if len(row) > 3]
    return [float(cell.rstrip("!")) for cell in cells if not cell.startswith("(") and cell != "-"]


#: Variants of the last table of the page, in its order, and how their settings in the CSV end.
ABLATIONS = [
    ("R res", ""), ("R", ""), ("R noln", ""), ("R", "best"), ("R relu", ""), ("R softplus", ""),
    ("R noskip", ""), ("R noise128", ""), ("R m16", ""), ("R B128", ""), ("R ep150", ""), ("R drop.1", ""),
    ("R", "wd=0.1"), ("R beta.5", ""), ("R onec", ""), ("R lags1", ""), ("R J4", ""), ("R J5folds", ""),
    ("R refit", ""), ("R uni k2", ""), ("64k R ep15", ""), ("latent k3", ""),
]  # fmt: skip


@on("results/engression_ablations.md")
def ablations() -> list[str]:
    lines = table("engression_ablations")
    lines = lines[(lines["round"] == "C") & lines["settings"].str.contains("lr=0.004")]
    shown = []
    for variant, more in ABLATIONS:
        end, name = ("lr=0.004", "best") if more == "best" else (more or "lr=0.004", "latest_within_se")
        (found,) = lines[(lines["variant"] == variant) & lines["settings"].str.endswith(end)].to_dict(
            "records"
        )
        shown.append(f"{found[name]:.2f} ± {found[f'{name}_se']:.2f}")
    return shown


def _regrets() -> dict[str, list[float]]:
    """Mean regrets of all ways to update a model, by the number of subjects, and over all cells."""
    by_size: dict[str, list[list[float]]] = {}
    line = re.compile(r"^(?:\w.*?n = (\d+)|mean of all cells) +((?: *-?[\d.]+){6})$", re.MULTILINE)
    for n, values in line.findall(output("update")):
        by_size.setdefault(n or "all", []).append([float(x) for x in values.split()])
    return {n: [sum(column) / len(rows) for column in zip(*rows, strict=True)] for n, rows in by_size.items()}


@on("updating.md")
def regrets_of_updates() -> list[str]:
    return [f"{value:.1f}" for values in _regrets().values() for value in values]


@on("updating.md")
def regrets_as_shares() -> list[str]:
    _, one, half, *_, plain = _regrets()["all"]
    return [f"{half / plain:.2f}", f"{one / plain:.2f}"]


@on("validation.md")
def intervals_of_a_validation() -> list[str]:
    lines = re.findall(
        r"^(\D[^:]*?(?:0\.5(?:, [\w ]+)?)?)((?: +\d+\.\d){4,6})\s*$",
        output("validation_coverage"),
        re.MULTILINE,
    )
    values = {name.strip(): [float(v) for v in numbers.split()] for name, numbers in lines}
    rejected = values.pop("rejected by the joint test")
    del values["rejected by ICI"], values["ICI"]
    few = [row[j] for row in values.values() for j in (0, 3)]
    more = [row[j] for row in values.values() for j in (1, 2, 4, 5)]
    return [spread(more), spread(few), spread(rejected)]
