"""What a comparison is asked for: arguments that are read once, before anything is decided or fitted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._validation import as_confidence, as_seed, check_flag, check_kind, check_same_order
from censcore.evaluation.decisions.forecasts import KAPLAN_MEIER
from censcore.evaluation.decisions.horizon import given_horizon, given_levels, given_times
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.outcome_table import OutcomeTable
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class Asked:
    """The arguments of :func:`censcore.compare`, where each is described; :func:`read` checks them."""

    forecasts: Any
    sample: Sample
    censoring: Any = None
    train: Any = None
    scores: Any = None  #: None for those by default, which depend on the kind of outcome
    times: Any = None
    levels: Any = None
    reference: Any = KAPLAN_MEIER
    horizon: float | str = "auto"
    by: Any = None
    names: Any = None
    events: Any = None
    confidence: float = 0.95
    discrimination: bool = True
    time_unit: str = ""
    seed: int = 0
    progress: bool | None = None

    @property
    def bare(self) -> Asked:
        """The same without what other people's code has made, which may be large, or not to be pickled."""
        return replace(self, forecasts={}, censoring=None, train=None, reference=None)

    @property
    def in_memory(self) -> bool:
        """Whether the subjects are, and do not stay in their table."""
        return not isinstance(self.sample.y, OutcomeTable)


def read(forecasts: Any, sample: Sample, censoring: Any = None, train: Any = None, **options: Any) -> Asked:
    """Read the arguments of a comparison: check all that needs no data, and the order of subjects."""
    if train is not None and not isinstance(sample.y, OutcomeTable):
        train = Sample.of(train)
    asked = Asked(forecasts, sample, censoring, train, **options)
    _check_labels(asked)
    end = given_horizon(asked.horizon)
    # a forecast may be known at the horizon alone
    given_times(asked.times, np.inf if end is None else np.nextafter(end, np.inf))
    given_levels(asked.levels)
    check_flag(asked.discrimination, "discrimination")
    if asked.progress is not None:
        check_flag(asked.progress, "progress")
    unit = "" if asked.time_unit is None else asked.time_unit
    check_kind(unit, "time_unit", str, "a text, such as 'days'")
    options |= {"confidence": as_confidence(asked.confidence), "seed": as_seed(asked.seed), "time_unit": unit}
    options["scores"] = None if asked.scores is DEFAULT_SCORES else asked.scores
    return Asked(forecasts, sample, censoring, train, **options)


def _check_labels(asked: Asked) -> None:
    """Check that what belongs to the scored, or training, subjects has their labels in one order."""
    scored, train = asked.sample.parts, asked.train.parts if isinstance(asked.train, Sample) else {}
    by = asked.by if isinstance(asked.by, Mapping) else {"by": asked.by}
    for values in by.values():
        check_same_order(**scored, by=values)
    for name, F in asked.forecasts.items() if isinstance(asked.forecasts, Mapping) else ():
        if hasattr(F, "iloc"):  # times x subjects
            check_same_order(**scored, **{f"{name}.T": F.T})
        elif isinstance(F, tuple) and len(F) in (2, 3):
            check_same_order(**scored, **{f"{name}: X": F[1]})
            check_same_order(**train, **{f"{name}: X of train": F[2] if len(F) == 3 else None})
        else:
            check_same_order(**scored, **{str(name): F})


def check_one_time(asked: Asked, *names: str) -> None:
    """Check that no option was passed that only several event times have: those named, and masks."""
    passed = [name for name in names if getattr(asked, name) is not None]
    if any(getattr(sample, "mask", None) is not None for sample in (asked.sample, asked.train)):
        passed.append("mask")
    if passed:
        raise InvalidInputError(
            f"{', '.join(passed)}: got an outcome of one event time per subject, expected several, (n, k)."
        )
