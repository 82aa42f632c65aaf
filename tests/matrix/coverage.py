"""Do 95 % intervals cover? One representative of every row and column of the matrix, at two sample sizes.

``python -m tests.matrix coverage`` draws data sets, each seeded by its number, and counts how often the
intervals of means, and of differences of two forecasts, hold the true value. That is the value in a large
sample without censoring, or with known censoring times where the score is of min(T, C); for models that are
fitted in folds, the expected loss of these fits, by quadrature. Options of ``compare`` are the defaults, but
for the times and levels of scores. Follow-up ends at the horizon that ``compare`` then chooses; Cox
regression of C, and visits, are without such an end, and the horizon is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import censcore as cs
from censcore.evaluation.measures.murphy import elementary
from censcore.published import d_calibration
from tests.matrix import continuous
from tests.matrix.cells import TARGETS
from tests.matrix.designs import CLUSTER, DESIGNS, KM, SOURCES
from tests.matrix.page import coverage_table
from tests.matrix.worlds import HORIZON, TIMES, World

SIZES = (200, 500)
MODELS = ("bold", "late")
LANDMARKS = [0.5, 1.0, 1.5]
LEVELS = [0.25, 0.5]
THRESHOLD = 0.45
MEMBERS = 100  # of ensembles
TRUTH = (16, 5000)  # samples, and subjects in each
BLOCK, ROUND = 20, 100  # data sets between two writings of the file, and before the next representative
NAMES = ["measure", "outcome", "at", "of"]
COUNTS = ["data_sets", "intervals", "below", "above"]
Key = tuple[str, str, float, str]  # measure, outcome, time or level, "mean" or "difference"
Interval = tuple[float, float, float]  # value and ends


@dataclass(frozen=True)
class Representative:
    """A kind of outcome, a design and a source of C, and the measures that are taken of them."""

    kind: str
    design: str
    source: str
    measures: tuple[str, ...]
    entry: bool = False

    @property
    def row(self) -> dict[str, Any]:
        """As in the table of results."""
        kind = f"{self.kind}, delayed entry" if self.entry else self.kind
        return {"kind": kind, "design": self.design, "source": self.source}

    @property
    def plain(self) -> bool:
        """Whether follow-up has an end, at the horizon."""
        return self.kind != "intervals" and self.source != "Cox regression"

    def draw(self, n: int, seed: int) -> World:
        """A sample with two forecasts, which are ensembles where there are several times."""
        shared = CLUSTER if "clusters" in self.design else 1
        by = SOURCES[self.source].by if self.source in SOURCES else ""
        end = HORIZON if self.plain else np.inf
        shares = (0.8, 0.2) if self.design == "weights" else (0.5, 0.5)
        w = continuous.world(
            self.kind, n, seed, by=by, entry=self.entry, end=end, cluster=shared, shares=shares
        )
        late = continuous.KINDS[self.kind].forecast(w.X["x"].to_numpy(), continuous.WRONG["late"])
        chosen = {
            "bold": w.forecasts["bold"],
            "late": late,
        }  # the second without the site: it ranks otherwise
        if self.kind in ("several times", "semi-competing") and not self.entry:
            chosen = {name: cs.Ensemble(F.sample(MEMBERS, seed + 1)) for name, F in chosen.items()}
        return replace(w, forecasts=chosen)

    def options(self, w: World, n: int, seed: int) -> dict[str, Any]:
        """Those that say where C comes from; training subjects are others."""
        if self.source in SOURCES:
            return SOURCES[self.source].options(w)
        other = self.draw(n, 10**6 + seed)
        if self.source == "other subjects":
            return {"censoring": KM, "train": (other.X, other.seen), "reference": None}
        return {
            "censoring": cs.Censoring(cs.KaplanMeier()).fit(other.X, other.seen).predict_distribution(w.X)
        }

    def common(self) -> dict[str, Any]:
        """What is asked of ``compare``."""
        scores = [m for m in self.measures if m in SCORED]
        found: dict[str, Any] = {
            "scores": scores or ["crps"],
            "levels": LEVELS,
            "discrimination": "auc" in self.measures,
        }
        found |= {"times": TIMES} if not self.design.startswith("landmarks") else {"window": 1.0}
        return found if self.plain else found | {"horizon": HORIZON}


SCORED = (
    "crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw", "binomial_log_score",
    "pinball_score", "log_score", "energy_score",
)  # fmt: skip
CURVES = ("observed risk", "net benefit", "Murphy diagram", "D-calibration")
FEW = ("crps", "brier_score:ipcw")
JOINT = ("energy_score", "crps", "brier_score", "brier_score:ipcw")
INSIDE, BEFORE, OTHERS = "Kaplan-Meier in the call", "fitted before, same subjects", "other subjects"
ALL = [
    Representative("one time", "fixed forecasts", INSIDE, (*SCORED[:-1], "concordance:uno", "auc", *CURVES)),
    Representative("one time", "fixed forecasts", "known times", ("crps", "brier_score", *CURVES[:3])),
    Representative(
        "one time", "fixed forecasts", "given distribution", (*FEW, "brier_score", "pinball_score")
    ),
    Representative("one time", "fixed forecasts", BEFORE, FEW),
    Representative("one time", "fixed forecasts", OTHERS, (*FEW, "integrated_brier_score:ipcw")),
    Representative("one time", "fixed forecasts", "fitted before, other subjects", FEW),
    Representative("one time", "fixed forecasts", "Kaplan-Meier by site", FEW),
    Representative("one time", "fixed forecasts", "Cox regression", (*FEW, "observed risk", "net benefit")),
    Representative("one time", "subgroups", "Kaplan-Meier by site", FEW),
    Representative("one time", "weights", INSIDE, (*FEW, "concordance:uno", "auc", "observed risk")),
    Representative("one time", "clusters", INSIDE, (*FEW, "concordance:uno", "auc", "observed risk")),
    Representative("one time", "landmarks", INSIDE, (*FEW, "integrated_brier_score:ipcw")),
    Representative("one time", "landmarks, clusters", INSIDE, FEW),
    Representative("one time", "batches", INSIDE, (*FEW, "log_score")),
    Representative("one time", "folds", INSIDE, ("crps", "integrated_brier_score:ipcw")),
    Representative("one time", "repeated folds", INSIDE, ("crps", "integrated_brier_score:ipcw")),
    Representative(
        "one time", "fixed forecasts", INSIDE, (*FEW, "concordance:uno", "auc", *CURVES[:3]), True
    ),
    Representative(
        "causes", "fixed forecasts", INSIDE, (*FEW, "log_score", "auc", "concordance:uno", *CURVES)
    ),
    Representative("causes", "fixed forecasts", "Cox regression", FEW),
    Representative("causes", "landmarks", INSIDE, FEW),
    Representative("causes", "fixed forecasts", INSIDE, FEW, True),
    Representative("several times", "fixed forecasts", INSIDE, JOINT),
    Representative("several times", "clusters", INSIDE, JOINT),
    Representative("several times", "fixed forecasts", INSIDE, JOINT[1:], True),
    Representative("semi-competing", "fixed forecasts", INSIDE, JOINT),
    Representative("semi-competing", "clusters", INSIDE, JOINT),
    Representative(
        "intervals", "fixed forecasts", INSIDE, ("crps", "brier_score", "log_score", "observed risk")
    ),
    Representative("intervals", "clusters", INSIDE, ("crps", "brier_score")),
]


# ---- designs ----------------------------------------------------------------------------------------------


def comparison_of(rep: Representative, w: World, y: Any, options: dict[str, Any]) -> Any:
    """What ``compare`` gives, or the comparisons at the landmarks."""
    groups = np.arange(len(w.weight)) // CLUSTER if "clusters" in rep.design else None
    if rep.design.startswith("landmarks"):
        return cs.compare_landmarks(w.forecasts, y, X=w.X, landmarks=LANDMARKS, groups=groups, **options)
    if rep.design in DESIGNS:
        return DESIGNS[rep.design](w, y, options)[0]
    return DESIGNS["fixed forecasts"](w, y, options)[0]


def intervals_of(rep: Representative, found: Any, w: World) -> dict[Key, Interval]:
    """All intervals of the measures: of the mean of the first forecast, and of its lead over the second."""
    at_landmarks = rep.design.startswith("landmarks")
    means = found.average() if at_landmarks else found.frame()
    pairs = found.average_differences() if at_landmarks else found.differences()
    intervals: dict[Key, Interval] = {}
    for of, table, column in (("mean", means, "mean"), ("difference", pairs, "difference")):
        for line in table[table.model == MODELS[0]].itertuples():
            measure = str(line.score).partition("[")[0]
            chosen = getattr(line, "group", "all") == ("1" if rep.design == "subgroups" else "all")
            if measure in rep.measures and chosen:
                at = round(float(getattr(line, "at", np.nan)), 9)
                key = (measure, line.outcome or "", -1.0 if np.isnan(at) else at, of)
                intervals[key] = getattr(line, column), line.low, line.high
    return intervals if at_landmarks else intervals | dict(_curves(rep, found, w))


def _curves(rep: Representative, found: Any, w: World) -> Iterator[tuple[Key, Interval]]:
    outcome = found.outcomes[1] if found.outcomes else ""
    view, t = found.of(outcome) if outcome else found, float(TIMES[1])
    if "observed risk" in rep.measures:
        curve = view.calibration(MODELS[0], t)
        yield ("observed risk", outcome, t, "mean"), (curve.observed, curve.observed_low, curve.observed_high)
    if "net benefit" in rep.measures:
        line = view.net_benefit(t, [THRESHOLD]).query("model == @MODELS[0]").iloc[0]
        yield ("net benefit", outcome, t, "mean"), (line.net_benefit, line.low, line.high)
    if "Murphy diagram" in rep.measures:
        losses = view.curve(elementary(t, thresholds=np.array([THRESHOLD])))
        a, b = (losses[model] for model in MODELS)
        for of, estimate in (("mean", a), ("difference", a - b)):
            low, high = estimate.interval(0.95)
            yield ("Murphy diagram", outcome, t, of), (estimate.value[0], low[0], high[0])
    if "D-calibration" in rep.measures and view is found:
        F = continuous.one(w.X["x"].to_numpy() + w.X["site"].to_numpy() - 0.5)
        p = d_calibration(w.seen, F).p_value  # the truth is right, and is rejected in 5 %
        yield ("D-calibration", "", -1.0, "test of the truth"), (0.0, 0.0 if p >= 0.05 else 1.0, 1.0)


# ---- true values ------------------------------------------------------------------------------------------


def truth_of(rep: Representative) -> dict[Key, float]:
    """Values of all measures in large samples: without censoring, or with known censoring times."""
    samples, n = TRUTH
    found: dict[Key, list[float]] = {}
    in_parts = rep.design.startswith("landmarks") or rep.design == "subgroups"
    rep = replace(rep, design=rep.design.partition(",")[0] if in_parts else "fixed forecasts")
    for i in range(samples):
        w = rep.draw(n, 10**9 + i)
        for target, y in (("full", w.full), ("known", w.known)):
            if y is None:  # visits: as seen, in a sample so large that drop-out is known
                y = w.seen
            measures = tuple(m for m in rep.measures if (TARGETS[m] or "full") == target)
            asked = replace(rep, measures=measures)
            if not measures:
                continue
            options = asked.common() | {"horizon": HORIZON}
            options["censoring"] = KM if rep.kind == "intervals" else None
            for key, (value, _, _) in intervals_of(asked, comparison_of(rep, w, y, options), w).items():
                found.setdefault(key, []).append(value)
    return {key: float(np.mean(values)) for key, values in found.items()}


# ---- models fitted in folds -------------------------------------------------------------------------------


def in_folds(rep: Representative, n: int, seed: int) -> dict[Key, Interval]:
    """Intervals less the expected losses of the models as fitted in the folds."""
    w = rep.draw(n, seed)
    kept: dict[str, list[np.ndarray]] = {}
    models = {
        name: recorded(model, kept.setdefault(name, []))
        for name, model in zip(MODELS, (cs.CoxRegression(), cs.KaplanMeier()), strict=True)
    }
    folds = cs.Folds(5, repeats=3 if "repeated" in rep.design else 1)
    options = rep.common() | {"censoring": KM, "cv": folds}
    found = cs.cross_validate(models, w.X, w.seen, reference=None, seed=seed, **options)
    expected = {name: np.mean(losses, axis=0) for name, losses in kept.items()}
    intervals = intervals_of(rep, found, w)
    for key, interval in intervals.items():
        a, b = (expected[name][rep.measures.index(key[0])] for name in MODELS)
        target = a if key[3] == "mean" else a - b
        intervals[key] = tuple(end - target for end in interval)  # type: ignore[assignment]
    return intervals


def recorded(model: Any, kept: list[np.ndarray]) -> Callable[..., Any]:
    r"""A model whose expected losses, CRPS and integrated Brier score, are kept at every fit.

    With the true F_0, :math:`E\{BS(t)\}=(F-F_0)^2+F_0(1-F_0)` at each x on the ipcw scale, times P(C > t)
    on the localized one; x by Gauss and Hermite, t by Gauss and Legendre.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    X = pd.DataFrame({"site": np.repeat([0, 1], 40), "x": np.tile(nodes, 2)})
    share = np.tile(weights, 2) / (2 * weights.sum())
    t, dt = (HORIZON / 2 * part for part in np.polynomial.legendre.leggauss(200))
    t += HORIZON / 2
    S = continuous.one((X["x"] + X["site"] - 0.5).to_numpy()).sf(t[None, :])

    def fit(X_train: Any, y_train: Any, X_test: Any) -> Any:
        fitted = model.fit(X_train, y_train)
        brier = share @ ((fitted.predict_distribution(X).sf(t[None, :]) - S) ** 2 + S * (1 - S))
        kept.append(np.array([dt @ (np.exp(-continuous.RATE * t) * brier), dt @ brier / HORIZON]))
        return fitted.predict_distribution(X_test)

    return fit


