"""Real data with several event times per subject and one shared end of follow-up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.outcomes import RightCensored
from censcore_studies.kit.data import folder_below_data

__all__ = ["DATA", "SurvivalData", "data_folder", "load_survival_data"]

_YEAR, _MONTH = 365.25, 365.25 / 12


@dataclass(frozen=True)
class SurvivalData:
    """Covariates and event times, with their names and unit.

    Attributes
    ----------
    name : str
        Name of the data set.
    X : frame, (n, d)
        Numeric covariates; missing values are NaN.
    y : RightCensored, (n, k)
        The event times; with ``censoring_time`` where the end of follow-up is known for all subjects.
    endpoints : tuple of str
        What the k event times are.
    unit : str
        Unit of the times.
    """

    name: str
    X: pd.DataFrame
    y: RightCensored
    endpoints: tuple[str, ...]
    unit: str

    @property
    def fingerprint(self) -> str:
        """Hash of all numbers."""
        content = hashlib.sha256()
        for part in (self.X.to_numpy(dtype=float), np.asarray(self.y.time), np.asarray(self.y.event)):
            content.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        if self.y.censoring_time is not None:
            content.update(np.ascontiguousarray(self.y.censoring_time).tobytes())
        return content.hexdigest()


def data_folder() -> Path:
    """The folder ``survival`` below the one that the environment variable CENSCORE_DATA names."""
    return folder_below_data("survival", "colon.csv", "the data sets")


def load_survival_data(name: str, folder: str | os.PathLike[str] | None = None) -> SurvivalData:
    """One of the data sets in ``DATA``, built from the files of the R package ``survival`` or of lifelines.

    Examples
    --------
    >>> from censcore_studies.real_data.data import load_survival_data
    >>> load_survival_data("lymph node").y
    RightCensored(n=686, k=2, events=[299, 171] (43.6 %, 24.9 %), time 0.262834 to 87.655)
    """
    if name not in DATA:
        raise InvalidInputError(f"name must be one of {list(DATA)}; got {name!r}.")
    return DATA[name](Path(folder) if folder is not None else None)


def _read(folder: Path | None, file: str) -> pd.DataFrame:
    return pd.read_csv((folder or data_folder()) / file)


def _colon(folder: Path | None) -> SurvivalData:
    """Recurrence or death, and death: death ends no follow-up, so C is the date of last contact alone."""
    rows = _read(folder, "colon.csv").sort_values("id")
    recurred, died = (rows[rows.etype == kind].set_index("id") for kind in (1, 2))
    time = np.column_stack([np.where(recurred.status, recurred.time, died.time), died.time]) / _MONTH
    event = np.column_stack([np.maximum(recurred.status, died.status), died.status])
    plain = ["sex", "age", "obstruct", "perfor", "adhere", "nodes", "differ", "extent", "surg", "node4"]
    X = died[plain].astype(float)
    for arm in ("Lev", "Lev+5FU"):
        X[f"rx {arm}"] = (died.rx == arm).astype(float)
    return SurvivalData("colon", X, RightCensored(time, event), ("recurrence or death", "death"), "months")


def _retinopathy(folder: Path | None) -> SurvivalData:
    """Loss of vision in the control and in the treated eye of the same patient."""
    rows = _read(folder, "retinopathy.csv").sort_values("id")
    control, treated = (rows[rows.trt == arm].set_index("id") for arm in (0, 1))
    y = RightCensored(
        np.column_stack([control.futime, treated.futime]), np.column_stack([control.status, treated.status])
    )
    X = pd.DataFrame(
        {
            "age": control.age.astype(float),
            "adult onset": (control.type == "adult").astype(float),
            "argon laser": (control.laser == "argon").astype(float),
            "treated eye left": (treated.eye == "left").astype(float),
            "risk control": control.risk.astype(float),
            "risk treated": treated.risk.astype(float),
        }
    )
    return SurvivalData("retinopathy", X, y, ("control eye", "treated eye"), "months")


def _rhdnase(folder: Path | None) -> SurvivalData:
    """First, second and third exacerbation; the end of observation is known for all subjects."""
    rows = _read(folder, "rhDNase.csv").sort_values(["id", "ivstart"])
    first = rows.groupby("id").first()
    days = pd.to_datetime(first["end.dt"]) - pd.to_datetime(first["entry.dt"])
    C = days.dt.days.to_numpy(dtype=float)
    starts = rows[rows.ivstart > 0].groupby("id").ivstart.apply(list).reindex(first.index)
    T = np.full((len(first), 3), np.inf)
    for i, seen in enumerate(starts):
        if isinstance(seen, list):
            T[i, : min(3, len(seen))] = seen[:3]
    y = RightCensored(np.minimum(T, C[:, None]) / _MONTH, C[:, None] >= T, censoring_time=C / _MONTH)
    X = first[["trt", "fev"]].astype(float)
    return SurvivalData("rhDNase", X, y, ("1st", "2nd", "3rd exacerbation"), "months")


_CARDIOVASCULAR = ("MI", "stroke", "heart failure", "afib", "ang/isc", "cardiac arrest")
_NAFLD = ("diabetes", "htn", "dyslipidemia", "cardiovascular")


def _nafld(folder: Path | None) -> SurvivalData:
    """Four first diagnoses of people free of all of them; observation ends, known for all, with contact."""
    people = _read(folder, "nafld1.csv").set_index("id").sort_index()
    events = _read(folder, "nafld3.csv")
    events["kind"] = events.event.where(~events.event.isin(_CARDIOVASCULAR), "cardiovascular")
    days = events.groupby(["id", "kind"]).days.min().unstack().reindex(people.index)[list(_NAFLD)]
    at_risk = ~(days <= 0).any(axis=1)
    people, T = people[at_risk], days[at_risk].fillna(np.inf).to_numpy()
    C = people.futime.to_numpy(dtype=float)
    y = RightCensored(np.minimum(T, C[:, None]) / _YEAR, C[:, None] >= T, censoring_time=C / _YEAR)
    X = people[["age", "male", "weight", "height", "bmi"]].astype(float)
    X["nafld"] = (people.index == people["case.id"]).astype(float)
    return SurvivalData("nafld", X, y, _NAFLD, "years")


def _lymph_node(folder: Path | None) -> SurvivalData:
    """Recurrence or death, and death, in the German breast cancer trial; from lifelines."""
    try:
        from lifelines.datasets import load_lymph_node
    except ImportError as error:
        raise MissingPackageError(
            "The lymph node data come with lifelines: pip install lifelines."
        ) from error
    rows = load_lymph_node()
    died = rows.censdead.to_numpy()
    relapsed = rows.censrec.to_numpy()
    first = np.where(relapsed, rows.rectime, rows.survtime)
    y = RightCensored(
        np.column_stack([first, rows.survtime]) / _MONTH, np.column_stack([np.maximum(relapsed, died), died])
    )
    X = rows[["age", "menopause", "hormone", "size", "grade", "nodes"]].astype(float)
    X["log progesterone"] = np.log1p(rows.prog_recp)
    X["log oestrogen"] = np.log1p(rows.estrg_recp)
    return SurvivalData("lymph node", X, y, ("recurrence or death", "death"), "months")


#: Data sets by name.
DATA: dict[str, Callable[[Path | None], SurvivalData]] = {
    "colon": _colon,
    "lymph node": _lymph_node,
    "retinopathy": _retinopathy,
    "rhDNase": _rhdnase,
    "nafld": _nafld,
}
