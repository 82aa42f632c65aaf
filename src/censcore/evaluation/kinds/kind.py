"""What depends on the kind of an outcome, in one place: everything else asks the kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.estimators import Censoring, KaplanMeier, as_forecast
from censcore.estimators.censoring.censoring_choice import CensoringChoice, choose_censoring
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.forecast_columns import ColumnForecast
from censcore.evaluation.decisions.forecasts import KAPLAN_MEIER
from censcore.evaluation.decisions.notes import notes_on_events
from censcore.evaluation.inference.estimates import group_codes
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES, CaseScore
from censcore.evaluation.measures.joint_scores import View
from censcore.evaluation.sample import Sample, in_numpy
from censcore.evaluation.sensitivity.diagnostic import CensoringDiagnostic
from censcore.exceptions import ImpossibleForecastError, InvalidInputError, UnknownCurveError
from censcore.outcomes import RightCensored, as_followed, as_outcome
from censcore.scores import SCORES
from censcore.scores.inputs.scoring_inputs import known_censoring, known_to_exceed

Named = dict[str, Any]  # forecasts by name


@dataclass(frozen=True, eq=False)
class Kind(ABC):
    """The outcome of n subjects, and how it is compared.

    A subclass says which outcomes it is for (:func:`register_kind`), how they are settled and read, which
    follow-up problem the censoring distribution is estimated from, what is scored by default and against
    which reference, and which *views* there are: parts of the outcome that are scored as if they were the
    only one.

    Parameters
    ----------
    y : outcome
        What happened, in NumPy.
    """

    y: Any

    #: Name of the reference that is fitted to the training subjects by default.
    reference: ClassVar[str] = KAPLAN_MEIER
    #: Names of the scores that are taken by default; the first that all forecasts have decides the verdict.
    default_scores: ClassVar[tuple[str, ...]] = DEFAULT_SCORES

    #: Name of the whole outcome, where it is one of several, and what there are several of.
    whole: ClassVar[str] = ""
    whole_of: ClassVar[str] = "subjects"
    #: In the table of what is available.
    called: ClassVar[str] = ""
    #: Whether a table of such outcomes is read in batches.
    has_batches: ClassVar[bool] = True

    # ---- the outcome -----------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def settle(cls, asked: Asked) -> tuple[Self, Asked]:
        """The kind of the outcome that was passed, and the request with what follows from it."""

    @classmethod
    def read_outcome(cls, y: Any) -> Any:
        """An outcome of this kind, in NumPy."""
        return in_numpy(as_outcome(y))

    def read_training(self, train: Sample, notes: list[str]) -> Sample:
        """Training subjects with an outcome of this kind."""
        return train.checked(self.read_outcome)

    def of_subjects(self, y: Any) -> Self:
        """The kind of other subjects, with the names that were settled before."""
        return replace(self, y=self.read_outcome(y))

    def events_of(self, y: Any) -> Any:
        """The times and events of this or another sample as cases have them."""
        return y

    def followed(self, y: Any) -> RightCensored:
        """How long subjects were followed, of this or another sample: all that C is estimated from."""
        return as_followed(self.events_of(y))

    def through(self, y: Any, t: float) -> Any:
        """An outcome of this kind in which whoever is censored at t is followed through it."""
        return y.followed_through(t) if hasattr(y, "followed_through") else y

    def strata(self) -> np.ndarray:
        """Numbers whose shares are equal in all folds, (n,): whether there was an event, or which."""
        return np.max([code for _, code in self.parts(self.y)], axis=0)

    def censoring_estimator(self) -> Any:
        """The estimator of C for subjects of whom some may be censored."""
        return Censoring(KaplanMeier())

    def choose_censoring(self, pooled: Any, subjects: Sample, seed: int) -> CensoringChoice:
        """What ``censoring="auto"`` means for subjects as they were followed; ``pooled`` is the default."""
        if pooled is None:
            return CensoringChoice(None, "the censoring times are known, or nothing is censored")
        groups = group_codes(subjects.groups, len(subjects))
        return choose_censoring(
            subjects.X, subjects.y, sample_weight=subjects.weight, groups=groups, seed=seed
        )

    def event_times(self) -> np.ndarray:
        """Observed event times, from which the reading of survival matrices is decided."""
        y = self.pooled(Sample(None, self.y)).y
        return to_numpy(y.time)[to_numpy(y.event)]

    def parts(self, y: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """What is counted of a table that is read in batches: times and codes, (n,), of each event time."""
        events = self.events_of(y)
        return [(to_numpy(events.time), to_numpy(events.event))]

    def of_parts(self, parts: Sequence[tuple[np.ndarray, np.ndarray]], entry: Any) -> Any:
        """An outcome with these times, codes and entries (None without any)."""
        ((time, event),) = parts
        return RightCensored(time, event, entry=entry)

    # ---- forecasts -------------------------------------------------------------------------------------

    def as_forecast(self, forecast: Any, X: Any, n: int, train: Any = None) -> Distribution:
        """The distributions of n subjects from a fitted model or any other forecast.

        The training subjects, a pair (X, y), serve models that lack a baseline.
        """
        return as_forecast(forecast, X, n=n, train=train)

    def of_columns(self, forecast: ColumnForecast, frame: Any) -> ColumnForecast:
        """A forecast in columns of a table, whose first rows are ``frame``, as one of this outcome."""
        return forecast

    def check(self, name: str, F: Any) -> Any:
        """The forecast, if it is one of this outcome."""
        return F

    def timed(self, F: Any) -> Any:
        """The forecast of the times that are scored."""
        return F

    def named(self, forecasts: Mapping[str, Any], train: Sample | None) -> tuple[Self, Sample | None]:
        """The kind and the training subjects, with names that they share with the forecasts."""
        return self, train

    def settled(self, forecasts: Named, train: Sample | None, horizon: float, notes: list[str]) -> Named:
        """Forecasts as they are scored up to the horizon."""
        return {name: self.check(name, F) for name, F in forecasts.items()}

    def reference_model(self, train: Any) -> Any:
        """The estimator, or function f(X_train, y_train, X_test, sample_weight), of the default reference."""
        return KaplanMeier()

    def for_others(self, y: Any) -> Any:
        """The outcome as models of other libraries take it; None where :class:`Adapted` converts it."""
        return None

    def given_entry(self, name: str, F: Any, horizon: float) -> Any:
        """The forecast given survival to the entry."""
        entry = np.minimum(to_numpy(self.followed(self.y).entry), horizon)  # no later than the horizon
        try:
            return F.given_survival(known_to_exceed(entry))
        except ImpossibleForecastError as error:
            raise ImpossibleForecastError(f"Forecast {name!r}: {error}", error.rows) from error
        except UnknownCurveError as error:
            raise UnknownCurveError(f"Forecast {name!r}, given survival to the entry: {error}") from error

    def under(self, C: Distribution) -> Self:
        """The kind under a censoring distribution, of one C for all event times or of several."""
        return self

    # ---- what is scored --------------------------------------------------------------------------------

    @property
    def views(self) -> Sequence[View]:
        """Parts of the outcome that ``comparison.of(name)`` gives; none for one event time."""
        return ()

    @property
    def outcomes(self) -> list[str]:
        """Names that scores may be of; none for one event time."""
        return [view.name for view in self.views]

    @property
    def ranked(self) -> list[str]:
        """Views that have concordance and AUC."""
        return self.outcomes

    @abstractmethod
    def possible_scores(self, base: str, named: bool) -> list[CaseScore]:
        """The score called ``base``, of every outcome that has it, or is meant where none is ``named``."""

    def raise_no_score(self, name: str) -> NoReturn:
        """Raise an error that says which scores there are."""
        known = [score for score in SCORES if self.possible_scores(score, True)]
        raise InvalidInputError(
            f"There is no score called {name!r} for these {self.whole_of}. There are {', '.join(known)}, "
            f"each of the outcomes that have it, such as 'crps[{self.ranked[0]}]', with one of "
            f"{', '.join(self.outcomes)}. A custom score is given as {{name: function}}, with "
            "function(y, forecast, censoring, horizon=h) giving one loss per subject."
        )

    def case(self, F: Any, C: Distribution, *where: Any, **beside: Any) -> Case:
        """One forecast with what happened and C, up to the horizon, at times and levels (``where``)."""
        return Case(self.events_of(self.y), F, C, *where, **beside)

    def pooled(self, sample: Sample) -> Sample:
        """Event times (n,) from which default times and levels are chosen."""
        return replace(sample, y=self.events_of(sample.y))

    def levels(self, sample: Sample, horizon: float) -> np.ndarray | None:
        """Default quantile levels; None for those that the pooled event times reach by the horizon."""
        return None

    # ---- reporting -------------------------------------------------------------------------------------

    def notes_on_events(
        self, horizon: float, weight: np.ndarray, groups: np.ndarray | None, train: Sample | None
    ) -> list[str]:
        """Too few events to tell forecasts apart."""
        sample = None if train is None else replace(train, y=self.events_of(train.y))
        return notes_on_events(self.events_of(self.y), horizon, weight, groups, sample)

    @property
    def notes(self) -> list[str]:
        """What a reader should know first."""
        return []

    def settings(self, count: np.ndarray | None = None) -> dict[str, Any]:
        """Settings that describe the outcomes; each stands for ``count`` subjects, by default one."""
        return {}

    def diagnostic(
        self, case: Case, resolved: ResolvedCensoring, diagnose: Callable[..., CensoringDiagnostic]
    ) -> Any:
        """How far the censoring distribution can be trusted, by ``diagnose(y, C)``."""
        return diagnose(as_followed(case.y), resolved.distribution)

    def pictured(self, picture: str, scored: set[str]) -> list[str]:
        """The views that a page shows pictures of, the default first; one empty name for a picture of all."""
        return [""] if picture == "differences" or not self.views else self.ranked

    def not_pictured(self, picture: str, outcome: str) -> str:
        """Why there is no such picture of a view; empty where there is one."""
        return ""


def default_censoring(kind: Kind) -> Any:
    """Return the estimator of C where none is passed; None where the censoring times are known."""
    known = known_censoring(kind.followed(kind.y)) is not None
    return None if known else kind.censoring_estimator()


KINDS: list[tuple[Callable[[Any], bool], type[Kind]]] = []


def register_kind(kind: type[Kind], recognises: Callable[[Any], bool]) -> type[Kind]:
    """Compare outcomes that ``recognises`` is true of by ``kind``; the last one registered comes first."""
    KINDS.insert(0, (recognises, kind))
    return kind


def kind_of(y: Any) -> type[Kind]:
    """The kind of an outcome."""
    return next(kind for recognises, kind in KINDS if recognises(y))
