"""Colours and titles in the tables and figures of the study."""

from __future__ import annotations

from censcore_studies.kit.figures import AMBER, GREY, RED, TEAL

__all__ = ["COLOURS", "REGIME_TITLES"]

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
