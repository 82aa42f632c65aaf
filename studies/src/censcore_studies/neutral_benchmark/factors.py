"""Factors as the benchmark prepares them: rare levels are merged, then coded against the first level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

__all__ = ["PREVALENCE", "TARGET_LEVELS", "merged_levels", "treatment_coding"]

#: Levels with at least this share of the training subjects stay,
PREVALENCE = 0.05
#: and so do this many of the most frequent ones. The rest joins the least frequent level that stays.
TARGET_LEVELS = 5


def merged_levels(column: pd.Series) -> dict[Any, Any]:
    """Which level stands for which, by the training subjects.

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore_studies.neutral_benchmark.factors import merged_levels
    >>> column = pd.Series(list("aaaaaaaaaabbbbbbbbccccccddddeeefg" * 1))
    >>> {level: stands for level, stands in merged_levels(column).items() if level != stands}
    {'f': 'e', 'g': 'e'}
    """
    counts = column.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
    levels = list(counts.index)
    if len(levels) <= TARGET_LEVELS:
        return {level: level for level in levels}
    keep = [level for level in levels if counts[level] >= PREVALENCE * len(column)]
    keep += [level for level in levels[:TARGET_LEVELS] if level not in keep]
    return {level: level if level in keep else keep[-1] for level in levels}


def treatment_coding(
    train: pd.DataFrame, test: pd.DataFrame, factors: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Numeric columns of training and test subjects: one per level of a factor, the first level excepted.

    A level that no training subject has counts as the most frequent one, where the benchmark draws one.
    Columns that are constant in training are dropped.
    """
    parts = [(train.drop(columns=list(factors)), test.drop(columns=list(factors)))]
    for name in factors:
        stands = merged_levels(train[name])
        most_frequent = stands[train[name].value_counts().index[0]]
        a, b = (part[name].map(stands).fillna(most_frequent) for part in (train, test))
        for level in sorted(set(stands.values()))[1:]:
            parts.append(((a == level).rename(f"{name}={level}"), (b == level).rename(f"{name}={level}")))
    coded = [pd.concat([pair[i] for pair in parts], axis=1).astype(float) for i in (0, 1)]
    varying = coded[0].columns[coded[0].nunique() > 1]
    return coded[0][varying], coded[1][varying]
