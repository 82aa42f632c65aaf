"""The hooks of distributions are one protocol: documented in one place, with defaults that tell the truth."""

from __future__ import annotations

import inspect
import re
import sys

import numpy as np
import pytest

import censcore as cs
from censcore import distributions
from censcore.distributions import ByHazard, Joint, Parametric, Step, TimeAndCause, Univariate, contract
from censcore.distributions.contract import Formulas
from censcore.exceptions import InvalidTypeError, NoDensityError
from censcore.testing import check_distribution


def lomax():
    """The example of the docstring of Parametric, as printed there."""
    from doctest import DocTestParser

    module = sys.modules[__name__]
    for example in DocTestParser().get_examples(Parametric.__doc__):
        exec(compile(example.source, "Parametric", "exec"), vars(module))
    return module.Lomax


def test_the_example_of_the_docstring_keeps_the_contract():
    F = lomax()(shape=2.0, scale=[1.0, 3.0])
    assert not F.has_density
    with pytest.raises(NoDensityError):
        F.logpdf(1.0)
    check_distribution(F)


def test_a_density_is_there_where_it_is_written():
    class Written(lomax()):
        def logpdf_at(self, t):
            return np.log(self._shape / self._scale) - (self._shape + 1) * np.log1p(t / self._scale)

    class Denied(Written):
        has_density = False

    class StillSteps(Step):
        def logpdf_at(self, t):
            return 0 * t

    assert Written.has_density
    assert type("Child", (Written,), {}).has_density
    assert not Denied.has_density
    assert not StillSteps.has_density  # a class that says it has none is asked first
    assert not Univariate.has_density
    assert issubclass(cs.Weibull, ByHazard)
    assert cs.Weibull.has_density
    check_distribution(cs.Mixture([cs.Weibull(1.5, [1.0, 2.0]), cs.Exponential(1.0)], [0.5, 0.5]))


def test_a_distribution_without_storage_is_an_error_in_words():
    class Nothing(Univariate):
        def sf_at(self, t):
            return 1 / (1 + t)

    for ask in (
        lambda F: F.sf(1.0),
        lambda F: F.sample(2),
        lambda F: cs.crps(cs.RightCensored([1.0], [1]), F),
    ):
        with pytest.raises(InvalidTypeError, match=r"Nothing holds no arrays.*self\.store"):
            ask(Nothing())


def test_infinite_times_are_not_asked_of_a_formula_in_public_methods():
    torch = pytest.importorskip("torch")
    scale = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    F = lomax()(shape=2.0, scale=scale)
    times = torch.tensor([[0.5, np.inf]], dtype=torch.float64)
    for word, last in (("sf", 0.0), ("cdf", 1.0), ("sf_left", 0.0), ("logsf", -np.inf)):
        values = getattr(F, word)(times)
        assert (values[:, 1] == last).all()
        (gradient,) = torch.autograd.grad(values[:, 0].sum(), scale)
        assert torch.isfinite(gradient).all()
    np.testing.assert_array_equal(F.detach().sf([[-1.0, 0.0, np.inf]]).numpy(), [[1.0, 1.0, 0.0]] * 2)


CLASSES = [Univariate, Joint, TimeAndCause]
FORMULAS = [
    name for name in vars(Formulas) if name.endswith("_at") or name in {"breaks", "steps", "support_end"}
]


def test_the_contract_lists_what_exists():
    listed = set(re.findall(r"^``(\w+)", contract.__doc__, flags=re.MULTILINE))
    assert len(listed) > 30
    assert {name for name in listed if not any(hasattr(kind, name) for kind in CLASSES)} == set()
    assert set(FORMULAS) <= listed


@pytest.mark.parametrize("name", [name for name in distributions.__all__ if name != "Distribution"])
def test_public_methods_say_what_they_return(name):
    """Those that a subclass writes have the docstring of the contract."""
    kind = getattr(distributions, name)
    methods = [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")]
    documented = {name for parent in kind.__mro__ for name, thing in vars(parent).items() if thing.__doc__}
    assert set(methods) - documented == set()


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_are_written_as_the_contract_says(name):
    """With the same arguments, so that scores may call any of them."""
    expected = list(inspect.signature(getattr(Formulas, name)).parameters)
    for kind in subclasses(Univariate):
        written = vars(kind).get(name)
        if inspect.isfunction(written) and written.__name__ != "<lambda>":
            assert len(inspect.signature(written).parameters) == len(expected), kind


def subclasses(kind):
    for child in kind.__subclasses__():
        if child.__module__.startswith("censcore."):
            yield child
        yield from subclasses(child)
