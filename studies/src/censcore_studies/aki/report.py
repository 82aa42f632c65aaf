"""The study as one self-contained page: flow, rates, tables beside the printed ones, figures."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.files import write_atomically
from censcore_studies.aki import figures, printed
from censcore_studies.aki.data import AkiRows, Build, open_build
from censcore_studies.aki.evaluation import (
    HORIZONS,
    LOSSES,
    REFERENCE,
    SHARES,
    TRUTH,
    read_preset,
    read_results,
    read_scores,
    with_truth,
)
from censcore_studies.aki.methods import METHODS
from censcore_studies.kit.pages import note, soft, table, whole_page
from censcore_studies.kit.store import read_stage

__all__ = ["report"]

FEWEST = 10  # fewer patients, stays or rows than this are not shown
_ENOUGH_TO_CONCLUDE = 200  # test patients
_LABELS = {name: method.label for name, method in METHODS.items()}
_SIDES = {"train": "training", "validation": "validation", "test": "test"}


def report(out: str | Path, *, reveal: bool = False) -> Path:
    """Write ``report.html``: the cohort, the endpoints, the tables of the paper's form and the figures.

    By default nothing on the page concerns a single patient: counts are rounded to tens, those under ten are
    withheld, and so are numbers and bins that rest on fewer than ten patients; joint forecasts are drawn for
    average covariates of many patients.

    Parameters
    ----------
    out : path
        The output directory of :func:`build`, :func:`train` and :func:`evaluate`.
    reveal : bool
        Show exact counts, and forecasts of single test rows with what happened. For private use, or for data
        that are not patients'.

    Returns
    -------
    Path
        The page.
    """
    out = Path(out)
    page = _Page(open_build(out), reveal)
    text = whole_page("Early acute kidney injury in intensive care", page.sections())
    return write_atomically(out / "report.html", text)


_COSTS = {"seconds": "seconds", "memory_gib": "memory, GiB", "gpu_gib": "GPU memory, GiB"}


class _Page:
    """The sections of one report."""

    def __init__(self, build: Build, reveal: bool) -> None:
        self.build, self.reveal = build, reveal
        self.results = read_results(build.out)
        self.methods = [name for name in METHODS if name in self.results["methods"]]
        self.preset = read_preset(build.out)
        drawn = [name for name in (REFERENCE, "naive") if name in self.methods] or self.methods[:1]
        self.scores = {name: read_scores(_stage(build.out, f"evaluation/{name}")) for name in drawn}

    def sections(self) -> list[str]:
        return [
            self._opening(),
            self._cohort(),
            self._endpoints(),
            self._energy(),
            self._utility(),
            self._differences(),
            self._excess(),
            self._calibration(),
            self._forecasts(),
            self._training(),
            self._cost(),
            self._settings(),
        ]

    # ---- numbers --------------------------------------------------------------------------------

    def count(self, n: int) -> str:
        if self.reveal or n == 0:
            return f"{n:,}"
        return f"{round(n, -1):,}" if n >= FEWEST else f"under {FEWEST}"

    def value(self, found: Mapping[str, Any] | None, decimals: int, best: bool = False) -> str:
        if found is None or found["mean"] is None or (found["patients"] < FEWEST and not self.reveal):
            return "–"
        error = "" if found["standard_error"] is None else f"{found['standard_error']:.{decimals}f}"
        number = f'{found["mean"]:.{decimals}f} <span class="error">± {error or "?"}</span>'
        return f'<span class="best">{number}</span>' if best else number

    # ---- sections -------------------------------------------------------------------------------

    def _opening(self) -> str:
        shown = (
            "Counts are exact and single test rows are shown: this page is for private use."
            if self.reveal
            else f"Counts are rounded to tens; counts, numbers and bins that rest on fewer than {FEWEST} "
            "patients or rows are withheld (–). Nothing here concerns a single patient."
        )
        release, preset = html.escape(self.build.summary["release"]), html.escape(self.preset.name)
        few = self.build.summary["split"]["sides"]["test"]["patients"] < _ENOUGH_TO_CONCLUDE
        shown += " <strong>The test side is far too small for conclusions.</strong>" if few else ""
        return note(
            f"MIMIC-IV layout, release {release}; preset “{preset}”. Joint forecasts of the remaining hours "
            "to KDIGO stage-2 injury by creatinine and by urine output, censored at ICU exit. Numbers called "
            "“printed” are the paper's, on MIMIC-IV 3.x at its choices: compare ranks with them, not levels. "
            f"{shown}"
        )

    def _cohort(self) -> str:
        cohort, split = self.build.summary["cohort"], self.build.summary["split"]
        flow = [("ICU stays in the database", cohort["icu_stays"])]
        flow += [(f"left out: {reason}", n) for reason, n in cohort["left_out"].items()]
        flow += [("studied stays", cohort["studied_stays"]), ("patients", cohort["patients"])]
        flow += [("stays that end with death", cohort["deaths"])]
        sides = [
            (label, *(self.count(split["sides"][side][units]) for units in ("stays", "patients")))
            for side, label in _SIDES.items()
        ]
        left_out = [
            (table, reason, self.count(n))
            for table, records in self.build.summary["records"].items()
            for reason, n in records["left_out"].items()
        ]
        return "".join([
            "<h2>Cohort</h2>",
            table(("", "stays"), [(text, self.count(n)) for text, n in flow]),
            note(f"Split: {split['rule']} ({html.escape(split['reason'])}); a patient is on one side only."),
            table(("side", "stays", "patients"), sides),
            "<details><summary>Records left out as impossible</summary>",
            table(("table", "why", "records"), left_out) if left_out else "<p>None.</p>",
            "</details>",
        ])  # fmt: skip

    def _endpoints(self) -> str:
        names = {
            "rows": "rows",
            "creatinine_event_rate": "creatinine event",
            "urine_event_rate": "urine event",
            "creatinine_present_rate": "creatinine present",
            "urine_present_rate": "urine present",
            "median_censoring_hours": "median hours to exit",
        }

        def cell(name: str, value: Any, patients: int = FEWEST) -> str:
            if value is None:
                return "–"
            if name == "rows":
                return self.count(value)
            if patients < FEWEST and not self.reveal:
                return "–"
            return f"{value:.1%}" if "rate" in name else f"{value:.1f}"

        lines = []
        for side, label in _SIDES.items():
            rates, paper = self.build.summary["rows"][side], printed.ROWS[side]
            patients = self.build.summary["split"]["sides"][side]["patients"]
            lines.append((label, *(cell(name, rates.get(name), patients) for name in names)))
            shown = (
                f"{paper['rows']:,}" if name == "rows" else cell(name, paper[name]) if name in paper else ""
                for name in names
            )
            lines.append((soft(f"{label}, printed"), *(soft(text) for text in shown)))
        return (
            "<h2>Endpoints by prediction row</h2>"
            + table(("", *names.values()), lines)
            + note(
                "Rows in which the event is already present count as events, as in the paper. A stay gives "
                "many rows, so these are not incidences of patients."
            )
        )

    def _energy(self) -> str:
        columns = {"joint": "joint", "creatinine": "creatinine", "urine": "urine"}
        best = {what: self._best(what) for what in columns}
        lines = []
        for name, found in with_truth(self.results).items():
            paper = [soft(f"{value:.3f}") for value in printed.ENERGY.get(name, ())]
            values = (self.value(found[w], 3, best[w] == name) for w in columns)
            lines.append((_LABELS.get(name, "Truth"), *values, *(paper or [""] * len(columns))))
        rows = ", ".join(f"{label} {self.count(self.results['rows'][w])}" for w, label in columns.items())
        return (
            "<h2>Localized energy score in hours</h2>"
            + table(("method", *columns.values(), *(f"{c}, printed" for c in columns.values())), lines)
            + note(
                f"Lower is better; ± one standard error, clustered by patient. Test rows: {rows}. The joint "
                "score is on rows with an endpoint at risk and leaves out one that is present; the marginal "
                "scores are on rows where that endpoint is at risk."
            )
        )

    def _utility(self) -> str:
        lines: list[tuple[str, ...]] = []
        for horizon in HORIZONS:
            best = self._best(f"brier_{horizon}")
            lines.append((f"<strong>{horizon} h</strong>", *[""] * 10))
            tops = [f"{what}_{horizon}_{share}" for share in SHARES for what in ("ppv", "sensitivity")]
            for name, found in with_truth(self.results).items():
                paper = printed.UTILITY[horizon].get(name)
                lines.append((
                    _LABELS.get(name, "Truth"),
                    self.value(found[f"brier_{horizon}"], 4, best == name),
                    *(self.value(found[top], 3) for top in tops),
                    *([""] * 5 if paper is None else (soft(f"{value:.3f}") for value in paper)),
                ))  # fmt: skip
        short = ("Brier", "PPV 5 %", "sens. 5 %", "PPV 10 %", "sens. 10 %")
        return (
            "<h2>Either AKI at fixed horizons</h2>"
            + table(("", *short, *(f"{name}, printed" for name in short)), lines)
            + note(
                "Rows without any AKI at the prediction time. The localized Brier score is proper; "
                "predictive value and sensitivity of the highest risks are summaries on rows whose outcome "
                "at the horizon is known, not estimates of use in practice."
            )
        )

    def _best(self, what: str) -> str:
        means = {name: self.results["methods"][name][what]["mean"] for name in self.methods}
        known = {name: mean for name, mean in means.items() if mean is not None}
        return min(known, key=lambda name: known[name]) if known else ""

    def _differences(self) -> str:
        differences = self.results["differences"]
        found = {name: differences[name] for name in self.methods if name in differences}
        panels = {"joint": "joint energy score", "creatinine": "creatinine", "urine": "urine"}
        briers = {f"brier_{h}": f"Brier, {h} h" for h in HORIZONS}
        patients = [value[what]["patients"] for value in found.values() for what in (*panels, *briers)]
        title = "Losses less those of censored engression"
        if not found:
            return ""
        if min(patients) < FEWEST and not self.reveal:
            return self._withheld(title)
        lines = self._losses(found)
        return (
            f"<h2>{title}</h2>"
            + note("Paired by row, 95 % intervals clustered by patient; right of the line is worse.")
            + figures.differences(found, _LABELS, panels)
            + figures.differences(found, _LABELS, briers)
            + "<details><summary>The same in numbers, ± one standard error</summary>"
            + table(("less censored", *panels.values(), *briers.values()), lines)
            + "</details>"
        )

    def _losses(self, found: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
        """One line per method with all differences of losses."""
        return [
            (_LABELS[name], *(self.value(value[w], 4 if "brier" in w else 3) for w in LOSSES))
            for name, value in found.items()
        ]

    def _excess(self) -> str:
        """What every method loses against the distribution that a synthetic database was drawn from."""
        if TRUTH not in self.results:
            return ""
        found = {name: self.results["excess"][name] for name in self.methods}
        heads = [w.replace("brier_", "Brier, ") + (" h" if "brier" in w else "") for w in LOSSES]
        return (
            "<h2>Losses less those of the true distribution</h2>"
            + table(("excess", *heads), self._losses(found))
            + note(
                "The database is synthetic. “Truth” is the distribution that the endpoints of a stay were "
                "drawn from, given the hazard, creatinine level, weight and pace of charting that the stay "
                "was drawn from and all that was charted until the row. It knows more than the features say: "
                "no method can reach it."
            )
        )

    def _calibration(self) -> str:
        curves = {
            horizon: {name: self._calibration_curve(of, horizon) for name, of in self.scores.items()}
            for horizon in HORIZONS
        }
        seen = [observed for methods in curves.values() for _, observed in methods.values()]
        if not any(np.isfinite(observed).any() for observed in seen):
            return self._withheld("Calibration and risks")
        first, main = next(iter(self.scores.items()))
        return (
            "<h2>Calibration and risks</h2>"
            + note(
                "Above: risk of either AKI by tenths of its rank, on rows still observed at the horizon (C "
                "beyond it), where the share with an event is not thinned by censoring. Below: predicted "
                f"risks of {_LABELS[first].lower()} engression among rows whose outcome is known."
            )
            + figures.calibration(curves, _LABELS)
            + figures.risks({horizon: self._risk_shares(main, horizon) for horizon in HORIZONS})
        )

    def _calibration_curve(
        self, scores: Mapping[str, NDArray[Any]], horizon: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Mean risk and share of events by tenths of the risk; NaN where a tenth is withheld."""
        rows = np.flatnonzero(scores[f"observed_{horizon}"] == 1)
        rows = rows[np.argsort(scores[f"risk_{horizon}"][rows], kind="stable")]
        bins = [
            part if self._enough(scores["subject_id"][part]) else None for part in np.array_split(rows, 10)
        ]
        predicted, observed = (
            np.array([np.nan if part is None else scores[f"{what}_{horizon}"][part].mean() for part in bins])
            for what in ("risk", "happened")
        )
        return predicted, observed

    def _risk_shares(
        self, scores: Mapping[str, NDArray[Any]], horizon: int
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Shares of rows by tenths of the scale, with and without event; NaN where a bar is withheld."""
        happened, risk = scores[f"happened_{horizon}"], scores[f"risk_{horizon}"]
        shares = []
        for outcome in (1, 0):
            rows = np.flatnonzero(happened == outcome)
            place = np.minimum((risk[rows] * 10).astype(int), 9)
            parts = [rows[place == b] for b in range(10)]
            counts = [
                len(part) if not len(part) or self._enough(scores["subject_id"][part]) else np.nan
                for part in parts
            ]
            shares.append(np.array(counts) / max(1, len(rows)))
        return shares[0], shares[1]

    def _enough(self, subjects: NDArray[Any]) -> bool:
        return len(subjects) > 0 and (self.reveal or len(np.unique(subjects)) >= FEWEST)

    def _forecasts(self) -> str:
        name, scores = next(iter(self.scores.items()))
        method = METHODS[name]
        rows = self.build.rows("test", self.preset.test_rows, seed=self.preset.seed)
        risk = scores["risk_24"]
        free = np.flatnonzero(np.isfinite(risk))
        chosen = _single_rows(rows, risk, free) if self.reveal else self._typical_rows(rows, risk, free)
        if not chosen:
            return self._withheld("Joint forecasts")
        model = method.load(_stage(self.build.out, f"models/{name}").folder / "model.safetensors", "cpu")
        X = np.stack([covariates for _, covariates, _ in chosen])
        draws = method.sample(model, X, 400, self.preset.seed, self.build.preprocessing)
        samples = np.concatenate([part.numpy() for part in draws])
        last = float(self.build.summary["preprocessing"]["q95_hours"])
        observed = None
        if self.reveal:
            observed = [(rows.time[i], rows.event[i], rows.censoring[i]) for _, _, i in chosen]
        what = "single test rows; crosses are what was observed, dotted lines the exit" if self.reveal else (
            "average covariates of test rows at low, medium and high predicted risk"
        )  # fmt: skip
        return (
            "<h2>Joint forecasts</h2>"
            + note(
                f"400 draws for {what}. The grey bands are the next 24 h. Few rows are followed for more "
                f"than {last:.0f} h, so that later draws are guesses; they are gathered under “later”."
            )
            + figures.joint_forecasts(list(samples), [title for title, _, _ in chosen], last, observed)
        )

    def _typical_rows(
        self, rows: AkiRows, risk: NDArray[Any], free: NDArray[Any]
    ) -> list[tuple[str, NDArray[Any], int]]:
        order = free[np.argsort(risk[free], kind="stable")]
        n = len(order)
        bands = {
            "lowest third of risks": order[: n // 3],
            "middle third": order[n // 3 : 2 * n // 3],
            "highest tenth": order[-max(1, n // 10) :],
        }
        return [
            (title, rows.X[band].mean(axis=0), -1)
            for title, band in bands.items()
            if self._enough(rows.subject_id[band])
        ]

    def _withheld(self, title: str) -> str:
        return f"<h2>{title}</h2>" + note("Withheld: the test side has too few patients to draw this.")

    def _training(self) -> str:
        stages = {name: _stage(self.build.out, f"models/{name}") for name in self.methods}
        losses = {
            name: (
                json.loads((stage.folder / "history.json").read_text("utf-8")),
                stage.summary["kept_epoch"],
            )
            for name, stage in stages.items()
        }
        rows = self.count(max(stage.summary["training_rows"] for stage in stages.values()))
        return (
            "<h2>Training</h2>"
            + note(f"{rows} training rows with an endpoint at risk; losses by epoch, and the epoch kept.")
            + figures.histories(losses, _LABELS)
        )

    def _cost(self) -> str:
        """Seconds and memory of every stage, as recorded by the run that made it."""
        out = self.build.out
        names = sorted(path.parent.relative_to(out).as_posix() for path in out.rglob("stage.json"))
        found = [(name, stage.cost) for name in names if (stage := read_stage(out, name))]
        lines = [
            (name, *(f"{cost[part]:,.1f}" if part in cost else "–" for part in _COSTS))
            for name, cost in found
            if cost
        ]
        total = sum(cost.get("seconds", 0.0) for _, cost in found)
        return (
            "<h2>Time and memory</h2>"
            + note(
                f"{total:,.0f} s in all. Memory of the process is the largest up to the end of a stage, "
                "that of the GPU the largest within it."
            )
            + table(("stage", *_COSTS.values()), lines)
        )

    def _settings(self) -> str:
        settings = (self.build.out / "settings.json").read_text("utf-8")
        preset = (self.build.out / "preset.json").read_text("utf-8")
        return (
            "<h2>Settings</h2><details><summary>Every choice of this run</summary>"
            f"<pre>{html.escape(settings)}</pre><pre>{html.escape(preset)}</pre></details>"
        )


def _single_rows(
    rows: AkiRows, risk: NDArray[Any], free: NDArray[Any]
) -> list[tuple[str, NDArray[Any], int]]:
    """Rows of three stays at the 20 %, 60 % and 95 % quantiles of predicted risk."""
    order = free[np.argsort(risk[free], kind="stable")]
    found: dict[int, tuple[str, NDArray[Any], int]] = {}
    for level in (0.2, 0.6, 0.95):
        others = order[~np.isin(rows.stay_id[order], list(found))]
        if len(others):
            i = int(others[int(level * (len(others) - 1))])
            title = f"{rows.elapsed[i]:.0f} h after admission, risk {risk[i]:.0%}"
            found[int(rows.stay_id[i])] = (title, rows.X[i], i)
    return list(found.values())


def _stage(out: Path, name: str) -> Any:
    stage = read_stage(out, name)
    if stage is None:
        raise InvalidInputError(f"{out}/{name} is missing or unfinished; run train and evaluate again.")
    return stage
