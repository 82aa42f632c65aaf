"""The result of a comparison: tables, tests, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.case_scores import Case, CaseScore
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.discrimination import Discrimination, Measure, discriminate
from censcore.evaluation.inference import MINIMUM_EVENTS, Estimate, adjust, effective_number, skill_interval
from censcore.evaluation.losses import Losses, Means, Subset, estimate_means, score_all
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.exceptions import InvalidInputError, MissingDependencyError
from censcore.outcomes import RightCensored

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Comparison"]


@dataclass(frozen=True, repr=False)
class Comparison:
    """What :func:`compare` found.

    Attributes
    ----------
    horizon : float
        End of the comparison.
    settings : dict
        Everything that was decided: horizon, times, levels, the censoring distribution, how errors were found.
    notes : list of str
        What a reader should know: scores that are not available, infinite losses, missing parts.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0, 4.0], event=[1, 1, 0, 1])
    >>> fast, slow = cs.Exponential(1.0), cs.Exponential(0.3)
    >>> comparison = cs.compare({"fast": fast, "slow": slow}, y, cs.Uniform(0.0, 5.0), scores="crps")
    >>> comparison.differences(discrimination=False)[["model", "versus", "difference"]].round(3)
      model versus  difference
    0  fast   slow       0.749
    """

    scores: list[CaseScore]
    losses: Losses
    means: Means
    cases: dict[str, Case]
    subsets: list[Subset]
    resolved_censoring: ResolvedCensoring
    X: Any
    groups: np.ndarray | None
    train_groups: np.ndarray | None
    refits: int
    reference: str | None
    confidence: float
    discrimination: bool
    seed: int
    notes: list[str] = field(default_factory=list)

    @property
    def models(self) -> list[str]:
        """Names of the forecasts, the reference last where it was added."""
        return list(self.cases)

    @property
    def _case(self) -> Case:
        return next(iter(self.cases.values()))

    @property
    def outcome(self) -> RightCensored:
        """What happened."""
        return self._case.y

    @property
    def horizon(self) -> float:
        """End of the comparison."""
        return self._case.horizon

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        from importlib.metadata import version

        case = self._case
        return {
            "rows": len(case.y),
            "events": int(to_numpy(case.y.event).sum()),
            "horizon": self.horizon,
            "times": case.times.tolist(),
            "levels": case.levels.tolist(),
            "scores": [score.name for score in self.scores],
            "censoring distribution": self.resolved_censoring.description,
            "standard errors": self.means.method,
            "groups": None if self.groups is None else int(self.groups.max()) + 1,
            "reference": self.reference,
            "confidence": self.confidence,
            "seed": self.seed,
            "censcore": version("censcore"),
        }

    @cached_property
    def censoring(self) -> CensoringDiagnostic:
        """How far the censoring distribution can be trusted."""
        return censoring_diagnostic(
            self._case.y,
            self.resolved_censoring.distribution,
            self.X,
            horizon=self.horizon,
            sample_weight=self.subsets[0].weight,
            groups=self.groups,
            seed=self.seed,
        )

    # ---- tables ----------------------------------------------------------------------------------

    def estimate(self, model: str, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence, None where the score is not available."""
        return self.means.values.get((subset, model, score))

    def curve(
        self, score: CaseScore, *, times: np.ndarray | None = None, levels: np.ndarray | None = None
    ) -> dict[str, Estimate]:
        """Means of a score at other times or levels, over all rows, by model; where it is available."""
        cases = {
            model: replace(
                case,
                times=case.times if times is None else times,
                levels=case.levels if levels is None else levels,
            )
            for model, case in self.cases.items()
        }
        means = estimate_means(
            score_all(cases, [score]),
            cases,
            self.subsets[:1],
            self.resolved_censoring,
            self.groups,
            self.train_groups,
            refits=min(self.refits, CURVE_REFITS),
            seed=self.seed,
        )
        found = {model: means.values.get((0, model, score.name)) for model in self.models}
        return {model: estimate for model, estimate in found.items() if estimate is not None}

    def frame(self, discrimination: bool = True) -> pd.DataFrame:
        """One line per subset, score, time or level, and model.

        Columns: ``by`` and ``group`` (the subset), ``score``, ``at`` (time or level), ``model``, ``mean``,
        ``standard_error``, ``low``, ``high``, ``rank``, ``skill`` with ``skill_standard_error``,
        ``skill_low`` and ``skill_high``, ``events`` (the effective number that the line rests on),
        ``infinite`` (how many losses are), ``proper`` (False for concordance and AUC, which are descriptive
        and of which more is better; their intervals are within [0, 1]) and ``note``.

        Where a line rests on fewer than five effective events, the note says "cannot tell", and there is no
        standard error, interval or rank: see :meth:`effective_events`.
        """
        lines = [line for s in range(len(self.subsets)) for line in self._score_lines(s)]
        if discrimination and self.discrimination:
            lines += self._discrimination_lines()
        return _pandas().DataFrame(lines)

    def _score_lines(self, s: int) -> list[dict[str, Any]]:
        lines = []
        for score in self.scores:
            events = self.effective_events(score, s)
            for j, at in enumerate(score.at(self._case)):
                found = {m: _column(self.estimate(m, score.name, s), j) for m in self.models}
                lines += self._one_block(s, score, j, float(at), float(events[j]), found)
        return lines

    def effective_events(
        self, score: CaseScore | Measure, s: int = 0, times: np.ndarray | None = None
    ) -> np.ndarray:
        r"""How many events the mean of a score rests on, for each of its times or levels, (q,).

        A score of a time t rests on the events by t and on the subjects followed beyond t, whichever are
        fewer; a pinball score on the events before the largest of the forecast quantiles; any other score on
        the events before the horizon. They are counted by Kish's effective number :math:`(\sum w)^2/\sum
        w^2`, over clusters by their total weights where there are ``groups``.

        Without events all forecasts of a small risk look alike and certain: the losses hardly vary, whatever
        the risk is. So below five effective events a comparison says "cannot tell".

        Parameters
        ----------
        score : CaseScore
            One of ``self.scores``.
        s : int
            Number of the subset, 0 for all subjects.
        times : array, optional
            Other times, for a score of times.

        Returns
        -------
        array, (q,)
        """
        case, weight = self._case, self.subsets[s].weight
        case = case if times is None else replace(case, times=times)
        time, event = to_numpy(case.y.time)[:, None], to_numpy(case.y.event)[:, None]
        if score.axis == "level":
            until = np.max([of.quantiles for of in self.cases.values()], axis=0)
        else:
            until = np.minimum(np.nan_to_num(score.at(case), nan=self.horizon), self.horizon)[None, :]
        found = _effective(event & (time <= until), weight, self.groups)
        if score.axis == "time":
            found = np.minimum(
                found, _effective(np.broadcast_to(time > until, (len(time), len(found))), weight, self.groups)
            )
        return found

    def _one_block(
        self, s: int, score: CaseScore, j: int, at: float, events: float, found: dict[str, Estimate | None]
    ) -> list[dict[str, Any]]:
        ranks = _ranks({m: e.value[0] for m, e in found.items() if e is not None})
        against = None if self.reference is None else found.get(self.reference)
        lines = []
        for model, estimate in found.items():
            line = self._line(s, score.name, at, model) | {"events": events}
            if estimate is None:
                line["note"] = "not available"
            else:
                line |= self._numbers(estimate) | {"rank": ranks[model]}
                line["infinite"] = self._infinite(s, model, score.name, j)
                if against is not None and score.info.has_skill:
                    line |= self._skill(estimate, against, model)
                if events < MINIMUM_EVENTS:
                    line |= dict.fromkeys(UNTOLD, np.nan) | {"note": cannot_tell(events)}
            lines.append(line)
        return lines

    def _line(self, s: int, score: str, at: float, model: str) -> dict[str, Any]:
        subset = self.subsets[s]
        line: dict[str, Any] = {
            "by": subset.by,
            "group": subset.label,
            "score": score,
            "at": at,
            "model": model,
        }
        line |= dict.fromkeys(NUMBERS, np.nan)
        return line | {"n": int((subset.weight > 0).sum()), "infinite": 0, "proper": True, "note": ""}

    def _numbers(self, estimate: Estimate) -> dict[str, float]:
        low, high = estimate.interval(self.confidence)
        error = np.where(estimate.varies, estimate.standard_error, np.nan)
        numbers = (estimate.value, error, low, high)
        return dict(
            zip(("mean", "standard_error", "low", "high"), (float(x[0]) for x in numbers), strict=True)
        )

    def _skill(self, estimate: Estimate, against: Estimate, model: str) -> dict[str, float]:
        if model == self.reference:  # against itself nothing is uncertain
            return dict.fromkeys(("skill", "skill_standard_error", "skill_low", "skill_high"), 0.0)
        skill = estimate.skill(against)
        error = float(skill.standard_error[0]) if skill.varies[0] else np.nan
        low, high = skill_interval(estimate, against, self.confidence)
        return {
            "skill": float(skill.value[0]),
            "skill_standard_error": error,
            "skill_low": low,
            "skill_high": high,
        }

    def _infinite(self, s: int, model: str, score: str, j: int) -> int:
        counted = self.subsets[s].weight > 0
        return int(np.isinf(self.losses.values[model, score][counted, j]).sum())

    @cached_property
    def _discrimination(self) -> Discrimination:
        """Concordance and AUC with their influences."""
        return discriminate(
            self.cases,
            self.subsets,
            self.resolved_censoring,
            self.groups,
            self.train_groups,
            self.refits,
            self.seed,
        )

    def _discrimination_lines(self) -> list[dict[str, Any]]:
        lines = []
        for s, k in product(range(len(self.subsets)), range(len(self._discrimination.measures))):
            measure = self._discrimination.measures[k]
            events = float(self.effective_events(measure, s)[0])
            found = {model: self._discrimination.values.get((s, model, k)) for model in self.models}
            ranks = _ranks({model: -e.value[0] for model, e in found.items() if e is not None})
            for model, estimate in found.items():
                line = self._line(s, measure.name, measure.at_time, model)
                line |= {"proper": False, "events": events, "note": DESCRIPTIVE}
                if estimate is None:
                    line["note"] = f"not available: {self._discrimination.unavailable[s, model, k]}"
                else:
                    line |= self._numbers_of_share(estimate) | {"rank": ranks[model]}
                    if events < MINIMUM_EVENTS:
                        line |= dict.fromkeys(UNTOLD, np.nan) | {"note": cannot_tell(events)}
                    elif np.isnan(line["standard_error"]) and not np.isnan(line["mean"]):
                        line["note"] += NO_ERROR
                lines.append(line)
        return lines

    def _numbers_of_share(self, estimate: Estimate) -> dict[str, float]:
        """A share of pairs with an interval within [0, 1], from the logit scale."""
        share, error = float(estimate.value[0]), float(estimate.standard_error[0])
        if error == 0:  # a forecast that is the same for everyone ranks nobody, whatever the data
            return {"mean": share, "standard_error": 0.0, "low": share, "high": share}
        with np.errstate(divide="ignore", invalid="ignore"):
            value = estimate.value
            logit = Estimate(np.log(value / (1 - value)), estimate.influence / (value * (1 - value)))
            low, high = (1 / (1 + np.exp(-end[0])) for end in logit.interval(self.confidence))
        return {"mean": share, "standard_error": error, "low": float(low), "high": float(high)}

    def differences(self, adjustment: str = "max-t", discrimination: bool = True) -> pd.DataFrame:
        """Paired differences between all forecasts, over the same subjects.

        Parameters
        ----------
        adjustment : {"max-t", "holm", "none"}
            How p-values and intervals are made to hold for all pairs of one line (one score at one time or
            level in one subset) together. ``"max-t"`` takes the joint distribution of the differences from their
            influences.
        discrimination : bool
            Also give the differences of concordance and AUC, where the comparison has them.

        Returns
        -------
        DataFrame
            ``difference`` is the value of ``model`` minus that of ``versus``. Where ``better`` is "lower"
            (all scores), a negative difference favours ``model``; where it is "higher" (concordance and AUC,
            which are descriptive and not ``proper``), a negative difference favours ``versus``.
            ``p_value`` is for each pair alone, ``p_adjusted``, ``low`` and ``high`` for all pairs together:
            an interval excludes zero if and only if the adjusted p-value is below 1 - confidence (up to the
            noise of the simulation behind "max-t"). p-values are resolved down to 1e-16; smaller ones are
            given as that. With fewer than five effective events they are NaN, and ``note`` says "cannot
            tell".
        """
        lines = []
        for s in range(len(self.subsets)):
            for score in self.scores:
                events = self.effective_events(score, s)
                for j, at in enumerate(score.at(self._case)):
                    found = {m: _column(self.estimate(m, score.name, s), j) for m in self.models}
                    lines += self._pairs(s, score.name, float(at), float(events[j]), found, adjustment)
            if discrimination and self.discrimination:
                for k, measure in enumerate(self._discrimination.measures):
                    of_measure = {m: self._discrimination.values.get((s, m, k)) for m in self.models}
                    number = float(self.effective_events(measure, s)[0])
                    found_pairs = self._pairs(
                        s, measure.name, measure.at_time, number, of_measure, adjustment
                    )
                    lines += [line | {"better": "higher", "proper": False} for line in found_pairs]
        return _pandas().DataFrame(lines)

    def _pairs(
        self,
        s: int,
        score: str,
        at: float,
        events: float,
        found: dict[str, Estimate | None],
        adjustment: str,
    ) -> list[dict[str, Any]]:
        known = {m: e for m, e in found.items() if e is not None}
        pairs = {(a, b): known[a] - known[b] for a, b in combinations(known, 2)}
        if not pairs:
            return []
        together = adjust(list(pairs.values()), adjustment, self.confidence, self.seed)
        lines = []
        for ((a, b), difference), p in zip(pairs.items(), together.p_value, strict=True):
            low, high = difference.interval(together.confidence)
            told = bool(difference.varies[0]) and events >= MINIMUM_EVENTS
            subset = self.subsets[s]
            line = {
                "by": subset.by,
                "group": subset.label,
                "score": score,
                "at": at,
                "model": a,
                "versus": b,
                "difference": float(difference.value[0]),
            }
            numbers = {
                "standard_error": float(difference.standard_error[0]),
                "p_value": float(difference.p_value[0]),
                "p_adjusted": float(p),
                "low": float(low[0]),
                "high": float(high[0]),
            }
            line |= numbers if told else dict.fromkeys(numbers, np.nan)
            note = cannot_tell(events) if events < MINIMUM_EVENTS else ""
            lines.append(line | {"better": "lower", "proper": True, "events": events, "note": note})
        return lines

    # ---- pictures and pages ------------------------------------------------------------------------

    def plot(self, kind: str = "brier", **options: Any) -> Figure:
        """A picture: "brier", "pinball", "differences", "calibration", "murphy" or "censoring".

        Parameters
        ----------
        kind : str
            ``"brier"``: Brier score over time with pointwise bands; ``"pinball"``: pinball score over levels;
            ``"differences"``: paired differences from the reference with simultaneous intervals;
            ``"calibration"``: D-calibration; ``"murphy"``: elementary scores of F(tau) over all thresholds;
            ``"censoring"``: the censoring distribution and the weights of the events.
        **options
            Of the plot, such as ``scale="ipcw"`` or ``time=2.0``.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig(path)`` writes it.
        """
        from censcore.evaluation.plots import PLOTS

        if kind not in PLOTS:
            raise InvalidInputError(f"There is no plot called {kind!r}; there are {', '.join(PLOTS)}.")
        return PLOTS[kind](self, **options)

    def to_html(self, path: str | Path | None = None, title: str = "Comparison of forecasts") -> str:
        """One self-contained page: tables, pictures, the censoring diagnostic and the exact settings.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it.
        title : str
            Of the page.

        Returns
        -------
        str
            The page.
        """
        from censcore.evaluation.report import page

        html = page(self, title)
        if path is not None:
            Path(path).write_text(html, encoding="utf-8")
        return html

    def to_json(self, path: str | Path | None = None) -> str:
        """Settings, means, differences and notes for machines; missing and infinite numbers are strings."""
        import json

        document = {
            "settings": self.settings,
            "means": _records(self.frame()),
            "differences": _records(self.differences()),
            "censoring": self.censoring.to_dict(),
            "notes": self.notes,
        }
        text = json.dumps(_plain(document), indent=2, allow_nan=False)
        if path is not None:
            Path(path).write_text(text + "\n", encoding="utf-8")
        return text

    def __repr__(self) -> str:
        from censcore.evaluation.text import text_of

        return text_of(self)


