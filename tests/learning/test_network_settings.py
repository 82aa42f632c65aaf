"""Settings of networks, their devices and files: what is no setting is an error before training."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from tests.learning.small_trainings import engression, likelihood

import censcore as cs
from censcore.exceptions import CenscoreError, InvalidTypeError

N = 30
RNG = np.random.default_rng(0)
TIME, EVENT, X = RNG.weibull(1.3, N) + 0.01, np.arange(N) % 3 > 0, RNG.normal(size=(N, 2))
Y = cs.RightCensored(TIME, EVENT)
TWO = cs.RightCensored(np.column_stack([TIME, TIME]), np.column_stack([EVENT, EVENT]))
F = cs.Weibull(1.3, np.linspace(1.0, 2.0, N))
ENGRESSION = {
    "epochs": 1,
    "width": 4,
    "samples": 2,
    "n_samples": 4,
    "n_networks": 1,
    "random_state": 0,
}

NETWORKS = {
    "CensoredEngression": (Y, ENGRESSION),
    "CopulaWeibull": (TWO, {"hidden": (4,), "epochs": 1, "random_state": 0}),
    "JointGridModel": (TWO, {"hidden": (4,), "bins": 2, "epochs": 1, "random_state": 0}),
}
SETTINGS = {
    "epochs": (None, "3", 0, 2.5, np.nan, [3], np.zeros(2, dtype=[("a", float)])),
    "validate_every": (None, 0, "1", 0.5),
    "batch_size": (None, 0, "8", 2.5),
    "learning_rate": (None, 0.0, "0.1", np.nan, np.inf),
    "weight_decay": (None, -1.0, "0"),
    "warmup": (None, -0.5, 2.0, "0"),
    "clip": (0.0, "1", np.nan),
    "averaging": (1.5, "0.9", -0.1),
    "patience": (-1, "3", 2.5),
    "tolerance": (None, -1.0, "0"),
    "validation_fraction": (None, 1.0, "0.2"),
    "device": ("mps", "meta", "nowhere", "cuda:99", 3, None),
}


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_settings_of_networks_are_checked(name, setting):
    y, settings = NETWORKS[name]
    make = engression if name == "CensoredEngression" else partial(likelihood, getattr(cs, name))
    for value in SETTINGS[setting]:
        with pytest.raises(CenscoreError, match=f"{setting}.*(must|got|expected)"):
            make(**{**settings, setting: value}).fit(X, y)


@pytest.mark.parametrize(
    ("setting", "values"),
    {
        "width": (None, 0, "8"),
        "depth": (None, -1, "1"),
        "noise_dim": (None, 0, "2"),
        "samples": (None, 1, "2"),
        "n_samples": (None, 0, "8"),
        "n_networks": (None, 0, 1.5),
        "dropout": (None, 1.0, "0"),
        "beta": (None, 2.0, "1"),
        "sparsity": (None, -1.0, "no"),
        "skip": (None, "yes", np.full(3, np.nan)),
        "layer_norm": (None, 2),
        "ordered": ("no", None),
    }.items(),
)
def test_settings_of_engression_are_checked(setting, values):
    for value in values:
        with pytest.raises(CenscoreError, match=f"{setting}.*(must|got|expected)"):
            engression(**{**ENGRESSION, setting: value}).fit(X, Y)


def test_settings_of_likelihood_models_are_checked():
    for settings, words in (
        ({"margins_first": "no"}, "margins_first must be True or False"),
        ({"max_iter": None}, "max_iter must be a whole number"),
        ({"hidden": (4, None)}, "hidden"),
    ):
        with pytest.raises(CenscoreError, match=words):
            cs.CopulaWeibull(**settings).fit(X, TWO)
    for settings, words in (({"bins": None}, "bins must be"), ({"tail": None}, "tail must be")):
        with pytest.raises(CenscoreError, match=words):
            cs.JointGridModel(epochs=1, **settings).fit(X, TWO)
    with pytest.raises(InvalidTypeError, match="training: got int, expected Training"):
        cs.CopulaWeibull(training=3).fit(X, TWO)


def test_numbers_of_numpy_are_settings_too():
    settings = {**ENGRESSION, "width": np.int64(4), "epochs": 1.0, "samples": 2.0}
    found = engression(**settings, batch_size=np.int32(8)).fit(X, Y).predict_distribution(X)
    expected = engression(**ENGRESSION, batch_size=8).fit(X, Y)
    np.testing.assert_array_equal(found.samples, expected.predict_distribution(X).samples)


@pytest.mark.parametrize(
    "device",
    ["mps", "nowhere", "cuda:99", object()],
    ids=lambda device: device if isinstance(device, str) else "object",
)
def test_a_device_that_is_not_there_is_named(device):
    for call in (lambda: Y.to(device), lambda: F.to(device)):
        with pytest.raises(CenscoreError, match="device"):
            call()


@pytest.mark.parametrize(
    "path", [None, 3, 1.5, [], {}, True, b"model", object()], ids=lambda path: type(path).__name__
)
def test_a_model_file_is_found_by_a_path(path):
    with pytest.raises(InvalidTypeError, match=r"path: got .*, expected a path"):
        cs.load(path)
    with pytest.raises(InvalidTypeError, match=r"path: got .*, expected a path"):
        cs.CensoredEngression.load(path)
