"""The picture of docs/torch.md: python docs/_static/torch_loss.py."""

from pathlib import Path

import numpy as np
import torch

import censcore as cs
from censcore.evaluation.style import AMBER, GREY, INK, TEAL, new_figure, styled

rng = np.random.default_rng(0)
n = 2000
x = rng.uniform(-2, 2, n)
T = np.exp(0.6 * np.sin(2 * x)) * rng.weibull(2.0, n)
c = rng.uniform(0, 3, n)
seen = cs.RightCensored(np.minimum(T, c), c >= T)
C = cs.Censoring(cs.KaplanMeier()).fit(None, seen).predict_distribution(None).to(torch.float32)
y, X = seen.to(torch.float32), torch.tensor(x[:, None], dtype=torch.float32)


def trained(y, X, C):
    """Parameters of a network after the loop of the page, as a function of x."""
    torch.manual_seed(0)
    layers = [torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(64, 2))
    optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(25):
        for rows in torch.randperm(len(y)).split(256):
            loss = cs.crps(y[rows], cs.Weibull(*torch.exp(net(X[rows])).T), C).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return net


grid = np.linspace(-2, 2, 200)
at = torch.tensor(grid[:, None], dtype=torch.float32)
events = y[y.event]
medians = []
for net in (trained(y, X, C), trained(events, X[y.event], None)):
    with torch.no_grad():
        medians.append(cs.Weibull(*torch.exp(net(at)).T).icdf(0.5).numpy())

with styled():
    figure = new_figure(7.5, 3.6)
    axes = figure.subplots()
    event, time = np.asarray(seen.event), np.asarray(seen.time)
    axes.plot(x[event], time[event], ".", ms=2.5, color=GREY, alpha=0.6, label="event")
    axes.plot(x[~event], time[~event], "x", ms=2.5, mew=0.6, color=GREY, alpha=0.6, label="censored")
    axes.plot(
        grid, np.exp(0.6 * np.sin(2 * grid)) * np.log(2) ** 0.5, color=INK, lw=1.6, ls="--", label="truth"
    )
    axes.plot(grid, medians[0], color=TEAL, lw=2.2, label="censored CRPS")
    axes.plot(grid, medians[1], color=AMBER, lw=1.8, ls=":", label="events alone")
    axes.set(xlabel="x", ylabel="time, and median of T", ylim=(0, 3.5))
    axes.legend(frameon=False, fontsize=8.5, ncols=5, loc="upper center", markerscale=3)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=140)
