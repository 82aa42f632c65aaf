"""The README as a package index shows it: an index has no files beside it, so relative targets would be dead.

With the address of the repository (``address`` in ``[tool.hatch.metadata.hooks.custom]``) links and pictures
become absolute. Without one, links become plain text and pictures are left out.
"""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE = re.compile(r"(!?)\[([^\]]*)\]\((?!https?://|#)([^)]+)\)")


def for_an_index(text: str, address: str) -> str:
    """The text with absolute targets, or with none where there is no address.

    ``address`` is that of the repository at a tag or branch, ``https://example.org/owner/name/{kind}/main``;
    the kind is "raw" for pictures and "blob" for pages.
    """

    def replaced(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if address:
            return f"{picture}[{words}]({address.format(kind='raw' if picture else 'blob')}/{target})"
        return "" if picture else words

    return _RELATIVE.sub(replaced, text)


class ReadmeHook(MetadataHookInterface):
    """Puts the README into the metadata of the package."""

    def update(self, metadata: dict[str, object]) -> None:
        """Called by hatchling when the metadata are read."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": for_an_index(text, str(self.config.get("address", ""))),
        }
