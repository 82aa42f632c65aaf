"""What a comparison was asked for: arguments that are checked once, for all kinds of outcomes and designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._validation import as_confidence, as_labels, as_seed, check_flag, check_kind, check_same_order
from censcore.estimators.covariates import check_rows, check_weights, column_of
from censcore.evaluation.inference.estimates import group_codes
from censcore.evaluation.inference.mean_losses import Subset
from censcore.evaluation.measures.case_scores import DEFAULT_SCORES
from censcore.evaluation.plan.forecasts import KAPLAN_MEIER
from censcore.evaluation.plan.horizon import given_horizon, given_levels, given_times
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError


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

    def __post_init__(self) -> None:
        self._check_labels()
        end = given_horizon(self.horizon)
        given_times(
            self.times, np.inf if end is None else np.nextafter(end, np.inf)
        )  # those known there alone
        given_levels(self.levels)
        check_flag(self.discrimination, "discrimination")
        if self.progress is not None:
            check_flag(self.progress, "progress")
        unit = "" if self.time_unit is None else self.time_unit
        check_kind(unit, "time_unit", str, "a text, such as 'days'")
        checked = {"confidence": as_confidence(self.confidence), "seed": as_seed(self.seed)}
        for name, value in {**checked, "time_unit": unit}.items():
            object.__setattr__(self, name, value)

    def _check_labels(self) -> None:
        """Check that what belongs to the scored, or training, subjects has their labels in one order."""
        scored, train = self.sample.parts, self.train.parts if isinstance(self.train, Sample) else {}
        by = self.by if isinstance(self.by, Mapping) else {"by": self.by}
        for values in by.values():
            check_same_order(**scored, by=values)
        for name, F in self.forecasts.items() if isinstance(self.forecasts, Mapping) else ():
            if hasattr(F, "iloc"):  # times x subjects
                check_same_order(**scored, **{f"{name}.T": F.T})
            elif isinstance(F, tuple) and len(F) in (2, 3):
                check_same_order(**scored, **{f"{name}: X": F[1]})
                check_same_order(**train, **{f"{name}: X of train": F[2] if len(F) == 3 else None})
            else:
                check_same_order(**scored, **{str(name): F})

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
        masked = any(getattr(sample, "mask", None) is not None for sample in (self.sample, self.train))
        if "mask" in names and masked:
            passed.append("mask")
        if passed:
            raise InvalidInputError(
                f"{', '.join(passed)}: got an outcome of one event time per subject, expected several, "
                "(n, k)."
            )


MISSING = "missing"


def make_subsets(by: Any, X: Any, n: int, weight: np.ndarray) -> list[Subset]:
    """All subjects, and every subgroup, with weights that sum to one."""
    subsets = [Subset("", "all", weight)]
    for name, values in labels_by(by, X, n).items():
        labels = as_subgroups(values)
        for value in np.unique(labels):
            inside = np.where(labels == value, weight, 0.0)
            if inside.any():
                subsets.append(Subset(name, str(value), inside / inside.sum()))
    return subsets


def labels_of(subsets: list[Subset]) -> dict[str, np.ndarray]:
    """The labels that subgroups were made from, (n,) each; empty for subjects without a weight."""
    labels: dict[str, np.ndarray] = {}
    for subset in subsets:
        if subset.by:
            values = labels.setdefault(subset.by, np.full(len(subset.weight), "", dtype=object))
            values[subset.weight > 0] = subset.label
    return labels


def labels_by(by: Any, X: Any, n: int) -> dict[str, np.ndarray]:
    """The labels of n subjects that ``by`` stands for: columns of X, labels, or several of them."""
    if by is None:
        return {}
    if isinstance(by, str):
        by = {by: column_of(X, by)}
    elif isinstance(by, list | tuple) and all(isinstance(name, str) for name in by) and len(by) != n:
        by = {name: column_of(X, name) for name in by}
    elif not isinstance(by, Mapping):
        by = {str(getattr(by, "name", None) or "group"): by}
    return {
        str(name): as_labels(values, n, f"by: {str(name)!r}", missing=True) for name, values in by.items()
    }


def as_subgroups(values: np.ndarray) -> np.ndarray:
    """Labels as numbers or as text, in which subjects without one are the subgroup "missing"."""
    gone = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    if not gone.any():
        return np.array([str(value) for value in values.tolist()]) if values.dtype.kind == "O" else values
    text = [f"{value:g}" if isinstance(value, float) else str(value) for value in values.tolist()]
    return np.where(gone, MISSING, np.array(text))
