"""Subgroups of the scored subjects: from labels to weights that sum to one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from censcore._validation import as_labels
from censcore.estimators.covariates import column_of
from censcore.evaluation.inference.mean_losses import Subset

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
