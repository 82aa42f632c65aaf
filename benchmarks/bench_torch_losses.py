"""A training step with scores as losses, against the same losses written by hand in torch.

Batches of 256 subjects, forward and backward, in float32 on one thread, under a Kaplan-Meier estimate of the
censoring distribution from 2,000 subjects. By hand the CRPS is a sum over a grid of 600 times, as many as
the estimate has jumps: right to three digits, where the library is right to six or seven. By hand the energy
score takes its distances from ``torch.cdist``, for as many values of C and all pairs. The last part times a
network with its loss inside ``torch.compile``, where scores run as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import censcore as cs
from benchmarks.timing import alternate
from censcore.scores.inputs.compatible_times import RandomNumbers, compatible_times, subject_keys

BATCH, LEVELS, MEMBERS, GRID = 256, 19, 64, 600


class Data:
    """Subjects with one event time and with two, a censoring distribution and parameters of forecasts."""

    def __init__(self, seed: int = 0, subjects: int = 2000) -> None:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(subjects, 3))
        scale = np.exp(0.5 * X[:, 0])
        T = scale[:, None] * rng.weibull(1.5, (subjects, 2))
        c = rng.uniform(0, 3, (subjects, 1))
        time, event = np.minimum(T, c), c >= T
        like = torch.zeros(1)
        one = cs.RightCensored(time[:, 0], event[:, 0])
        estimate: Any = cs.Censoring(cs.KaplanMeier()).fit(X, one).predict_distribution(X)
        self.C: Any = estimate.like(like)
        self.y = one[:BATCH].like(like)
        self.joint = cs.RightCensored(time[:BATCH], event[:BATCH]).censor_at(2.5).like(like)
        self.known = cs.RightCensored(time[:BATCH], event[:BATCH], c[:BATCH, 0]).like(like)
        self.shape = torch.full((BATCH,), 1.5).requires_grad_()
        self.scale = torch.tensor(scale[:BATCH], dtype=torch.float32).requires_grad_()
        self.share = torch.zeros(BATCH, 2).requires_grad_()
        levels = np.linspace(0.05, 0.95, LEVELS)
        values = scale[:BATCH, None] * (-np.log1p(-levels)) ** (1 / 1.5)
        self.levels = torch.tensor(levels, dtype=torch.float32)
        self.values = torch.tensor(values, dtype=torch.float32).requires_grad_()
        members = scale[:BATCH, None, None] * rng.weibull(1.5, (BATCH, MEMBERS, 2))
        self.members = torch.tensor(members, dtype=torch.float32).requires_grad_()
        # what a loss by hand needs: a grid up to the end of C, and P(C > t) there
        end = float(self.C.support_end())
        self.grid = ((torch.arange(GRID) + 0.5) / GRID * end)[None]
        self.G = self.C.sf(self.grid)
        self.weight = self.y.event / self.C.sf_left(self.y.time)

    def crps_by_hand(self, sf: torch.Tensor) -> torch.Tensor:
        """The sum over the grid of F² before y and of G S² / P(C >= y) beyond it."""
        before = self.grid < self.y.time[:, None]
        width = self.grid[0, 1] - self.grid[0, 0]
        return torch.where(before, (1 - sf) ** 2, self.weight[:, None] * self.G * sf**2).sum(dim=1) * width


def weibull_sf(t: torch.Tensor, shape: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.exp(-((t / scale[:, None]) ** shape[:, None]))


def mixture_sf(data: Data) -> torch.Tensor:
    w = torch.softmax(data.share, dim=1)
    first = weibull_sf(data.grid, data.shape, data.scale)
    return w[:, :1] * first + w[:, 1:] * weibull_sf(data.grid, 2 * data.shape, 3 * data.scale)


def quantile_sf(data: Data) -> torch.Tensor:
    """Linear between the quantiles, with an exponential tail."""
    t, levels = data.grid.expand(BATCH, GRID), data.levels
    knots = torch.cat([torch.zeros(BATCH, 1), data.values], dim=1)
    heights = torch.cat([torch.zeros(1), levels])
    right = torch.searchsorted(knots.detach(), t.contiguous(), right=True)
    inside = right.clamp(max=LEVELS)
    t0, t1 = knots.gather(1, inside - 1), knots.gather(1, inside)
    cdf = heights[inside - 1] + (heights[inside] - heights[inside - 1]) * (t - t0) / (t1 - t0)
    last, left = data.values[:, -1:], 1 - levels[-1]
    rate = torch.log((1 - levels[-2]) / left) / (last - data.values[:, -2:-1])
    tail = left * torch.exp(-rate * (t - last).clamp(min=0))
    return torch.where(right > LEVELS, tail, 1 - cdf)


def energy_by_hand(z: torch.Tensor, y: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Mean over the values c (n, D, 1) of the energy score of min(z, c)."""
    n, D = c.shape[:2]
    psi = torch.minimum(z[:, None], c[:, :, None]).reshape(n * D, *z.shape[1:])
    seen = y[:, None].expand(n, D, y.shape[1]).reshape(n * D, 1, -1)
    mode = "donot_use_mm_for_euclid_dist"
    distance = torch.cdist(psi, seen, compute_mode=mode).mean(dim=(1, 2))
    spread = torch.cdist(psi, psi, compute_mode=mode).mean(dim=(1, 2))
    return (distance - spread / 2).reshape(n, D).mean(dim=1)


