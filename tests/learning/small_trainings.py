"""Data, networks and tasks that train in a moment, also in other processes."""

import os
from dataclasses import fields, replace
from pathlib import Path

import pytest

from censcore.simulation import LogNormalScenario

torch = pytest.importorskip("torch", reason="networks need the extra 'torch'")

from censcore.learning import Network, Training  # noqa: E402
from censcore.learning.engression import CensoredEngression  # noqa: E402

#: The environment of a process that can import the tests.
WITH_TESTS = os.environ | {
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
}

SMALL = {
    "width": 8, "depth": 1, "noise_dim": 4, "samples": 2, "epochs": 2, "n_networks": 1, "random_state": 0,
    "batch_size": 64, "validate_every": 1,
}  # fmt: skip


def engression(**settings):
    """Censored engression with settings by their names, whether of the estimator, the network or training."""
    parts = [
        make(**{f.name: settings.pop(f.name) for f in fields(make) if f.name in settings})
        for make in (Network, Training)
    ]
    return CensoredEngression(network=parts[0], training=parts[1], **settings)


def likelihood(kind, *args, **settings):
    """A likelihood model with settings by their names, whether of the estimator or of its training."""
    changes = {f.name: settings.pop(f.name) for f in fields(Training) if f.name in settings}
    return kind(*args, training=replace(kind.default_training, **changes), **settings)


def sample(n=600, k=2, seed=0, censoring="uniform"):
    return LogNormalScenario(k=k, censoring=censoring).sample(n, seed=seed)


def weights_of(model):
    return torch.cat([p.detach().reshape(-1) for p in model._networks[0].parameters()]).numpy()


class Regression:
    """Least squares with a little noise on the inputs: a task small enough to follow."""

    def __init__(self, seed=0):
        torch.manual_seed(seed)
        self.network = torch.nn.Linear(3, 1)

    def draw(self, n, generator, device, validating=False):
        return {"noise": 0.1 * torch.randn(n, 3, generator=generator, device=device)}

    def loss(self, network, rows, random):
        return (network(rows["x"] + random["noise"])[:, 0] - rows["y"]) ** 2
