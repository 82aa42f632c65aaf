"""The contract of distributions, and the rules that all of them keep, of one event time or of several."""

from __future__ import annotations

import copy
import pickle
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np

from censcore._arrays import is_torch, to_numpy
from censcore.distributions import Distribution, TimeAndCause, Univariate
from censcore.exceptions import DerivativeError, InvalidTypeError
from censcore.testing import competing_risks_rules, joint_rules, univariate_rules
from censcore.testing.contract import Examined, Rule, close, expect_kept
from censcore.testing.selection import selection


def check_distribution(distribution: Distribution, *, rtol: float | None = None, seed: int = 0) -> None:
    r"""Check that a distribution of one or several event times keeps the contract that scores rely on.

    For a distribution of one time: shapes and broadcasting; :math:`F+\bar F=1`, monotone, right-continuous;
    left limits at atoms; quantiles as generalized inverses, :math:`F(Q(p))\ge p` and :math:`Q(F(t))\le t`;
    the integral of the survival function against quadrature, the route of the base class and simulation; the
    density against the slope of F; conditional quantiles against their definition; mass at infinity;
    censoring; the distribution given survival. For a joint distribution: coordinates, the first event and the
    likelihood against simulation and against differences of the survival function. For a distribution of time
    and cause: cumulative incidences that sum to 1 - sf, draws, the likelihood, and the distribution of each
    cause. For all: the choice of subjects, copies, seeds, the same numbers and finite gradients in torch
    (where it is installed), and errors for bad input.

    Parameters
    ----------
    distribution : Distribution
        The distribution to check; a few subjects suffice, with parameters of moderate size.
    rtol : float, optional
        Tolerance for two routes to one number; 1e-6 by default (3e-3 in single precision).
    seed : int
        Seed of the simulations, which agree within six standard errors.

    Raises
    ------
    AssertionError
        Every broken rule, with what was found.

    See Also
    --------
    check_score, check_estimator : The other contracts.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.testing import check_distribution
    >>> check_distribution(cs.Weibull(shape=[0.8, 2.0], scale=3.0))
    """
    if not isinstance(distribution, Distribution):
        raise AssertionError(f"got {type(distribution).__name__}, expected a Distribution.")
    examined = Examined(distribution, rtol, seed)
    rules: tuple[Rule, ...]
    if isinstance(distribution, TimeAndCause):
        rules = (*competing_risks_rules.RULES, causes, copies, libraries)
    elif isinstance(distribution, Univariate) and distribution.k == 1:
        rules = (*univariate_rules.RULES, *RULES)
    else:
        rules = (*joint_rules.RULES, *RULES)
    expect_kept(rules, examined, repr(distribution), "distributions")


def causes(s: Examined) -> None:
    """cause(j) and any_cause() keep the contract of distributions of one event time."""
    F = s.distribution
    for part in [F.any_cause(), *(F.cause(j) for j in range(1, F.n_causes + 1))]:
        check_distribution(part, rtol=s.rtol, seed=s.seed)


def _answers(s: Examined, distribution: Any) -> dict[str, np.ndarray]:
    """Survival of the distribution, or of its coordinates and the first event: it identifies them."""
    if isinstance(distribution, TimeAndCause):
        return {"cif": s.ask("cif", s.grid, of=distribution)}
    parts = {"": distribution}
    if distribution.k > 1:
        parts = {f"marginal({j}).": distribution.marginal(j) for j in range(distribution.k)}
        parts["first()."] = distribution.first()
    asked = [(name, part, word) for name, part in parts.items() for word in ("sf", "sf_left", "logsf")]
    return {f"{name}{word}": s.ask(word, s.grid, of=part) for name, part, word in asked}


def copies(s: Examined) -> None:
    """A distribution can be copied, pickled and printed."""
    twins = {"deepcopy": copy.deepcopy(s.distribution), "pickle": pickle.loads(pickle.dumps(s.distribution))}
    expected = _answers(s, s.distribution)
    for what, twin in twins.items():
        for word, values in _answers(s, twin).items():
            close(values, expected[word], 0.0, f"{what}: {word}", scale=1.0)
    assert type(s.distribution).__name__ in repr(s.distribution), (
        f"repr does not name the class: {s.distribution!r}."
    )


