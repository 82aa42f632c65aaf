"""Validations of several sites: each by itself, and what they say together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._validation import as_confidence, as_number
from censcore.evaluation.inference.meta_analysis import random_effects
from censcore.evaluation.lines import Line, data_frame
from censcore.evaluation.measures.performance import SCALES
from censcore.evaluation.report.charts import Chart, Intervals, Look, Panel, Rule
from censcore.evaluation.report.shown_table import ShownTable
from censcore.evaluation.report.validation_text import interval, number
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.files import as_path
from censcore.plain_text import one_line, some_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from censcore.evaluation.validation import Validation

FEWEST, FEW = 3, 5  # sites that are pooled; below which a note warns
#: What is pooled, on its scale; other measures are shown by site.
POOLED = {
    "O/E": "log", "calibration intercept": "", "calibration slope": "", "calibration slope, Cox": "",
    "concordance, Harrell": "logit", "concordance, Uno": "logit", "AUC": "logit",
}  # fmt: skip
FORMAT = "censcore validation summary 1"
#: Numbers of a summary that must be there, of each measure.
NUMBERS = ("value", "standard_error", "low", "high", "scaled", "scaled_error")


def summary_of(validation: Validation, site: str = "") -> dict[str, Any]:
    """Estimates, errors on their scales and counts of one site."""
    s, measures = validation.comparison.settings, []
    for place, measured in validation.measured.items():
        for each in measured if not place.by else ():
            line: Line = {"measure": each.name, "outcome": place.outcome, "model": place.model}
            line |= {k: v for k, v in each.line(validation.comparison.confidence).items() if k in NUMBERS}
            line |= {"scaled": np.nan, "scaled_error": np.nan, "note": each.note}
            if each.estimate is not None and not each.note and each.name in POOLED:
                on_scale = each.transformed()
                line["scaled"], line["scaled_error"] = (
                    float(x[0]) for x in (on_scale.value, on_scale.standard_error)
                )
            measures.append(line)
    return {
        "format": FORMAT, "site": site, "time": validation.time, "time unit": validation.comparison.time_unit,
        "subjects": s["subjects"], "events": validation.events, "last follow-up": validation.last_time,
        "confidence": validation.comparison.confidence, "measures": measures,
    }  # fmt: skip


@dataclass(frozen=True, repr=False, eq=False)
class SitePool:
    """Validations of several sites, and their pooled values.

    Attributes
    ----------
    summaries : dict
        By site, what ``Validation.summary()`` has.
    time : float
        t.
    confidence : float
        Of intervals.
    notes : list of str
        Sites that do not count, and why; too few of them.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x, site = rng.normal(size=600), np.repeat(["Leiden", "Lyon", "Oslo"], 200)
    >>> T, C = rng.exponential(np.exp(-x)), rng.uniform(0, 3, 600)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> pool = cs.validate(cs.Exponential(np.exp(x)), y, time=1.0, sites=site).sites
    >>> pool.frame().query("measure == 'AUC'")[["site", "value"]].round(2)
          site  value
    42  Leiden   0.81
    43    Lyon   0.86
    44    Oslo   0.82
    45  pooled   0.83
    """

    summaries: dict[str, dict[str, Any]]
    time: float
    confidence: float = 0.95
    notes: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[Line]:
        """Of every measure the sites, then the pooled value where it is pooled."""
        keys = dict.fromkeys(
            (m["measure"], m["outcome"], m["model"]) for s in self.summaries.values() for m in s["measures"]
        )
        return [line for key in keys for line in self._of(*key)]

    def _of(self, measure: str, outcome: str, model: str) -> list[Line]:
        about: Line = {"measure": measure, "time": self.time, "outcome": outcome, "model": model}
        found: dict[str, Line] = {}
        for site, summary in self.summaries.items():
            for line in summary["measures"]:
                if (line["measure"], line["outcome"], line["model"]) == (measure, outcome, model):
                    found[site] = line
        lines = [
            about | {"site": site} | {name: line[name] for name in NUMBERS[:4]}
            for site, line in found.items()
        ]
        usable = np.array([(x["scaled"], x["scaled_error"]) for x in found.values() if x["scaled_error"] > 0])
        usable = usable[np.isfinite(usable).all(axis=1)] if len(usable) else usable
        if measure not in POOLED or len(usable) < FEWEST:
            return lines
        at, back = random_effects(usable[:, 0], usable[:, 1], self.confidence), SCALES[POOLED[measure]].back
        ends = ("value", "low", "high", "prediction_low", "prediction_high")
        line = about | {"site": "pooled", "standard_error": np.nan, "tau": at.tau, "sites": len(usable)}
        line |= {name: float(back(np.array(getattr(at, name)))) for name in ends}
        return [*lines, line | {"prediction_df": at.prediction_df}]

    def frame(self) -> pd.DataFrame:
        """One line per measure and site, and one of each pooled value.

        Columns: ``measure``, ``time``, ``outcome``, ``model``, ``site`` ("pooled" for all), ``value``,
        ``standard_error``, ``low``, ``high``; of pooled values ``tau`` (the standard deviation between sites,
        on the scale of pooling: log O/E, logit of AUC and concordance), ``prediction_low`` and
        ``prediction_high`` (where the value of another site lies, by Student's distribution with
        ``prediction_df`` degrees of freedom) and ``sites`` (how many count).
        """
        names = ["measure", "time", "outcome", "model", "site", *NUMBERS[:4], "tau"]
        return data_frame(self.lines, [*names, "prediction_low", "prediction_high", "prediction_df", "sites"])

    @property
    def table(self) -> ShownTable:
        """The pooled values in words."""
        level = f"{100 * self.confidence:g} % interval"
        head = ["measure", "sites", "pooled", level, "tau", "another site", "degrees of freedom"]
        rows = []
        for line in self.lines:
            if line["site"] == "pooled":
                who = [line[x] for x in ("outcome", "model") if len({y[x] for y in self.lines}) > 1]
                another = {"low": line["prediction_low"], "high": line["prediction_high"]}
                name = ", ".join([line["measure"], *who])
                cells = [str(line["sites"]), number(line["value"]), interval(line), number(line["tau"])]
                rows.append([name, *cells, interval(another), str(line["prediction_df"])])
        count = f"{len(self.summaries)} sites" + ("" if rows else ", too few to pool")
        return ShownTable(f"Pooled over {count}.", head, rows, self.notes)

    def charts(self) -> list[Chart]:
        """A forest plot of each measure that is pooled."""
        charts, by_measure = list[Chart](), dict[tuple[str, str, str], list[Line]]()
        for line in self.lines:
            if line["measure"] in POOLED and line["value"] == line["value"]:
                by_measure.setdefault((line["measure"], line["outcome"], line["model"]), []).append(line)
        for (measure, outcome, model), lines in by_measure.items():
            whole = [i for i, line in enumerate(lines) if line["site"] == "pooled"]
            single = [i for i in range(len(lines)) if i not in whole]
            marks: list[Any] = [Rule("x", 1.0 if measure == "O/E" or "slope" in measure else 0.0)]
            marks = [] if POOLED[measure] == "logit" else marks
            for name, rows, look in (
                ("site", single, Look("ink")),
                ("pooled", whole, Look("m1", marker="diamond")),
            ):
                columns = (np.array([lines[i][k] for i in rows]) for k in ("value", "low", "high"))
                value, low, high = columns
                if len(rows):
                    at = np.array(rows, dtype=float)
                    marks.append(Intervals(name, value, at, low, high, look, horizontal=True))
            names = [_counted(line, self.summaries) for line in lines]
            title = ", ".join(
                x for x in (measure, outcome, model if len({m for _, _, m in by_measure}) > 1 else "") if x
            )
            charts.append(Chart(title, [Panel(marks, measure, rows=names, row_height=1.0)]))
        return charts

    def plot(self, measure: str = "O/E") -> Figure:
        """A forest plot, by matplotlib: every site with its interval, and the pooled value.

        Parameters
        ----------
        measure : str
            One of those that are pooled, such as ``"AUC"``.
        """
        from censcore.evaluation.report.draw import figure_of

        known = {chart.panels[0].xlabel: chart for chart in reversed(self.charts())}
        if measure not in known:
            raise InvalidInputError(
                f"measure: got {measure!r}, expected one of {', '.join(known) or 'none'}."
            )
        return figure_of(known[measure])

    def __repr__(self) -> str:
        shown = self.table
        return "\n".join([shown.caption, "", *shown.text(), "", *(f"note: {n}" for n in self.notes)]).rstrip()


def _counted(line: Line, summaries: dict[str, dict[str, Any]]) -> str:
    if line["site"] == "pooled":
        return "pooled"
    s = summaries[line["site"]]
    return f"{one_line(line['site'])} ({s['events']} of {s['subjects']})"


def pooled(validations: Mapping[str, Validation], confidence: float) -> SitePool:
    """Pool validations by site."""
    return _pooled({site: summary_of(each, site) for site, each in validations.items()}, confidence)


def pool_sites(
    sites: Mapping[str, Any] | Sequence[Any] | str | PathLike[str], confidence: float = 0.95
) -> SitePool:
    """Pool validations of one model at several sites, of which no row of data is needed.

    O/E is pooled on the logarithmic scale, AUC and concordance on that of log odds, intercept and slopes as
    they are: by random effects, whose standard deviation tau is estimated by restricted maximum likelihood,
    with the interval of Hartung and Knapp, never narrower than Wald's. Net benefit is shown by site, since it
    depends on how common the event is.

    Parameters
    ----------
    sites : dict, or list
        Validations (of :func:`validate`), or what their ``summary()`` wrote: documents as text, or paths of
        files. A dict names the sites.
    confidence : float
        Of intervals.

    Returns
    -------
    SitePool
        ``frame()``, ``table``, ``plot()``. From three sites on there are pooled values; fewer than five
        give a note, since tau is then hardly known.

    See Also
    --------
    validate : ``sites=`` does the same in one call.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> found = {}
    >>> for site in ["Leiden", "Lyon", "Oslo"]:
    ...     x = rng.normal(size=300)
    ...     T, C = rng.exponential(np.exp(-x)), rng.uniform(0, 3, 300)
    ...     y = cs.RightCensored(np.minimum(T, C), T <= C)
    ...     found[site] = cs.validate(cs.Exponential(np.exp(x)), y, time=1.0).summary(site)
    >>> pool = cs.pool_sites(found)
    >>> pool.frame().query("measure == 'O/E' and site == 'pooled'")[["value", "low", "high"]].round(2)
       value   low  high
    9   0.98  0.88   1.1
    """
    confidence = as_confidence(confidence)
    if isinstance(sites, Mapping):
        given = [(str(name), each) for name, each in sites.items()]
    elif isinstance(sites, str | PathLike):
        given = [("", sites)]
    elif isinstance(sites, Sequence):
        given = [("", each) for each in sites]
    else:
        raise InvalidTypeError(
            f"sites: got {type(sites).__name__}, expected validations or paths of summaries: a dict or list."
        )
    read: dict[str, dict[str, Any]] = {}
    for i, (name, each) in enumerate(given):
        summary = _summary(each, name or f"number {i + 1}")
        site = name or str(summary["site"]) or f"site {i + 1}"
        if site in read:
            raise InvalidInputError(f"sites: got {site!r} twice, expected another name for each site.")
        read[site] = summary
    return _pooled(read, confidence)


def _summary(given: Any, which: str) -> dict[str, Any]:
    """A summary, from a validation, a document or the path of one."""
    if hasattr(given, "measured"):
        return summary_of(given)
    text = given
    if isinstance(given, PathLike) or (isinstance(given, str) and not given.lstrip().startswith("{")):
        path = as_path(given)
        if not path.is_file():
            raise InvalidInputError(f"sites: there is no file {path}, expected one that --summary wrote.")
        text = Path(path).read_text(encoding="utf-8")
    expected = "expected a validation, or what its summary() wrote"
    if not isinstance(text, str):
        raise InvalidTypeError(f"sites: {which}: got {type(given).__name__}, {expected}.")
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            raise KeyError
        document["time"] = as_number(document["time"], "time", above=0)
        for line in document["measures"]:
            line |= {name: np.nan if line[name] is None else float(line[name]) for name in NUMBERS}
            line |= {name: str(line[name]) for name in ("measure", "outcome", "model")}
        document |= {name: int(document[name]) for name in ("subjects", "events")}
        document |= {name: str(document[name]) for name in ("site", "time unit")}
        document["last follow-up"] = float(document["last follow-up"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidInputError(f"sites: {which}: got another document, {expected}.") from error
    found: dict[str, Any] = document
    return found


def _pooled(summaries: dict[str, dict[str, Any]], confidence: float) -> SitePool:
    if not summaries:
        raise InvalidInputError("sites: got none, expected summaries of at least one site.")
    times = {f"{s['time']:g} {s['time unit']}".strip() for s in summaries.values()}
    if len(times) > 1:
        raise InvalidInputError(
            f"sites: got risks by {some_of(sorted(times))}, expected one time for all sites."
        )
    time, notes = next(iter(summaries.values()))["time"], list[str]()
    short = [site for site, s in summaries.items() if s["last follow-up"] < time]
    if short:
        notes.append(
            f"Follow-up ends before {time:g} at {some_of(short)}: what needs it does not count there."
        )
    for site, s in summaries.items():
        lacking = [
            m["measure"] for m in s["measures"] if m["measure"] in POOLED and m["scaled"] != m["scaled"]
        ]
        if lacking and site not in short:
            notes.append(f"{one_line(site)} does not count for {some_of(sorted(set(lacking)))}.")
    count = len(summaries)
    if count < FEWEST:
        notes.append(f"{count} sites: nothing is pooled below {FEWEST}.")
    elif count < FEW:
        notes.append(
            f"{count} sites: how much sites differ is hardly known below {FEW}, so intervals are wide."
        )
    return SitePool(summaries, time, confidence, notes)