def step(loss: Callable[[], torch.Tensor], *parameters: torch.Tensor) -> Callable[[], Any]:
    """Forward and backward of a mean loss."""
    return lambda: torch.autograd.grad(loss().mean(), parameters)


def cases(data: Data) -> dict[str, tuple[Callable[[], Any], Callable[[], Any], tuple[torch.Tensor, ...]]]:
    """Losses of the library and by hand, and the parameters that they train."""
    y, C = data.y, data.C
    c_known = data.known.censoring_time[:, None, None]
    levels = RandomNumbers(0, 8, subject_keys(data.joint)).levels(1, like=data.joint.time)
    c = compatible_times(data.joint, C, levels)

    def mixture() -> cs.Mixture:
        parts = [cs.Weibull(data.shape, data.scale), cs.Weibull(2 * data.shape, 3 * data.scale)]
        return cs.Mixture(parts, torch.softmax(data.share, dim=1))

    weibull = (data.shape, data.scale)
    return {
        "CRPS, Weibull": (
            lambda: cs.crps(y, cs.Weibull(*weibull), C),
            lambda: data.crps_by_hand(weibull_sf(data.grid, *weibull)),
            weibull,
        ),
        "CRPS, mixture of two Weibulls": (
            lambda: cs.crps(y, mixture(), C),
            lambda: data.crps_by_hand(mixture_sf(data)),
            (*weibull, data.share),
        ),
        f"CRPS, {LEVELS} quantiles": (
            lambda: cs.crps(y, cs.Quantiles(data.levels, data.values), C),
            lambda: data.crps_by_hand(quantile_sf(data)),
            (data.values,),
        ),
        f"energy score, {MEMBERS} members, C known": (
            lambda: cs.energy_score(data.known, cs.Ensemble(data.members)),
            lambda: energy_by_hand(data.members, data.known.time, c_known),
            (data.members,),
        ),
        f"energy score, {MEMBERS} members, 8 values of C": (
            lambda: cs.energy_score(data.joint, cs.Ensemble(data.members), C, draws=8, pairs="all"),
            lambda: energy_by_hand(data.members, data.joint.time, c),
            (data.members,),
        ),
    }


def compiled(data: Data, repeats: int) -> None:
    """A network of two hidden layers and its loss, eager and compiled."""
    width = 256
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        *(torch.nn.Linear(32, width), torch.nn.ReLU()),
        *(torch.nn.Linear(width, width), torch.nn.ReLU()),
        *(torch.nn.Linear(width, 2), torch.nn.Softplus()),
    )
    x = torch.randn(BATCH, 32)

    def loss() -> torch.Tensor:
        shape, scale = (net(x) + 0.1).T
        return cs.crps(data.y, cs.Weibull(shape, scale), data.C)

    parameters = tuple(net.parameters())
    start = time.perf_counter()
    fast = torch.compile(loss)
    step(fast, *parameters)()
    print(f"\nfirst step of the compiled loss {time.perf_counter() - start:.1f} s")
    spent = alternate(repeats, eager=step(loss, *parameters), compiled=step(fast, *parameters))
    for name, cost in spent.items():
        print(f"{name:46s} {1e3 * cost.cpu:7.1f} {cost.cpu / spent['eager'].cpu:15.2f}")


def main(repeats: int = 15) -> None:
    torch.set_num_threads(1)
    data = Data()
    print(f"{'a step at batch 256':46s} {'CPU ms':>7s} {'by hand':>8s} {'ratio':>6s} {'difference':>11s}")
    for name, (ours, by_hand, parameters) in cases(data).items():
        spent = alternate(repeats, ours=step(ours, *parameters), by_hand=step(by_hand, *parameters))
        cpu, other = spent["ours"].cpu, spent["by_hand"].cpu
        apart = float(((ours() - by_hand()).abs().mean() / ours().mean()).detach())
        print(f"{name:46s} {1e3 * cpu:7.1f} {1e3 * other:8.1f} {cpu / other:6.2f} {apart:11.1e}")
    compiled(data, repeats)


if __name__ == "__main__":
    main()
