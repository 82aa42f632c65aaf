"""Calls of public names with valid arguments, of which some are replaced."""

from __future__ import annotations

import pathlib
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.fuzz.hostile import ANYTHING, numbers_like, of_covariates, replacements
from tests.fuzz.invariant import Call, numbers
from tests.fuzz.recipes import RECIPES, TYPICAL, Target

#: Arguments that say how much work to do: a number that fits into memory and takes minutes is no mistake.
WORK = (
    "m", "n", "refits", "replicates", "epochs", "samples", "n_samples", "bins", "breaks", "max_iter",
    "width", "depth", "noise_dim", "n_networks", "draws",
)  # fmt: skip
MUCH, TOO_MUCH = 500, 1e14

#: Arguments that would start processes, write files or talk to a terminal: no number is meant there, no text.
GUARDED = ("n_jobs", "store", "path", "checkpoint", "progress", "compile", "device")
NOT_MEANT = [
    value
    for value in ANYTHING
    if not isinstance(value.make(), str | pathlib.PurePath | bool | np.bool_ | int | np.integer)
]


@cache
def targets(name: str) -> list[Target]:
    """What is called of a public name."""
    return RECIPES[name].targets()


@cache
def _answers() -> dict[int, Any]:
    return {}


def _expected(target: Target) -> Any:
    """The numbers of the valid call."""
    known = _answers()
    if id(target) not in known:
        known[id(target)] = list(numbers(target.function(**target.arguments)))
    return known[id(target)]


def valid(target: Target) -> Call:
    """The call that the recipe gives."""
    return Call(target.label, target.function, target.arguments, infinite=target.infinite, nan=target.nan)


@st.composite
def calls(draw: Any, name: str) -> Call:
    """A call of a public name with one or two arguments that are replaced."""
    target = draw(st.sampled_from(targets(name)))
    arguments = target.all_arguments()
    open_to = sorted(arguments)
    if not open_to:
        return valid(target)
    replaced = draw(st.lists(st.sampled_from(open_to), min_size=1, max_size=2, unique=True))
    if draw(st.integers(0, 3)):
        replaced = replaced[:1]
    words, same, refused = [], True, False
    for word in replaced:
        near = arguments[word] if arguments[word] is not None else TYPICAL.get(word)
        if word in GUARDED:
            near = None
        known = NOT_MEANT if word in GUARDED else replacements(near)
        if word == "X" and isinstance(near, np.ndarray):
            known = [*of_covariates(near, fitting="y" in arguments), *known]
        any_number = st.nothing() if word in GUARDED else numbers_like(near)
        value = draw(st.one_of(st.sampled_from(known), st.sampled_from(known), any_number))
        arguments[word] = value.make()
        if word in WORK and isinstance(arguments[word], int | float) and MUCH < arguments[word] < TOO_MUCH:
            arguments[word] = TOO_MUCH
        words.append(f"{word}={value.label}")
        refused = refused or (value.refused and word not in target.unread)
        same = (
            same and value.same and arguments.get(word) is not None and target.arguments.get(word) is not None
        )
    return Call(
        f"{target.label}({', '.join(words)})",
        target.function,
        arguments,
        same_as=_expected(target) if same else None,
        refused=refused,
        infinite=target.infinite,
        nan=target.nan,
    )
