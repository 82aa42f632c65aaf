"""Pictures of scores, distributions and why a score is proper."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import censcore as cs
from censcore.evaluation.report.style import new_figure, styled
from kit import FAINT, GREY, INK, M0, M1, M2, M3, names_of, picture


@picture
def three_censorings() -> Figure:
    """The factor G(s)/G(y-) of the CRPS after an event at 0.5, under the three distributions of the page."""
    s, y = np.linspace(0, 3, 400), 0.5
    F = cs.Exponential(1.0)
    cases = {
        "nobody is censored": cs.PointMass(np.inf),
        "C = 2": cs.PointMass(2.0),
        "C uniform on [0, 2]": cs.Uniform(0, 2),
    }
    with styled():
        figure = new_figure(8.8, 2.7)
        for axes, (name, C), colour in zip(
            figure.subplots(1, 3, sharey=True), cases.items(), (M0, M1, M2), strict=True
        ):
            cdf = F.cdf(s[None, :])[0]
            factor = np.where(s < y, 1.0, C.sf(s[None, :])[0] / C.sf_left(y)[0])
            loss = np.where(s < y, cdf**2, factor * (1 - cdf) ** 2)
            axes.fill_between(s, loss, color=colour, alpha=0.3, lw=0)
            axes.plot(s, cdf, color=GREY, lw=1.4, label="F(s)")
            axes.plot(s, factor, color=INK, lw=1.2, ls="--", label="G(s) / G(y-)")
            axes.axvline(y, color=colour, lw=1.2)
            axes.set(title=name, xlabel="s", ylim=(0, 1.08), xlim=(0, 3))
        axes.legend(loc="center right")
        return figure


@picture
def why_proper() -> Figure:
    """Expected loss of forecasts with a wrong scale, for four scores, under four kinds of censoring."""
    rng = np.random.default_rng(0)
    n, scales = 20_000, np.exp(np.linspace(-0.7, 0.7, 21))
    T = rng.weibull(1.5, n)
    kinds = {
        "nobody censored": (np.full(n, np.inf), cs.PointMass(np.inf)),
        "C known": ((known := rng.uniform(0.2, 2.2, n)), cs.PointMass(known)),
        "C uniform": (rng.uniform(0, 2.5, n), cs.Uniform(0.0, 2.5)),
    }
    scores = {
        "CRPS": lambda y, F, C: cs.crps(y, F, C),
        "log score": lambda y, F, C: cs.log_score(y, F, C),
        "Brier score at 1": lambda y, F, C: cs.brier_score(y, F, C, 1.0).reshape(-1),
        "pinball score, median": lambda y, F, C: cs.pinball_score(y, F, C, 0.5).reshape(-1),
    }
    with styled(grid=True):
        figure = new_figure(9.2, 3.1)
        for axes, (title, score) in zip(figure.subplots(1, 4), scores.items(), strict=True):
            for colour, (name, (c, C)) in zip((GREY, M1, M0), kinds.items(), strict=True):
                y = cs.RightCensored(np.minimum(T, c), c >= T)
                means = np.array([score(y, cs.Weibull(1.5, scale), C).mean() for scale in scales])
                axes.plot(scales, means - means.min(), color=colour, lw=2, label=name)
            axes.axvline(1.0, color=INK, lw=1, ls="--")
            axes.set(title=title, xlabel="scale of the forecast", xscale="log")
            axes.set_xticks([0.5, 1, 2], labels=["0.5", "1", "2"])
            axes.minorticks_off()
        figure.axes[0].set_ylabel("mean loss above the lowest")
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3)
        return figure


@picture
def two_brier_scores() -> Figure:
    page = names_of("two_brier_scores", 1)
    F, C, full, seen = (page[name] for name in ("F", "C", "full", "seen"))
    t = np.linspace(0.1, 9.5, 48)
    y = np.linspace(0.02, 8, 500)
    one = cs.Weibull(1.5, 4.0)
    with styled(grid=True):
        figure = new_figure(8.8, 3.2)
        left, right = figure.subplots(1, 2)
        left.plot(
            t, cs.brier_score(full, F, times=t).mean(axis=0), color=INK, lw=1.4, ls="--", label="uncensored"
        )
        left.plot(t, cs.brier_score(seen, F, C, t, scale="ipcw").mean(axis=0), color=M0, lw=2.2, label="ipcw")
        left.plot(t, cs.brier_score(seen, F, C, t).mean(axis=0), color=M1, lw=2.2, label="localized")
        left.set(xlabel="time t, years", ylabel="mean Brier score", title="over time", ylim=(0, None))
        left.legend()
        for scale, colour in (("ipcw", M0), ("localized", M1)):
            for event, style in ((True, "-"), (False, ":")):
                outcome = cs.RightCensored(y, np.full(len(y), event))
                loss = cs.brier_score(outcome, one, C, 5.0, scale=scale)
                name = f"{scale}, {'event' if event else 'censored'} at y"
                right.plot(y, loss.reshape(-1), color=colour, lw=2.2, ls=style, label=name)
        right.axvline(5.0, color=GREY, lw=1)
        right.set(xlabel="observed time y", title="loss of a subject at t = 5")
        right.legend(fontsize=8.5)
        return figure


@picture
def distributions() -> Figure:
    """The same forecast as parameters, a step curve, lines, quantiles and draws."""
    t, F = np.linspace(0, 8, 500)[None, :], cs.Weibull(1.5, 3.0)
    grid, levels = np.array([1.0, 2.0, 3.0, 4.5, 6.0]), np.array([0.1, 0.25, 0.5, 0.75, 0.9])
    shapes = {
        "Weibull(shape, scale)": F,
        "Step(times, sf=...)": cs.Step(grid, sf=F.sf(grid[None, :])),
        "PiecewiseLinear(times, sf=...)": cs.PiecewiseLinear(grid, sf=F.sf(grid[None, :])),
        "Quantiles(levels, values)": cs.Quantiles(levels, F.icdf(levels[None, :])),
        "Ensemble(samples)": cs.Ensemble(F.sample(25, seed=0)),
        "Mixture([...], weights)": cs.Mixture([F, cs.PointMass(np.inf)], weights=[0.7, 0.3]),
    }
    with styled(grid=True):
        figure = new_figure(8.8, 4.2)
        for axes, (name, shape) in zip(
            figure.subplots(2, 3, sharex=True, sharey=True).flat, shapes.items(), strict=True
        ):
            axes.plot(t[0], F.sf(t)[0], color=GREY, lw=1, ls="--")
            axes.plot(t[0], shape.sf(t)[0], color=M0, lw=2)
            axes.set(title=name, xlim=(0, 8), ylim=(0, 1.03))
        for axes in figure.axes[3:]:
            axes.set_xlabel("time")
        for axes in figure.axes[::3]:
            axes.set_ylabel("P(T > t)")
        return figure


@picture
def survival_matrix() -> Figure:
    """One row of the matrix of the page, read as steps and as lines, with its tails."""
    times, sf = np.array([1.0, 2.0, 4.0]), np.array([[0.9, 0.6, 0.3]])
    t = np.linspace(0, 7, 500)[None, :]
    with styled(grid=True):
        figure = new_figure(6.6, 3.1)
        axes = figure.subplots()
        for reading, colour in (("linear", M0), ("step", M1)):
            F = cs.as_forecast(sf, times=times, interpolation=reading)
            axes.plot(t[0], F.sf(t)[0], color=colour, lw=2.2, label=f'interpolation="{reading}"')
        axes.plot([0, *times], [1, *sf[0]], "o", color=INK, ms=7, label="columns of the matrix")
        axes.axvspan(4, 7, color=FAINT, alpha=0.5, lw=0)
        axes.text(4.15, 0.93, "beyond the last column: tail=", fontsize=9)
        axes.set(xlabel="time", ylabel="P(T > t)", xlim=(0, 7), ylim=(0, 1.03))
        axes.legend(loc="lower left")
        return figure


@picture
def joint_forecasts() -> Figure:
    """Draws of the two forecasts of docs/comparing_joint.md, which have the same margins."""
    models = {
        "clayton": cs.Copula("clayton", [cs.Exponential(1.0), cs.Exponential(0.5)], theta=3.0),
        "independent": cs.Independent([cs.Exponential(1.0), cs.Exponential(0.5)]),
    }
    with styled(grid=True):
        figure = new_figure(7.4, 3.4)
        for axes, (name, model), colour in zip(
            figure.subplots(1, 2, sharex=True, sharey=True), models.items(), (M0, M1), strict=True
        ):
            draws = model.sample(300, seed=0)[0]
            relapses = draws[:, 0] <= draws[:, 1]
            axes.plot(*draws[relapses].T, ".", color=colour, ms=3.5, alpha=0.6)
            axes.plot(*draws[~relapses].T, ".", color=GREY, ms=3.5, alpha=0.6)
            axes.plot([0, 4], [0, 4], color=INK, lw=0.8, ls="--")
            axes.text(3.95, 0.15, "death first: no relapse", fontsize=9, ha="right")
            axes.set(title=name, xlabel="relapse", xlim=(0, 4), ylim=(0, 6))
        figure.axes[0].set_ylabel("death")
        return figure


@picture
def copulas() -> Figure:
    """Weibull margins joined in three ways, with the same Kendall's tau of 0.6 where there is dependence."""
    margins = [cs.Weibull(1.5, 1.0), cs.Weibull(1.5, 1.0)]
    models = {
        "CopulaWeibull()": cs.Independent(margins),
        'CopulaWeibull("clayton")': cs.Copula("clayton", margins, theta=3.0),
        'CopulaWeibull("gumbel")': cs.Copula("gumbel", margins, theta=2.5),
    }
    with styled(grid=True):
        figure = new_figure(8.8, 3.1)
        for axes, (name, model), colour in zip(
            figure.subplots(1, 3, sharex=True, sharey=True), models.items(), (GREY, M0, M2), strict=True
        ):
            axes.plot(*model.sample(300, seed=0)[0].T, ".", color=colour, ms=3, alpha=0.6)
            axes.set(title=name, xlabel="first event time", xlim=(0, 3), ylim=(0, 3))
        figure.axes[0].set_ylabel("second event time")
        return figure


