"""Coverage of the 95 % intervals of ``compare`` at its defaults.

Every setting draws data sets, compares two forecasts with the default scores, horizon, times and levels, and
counts how often the intervals of ``frame()`` and ``differences()`` hold the expected values: mean losses,
paired difference and skill. Covariates (and random effects of clusters) take finitely many values, the
states, so that expected losses under the true distributions of T and C are integrals over time, found by
Gauss-Legendre quadrature at the horizon, times and levels that the data set led to. Where a comparison
declines to give an interval because of too few events, that is counted apart, and the interval that it would
have given is counted too: to decline is a selection, by which the intervals that are left cover more often.

``python -m benchmarks.bench_coverage --replications 100 --settings clusters ties`` runs a part of it.
Finished settings are kept in ``--store`` (a folder) and read from there when the command is repeated.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy.special import xlogy

import censcore as cs
from censcore.distributions import GivenSurvival, Univariate
from censcore.evaluation.inference.estimates import Estimate, skill_interval
from censcore.evaluation.lines import MINIMUM_EVENTS

REPLICATIONS = 1000
TARGET = (93.0, 97.0)
QUANTITIES = ("mean", "difference", "skill")
NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)


@dataclass(frozen=True)
class Draw:
    """Subjects of one sample; ``state`` is the number of each one's state."""

    state: np.ndarray
    X: np.ndarray
    y: cs.RightCensored
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None


