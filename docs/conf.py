"""Sphinx settings."""

import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from docutils import nodes

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

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
    "sphinx_design",
    "dark_figures",
    "score_cards",
    "command_reference",
    "notebooks",
    "api_links",
    "search_words",
]
# tables that pages include are no pages themselves
exclude_patterns = ["_build", "results/*/*.md", "generated/*.md"]
templates_path = ["_templates"]

myst_enable_extensions = ["attrs_inline", "dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # the types stand in the numpydoc sections
numpydoc_class_members_toctree = False
numpydoc_show_class_members = False  # the class template lists them
numpydoc_xref_param_type = False

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navbar_align": "left",
    "navbar_center": ["navbar-nav"],
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "header_links_before_dropdown": 4,  # the doors: User guide, Gallery, API, Evidence
    "logo": {"text": "censcore", "alt_text": "censcore"},
    "navigation_depth": 3,
    "show_nav_level": 1,
    "collapse_navigation": True,  # the pages of the chapter that is read, and the other chapters
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], "api": [], "index": [], "gallery/index": []},
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "gallery/**": [], "api": ["api-nav"], "generated/**": ["api-nav"]}
html_show_sourcelink = False
html_title = f"censcore {version}"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["censcore.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# whole scripts are copied: lines after a backslash, and files written by <<'EOF'
copybutton_line_continuation_character = "\\"
copybutton_here_doc_delimiter = "EOF"


def _skip_what_scikit_learn_documents(app, what, name, obj, skip, options):
    """Its inherited methods refer to pages of its own manual."""
    return skip or str(getattr(obj, "__module__", "")).startswith("sklearn.")


def _end_code_without_blank_lines(app, doctree):
    """A session needs a blank line at its end to be run; readers need none."""
    for block in doctree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, [nodes.Text(text)]


def setup(app):
    # as SVG, since browsers block web fonts next to a page that is opened from a file
    app.config.mathjax_path = "mathjax/tex-svg.js"
    app.connect("autodoc-skip-member", _skip_what_scikit_learn_documents)
    app.connect("doctree-read", _end_code_without_blank_lines)
