"""Comparing two models and the null model at five times: the same work as riskRegression's ``Score``.

Both get the risks of the same subjects from the same Cox models, fit the censoring distribution, and give
Brier scores and AUC with standard errors that cover its estimation, and the paired differences. Ours gives
both concordances too. R's side runs where ``Rscript`` is on the path and has riskRegression. Seconds are CPU
time of one thread, of the call alone, so that a busy machine does not change the ratios.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import censcore as cs
from benchmarks.timing import alternate

SIZES, REPEATS = (5_000, 20_000), 3
CENSORING = {"Kaplan-Meier": cs.KaplanMeier(), "Cox": cs.CoxRegression()}
R_COX_AT_MOST = 5_000  # where Score takes ten seconds a call

SCRIPT = """
given <- commandArgs(trailingOnly = TRUE)
suppressWarnings(suppressMessages({library(survival); library(riskRegression)}))
data.table::setDTthreads(1)
data <- read.csv(given[1])
times <- as.numeric(strsplit(given[2], ",")[[1]])
risks <- function(name) as.matrix(data[, paste0(name, seq_along(times))])
a <- risks("a")
b <- risks("b")
formula <- if (given[3] == "cox") Surv(time, event) ~ x1 + x2 + x3 else Surv(time, event) ~ 1
for (metrics in list("brier", c("brier", "auc"))) {
  took <- sapply(seq_len(as.integer(given[4])), function(i) {
    start <- sum(proc.time()[1:2])
    Score(list(a = a, b = b), formula = formula, data = data, times = times,
          metrics = metrics, se.fit = TRUE, cens.model = given[3], null.model = TRUE)
    sum(proc.time()[1:2]) - start
  })
  cat(median(took), "\\n")
}
"""


class Subjects:
    """Outcomes and covariates of n subjects, and risks of two Cox models fitted to as many others."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(2 * n, 3))
        T = 2 * rng.weibull(1.3, 2 * n) * np.exp(-X @ [0.5, -0.3, 0.2])
        C = 2.5 * rng.weibull(1.2, 2 * n) * np.exp(0.2 * X[:, 0])
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        self.X, self.y = X[n:], y[n:]
        self.times = np.quantile(y.time, [0.2, 0.35, 0.5, 0.65, 0.8])
        self.sf = {}
        for name, columns in {"a": [0, 1, 2], "b": [0]}.items():
            fit = cs.CoxRegression().fit(X[:n][:, columns], y[:n])
            self.sf[name] = fit.predict_distribution(self.X[:, columns]).sf(self.times[None, :])

    def compare(self, estimator: Any, auc: bool) -> None:
        """Means with standard errors, and differences."""
        found = cs.compare(
            {name: cs.Step(self.times, sf=sf) for name, sf in self.sf.items()}, self.y,
            cs.Censoring(estimator), X=self.X, train=(self.X, self.y), scores="brier_score:ipcw",
            times=self.times, horizon=1.001 * self.times[-1], discrimination=auc,
        )  # fmt: skip
        found.frame(), found.differences()

    def by_r(self, model: str) -> list[float] | str:
        """Seconds of ``Score``, for the Brier score alone and with AUC; a sentence where it cannot run."""
        program = shutil.which("Rscript")
        if program is None:
            return "not run: Rscript is not on the path"
        columns = {"time": self.y.time, "event": 1 * self.y.event}
        columns |= {f"x{j + 1}": column for j, column in enumerate(self.X.T)}
        columns |= {f"{m}{k + 1}": 1 - sf[:, k] for m, sf in self.sf.items() for k in range(len(self.times))}
        with tempfile.TemporaryDirectory() as folder:
            data, script = Path(folder, "data.csv"), Path(folder, "score.R")
            table = np.column_stack(list(columns.values()))
            np.savetxt(data, table, "%.17g", ",", header=",".join(columns), comments="")
            script.write_text(SCRIPT, encoding="utf-8")
            at = ",".join(f"{t:.17g}" for t in self.times)
            command = [program, str(script), str(data), at, model, str(REPEATS)]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return f"not run: {done.stderr.strip().splitlines()[-1]}"
        return [float(line) for line in done.stdout.split()]


def cpu(subjects: Subjects, estimator: Any, auc: bool) -> float:
    return alternate(REPEATS, ours=lambda: subjects.compare(estimator, auc))["ours"].cpu


def main() -> None:
    os.environ["CENSCORE_THREADS"] = "1"
    print("CPU seconds, median of", REPEATS)
    print(f"{'n':>6s}  {'censoring':12s} {'scores':12s} {'censcore':>9s} {'Score':>9s} {'Score / ours':>13s}")
    for n in SIZES:
        subjects = Subjects(n)
        for name, estimator in CENSORING.items():
            theirs: list[float] | str = f"not run: Score with a Cox model of C only up to {R_COX_AT_MOST:,}"
            if name != "Cox" or n <= R_COX_AT_MOST:
                theirs = subjects.by_r("cox" if name == "Cox" else "km")
            for k, label in enumerate(("Brier", "Brier, AUC")):
                ours = cpu(subjects, estimator, auc=k == 1)
                r = theirs if isinstance(theirs, str) else f"{theirs[k]:9.2f} {theirs[k] / ours:13.1f}"
                print(f"{n:6,d}  {name:12s} {label:12s} {ours:9.2f} {r}", flush=True)


if __name__ == "__main__":
    main()
