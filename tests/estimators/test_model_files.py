"""Model files: what was written is read back, anything else is refused."""

import numpy as np
import pytest
import torch

from censcore.estimators.neural.model_files import read_model_file, write_model_file
from censcore.exceptions import ModelFileError


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.safetensors"
    write_model_file(file, "thing", {"w": torch.arange(6.0).reshape(2, 3)}, {"a": [1, 2.5, None], "b": "x"})
    return file


def test_round_trip(path):
    tensors, settings = read_model_file(path, "thing")
    assert torch.equal(tensors["w"], torch.arange(6.0).reshape(2, 3))
    assert settings == {"a": [1, 2.5, None], "b": "x"}


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
    (tmp_path / "text").write_text("nothing of the kind")
    with pytest.raises(ModelFileError):
        read_model_file(tmp_path / "text", "thing")
    with pytest.raises(ModelFileError, match="no model file"):
        read_model_file(tmp_path / "absent", "thing")


def test_a_newer_version_is_refused(path):
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"version":"1"', b'"version":"9"'))
    with pytest.raises(ModelFileError, match="Update"):
        read_model_file(path, "thing")


def test_a_failed_write_leaves_the_old_file(path):
    before = path.read_bytes()
    with pytest.raises(TypeError):
        write_model_file(path, "thing", {}, {"not json": object()})
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == [path.name]
