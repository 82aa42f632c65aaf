"""NumPy and torch behind one namespace: which library, which dtype, which device.

Formulas are written once against the array-API namespace ``xp`` of their inputs. The few
operations that the standard lacks, or spells row by row, live here.

=================  ======================================================================================
``libraries``      which library an array belongs to, its namespace, and the modes of torch
``conversion``     numbers as floating arrays, arrays brought from one library to the other, subjects
``sorted_search``  search in sorted knots, row by row
=================  ======================================================================================
"""

from censcore._arrays import conversion, libraries, sorted_search
from censcore._arrays.conversion import *  # noqa: F403
from censcore._arrays.libraries import *  # noqa: F403
from censcore._arrays.sorted_search import *  # noqa: F403

__all__ = []
__all__ += conversion.__all__
__all__ += libraries.__all__
__all__ += sorted_search.__all__
