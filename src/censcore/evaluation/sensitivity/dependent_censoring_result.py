"""Mean scores over a range of assumed dependence: table, text and picture."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore.evaluation.lines import data_frame
from censcore.evaluation.report.charts import Chart, Line, Look, Mark, Panel, Rule, look_of
from censcore.evaluation.report.draw import figure_of
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

NORMAL_95 = 1.959963984540054
TITLES = {
    "brier_score": ("Brier score", "t"),
    "integrated_brier_score": ("integrated Brier score", "horizon"),
}


@dataclass(frozen=True, repr=False, eq=False)
class DependentCensoringSensitivity:
    """What :func:`dependent_censoring_sensitivity` found. It is no test: the data do not identify tau.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> T, C = rng.exponential(1.0, 60), rng.exponential(2.0, 60)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> forecasts = {"truth": cs.Exponential(1.0), "late": cs.Exponential(0.5)}
    >>> sensitivity = cs.dependent_censoring_sensitivity(forecasts, y, times=0.5, horizon=1.0, tau=[0.0, 0.3])
    >>> sensitivity.reference
    'truth'
    """

    copula: str
    tau: np.ndarray  #: (a,)
    models: list[str]
    lines: list[tuple[str, float]]  #: score and its time or horizon
    means: np.ndarray  #: (a, models, lines)
    replicates: np.ndarray  #: bootstrap means, (a, R, models, lines)
    n_subjects: int
    n_events: int
    n_strata: int

    @property
    def reference(self) -> str:
        """The forecast from which differences are taken: the first."""
        return self.models[0]

    @property
    def differences(self) -> np.ndarray:
        """Mean losses minus that of the reference, (a, models, lines)."""
        return self.means - self.means[:, :1]

    def _errors(self, replicates: np.ndarray) -> np.ndarray:
        """Standard deviation over the bootstrap samples in which every score exists, (a, models, lines)."""
        if self._usable.sum() < 2:
            return np.full(self.means.shape, np.nan)
        return replicates[:, self._usable].std(axis=1, ddof=1)

    @property
    def _usable(self) -> np.ndarray:
        return np.isfinite(self.replicates).all(axis=(0, 2, 3))

    @property
    def standard_errors(self) -> np.ndarray:
        """Of the means, (a, models, lines); NaN without replicates."""
        return self._errors(self.replicates)

    @property
    def difference_errors(self) -> np.ndarray:
        """Of the differences, (a, models, lines); NaN without replicates."""
        return self._errors(self.replicates - self.replicates[:, :, :1])

    @property
    def ranks(self) -> np.ndarray:
        """1 for the smallest mean loss, (a, models, lines); equal means share the smaller rank."""
        return 1 + (self.means[:, None] < self.means[:, :, None]).sum(axis=2)

    def frame(self) -> pd.DataFrame:
        """One row per score, tau and model: mean, standard error, difference from the reference, rank."""
        columns = {
            "mean": self.means,
            "standard_error": self.standard_errors,
            "difference": self.differences,
            "difference_standard_error": self.difference_errors,
            "rank": self.ranks,
        }
        return data_frame(
            {"score": score, "at": at, "tau": self.tau[a], "model": model}
            | {name: values[a, m, k] for name, values in columns.items()}
            for k, (score, at) in enumerate(self.lines)
            for a in range(len(self.tau))
            for m, model in enumerate(self.models)
        )

    def order_changes(self) -> pd.DataFrame:
        """Between which neighbouring values of tau the order of the forecasts changes, from best to worst."""
        columns = ["score", "at", "tau_below", "tau_above", "order_below", "order_above"]
        return data_frame(self._order_changes(), columns)

    def _order_changes(self) -> list[dict[str, Any]]:
        changes = []
        for k, (score, at) in enumerate(self.lines):
            orders = [self._order(a, k) for a in range(len(self.tau))]
            for a, (below, above) in enumerate(pairwise(orders)):
                if below != above:
                    taus = {"tau_below": self.tau[a], "tau_above": self.tau[a + 1]}
                    orders_here = {"order_below": below, "order_above": above}
                    changes.append({"score": score, "at": at} | taus | orders_here)
        return changes

    def _order(self, a: int, line: int) -> str:
        return " < ".join(one_line(self.models[m]) for m in np.argsort(self.means[a, :, line], kind="stable"))

    def __repr__(self) -> str:
        strata = f", {self.n_strata} strata" if self.n_strata > 1 else ""
        head = [
            f"Sensitivity to dependent censoring: {self.copula.capitalize()} copula of T and C, "
            f"{self.n_subjects} subjects ({self.n_events} events{strata})",
            "mean loss over Kendall's tau, lower is better; ! marks the best; tau is assumed, not estimated",
            "",
        ]
        return "\n".join([*head, *self._table(), "", *self._verdicts(), *self._notes()])

    def _table(self) -> list[str]:
        labels = [f"{_title(*line)}  {one_line(model)}" for line in self.lines for model in self.models]
        width = max(map(len, labels)) + 2
        rows = [" " * width + "".join(f"{f'tau = {level:g}':>13}" for level in self.tau)]
        for number, label in enumerate(labels):
            line, m = divmod(number, len(self.models))
            cells = [
                f"{self.means[a, m, line]:12.4f}{'!' if self.ranks[a, m, line] == 1 else ' '}"
                for a in range(len(self.tau))
            ]
            rows.append(f"{label:<{width}}{''.join(cells)}".rstrip())
        return rows

    def _verdicts(self) -> list[str]:
        said = []
        for score, at in self.lines:
            changes = [row for row in self._order_changes() if (row["score"], row["at"]) == (score, at)]
            if not changes:
                span = f"tau = {self.tau[0]:g} to {self.tau[-1]:g}"
                said.append(f"{_title(score, at)}: the order is the same for {span}")
            said += [
                f"{_title(score, at)}: the order changes between tau = {row['tau_below']:g} "
                f"({row['order_below']}) and {row['tau_above']:g} ({row['order_above']})"
                for row in changes
            ]
        return said

    def _notes(self) -> list[str]:
        left_out = int((~self._usable).sum())
        if not left_out:
            return []
        return [
            f"note: {left_out} of {len(self._usable)} bootstrap samples have nobody followed to the last "
            "time and are left out of the standard errors."
        ]

    def plot(self, differences: bool | None = None) -> Figure:
        """Mean losses over tau or, with several forecasts, differences from the first, with 95 % bands."""
        several = len(self.models) > 1
        differences = several if differences is None else differences
        if differences and not several:
            raise InvalidInputError("A plot of differences needs at least two forecasts; got one.")
        what = f"difference from {one_line(self.reference)}" if differences else "mean loss"
        panels = [self._panel(line, what, differences) for line in range(len(self.lines))]
        looks = {model: look_of(m) for m, model in enumerate(self.models)}
        if differences:
            looks[self.reference] = Look("grey", marker="square")
        title = f"Sensitivity to dependent censoring, {self.copula.capitalize()} copula"
        return figure_of(Chart(title, panels, looks, wide=len(panels) > 1))

    def _panel(self, line: int, what: str, differences: bool) -> Panel:
        values = self.differences if differences else self.means
        errors = self.difference_errors if differences else self.standard_errors
        marks: list[Mark] = [Rule("x", 0.0), *([Rule("y", 0.0)] if differences else [])]
        for m, model in list(enumerate(self.models))[int(differences) :]:
            value, half = values[:, m, line], NORMAL_95 * errors[:, m, line]
            marks.append(Line(model, self.tau, value, look_of(m), value - half, value + half))
        x = "Kendall's τ of T and C, not identified by the data"
        return Panel(marks, x, f"{what} (lower is better)", _title(*self.lines[line]))


def _title(score: str, at: float) -> str:
    name, axis = TITLES[score]
    return f"{name}, {axis} = {at:.4g}"
