"""Names in the text link to the reference: `compare`, `cs.Step(...)`, `comparison.plot("brier")`."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import censcore as cs

_CALL = re.compile(
    r"(?:cs\.|censcore\.)?((?:comparison|[A-Za-z_]\w*))(?:\.([a-z_]\w*))?(?:\(.*\))?$", re.DOTALL
)


def target_of(text: str) -> str | None:
    """The dotted name of what the code names, or None where it is nothing public."""
    match = _CALL.match(text)
    if match is None:
        return None
    name, attribute = match.groups()
    if name == "comparison":
        return f"censcore.Comparison.{attribute}" if hasattr(cs.Comparison, attribute or "-") else None
    if name not in cs.__all__ or not callable(getattr(cs, name)):
        return None
    if attribute is None:
        return f"censcore.{name}"
    return f"censcore.{name}.{attribute}" if hasattr(getattr(cs, name), attribute) else None


class ApiLinks(SphinxTransform):
    """Wrap inline code that names something public in a reference to it."""

    default_priority = 510

    def apply(self, **_: object) -> None:
        if self.env.docname.startswith("generated/"):
            return
        for code in list(self.document.findall(nodes.literal)):
            inside = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.download_reference)
            parent = code.parent
            while parent is not None and not isinstance(parent, inside):
                parent = parent.parent
            target = None if parent is not None else target_of(code.astext())
            if target is None:
                continue
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refexplicit=True, refwarn=False
            )
            link["refdoc"] = self.env.docname
            code.replace_self(link)
            link += code


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(ApiLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