# ---- counts -----------------------------------------------------------------------------------------------


def counted(rep: Representative, n: int, seed: int, truth: dict[Key, float]) -> dict[Key, np.ndarray]:
    """By measure: data sets, intervals, and whether the truth is below or above, each 0 or 1."""
    if "folds" in rep.design:
        found = in_folds(rep, n, seed)
        truth = dict.fromkeys(found, 0.0)
    else:
        w = rep.draw(n, seed)
        y = w.known if rep.source == "known times" else w.seen
        found = intervals_of(rep, comparison_of(rep, w, y, rep.common() | rep.options(w, n, seed)), w)
    lines = {}
    for key, (_, low, high) in found.items():
        target = truth[key]
        lines[key] = np.array([1, not np.isnan(low + high), target < low, target > high], dtype=int)
    return lines


def run(path: Path, data_sets: int, jobs: int, only: str = "") -> pd.DataFrame:
    """Count until every representative has so many data sets, going on where the file ends."""
    table = pd.read_csv(path, keep_default_na=False) if path.exists() else pd.DataFrame()
    chosen = [rep for rep in ALL if only in ", ".join(rep.row.values())]
    for until in [*range(ROUND, data_sets, ROUND), data_sets]:
        for rep, n in product(chosen, SIZES):
            table = _continued(path, table, rep, n, until, jobs)
    return table


