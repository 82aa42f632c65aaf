"""The result of a validation: one line per measure, tables, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from censcore._arrays import to_numpy
from censcore._kept_values import KeepsValues
from censcore._validation import as_index, check_kind, check_option
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.lines import Line, data_frame
from censcore.evaluation.measures.observed_expected import observed_and_expected
from censcore.evaluation.measures.performance import Measured, performance
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.evaluation.report.export import as_json
from censcore.evaluation.report.shown_table import ShownTable
from censcore.exceptions import CenscoreError
from censcore.files import as_path, write_atomically

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from censcore.evaluation.sites import SitePool


class Place(NamedTuple):
    """Of whom and of what a line is."""

    by: str
    group: str
    outcome: str
    model: str


@dataclass(frozen=True, repr=False, eq=False)
class Validation(KeepsValues):
    """What :func:`validate` found, where all measures are defined.

    Attributes
    ----------
    comparison : Comparison
        The models, and the null model of the subjects, at the one time.
    time : float
        t.
    models : list of str
        Names of the validated models.
    thresholds : array or None
        As asked for; None for the observed risk.
    method : str
        Of intercept and slope.
    sites : SitePool, optional
        Validations of single sites, pooled.
    development : frame, array or mapping, optional
        Covariates of the subjects that the model was made from, as passed.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> T, C = rng.exponential(np.exp(-x)), rng.uniform(0, 3, 500)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> found = cs.validate({"model": cs.Exponential(np.exp(x))}, y, time=1.0, thresholds=[0.5])
    >>> round(found.line("AUC")["value"], 3)
    0.819
    """

    comparison: Comparison
    time: float
    models: list[str]
    thresholds: np.ndarray | None = None
    method: str = "binomial"
    sites: SitePool | None = None
    development: Any = None
    made: dict[Any, Any] = field(default_factory=dict, init=False)

    # ---- numbers -------------------------------------------------------------------------------------

    @property
    def outcomes(self) -> list[str]:
        """The events that risks are of: one empty name, or the causes."""
        return self.comparison.kind.pictured("calibration", set())

    def of(self, outcome: str = "", subset: int = 0) -> Comparison:
        """The comparison of one outcome within a subgroup, by its number; 0 is all subjects."""
        key = outcome, subset
        if key not in self.made:
            one = self.comparison.of(outcome) if outcome else self.comparison
            self.made[key] = one.within(subset) if subset else one
        found: Comparison = self.made[key]
        return found

    def shown(self, outcome: str = "") -> Comparison:
        """The comparison of one outcome without the null model, for pictures."""
        one = self.of(outcome)
        mine = {model: one.evaluations[model] for model in self.models}
        return replace(one, evaluations=mine, decided=replace(one.decided, reference=None))

    def thresholds_of(self, outcome: str = "") -> list[float]:
        """Those asked for, or the observed risk to two digits."""
        if self.thresholds is not None:
            return [float(theta) for theta in self.thresholds]
        try:
            observed, _ = observed_and_expected(RiskOfModel(self.of(outcome), self.models[0], self.time))
        except CenscoreError:
            return []
        theta = float(f"{observed.value[0]:.2g}")
        return [theta] if 0 < theta < 1 else []

    @cached_property
    def measured(self) -> dict[Place, list[Measured]]:
        """All measures with their influences."""
        found = {}
        for s in range(len(self.comparison.subsets)):
            for outcome in self.outcomes:
                one, thresholds = self.of(outcome, s), self.thresholds_of(outcome)
                for model in self.models:
                    of = RiskOfModel(one, model, self.time)
                    found[self._place(s, outcome, model)] = performance(of, thresholds, self.method)
        return found

    @cached_property
    def lines(self) -> list[Line]:
        """What ``frame()`` holds."""
        confidence, lines = self.comparison.confidence, list[Line]()
        for place, measured in self.measured.items():
            about = {"time": self.time, **place._asdict()}
            for each in measured:
                line = each.line(confidence)
                lines.append({"measure": line.pop("measure")} | about | line)
        return lines

    def line(
        self, measure: str, outcome: str | None = None, model: str | None = None, subset: int = 0
    ) -> Line:
        """The line of a measure; by default of the first outcome and model, in all subjects."""
        outcome, model = self.outcomes[0] if outcome is None else outcome, model or self.models[0]
        check_option(outcome, "outcome", self.outcomes)
        check_option(model, "model", self.models)
        by_name = {each.name: each for each in self.measured[self._place(subset, outcome, model)]}
        check_option(measure, "measure", list(by_name))
        return by_name[measure].line(self.comparison.confidence)

    def _place(self, subset: int, outcome: str, model: str) -> Place:
        of = self.comparison.subsets[as_index(subset, "subset")]
        return Place(of.by, of.label if of.by else "", outcome, model)

    def frame(self) -> pd.DataFrame:
        """One line per measure.

        Columns: ``measure``, ``time``, ``outcome`` (the cause, of competing risks), ``value``,
        ``standard_error``, ``low``, ``high``, ``by_chance`` (what ICI, E50 and E90 would be under a right
        model), ``p`` and ``note`` (why there is no number). ``model`` where there are several, ``by`` and
        ``group`` where there are subgroups. :func:`validate` says what each measure is, and what ``p`` tests.
        """
        dropped = {"model"} if len(self.models) == 1 else set()
        dropped |= {"by", "group"} if len(self.comparison.subsets) == 1 else set()
        order = [
            "measure",
            "time",
            "outcome",
            "by",
            "group",
            "model",
            "value",
            "standard_error",
            "low",
            "high",
        ]
        order += ["by_chance", "p", "note"]
        return data_frame(self.lines, [name for name in order if name not in dropped])

    def differences(self) -> pd.DataFrame:
        """Paired differences between models in Brier score, IPA, AUC, Uno's concordance and net benefit.

        Of other measures a difference says little: the better slope is the one closer to one, which two
        models may miss on different sides.

        Returns
        -------
        DataFrame
            ``measure``, ``time``, ``outcome``, ``model``, ``versus``, ``difference`` (of ``model``, less
            ``versus``) with ``standard_error``, ``low``, ``high`` and ``p``, over the same subjects; each
            for itself, without adjustment.
        """
        return data_frame(self.difference_lines)

    @cached_property
    def difference_lines(self) -> list[Line]:
        """What ``differences()`` holds."""
        lines = []
        for outcome in self.outcomes:
            of = {m: {x.name: x for x in self.measured[Place("", "", outcome, m)]} for m in self.models}
            first = next(iter(of.values()))
            for name in [each.name for each in first.values() if each.paired]:
                for i, model in enumerate(self.models):
                    for versus in self.models[i + 1 :]:
                        a, b = of[model][name].estimate, of[versus][name].estimate
                        if a is None or b is None:
                            continue
                        line = Measured(name, a - b, null=0.0).line(self.comparison.confidence)
                        line["difference"] = line["value"]
                        about: Line = {"measure": name, "time": self.time, "outcome": outcome}
                        numbers = ("difference", "standard_error", "low", "high", "p")
                        of_line = {number: line[number] for number in numbers}
                        lines.append(about | {"model": model, "versus": versus} | of_line)
        return lines

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        remarks = [] if self.sites is None else list(self.sites.notes)
        if self.thresholds is None:
            remarks.append(
                "No thresholds were given: net benefit is that of acting on risks above the observed risk. "
                "Choose the risks at which one would act."
            )
        return [*self.comparison.notes, *remarks]

    def summary(self, site: str = "", path: str | PathLike[str] | None = None) -> str | None:
        """What other sites need for :func:`pool_sites`, as JSON: estimates, errors and counts, no subject.

        Parameters
        ----------
        site : str
            Its name.
        path : path, optional
            Where to write it; ``"-"`` is standard output.

        Returns
        -------
        str or None
            The document; None where it is written.
        """
        from censcore.evaluation.sites import summary_of

        check_kind(site, "site", str, "a name")
        text = as_json(summary_of(self, site)) + "\n"
        return _written(text, path)

    # ---- what people see -----------------------------------------------------------------------------

    @property
    def table(self) -> ShownTable:
        """The lines as a table in words."""
        from censcore.evaluation.report.validation_text import table_of

        return table_of(self)

    def plot(self, kind: str = "calibration", outcome: str | None = None) -> Figure:
        """A picture, by matplotlib.

        Parameters
        ----------
        kind : str
            ``"calibration"``, ``"risks"`` (by outcome), ``"decision"`` (net benefit over thresholds),
            ``"groups"`` (observed risk over time in four groups of the forecast risk), or ``"sites"``.
        outcome : str, optional
            The cause, of competing risks; by default the first.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig(path)`` writes it.
        """
        from censcore.evaluation.report.draw import figure_of
        from censcore.evaluation.report.validation_page import CHARTS

        kinds = [*CHARTS, *(["sites"] if self.sites is not None else [])]
        check_option(kind, "kind", kinds)
        if self.sites is not None and kind == "sites":
            return self.sites.plot()
        outcome = self.outcomes[0] if outcome is None else outcome
        check_option(outcome, "outcome", self.outcomes)
        return figure_of(CHARTS[kind](self, outcome))

    def to_html(
        self, path: str | PathLike[str] | None = None, title: str = "Validation of a model"
    ) -> str | None:
        """One self-contained page: what was found, pictures, who was validated, and a checklist.

        Parameters
        ----------
        path : path, optional
            Where to write it; ``"-"`` is standard output.
        title : str
            Of the page.

        Returns
        -------
        str or None
            The page; None where it is written.
        """
        from censcore.evaluation.report.validation_page import page

        check_kind(title, "title", str, "a text")
        if path is not None:
            as_path(path)  # before the figures are drawn
        return _written(page(self, title), path)

    def to_csv(self, path: str | PathLike[str] | None = None) -> str | None:
        """The lines of ``frame()`` as comma-separated values."""
        return _written(self.frame().to_csv(index=False), path)

    def to_latex(self, path: str | PathLike[str] | None = None) -> str | None:
        """The table for LaTeX, with the package booktabs."""
        return _written(self.table.latex(), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str | None:
        """The table in Markdown."""
        return _written(self.table.markdown(), path)

    def to_word(self, path: str | PathLike[str]) -> None:
        """The table as a Word document (.docx), which needs python-docx."""
        self.table.word(path)

    def __repr__(self) -> str:
        from censcore.evaluation.report.validation_text import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        return self.table.html()

    @property
    def events(self) -> int:
        """How many subjects had an event by the time, of any cause."""
        y = self.comparison.outcome
        return int((to_numpy(y.event) & (to_numpy(y.time) <= self.time)).sum())

    @property
    def last_time(self) -> float:
        """End of follow-up of the validated subjects."""
        return float(to_numpy(self.comparison.outcome.time).max())


def _written(text: str, path: str | PathLike[str] | None) -> str | None:
    if path is None:
        return text
    write_atomically(path, text)
    return None
