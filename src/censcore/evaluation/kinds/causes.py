r"""Competing risks: scores of all causes together, of each, and of any.

A score is of one *outcome*: all causes (time and cause), one of them (:math:`T_j`, infinite if the cause is
another), or any cause (T). Names say which: ``crps[all causes]``, ``crps[death]``, ``crps[any cause]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_list
from censcore.distributions import Distribution
from censcore.estimators import AalenJohansen, as_competing_forecast
from censcore.estimators.libraries.competing_risks_adapters import predicts_times_apart
from censcore.evaluation.decisions.asked import Asked, check_one_time
from censcore.evaluation.decisions.forecast_columns import ColumnForecast
from censcore.evaluation.decisions.forecasts import AALEN_JOHANSEN
from censcore.evaluation.decisions.horizon import LEVELS, default_levels
from censcore.evaluation.decisions.notes import notes_on_events
from censcore.evaluation.kinds.kind import Kind
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CASE_SCORES, CaseScore
from censcore.evaluation.measures.joint_scores import Energy, OfView, OverCauses, View, of_one_cause
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import CompetingRisks, as_competing_risks
from censcore.plain_text import some_values
from censcore.scores import energy_score, registry

ALL_CAUSES, ANY_CAUSE = "all causes", "any cause"
#: Pictures that there are of all causes together; the others show the risk of one event.
OF_ALL = ("brier", "differences", "censoring")


@dataclass(frozen=True)
class CauseView(View):
    """One cause, from 1; any of them, 0; all of them together, None."""

    number: int | None

    def of(self, case: Case) -> Case:
        """The event of the cause; events of other causes mean that it never comes."""
        number = self.number
        if number is None:
            return case
        y = case.whole.cause(number) if number else case.y
        part = case.of_forecasts(lambda F: F.cause(number) if number else F.any_cause())
        return replace(part, y=y, whole=None)


@dataclass(frozen=True, eq=False)
class Causes(Kind):
    """The time and the cause of an event; the names of y are those of the causes."""

    names: tuple[str, ...] | None = None  #: as they were asked for, or settled

    whole: ClassVar[str] = ALL_CAUSES
    whole_of: ClassVar[str] = "causes"
    reference: ClassVar[str] = AALEN_JOHANSEN

    # ---- the outcome -----------------------------------------------------------------------------------

    @classmethod
    def settle(cls, asked: Asked) -> tuple[Self, Asked]:
        """The outcome; its names are settled once the forecasts are known."""
        check_one_time(asked, "events")
        names = asked.names
        names = None if names is None else tuple(map(str, as_list(names, "names", "names of causes")))
        return cls(cls.read_outcome(asked.sample.y), names), asked

    @classmethod
    def read_outcome(cls, y: Any) -> Any:
        """Competing risks."""
        return in_numpy(as_competing_risks(y))

    def read_training(self, train: Sample, notes: list[str]) -> Sample:
        """Training subjects, whose outcome must have causes."""
        try:
            return super().read_training(train, notes)
        except (InvalidInputError, InvalidTypeError) as error:
            raise type(error)(
                f"train: got {type(train.y).__name__} for the outcome of the training subjects, expected "
                "CompetingRisks(time, cause) as that of the scored subjects: the reference and the default "
                f"levels are estimated from their causes. ({error})"
            ) from error

    def events_of(self, y: Any) -> Any:
        """The first event of any cause; a case has all of them beside it."""
        return y.any_cause()

    def of_subjects(self, y: Any) -> Self:
        """With the names that were settled before."""
        outcome = self.read_outcome(y)
        return replace(self, y=outcome if self.names is None else outcome.with_names(self.names))

    def parts(self, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Times and causes."""
        return [(to_numpy(y.time), to_numpy(y.causes))]

    def of_parts(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], entry: Any) -> Any:
        """Competing risks."""
        ((time, cause),) = parts
        names = self.y.names if self.names is None and _is_named(self.y.names) else self.names
        return CompetingRisks(time, cause, entry=entry, names=names)

    def named(self, forecasts: Mapping[str, Any], train: Sample | None) -> tuple[Self, Sample | None]:
        """Both outcomes with the same causes: as named, or as many as any of them, or of the forecasts, has.

        A cause that did not happen to any of the scored subjects is still one.
        """
        outcomes = {"y": self.y} | ({} if train is None else {"train": train.y})
        named = (
            [y.names for y in outcomes.values() if _is_named(y.names)] if self.names is None else [self.names]
        )
        m = max([*(y.n_causes for y in outcomes.values()), *(F.n_causes for F in forecasts.values())])
        chosen = named[0] if named else tuple(f"cause {j + 1}" for j in range(m))
        for what, y in outcomes.items():
            differs = _is_named(y.names) and y.names != chosen and self.names is None
            if differs or y.n_causes > len(chosen):
                raise InvalidInputError(
                    f"{what}: got the causes {', '.join(y.names)}, expected {', '.join(chosen)}, the same "
                    "causes in the same order for scored and training subjects."
                )
        if len({*chosen, ALL_CAUSES, ANY_CAUSE}) != len(chosen) + 2:
            raise InvalidInputError(
                f"names: got {some_values(chosen)}, expected different names of causes, none of them "
                f"{ALL_CAUSES!r} or {ANY_CAUSE!r}, which name outcomes of a comparison."
            )

        def renamed(y: CompetingRisks) -> CompetingRisks:
            return y if y.names == chosen else y.with_names(chosen)

        return replace(self, y=renamed(self.y), names=chosen), train and replace(train, y=renamed(train.y))

    # ---- forecasts -------------------------------------------------------------------------------------

    def as_forecast(self, forecast: Any, X: Any, n: int, train: Any = None) -> Distribution:
        """A distribution of time and cause."""
        F = as_competing_forecast(forecast, X, repair=predicts_times_apart(forecast))
        if len(F) not in (1, n):
            raise InvalidInputError(f"got forecasts of {len(F)} subjects, expected {n}, or one for all.")
        return F

    def check(self, name: str, F: Any) -> Any:
        """The forecast, if its causes are those of the outcome; one without names takes them."""
        y = self.y
        if F.n_causes != y.n_causes:
            raise InvalidInputError(
                f"Forecast {name!r}: got cumulative incidences of {F.n_causes} "
                f"cause{'s' * (F.n_causes > 1)}, expected {y.n_causes} ({', '.join(y.names)}), one for "
                "every cause of the outcome."
            )
        if F.names == y.names:
            return F
        if _is_named(F.names):
            hint = " The order differs." if set(F.names) == set(y.names) else ""
            raise InvalidInputError(
                f"Forecast {name!r}: got the causes {', '.join(F.names)}, expected {', '.join(y.names)}, as "
                f"the outcome has them.{hint} Pass names={list(y.names)} to the forecast if they mean "
                "the same."
            )
        return F.replaced(names=y.names)

    def of_columns(self, forecast: ColumnForecast, frame: Any) -> ColumnForecast:
        """Cumulative incidences of these causes."""
        return forecast.of_causes(self.y, frame)

    def timed(self, F: Any) -> Any:
        """Of the event of any cause."""
        return F.any_cause()

    def reference_model(self, train: Any) -> Any:
        """The Aalen-Johansen estimate."""
        return AalenJohansen()

    def for_others(self, y: Any) -> Any:
        """A frame with columns event and duration, as hazardous takes it."""
        import pandas as pd

        return pd.DataFrame({"event": to_numpy(y.causes), "duration": to_numpy(y.time)})

    # ---- what is scored --------------------------------------------------------------------------------

    @property
    def views(self) -> Sequence[CauseView]:
        """All causes together, each cause, and any cause."""
        each = (CauseView(name, j) for j, name in enumerate(self.y.names, start=1))
        return [CauseView(ALL_CAUSES, None), *each, CauseView(ANY_CAUSE, 0)]

    @property
    def ranked(self) -> list[str]:
        """Each cause, and the first event of any."""
        return [*self.y.names, ANY_CAUSE]

    def possible_scores(self, base: str, named: bool) -> list[CaseScore]:
        """Of all causes together where it has such a score, of each cause, and of any.

        The log score of one cause, which depends on the censoring distribution, must be named.
        """
        info, score = registry.SCORES.get(base), CASE_SCORES.get(base)
        if info is not None and info.function is energy_score:
            return [Energy(info, outcome=ALL_CAUSES)]
        if score is None:
            return []
        (whole, *each, any_cause), of_one = self.views, of_one_cause(score)
        possible: list[CaseScore] = []
        if score.info.causes is not None:
            title = score.info.title.replace("binomial", "multinomial")
            summed = score.info.causes == "sum"
            kind = partial(OverCauses.score, parts=(any_cause, *each)) if summed else OfView.score
            possible.append(kind(score, whole, title))
        if named or of_one is score:
            possible += [OfView.score(of_one, view) for view in each]
        return [*possible, OfView.score(score, any_cause)]

    def case(self, F: Any, C: Distribution, *where: Any, **beside: Any) -> Case:
        """The outcome of any cause, with all causes beside it."""
        return super().case(F, C, *where, whole=self.y, **beside)

    def levels(self, sample: Sample, horizon: float) -> np.ndarray | None:
        """Levels that every cause reaches by the horizon, so that its quantiles are not all infinite."""
        risks = sample.y
        if len(np.unique(risks.causes[risks.causes > 0])) < risks.n_causes:  # a cause that nobody has
            return LEVELS[:1]
        curves = AalenJohansen().fit(None, risks, sample.weight).predict_distribution()
        return default_levels(float(curves.cif(np.nextafter(horizon, 0.0)).min()))

    # ---- reporting -------------------------------------------------------------------------------------

    def notes_on_events(
        self, horizon: float, weight: np.ndarray, groups: np.ndarray | None, train: Sample | None
    ) -> list[str]:
        """Too few events of a cause to tell forecasts of it apart."""
        return [
            f"{name}: {note}"
            for j, name in enumerate(self.y.names, start=1)
            for note in notes_on_events(self.y.cause(j), horizon, weight, groups, None)
        ]

    def settings(self, count: np.ndarray | None = None) -> dict[str, Any]:
        """Events by cause."""
        events = np.bincount(to_numpy(self.y.causes), count, minlength=self.y.n_causes + 1)
        return {"events by cause": dict(zip(self.y.names, events[1:].astype(int).tolist(), strict=True))}

    def pictured(self, picture: str, scored: set[str]) -> list[str]:
        """One picture per cause, and of any and all causes where there are such."""
        if picture in ("differences", "censoring"):
            return [""]
        each = list(self.y.names)
        return {"brier": self.outcomes, "d-calibration": [ANY_CAUSE, *each]}.get(picture, each)

    def not_pictured(self, picture: str, outcome: str) -> str:
        """Most pictures show the risk of one event."""
        if picture in OF_ALL or outcome != ALL_CAUSES:
            return ""
        return (
            f"{picture}: got outcome={ALL_CAUSES!r}, expected a cause ({', '.join(self.y.names)}) or "
            f"{ANY_CAUSE!r}: it shows the risk of one event."
        )


def _is_named(names: Sequence[str]) -> bool:
    return any(name != f"cause {j}" for j, name in enumerate(names, start=1))
