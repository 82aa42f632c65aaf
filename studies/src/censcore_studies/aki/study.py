"""The whole study in one call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from censcore_studies.aki.build import build
from censcore_studies.aki.engine import Resources, Say
from censcore_studies.aki.evaluation import evaluate
from censcore_studies.aki.methods import Preset
from censcore_studies.aki.report import report
from censcore_studies.aki.settings import AkiSettings
from censcore_studies.aki.training import train

__all__ = ["run_all"]


def run_all(
    data_dir: str | Path,
    out: str | Path,
    preset: str | Preset = "quick",
    methods: Sequence[str] | None = None,
    *,
    settings: AkiSettings | None = None,
    resources: Resources | None = None,
    device: str = "auto",
    reveal: bool = False,
    say: Say | None = None,
    progress: bool = False,
) -> Path:
    """Build, train, evaluate and report; what is already there is kept. Returns the page.

    The parameters are those of :func:`build`, :func:`train`, :func:`evaluate` and :func:`report`.
    """
    build(data_dir, out, settings, resources=resources, say=say)
    train(out, preset, methods, device=device, say=say)
    evaluate(out, device=device, say=say, progress=progress)
    return report(out, reveal=reveal)
