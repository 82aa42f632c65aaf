"""The censoring distribution from the options of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import censcore as cs
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DISTRIBUTIONS", "censoring_of", "numbers", "words"]

DISTRIBUTIONS = ("kaplan-meier", "cox", "weibull", "none")


def words(text: str | None) -> list[str]:
    """Words between commas."""
    return [] if text is None else [word.strip() for word in text.split(",") if word.strip()]


def numbers(text: str | None, option: str) -> list[float] | None:
    """Numbers between commas, None for nothing."""
    if text is None:
        return None
    try:
        return [float(word) for word in words(text)]
    except ValueError:
        raise InvalidInputError(
            f"{option} takes numbers between commas, such as 1,2,5; got {text!r}."
        ) from None


def censoring_of(name: str, stratify: str | None, known: bool) -> Any:
    """An estimator of the censoring distribution, or None where the censoring times are known."""
    if known:
        return None
    if name not in DISTRIBUTIONS:
        raise InvalidInputError(f"--censoring must be one of {', '.join(DISTRIBUTIONS)}; got {name!r}.")
    if stratify is not None and name != "kaplan-meier":
        raise InvalidInputError("--stratify belongs to --censoring kaplan-meier.")
    if name == "none":
        return None
    estimators = {
        "kaplan-meier": cs.KaplanMeier(stratify=stratify),
        "cox": cs.CoxRegression(),
        "weibull": cs.WeibullRegression(),
    }
    return cs.Censoring(estimators[name])


def covariates_of(frame: pd.DataFrame, names: list[str], stratify: str | None) -> pd.DataFrame | None:
    """The columns that a censoring distribution or subgroups need; None for none."""
    wanted = list(dict.fromkeys([*names, *([] if stratify is None else [stratify])]))
    missing = [name for name in wanted if name not in frame.columns]
    if missing:
        raise InvalidInputError(f"--covariates: there is no column {', '.join(missing)}.")
    return frame[wanted] if wanted else None
