"""The gate: checks that public functions share. Each error says what was got, what was expected, what to do.

===========  ============================================================================================
``numbers``  one number, a count, a confidence level, a seed; arrays that are finite, positive, probabilities
             or levels; weights and labels of subjects, and how subjects are named in a message
``kinds``    objects and not classes, distributions, estimators; options, flags, lists and names; data frames
             whose columns have one name each
===========  ============================================================================================

Values become floating arrays by :func:`censcore._arrays.as_float`, which checks that they are real numbers.
"""

from censcore._validation import kinds, numbers
from censcore._validation.kinds import *  # noqa: F403
from censcore._validation.numbers import *  # noqa: F403

__all__ = []
__all__ += kinds.__all__
__all__ += numbers.__all__
