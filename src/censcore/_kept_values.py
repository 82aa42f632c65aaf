"""Objects that keep values from their first use on, and may be copied while other threads use them."""

from __future__ import annotations

from typing import Any


class KeepsValues:
    """A base of classes with cached properties and dictionaries of what was made before.

    A copy or pickle takes what is kept at that moment: the same numbers whether or not a thread adds to it in
    the meantime, which would otherwise end the copy with an error.
    """

    def __getstate__(self) -> dict[str, Any]:
        state = vars(self).copy()  # in one step, as are the copies of dictionaries below
        return {name: value.copy() if type(value) is dict else value for name, value in state.items()}
