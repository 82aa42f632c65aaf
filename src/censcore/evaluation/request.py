"""What a comparison was asked for: the arguments of ``compare``, checked once for all kinds of outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._validation import as_confidence, as_count, as_seed, check_flag, check_kind
from censcore.estimators.covariates import check_rows, check_weights
from censcore.evaluation.case_scores import DEFAULT_SCORES
from censcore.evaluation.inference import group_codes
from censcore.exceptions import InvalidInputError

__all__ = ["Request"]

#: Options that only several event times have.
OF_JOINT = ("names", "events", "mask", "train_mask")


@dataclass(frozen=True, eq=False)
class Request:
    """All arguments of :func:`censcore.compare`, where each is described."""

    forecasts: Any
    y: Any
    censoring: Any
    X: Any
    train: Any
    scores: Any
    times: Any
    levels: Any
    reference: Any
    horizon: float | str
    by: Any
    sample_weight: Any
    groups: Any
    train_groups: Any
    train_weight: Any
    names: Any
    events: Any
    mask: Any
    train_mask: Any
    confidence: float
    discrimination: bool
    time_unit: str
    refits: int
    seed: int
    progress: bool
    cv: Any
    repeats: int
    n_jobs: int | None
    store: Any
    on_error: str
    landmarks: Any
    window: float | None

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> Request:
        """Arguments by name, all of them; what can be checked without knowing the kind of outcome is."""
        given = cls(**arguments)
        checked = replace(
            given,
            confidence=as_confidence(given.confidence),
            refits=as_count(given.refits, "refits", least=0, most=10**6),
            seed=as_seed(given.seed),
            time_unit="" if given.time_unit is None else given.time_unit,
        )
        check_kind(checked.time_unit, "time_unit", str, "a text, such as 'days'")
        check_flag(given.discrimination, "discrimination")
        check_flag(given.progress, "progress")
        return checked

    @property
    def chosen_scores(self) -> Any:
        """The scores asked for; None for the default, which depends on the kind of outcome."""
        return None if self.scores is DEFAULT_SCORES else self.scores

    def check_one_time(self, *allowed: str) -> None:
        """Options of joint forecasts are for several event times, but for those that are allowed."""
        given = [name for name in OF_JOINT if name not in allowed and getattr(self, name) is not None]
        if given:
            raise InvalidInputError(
                f"{', '.join(given)}: got an outcome of one event time per subject, expected several, (n, k)."
            )

    def subjects(self, n: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Numbers of the groups and weights of the n scored subjects, whose covariates are checked too."""
        check_rows(self.X, n)
        code = group_codes(self.groups, n)
        return code, None if self.sample_weight is None else check_weights(self.sample_weight, n)

    def kept(self, **decided: Any) -> dict[str, Any]:
        """What a comparison keeps of its arguments, and what was decided in their place."""
        same = ("X", "refits", "confidence", "discrimination", "seed", "time_unit", "progress")
        return {name: getattr(self, name) for name in same} | decided
