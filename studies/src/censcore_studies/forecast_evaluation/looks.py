"""How tables and figures of the study show a regime, a kind of rule, a number."""

from __future__ import annotations

from math import isnan

from censcore_studies.kit.figures import AMBER, GREY, RED, TEAL

__all__ = ["COLOURS", "REGIME_TITLES", "plus_minus"]

COLOURS = {"latent": GREY, "plug-in": RED, "oracle weights": AMBER, "ours": TEAL}

REGIME_TITLES = {
    "A": "A  end of study",
    "B": "B  random",
    "C": "C  depends on x",
    "D": "D  trap",
    "lung cancer": "like lung cancer",
    "breast cancer": "like breast cancer",
    "kidney transplant": "like kidney transplant",
}


def plus_minus(value: float, error: float) -> str:
    """A number and its error, where there is one."""
    return f"{value:.4f}" if isnan(error) else f"{value:.4f} ± {error:.4f}"
