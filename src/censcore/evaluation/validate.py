"""Validate a model that exists, in subjects that it was not made from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from censcore._arrays import Array
from censcore._validation import as_number, check_option
from censcore.distributions import Distribution
from censcore.distributions.univariate.monotone import ROUNDING
from censcore.evaluation.compare import compare_asked
from censcore.evaluation.decisions.asked import Asked, read
from censcore.evaluation.decisions.forecasts import as_distributions, as_named
from censcore.evaluation.decisions.subsets import labels_by
from censcore.evaluation.kinds import default_censoring, kind_of
from censcore.evaluation.measures.net_benefit import check_thresholds
from censcore.evaluation.measures.performance import BRIER
from censcore.evaluation.measures.recalibration import METHODS
from censcore.evaluation.outcome_table import check_in_memory
from censcore.evaluation.sample import Sample
from censcore.evaluation.sites import pooled
from censcore.evaluation.validation import Validation
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike


def validate(
    forecast: Any,
    y: OutcomeLike | Sample,
    censoring: Any = None,
    *,
    time: float,
    X: Array | None = None,
    thresholds: Array | None = None,
    method: str = "binomial",
    sample_weight: Array | None = None,
    groups: Array | None = None,
    by: Any = None,
    sites: Any = None,
    names: Any = None,
    development: Any = None,
    confidence: float = 0.95,
    time_unit: str = "",
    seed: int = 0,
    progress: bool | None = None,
) -> Validation:
    r"""Validate a model in subjects that it was not made from: the risk of the event by one time.

    Errors count that C was estimated, weights and clusters, and that the expected risk is as random as the
    subjects are. The model counts as fixed.

    Parameters
    ----------
    forecast : fitted model, Distribution, or dict of them
        One model, such as a :class:`PublishedCox`, which is asked for the subjects of X, or its forecast; a
        dict has several side by side. A forecast that is known at one time must be known at ``time``.
    y : outcome or Sample
        What happened to n subjects: one event time, or :class:`CompetingRisks`, whose causes are validated
        one by one.
    censoring : distribution, estimator or "auto", optional
        As in :func:`compare`. By default the Kaplan-Meier estimate of the scored subjects, so that observed
        risks are those of Kaplan-Meier or Aalen-Johansen: it assumes that C depends on nothing.
    time : number
        t. Follow-up beyond it does not matter.
    X : array or frame, optional
        Covariates of the n subjects, for models, C, ``by`` and ``sites``.
    thresholds : array, optional
        Risks above which one would act, for net benefit. By default the observed risk, with a note.
    method : {"binomial", "pseudo"}
        Estimating equation of intercept and slope, see ``Notes``.
    sample_weight, groups, by, names
        As in :func:`compare`.
    sites : column of X, or labels, (n,), optional
        Hospitals or countries, say: each is validated by itself, with a C of its own, and pooled as
        :func:`pool_sites` does.
    development : frame or array, optional
        Covariates of the subjects that the model was made from, or what is known of them as a mapping from a
        column to a text, for the table of characteristics of the page.
    confidence, time_unit, seed, progress
        As in :func:`compare`.

    Returns
    -------
    Validation
        ``frame()``, ``differences()``, ``plot()``, ``to_html()``, ``to_csv()``, ``to_latex()``,
        ``to_markdown()``, ``to_word()``, ``summary()``.

    Notes
    -----
    With the risk :math:`p_i=F_i(t)`, the linear predictor :math:`\eta_i=\log\{-\log(1-p_i)\}`, sampling
    weights :math:`w_i` that sum to one and inverse-probability weights :math:`W_{1i}` of "event by t" and
    :math:`W_{0i}` of "no event by t":

    ``observed``, ``expected``, ``O/E``
        :math:`O=\sum w_iW_{1i}/\sum w_i(W_{1i}+W_{0i})`, :math:`E=\sum w_ip_i` and their ratio; ``p`` is of
        O/E = 1.
    ``calibration intercept``, ``calibration slope``
        a of :math:`\sum w_i\{W_{1i}(1-\pi_i)-W_{0i}\pi_i\}h_i=0` with
        :math:`\pi_i=1-\exp(-e^{a+\eta_i})`, :math:`h_i=e^{a+\eta_i}/\pi_i`; b of the same equations times
        :math:`(1,\eta_i)` with :math:`a+b\eta_i`. ``"pseudo"`` solves
        :math:`\sum w_i(\theta_i-\pi_i)\,d\pi_i/d\eta\,(1,\eta_i)=0` with pseudo-values
        :math:`\theta_i`, as in published work; it is valid only where C depends on nothing. ``p`` is of a = 0
        and of b = 1.
    ``calibration, joint test``
        Wald's statistic of a = 0 and b = 1, of two degrees of freedom.
    ``calibration slope, Cox``
        Coefficient of :math:`\eta` in a Cox regression of the follow-up up to t; robust error.
    ``ICI``, ``E50``, ``E90``
        Mean, median and 90 % quantile of the distance between the smooth calibration curve and the diagonal
        (:meth:`Comparison.calibration`). Under a right model they are not zero but ``by_chance``, so that
        there is an upper bound alone, and one p-value, of the ICI.
    ``concordance, Harrell``, ``concordance, Uno``, ``AUC``
        Shares of pairs ranked rightly: of comparable pairs up to t, the same with inverse weights, and of
        those with and without the event by t.
    ``Royston D``
        Coefficient of a Cox regression on scaled normal scores of :math:`\eta`.
    ``Brier``, ``IPA``
        The Brier score at t, and 1 less its ratio to that of the null model of these subjects.
    ``net benefit at x``
        :math:`\sum w_i\mathbb 1\{p_i>x\}\{W_{1i}-W_{0i}x/(1-x)\}`; standardised, over the observed risk; less
        that of treating all, and of none.
    ``linear predictor, mean`` and ``sd``, ``AUC if right``
        The case mix; the AUC that the model would have here if its risks were right.

    A risk of 0 or 1 has no finite :math:`\eta`: intercept, slopes, D and the case mix are then not available,
    as their notes say. Where fewer than five effective events, or subjects beyond t, are left, a note says
    so in place of a number.

    See Also
    --------
    compare : Which of several forecasts is best, by proper scores.
    pool_sites : Pool validations of several sites.

    References
    ----------
    .. [1] McLernon, D. J., Giardiello, D., Van Calster, B. et al. (2023). Assessing performance and clinical
       usefulness in prediction models with survival outcomes. Annals of Internal Medicine 176, 105-114.
    .. [2] van Geloven, N., Giardiello, D., Bonneville, E. F. et al. (2022). Validation of prediction models
       in the presence of competing risks: a guide through modern methods. BMJ 377, e069249.
    .. [3] Collins, G. S., Moons, K. G. M., Dhiman, P. et al. (2024). TRIPOD+AI statement. BMJ 385, e078378.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=500)
    >>> T, C = rng.exponential(np.exp(-x)), rng.uniform(0, 3, 500)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> found = cs.validate(cs.Exponential(1.5 * np.exp(x)), y, time=1.0, thresholds=[0.5])
    >>> lines = found.frame().set_index("measure")[["value", "low", "high"]]
    >>> lines.loc[["O/E", "calibration slope"]].round(2)
                       value   low  high
    measure
    O/E                 0.88  0.83  0.94
    calibration slope   1.00  0.74  1.21
    """
    t = as_number(time, "time", above=0)
    check_option(method, "method", METHODS)
    theta = None if thresholds is None else check_thresholds(thresholds)
    sample, named = Sample.scored(y, X, sample_weight, groups), as_named(forecast)
    check_in_memory(sample.y, "validate")
    options: dict[str, Any] = {
        "scores": BRIER, "times": [t], "horizon": t, "names": names, "confidence": confidence,
        "time_unit": time_unit, "seed": seed, "progress": progress,
    }  # fmt: skip
    asked = read(named, sample, censoring, None, by=by, **options)
    kind, _ = kind_of(sample.y).settle(asked)
    forecasts = as_distributions(kind, named, sample.X, None)
    _check_known(forecasts, t)
    if censoring is None:
        censoring = default_censoring(kind)
    comparison = compare_asked(replace(asked, forecasts=forecasts, censoring=censoring))
    found = Validation(comparison, t, list(forecasts), theta, method, development=development)
    if sites is None:
        return found
    each, of_site = {}, replace(asked, by=None, forecasts=forecasts, censoring=censoring)
    theta = np.array(found.thresholds_of(found.outcomes[0]))
    ((_, labels),) = labels_by(sites, sample.X, len(kind.y)).items()
    for site in np.unique(labels):
        comparison = compare_asked(_part(of_site, kind.y, np.nonzero(labels == site)[0]))
        each[str(site)] = Validation(comparison, t, list(forecasts), theta, method)
    return replace(found, sites=pooled(each, confidence))


def _check_known(forecasts: dict[str, Distribution], t: float) -> None:
    """Check that every forecast says something of the time."""
    for name, F in forecasts.items():
        if F.only_time is not None and not np.isclose(F.only_time, t, rtol=ROUNDING, atol=0):
            raise InvalidInputError(
                f"Forecast {name!r}: got time={t:g}, expected {F.only_time:g}, the one time at which the "
                "forecast is known. Pass that time, or a forecast of more times."
            )


def _part(asked: Asked, y: Any, rows: np.ndarray) -> Asked:
    """What is asked of all subjects, of some of them."""

    def taken(part: Any) -> Any:
        return part.take(rows) if isinstance(part, Distribution) and len(part) > 1 else part

    sample = replace(asked.sample, y=y).take(rows)
    forecasts = {name: taken(F) for name, F in asked.forecasts.items()}
    return replace(asked, sample=sample, forecasts=forecasts, censoring=taken(asked.censoring))
