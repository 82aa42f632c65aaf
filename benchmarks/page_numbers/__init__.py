"""Numbers of studies and benchmarks on the pages of the documentation."""

from benchmarks.page_numbers import outputs, studies

__all__ = ["outputs", "studies"]
