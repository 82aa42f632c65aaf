"""Posterior predictive draws of ArviZ, PyMC and NumPyro as ensembles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from censcore._arrays import as_float, to_numpy
from censcore._validation import check_flag, name_subjects
from censcore.distributions import Ensemble
from censcore.exceptions import InvalidInputError, InvalidTypeError

#: Groups of an InferenceData that hold draws of outcomes, the first of which is read.
_GROUPS = ("predictions", "posterior_predictive")
_SAMPLE_DIMENSIONS = ("chain", "draw", "sample")
# A pile: this share of the draws of a subject, and several times as many as at any other value.
_PILE_SHARE, _PILE_RATIO, _PILE_LEAST = 0.02, 3, 4


def from_draws(draws: object, *, variable: str | None = None, check_bound: bool = True) -> Ensemble:
    """Turn posterior predictive draws of event times into an ensemble, one member per draw.

    Parameters
    ----------
    draws : InferenceData, DataTree, Dataset, DataArray, dict or array
        ArviZ's InferenceData or DataTree with a group ``predictions`` or ``posterior_predictive``; an xarray
        object with the dimensions ``chain`` and ``draw``; what NumPyro's ``Predictive`` or PyMC's
        ``sample_posterior_predictive(..., return_inferencedata=False)`` return, name -> array; or an array.
        Arrays have the shape (draws, n) or (chains, draws, n): subjects last, as these libraries have it.
    variable : str, optional
        Name of the event time; needed where there are several variables.
    check_bound : bool
        Check that draws do not pile up at the largest time of a subject. They do if the model draws censored
        times, min(T, C), as PyMC's ``Censored`` does: such draws forecast the end of follow-up, not the
        event.

    Returns
    -------
    Ensemble
        (n, m) with m the number of draws of all chains; infinite draws are events that never happen.

    See Also
    --------
    censcore.Ensemble : Draws with subjects first, (n, m), or (n, m, k) for several event times.

    Notes
    -----
    The draws must be of T and not of the mean or the median of T: a forecast is the whole distribution.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> draws = rng.exponential([1.0, 2.0, 5.0], size=(4, 250, 3))  # chains, draws, subjects
    >>> cs.from_draws({"T": draws})
    Ensemble(shape=(3,), m=1000)
    """
    samples = _subjects_first(_select(draws, variable))
    check_flag(check_bound, "check_bound")
    if check_bound:
        _check_piles(samples)
    return Ensemble(samples)


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Ensemble:
    """Draws of an object of ArviZ or xarray, for the subjects that they were made for."""
    return from_draws(model)


# ---- finding the variable ---------------------------------------------------------------------------


def _select(draws: Any, variable: str | None) -> Any:
    """The array of draws of the event time."""
    if hasattr(draws, "ndim"):
        return draws
    variables = _variables(draws)
    if variable is not None:
        if variable not in variables:
            raise InvalidInputError(f"variable: got {variable!r}, expected one of {sorted(variables)}.")
        return variables[variable]
    if len(variables) != 1:
        raise InvalidInputError(
            f"Draws: got the variables {sorted(variables)}, expected one. Say which is the event time: "
            "from_draws(draws, variable=...)."
        )
    return next(iter(variables.values()))


def _variables(draws: Any) -> dict[str, Any]:
    """Arrays of draws by the name of their variable."""
    groups = getattr(draws, "groups", None)  # a method of an InferenceData; the paths of a DataTree
    listed = groups() if callable(groups) else groups if isinstance(groups, tuple | list) else ()
    names, data = [name for path in listed if (name := str(path).strip("/"))], draws
    if names:
        group = next((name for name in _GROUPS if name in names), None)
        if group is None:
            raise InvalidInputError(
                f"Draws: got the groups {sorted(names)}, expected one of {list(_GROUPS)}. Draw the event "
                "times of the subjects to be scored first."
            )
        data = draws[group]
    if not hasattr(data, "data_vars") and not isinstance(data, Mapping):
        raise InvalidTypeError(
            f"Draws: got {type(draws).__name__}, expected an InferenceData, an xarray object, a dictionary "
            "of arrays or an array."
        )
    return {str(name): data[name] for name in getattr(data, "data_vars", data)}


# ---- shapes and piles -------------------------------------------------------------------------------


def _subjects_first(draws: Any) -> np.ndarray:
    """(n, m), or (n, m, k) where xarray names more dimensions than that of the subjects."""
    if hasattr(draws, "dims") and hasattr(draws, "to_numpy"):  # a DataArray of xarray
        sampled = [d for d in draws.dims if d in _SAMPLE_DIMENSIONS]
        others = [d for d in draws.dims if d not in sampled]
        if not sampled or not 1 <= len(others) <= 2:
            raise InvalidInputError(
                f"Draws: got the dimensions {tuple(draws.dims)}, expected chain, draw and one for the "
                "subjects (and one for several event times)."
            )
        ordered = draws.transpose(others[0], *sampled, *others[1:]).values
        values = as_float(ordered, "Draws").astype(np.float64)
        return values.reshape(values.shape[0], -1, *values.shape[1 + len(sampled) :])
    values = to_numpy(as_float(draws, "Draws")).astype(np.float64)
    if values.ndim not in (2, 3) or not values.size:
        raise InvalidInputError(
            f"Draws: got an array of shape {values.shape}, expected (draws, n) or (chains, draws, n)."
        )
    return np.moveaxis(values, -1, 0).reshape(values.shape[-1], -1)


def _check_piles(samples: np.ndarray) -> None:
    """Check that the largest time of a subject is no atom: draws of min(T, C) pile up at C."""
    flat = np.moveaxis(samples, 1, -1).reshape(-1, samples.shape[1])
    piled, share = _piles(flat)
    if not piled.any():
        return
    subjects = np.unique(np.nonzero(piled)[0] // (len(flat) // len(samples)))
    raise InvalidInputError(
        f"Draws pile up at the largest time in {name_subjects(subjects)}: up to {share.max():.0%} of the "
        "draws of a subject are equal to it. The model seems to draw censored times, min(T, C). Draw event "
        "times instead: in PyMC from the distribution inside pm.Censored, in NumPyro from the likelihood "
        "without censoring. If the event time has an atom there, pass check_bound=False to from_draws."
    )


def _piles(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether each row has a pile at its largest finite value, and the share of draws there."""
    ordered = np.sort(samples, axis=1)
    finite = np.isfinite(ordered)
    top = np.where(finite, ordered, -np.inf).max(axis=1, keepdims=True)
    at_top = (ordered == top).sum(axis=1)
    # the longest run of equal values below the top
    new = np.ones(ordered.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    position = np.arange(ordered.shape[1])
    run = position - np.maximum.accumulate(np.where(new, position, 0), axis=1) + 1
    below = np.where(ordered < top, run, 0).max(axis=1)
    share = at_top / ordered.shape[1]
    piled = (at_top >= _PILE_LEAST) & (share >= _PILE_SHARE) & (at_top >= _PILE_RATIO * np.maximum(below, 1))
    return piled & np.isfinite(top[:, 0]), np.where(piled, share, 0.0)
