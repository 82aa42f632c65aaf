"""Conformance cases: small data sets with the number that follows by hand, to run on any library.

A case says what was observed, what was forecast and how it was censored, and gives the score, the
concordance, the calibration or the curve that follows, as exact arithmetic with its derivation. The cases are
JSON files of the package (:func:`schema`), so that programs in other languages can read them.
:func:`run` takes one function for each quantity and says for every case whether its number is right, that of
another convention, or wrong by how much. ``python -m conformance`` runs every library that
is installed.
"""

from conformance.case import Case, Observed, Variant, cases, conventions, schema
from conformance.libraries import LIBRARIES, installed, library
from conformance.runner import STATUSES, Adapter, NotOffered, Result, Results, run

__all__ = [
    "Adapter",
    "Case",
    "LIBRARIES",
    "NotOffered",
    "Observed",
    "Result",
    "Results",
    "STATUSES",
    "Variant",
    "cases",
    "conventions",
    "installed",
    "library",
    "run",
    "schema",
]
