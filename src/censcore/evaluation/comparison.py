"""The result of a comparison: tables, tests, pictures and a page."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.catalogue import Case, Score
from censcore.evaluation.diagnostic import CensoringDiagnostic, censoring_diagnostic
from censcore.evaluation.discrimination import Discrimination, discriminate
from censcore.evaluation.inference import Estimate, adjust, normal_interval, two_sided
from censcore.evaluation.law_of_c import LawOfC
from censcore.evaluation.losses import Losses, Means, Subset, estimate_means, score_all
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
        Everything that was decided: horizon, times, levels, the law of C, how errors were found.
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

    scores: list[Score]
    losses: Losses
    means: Means
    cases: dict[str, Case]
    subsets: list[Subset]
    law: LawOfC
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
            "law of C": self.law.description,
            "standard errors": self.means.method,
            "groups": None if self.groups is None else int(self.groups.max()) + 1,
            "reference": self.reference,
            "confidence": self.confidence,
            "seed": self.seed,
            "censcore": version("censcore"),
        }

    @cached_property
    def censoring(self) -> CensoringDiagnostic:
        """How far the law of C can be trusted."""
        return censoring_diagnostic(self._case.y, self.law.law, self.X, horizon=self.horizon)

    # ---- tables ----------------------------------------------------------------------------------

    def estimate(self, model: str, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence, None where the score is not available."""
        return self.means.values.get((subset, model, score))

    def curve(
        self, score: Score, *, times: np.ndarray | None = None, levels: np.ndarray | None = None
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
            self.law,
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
        ``standard_error``, ``low``, ``high``, ``rank``, ``skill`` with its ``skill_standard_error``,
        ``infinite`` (how many losses are), ``proper`` (False for concordance and AUC, which are descriptive
        and of which more is better) and ``note``.
        """
        lines = [line for s in range(len(self.subsets)) for line in self._score_lines(s)]
        if discrimination and self.discrimination:
            lines += self._discrimination_lines()
        return _pandas().DataFrame(lines)

    def _score_lines(self, s: int) -> list[dict[str, Any]]:
        lines = []
        for score in self.scores:
            for j, at in enumerate(score.at(self._case)):
                found = {m: _column(self.estimate(m, score.name, s), j) for m in self.models}
                lines += self._one_block(s, score, j, float(at), found)
        return lines

    def _one_block(
        self, s: int, score: Score, j: int, at: float, found: dict[str, Estimate | None]
    ) -> list[dict[str, Any]]:
        ranks = _ranks({m: e.value[0] for m, e in found.items() if e is not None})
        against = None if self.reference is None else found.get(self.reference)
        lines = []
        for model, estimate in found.items():
            line = self._line(s, score.name, at, model)
            if estimate is None:
                line["note"] = "not available"
            else:
                line |= self._numbers(estimate)
                line["rank"] = ranks[model]
                line["infinite"] = self._infinite(s, model, score.name, j)
                if against is not None:
                    # a score that may be negative has no ratio that means anything
                    line |= self._skill(estimate, against, model) if score.name != "log_score" else {}
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
        blank = ("mean", "standard_error", "low", "high", "rank", "skill", "skill_standard_error")
        line |= dict.fromkeys(blank, np.nan)
        return line | {"n": int((subset.weight > 0).sum()), "infinite": 0, "proper": True, "note": ""}

    def _numbers(self, estimate: Estimate) -> dict[str, float]:
        error = estimate.standard_error
        low, high = normal_interval(estimate.value, error, self.confidence)
        numbers = (estimate.value, error, low, high)
        return dict(
            zip(("mean", "standard_error", "low", "high"), (float(x[0]) for x in numbers), strict=True)
        )

    def _skill(self, estimate: Estimate, against: Estimate, model: str) -> dict[str, float]:
        skill = estimate.skill(against)
        error = 0.0 if model == self.reference else float(skill.standard_error[0])
        return {"skill": float(skill.value[0]), "skill_standard_error": error}

    def _infinite(self, s: int, model: str, score: str, j: int) -> int:
        counted = self.subsets[s].weight > 0
        return int(np.isinf(self.losses.values[model, score][counted, j]).sum())

    @cached_property
    def _discrimination(self) -> Discrimination:
        """Concordance and AUC with their influences."""
        return discriminate(
            self.cases, self.subsets, self.law, self.groups, self.train_groups, self.refits, self.seed
        )

    def _interval_of_share(self, estimate: Estimate) -> dict[str, float]:
        """An interval within [0, 1], normal on the logit scale."""
        share = estimate.value
        with np.errstate(divide="ignore", invalid="ignore"):
            logit, error = np.log(share / (1 - share)), estimate.standard_error / (share * (1 - share))
            ends = normal_interval(logit, error, self.confidence)
            low, high = (float(1 / (1 + np.exp(-end[0]))) for end in ends)
        return {"low": low, "high": high}

    def _discrimination_lines(self) -> list[dict[str, Any]]:
        lines = []
        for s, k in product(range(len(self.subsets)), range(len(self._discrimination.measures))):
            measure = self._discrimination.measures[k]
            found = {model: self._discrimination.values.get((s, model, k)) for model in self.models}
            ranks = _ranks({model: -e.value[0] for model, e in found.items() if e is not None})
            for model, estimate in found.items():
                line = self._line(s, measure.name, measure.at, model) | {"proper": False}
                if estimate is None:
                    line["note"] = f"not available: {self._discrimination.unavailable[s, model, k]}"
                else:
                    line |= self._numbers(estimate) | self._interval_of_share(estimate)
                    line |= {"rank": ranks[model], "note": DESCRIPTIVE}
                    if np.isnan(line["standard_error"]) and not np.isnan(line["mean"]):
                        line["note"] += NO_ERROR
                lines.append(line)
        return lines

    def differences(self, adjustment: str = "max-t", discrimination: bool = True) -> pd.DataFrame:
        """Paired differences between all forecasts, over the same subjects.

        Parameters
        ----------
        adjustment : {"max-t", "holm", "none"}
            How p-values and intervals are made to hold for all pairs of one line (one score at one time or
            level in one subset) together. ``"max-t"`` takes the joint law of the differences from their
            influences.
        discrimination : bool
            Also give the differences of concordance and AUC, where the comparison has them.

        Returns
        -------
        DataFrame
            ``difference`` is the value of ``model`` minus that of ``versus``. Where ``better`` is "lower"
            (all scores), a negative difference favours ``model``; where it is "higher" (concordance and AUC,
            which are descriptive and not ``proper``), a negative difference favours ``versus``.
            ``p_value`` is for each pair alone, ``p_adjusted``, ``low`` and ``high`` for all pairs together.
        """
        lines = []
        for s in range(len(self.subsets)):
            for score in self.scores:
                for j, at in enumerate(score.at(self._case)):
                    found = {m: _column(self.estimate(m, score.name, s), j) for m in self.models}
                    lines += self._pairs(s, score.name, float(at), found, adjustment)
            if discrimination and self.discrimination:
                for k, measure in enumerate(self._discrimination.measures):
                    found = {m: self._discrimination.values.get((s, m, k)) for m in self.models}
                    lines += self._pairs(s, measure.name, measure.at, found, adjustment, proper=False)
        return _pandas().DataFrame(lines)

    def _pairs(
        self,
        s: int,
        score: str,
        at: float,
        found: dict[str, Estimate | None],
        adjustment: str,
        proper: bool = True,
    ) -> list[dict[str, Any]]:
        known = {m: e for m, e in found.items() if e is not None}
        pairs = {(a, b): known[a] - known[b] for a, b in combinations(known, 2)}
        if not pairs:
            return []
        together = adjust(list(pairs.values()), adjustment, self.confidence, self.seed)
        lines = []
        for ((a, b), difference), p in zip(pairs.items(), together.p_value, strict=True):
            value, error = float(difference.value[0]), float(difference.standard_error[0])
            with np.errstate(divide="ignore", invalid="ignore"):
                alone = float(two_sided(np.array(value / error))) if error > 0 else float(p)
            subset = self.subsets[s]
            lines.append(
                {
                    "by": subset.by,
                    "group": subset.label,
                    "score": score,
                    "at": at,
                    "model": a,
                    "versus": b,
                    "difference": value,
                    "standard_error": error,
                    "p_value": alone,
                    "p_adjusted": float(p),
                    "low": value - together.critical * error,
                    "high": value + together.critical * error,
                    "better": "lower" if proper else "higher",
                    "proper": proper,
                }
            )
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
            ``"censoring"``: the law of C and the weights of the events.
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
        from censcore.evaluation.tables import text_of

        return text_of(self)


DESCRIPTIVE = "descriptive, not proper"
NO_ERROR = "; the pairs, all won, all lost, or all with one subject in common, do not show its error"
CURVE_REFITS = 25  # of the law of C for the bands of a curve, where it needs them


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
