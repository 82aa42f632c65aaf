"""Pictures of censored data, of censoring distributions and of horizons."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import censcore as cs
from censcore.evaluation.report.style import new_figure, styled
from kit import FAINT, GREY, INK, M0, M1, M2, names_of, picture

#: entry, event (or None: after everything), and the day of leaving (or None)
PEOPLE = [
    (0.2, 3.1, None),
    (0.5, 8.6, None),
    (0.9, 2.4, None),
    (1.3, 9.4, 4.6),
    (1.8, 4.9, None),
    (2.2, 9.0, None),
    (2.7, 5.4, None),
    (3.1, 7.6, 5.2),
    (3.6, 9.6, None),
    (4.1, 5.7, None),
]
END = 6.5


def _person(axes: Axes, row: int, start: float, event: float, stop: float) -> None:
    """A line of follow-up with its mark, and the event, not observed."""
    seen = event <= stop
    last = min(event, stop)
    colour = M0 if seen else M1
    axes.plot([start, last], [row, row], color=colour, lw=2.4, solid_capstyle="butt")
    axes.plot(last, row, "o" if seen else ">", mec=colour, mfc=colour if seen else "white", ms=7.5, zorder=3)
    if not seen:
        axes.plot([last, event], [row, row], color=GREY, lw=1, ls=":")
        axes.plot(event, row, "o", mfc="white", mec=GREY, ms=5)


@picture
def follow_up() -> Figure:
    with styled():
        figure = new_figure(8.6, 3.6)
        left, right = figure.subplots(1, 2, sharey=True)
        for row, (entry, event, leaves) in enumerate(reversed(PEOPLE)):
            stop = END if leaves is None else leaves
            _person(left, row, entry, event, stop)
            _person(right, row, 0.0, event - entry, stop - entry)
        left.axvline(END, color=INK, lw=1)
        left.text(END + 0.08, len(PEOPLE) - 0.2, "end of study", fontsize=8.5)
        left.set(xlabel="calendar, years", yticks=[], title="as it happened", ylim=(-0.7, len(PEOPLE) + 0.3))
        right.set(xlabel="time since entry, years", title="as analysed", xlim=(0, None))
        for mark, face, edge, text in (
            ("o", M0, M0, "event"),
            (">", "white", M1, "censored"),
            ("o", "white", GREY, "event, not observed"),
        ):
            right.plot([], [], mark, mfc=face, mec=edge, label=text)
        figure.legend(loc="outside lower center", ncols=3)
        return figure


@picture
def naive_curves() -> Figure:
    page = names_of("censored_data", 2)
    y, time, event, T = page["y"], page["time"], page["event"], page["T"]
    t = np.linspace(0, 8, 400)
    with styled(grid=True):
        figure = new_figure(6.6, 3.4)
        axes = figure.subplots()
        kaplan_meier = cs.KaplanMeier().fit(None, y).predict_distribution().sf(t[None, :])[0]
        axes.plot(t, (T[:, None] > t).mean(axis=0), color=INK, lw=1.4, ls="--", label="truth")
        axes.plot(t, kaplan_meier, color=M0, lw=2.2, label="Kaplan-Meier")
        axes.plot(t, (time[event][:, None] > t).mean(axis=0), color=M1, lw=2.2, label="censored left out")
        axes.plot(t, (time[:, None] > t).mean(axis=0), color=M2, lw=2.2, label="censored counted as events")
        axes.set(xlabel="time, years", ylabel="share without event", xlim=(0, 8), ylim=(0, 1.02))
        axes.legend()
        return figure


@picture
def score_minimum() -> Figure:
    page = names_of("censored_data", 3)
    scales, best = page["scales"], page["best"]
    with styled(grid=True):
        figure = new_figure(6.6, 3.2)
        axes = figure.subplots()
        for colour, (name, losses) in zip((M1, M2, M0), best.items(), strict=True):
            lowest = int(np.argmin(losses))
            axes.plot(scales, losses, color=colour, lw=2.2, label=name)
            axes.plot(scales[lowest], losses[lowest], "o", color=colour, ms=8)
        axes.axvline(3.2, color=INK, lw=1, ls="--")
        axes.annotate(" truth", (3.2, 1), xycoords=("data", "axes fraction"), va="top", fontsize=9)
        axes.set(xlabel="scale of the forecast", ylabel="mean CRPS")
        axes.legend(loc="upper center", bbox_to_anchor=(0.56, 1.0))
        return figure


@picture
def censored_forecast() -> Figure:
    page = names_of("censored_data", 3)
    F, C, t = cs.Weibull(1.5, 3.2), page["C"], np.linspace(0.01, 8, 400)
    density, followed = np.exp(F.logpdf(t[None, :])[0]), C.sf_left(t[None, :])[0]
    time, event = page["time"], page["event"]
    with styled():
        figure = new_figure(8.8, 2.9)
        one, two, three = figure.subplots(1, 3)
        one.fill_between(t, density, color=M0, alpha=0.25, lw=0)
        one.plot(t, density, color=M0, lw=2)
        one.set(title="forecast of T: density f(t)", xlabel="time", ylim=(0, 0.3), xlim=(0, 8))
        two.fill_between(t, followed, color=GREY, alpha=0.2, lw=0)
        two.plot(t, followed, color=GREY, lw=2)
        two.set(title="still followed: P(C ≥ t)", xlabel="time", ylim=(0, 1.05), xlim=(0, 8))
        edges = np.linspace(0, 8, 33)
        shares = np.histogram(time[event], edges)[0] / len(time) / np.diff(edges)
        three.bar(edges[:-1], shares, np.diff(edges), align="edge", color=FAINT, label="observed events")
        three.plot(t, density * followed, color=M1, lw=2, label="f(t) P(C ≥ t)")
        three.set(title="forecast of what is observed", xlabel="time", ylim=(0, 0.3), xlim=(0, 8))
        three.legend()
        return figure


@picture
def dependent_censoring_curves() -> Figure:
    rng = np.random.default_rng(0)
    n, t = 20_000, np.linspace(0, 5, 300)
    frailty = rng.gamma(1.5, 1 / 1.5, n)
    T = rng.exponential(2 / frailty)
    with styled(grid=True):
        figure = new_figure(8.0, 3.1)
        for axes, title, rate in zip(
            figure.subplots(1, 2, sharey=True),
            ("censoring unrelated to the event", "the sick leave early"),
            (np.full(n, 0.5), 0.5 * frailty**2),
            strict=True,
        ):
            c = rng.exponential(1 / rate)
            y = cs.RightCensored(np.minimum(T, c), c >= T)
            estimate = cs.KaplanMeier().fit(None, y).predict_distribution().sf(t[None, :])[0]
            axes.plot(t, (T[:, None] > t).mean(axis=0), color=INK, lw=1.4, ls="--", label="truth")
            axes.plot(t, estimate, color=M0, lw=2.2, label="Kaplan-Meier")
            axes.set(xlabel="time", title=title, xlim=(0, 5), ylim=(0, 1.02))
        axes.legend()
        figure.axes[0].set_ylabel("P(T > t)")
        return figure


@picture
def censoring_weights() -> Figure:
    page = names_of("censoring_distribution", 1)
    t = np.linspace(0, 4, 200)
    pooled, cox = (
        page["estimators"][name].fit(page["X"][page["train"]], page["y"][page["train"]])
        for name in ("Kaplan-Meier", "Cox")
    )
    groups = cox.predict_distribution(np.array([[0.0], [1.0]])).sf(t[None, :])
    everybody = pooled.predict_distribution(np.zeros((1, 1))).sf(t[None, :])[0]
    with styled(grid=True):
        figure = new_figure(8.4, 3.2)
        left, right = figure.subplots(1, 2)
        for curve, colour, name, style in (
            (groups[0], M0, "others, Cox", "-"),
            (groups[1], M1, "high risk, Cox", "-"),
            (everybody, GREY, "everybody, Kaplan-Meier", "--"),
        ):
            left.plot(t, curve, color=colour, lw=2.2, ls=style, label=name)
            right.plot(t, 1 / curve, color=colour, lw=2.2, ls=style)
        left.set(xlabel="time", ylabel="G(t) = P(C > t)", ylim=(0, 1.02), xlim=(0, 4), title="still followed")
        right.set(xlabel="time", ylabel="1 / G(t)", xlim=(0, 4), yscale="log", title="weight of a subject")
        right.set_yticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
        right.minorticks_off()
        left.legend()
        return figure


@picture
def horizon() -> Figure:
    page = names_of("choosing_a_horizon", 1)
    y, C, X = page["y"], page["C"], np.log1p(page["data"][["pnodes", "progrec"]])
    F = cs.CoxRegression().fit(X, y).predict_distribution(X)
    taus = np.arange(0.5, 7.11, 0.1)
    found = [cs.censoring_diagnostic(y, C, horizon=tau) for tau in taus]
    errors = [
        cs.mean_loss(cs.integrated_brier_score(y, F, C, scale="ipcw", normalize=True, horizon=tau))[1]
        for tau in taus
    ]
    with styled(grid=True):
        figure = new_figure(9.2, 3.0)
        one, two, three = figure.subplots(1, 3)
        one.plot(taus, [d.weights["largest"] for d in found], color=M1, lw=2.2)
        one.axhline(10, color=INK, lw=1, ls="--")
        one.set(title="largest weight", yscale="log")
        one.set_yticks([1, 2, 5, 10, 20], labels=["1", "2", "5", "10", "20"])
        one.minorticks_off()
        two.plot(taus, [d.events_in for d in found], color=GREY, lw=1.8, ls="--", label="events")
        two.plot(taus, [d.effective for d in found], color=M0, lw=2.2, label="effective events")
        two.set(title="events up to the horizon", ylim=(0, None))
        two.legend()
        three.plot(taus, errors, color=M2, lw=2.2)
        three.set(title="standard error of the score", ylim=(0, None))
        for axes in (one, two, three):
            axes.axvline(float(C.isf(0.1)[0]), color=INK, lw=1, ls=":")
            axes.set(xlabel="horizon, years", xlim=(0.5, 7.1))
        return figure
