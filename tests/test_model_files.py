"""Model files: what was written is read back, anything else is refused."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, ModelFileError
from censcore.model_files import _unpacked, read_model_file, write_model_file
from tests.learning.small_trainings import engression


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.safetensors"
    write_model_file(file, "thing", {"w": torch.arange(6.0).reshape(2, 3)}, {"a": [1, 2.5, None], "b": "x"})
    return file


def test_round_trip(path):
    tensors, settings = read_model_file(path, "thing")
    np.testing.assert_array_equal(tensors["w"], np.arange(6.0).reshape(2, 3))
    assert settings == {"a": [1, 2.5, None], "b": "x"}


ARRAYS = [
    np.array(1.5), np.arange(3, dtype=">i4"), np.zeros((2, 0), np.float16), np.array([[True, False]]),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(5, dtype=np.uint8),
]  # fmt: skip


def test_other_readers_of_the_format_agree(tmp_path):
    from safetensors.numpy import load, save

    arrays = {f"array{i}": array for i, array in enumerate(ARRAYS)}
    write_model_file(tmp_path / "a", "thing", arrays, {})
    kept, _ = read_model_file(tmp_path / "a", "thing")
    theirs = load((tmp_path / "a").read_bytes())
    for name, array in arrays.items():
        for found in (kept[name], theirs[name]):
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype.newbyteorder("=")
    header, packed = _unpacked(save(kept, metadata={"a": "b"}))
    assert header == {"a": "b"}
    assert all((packed[name] == array).all() for name, array in arrays.items())


def test_arrays_that_the_format_does_not_have_are_refused(path):
    with pytest.raises(InvalidTypeError, match="complex128"):
        write_model_file(path, "thing", {"w": np.ones(2, complex)}, {})


@pytest.mark.parametrize("keep", [0, 4, 60, -1])
def test_a_truncated_file_is_refused(path, keep):
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelFileError):
        read_model_file(path, "thing")


def test_another_kind_a_foreign_file_and_a_missing_one_are_refused(path, tmp_path):
    with pytest.raises(ModelFileError, match="got a thing"):
        read_model_file(path, "other thing")
    from safetensors.numpy import save_file

    save_file({"w": np.ones(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(ModelFileError, match="not a model of censcore"):
        read_model_file(tmp_path / "foreign.safetensors", "thing")
    (tmp_path / "text").write_text("nothing of the kind", encoding="utf-8")
    with pytest.raises(ModelFileError):
        read_model_file(tmp_path / "text", "thing")
    with pytest.raises(ModelFileError, match="no model file"):
        read_model_file(tmp_path / "absent", "thing")


def test_a_newer_version_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"version":"2"', b'"version":"9"'))
    with pytest.raises(ModelFileError, match="Update"):
        read_model_file(path, "thing")


def test_a_model_with_an_array_among_its_parameters_is_saved(tmp_path):
    y = cs.RightCensored(np.random.default_rng(0).exponential(size=(40, 2)), np.ones((40, 2)))
    model = cs.JointGridModel(edges=np.array([0.0, 1.0, 2.0]), epochs=1, random_state=0).fit(None, y)
    model.save(tmp_path / "model")
    again = cs.load(tmp_path / "model")
    t = np.array([[0.5, 1.5]])
    np.testing.assert_array_equal(again.predict_distribution().sf(t), model.predict_distribution().sf(t))


def test_a_failed_write_leaves_the_old_file(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_model_file(path, "thing", {}, {"not json": object()})
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_flipped_bit_is_found_wherever_it_is(path):
    data = path.read_bytes()
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 1 << (place % 8)
        path.write_bytes(changed)
        with pytest.raises(ModelFileError):
            read_model_file(path, "thing")


def test_a_file_without_checksum_or_of_an_older_version_is_refused(path):
    from safetensors.torch import save

    header = {"format": "censcore-model", "version": "1", "kind": "thing", "settings": "{}"}
    for version, message in {"1": "got format version 1, expected 2", "2": "incomplete"}.items():
        path.write_bytes(save({"w": torch.ones(2)}, metadata=header | {"version": version}))
        with pytest.raises(ModelFileError, match=message):
            read_model_file(path, "thing")


@pytest.fixture(scope="module")
def fitted():
    T = np.random.default_rng(0).exponential(size=(60, 2))
    model = engression(width=8, depth=2, noise_dim=4, epochs=1, n_networks=1, random_state=0, device="cpu")
    return model.fit(None, cs.RightCensored(T, np.ones((60, 2))))


def change_weights(tensors, settings):
    tensors["0.last.bias"][0] = torch.nan


def change(*names, to):
    def changed(tensors, settings):
        for name in names[:-1]:
            settings = settings[name]
        settings[names[-1]] = to

    return changed


@pytest.mark.parametrize(
    ("alter", "message"),
    [
        (change_weights, "NaN"),
        (change("fitted", "unit", to=-1), "unit must be a finite number above .*; got -1"),
        (change("fitted", "scale", to=[1.0]), "scale: got 1 numbers, expected 2"),
        (change("parameters", "network", "depth", to=10**5), "depth must be a whole number .*; got 100000"),
        (change("parameters", "network", "width", to=10**9), "width"),
        (change("parameters", "colour", to="red"), "colour"),
        (change("parameters", "training", "colour", to="red"), "colour"),
        (change("parameters", "network", "activation", to="none"), "activation"),
        (change("fitted", "generators", to=10**6), "generators"),
        (change("fitted", "generators", to=2), "restored"),
        (change("k", to=3), "scale"),
        (change("k", to="two"), "k must be a whole number; got .two."),
        (change("fitted", to=None), "restored"),
    ],
)
def test_contents_that_cannot_be_are_errors_even_with_a_right_checksum(fitted, tmp_path, alter, message):
    file = tmp_path / "model"
    fitted.save(file)
    tensors, settings = read_model_file(file, "CensoredEngression")
    alter(tensors, settings)
    write_model_file(file, "CensoredEngression", tensors, settings)
    with pytest.raises(ModelFileError, match=message):
        cs.load(file)


def test_a_model_is_loaded_without_knowing_its_class(fitted, tmp_path, path):
    fitted.save(tmp_path / "model")
    again = cs.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.sample(None, 50), fitted.sample(None, 50))
    with pytest.raises(ModelFileError, match="got a thing, expected a model"):
        cs.load(path)
    with pytest.raises(InvalidInputError, match="device"):
        cs.load(tmp_path / "model", device="tpu")


@pytest.mark.parametrize("n_networks", ["auto", 10])
def test_a_model_of_several_networks_is_loaded(tmp_path, n_networks):
    T = np.random.default_rng(0).exponential(size=(60, 1))
    model = engression(
        width=4, depth=1, noise_dim=2, epochs=1, n_networks=n_networks, random_state=0, device="cpu"
    )
    model.fit(None, cs.RightCensored(T, np.ones((60, 1)))).save(tmp_path / "model")
    again = cs.load(tmp_path / "model", device="cpu")
    np.testing.assert_array_equal(again.sample(None, 50), model.sample(None, 50))


def test_resuming_compares_contents_and_not_their_sums(tmp_path):
    T = np.random.default_rng(0).exponential(size=(60, 1))
    y = [cs.RightCensored(t, np.ones((60, 1))) for t in (T, T[::-1])]
    model = engression(
        width=8,
        depth=2,
        epochs=1,
        n_networks=1,
        random_state=0,
        device="cpu",
        checkpoint=tmp_path / "state",
    )
    model.fit(None, y[0])
    model.fit(None, y[0])
    with pytest.raises(ModelFileError, match="other data"):
        model.set_params(training=replace(model.training, validation_fraction=0.0)).fit(None, y[0])
    other = model.set_params(checkpoint=tmp_path / "other").fit(None, y[0])
    with pytest.raises(ModelFileError, match="other data"):
        other.fit(None, y[1])
