"""Cross-validation at landmarks: folds of subjects, each judged by what is known of it at each landmark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from censcore._validation import as_number, is_auto
from censcore.distributions import Distribution
from censcore.estimators.covariates import take_rows
from censcore.estimators.libraries import takes_entry
from censcore.estimators.libraries.adapted import as_estimator
from censcore.estimators.libraries.pipelines import accepted, fit_weighted, last_estimator
from censcore.estimators.regression.landmark_cox import LandmarkCox
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.cross_validate import Folds
from censcore.evaluation.decisions.asked import read
from censcore.evaluation.decisions.decide import settle
from censcore.evaluation.decisions.forecasts import as_named
from censcore.evaluation.decisions.subsets import labels_by
from censcore.evaluation.landmark_rows import check_window, forecast_at, of_subjects, sample_at
from censcore.evaluation.landmarks import LandmarkComparison, common_units, landmark_times
from censcore.evaluation.parts.bootstrap import Bootstrap
from censcore.evaluation.parts.folds import Split, make_splits
from censcore.evaluation.sample import Sample
from censcore.exceptions import CenscoreError, HorizonError, InvalidInputError
from censcore.outcomes import RightCensored, StartStop


@dataclass
class AtLandmark:
    """A model in the folds of subjects, as a function of those at risk at a landmark, by their places.

    One that learns from intervals is fitted to all rows of the training subjects, once for all landmarks. Any
    other one is fitted at each landmark, to the training subjects at risk and what is known of them there.
    They all enter at s, before the first event, so that no risk set changes where a model takes no entries.
    """

    model: Any
    sample: Sample
    folds: list[Split]
    s: float
    fitted: dict[int, Any] = field(default_factory=dict)

    def __call__(self, train: np.ndarray, y: Any, test: np.ndarray, sample_weight: Any = None) -> Any:
        """Forecasts of the test subjects at risk, from the fold that leaves them out."""
        here, subjects, _ = sample_at(self.sample, self.s)
        test, train = test[:, 0], train[:, 0]
        if not hasattr(self.model, "fit"):  # a function
            weighted = accepted(self.model, sample_weight=sample_weight)
            return self.model(take_rows(here.X, train), y, take_rows(here.X, test), **weighted)
        fold = next(i for i, split in enumerate(self.folds) if np.isin(subjects[test[0]], split.test))
        if not self.learns_along_time:
            part = here.take(train)
            if not takes_entry(last_estimator(self.model)):
                part = replace(part, y=RightCensored(part.y.time, part.y.event))
            model = fit_weighted(as_estimator(self.model), part.X, part.y, part.weight, part.groups)
        else:
            model = self.fitted.get(fold)
            if model is None:
                model = self.fitted[fold] = self._fit(self.folds[fold].train)
        found = forecast_at(model, take_rows(here.X, test), self.s)
        return found if isinstance(found, Distribution) else model.predict_distribution(found[1])

    @property
    def learns_along_time(self) -> bool:
        """Whether the model is fitted to whole histories."""
        takes = getattr(last_estimator(as_estimator(self.model)), "takes_intervals", False)
        return bool(takes) or not isinstance(self.sample.y, StartStop)

    def _fit(self, subjects: np.ndarray) -> Any:
        y = self.sample.y
        rows = np.nonzero(np.isin(y.subject, subjects))[0] if isinstance(y, StartStop) else subjects
        part = self.sample.take(rows)
        return fit_weighted(as_estimator(self.model), part.X, part.y, part.weight, part.groups)


def cross_validate_at_landmarks(
    judge: Callable[..., Comparison],
    models: Any,
    rows: Sample,
    folds: Folds,
    landmarks: Any,
    window: float | None,
    options: dict[str, Any],
) -> LandmarkComparison:
    """Cross-validate by folds of subjects, at each landmark those at risk there.

    ``judge`` is :func:`censcore.cross_validate`, and ``options`` are its others.
    """
    if folds.repeats != 1 or folds.store is not None or isinstance(folds.cv, Bootstrap):
        raise InvalidInputError(
            "landmarks: got repeats, a store or bootstrap samples too, expected one set of folds. Pass "
            "cv=5, or a splitter, with landmarks=."
        )
    window = None if window is None else as_number(window, "window", above=0)
    if window is not None and options["times"] is not None:
        raise InvalidInputError(
            "got times and window, expected one of them: window is a time after each landmark."
        )
    named = as_named(models)
    check_window(named, window)
    whole, by, horizon = of_subjects(rows), options["by"], options["horizon"]
    given = settle(read(named, whole, options["censoring"], reference=None, seed=options["seed"]))
    if not isinstance(rows.y, StartStop):
        rows = replace(rows, y=given.kind.y)
    splits = make_splits(folds.cv, whole.X, given.kind.strata(), given.groups, 1, given.asked.seed)
    labels = labels_by(by, rows.X, len(rows.y))
    limited = any(isinstance(model, LandmarkCox) for model in named.values()) and is_auto(horizon)
    fits: dict[str, dict[int, Any]] = {name: {} for name in named}
    found: dict[float, tuple[Comparison, np.ndarray]] = {}
    notes: list[str] = []
    for s in map(float, landmark_times(landmarks)):
        here, subjects, in_force = sample_at(rows, s)
        place = np.arange(len(subjects))[:, None]
        everyone = {
            name: (AtLandmark(model, rows, splits, s, fits[name]), place) for name, model in named.items()
        }
        inside = [(np.isin(subjects, split.train), np.isin(subjects, split.test)) for split in splits]
        pairs = [(np.flatnonzero(train), np.flatnonzero(test)) for train, test in inside if test.any()]
        mine = options | {
            "by": {name: values[in_force] for name, values in labels.items()} or None,
            "times": options["times"] if window is None else [s + window],
            "horizon": s + window if limited and window is not None else horizon,
        }
        try:
            found[s] = judge(everyone, None, here, cv=replace(folds, cv=pairs), **mine), subjects
        except CenscoreError as error:
            error.args = (f"At the landmark {s:g}: {error}", *error.args[1:])
            if not (isinstance(error, HorizonError) and is_auto(horizon)):
                raise
            notes.append(f"{error} The landmark is left out.")
            last = error
    if not found:
        raise last
    comparisons, at_risk = (list(part) for part in zip(*found.values(), strict=True))
    units = common_units(given, comparisons, at_risk, [None] * len(found))
    return LandmarkComparison(np.array(list(found)), comparisons, at_risk, units, notes)
