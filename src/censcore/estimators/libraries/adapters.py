"""Forecasts of other libraries as distributions of this one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from censcore._arrays import Array, ArrayLike, Covariates, as_float, is_neutral, to_numpy
from censcore._validation import as_count, check_flag, check_instance, name_subjects
from censcore.distributions import Distribution, Quantiles, ScipyDistribution, Step
from censcore.distributions.univariate.piecewise_linear import Polyline
from censcore.distributions.univariate.survival_matrix import MatrixReader
from censcore.estimators.covariates import count_rows
from censcore.estimators.libraries import Curves, read_model
from censcore.estimators.libraries.curves import needs_covariates
from censcore.estimators.libraries.draws import from_draws
from censcore.estimators.libraries.pipelines import last_step
from censcore.estimators.nonparametric.kaplan_meier import at_times
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError
from censcore.outcomes import as_outcome

#: Models of lifelines whose curves are step functions.
_STEP_MODELS = {
    "KaplanMeierFitter",
    "NelsonAalenFitter",
    "BreslowFlemingHarringtonFitter",
    "CoxPHFitter",
    "AalenAdditiveFitter",
}


def as_forecast(
    forecast: object,
    X: Covariates | None = None,
    *,
    times: ArrayLike | None = None,
    levels: ArrayLike | None = None,
    n: int | None = None,
    interpolation: str = "auto",
    tail: str = "auto",
    repair: bool = False,
    train: tuple[Any, Any] | None = None,
) -> Distribution:
    """Convert a forecast of any common kind to a distribution with one entry per subject.

    Parameters
    ----------
    forecast : object
        One of

        - a distribution of this library: returned unchanged;
        - a fitted model, which predicts for the subjects of ``X``: of scikit-survival, lifelines, hazardous,
          XGBoost, CatBoost or pycox; or anything with ``predict_distribution``,
          ``predict_survival_function`` or ``predict_surv_df``; also at the end of a scikit-learn
          ``Pipeline`` or in a search such as ``GridSearchCV``. lifelines' univariate fitters need no X;
        - posterior predictive draws as :func:`from_draws` takes them: an InferenceData, or a dictionary of
          arrays (draws, n) or (chains, draws, n);
        - scikit-survival's step functions, as its ``predict_survival_function`` returns them;
        - a pandas frame of survival probabilities with times as index and subjects as columns, as
          lifelines and pycox return them;
        - a matrix (n, q) of survival probabilities, one row per subject, with ``times`` (q,); a column at
          time 0 below 1 is mass at time 0;
        - a matrix (n, q) of quantiles, one row per subject, with ``levels`` (q,);
        - a ``torch.distributions`` object or a frozen SciPy distribution, with one entry per subject.
    X : array or frame, optional
        Covariates of the subjects to forecast, where ``forecast`` is a model.
    times, levels : array, optional
        Times or levels of the columns of a matrix. If they are not sorted, columns are sorted with them.
    n : int, optional
        Number of subjects, to be checked; taken from ``X`` where it is given.
    interpolation : {"auto", "step", "linear"}
        Survival between the times of a matrix: right-continuous steps, straight lines, or steps exactly where
        the model is a step function and its jump times are given. See Notes. Parametric models are read as
        they are.
    tail : {"auto", "exponential", "infinity", "last"}
        What holds beyond the last time, as in :class:`PiecewiseLinear`: a constant hazard (the default for
        lines), no event (the default for steps), or all events by the last time.
    repair : bool
        Survival probabilities that increase with time are an error, except by rounding (1e-6). With
        ``repair`` they are replaced by the nearest monotone curve, and a
        :class:`~censcore.exceptions.RepairWarning` says how much was changed.
    train : pair (X_train, y_train), optional
        Subjects that the model was fitted to. Their event times tell what a matrix is; models that give risk
        scores only (XGBoost and CatBoost with Cox's loss) need X_train too, for Breslow's baseline hazard.

    Returns
    -------
    Distribution
        With one entry per subject, or one for all subjects.

    See Also
    --------
    Adapted : An estimator of another library, with ``fit``.
    from_risk : Forecasts from the risk scores of any model.
    from_draws : Forecasts from posterior predictive draws.
    censcore.Ensemble : Forecasts by samples, (n, m) or (n, m, k).

    Notes
    -----
    A matrix does not say what happens between its times. ``interpolation="auto"`` reads it as steps where
    the model is known to be a step function (Kaplan-Meier, Cox, forests, step functions of scikit-survival),
    and where at least 95 % of the event times of ``train`` up to the last time are times of the matrix:
    these then are the jumps of the model, or time is as discrete as the grid. Otherwise, and without it, it
    reads straight lines, whose error is of second order in the distance of the times. Steps on a grid that is
    not that of the jumps delay every event to the next time, so that a forecast which is too early may win.
    :func:`compare` asks the same question of the event times of its training subjects, or of the scored ones
    without those, and says in ``notes`` and ``settings`` what it found.

    Examples
    --------
    >>> import numpy as np, pandas as pd, censcore as cs
    >>> frame = pd.DataFrame({"anna": [0.9, 0.4], "ben": [0.7, 0.2]}, index=[1.0, 5.0])
    >>> cs.as_forecast(frame).sf(3.0)
    array([0.65, 0.45])
    >>> cs.as_forecast(np.array([[0.9, 0.4], [0.7, 0.2]]), times=[1.0, 5.0], interpolation="step").sf(3.0)
    array([0.9, 0.7])
    >>> y_train = cs.RightCensored(time=[1.0, 5.0, 5.0, 6.0], event=[1, 1, 1, 0])
    >>> cs.as_forecast(frame, train=(None, y_train))
    Step(shape=(2,), times=2)
    """
    if train is not None and not (isinstance(train, tuple | list) and len(train) == 2):
        raise InvalidTypeError(
            "train must be a pair (X_train, y_train), with None for no covariates; got "
            f"{type(train).__name__}."
        )
    check_flag(repair, "repair")
    if n is not None:
        n = as_count(n, "n")
    trained_on = None if train is None else as_outcome(train[1])
    events = None if trained_on is None else to_numpy(trained_on.time)[to_numpy(trained_on.event)]
    reader = MatrixReader(interpolation, tail, repair, events)
    distribution = _distribution(forecast, X, times, levels, reader, train)
    expected = count_rows(X) if n is None and X is not None else n
    if expected is not None and len(distribution) not in (1, expected):
        turned = isinstance(distribution, Step | Polyline) and distribution.breaks().shape[1] == expected
        raise InvalidInputError(
            f"The forecast: got {len(distribution)} subjects, expected {expected}."
            + " It has as many times: is the table transposed (times as rows, subjects as columns)?" * turned
        )
    return distribution


def _distribution(
    forecast: Any,
    X: Any,
    times: Array,
    levels: Array,
    reader: MatrixReader,
    train: tuple[Any, Any] | None = None,
) -> Distribution:
    if isinstance(forecast, Distribution):
        return forecast
    check_instance(forecast, "forecast")
    model, X = last_step(forecast, X)
    if train is not None and train[0] is not None and model is not forecast:
        train = (last_step(forecast, train[0])[1], train[1])
    known = None if hasattr(model, "predict_distribution") else read_model(model, X, train)
    if isinstance(known, Curves):
        return _from_matrix(known.sf, known.times, reader)
    # step functions of a model can be read as the lines between their jumps instead
    steps = getattr(known, "form", None) == "steps" and _is_model(model)
    if known is not None and not (reader.interpolation == "linear" and steps):
        return known
    return _survival_of(model, X, reader) if _is_model(model) else _of_values(model, times, levels, reader)


def _of_values(forecast: Any, times: Array, levels: Array, reader: MatrixReader) -> Distribution:
    """What is no model: distributions of other libraries, draws, quantiles and curves."""
    kind = type(forecast).__module__.split(".")[0]
    if kind == "torch" and hasattr(forecast, "batch_shape"):
        from censcore.distributions.univariate.scipy_distribution import from_torch

        return from_torch(forecast)
    if kind == "scipy":
        return ScipyDistribution(forecast)
    if isinstance(forecast, dict):
        return from_draws(forecast)
    if levels is not None:
        return Quantiles(levels, as_float(forecast, "quantiles"))
    if _are_step_functions(forecast):
        return _from_step_functions(forecast, reader)
    if times is not None:
        return _from_matrix(forecast, times, reader)
    if hasattr(forecast, "columns") and hasattr(forecast, "index"):
        return _from_frame(forecast, reader)
    if hasattr(forecast, "predict"):
        raise InvalidTypeError(
            f"{type(forecast).__name__} has no survival function. If it predicts a risk score, use "
            "from_risk(train_risk, y_train, test_risk), with slope='estimate' unless the score is a log "
            "hazard ratio."
        )
    raise InvalidTypeError(
        f"{type(forecast).__name__} alone does not say what it forecasts. Use as_forecast(matrix, "
        "times=...) for survival probabilities (n, q) at the times of its columns, as_forecast(matrix, "
        "levels=...) for quantiles (n, q), or Ensemble(samples) for samples (n, m) or (n, m, k). times= and "
        "levels= of compare() say where forecasts are scored, and not what their columns are."
    )


# ---- models ------------------------------------------------------------------------------------


def _is_model(forecast: Any) -> bool:
    words = ("predict_distribution", "predict_survival_function", "predict_surv_df", "survival_function_")
    return any(hasattr(forecast, word) for word in words)


def _survival_of(model: Any, X: Any, reader: MatrixReader) -> Distribution:
    """What a fitted model of another library (or of this one) forecasts for the subjects of X."""
    if hasattr(model, "predict_distribution"):
        return model.predict_distribution(X)
    if _is_step_model(model):
        reader = replace(reader, steps=True)
    if not hasattr(model, "predict_survival_function") and hasattr(model, "survival_function_"):
        return _from_frame(model.survival_function_, reader)
    needs_covariates(model, X)
    if hasattr(model, "predict_surv_df"):
        return _from_frame(model.predict_surv_df(X), reader)
    curves, times = model.predict_survival_function(X), getattr(model, "unique_times_", None)
    return _distribution(curves, None, times, None, reader)


def _is_step_model(model: Any) -> bool:
    """Whether the curves of a model are step functions that it gives at the times of their jumps.

    Those of scikit-survival have ``unique_times_``, Cox models of pycox ``baseline_hazards_``, and lifelines
    names its fitters.
    """
    if getattr(model, "baseline_estimation_method", "breslow") != "breslow":
        return False
    names = {base.__name__ for base in type(model).__mro__}
    jumps = hasattr(model, "unique_times_") or hasattr(model, "baseline_hazards_")
    return jumps or bool(names & _STEP_MODELS)


# ---- curves ------------------------------------------------------------------------------------


def _from_matrix(table: Any, times: Array, reader: MatrixReader) -> Distribution:
    """From a matrix with subjects as rows and times as columns."""
    sf = as_float(table, "survival probabilities")
    if hasattr(table, "columns"):
        _check_labels(table.columns, times)
    times = times if is_neutral(times) or hasattr(times, "shape") else to_numpy(times, "times")
    _check_other_curves(to_numpy(sf))
    return reader.curves(times, sf)


def _check_labels(columns: Any, times: Array) -> None:
    """Check that columns that are named by times are named by these times."""
    try:
        named = np.asarray(list(columns), dtype=np.float64)
    except (TypeError, ValueError):
        return
    wanted = to_numpy(as_float(times, "times"))
    if named.shape == wanted.shape and not np.array_equal(named, np.arange(len(named))):
        off = np.nonzero(~np.isclose(named, wanted))[0]
        if off.size:
            raise InvalidInputError(
                f"Column {off[0]} of the frame is named {named[off[0]]:g}; expected {wanted[off[0]]:g}, as "
                "in times. Give the times in the order of the columns."
            )


def _from_frame(frame: Any, reader: MatrixReader) -> Distribution:
    """From a frame with times as rows, named by the index, and subjects as columns."""
    try:
        times = as_float(frame.index.to_numpy(), "The index")
    except CenscoreError as error:
        raise InvalidTypeError(
            "The index of a frame of survival probabilities must be the times (columns are subjects, as in "
            f"lifelines and pycox); got {frame.index[:3].tolist()}. If rows are subjects, pass times= "
            "for the columns."
        ) from error
    sf = as_float(frame, "survival probabilities").T
    if (np.diff(sf, axis=0) <= 0).all() and (np.diff(sf, axis=1) > 1e-6).any() and len(sf) > 1:
        raise InvalidInputError(
            f"The frame of shape {frame.shape} falls along its rows and not down its columns, so rows seem "
            "to be subjects and columns times. The index must be the times: pass frame.T, or times=..."
        )
    _check_other_curves(sf)
    order = np.argsort(times, kind="stable")
    times, sf = times[order], sf[:, order]
    # times that are repeated with equal survival count once; others are an error of the distribution
    new = np.append(True, (np.diff(times) != 0) | (np.diff(sf, axis=1) != 0).any(axis=0))
    return reader.curves(times[new], sf[:, new])


def _check_other_curves(sf: np.ndarray) -> None:
    """Check that curves are no distribution functions or cumulative hazards."""
    if sf.ndim != 2 or sf.shape[1] < 2 or not len(sf):
        return
    rising = np.nonzero((np.diff(sf, axis=1) >= 0).all(axis=1) & (sf[:, -1] > sf[:, 0]))[0]
    if rising.size == len(sf):
        what = "cumulative hazards: pass np.exp(-H)" if sf.max() > 1 else "distribution functions: pass 1 - F"
        raise InvalidInputError(
            f"Survival probabilities must not increase with time; they do in {name_subjects(rising)}. These "
            f"look like {what}."
        )


def _are_step_functions(forecast: Any) -> bool:
    listed = isinstance(forecast, list | tuple) or (
        isinstance(forecast, np.ndarray) and forecast.dtype == object
    )
    return listed and len(forecast) > 0 and all(hasattr(f, "x") and hasattr(f, "y") for f in forecast)


def _from_step_functions(functions: Sequence[Any], reader: MatrixReader) -> Distribution:
    """Curves on one set of times, or on the union of all of theirs."""
    reader = replace(reader, steps=True)
    levels = [getattr(f, "a", 1.0) * np.asarray(f.y) + getattr(f, "b", 0.0) for f in functions]
    grids = [np.asarray(f.x, dtype=np.float64) for f in functions]
    if all(len(grid) == len(grids[0]) and (grid == grids[0]).all() for grid in grids):
        return _from_matrix(np.stack(levels), grids[0], reader)
    if reader.interpolation == "linear":
        raise InvalidInputError("Step functions at different times need interpolation='step'; got 'linear'.")
    times = np.unique(np.concatenate(grids))
    sf = [at_times(grid, level, 1.0, times) for grid, level in zip(grids, levels, strict=True)]
    return _from_matrix(np.stack(sf), times, reader)
