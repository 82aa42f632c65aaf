"""A comparison whose scores are of several outcomes: event times, joint events, or competing causes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from censcore.evaluation.calibration import CalibrationCurve
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CASE_SCORES, CaseScore
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.discrimination import Discrimination, Measure
from censcore.evaluation.losses import Losses, shares_of
from censcore.evaluation.pair_statistics import Pairs
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.evaluation.tables import Line
from censcore.exceptions import InvalidTypeError
from censcore.plain_text import one_line

if TYPE_CHECKING:
    import pandas as pd

    from censcore.evaluation.charts import Chart

__all__ = ["MeasureOf", "SeveralOutcomes"]


@dataclass(frozen=True, repr=False, eq=False)
class SeveralOutcomes(Comparison):
    """What comparisons of several outcomes have in common: tables name the outcome, :meth:`of` picks one."""

    @property
    @abstractmethod
    def outcomes(self) -> list[str]:
        """The outcomes that scores may be of."""

    @property
    @abstractmethod
    def ranked(self) -> list[str]:
        """The outcomes that have concordance and AUC."""

    @abstractmethod
    def _of(self, outcome: str) -> Comparison:
        """The comparison of one outcome."""

    def _default_outcome(self, kind: str) -> str:
        """The outcome that a picture of some kind shows where none is named."""
        return self.ranked[0]

    def of(self, outcome: str) -> Comparison:
        """The comparison of one outcome, as if it were the only one.

        Parameters
        ----------
        outcome : str
            One of :attr:`outcomes`; of joint events only "either" and "both" ("any", "all" for more than
            two), where all event times share their censoring time.

        Returns
        -------
        Comparison
            With the scores of this outcome, and all plots.
        """
        if not isinstance(outcome, str):
            raise InvalidTypeError(
                f"outcome: got {type(outcome).__name__}, expected one of {', '.join(self.outcomes)}."
            )
        if outcome not in self._parts:
            self._parts[outcome] = self._of(outcome)
        return self._parts[outcome]

    @cached_property
    def _parts(self) -> dict[str, Comparison]:
        return {}

    def _part(
        self, outcome: str, cases: dict[str, Case], counted: np.ndarray | None, resolved: ResolvedCensoring
    ) -> Comparison:
        """What was found of one outcome, by the names that its scores have where there is one event time."""
        plain = {score.name: _plain(score) for score in self.scores if score.outcome == outcome}

        def renamed(values: dict[Any, Any]) -> dict[Any, Any]:
            known = ((key, value) for key, value in values.items() if key[-1] in plain)
            return {(*key[:-1], plain[key[-1]].name): value for key, value in known}

        scores = list(plain.values())
        subsets = [replace(s, weight=shares_of(s.weight[:, None], counted)[:, 0]) for s in self.subsets]
        return Comparison(
            scores=scores,
            losses=Losses(renamed(self.losses.values), renamed(self.losses.unavailable), scores),
            means=replace(self.means, values=renamed(self.means.values)),
            cases=cases,
            subsets=subsets,
            resolved_censoring=resolved,
            X=self.X,
            groups=self.groups,
            train_groups=self.train_groups,
            refits=self.refits,
            reference=self.reference,
            confidence=self.confidence,
            discrimination=self.discrimination and outcome in self.ranked,
            seed=self.seed,
            notes=self.notes,
            time_unit=self.time_unit,
        )

    def chart(self, kind: str, **options: Any) -> Chart:
        """What :meth:`plot` draws, as data; of one outcome, by default the first that has such a picture.

        Parameters
        ----------
        kind : str
            As in :meth:`Comparison.plot`; "differences" shows all outcomes.
        **options
            ``outcome=`` names an outcome; others are those of the plot.

        Returns
        -------
        Chart
            Panels with curves, bars and intervals in the coordinates of the data.
        """
        if kind == "differences" and "outcome" not in options:
            return super().chart(kind, **options)
        outcome = options.pop("outcome", None) or self._default_outcome(kind)
        found = self.of(outcome).chart(kind, **options)
        return replace(found, title=f"{one_line(outcome)}: {found.title}")

    def calibration(
        self,
        model: str,
        time: float | None = None,
        bins: int | None = None,
        span: float = 0.75,
        outcome: str | None = None,
    ) -> CalibrationCurve:
        """See :meth:`Comparison.calibration`; of one outcome, by default the first event time or cause.

        Parameters
        ----------
        model, time, bins, span
            As in :meth:`Comparison.calibration`.
        outcome : str, optional
            One of :attr:`outcomes` that has a risk of one event.

        Returns
        -------
        CalibrationCurve
        """
        part = self.of(self._default_outcome("calibration") if outcome is None else outcome)
        return part.calibration(model, time, bins, span)

    def net_benefit(
        self, time: float | None = None, thresholds: Any = None, outcome: str | None = None
    ) -> pd.DataFrame:
        """See :meth:`Comparison.net_benefit`; of one outcome, by default the first event time or cause.

        Parameters
        ----------
        time, thresholds
            As in :meth:`Comparison.net_benefit`.
        outcome : str, optional
            One of :attr:`outcomes` that has a risk of one event.

        Returns
        -------
        DataFrame
        """
        part = self.of(self._default_outcome("decision") if outcome is None else outcome)
        return part.net_benefit(time, thresholds)

    def shown(self, lines: list[Line]) -> list[Line]:
        """Lines with the outcome in a column, and how many subjects are followed for it."""
        scored: dict[str, Any] = {score.name: score for score in self.scores}
        if self.discrimination:
            scored |= {measure.name: measure for measure in self.pair_measures.measures}
        labels = {(subset.by, subset.label): subset.weight > 0 for subset in self.subsets}
        found = []
        for line in lines:
            score, name = scored[line["score"]], line["score"]
            base = name.removesuffix(f"[{score.outcome}]")
            new: Line = {}
            for key, value in line.items():
                new |= {"score": base, "outcome": score.outcome} if key == "score" else {key: value}
            counted = self._counted(score)
            if "n" in new and counted is not None:
                new["n"] = int((labels[line["by"], line["group"]] & counted).sum())
            found.append(new)
        return found

    def _counted(self, score: CaseScore | MeasureOf) -> np.ndarray | None:
        """The subjects that are followed for the outcome of a score; None for all."""
        return score.counted(self._case) if isinstance(score, CaseScore) else None

    @cached_property
    def pair_measures(self) -> Discrimination:
        """Concordance and AUC of every outcome that has them, with their influences."""
        found = Discrimination([])
        for name in self.ranked:
            part = self.of(name).pair_measures
            first = len(found.measures)
            found.measures.extend(MeasureOf.of(measure, name) for measure in part.measures)
            found.values.update({(s, m, first + k): e for (s, m, k), e in part.values.items()})
            found.unavailable.update({(s, m, first + k): e for (s, m, k), e in part.unavailable.items()})
        return found


@dataclass(frozen=True)
class MeasureOf(Measure):
    """Concordance or AUC of one of several outcomes."""

    name: ClassVar[str] = ""
    title: ClassVar[str] = ""
    base: Any = None
    outcome: str = ""

    @classmethod
    def of(cls, base: Measure, outcome: str) -> MeasureOf:
        """The measure, with the outcome in its name and title."""
        made = cls(base.at_time, base, outcome)
        for key, value in {
            "name": f"{base.name}[{outcome}]",
            "title": f"{base.title}, {outcome}",
            "axis": base.axis,
        }.items():
            object.__setattr__(made, key, value)
        return made

    def pairs(self, case: Case, subjects: np.ndarray) -> Pairs:
        """The pairs of the measure."""
        pairs: Pairs = self.base.pairs(case, subjects)
        return pairs


def _plain(score: CaseScore) -> CaseScore:
    """A score of one outcome without its name; the Brier score of a joint event stays what it is."""
    base: CaseScore | None = getattr(score, "base", None)
    return CASE_SCORES.get(score.name.partition("[")[0], score) if base is None else base
