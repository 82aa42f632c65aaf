"""What a comparison was asked for: arguments that are checked once, for all kinds of outcomes and designs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._validation import as_confidence, as_seed, check_flag, check_kind
from censcore.estimators.covariates import check_rows, check_weights
from censcore.evaluation.inference.estimates import group_codes
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.plan.forecasts import KAPLAN_MEIER
from censcore.evaluation.plan.horizon import given_horizon
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError

__all__ = ["Request"]


@dataclass(frozen=True, eq=False)
class Request:
    """The arguments of :func:`censcore.compare`, where each is described."""

    forecasts: Any
    sample: Sample
    censoring: Any = None
    train: Sample | None = None
    scores: Any = DEFAULT_SCORES
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
    train_groups: Any = None

    def __post_init__(self) -> None:
        given_horizon(self.horizon)
        check_flag(self.discrimination, "discrimination")
        if self.progress is not None:
            check_flag(self.progress, "progress")
        unit = "" if self.time_unit is None else self.time_unit
        check_kind(unit, "time_unit", str, "a text, such as 'days'")
        checked = {"confidence": as_confidence(self.confidence), "seed": as_seed(self.seed)}
        for name, value in {**checked, "time_unit": unit}.items():
            object.__setattr__(self, name, value)

    @property
    def chosen_scores(self) -> Any:
        """The scores asked for; None for the default, which depends on the kind of outcome."""
        return None if self.scores is DEFAULT_SCORES else self.scores

    def subjects(self, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Numbers of the groups and weights of the n scored subjects, whose covariates are checked too."""
        check_rows(self.sample.X, n)
        weight = self.sample.weight
        return group_codes(self.sample.groups, n), None if weight is None else check_weights(weight, n)

    def refuse(self, *names: str) -> None:
        """An error where an option was passed that only several event times have."""
        passed = [name for name in names if getattr(self, name, None) is not None]
        if "mask" in names and (self.sample.mask is not None or (self.train and self.train.mask is not None)):
            passed.append("mask")
        if passed:
            raise InvalidInputError(
                f"{', '.join(passed)}: got an outcome of one event time per subject, expected several, "
                "(n, k)."
            )
