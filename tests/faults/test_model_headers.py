"""Whatever a model file holds, it is an error of ours or a model that predicts finite numbers."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import ModelFileError

torch = pytest.importorskip("torch")

from tests.learning.small_trainings import engression  # noqa: E402

from censcore.model_files import (  # noqa: E402
    kind_of_file,
    read_model_file,
    write_model_file,
)

RNG = np.random.default_rng(0)
X, T = RNG.normal(size=(60, 2)), RNG.exponential(size=(60, 2))
Y = cs.RightCensored(np.minimum(T, 1.5), T <= 1.5, np.full(60, 1.5))
NETWORK = {"epochs": 1, "device": "cpu", "random_state": 0}
MODELS = {
    "CensoredEngression": lambda: engression(
        width=8, depth=2, noise_dim=4, n_samples=8, n_networks=1, **NETWORK
    ),
    "CopulaWeibull": lambda: cs.CopulaWeibull(**NETWORK),
    "JointGridModel": lambda: cs.JointGridModel(bins=4, hidden=(4,), **NETWORK),
}
HOSTILE = [None, "x", -1, float("nan"), 1e308, [], {"a": 1}, 10**12]


@pytest.fixture(scope="module", params=MODELS)
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    MODELS[request.param]().fit(X, Y).save(path)
    return path, path.read_bytes()


def header_of(data: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(header: Any, rest: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + rest


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of a nested value, of long lists only the first."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for name in list(value)[:60] if isinstance(value, dict) else range(min(len(value), 1)):
            yield from places(value[name], (*path, name))


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    value = copy.deepcopy(value)
    inner = value
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = new
    return value


def test_every_change_of_the_header_is_found(saved):
    path, data = saved
    header, rest = header_of(data)
    for place in places(header):
        for new in (None, "x", 3, [], {}):
            other = changed(header, place, new)
            if other == header:
                continue
            path.write_bytes(with_header(other, rest))
            with pytest.raises(ModelFileError):
                cs.load(path, device="cpu")
    path.write_bytes(data)
    cs.load(path, device="cpu")


def check_loaded(path, what: Any) -> None:
    """An error of ours, or a model whose draws are times."""
    try:
        model = cs.load(path, device="cpu")
    except ModelFileError:
        return
    draws = model.predict_distribution(X[:2]).sample(3, seed=0)
    assert (np.asarray(draws) >= 0).all(), what


def test_settings_with_a_right_checksum(saved):
    """As from somebody who changes a file and its checksum."""
    path, data = saved
    path.write_bytes(data)
    kind = kind_of_file(path)
    tensors, settings = read_model_file(path, kind)
    history = [place for place in places(settings) if "history" in place]
    for place in places(settings):
        if place in history[1:] or (place[0] == "parameters" and place[-1] not in SEEN_WHEN_PREDICTING):
            continue
        for new in HOSTILE:
            write_model_file(path, kind, tensors, changed(settings, place, new))
            check_loaded(path, (place, new))
    path.write_bytes(data)


SEEN_WHEN_PREDICTING = {
    "parameters",
    "n_samples",
    "random_state",
    "width",
    "depth",
    "copula",
    "hidden",
    "bins",
}


def test_tensors_with_a_right_checksum(saved):
    path, data = saved
    path.write_bytes(data)
    kind = kind_of_file(path)
    tensors, settings = read_model_file(path, kind)
    for name, tensor in tensors.items():
        flat = tensor.reshape(-1)
        others = [flat[:-1], np.append(flat, flat[:1]), tensor.astype(np.int64), np.array(1.0)]
        for other in [*others, np.full_like(tensor, np.nan)]:
            write_model_file(path, kind, tensors | {name: other}, settings)
            check_loaded(path, (name, other.shape, other.dtype))
        write_model_file(path, kind, {n: t for n, t in tensors.items() if n != name}, settings)
        with pytest.raises(ModelFileError):
            cs.load(path, device="cpu")
    path.write_bytes(data)


def test_checkpoints_with_a_right_checksum(tmp_path):
    path = tmp_path / "state"
    model = engression(
        width=8, depth=2, noise_dim=4, n_networks=1, checkpoint=path, **NETWORK | {"epochs": 2}
    )
    model.fit(X, Y)
    kind = kind_of_file(path)
    tensors, settings = read_model_file(path, kind)
    for name in settings:
        for new in (None, "x", [], {}, {"epochs": 3}):
            write_model_file(path, kind, tensors, settings | {name: new})
            with pytest.raises(ModelFileError):
                model.fit(X, Y)
    for name in list(tensors)[:: len(tensors) // 5]:
        write_model_file(path, kind, tensors | {name: torch.zeros(3, 3)}, settings)
        with pytest.raises(ModelFileError):
            model.fit(X, Y)
    write_model_file(path, kind, tensors, settings)
    model.fit(X, Y)
