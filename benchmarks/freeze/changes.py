"""What differs between two contents, beyond rounding.

Numbers are equal to a relative 1e-10, or to an absolute floor that follows what they are made of: a
difference of two means cannot be known better than a rounding of the means, and a p-value moves with its
statistic z by about 1 + z^2. Texts, counts and the order of lines are equal exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

RELATIVE = 1e-10
ROUNDING = 1e-13  # of a number, relative to what it is computed from: a few hundred units in the last place
DRAWN = 0.03  # of a p-value by draws in directions whose signs are rounding
ROOT = 4e-10  # of ends of a skill's interval, relative to its standard error: they are found by iteration
Where = tuple[Any, ...]
SUBJECT = ("by", "group", "score", "outcome", "at")  # what a line is about, apart from models
NAMED = (*SUBJECT, "model", "versus", "threshold")
P_VALUES = ("p_value", "p_adjusted")


@dataclass(frozen=True)
class Change:
    """A number or text that differs."""

    case: str
    where: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """With the size of the change of a number."""
        size = ""
        if _is_number(self.old) and _is_number(self.new):
            size = f"   ({abs(self.new - self.old) / max(abs(self.old), 1e-300):.1e})"
        return f"{self.case} / {self.where}\n    old {self.old!r}\n    new {self.new!r}{size}"


def changes(case: str, old: Any, new: Any) -> list[Change]:
    """All changes of the content of a case."""
    return [Change(case, where, a, b) for where, a, b in _differing("", old, new, {}, {})]


def _differing(
    where: str, old: Any, new: Any, floors: dict[str, float], sizes: dict[Where, float]
) -> Iterator[tuple[str, Any, Any]]:
    """Places that differ; ``floors`` are by the last part of ``where``, ``sizes`` those of means."""
    if isinstance(old, dict) and isinstance(new, dict):
        if "means" in old:
            sizes = _sizes(old["means"])
        for key in [*old, *(key for key in new if key not in old)]:
            place = f"{where}/{key}".lstrip("/")
            if key not in old or key not in new:
                yield place, old.get(key, "(nothing)"), new.get(key, "(nothing)")
            else:
                yield from _differing(place, old[key], new[key], _floors(old, sizes), sizes)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{where}/number of lines", len(old), len(new)
        for i, (a, b) in enumerate(zip(old, new, strict=False)):
            largest = max((abs(v) for v in old if _is_number(v)), default=0.0)
            yield from _differing(f"{where}/{_label(i, a)}", a, b, {"": ROUNDING * largest}, sizes)
    elif not _equal(old, new, _allowed(where, old, floors)):
        yield where, old, new


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(old: Any, new: Any, allowed: float) -> bool:
    if isinstance(old, float) and _is_number(new):
        return abs(old - new) <= allowed
    return type(old) is type(new) and bool(old == new)


def _allowed(where: str, old: Any, floors: dict[str, float]) -> float:
    if not isinstance(old, float):
        return 0.0
    name = where.rpartition("/")[2]
    return max(RELATIVE * abs(old), floors.get(name, floors.get("", 0.0)))


def _label(number: int, line: Any) -> str:
    """A line by what it is about, or its number."""
    if not isinstance(line, dict):
        return str(number)
    known = [line[key] for key in NAMED if line.get(key) not in (None, "")]
    parts = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in known]
    return ", ".join(parts) or str(number)


def _about(line: dict[str, Any], model: str) -> Where:
    return (*(line.get(key) for key in SUBJECT), model)


def _sizes(means: list[dict[str, Any]]) -> dict[Where, float]:
    """How large the numbers are that differences are taken of."""
    return {_about(line, line["model"]): _largest(line, ("mean", "standard_error")) for line in means}


def _largest(line: dict[str, Any], names: tuple[str, ...]) -> float:
    return max((abs(line[name]) for name in names if _is_number(line.get(name))), default=0.0)


def _floors(line: dict[str, Any], sizes: dict[Where, float]) -> dict[str, float]:
    """The absolute floor of each number of a line, by its name; "" for all others."""
    if "difference" in line and "versus" in line:
        each = [sizes.get(_about(line, line[key]), 0.0) for key in ("model", "versus")]
        size = max(*each, _largest(line, ("difference", "standard_error")))
        floors = {"": ROUNDING * size}
        error: Any = line.get("standard_error")
        if _is_number(error) and error > 0:
            z = abs(line["difference"]) / error
            moved = (RELATIVE + ROUNDING * size / error) * (1 + z**2)
            floors |= {name: moved * line[name] for name in P_VALUES if _is_number(line.get(name))}
        return floors
    if "skill" in line:
        error = line["skill_standard_error"] or 0.0
        floors = {"": ROUNDING * _largest(line, ("mean", "standard_error"))}
        floors |= dict.fromkeys(("skill", "skill_standard_error"), ROUNDING)
        return floors | dict.fromkeys(("skill_low", "skill_high"), ROUNDING + ROOT * error)
    drawn = {"p_value": DRAWN} if "ici" in line else {}
    return drawn | {"": ROUNDING * max((abs(v) for v in line.values() if isinstance(v, float)), default=0.0)}


# ---- permitted changes --------------------------------------------------------------------------------


def left_over(
    found: list[Change], permitted: list[dict[str, Any]]
) -> tuple[list[Change], list[dict[str, Any]]]:
    """Changes that are not permitted, and permissions that nothing needs.

    A permission has the keys ``case`` and ``where`` (names, or patterns with ``*``), ``old`` and ``new``
    (numbers to six digits, texts exactly), and ``reason``.
    """
    used = [any(_permits(each, change) for change in found) for each in permitted]
    rest = [change for change in found if not any(_permits(each, change) for each in permitted)]
    return rest, [each for each, needed in zip(permitted, used, strict=True) if not needed]


def _permits(permission: dict[str, Any], change: Change) -> bool:
    if not permission["reason"]:
        raise ValueError(
            f"permitted changes: got one without a reason, {permission}, expected why it is right."
        )
    named = all(fnmatchcase(getattr(change, key), permission[key]) for key in ("case", "where"))
    return named and all(_alike(permission[key], getattr(change, key)) for key in ("old", "new"))


def _alike(permitted: Any, found: Any) -> bool:
    if _is_number(permitted) and _is_number(found):
        return f"{permitted:.6g}" == f"{found:.6g}"
    return bool(permitted == found)
