"""Sphinx settings."""

from importlib.metadata import version as installed_version
from pathlib import Path

project = "censcore"
author = "The censcore developers"
copyright = "2026, the censcore developers"
version = release = installed_version("censcore")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas need no network when a page is read
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
]
# tables that pages include are no pages themselves
exclude_patterns = ["_build", "results/*/*.md", "generated/*.md"]
templates_path = ["_templates"]

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the types stand in the numpydoc sections
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False

html_theme = "furo"
html_title = "censcore"
html_static_path = ["_static"]
html_css_files = ["censcore.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def _skip_what_scikit_learn_documents(app, what, name, obj, skip, options):
    """Its inherited methods refer to pages of its own manual."""
    return skip or str(getattr(obj, "__module__", "")).startswith("sklearn.")


def _write_the_table_of_scores(app):
    """What the registry knows of each score, as a table that docs/scores.md includes."""
    from censcore.scores.registry import SCORES

    lines = ["| name | axis | loss of a subject | reference |", "|---|---|---|---|"]
    for info in SCORES.values():
        lines.append(f"| `{info.name}` | {info.axis or '-'} | ${info.formula}$ | {info.reference} |")
    path = Path(app.srcdir) / "generated" / "scores.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def setup(app):
    # as SVG, since browsers block web fonts next to a page that is opened from a file
    app.config.mathjax_path = "mathjax/tex-svg.js"
    app.connect("builder-inited", _write_the_table_of_scores, priority=1)
    app.connect("autodoc-skip-member", _skip_what_scikit_learn_documents)
