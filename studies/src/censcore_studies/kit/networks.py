"""Settings of networks that several studies share."""

from __future__ import annotations

from typing import Any

__all__ = ["ONE_NETWORK"]

#: The method of the paper: one network, all covariates alike, and no part of the draws from a simple model.
#: The defaults of the library would mix in the very models that a study compares it with.
ONE_NETWORK: dict[str, Any] = {"n_generators": 1, "baseline": False, "sparsity": 0.0}
