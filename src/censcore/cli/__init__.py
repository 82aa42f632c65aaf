"""The command line: ``censcore --help`` lists the commands."""

from __future__ import annotations

import errno
import sys

import censcore
from censcore.cli.streams import prepare_streams
from censcore.exceptions import CenscoreError
from censcore.plain_text import visible

__all__ = ["main"]

#: Packages that only the command line needs.
NEEDED = ("typer", "click", "rich")


def main() -> None:
    """Run the command line; errors of the library, or of standard output, end it with their message alone."""
    prepare_streams()
    try:
        try:
            _run()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except CenscoreError as error:
        if getattr(error, "errno", None) == errno.EPIPE:  # the reader has seen enough
            sys.exit(1)
        sys.exit(f"censcore: {visible(str(error))}")


def _run() -> None:
    if sys.argv[1:] == ["--version"]:  # needs no other package
        print(f"censcore {censcore.__version__}")
        return
    try:
        from censcore.cli.app import app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in NEEDED:  # the installation is broken, and the traceback says where
            raise
        sys.exit(f"The command line needs {package}: pip install 'censcore[cli]'.")
    app()
