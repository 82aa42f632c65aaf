"""Model files: tensors in safetensors, everything else in its JSON header; nothing in them can run code."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from censcore._validation import check_kind
from censcore.exceptions import MissingPackageError, ModelFileError
from censcore.files import write_atomically
from censcore.plain_text import one_line

__all__ = ["kind_of_file", "part_of", "read_model_file", "write_model_file"]

FORMAT = "censcore-model"
VERSION = 2  # from which on files have a checksum


def write_model_file(
    path: str | os.PathLike[str], kind: str, tensors: dict[str, Any], settings: dict[str, Any]
) -> None:
    """Write tensors and plain JSON settings in one piece: the file is complete or not there.

    Parameters
    ----------
    path : path
        Where to write; an existing file is replaced only by a complete new one.
    kind : str
        What the file holds; :func:`read_model_file` checks it.
    tensors : dict of torch tensors
        Weights and other arrays.
    settings : dict
        JSON values: numbers, strings, lists, dicts, None.

    Examples
    --------
    >>> import tempfile, torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_model_file(f"{folder}/a", "example", {"w": torch.ones(2)}, {"seed": 1})
    ...     read_model_file(f"{folder}/a", "example")
    ({'w': tensor([1., 1.])}, {'seed': 1})
    """
    save = _safetensors("save")
    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    header = {"format": FORMAT, "version": str(VERSION), "kind": kind, "settings": json.dumps(settings)}
    header["checksum"] = _checksum(header, plain)
    write_atomically(path, _in_order(save(plain, metadata=header)))


def _in_order(data: bytes) -> bytes:
    """The file with its metadata in order, which safetensors leaves to chance: one model, the same bytes."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at multiples of eight bytes
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def read_model_file(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read a file that :func:`write_model_file` wrote.

    Parameters
    ----------
    path : path
        Where to read.
    kind : str
        What the file should hold.

    Returns
    -------
    tensors, settings : dict
        As they were given to :func:`write_model_file`.

    Raises
    ------
    ModelFileError
        The file is missing, truncated, corrupted, of a newer version, of another kind or not a model of
        censcore.
    """
    path = _as_path(path)
    data, header = _checked_header(path)
    if header["kind"] != kind:
        raise _told(f"{path}: got a {header['kind']:.60}, expected a {kind}.")
    try:
        tensors, settings = _safetensors("load")(data), json.loads(header["settings"])
        checksum = _checksum(header, tensors) if "checksum" in header else None
    except Exception as error:
        raise _told(f"{path} is corrupted or truncated ({error}). Save the model again.") from error
    if header.get("checksum") != checksum or not isinstance(settings, dict):
        raise _told(
            f"{path} was altered or damaged: its contents do not fit its checksum. Save the model again."
        )
    return tensors, settings


def kind_of_file(path: str | os.PathLike[str]) -> str:
    """What a model file holds, by its header.

    Parameters
    ----------
    path : path
        Where to read.

    Returns
    -------
    str
        As it was given to :func:`write_model_file`.
    """
    return _checked_header(_as_path(path))[1]["kind"]


def part_of(tensors: dict[str, Any], name: str) -> dict[str, Any]:
    """The tensors of one module, which are named ``name.parameter``."""
    return {n.removeprefix(f"{name}."): v for n, v in tensors.items() if n.startswith(f"{name}.")}


def _as_path(path: Any) -> Path:
    check_kind(path, "path", (str, os.PathLike), "a path, as a text or a pathlib.Path")
    return Path(path)


def _checked_header(path: Path) -> tuple[bytes, dict[str, str]]:
    """The bytes of a model file, and its header with format, version, kind and settings."""
    if not path.is_file():
        raise _told(f"There is no model file at {path}.")
    data = path.read_bytes()
    header = _header(data, path)
    if header.get("format") != FORMAT:
        raise _told(f"{path} is a safetensors file, but not a model of censcore.")
    version = header.get("version", "")
    if version.isdecimal() and version not in ("1", "2"):
        raise _told(f"{path}: got format version {version:.20}, expected 1 or {VERSION}. Update censcore.")
    needed = {"kind", "settings"} | ({"checksum"} if version != "1" else set())
    if version not in ("1", "2") or needed - set(header):
        raise _told(f"{path} was altered or damaged: its header is incomplete. Save the model again.")
    return data, header


def _told(words: str) -> ModelFileError:
    """An error in which neither the name of a file nor what it holds is obeyed by a terminal."""
    return ModelFileError(one_line(words))


def _checksum(header: dict[str, str], tensors: dict[str, Any]) -> str:
    """SHA-256 of the header and of names, types, shapes and contents of the tensors."""
    digest = hashlib.sha256()
    for name in ("format", "version", "kind", "settings"):
        digest.update(f"{name}={header[name]}\0".encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def _header(data: bytes, path: Path) -> dict[str, str]:
    """The JSON header that a safetensors file begins with, preceded by its length in eight bytes."""
    try:
        length = int.from_bytes(data[:8], "little")
        if not 0 < length <= len(data) - 8:
            raise ValueError("the header is cut off")
        header = json.loads(data[8 : 8 + length])
        return {str(name): str(value) for name, value in header.get("__metadata__", {}).items()}
    except (ValueError, AttributeError, RecursionError) as error:
        raise _told(
            f"{path} is not a model file, or it is corrupted or truncated ({error}). Save the model again."
        ) from error


def _safetensors(name: str) -> Any:
    try:
        import safetensors.torch as module
    except ImportError as error:
        raise MissingPackageError("Model files need safetensors: pip install 'censcore[torch]'.") from error
    return getattr(module, name)
