"""The command line: ``censcore --help`` lists the commands."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; say which extra brings what is missing."""
    try:
        from censcore.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"The command line needs {error.name}: pip install 'censcore[cli]'.")
    app()
