"""Where data lie that cannot be shipped: below the folder that CENSCORE_DATA names."""

from __future__ import annotations

import os
from pathlib import Path

from censcore.exceptions import InvalidInputError

__all__ = ["folder_below_data"]


def folder_below_data(name: str, file: str, content: str) -> Path:
    """The folder ``name`` below the one that the environment variable CENSCORE_DATA names.

    An error says that it holds ``file``, and that the folder of the ``content`` may be named instead.
    """
    root = os.environ.get("CENSCORE_DATA")
    if not root or not (Path(root) / name).is_dir():
        raise InvalidInputError(
            f"CENSCORE_DATA: got {root!r}, expected a folder that holds {name}/{file}, ... Set it, or name "
            f"the folder of {content} itself (--folder on the command line)."
        )
    return Path(root) / name
