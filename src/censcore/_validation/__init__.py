"""The gate: checks that public functions share. Each error says what was got, what was expected, what to do.

==============  =========================================================================================
``arrays``      numbers in an array: finite, positive, probabilities, levels
``numbers``     one number, a count, a confidence level, a seed
``kinds``       objects and not classes, distributions, estimators; options, flags, lists and names
``frames``      data frames whose columns have one name each
``subjects``    weights and groups of subjects, and how subjects are named in a message
==============  =========================================================================================

Values become floating arrays by :func:`censcore._arrays.as_float`, which checks that they are real numbers.
"""

from censcore._validation.arrays import (
    MOST_CAUSES,
    as_cause_codes,
    as_codes,
    as_events,
    as_numbers,
    check_between,
    check_finite,
    check_levels,
    check_not_nan,
    check_positive,
    check_probabilities,
)
from censcore._validation.frames import as_frame, columns_of
from censcore._validation.kinds import (
    as_list,
    as_names,
    check_flag,
    check_instance,
    check_kind,
    check_method,
    check_option,
    no_array,
    shown,
)
from censcore._validation.numbers import (
    as_confidence,
    as_coordinate,
    as_count,
    as_generator,
    as_index,
    as_number,
    as_seed,
)
from censcore._validation.subjects import as_labels, as_weights, name_subjects

__all__ = [
    "MOST_CAUSES",
    "as_cause_codes",
    "as_codes",
    "as_confidence",
    "as_coordinate",
    "as_count",
    "as_events",
    "as_numbers",
    "as_frame",
    "as_generator",
    "as_index",
    "as_labels",
    "as_list",
    "as_names",
    "as_number",
    "as_seed",
    "as_weights",
    "check_between",
    "check_finite",
    "check_flag",
    "check_instance",
    "check_kind",
    "check_levels",
    "check_method",
    "check_not_nan",
    "check_option",
    "check_positive",
    "check_probabilities",
    "columns_of",
    "name_subjects",
    "no_array",
    "shown",
]