def _continued(
    path: Path, table: pd.DataFrame, rep: Representative, n: int, until: int, jobs: int
) -> pd.DataFrame:
    """More data sets of one representative, written down after every block."""
    about = rep.row | {"n": n}
    here = _rows(table, about)
    done = int(here.data_sets.max()) if len(here) else 0
    truth = _known_truth(table, rep) if done < until else {}
    counts = {_key_of(line): np.array([line[name] for name in COUNTS]) for line in here.to_dict("records")}
    while done < until:
        seeds = range(done, min(done + BLOCK, until))
        for found in joblib.Parallel(jobs)(joblib.delayed(counted)(rep, n, seed, truth) for seed in seeds):
            for key, line in found.items():
                counts[key] = counts.get(key, 0) + line
        done = seeds.stop
        lines = [
            {**about, **dict(zip(NAMES, key, strict=True)), "truth": truth.get(key, 0.0)}
            | dict(zip(COUNTS, line.tolist(), strict=True))
            for key, line in counts.items()
        ]
        rest = table.drop(_rows(table, about).index)
        table = pd.concat([rest, pd.DataFrame(lines)], ignore_index=True)
        write(table, path)
        print(f"{', '.join(rep.row.values())}, n = {n}: {done} data sets", flush=True)
    return table


def write(table: pd.DataFrame, path: Path) -> None:
    """The counts, and the table of the documentation beside them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(path, index=False)
    path.with_suffix(".md").write_text(coverage_table(table), encoding="utf-8")


def _rows(table: pd.DataFrame, about: dict[str, Any]) -> pd.DataFrame:
    for column, value in about.items() if len(table) else ():
        table = table[table[column] == value]
    return table


def _key_of(line: dict[Any, Any]) -> Key:
    return line["measure"], line["outcome"], line["at"], line["of"]


def _known_truth(table: pd.DataFrame, rep: Representative) -> dict[Key, float]:
    """From the file, or computed; models that are fitted in folds have one in each data set."""
    if "folds" in rep.design:
        return {}
    here = _rows(table, rep.row).to_dict("records")
    return {_key_of(line): line["truth"] for line in here} if here else truth_of(rep)
