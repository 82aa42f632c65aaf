"""NumPy and torch behind one namespace: which library, which dtype, which device.

Formulas are written once against the array-API namespace ``xp`` of their inputs. The few
operations that the standard lacks, or spells row by row, live here.

=================  ======================================================================================
``libraries``      which library an array belongs to, and its namespace
``conversion``     numbers as floating arrays, and arrays brought from one library to the other
``torch_modes``    gradients, autocast, compilation, transforms and CUDA graphs of torch
``subjects``       subjects as the first axis
``sorted_search``  search in sorted knots, row by row
=================  ======================================================================================
"""

from censcore._arrays.conversion import (
    as_float,
    as_prototype,
    check_entries,
    check_integers,
    convert,
    like_moved,
    to_numpy,
)
from censcore._arrays.libraries import Array, is_neutral, is_torch, namespace, one_namespace
from censcore._arrays.sorted_search import searchsorted, take_along
from censcore._arrays.subjects import as_rows, broadcast_to, common_rows, take_rows
from censcore._arrays.torch_modes import (
    as_loss,
    detach,
    full_precision,
    grad_is_recorded,
    in_transform,
    not_compiled,
    possibly,
    requires_grad,
    surely,
)

__all__ = [
    "Array",
    "as_float",
    "as_loss",
    "as_prototype",
    "as_rows",
    "broadcast_to",
    "check_entries",
    "check_integers",
    "common_rows",
    "convert",
    "detach",
    "full_precision",
    "grad_is_recorded",
    "in_transform",
    "is_neutral",
    "is_torch",
    "like_moved",
    "namespace",
    "not_compiled",
    "one_namespace",
    "possibly",
    "requires_grad",
    "searchsorted",
    "surely",
    "take_along",
    "take_rows",
    "to_numpy",
]
