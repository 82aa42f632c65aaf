"""Training: one resumable stage per method."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from censcore.exceptions import InvalidInputError
from censcore.store import content_key
from censcore_studies.aki.data import AkiRows, Build, open_build
from censcore_studies.aki.engine import Say
from censcore_studies.aki.methods import METHODS, Method, Preset, preset_named
from censcore_studies.kit.store import Stage, locked, run_stage, write_json

if TYPE_CHECKING:
    from censcore.learning import Callback, Epoch

__all__ = ["train"]

_FORMAT = 1  # raise it when the same rows and sizes give another model


def train(
    out: str | Path,
    preset: str | Preset = "quick",
    methods: Sequence[str] | None = None,
    *,
    device: str = "auto",
    say: Say | None = None,
) -> dict[str, Stage]:
    """Train the methods of the study on a finished build.

    Each method is a stage of its own: one that was trained on the same rows, at the same size and on the same
    kind of device is kept. An interrupted training continues from its last epoch.

    Parameters
    ----------
    out : path
        The output directory of :func:`build`; receives ``models/<method>/model.safetensors``.
    preset : {"quick", "paper"} or Preset
        Sizes of data and networks.
    methods : sequence of str, optional
        Names out of :data:`METHODS`; all by default.
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ...
    say : callable, optional
        Receives lines of progress.

    Returns
    -------
    dict of Stage
        By method.
    """
    out, size, tell = Path(out), preset_named(preset), say or (lambda _: None)
    chosen = _chosen(methods)
    build = open_build(out)
    with locked(out):
        data, kind = _Data(build, size, tell), device_kind(device)
        stages = {}
        for method in chosen:
            key = training_key(build, size, method, kind)
            checkpoint = out / "checkpoints" / f"{method.name}-{key[:16]}"
            make = partial(_train, data, method, size, device, checkpoint, tell)
            stages[method.name] = run_stage(out, f"models/{method.name}", key, make, tell)
            checkpoint.unlink(missing_ok=True)  # a run that is killed before goes on from it
        write_json(out / "preset.json", dataclasses.asdict(size))
    return stages


def training_key(build: Build, preset: Preset, method: Method, kind: str) -> str:
    """Hash of everything that a model trained on this kind of device depends on."""
    return content_key(_FORMAT, build.key, dataclasses.asdict(preset), dataclasses.asdict(method), kind)


def device_kind(device: str) -> str:
    """``"cpu"``, ``"cuda"``, ...: what decides arithmetic and precision, whichever GPU it is.

    Examples
    --------
    >>> from censcore_studies.aki.training import device_kind
    >>> device_kind("cuda:1")
    'cuda'
    """
    if device != "auto":
        return device.partition(":")[0]
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _chosen(methods: Sequence[str] | None) -> list[Method]:
    names = list(METHODS) if methods is None else list(methods)
    unknown = [name for name in names if name not in METHODS]
    if unknown or not names:
        raise InvalidInputError(f"Unknown methods {unknown}; expected some of {list(METHODS)}.")
    return [METHODS[name] for name in names]


class _Data:
    """Training and validation rows, opened when the first method needs them."""

    def __init__(self, build: Build, preset: Preset, say: Say) -> None:
        self.build, self._preset, self._say = build, preset, say
        self._sides: dict[str, AkiRows] = {}

    def __getitem__(self, side: str) -> AkiRows:
        if side not in self._sides:
            preset = self._preset
            self._sides[side] = (
                self.build.rows("train", preset.training_rows, preset.rows_per_stay, preset.seed, self._say)
                if side == "train"
                else self.build.rows("validation", preset.validation_rows, None, preset.seed, self._say)
            )
        return self._sides[side]


def _progress(label: str, say: Say, seconds: float = 2.0) -> Callback:
    """Tell the validation loss now and then."""
    told = time.monotonic()

    def after(epoch: Epoch, _: Any) -> None:
        nonlocal told
        if time.monotonic() - told >= seconds:
            loss = "" if epoch.validation_loss is None else f", validation loss {epoch.validation_loss:.4g}"
            say(f"{label}: epoch {epoch.epoch}{loss}")
            told = time.monotonic()

    return after


def _train(
    data: _Data, method: Method, preset: Preset, device: str, checkpoint: Path, say: Say, folder: Path
) -> dict[str, Any]:
    checkpoint.parent.mkdir(exist_ok=True)
    model = method.estimator(preset, device, checkpoint)
    training, validation = data["train"], data["validation"]
    say(f"models/{method.name}: {len(training):,} training and {len(validation):,} validation rows")
    method.fit(
        model, training, validation, data.build.preprocessing, [_progress(f"models/{method.name}", say)]
    )
    history = model.history_
    if history.interrupted:
        raise KeyboardInterrupt  # the checkpoint stays, and the next run goes on from it
    model.save(folder / "model.safetensors")
    losses = [
        {"epoch": e.epoch, "training": e.train_loss, "validation": e.validation_loss} for e in history.epochs
    ]
    write_json(folder / "history.json", losses)
    return {
        "device": device_kind(device),
        "epochs": len(losses),
        "kept_epoch": history.kept_epoch,
        "training_rows": len(training),
        "validation_loss": next(
            (e["validation"] for e in reversed(losses) if e["validation"] is not None), None
        ),
    }
