"""The rule that choosing subjects commutes with every method, for a distribution and what it makes."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from censcore._arrays import as_rows, is_torch, to_numpy
from censcore.distributions import Distribution, Univariate
from censcore.exceptions import CenscoreError, NoDensityError
from censcore.testing.contract import Examined, close

_LEVELS = np.array([0.07, 0.31, 0.55, 0.83])
_DRAWS = 500

Answers = dict[str, np.ndarray | str]


@dataclass(frozen=True)
class _Questions:
    """Arguments for n subjects, different for each of them."""

    time: np.ndarray  # (n, q, k)
    level: np.ndarray  # (n, q)
    event: np.ndarray  # (n, k)
    number: np.ndarray  # (n,), the same for all

    @property
    def n(self) -> int:
        return int(self.level.shape[0])

    @property
    def end(self) -> np.ndarray:
        """One end of follow-up for each subject and coordinate, (n, k)."""
        return self.time[:, 2]

    def take(self, rows: Any) -> _Questions:
        return _Questions(*(np.ascontiguousarray(getattr(self, field.name)[rows]) for field in fields(self)))

    def of(self, j: int) -> _Questions:
        """The arguments for coordinate ``j``."""
        return _Questions(self.time[:, :, j : j + 1], self.level, self.event[:, j : j + 1], self.number)


def selection(s: Examined) -> None:
    """take, however subjects are chosen, commutes with every public method, also for parts and copies."""
    distribution = s.distribution
    assert len(distribution) == distribution.shape[0], (
        f"len is {len(distribution)} but the shape is {distribution.shape}."
    )
    assert distribution.shape[1:] == (() if distribution.k == 1 else (distribution.k,)), (
        f"The shape is {distribution.shape} for k = {distribution.k}."
    )
    if s.n == 1:
        assert len(distribution.take([0, 0, 0])) == 1, "take repeats a distribution that serves all subjects."
    questions = _questions(s)
    of_all = _answers(s, distribution, questions)
    for kind, rows in _choices(questions.n, is_torch(distribution.reference)):
        chosen = to_numpy(rows) if is_torch(rows) else as_rows(rows)
        of_some = _answers(s, distribution.take(rows), questions.take(chosen))
        _same(s, of_some, of_all, chosen, f"take({kind})")
    rows = np.array([questions.n - 1, 0, -1, 0])
    chosen_questions = questions.take(rows)
    for name, derive in _derived(s):
        whole = derive(distribution, questions)
        of_all = _answers(s, whole, questions, few=True)
        before, after = derive(distribution.take(rows), chosen_questions), whole.take(rows)
        for what, part in ((f"take.{name}", before), (f"{name}.take", after)):
            _same(s, _answers(s, part, chosen_questions, few=True), of_all, rows, what)
    _expect_draws(s)


def _choices(n: int, in_torch: bool) -> Iterator[tuple[str, Any]]:
    """Ways to choose among n subjects."""
    order = np.random.default_rng(n).permutation(n)
    yield "permutation", order
    yield "repeated and negative indices", [n - 1, 0, -1, -n, 0]
    yield "slice", slice(1, None) if n > 1 else slice(None)
    yield "backwards", slice(None, None, -1)
    yield "mask", np.arange(n) % 2 == 0
    yield "number", n - 1
    if in_torch:
        import torch

        yield "tensor", torch.as_tensor(order)
        yield "tensor mask", torch.arange(n) % 2 == 1


def _derived(s: Examined) -> Iterator[tuple[str, Callable[[Any, _Questions], Distribution]]]:
    """What is made of a distribution: copies, coordinates, the first event, censored ones."""

    def censored(F: Any, asked: _Questions) -> Any:
        return F.censor_at(s.native(asked.end[:, 0]))

    yield "like", lambda F, _: F.like(F.reference)
    yield "pickle", lambda F, _: pickle.loads(pickle.dumps(F.detach()))
    yield "censor_at(number)", lambda F, asked: F.censor_at(float(asked.number[0]))
    yield "censor_at((n,))", censored
    yield "censor_at twice", lambda F, asked: censored(F, asked).censor_at(s.native(asked.end[:, -1] * 0.9))
    first = s.distribution.first()  # a time that every subject may survive
    early = float(s.rounded(0.5 * float(min(s.ask("icdf", 0.2, of=first).min(), 1.0))))
    yield "given_survival(number)", lambda F, _: F.given_survival(early)
    yield "given_survival((n,))", lambda F, asked: F.given_survival(s.native(early * asked.level[:, 0]))
    if s.distribution.k > 1:
        yield "censor_at((n, k))", lambda F, asked: F.censor_at(s.native(asked.end))
        yield "first()", lambda F, _: F.first()
        yield "marginal(1)", lambda F, _: F.marginal(1)


def _questions(s: Examined) -> _Questions:
    n, k = s.n if s.n > 1 else 3, s.distribution.k
    rng = np.random.default_rng(s.seed)
    level = s.rounded(np.clip(_LEVELS + rng.uniform(-0.05, 0.05, (n, len(_LEVELS))), 0.01, 0.99))
    times = [s.ask("icdf", level, of=s.distribution.marginal(j)) for j in range(k)]
    usable = [np.where(np.isfinite(t) & (t > 0), t, 1.0 + level) for t in times]
    moved = np.stack([np.where(level < 0.5, t, 1.01 * t) for t in usable], axis=2)
    event = np.broadcast_to(np.arange(k) % 2 == 0, (n, k))
    return _Questions(s.rounded(moved), level, event, s.rounded(np.full(n, np.median(moved))))


def _answers(s: Examined, distribution: Any, asked: _Questions, few: bool = False) -> Answers:
    """Values of the methods for each subject; an error of this library counts by its name."""
    answers: Answers = {"shape": np.asarray(distribution.shape[1:])}
    for word, arguments in _words(distribution, asked, few).items():
        try:
            answers[word] = s.ask(word.partition(" ")[0], *arguments, of=distribution)
        except CenscoreError as error:
            answers[word] = type(error).__name__
    if distribution.k > 1:
        for j in range(distribution.k):
            part = _answers(s, distribution.marginal(j), asked.of(j), few=True)
            answers |= {f"marginal({j}).{word}": answer for word, answer in part.items()}
    return answers


def _words(distribution: Any, asked: _Questions, few: bool) -> dict[str, tuple[Any, ...]]:
    times, p = asked.time[:, :, 0], asked.level
    likelihood = (asked.time[:, 1], asked.event)
    if distribution.k > 1 or not isinstance(distribution, Univariate):
        return {"sf": (asked.time[:, 1],), "logsf": (asked.time[:, 0],), "log_likelihood": likelihood}
    if few:
        return {"sf": (times,), "sf_left": (times,), "excludes": (times,), "isf": (p[:, :2],)}
    words: dict[str, tuple[Any, ...]] = dict.fromkeys(
        ("sf", "sf_left", "cdf", "logsf", "logpdf", "excludes"), (times,)
    )
    words |= {f"{word} of a number": (float(asked.number[0]),) for word in ("sf", "sf_left")}
    words |= dict.fromkeys(("icdf", "isf"), (p,))
    words |= dict.fromkeys(("mean", "mass_at_infinity", "known_time"), ())
    words["integrated_sf"] = (np.minimum(times[:, 0], times[:, 2]), np.maximum(times[:, 0], times[:, 2]))
    words["icdf_beyond"] = (times[:, 1], p)
    words["log_likelihood"] = tuple(part[:, 0] for part in likelihood)
    return words


def _same(s: Examined, got: Answers, of_all: Answers, rows: Any, what: str) -> None:
    assert got.keys() == of_all.keys(), f"{what}: got {sorted(got)}, expected {sorted(of_all)}."
    for word, expected in of_all.items():
        answer = got[word]
        if isinstance(expected, str) and expected == NoDensityError.__name__:
            continue  # some subjects may have a density although not all have
        if isinstance(expected, str) or isinstance(answer, str) or word.endswith("shape"):
            assert np.array_equal(answer, expected), f"{what}: {word}: got {answer}, expected {expected}."
            continue
        chosen = expected[rows] if len(expected) > 1 else expected
        if word.endswith("known_time"):  # NaN means that no time is known
            answer, chosen = (np.where(np.isnan(time), -1.0, time) for time in (answer, chosen))
        close(answer, chosen, 1e4 * s.eps, f"{what}: {word}", scale=1e-3)


def _expect_draws(s: Examined) -> None:
    """Draws of chosen subjects follow the distributions of these subjects."""
    n = s.n
    rows = np.arange(n)[::-1]
    chosen = s.distribution.take(rows)
    draws = s.ask("sample", _DRAWS, s.seed, of=chosen)
    expected = (n, _DRAWS) if s.distribution.k == 1 else (n, _DRAWS, s.distribution.k)
    assert draws.shape == expected, f"take(rows).sample has shape {draws.shape}, expected {expected}."
    asked = _questions(s)
    for j in range(s.distribution.k):
        t, column = asked.time[:n, :, j], draws[..., j] if draws.ndim > 2 else draws
        sf = np.broadcast_to(s.ask("sf", t, of=s.distribution.marginal(j)), (n, t.shape[1]))
        above = column[:, :, None] > t[rows][:, None, :]
        s.expect_mean(above.astype(float), sf[rows], f"take(rows).sample, coordinate {j}")