DESCRIPTIVE = "descriptive, not proper"
NO_ERROR = "; the pairs, all won, all lost, or all with one subject in common, do not show its error"
UNTOLD = ("standard_error", "low", "high", "rank", "skill_standard_error", "skill_low", "skill_high")
NUMBERS = ("mean", *UNTOLD[:4], "skill", *UNTOLD[4:], "events")
CURVE_REFITS = 25  # of the censoring distribution for the bands of a curve, where it needs them


def cannot_tell(events: float) -> str:
    """Why a line has no error, rank or p-value."""
    return f"cannot tell: {events:.3g} effective events, at least {MINIMUM_EVENTS} are needed"


def _effective(counted: np.ndarray, weight: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Effective numbers of the subjects counted in each column, (q,)."""
    return np.array([effective_number(np.where(column, weight, 0.0), groups) for column in counted.T])


def _column(estimate: Estimate | None, j: int) -> Estimate | None:
    return None if estimate is None else Estimate(estimate.value[j : j + 1], estimate.influence[:, j : j + 1])


def _ranks(values: dict[str, float]) -> dict[str, float]:
    """1 for the smallest; ties share the better rank, NaN stays."""
    known = np.array([value for value in values.values() if not np.isnan(value)])
    return {m: float("nan") if np.isnan(v) else 1.0 + float((known < v).sum()) for m, v in values.items()}


def _pandas() -> Any:
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingDependencyError("Tables need pandas: pip install 'censcore[cli]'.") from error
    return pandas


def _records(frame: Any) -> list[dict[str, Any]]:
    return frame.to_dict(orient="records")


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity: None and "inf" stand for them."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value
