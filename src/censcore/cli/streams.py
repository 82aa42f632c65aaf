"""Standard streams of the command line: any encoding works, and errors of standard output are reported."""

from __future__ import annotations

import codecs
import io
import sys
from typing import Any

from censcore.files import storing

#: What is printed in place of signs that the encoding of a terminal does not have; others are escaped.
PLAIN = {"±": "+-", "−": "-", "–": "-", "…": "...", "“": '"', "”": '"', "≤": "<=", "≥": ">="}


def prepare_streams() -> None:
    """Let standard output and standard error take any text; what is no stream of the process stays."""
    codecs.register_error("censcore", _in_plain_signs)
    if sys.stdout is sys.__stdout__ and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.flush()
        buffer = io.BufferedWriter(_ReportingStream(getattr(sys.stdout.buffer, "raw", sys.stdout.buffer)))
        sys.stdout = io.TextIOWrapper(
            buffer, sys.stdout.encoding, "censcore", line_buffering=sys.stdout.line_buffering
        )
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="censcore")


def _in_plain_signs(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    signs = error.object[error.start : error.end]
    return "".join(PLAIN.get(sign) or sign.encode("unicode_escape").decode() for sign in signs), error.end


class _ReportingStream(io.RawIOBase):
    """A stream that raises its first error as one of the library and ignores writes after it."""

    def __init__(self, raw: Any) -> None:
        self._raw, self._failed = raw, False

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._raw.isatty()

    def fileno(self) -> int:
        return self._raw.fileno()

    def write(self, content: Any) -> int | None:
        if self._failed:
            return len(content)
        try:
            with storing("standard output"):
                return self._raw.write(content)
        except OSError:
            self._failed = True
            raise