@picture
def outcomes() -> Figure:
    """What each class of outcomes holds."""
    kinds = [
        ("RightCensored", [(0.0, 2.6, "o", M0), (0.0, 3.8, ">", M0)]),
        ("RightCensored(..., entry=)", [(1.2, 4.1, "o", M1), (0.7, 3.0, ">", M1)]),
        ("CompetingRisks", [(0.0, 2.1, "o", M2), (0.0, 3.3, "s", M2)]),
        ("IntervalCensored", [(1.4, 2.9, "", M3), (3.1, 5.0, "", M3)]),
    ]
    with styled():
        figure = new_figure(7.6, 3.0)
        axes = figure.subplots()
        row = 0.0
        for name, lines in reversed(kinds):
            for start, end, mark, colour in lines:
                if mark:
                    axes.plot([start, end], [row, row], color=colour, lw=2.4)
                    axes.plot(end, row, mark, mec=colour, mfc="white" if mark == ">" else colour, ms=7.5)
                    if start:
                        axes.plot(start, row, "|", color=colour, ms=12, mew=2)
                else:
                    axes.plot([0, 5], [row, row], color=GREY, lw=0.8, ls=":")
                    axes.plot([start, end], [row, row], color=colour, lw=6, alpha=0.5, solid_capstyle="butt")
                    axes.plot([start, end], [row, row], "|", color=INK, ms=12, mew=1.6)
                row += 0.8
            axes.text(-0.15, row - 1.2, name, ha="right", va="center", fontsize=9.5)
            row += 0.5
        axes.set(yticks=[], xlim=(0, 5.2), xlabel="time")
        axes.spines["left"].set_visible(False)
        axes.set_title("● event   ■ event of another cause   ▷ censored   | entry or visit", fontsize=9.5)
        return figure


