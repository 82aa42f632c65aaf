"""Every public name, called with what nobody meant to pass: a right answer, or an error with words.

This is the short run. ``make fuzz`` calls each name hundreds of times and prints how the calls ended.
"""

from __future__ import annotations

import inspect

import numpy as np
import pandas as pd
import pytest
from tests.fuzz.__main__ import fuzz
from tests.fuzz.calls import targets, valid
from tests.fuzz.command_line import FILES, Command, draw, fuzz_commands, judge_command
from tests.fuzz.invariant import GOOD, Call, Count, judge
from tests.fuzz.recipes import NOT_CALLED, RECIPES, public_names

pytestmark = pytest.mark.usefixtures("brief_members")

#: Calls of each name; fewer of what takes long.
EXAMPLES = 8


def test_every_public_name_has_a_recipe_or_a_reason():
    names = {name for name, thing in public_names().items() if not inspect.isabstract(thing)}
    assert names - set(RECIPES) - set(NOT_CALLED) == set()
    assert set(RECIPES) | set(NOT_CALLED) <= names


@pytest.mark.parametrize("name", RECIPES)
def test_valid_arguments_have_an_answer(name):
    for target in targets(name) if name != "load" else []:
        assert judge(valid(target)) == ("answer", ""), target.label


@pytest.mark.parametrize("name", RECIPES)
def test_anything_gets_an_answer_or_an_error_with_words(name):
    count = Count()
    fuzz(name, max(2, int(EXAMPLES * RECIPES[name].share)), count)
    assert count.lines() == []


def test_commands_with_mistakes_end_in_an_answer_or_in_words():
    count = Count()
    fuzz_commands(60, count)
    assert count.lines() == []


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("option", ["predictions", "--train"])
def test_broken_files_are_told(file, option):
    """In memory and in batches: an answer, or an error with words."""
    for batch in ({}, {"--batch": "7"}):
        command = Command(file, "compare", {"predictions": "", option: file}, batch, {})
        assert judge_command(command)[0] in GOOD, batch


def test_mistakes_of_commands_vary():
    rng = np.random.default_rng(0)
    assert len({draw(rng).label for _ in range(50)}) > 40


OPTIONS = {
    "array": lambda: np.array([0.5, 1.0, 2.0]),
    "frame": lambda: pd.DataFrame({"a": [1.0, 2.0]}),
    "text": lambda: "no",
}


@pytest.mark.parametrize("name", RECIPES)
def test_an_option_of_the_wrong_kind_meets_a_check_before_it_is_compared(name):
    """A flag is True or False and nothing else; a choice by its name is not compared with an array."""
    broken = []
    for target in {target.label: target for target in targets(name)}.values():
        for word, parameter in inspect.signature(target.function).parameters.items():
            flag = isinstance(parameter.default, bool)
            if word in ("path", "store") or not (flag or isinstance(parameter.default, str)):
                continue
            for label, make in OPTIONS.items():
                call = Call(word, target.function, {**target.all_arguments(), word: make()}, nan=target.nan)
                kind, words = judge(call)
                if kind not in (("error",) if flag else GOOD):
                    broken.append(f"{kind}: {target.label}({word}={label}) {words}")
    assert broken == []
