"""Search finds pages by the words of readers: synonyms and names of functions are main entries of the index.

Also what the sidebar of the reference shows: the sections of its page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

#: Page -> other words for what it is about. Main entries of the index come first in a search.
WORDS: dict[str, tuple[str, ...]] = {
    "generated/censcore.integrated_brier_score": ("IBS", "integrated Graf score"),
    "generated/censcore.brier_score": ("Graf score", "time-dependent Brier score", "mean squared error"),
    "generated/censcore.evaluation.concordance": (
        "C-index",
        "C statistic",
        "Harrell",
        "Uno",
        "concordance index",
    ),
    "generated/censcore.evaluation.dynamic_auc": ("time-dependent AUC", "ROC", "cumulative dynamic AUC"),
    "generated/censcore.evaluation.net_benefit": ("decision curve analysis", "DCA"),
    "generated/censcore.crps": ("continuous ranked probability score", "survival CRPS"),
    "generated/censcore.log_score": ("negative log likelihood", "NLL", "deviance"),
    "generated/censcore.pinball_score": ("quantile loss", "check loss"),
    "generated/censcore.cross_validate": ("k-fold", "nested cross-validation", "model selection"),
    "generated/censcore.compare": ("benchmark models", "Diebold-Mariano test"),
    "generated/censcore.FineGray": ("subdistribution hazard",),
    "generated/censcore.CoxRegression": ("proportional hazards", "coxph"),
    "generated/censcore.Censoring": ("IPCW", "inverse probability of censoring weights"),
    "discrimination": ("C-index", "concordance", "Uno", "Harrell", "ROC"),
    "calibration": (
        "calibration slope",
        "calibration in the large",
        "decision curve",
        "ICI",
        "reliability diagram",
    ),
    "validation": (
        "external validation",
        "published model",
        "prediction model",
        "TRIPOD",
        "linear predictor",
        "restricted cubic spline",
        "O/E",
        "observed to expected",
        "TRIPOD+AI",
        "docx",
    ),
    "sample_size": (
        "sample size",
        "power",
        "number of events",
        "pmvalsampsize",
        "precision",
        "study planning",
    ),
    "generated/censcore.plan_validation": ("sample size", "power calculation", "assurance"),
    "importance": (
        "feature importance",
        "variable importance",
        "permutation importance",
        "partial dependence",
        "explain",
        "SHAP",
    ),
    "generated/censcore.importance": ("feature importance", "permutation importance"),
    "updating": ("recalibration", "recalibrate", "model updating", "calibration slope", "closed test"),
    "generated/censcore.update": ("recalibration", "recalibrate", "shrinkage"),
    "sites": ("meta-analysis", "heterogeneity", "forest plot", "multicentre", "Hartung-Knapp"),
    "generated/censcore.validate": ("external validation", "calibration slope", "O/E", "IPA"),
    "generated/censcore.PublishedCox": ("model from a paper", "prognostic index", "nomogram"),
    "delayed_entry": ("left truncation", "immortal time", "late entry"),
    "five_minutes": ("churn", "customer retention", "time to failure", "quick start", "tutorial"),
    "competing_risks": ("cumulative incidence", "CIF", "Aalen-Johansen"),
    "interval_censoring": ("Turnbull", "visits", "panel data"),
    "two_brier_scores": ("Graf", "IBS", "IPCW"),
    "censoring_distribution": ("IPCW", "dependent censoring", "informative censoring", "drop-out"),
    "comparing": ("paired test", "confidence interval of a difference"),
    "cite": ("cite", "citation", "BibTeX"),
}


def add_words(app: Sphinx, doctree: nodes.document) -> None:
    """Main entries of the index at the head of the page: its synonyms, and of a function its name."""
    page = app.env.docname
    words = [*WORDS.get(page, ()), *([page.rpartition(".")[2]] if page.startswith("generated/") else [])]
    section = next(doctree.findall(nodes.section), None)
    if words and section is not None:
        entries = [("single", word, section["ids"][0], "main", None) for word in words]
        section.insert(1, addnodes.index(entries=entries))


def sections(source: Path) -> list[tuple[str, str]]:
    """Titles of the sections of a page, and their anchors."""
    titles = re.findall(r"^## (.+)$", source.read_text(encoding="utf-8"), re.MULTILINE)
    return [(title, re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")) for title in titles]


def add_sections(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    context["api_sections"] = sections(Path(app.srcdir) / "api.md")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-read", add_words)
    app.connect("html-page-context", add_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
