"""Which modules the search for docstring examples may import here."""

from importlib.util import find_spec

# Kernels for a GPU; their package exists only where one can be.
collect_ignore = [] if find_spec("triton") else ["src/censcore/scores/_pairs_triton.py"]
