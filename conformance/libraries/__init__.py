"""How the quantities of the cases are computed by each library, as its documentation says."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version

from censcore.exceptions import InvalidInputError
from conformance.libraries.recorded_r import OFFERED, versions
from conformance.runner import Adapter

__all__ = ["LIBRARIES", "installed", "library"]

#: Libraries with an adapter, by the name of their distribution, with the module that holds it.
LIBRARIES = {
    "censcore": "scores_of_this_library",
    "scikit-survival": "scikit_survival",
    "hazardous": "hazardous",
    "pycox": "pycox",
    "torchsurv": "torchsurv",
    "SurvivalEVAL": "survival_eval",
    "lifelines": "lifelines",
    "scoringrules": "scoringrules",
    "riskRegression": "risk_regression",
    "survival": "survival",
}


def installed() -> dict[str, str]:
    """Libraries with an adapter that are installed, and their versions; of R those that were recorded.

    Returns
    -------
    dict

    Examples
    --------
    >>> from conformance import installed
    >>> "censcore" in installed()
    True
    """
    found: dict[str, str] = {}
    for name in LIBRARIES:
        if name in OFFERED:
            found[name] = versions()[name]
            continue
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def library(name: str) -> Adapter:
    """The adapter of a library.

    Parameters
    ----------
    name : str
        A key of ``LIBRARIES``. The library is imported when a case is run.

    Returns
    -------
    dict
        Functions by quantity, for :func:`run`.

    See Also
    --------
    installed : Which of them can be run.

    Examples
    --------
    >>> from conformance import library, run
    >>> run(library("censcore")).counts()
    {'right': 98}
    """
    if name not in LIBRARIES:
        raise InvalidInputError(f"got {name!r}, expected one of {sorted(LIBRARIES)}.")
    module = import_module(f"conformance.libraries.{LIBRARIES[name]}")
    adapter: Adapter = module.ADAPTER
    return adapter
