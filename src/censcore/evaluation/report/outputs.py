"""Pictures, pages and files of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeVar, cast

from censcore._validation import check_kind, check_option, shown
from censcore.evaluation.measures.availability import PICTURES, REFUSED, check_available, rule
from censcore.exceptions import InvalidInputError
from censcore.files import as_path, write_atomically
from censcore.plain_text import one_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from censcore.evaluation.comparison import Comparison
    from censcore.evaluation.report.charts import Chart

Made = TypeVar("Made")


class Outputs:
    """What a comparison shows and writes; :class:`Comparison` inherits it."""

    @property
    def _comparison(self) -> Comparison:
        return cast("Comparison", self)

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` gives, made on first use: text, notebook and page read it several times."""
        made = self._comparison.made
        if key not in made:
            made[key] = make()
        value: Made = made[key]
        return value

    def pictured(self, kind: str) -> list[str]:
        """The outcomes of which a page shows a picture; one empty name for a picture of all."""
        of, scored = self._comparison, {score.outcome for score in self._comparison.scores}
        return of.kind.pictured(kind, scored) if _can_draw(of, kind) else []

    def plot(self, kind: str | None = None, **options: Any) -> Figure:
        """A picture, by matplotlib.

        Parameters
        ----------
        kind : str, optional
            By default ``"overview"``: the verdict, the Brier score over time, calibration and net benefit.
            ``"brier"``: Brier score over time with pointwise bands (``scale="ipcw"`` or ``"localized"``;
            ``versus=`` a forecast, for differences from it);
            ``"differences"``: paired differences from the reference with simultaneous intervals;
            ``"calibration"``: observed against forecast risk at a time, smoothed and binned (``time=``,
            ``bins=``, ``span=``); ``"d-calibration"``: shares of subjects by S(T); ``"decision"``: net
            benefit over thresholds (``time=``); ``"murphy"``: elementary scores over thresholds (``time=``,
            ``scale=``);
            ``"pinball"``: pinball score over levels; ``"censoring"``: the censoring distribution and the
            weights of the events; ``"roc"``: sensitivity over 1 - specificity (``time=``); ``"auc"``: AUC
            over time (``times=``); ``"risks"``: forecast risks by outcome (``time=``); ``"scatter"``: the
            risks of two models (``time=``, ``models=``); ``"folds"``, of a cross-validation: mean losses of
            every fold (``score=``, ``column=``, the number of its time or level).
        **options
            Of the plot, such as ``scale="localized"`` or ``time=2.0``; ``outcome=`` names one of
            :attr:`outcomes`.

        Returns
        -------
        matplotlib.figure.Figure
            Notebooks show it; ``figure.savefig(path)`` writes it.
        """
        from censcore.evaluation.report.draw import figure_of

        if kind is None:
            kind = "overview" if _can_draw(self._comparison, "overview") else "differences"
        return figure_of(self.chart(kind, **options))

    def chart(self, kind: str, **options: Any) -> Chart:
        """What :meth:`plot` draws, as data.

        Parameters
        ----------
        kind : str
            As in :meth:`plot`.
        **options
            As in :meth:`plot`.

        Returns
        -------
        Chart
            Panels with curves, bars and intervals in the coordinates of the data.
        """
        from censcore.evaluation.report.plots import CHARTS, options_of

        of = self._comparison
        if not isinstance(kind, str) or kind not in CHARTS:
            raise InvalidInputError(f"There is no plot called {shown(kind)}; there are {', '.join(CHARTS)}.")
        for name in options:
            check_option(name, f"An option of the plot {kind!r}", ["outcome", *options_of(CHARTS[kind])])
        check_available(f"the plot {kind!r}", PICTURES[kind], of.producer)
        outcome = options.pop("outcome", None)
        if outcome is None and kind != "folds":
            outcome = of.kind.pictured(kind, set())[0] or None  # none for a picture of all
        if outcome is not None:
            chart = of.one(kind, outcome).chart(kind, **options)
            return replace(chart, title=f"{one_line(outcome)}: {chart.title}")
        return CHARTS[kind](of, **options)

    def to_html(
        self, path: str | PathLike[str] | None = None, title: str = "Comparison of forecasts"
    ) -> str | None:
        """One self-contained page: tables, pictures, the censoring diagnostic and the exact settings.

        Parameters
        ----------
        path : path, optional
            Where to write it; ``"-"`` is standard output.
        title : str
            Of the page.

        Returns
        -------
        str or None
            The page; None where it is written to a path, so that nothing is printed in its place.
        """
        from censcore.evaluation.report.html import page

        check_kind(title, "title", str, "a text")
        if path is not None:
            as_path(path)  # before the figures are drawn
        return _written(page(self._comparison, title), path)

    def to_json(self, path: str | PathLike[str] | None = None) -> str | None:
        """Verdict, settings, means, differences and notes as JSON.

        Parameters
        ----------
        path : path, optional
            As in :meth:`to_html`.

        Returns
        -------
        str or None
            The document; None where it is written. Missing numbers are null, infinite ones the string "inf".
        """
        from censcore.evaluation.report.export import comparison_json

        text = comparison_json(self._comparison)
        return text if path is None else _written(text + "\n", path)

    def to_latex(self, path: str | PathLike[str] | None = None) -> str | None:
        """The tables for LaTeX with the package booktabs; the caption of the first holds the verdict.

        Parameters
        ----------
        path : path, optional
            As in :meth:`to_html`.

        Returns
        -------
        str or None
            One ``table`` environment per table; None where they are written.
        """
        from censcore.evaluation.report.export import comparison_latex

        return _written(comparison_latex(self._comparison), path)

    def to_markdown(self, path: str | PathLike[str] | None = None) -> str | None:
        """The verdict and the tables as Markdown.

        Parameters
        ----------
        path : path, optional
            As in :meth:`to_html`.

        Returns
        -------
        str or None
            Text with pipe tables; None where it is written.
        """
        from censcore.evaluation.report.export import comparison_markdown

        return _written(comparison_markdown(self._comparison), path)

    def __repr__(self) -> str:
        from censcore.evaluation.report.text import text_of

        return text_of(self._comparison)

    def _repr_html_(self) -> str:
        from censcore.evaluation.report.html import notebook

        return notebook(self._comparison)


def _can_draw(of: Comparison, picture: str) -> bool:
    """Whether there is a picture of this kind."""
    return rule(PICTURES[picture], of.producer).how != REFUSED


def _written(text: str, path: str | PathLike[str] | None) -> str | None:
    """The text, or None where a path is given, to which it is written."""
    if path is None:
        return text
    write_atomically(path, text)
    return None
