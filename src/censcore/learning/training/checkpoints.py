"""Checkpoints: the state of a run in a file, which a run of the same identity continues."""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor

from censcore.exceptions import ModelFileError
from censcore.files import as_path
from censcore.learning.data.standardised import Data, as_arrays, as_tensors, digest
from censcore.learning.training.task import History
from censcore.model_files import part_of, read_model_file, write_model_file

_MODULES = ("network", "averaged", "kept")


class Checkpoint:
    """A file with tensors and settings of a run, whose ``identity`` are JSON values that must be equal."""

    def __init__(self, path: str | os.PathLike[str], kind: str, identity: Mapping[str, Any]) -> None:
        self.path, self.kind = as_path(path, "checkpoint"), kind
        self.identity = json.loads(json.dumps(identity))

    def save(self, tensors: Mapping[str, Tensor], settings: Mapping[str, Any]) -> None:
        """Write the state, in place of an earlier one."""
        write_model_file(self.path, self.kind, as_arrays(tensors), {**settings, "identity": self.identity})

    @contextmanager
    def state(self) -> Iterator[tuple[dict[str, Tensor], dict[str, Any]]]:
        """Give tensors and settings to a run of the same identity; errors in their use are the file's."""
        arrays, settings = read_model_file(self.path, self.kind)
        if settings.get("identity") != self.identity:
            raise ModelFileError(
                f"The checkpoint {self.path} belongs to a run with other data, settings or seed. Use another "
                "path, or delete it."
            )
        try:
            yield as_tensors(arrays), settings
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise ModelFileError(
                f"The checkpoint {self.path} cannot be restored ({type(error).__name__}: {error}). Delete it."
            ) from error


def digests(rows: Data) -> dict[str, str]:
    """Return hashes of the data, by which a checkpoint knows them."""
    return {name: digest(value) for name, value in rows.items()}


def identity_of(run: Any) -> dict[str, Any]:
    """Collect what must be equal for a :class:`Run` to be continued; patience may change."""
    held_out = [part for part in run.held_out if part is not None]
    apart = held_out[0].data if held_out and held_out[0].data is not run.data else {}
    numbers = [*run.batches.numbers, *(part.numbers for part in held_out)]
    return {
        "recipe": asdict(replace(run.recipe, patience=None)),
        "network": str(run.network),
        "task": getattr(run.task, "identity", {}),
        "seeds": list(run.seeds),
        "data": [digests(run.data), digests(apart), [digest(torch.from_numpy(own)) for own in numbers]],
    }


def tensors_of(run: Any) -> dict[str, Tensor]:
    """Collect the state of a :class:`Run`: that of its networks and optimiser, and the best losses."""
    parts = {name: getattr(run, name).state_dict() for name in _MODULES}
    parts |= {f"optimizer.{i}": state for i, state in run.optimizer.state_dict()["state"].items()}
    parts["best"] = {str(i): losses for i, losses in enumerate(run.best) if losses is not None}
    return {f"{prefix}.{name}": value for prefix, part in parts.items() for name, value in part.items()}


def restore(run: Any, tensors: dict[str, Tensor], settings: Mapping[str, Any]) -> None:
    """Give a :class:`Run` the state that a checkpoint holds."""
    for name in _MODULES:
        getattr(run, name).load_state_dict(part_of(tensors, name))
    state: dict[int, dict[str, Tensor]] = {}
    parameters = [p for group in run.optimizer.param_groups for p in group["params"]]
    for name, value in part_of(tensors, "optimizer").items():
        i, entry = name.split(".")
        if value.ndim:
            if value.shape != parameters[int(i)].shape:
                raise ValueError(f"optimizer.{name} has the shape {tuple(value.shape)}")
            value = torch.empty_like(parameters[int(i)]).copy_(value)  # fused steps need equal strides
        state.setdefault(int(i), {})[entry] = value
    run.optimizer.load_state_dict(run.optimizer.state_dict() | {"state": state})
    run.best = [tensors.get(f"best.{i}") for i in range(run.count)]
    for losses, part in zip(run.best, run.held_out, strict=True):
        if losses is not None and (part is None or losses.shape != (part.n,)):
            raise ValueError("best has not one loss per validation subject")
    run.histories = [History.from_dict(h | {"interrupted": False}) for h in settings["histories"]]
    run.steps = operator.index(settings["steps"])