@picture
def score_overview() -> Figure:
    """Which part of a survival curve each score looks at."""
    t, F = np.linspace(0, 6, 400), cs.Weibull(1.5, 3.0)
    S, y = F.sf(t[None, :])[0], 1.2
    median = float(F.icdf(0.5)[0])
    with styled():
        figure = new_figure(8.8, 2.8)
        one, two, three, four = figure.subplots(1, 4, sharey=True)
        truth = (t < y).astype(float)
        for axes in (one, two, three):
            axes.plot(t, S, color=M0, lw=2)
            axes.step([0, y, 6], [1, 1, 0], where="pre", color=INK, lw=1.2, ls="--")
        one.vlines(3.6, 0, F.sf(3.6)[0], color=M1, lw=3)
        one.set_title("Brier, binomial log")
        two.fill_between(t, S, truth, color=M1, alpha=0.3, lw=0)
        two.set_title("CRPS, integrated Brier")
        three.plot([y, median], [0.5, 0.5], color=M1, lw=3)
        three.set_title("pinball (a quantile)")
        density = np.exp(F.logpdf(t[None, 1:])[0])
        four.plot(t[1:], density / density.max() * 0.9, color=M0, lw=2)
        four.vlines(y, 0, float(np.exp(F.logpdf(y)[0]) / density.max() * 0.9), color=M1, lw=3)
        four.set_title("log score (the density)")
        for axes in (one, two, three, four):
            axes.set(xlabel="time", xlim=(0, 6), ylim=(0, 1.03), yticks=[0, 1])
        return figure
