"""Sphinx settings."""

from importlib.metadata import version as installed_version

project = "censcore"
author = "The censcore developers"
copyright = "2026, the censcore developers"
version = release = installed_version("censcore")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
]
# tables that pages include are no pages themselves
exclude_patterns = ["_build", "results/*/*.md"]
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


def setup(app):
    app.connect("autodoc-skip-member", _skip_what_scikit_learn_documents)
