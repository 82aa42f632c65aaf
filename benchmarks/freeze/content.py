"""What is frozen of a result: its JSON, tables and texts, without times of the clock and version numbers."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from censcore.exceptions import CenscoreError


def content_of(result: Any, curves: bool) -> Any:
    """The content of a result as JSON has it."""
    if hasattr(result, "comparisons"):  # landmarks
        content: dict[str, Any] = {
            f"landmark {s:g}": _of_comparison(c, False) for s, c in zip(result.landmarks, result, strict=True)
        }
        content["means over landmarks"] = _lines(result.average)
        content["differences over landmarks"] = _lines(result.average_differences)
        return content | {"text": repr(result)}
    return _of_comparison(result, curves) if hasattr(result, "to_json") else _plain(result)


def _of_comparison(comparison: Any, curves: bool) -> dict[str, Any]:
    content = json.loads(comparison.to_json())
    content["settings"].pop("censcore")
    content |= {"text": str(comparison), "latex": comparison.to_latex(), "markdown": comparison.to_markdown()}
    if curves:
        content |= {"curves": {name: _curves(one) for name, one in _events_of(comparison)}}
    if "cross-validation" in content["settings"]:
        folds = _lines(comparison.folds)
        content["folds"] = [{key: value for key, value in line.items() if key != "seconds"} for line in folds]
    return content


def _events_of(comparison: Any) -> list[tuple[str, Any]]:
    """The comparisons of one event each."""
    if not comparison.outcomes:
        return [("one event", comparison)]
    return [(name, comparison.of(name)) for name in comparison.pictured("calibration")]


def _curves(one: Any) -> dict[str, Any]:
    model = one.models[0]
    thresholds = [0.2, 0.4]
    return {
        "calibration": _lines(lambda: one.calibration(model)),
        "net benefit": _lines(lambda: one.net_benefit(thresholds=thresholds)),
        "classification": _lines(lambda: one.classification(thresholds=thresholds)),
        "roc": _lines(one.roc)[::10],
        "auc": _lines(one.auc),
        "risks": _lines(one.risks),
    }


def _lines(make: Callable[[], Any]) -> list[dict[str, Any]]:
    """The lines of a table; the message where it is refused."""
    try:
        made = make()
    except CenscoreError as error:
        return [{"refused": f"{type(error).__name__}: {error}"}]
    frame = made.frame() if hasattr(made, "frame") else made
    lines: list[dict[str, Any]] = _plain(frame.to_dict("records"))
    if hasattr(made, "ici"):
        lines.append(_plain({"ici": made.ici, "e50": made.e50, "e90": made.e90, "text": repr(made)}))
    return lines


def _plain(value: Any) -> Any:
    """As :meth:`Comparison.to_json` writes it: None for NaN, "inf" for infinity."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not np.isfinite(value):
        return None if np.isnan(value) else str(value)
    return value


def record(names: list[str]) -> dict[str, Any]:
    """The contents of cases by name; of one that fails, how."""
    from benchmarks.freeze.cases import CASES, WITH_CURVES

    contents = {}
    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                contents[name] = content_of(CASES[name](), name in WITH_CURVES)
            except Exception as error:
                contents[name] = {"failed": f"{type(error).__name__}: {error}"}
    return contents