@dataclass(frozen=True)
class Process:
    """A data-generating process with finitely many states.

    ``share`` are the states' shares in the population, ``x`` their covariates, ``T`` and ``C`` distributions
    with one entry per state. ``sampled`` are the shares in the sample where they differ: weights then make
    up for it. ``clusters`` of equal size share the state's second part. ``step`` rounds all times up to its
    multiples; ``end`` is the administrative end of follow-up. ``entry`` are the entry times of the states:
    ``T`` and ``C`` are then given survival to them, and ``share`` is that among subjects who are seen.
    """

    share: np.ndarray
    x: np.ndarray
    T: Univariate
    C: Univariate
    sampled: np.ndarray | None = None
    cluster_size: int = 1
    step: float = 0.0
    end: float = np.inf
    entry: np.ndarray | None = None

    def draw(self, n: int, rng: np.random.Generator) -> Draw:
        """A sample of n subjects."""
        state, groups = self._states(n, rng)
        seed = int(rng.integers(2**31))
        T = self.T.take(state).sample(1, seed=seed)[:, 0]
        C = self.C.take(state).sample(1, seed=seed + 1)[:, 0]
        if self.step:
            T, C = (np.ceil(time / self.step) * self.step for time in (T, C))
        C = np.minimum(C, self.end)
        weight = None if self.sampled is None else (self.share / self.sampled)[state]
        entry = None if self.entry is None else self.entry[state]
        y = cs.RightCensored(np.minimum(T, C), T <= C, entry=entry)
        return Draw(state, self.x[state][:, None], y, weight, groups)

    def _states(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
        shares = self.share if self.sampled is None else self.sampled
        if self.cluster_size == 1:
            return rng.choice(len(shares), size=n, p=shares), None
        groups = np.arange(n) // self.cluster_size
        effect = rng.integers(2, size=groups.max() + 1)[groups]
        return 2 * rng.integers(len(shares) // 2, size=n) + effect, groups

    def sf(self, distribution: Univariate, t: np.ndarray, states: np.ndarray) -> np.ndarray:
        """P(> t) of rounded times for each state, (states, times)."""
        at = np.floor(np.round(t / self.step, 9)) * self.step if self.step else t
        return distribution.take(states).sf(at[None, :])


def three_states(shape: float, effect: float, C: Univariate, **options: Any) -> Process:
    x = np.array([-1.0, 0.0, 1.0])
    options.setdefault("share", np.full(3, 1 / 3))
    return Process(x=x, T=cs.Weibull(shape, np.exp(effect * x)), C=C, **options)


def of_all(C: Callable[..., Univariate], *parameters: float) -> Univariate:
    """One distribution for all three states."""
    return C(*(np.full(3, value) for value in parameters))


def late_entry(shape: float, effect: float, rate: float, entry: np.ndarray) -> Process:
    """Each covariate with each entry time: who is seen has survived to the entry, and was followed to it."""
    x, a = (values.reshape(-1) for values in np.meshgrid([-1.0, 0.0, 1.0], entry, indexing="ij"))
    T, C = cs.Weibull(shape, np.exp(effect * x)), cs.Exponential(np.full(len(x), rate))
    seen = T.sf(a) * C.sf(a)
    return Process(seen / seen.sum(), x, T.given_survival(a), C.given_survival(a), entry=a)


def forecasts(x: np.ndarray) -> dict[str, Univariate]:
    """Two fixed forecasts of subjects with covariate x, neither of them the truth."""
    return {
        "sharp": cs.Weibull(1.4, np.exp(0.45 * x)),
        "blunt": cs.Weibull(np.full_like(x, 1.2), np.full_like(x, 1.1)),
    }


# ---- expected losses ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Population:
    """Expected losses in a population: shares of states, and a process; up to a horizon."""

    process: Process
    share: np.ndarray
    horizon: float

    def expected(
        self, F: Univariate, times: np.ndarray, levels: np.ndarray, density: bool
    ) -> dict[str, np.ndarray]:
        r"""Expected loss by score.

        With s the time, F the forecast, F_0 and G the truth, the Brier score is

        .. math:: G(s)\,[F_0(s)\{1-F(s)\}^2+\{1-F_0(s)\}F(s)^2],

        divided by G(s) on the ipcw scale; CRPS and integrated Brier score are its integrals, and the pinball
        score integrates :math:`G(s)[1\{s<q\}F_0(s)(1-\alpha)+1\{s\ge q\}\{1-F_0(s)\}\alpha]`.
        """
        h = self.horizon
        F = F if len(F) == len(self.states) else F.take(np.zeros(len(self.states), dtype=int))
        q = np.minimum(F.icdf(levels[None, :]), h)
        s, ds = self._nodes(F, q)
        brier, scaled = self._brier(F, s)
        at, at_scaled = self._brier(F, times)
        S0, G = self._sf(self.process.T, s), self._sf(self.process.C, s)
        found = {
            "crps": np.array([self._mean(brier) @ ds]),
            "integrated_brier_score:ipcw": np.array([self._mean(scaled) @ ds / h]),
            "brier_score": self._mean(at),
            "brier_score:ipcw": self._mean(at_scaled),
            "binomial_log_score": self._mean(self._binomial(F, times)),
            "pinball_score": np.array(
                [
                    self._mean(G * np.where(s < q[:, [k]], (1 - S0) * (1 - a), S0 * a)) @ ds
                    for k, a in enumerate(levels)
                ]
            ),
        }
        if density:
            found["log_score"] = np.array([self._log(F, s, ds)])
        return found

    @property
    def states(self) -> np.ndarray:
        """Numbers of the states that occur."""
        return np.nonzero(self.share > 0)[0]

    def _mean(self, values: np.ndarray) -> np.ndarray:
        return self.share[self.states] @ values

    def _sf(self, distribution: Univariate, t: np.ndarray) -> np.ndarray:
        return self.process.sf(distribution, t, self.states)

    def _nodes(self, F: Univariate, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        edges = [np.linspace(0, self.horizon, 60), q.reshape(-1)]
        if F.form == "steps":
            edges.append(F.steps()[0].reshape(-1))
        if self.process.step:
            edges.append(np.arange(0, self.horizon, self.process.step))
        if self.process.entry is not None:
            edges.append(self.process.entry)
        edge = np.unique(np.concatenate(edges))
        edge = edge[(edge >= 0) & (edge <= self.horizon)]
        width, middle = np.diff(edge) / 2, (edge[:-1] + edge[1:]) / 2
        return (middle[:, None] + width[:, None] * NODES).reshape(-1), (width[:, None] * WEIGHTS).reshape(-1)

    def _brier(self, F: Univariate, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S0, p = self._sf(self.process.T, t), F.cdf(t[None, :])
        scaled = (1 - S0) * (1 - p) ** 2 + S0 * p**2
        return scaled * self._sf(self.process.C, t), scaled

    def _binomial(self, F: Univariate, t: np.ndarray) -> np.ndarray:
        S0, p = self._sf(self.process.T, t), F.cdf(t[None, :])
        return -self._sf(self.process.C, t) * (xlogy(1 - S0, p) + xlogy(S0, 1 - p))

    def _log(self, F: Univariate, s: np.ndarray, ds: np.ndarray) -> float:
        h = np.array([self.horizon])
        T, C = (distribution.take(self.states) for distribution in (self.process.T, self.process.C))
        s, h = s[None, :], h[None, :]
        density = np.exp(T.logpdf(s))
        seen = density * C.sf(s) * np.where(density > 0, F.logpdf(s), 0.0)  # none before the entry
        left = T.sf(s) * np.exp(C.logpdf(s)) * F.logsf(s)
        end = T.sf(h) * C.sf_left(h) * F.logsf(h)
        return -float(self._mean(seen + left) @ ds + self._mean(end)[0])


# ---- settings -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Setting:
    """A process, the sizes of the scored and the training sample, and what is passed to ``compare``."""

    process: Process
    n: int
    n_train: int = 0
    censoring: Any = field(default_factory=lambda: cs.Censoring(cs.KaplanMeier()))
    overlap: bool = False
    by: bool = False
    title: str = ""


EXPONENTIAL = three_states(1.5, 0.5, of_all(cs.Exponential, 1.0))
HEAVY = three_states(1.5, 0.5, of_all(cs.Weibull, 1.0, 0.33))
UNIFORM = three_states(1.5, 0.5, of_all(cs.Uniform, 0.0, 3.0), end=2.2)
TIED = three_states(1.5, 0.5, of_all(cs.Exponential, 1.0), step=0.1)
COX = three_states(1.5, 0.5, cs.Exponential(np.exp(np.array([-0.5, 0.0, 0.5]))))
CLUSTERED = Process(
    np.full(6, 1 / 6),
    np.repeat([-1.0, 0.0, 1.0], 2),
    cs.Weibull(1.5, np.exp(0.5 * np.repeat([-1.0, 0.0, 1.0], 2) + np.tile([-0.4, 0.4], 3))),
    cs.Exponential(np.full(6, 0.7)),
    cluster_size=20,
)
WEIGHTED = Process(  # a covariate in the forecasts would need a censoring distribution that knows the stratum
    np.full(3, 1 / 3),
    np.zeros(3),
    cs.Weibull(1.5, np.ones(3)),
    cs.Exponential(np.array([0.4, 0.8, 1.6])),
    sampled=np.array([0.1, 0.3, 0.6]),
)
LATE = late_entry(1.5, 0.5, 0.7, entry=np.array([0.0, 0.2, 0.4, 0.7]))
SETTINGS = {
    "exponential": Setting(EXPONENTIAL, 500, 500, title="exponential C, 500 subjects, 500 for training"),
    "small": Setting(EXPONENTIAL, 150, 1000, title="150 subjects, 1,000 for training"),
    "little_training": Setting(EXPONENTIAL, 1000, 150, title="1,000 subjects, 150 for training"),
    "heavy_80": Setting(HEAVY, 80, 80, title="75 % censored, 80 subjects, 80 for training"),
    "heavy_150": Setting(HEAVY, 150, 150, title="75 % censored, 150 subjects, 150 for training"),
    "moderate_80": Setting(EXPONENTIAL, 80, 80, title="exponential C, 80 subjects, 80 for training"),
    "heavy_80_train": Setting(HEAVY, 80, 500, title="75 % censored, 80 subjects, 500 for training"),
    "heavy_150_train": Setting(HEAVY, 150, 80, title="75 % censored, 150 subjects, 80 for training"),
    "administrative": Setting(UNIFORM, 300, 300, title="uniform C and an administrative end, 300 and 300"),
    "ties": Setting(TIED, 300, 300, title="all times rounded up to tenths, 300 and 300"),
    "cox": Setting(COX, 300, 300, cs.Censoring(cs.CoxRegression()), title="C by Cox regression, 300 and 300"),
    "clusters": Setting(CLUSTERED, 160, 0, title="8 clusters of 20, C fitted to the same subjects"),
    "clusters_train": Setting(CLUSTERED, 160, 160, title="8 clusters of 20, 8 others for training"),
    "subgroup": Setting(
        three_states(1.5, 0.5, of_all(cs.Exponential, 1.0), share=np.array([0.4, 0.5, 0.1])),
        400, 400, by=True, title="a subgroup of about 40 of 400 subjects, 400 for training",
    ),
    "in_sample": Setting(EXPONENTIAL, 300, 0, title="300 subjects, C fitted to the same subjects"),
    "cross_fitted": Setting(
        EXPONENTIAL, 300, 0, cs.Censoring(cs.KaplanMeier(), cv=5), title="300 subjects, C cross-fitted, cv=5"
    ),
    "overlap": Setting(
        EXPONENTIAL, 200, 400, overlap=True, title="200 subjects that are half of the 400 for training"
    ),
    "entry": Setting(LATE, 400, 400, title="delayed entry, 400 subjects, 400 for training"),
    "weights": Setting(WEIGHTED, 400, 400, title="weights, C depends on the stratum, 400 and 400"),
}  # fmt: skip


def compared(setting: Setting, seed: int) -> tuple[cs.evaluation.Comparison, Draw]:
    """The comparison of one data set."""
    rng = np.random.default_rng([seed, 20])
    if setting.overlap:
        every = setting.process.draw(setting.n_train, rng)
        sample = Draw(every.state[: setting.n], every.X[: setting.n], every.y[: setting.n])
    else:
        sample = setting.process.draw(setting.n, rng)
        every = setting.process.draw(setting.n_train, rng) if setting.n_train else sample
    options: dict[str, Any] = {"discrimination": False}
    if setting.n_train:
        options["train"] = cs.Sample(every.X, every.y, every.weight, every.groups)
    else:
        options["reference"] = cs.Weibull(1.5, 1.2)
    if setting.by:
        options["by"] = {"x": (sample.X[:, 0] > 0).astype(int)}
    found = cs.compare(
        forecasts(sample.X[:, 0]), sample.y, setting.censoring, X=sample.X, sample_weight=sample.weight,
        groups=sample.groups, **options,
    )  # fmt: skip
    return found, sample


def targets(setting: Setting, found: cs.evaluation.Comparison) -> dict[str, dict[str, np.ndarray]]:
    """Expected losses by model and score, at the horizon, times and levels of the comparison."""
    process = setting.process
    share = np.array([0.0, 0.0, 1.0]) if setting.by else process.share
    of = Population(process, share, found.horizon)
    case = next(iter(found.cases.values()))
    distributions = forecasts(process.x[of.states])
    for m, c in found.cases.items():
        given = c.F.marginal(0)
        distributions.setdefault(m, given._distribution if isinstance(given, GivenSurvival) else given)
    if process.entry is not None:
        distributions = {m: F.given_survival(process.entry[of.states]) for m, F in distributions.items()}
    return {
        m: of.expected(F, case.times, case.levels, density=not process.step and F.form == "smooth")
        for m, F in distributions.items()
    }


def covers(setting: Setting, seed: int) -> dict[str, list[float]]:
    """By quantity and score: 1 where an interval holds the truth, 0 where not, NaN where none is given.

    The cells ``all ...`` hold the intervals that were declined as well.
    """
    found, _ = compared(setting, seed)
    truth = targets(setting, found)
    frame, pairs = found.frame(), found.differences("none")
    group = "1" if setting.by else "all"
    cells: dict[str, list[float]] = defaultdict(list)
    for score in found.scores:
        if score.name not in truth["sharp"]:
            continue
        for part in (frame, pairs):
            block = part[(part["score"] == score.name) & (part["group"] == group)]
            block = block.assign(
                column=block.groupby("model" if part is frame else ["model", "versus"]).cumcount()
            )
            for row in block.itertuples():
                for quantity, target, low, high in _intervals(row, truth, score.name, found.reference):
                    inside = np.nan if np.isnan(low + high) else float(low <= target <= high)
                    cells[f"{quantity}|{score.name}"].append(inside)
                    if np.isnan(inside) and row.events < MINIMUM_EVENTS:
                        low, high = _declined(found, quantity, row, score.name, int(group != "all"))
                        inside = np.nan if np.isnan(low + high) else float(low <= target <= high)
                    cells[f"all {quantity}|{score.name}"].append(inside)
    return cells


def _intervals(
    row: Any, truth: Any, score: str, reference: str | None
) -> list[tuple[str, float, float, float]]:
    mean = {m: values[score][row.column] for m, values in truth.items() if score in values}
    if hasattr(row, "versus"):
        if {row.model, row.versus} != {"sharp", "blunt"}:
            return []
        return [("difference", mean[row.model] - mean[row.versus], row.low, row.high)]
    if row.model not in ("sharp", "blunt"):
        return []
    found = [("mean", mean[row.model], row.low, row.high)]
    if reference in mean and score != "log_score":
        found.append(("skill", 1 - mean[row.model] / mean[reference], row.skill_low, row.skill_high))
    return found


def _declined(
    found: cs.evaluation.Comparison, quantity: str, row: Any, score: str, subset: int
) -> tuple[float, float]:
    """The interval that was not given, for want of events."""
    subset *= len(found.subsets) - 1  # the subgroup of the study is the last one
    mean = _column(found.estimate(row.model, score, subset), row.column)
    if quantity == "skill":
        assert found.reference is not None
        return skill_interval(mean, _column(found.estimate(found.reference, score, subset), row.column))
    if quantity == "difference":
        mean = mean - _column(found.estimate(row.versus, score, subset), row.column)
    low, high = mean.interval()
    return float(low[0]), float(high[0])


def _column(estimate: Estimate | None, j: int) -> Estimate:
    assert estimate is not None
    return Estimate(estimate.value[[j]], estimate.influence[:, [j]])


# ---- tables -------------------------------------------------------------------------------------------


def study(name: str, replications: int, jobs: int, store: Path | None) -> dict[str, list[float]]:
    """Coverage in percent, share declined and count for each cell of a setting."""
    path = None if store is None else store / f"{name}_{replications}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    runs = joblib.Parallel(jobs)(joblib.delayed(covers)(SETTINGS[name], seed) for seed in range(replications))
    cells: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        for key, values in run.items():
            cells[key] += values
    table = {key: _percent(np.array(values)) for key, values in cells.items()}
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(table), encoding="utf-8")
    return table


def _percent(values: np.ndarray) -> list[float]:
    given = values[~np.isnan(values)]
    return [100 * float(given.mean()) if len(given) else np.nan, 100 * float(np.isnan(values).mean())]


def show(name: str, table: dict[str, list[float]]) -> None:
    """The table of a setting; where most data sets have too few events, what is left of them is selected."""
    scores = list(dict.fromkeys(key.split("|")[1] for key in table))
    print(f"\n{SETTINGS[name].title} ({name})")
    print(f"{'':30s}{'mean':>9s}{'difference':>12s}{'skill':>9s}{'declined':>10s}   with those declined")
    for score in scores:
        given, every = (
            [table.get(f"{some}{what}|{score}", [np.nan, 0.0]) for what in QUANTITIES]
            for some in ("", "all ")
        )
        widths = (9, 12, 9)
        text, more = (
            "".join(f"{_cell(*cell):>{w}s}" for cell, w in zip(cells, widths, strict=True))
            for cells in (given, every)
        )
        print(f"{score:30s}{text}{given[1][1]:10.1f}{more}")
    print(flush=True, end="")


def summarize(tables: dict[str, dict[str, list[float]]]) -> None:
    """The smallest and the largest coverage over scores, as lines of a Markdown table."""
    print("\n| setting | mean | difference | skill | declined | mean, none declined |")
    print("|---|---|---|---|---|---|")
    for name, table in tables.items():
        ranges = [_range(table, what) for what in QUANTITIES]
        most = max(declined for _, declined in table.values())
        print(f"| {SETTINGS[name].title} | {' | '.join(ranges)} | {most:.0f} | {_range(table, 'all mean')} |")


def _range(table: dict[str, list[float]], what: str) -> str:
    cells = [cell for key, cell in table.items() if key.startswith(f"{what}|")]
    found = [value for value, declined in cells if declined <= 50 and not np.isnan(value)]
    return f"{min(found):.1f} to {max(found):.1f}" if found else ""


def _cell(value: float, declined: float) -> str:
    if np.isnan(value):
        return "- "
    if declined > 50:
        return f"({value:.1f})"
    return f"{value:.1f}" + (" " if TARGET[0] <= value <= TARGET[1] else "!")


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95 % intervals at the defaults of compare.")
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--store", type=Path, default=None)
    options = parser.parse_args()
    print(f"coverage of 95 % intervals in {options.replications} data sets, %; ! is outside of 93 to 97")
    print("declined: share of lines without an interval, for want of five events, %; () if more than half")
    tables = {}
    for name in options.settings:
        tables[name] = study(name, options.replications, options.jobs, options.store)
        show(name, tables[name])
    summarize(tables)


if __name__ == "__main__":
    main()
