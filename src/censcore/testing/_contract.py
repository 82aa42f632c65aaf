"""How a contract is checked: every rule is asked, and all that are broken are named together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["expect_kept"]


def expect_kept(rules: Sequence[Callable[[Any], None]], subject: Any, name: str, kind: str) -> None:
    """Raise an AssertionError with every rule that the subject breaks; a rule is named by its docstring."""
    broken = [f"- {rule.__doc__} {found}" for rule in rules if (found := _broken(rule, subject))]
    if broken:
        raise AssertionError(f"{name} breaks the contract of {kind}:\n" + "\n".join(broken))


def _broken(rule: Callable[[Any], None], subject: Any) -> str:
    """What is wrong with the subject by this rule; empty if nothing is."""
    try:
        rule(subject)
    except AssertionError as error:
        return " ".join(str(error).split())
    except Exception as error:  # a rule that cannot even be asked is broken, whatever the reason
        return f"{type(error).__name__}: {error}"
    return ""
