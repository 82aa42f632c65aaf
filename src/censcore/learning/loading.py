"""Read a model file of any kind."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from censcore.exceptions import ModelFileError
from censcore.learning.model_files import kind_of_file

__all__ = ["load"]

#: Kind of a model file -> module of its class.
_MODULES = {
    "CensoredEngression": "censcore.learning.engression",
    "CopulaWeibull": "censcore.learning.copula",
    "JointGridModel": "censcore.learning.grid",
    "MixtureDensityNetwork": "censcore.learning.mixture_density_network",
}


def load(path: str | os.PathLike[str], device: str = "auto") -> Any:
    """Read a fitted model, whatever its class.

    Parameters
    ----------
    path : path
        A file that the method ``save`` of a model wrote. Nothing in it is executed; an altered, damaged or
        foreign file raises a ModelFileError.
    device : str
        Where the model computes.

    Returns
    -------
    estimator
        The fitted model.

    See Also
    --------
    censcore.CensoredEngression.save : Writes such a file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np, censcore as cs
    >>> y = cs.RightCensored(np.random.default_rng(0).exponential(size=(50, 2)), np.ones((50, 2)))
    >>> model = cs.CensoredEngression(epochs=1, n_networks=1, random_state=0).fit(None, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/model")
    ...     again = cs.load(f"{folder}/model")
    >>> type(again).__name__
    'CensoredEngression'
    """
    kind = kind_of_file(path)
    if kind not in _MODULES:
        raise ModelFileError(
            f"{path}: got a {kind}, expected a model ({', '.join(_MODULES)}). A checkpoint is continued by "
            "fit, with the settings of its run."
        )
    return getattr(import_module(_MODULES[kind]), kind).load(path, device)
