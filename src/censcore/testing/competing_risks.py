"""The rules of distributions of time and cause."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from censcore._arrays import is_torch, to_numpy
from censcore.exceptions import InvalidInputError, NoDensityError
from censcore.testing.contract import Examined, Rule, close

__all__ = ["rules_with"]

_DRAWS = 4000


def rules_with(check: Callable[..., None]) -> tuple[Rule, ...]:
    """The rules, where ``check`` is the contract of the distributions of one event time."""

    def parts(s: Examined) -> None:
        """cause(j) and any_cause() keep the contract of distributions of one event time."""
        for part in [s.distribution.any_cause(), *_causes(s.distribution)]:
            check(part, rtol=s.rtol, seed=s.seed)

    return (incidences, parts, draws, selection, likelihood, libraries, names)


def _causes(distribution: Any) -> list[Any]:
    return [distribution.cause(j) for j in range(1, distribution.n_causes + 1)]


def _times(s: Examined) -> np.ndarray:
    """Times (q,) spread over the draws."""
    time = to_numpy(s.distribution.sample(200, s.seed).time)
    seen = time[np.isfinite(time)]
    return s.rounded(np.quantile(seen, np.linspace(0.02, 0.98, 9)) if seen.size else np.ones(9))


def incidences(s: Examined) -> None:
    """cif(t) is (n, m, q), rises, is the CDF of each cause, and sums with sf(t) to one."""
    t = _times(s)
    cif, sf = s.ask("cif", t), s.ask("sf", t)
    expected = (s.n, s.distribution.n_causes, len(t))
    assert cif.shape == expected, f"cif: got shape {cif.shape}, expected {expected}."
    assert sf.shape == (s.n, len(t)), f"sf: got shape {sf.shape}, expected {(s.n, len(t))}."
    assert (np.diff(cif, axis=2) >= -8 * s.eps).all(), "cif decreases with time."
    close(cif.sum(axis=1) + sf, np.ones_like(sf), max(s.rtol * 1e-2, 64 * s.eps), "sum of cif(t) and sf(t)")
    for j, part in enumerate(_causes(s.distribution)):
        close(
            s.ask("cdf", t[None, :], distribution=part),
            cif[:, j],
            16 * s.eps,
            f"cause({j + 1}).cdf",
            scale=1.0,
        )
    close(s.ask("cif", float(t[3])), cif[:, :, 3], 16 * s.eps, "cif of a number", scale=1.0)


def draws(s: Examined) -> None:
    """sample(m, seed) gives times and causes with the frequencies cif(t), and depends on the seed alone."""
    time, cause = (np.asarray(to_numpy(part)) for part in s.distribution.sample(_DRAWS, s.seed))
    assert time.shape == cause.shape == (s.n, _DRAWS), f"sample: got shapes {time.shape} and {cause.shape}."
    assert ((cause == 0) == np.isinf(time)).all(), "The cause is 0 exactly where the time is infinite."
    again = s.distribution.sample(_DRAWS, s.seed)
    assert (to_numpy(again.time) == time).all(), "The same seed gives different draws."
    t = _times(s)
    cif = s.ask("cif", t)
    for j in range(cif.shape[1]):
        happened = (time[:, :, None] <= t) & (cause[:, :, None] == j + 1)
        s.expect_mean(happened.astype(np.float64), cif[:, j], f"cif of cause {j + 1}")


def selection(s: Examined) -> None:
    """take(rows), copies and pickles give the same numbers."""
    t = _times(s)
    cif = s.ask("cif", t)
    twins = {"deepcopy": copy.deepcopy(s.distribution), "pickle": pickle.loads(pickle.dumps(s.distribution))}
    for what, twin in twins.items():
        close(s.ask("cif", t, distribution=twin), cif, 0.0, f"cif of a {what}", scale=1.0)
    rows = [s.n - 1, 0] if s.n > 1 else [0]
    taken = s.distribution.take(rows)
    close(s.ask("cif", t, distribution=taken), cif[rows], 64 * s.eps, "cif of take(rows)", scale=1.0)
    assert type(s.distribution).__name__ in repr(s.distribution), (
        f"repr does not name it: {s.distribution!r}."
    )


def likelihood(s: Examined) -> None:
    """log_likelihood is the log density of the cause, or log survival; an error where there is no density."""
    t = np.full(s.n, float(_times(s)[4]))
    censored = s.ask("log_likelihood", t, np.zeros(s.n))
    close(
        np.exp(censored),
        s.ask("sf", float(t[0])),
        1e-6 + 64 * s.eps,
        "log_likelihood of a censored time",
        scale=1.0,
    )
    for j, part in enumerate(_causes(s.distribution), start=1):
        if not s.distribution.has_density:
            try:
                s.ask("log_likelihood", t, np.full(s.n, float(j)))
            except NoDensityError:
                continue
            raise AssertionError("There is no density, and no NoDensityError.")
        found = s.ask("log_likelihood", t, np.full(s.n, float(j)))
        close(found, s.ask("logpdf", t, distribution=part), 64 * s.eps, f"log_likelihood of cause {j}")


def libraries(s: Examined) -> None:
    """In torch the distribution gives the same numbers, as tensors."""
    if "torch" not in sys.modules and find_spec("torch") is None:
        return
    import torch

    if is_torch(s.distribution._reference):
        return
    t = _times(s)
    twin = s.distribution.like(torch.zeros(1, dtype=torch.float64))
    cif = twin.cif(torch.as_tensor(t))
    assert is_torch(cif), f"cif of a torch distribution is a {type(cif).__name__}."
    close(to_numpy(cif), s.ask("cif", t), max(1e-9, 64 * s.eps), "cif in torch", scale=1.0)


def names(s: Examined) -> None:
    """Causes are found by number and by name; others are errors."""
    for j, name in enumerate(s.distribution.names, start=1):
        one, other = s.distribution.cause(j), s.distribution.cause(name)
        close(s.ask("sf", 1.0, distribution=one), s.ask("sf", 1.0, distribution=other), 0.0, "cause by name")
    for wrong in (0, s.distribution.n_causes + 1, "no such cause"):
        try:
            s.distribution.cause(wrong)
        except InvalidInputError:
            continue
        raise AssertionError(f"cause({wrong!r}) is no error.")
