"""A forecast that is known at one time: the survival probabilities there, and nothing between or beyond."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from censcore._arrays import Array, to_numpy
from censcore.distributions.contract import forwarded
from censcore.distributions.univariate.curve import Curve
from censcore.distributions.univariate.monotone import ROUNDING
from censcore.exceptions import InvalidInputError, UnknownCurveError


class AtOneTime(Curve):
    r"""The survival probability at one time t, :math:`P(T>t)`, of which no curve is known.

    A column of risks by five years is such a forecast. It has a Brier score, an AUC, calibration and net
    benefit at t. What needs a curve (the CRPS, integrated scores, quantiles, the log score) is an
    :class:`~censcore.exceptions.UnknownCurveError`.

    Parameters
    ----------
    time : number
        t.
    sf, cdf : array, (n,) or (n, 1)
        Exactly one of P(T > t) and P(T <= t).

    See Also
    --------
    as_forecast : Makes one of a matrix with one time; ``interpolation="linear"`` makes a curve of it.

    Examples
    --------
    >>> from censcore.distributions.univariate.at_one_time import AtOneTime
    >>> F = AtOneTime(5.0, sf=[0.8, 0.6])
    >>> F.cdf(5.0).round(3)
    array([0.2, 0.4])
    >>> F
    AtOneTime(shape=(2,), time=5)
    """

    has_density: ClassVar[bool] = True  # its log score fails for lack of a curve, which is the better reason

    def __init__(self, time: Array, *, sf: Array = None, cdf: Array = None) -> None:
        self._set_curve(time, sf, cdf)
        if self._times.shape != (1, 1):
            raise InvalidInputError(
                f"time: got {self._times.shape[-1]} times of {self._times.shape[0]} subjects, expected one "
                "number. Forecasts at several times are curves: as_forecast(sf, times=...)."
            )

    @property
    def only_time(self) -> float:
        """The time that is known."""
        return float(to_numpy(self._times)[0, 0])

    def _level(self, t: Array) -> Array:
        known = to_numpy(abs(t - self._times) <= ROUNDING * self._times)
        if not known.all():
            self._unknown(f"got t = {to_numpy(t)[~known][0]:g}")
        return self._levels + self.xp.zeros_like(t)

    def _unknown(self, got: str) -> NoReturn:
        t = self.only_time
        raise UnknownCurveError(
            f"The forecast is known at t = {t:g} alone; {got}. Ask for scores of that time, "
            f"times=[{t:g}], or give probabilities at more times.",
            t,
        )

    def sf_at(self, t: Array) -> Array:
        return self._as_sf(self._level(t))

    def cdf_at(self, t: Array) -> Array:
        return self._as_cdf(self._level(t))

    def _forward(self, name: str, *_: Array) -> NoReturn:
        self._unknown(f"got a question of the whole curve, {name.removesuffix('_at')}")

    sf_left_at, logpdf_at, isf_at, icdf_at = forwarded("sf_left_at", "logpdf_at", "isf_at", "icdf_at")
    integrated_sf_at, _area_before, _make_areas = forwarded("integral", "integral", "integral")
    prob_never, censor_at, breaks = forwarded("mass_at_infinity", "censor_at", "breaks")

    def _repr_html_(self) -> str:
        return f"<code>{self!r}</code>"

    def __repr__(self) -> str:
        return f"AtOneTime(shape=({len(self)},), time={self.only_time:g})"
