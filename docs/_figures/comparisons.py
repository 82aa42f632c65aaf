"""Pictures of comparisons, from the examples of their pages."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import censcore as cs
from censcore.cli.demo import demo_comparison
from censcore.evaluation.report.style import new_figure, styled
from kit import FAINT, GREY, INK, M0, M1, M2, names_of, picture


@picture
def demo() -> Figure:
    """The plot of ``censcore demo``."""
    return demo_comparison().plot()


@picture
def five_minutes() -> Figure:
    return names_of("five_minutes", 1)["comparison"].plot("brier")


@picture
def getting_started() -> Figure:
    page = names_of("getting_started", 5)
    comparison = cs.compare(
        page["forecasts"], page["y"][page["test"]], cs.Censoring(cs.KaplanMeier()),
        train=(page["X"][page["train"]], page["y"][page["train"]]), horizon=5.0,
        reference="Kaplan-Meier", time_unit="years",
    )  # fmt: skip
    return comparison.plot("brier")


@picture
def comparing() -> Figure:
    return names_of("comparing", 1)["comparison"].plot("differences")


@picture
def calibration_curve() -> Figure:
    return names_of("calibration", 1)["comparison"].plot("calibration", time=1.0)


@picture
def published_model() -> Figure:
    page = names_of("validation", 1)
    comparison = cs.compare(
        {"Rotterdam": page["rotterdam"]}, page["y"], cs.Censoring(cs.KaplanMeier()), X=page["trial"],
        times=[5.0], horizon=5.0, scores="brier_score:ipcw", reference=None, time_unit="years",
    )  # fmt: skip
    return comparison.plot("calibration", time=5.0)


@picture
def updating() -> Figure:
    """Differences to the best rung, with one standard error."""
    table = names_of("updating", 2)["found"].frame().iloc[::-1]
    colours = [M0 if chosen else GREY for chosen in table.chosen]
    with styled():
        figure = new_figure(6.5, 2.8)
        ax = figure.subplots()
        ax.errorbar(
            table.difference, range(5), xerr=table.difference_standard_error, fmt="none", ecolor=colours
        )
        ax.scatter(table.difference, range(5), c=colours, zorder=3)
        ax.axvline(0.0, color=FAINT, zorder=0)
        ax.set_yticks(range(5), table.rung)
        ax.set_xlabel("binomial log score less that of the best, ± standard error")
    return figure


@picture
def sample_size() -> Figure:
    return names_of("sample_size", 1)["plan"].plot()


@picture
def importance() -> Figure:
    return names_of("importance", 2)["found"].plot()


@picture
def sites() -> Figure:
    return names_of("sites", 1)["found"].sites.plot("O/E")


@picture
def decision_curve() -> Figure:
    return names_of("calibration", 1)["comparison"].plot("decision", time=1.0)


@picture
def discrimination() -> Figure:
    page = names_of("discrimination", 1)
    comparison, names = page["comparison"], ["cox", "too late", "kaplan-meier"]
    table = comparison.frame().pivot(index="model", columns="score", values="mean").loc[names]
    colours = (M0, M1, GREY)
    with styled():
        figure = new_figure(9.0, 3.1)
        one, two, three = figure.subplots(1, 3)
        one.bar(names, table["concordance:uno"], color=colours, width=0.6)
        one.axhline(0.5, color=INK, lw=1, ls="--")
        one.set(title="C-index, higher is better", ylim=(0.4, 0.8))
        two.bar(names, table["integrated_brier_score:ipcw"], color=colours, width=0.6)
        two.set_title("integrated Brier score,\nlower is better")
        for name, colour in zip(names[:2], colours[:2], strict=True):
            curve = comparison.calibration(name, time=5.0).frame()
            points = curve[curve.kind == "binned"]
            errors = [points.observed - points.low, points.high - points.observed]
            three.errorbar(points.predicted, points.observed, errors, fmt="o", color=colour, ms=5, label=name)
        three.plot([0, 1], [0, 1], color=INK, lw=1, ls="--")
        three.set(
            title="calibration at 5",
            xlabel="forecast risk",
            ylabel="observed risk",
            xlim=(0, 1),
            ylim=(0, 1.02),
        )
        three.legend(loc="lower right")
        return figure


@picture
def differences() -> Figure:
    comparison = names_of("is_the_difference_real", 1)["comparison"]
    means = comparison.frame()
    pairs = comparison.differences()
    pairs = pairs[pairs.versus != "kaplan-meier"]
    with styled(grid=True):
        figure = new_figure(8.8, 2.6)
        left, right = figure.subplots(1, 2)
        rows = np.arange(3)[::-1]
        shown = means[means.model != "kaplan-meier"]
        left.errorbar(
            shown["mean"], rows, xerr=[shown["mean"] - shown.low, shown.high - shown["mean"]],
            fmt="o", color=M0, ms=6, lw=2,
        )  # fmt: skip
        left.set(title="mean integrated Brier score", ylim=(-0.6, 2.6))
        left.set_yticks(rows, labels=list(shown.model))
        right.errorbar(
            pairs.difference, rows, xerr=[pairs.difference - pairs.low, pairs.high - pairs.difference],
            fmt="o", color=M2, ms=6, lw=2,
        )  # fmt: skip
        right.axvline(0, color=INK, lw=1, ls="--")
        right.set(title="paired difference", ylim=(-0.6, 2.6))
        right.set_yticks(rows, labels=[f"{a}\n− {b}" for a, b in zip(pairs.model, pairs.versus, strict=True)])
        return figure


@picture
def other_libraries() -> Figure:
    """Survival curves of one subject by the models of the page."""
    page = names_of("other_libraries", 1)
    X, y, train, t = page["X"], page["y"], page["train"], np.linspace(0, 3, 400)
    styles = {
        "weibull": (M0, "lifelines, WeibullAFTFitter"),
        "cox": (M1, "scikit-survival, Cox"),
        "boosted": (M2, "XGBoost, survival:cox"),
    }
    with styled(grid=True):
        figure = new_figure(6.8, 3.2)
        axes = figure.subplots()
        for name, (colour, text) in styles.items():
            F = cs.as_forecast(page[name], X=X[600:601], train=(X[train], y[train]))
            axes.plot(t, F.sf(t[None, :])[0], color=colour, lw=2, label=text)
        axes.set(xlabel="time", ylabel="P(T > t) of one subject", xlim=(0, 3), ylim=(0, 1.03))
        axes.legend()
        return figure


@picture
def coming_from() -> Figure:
    """The Brier score of one forecast by the conventions of the libraries, without and with ties."""
    page = names_of("coming_from", 3)
    y, F, C, whole, G, times = (page[name] for name in ("y", "F", "C", "whole", "G", "times"))
    from censcore.published import ipcw_brier

    def its_own(outcome: cs.RightCensored) -> cs.Distribution:
        """The censoring distribution of pycox: censorings come first."""
        exchanged = cs.RightCensored(outcome.time, ~outcome.event)
        return cs.KaplanMeier().fit(None, exchanged).predict_distribution()

    with styled(grid=True):
        figure = new_figure(8.0, 3.0)
        for axes, title, outcome, G_of in zip(
            figure.subplots(1, 2, sharey=True),
            ("continuous times", "times in steps of 0.2"),
            (y, whole),
            (C, G),
            strict=True,
        ):
            for shift, (name, colour) in enumerate(
                (("censcore", M0), ("scikit-survival", M1), ("pycox", M2))
            ):
                if name == "censcore":
                    means = cs.brier_score(outcome, F, G_of, times, scale="ipcw").mean(axis=0)
                else:
                    used = its_own(outcome) if name == "pycox" else G_of
                    means = ipcw_brier(outcome, F, used, times, convention=name).mean(axis=0)
                axes.bar(np.arange(3) + 0.26 * (shift - 1), means, 0.24, color=colour, label=name)
            axes.set_xticks(np.arange(3), labels=[f"t = {t:g}" for t in times])
            axes.set_title(title)
        figure.axes[0].set(ylabel="Brier score, ipcw", ylim=(0, 0.25))
        figure.axes[0].legend(ncols=3, loc="upper left", fontsize=8.5)
        return figure


@picture
def tables_as_they_come() -> Figure:
    """The censoring distributions of the two sites of the page, which the diagnostic finds."""
    page = names_of("tables_as_they_come", 1)
    import pandas as pd

    X = pd.DataFrame({"age": [60.0, 60.0], "site": ["north", "south"]})
    C = page["censoring"].fit(page["X"], page["y"]).predict_distribution(X)
    t = np.linspace(0, 5, 300)
    with styled(grid=True):
        figure = new_figure(6.6, 2.9)
        axes = figure.subplots()
        for curve, name, colour in zip(C.sf(t[None, :]), X.site, (M1, M0), strict=True):
            axes.plot(t, curve, color=colour, lw=2.2, label=f"site {name}")
        axes.set(xlabel="time", ylabel="P(C > t)", xlim=(0, 5), ylim=(0, 1.03))
        axes.legend()
        return figure