def seeds(s: Examined) -> None:
    """sample(m, seed) has the shape (n, m) or (n, m, k) and depends on the seed alone."""
    expected = (s.n, 5) if s.distribution.k == 1 else (s.n, 5, s.distribution.k)
    first, again = s.ask("sample", 5, 7), s.ask("sample", 5, 7)
    assert first.shape == expected, f"sample(5): got shape {first.shape}, expected {expected}."
    assert (first == again).all(), "The same seed gives different draws."
    if (s.draws[:, :1] != s.draws).any():
        other = s.ask("sample", 50, 8)
        assert (other != s.ask("sample", 50, 7)).any(), "Another seed gives the same draws."


def libraries(s: Examined) -> None:
    """In torch a distribution gives the same numbers, as tensors, or like() raises an InvalidTypeError."""
    torch = _torch_for(s.distribution)
    if torch is None:
        return
    for dtype, rtol in ((torch.float64, 1e-9), (torch.float32, 3e-5)):
        like = torch.zeros(1, dtype=dtype)
        twin = s.distribution.like(like)
        t = torch.as_tensor(s.grid, dtype=dtype)
        same = s.distribution.like(like.numpy())
        of_causes = isinstance(twin, TimeAndCause)
        part, numpy_part = (F if F.k == 1 or of_causes else F.marginal(0) for F in (twin, same))
        for word in ("sf", "cif") if of_causes else ("sf", "sf_left", "cdf"):
            got = getattr(part, word)(t)
            assert is_torch(got), f"{word} of a torch distribution is a {type(got).__name__}."
            assert got.dtype == dtype, f"{word} of a {dtype} distribution is {got.dtype}."
            expected = np.asarray(getattr(numpy_part, word)(t.numpy()), dtype=np.float64)
            values, tolerance = to_numpy(got).astype(np.float64), max(rtol, 64 * s.eps)
            close(values, expected, tolerance, f"{word} in {dtype}", scale=1.0)
        sample = twin.sample(3, 1)
        kind = getattr(sample, "time", sample).dtype
        assert kind == dtype, f"sample of a {dtype} distribution is {kind}."


def gradients(s: Examined) -> None:
    """Gradients in torch are finite, also at time zero, at infinity and far in the tail."""
    torch = _torch_for(s.distribution)
    if torch is None:
        return
    leaves: list[Any] = []

    def leaf(array: Any) -> Any:
        tensor = torch.as_tensor(np.array(array), dtype=torch.float64)
        leaves.append(tensor.requires_grad_(bool(np.isfinite(to_numpy(array)).all())))
        return leaves[-1]

    distribution = s.distribution.mapped(leaf)
    part = distribution if distribution.k == 1 else distribution.marginal(0)
    inner = s.grid
    times = torch.as_tensor(np.concatenate([[[0.0]], inner, inner[:, -1:] * 1e3, [[np.inf]]], axis=1))
    levels = torch.tensor([[0.0, 0.1, 0.5, 0.9, 1.0]], dtype=torch.float64)
    values = {word: getattr(part, word)(times) for word in ("sf", "sf_left", "cdf")}
    values["logsf"] = part.logsf(times[:, :-2])
    values |= {word: getattr(part, word)(levels) for word in ("icdf", "isf")}
    values["integrated_sf"] = part.integrated_sf(times[:, :-2] * 0, times[:, :-2])
    with suppress(DerivativeError):  # draws need not be differentiable, if they say so
        values["sample"] = distribution.sample(20, s.seed)
    if distribution.k > 1:
        values["first().sf"] = distribution.first().sf(times)
    for word, value in values.items():
        finite = torch.where(torch.isfinite(value), value, torch.zeros_like(value)).sum()
        asked = [x for x in leaves if x.requires_grad]
        if not finite.requires_grad or not asked:
            continue
        gradient = torch.autograd.grad(finite, asked, allow_unused=True, retain_graph=True)
        assert all(g is None or bool(torch.isfinite(g).all()) for g in gradient), (
            f"The gradient of {word} is not finite."
        )


def _torch_for(distribution: Distribution) -> Any:
    """Torch, where it is installed and a distribution of NumPy can follow to it; else None."""
    if is_torch(distribution.reference) or find_spec("torch") is None:
        return None
    import torch

    try:
        distribution.like(torch.zeros(1, dtype=torch.float64))
    except InvalidTypeError:
        return None
    return torch


RULES: tuple[Rule, ...] = (selection, copies, seeds, libraries, gradients)
