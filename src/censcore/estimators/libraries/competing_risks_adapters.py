"""Forecasts of competing risks by other libraries, as distributions of this one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from censcore._arrays import Array, ArrayLike, Covariates, as_float, is_torch, to_numpy
from censcore._validation import as_frame, check_option, name_subjects
from censcore.distributions import CumulativeIncidence, TimeAndCause
from censcore.estimators.libraries.lifelines import incidence_of
from censcore.estimators.nonparametric.kaplan_meier import at_times
from censcore.exceptions import InvalidInputError, InvalidTypeError

#: What the first of the curves of a matrix may be.
_FIRST = ("cause", "survival", "any cause")


def as_competing_forecast(
    forecast: Any,
    X: Covariates | None = None,
    *,
    times: ArrayLike | None = None,
    first: str = "cause",
    names: Sequence[str] | None = None,
    interpolation: str = "auto",
    repair: bool = False,
) -> TimeAndCause:
    """Convert a forecast of competing risks of any common kind to a distribution of time and cause.

    Parameters
    ----------
    forecast : object
        One of

        - a distribution of time and cause of this library: returned unchanged;
        - a fitted model, which predicts for the subjects of ``X``: anything with ``predict_distribution``;
          hazardous' ``SurvivalBoost`` and others with ``predict_cumulative_incidence(X)`` and ``time_grid_``,
          whose curve 0 is the survival function; pycox' ``DeepHit`` and others with ``predict_cif(X)``, of
          shape (m, q, n), and ``duration_index``;
        - a matrix (n or 1, m, q), or (m, q), of cumulative incidences, with ``times``;
        - a pandas frame for all subjects, with times as index and a column of cumulative incidences per
          cause; lifelines' ``AalenJohansenFitter``, which has one; or a list of these, in the order of the
          causes.
    X : array or frame, optional
        Covariates of the subjects to forecast, where ``forecast`` is a model.
    times : array, (q,), optional
        Times of a matrix; for a model that takes them, the times to predict at.
    first : {"cause", "survival", "any cause"}
        What the first curve of a matrix is: cause 1, the survival function (as hazardous has it), or the
        cumulative incidence of any cause (as scikit-survival's ``cumulative_incidence_competing_risks`` has
        it). The last two are left out, after a check that they fit the others.
    names : sequence of str, optional
        Names of the causes.
    interpolation : {"auto", "step", "linear", "none"}
        Between the times; "auto" is steps, and "none" for a matrix with one time, which is no curve.
    repair : bool
        Make impossible curves possible, see :class:`~censcore.CumulativeIncidence`. Models that predict each
        time on its own, such as ``SurvivalBoost``, give curves that decrease here and there.

    Returns
    -------
    TimeAndCause
        With one entry per subject, or one for all subjects.

    See Also
    --------
    as_forecast : The same for one event time.
    censcore.CumulativeIncidence : Matrices without any convention to translate.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from sksurv.nonparametric import cumulative_incidence_competing_risks
    >>> times, cif = cumulative_incidence_competing_risks([1, 0, 2, 1], np.array([1.0, 2.0, 3.0, 4.0]))
    >>> cs.as_competing_forecast(cif, times=times, first="any cause").cif(3.0).round(3)
    array([[0.25 , 0.375]])
    """
    if isinstance(forecast, TimeAndCause):
        return forecast
    check_option(interpolation, "interpolation", ("auto", "step", "linear", "none"))
    chosen = "step" if interpolation == "auto" else interpolation
    options: dict[str, Any] = {"names": names, "interpolation": chosen, "repair": repair}
    if hasattr(forecast, "predict_distribution"):
        predicted = forecast.predict_distribution(X)
        if not isinstance(predicted, TimeAndCause):
            raise InvalidTypeError(
                f"{type(forecast).__name__} predicts {type(predicted).__name__}, the distribution of one "
                "event time; expected one of time and cause, as AalenJohansen and CauseSpecific predict it. "
                "Judge a model of one cause by the outcome y.cause(j)."
            )
        return predicted
    if hasattr(forecast, "predict_cumulative_incidence"):
        at = forecast.time_grid_ if times is None else times
        asked = {} if times is None else {"times": times}
        cif = np.asarray(forecast.predict_cumulative_incidence(X, **asked))
        return CumulativeIncidence(at, _causes(cif, "survival"), **options)
    if hasattr(forecast, "predict_cif"):
        cif = to_numpy(forecast.predict_cif(X))
        at = np.asarray(forecast.duration_index, dtype=np.float64)
        return CumulativeIncidence(at, np.moveaxis(cif, 2, 0).astype(np.float64), **options)
    curves = _curves(forecast)
    if curves:
        at = np.unique(np.concatenate([curve.index for curve in curves]).astype(np.float64))
        cifs = [at_times(np.asarray(c.index, dtype=float), c.to_numpy(dtype=float), 0.0, at) for c in curves]
        options["names"] = names or [str(curve.name) for curve in curves]
        return CumulativeIncidence(at, np.stack(cifs)[None], **options)
    if isinstance(forecast, np.ndarray | list) or is_torch(forecast):
        if times is None:
            raise InvalidInputError("times=... is missing: the times of the matrix of cumulative incidences.")
        matrix = _causes(forecast if is_torch(forecast) else as_float(forecast, "forecast"), first)
        if interpolation == "auto" and matrix.shape[-1] == 1:
            options["interpolation"] = "none"
        return CumulativeIncidence(times, matrix, **options)
    raise InvalidTypeError(
        f"got {type(forecast).__name__}, expected a distribution of time and cause, a fitted model with "
        "predict_distribution, predict_cumulative_incidence or predict_cif, a frame with a column per cause, "
        "or a matrix (n, m, q) with times=..."
    )


def _curves(forecast: Any) -> list[Any]:
    """Columns of cumulative incidences, named and with times as index; none where there are no frames."""
    parts = forecast if isinstance(forecast, list) else [forecast]
    frames: list[Any] = [
        incidence_of(part) if hasattr(part, "cumulative_density_") else part for part in parts
    ]
    if not all(hasattr(frame, "columns") and hasattr(frame, "index") for frame in frames):
        return []
    for frame in frames:
        as_frame(frame, name="forecast")  # an error where columns are called alike
    return [frame.sort_index()[name] for frame in frames for name in frame.columns]


def predicts_times_apart(model: Any) -> bool:
    """Whether a model classifies each time on its own, so that its curves may decrease here and there."""
    return hasattr(model, "predict_cumulative_incidence") and not hasattr(model, "predict_distribution")


def _causes(cif: Array, first: str) -> Array:
    """The curves of the causes, (n, m, q), without one of all of them in front."""
    check_option(first, "first", _FIRST)
    cif = cif[None] if cif.ndim == 2 else cif
    if cif.ndim != 3:
        raise InvalidInputError(
            f"Cumulative incidences must have shape (n, m, q) or (m, q); got {tuple(cif.shape)}."
        )
    if first == "cause":
        return cif
    front, causes = to_numpy(cif[:, 0]), cif[:, 1:]
    total = to_numpy(causes).sum(axis=1)
    expected = 1 - total if first == "survival" else total
    wrong = np.nonzero((np.abs(front - expected) > 1e-3).any(axis=1))[0]
    if wrong.size:
        raise InvalidInputError(
            f"The first curve is not the {first} curve of the others: it differs by up to "
            f"{np.abs(front - expected).max():.3g}, in {name_subjects(wrong)}. Say what it is by first=..., "
            f"one of {', '.join(map(repr, _FIRST))}."
        )
    return causes
