"""Picture of a network that was trained by a score of censored data."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from censcore.evaluation.report.style import new_figure, styled
from kit import GREY, INK, M0, M1, names_of, picture

#: Every so many subjects are drawn; a point for each would hide the lines.
SHOWN = 4


def _median_of_events_alone(page: dict[str, Any], at: Any) -> Any:
    """The loop of the page for the subjects with an event, without a censoring distribution."""
    import torch

    import censcore as cs

    torch.manual_seed(0)
    y, X = page["y"][page["y"].event], page["X"][page["y"].event]
    layers = [torch.nn.Linear(1, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Linear(64, 2))
    optimiser = torch.optim.Adam(net.parameters(), lr=5e-3)
    for _ in range(25):
        for rows in torch.randperm(len(y)).split(256):
            loss = cs.crps(y[rows], cs.Weibull(*torch.exp(net(X[rows])).T)).mean()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    with torch.no_grad():
        return cs.Weibull(*torch.exp(net(at)).T).icdf(0.5)


@picture
def torch_loss() -> Figure:
    """Medians: true, learned by the censored CRPS, and learned from the events alone."""
    import torch

    page = names_of("torch", 1)
    grid = np.linspace(-2, 2, 200)
    at = torch.tensor(grid[:, None], dtype=torch.float32)
    with torch.no_grad():
        learned = page["forecast"](at).icdf(0.5)
    x, time, event = page["x"][::SHOWN], page["y"].time[::SHOWN], page["y"].event[::SHOWN].numpy()
    with styled(grid=True):
        figure = new_figure(7.5, 3.8)
        axes = figure.subplots()
        for seen, marker, text in ((event, ".", "event"), (~event, "x", "censored")):
            axes.plot(x[seen], time[seen], marker, ms=3, mew=0.6, color=GREY, alpha=0.7, label=text)
        truth = np.exp(0.6 * np.sin(2 * grid)) * np.log(2) ** 0.5
        axes.plot(grid, truth, "--", color=INK, lw=1.6, label="truth")
        axes.plot(grid, learned, color=M0, lw=2.4, label="censored CRPS")
        axes.plot(grid, _median_of_events_alone(page, at), ":", color=M1, lw=2.2, label="events alone")
        axes.set(xlabel="x", ylabel="time, and median of T", ylim=(0, 3.4))
        figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=9)
        return figure
