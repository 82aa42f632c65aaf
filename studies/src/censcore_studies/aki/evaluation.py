"""Evaluation in hours on the test rows: localized energy and Brier scores, and ranking summaries."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from censcore.distributions import Ensemble, PointMass
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.progress import ProgressBar
from censcore.scores import brier_score, clustered_mean, energy_score
from censcore.store import content_key
from censcore_studies.aki.data import AkiRows, Build, open_build
from censcore_studies.aki.engine import Say, path_in_sql, quoted, writing
from censcore_studies.aki.features import ENDPOINTS
from censcore_studies.aki.methods import METHODS, Method, Preset
from censcore_studies.aki.training import device_kind, training_key
from censcore_studies.aki.truth import Truth, open_truth
from censcore_studies.kit.store import Stage, locked, read_stage, run_stage, write_json

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["HORIZONS", "LOSSES", "REFERENCE", "SHARES", "TRUTH", "evaluate", "read_preset", "read_scores"]

HORIZONS = (6, 12, 24, 48)
SHARES = (5, 10)
LOSSES = ("joint", *ENDPOINTS, *(f"brier_{horizon}" for horizon in HORIZONS))
REFERENCE = "censored"
TRUTH = "truth"
_FORMAT = 4  # raise it when the same model gives other numbers
_AT_ONCE = 2**25  # drawn times that are scored together: every call of a score has a fixed cost

Columns = dict[str, NDArray[Any]]


def evaluate(
    out: str | Path, *, device: str = "auto", say: Say | None = None, progress: bool = False
) -> dict[str, Any]:
    """Score every trained method on the test rows.

    Reported per method, with standard errors clustered by patient: the joint localized energy score on rows
    with an endpoint still at risk (an endpoint that is present does not enter the distance), the marginal
    ones on rows where that endpoint is at risk, and for "either AKI" on rows without any: the localized Brier
    score at 6, 12, 24 and 48 h, and positive predictive value and sensitivity of the highest 5 and 10 % of
    predicted risks among rows whose outcome at the horizon is known. Differences to censored engression are
    paired by row. In a synthetic database the distribution that the endpoints were drawn from is scored too,
    and what every method loses against it is its excess.

    Parameters
    ----------
    out : path
        The output directory of :func:`build` and :func:`train`; receives ``evaluation/``.
    device : str
        Where samples are drawn and scored.
    say : callable, optional
        Receives a line per stage.
    progress : bool
        Show a progress bar.

    Returns
    -------
    dict
        What ``evaluation/results/results.json`` holds: means and standard errors, no rows.
    """
    out, tell = Path(out), say or (lambda _: None)
    build = open_build(out)
    preset = read_preset(out)
    models = _trained(out, build, preset)
    with locked(out):
        scored, kind = {}, device_kind(device)
        test = cache(partial(build.rows, "test", preset.test_rows, None, preset.seed, tell))
        for method, model in models:
            key = content_key(_FORMAT, model.key, HORIZONS, kind)
            make = partial(_score_method, test, build, method, model, preset, device, progress)
            scored[method.name] = run_stage(out, f"evaluation/{method.name}", key, make, tell)
        if (truth := open_truth(build, tell)) is not None:
            drawn = [preset.test_rows, preset.members, preset.seed]
            make = partial(_score_truth, test, truth, preset, kind, progress)
            key = content_key(_FORMAT, truth.key, HORIZONS, drawn)
            scored[TRUTH] = run_stage(out, f"evaluation/{TRUTH}", key, make, tell)
        key = content_key(_FORMAT, SHARES, [[name, stage.key] for name, stage in scored.items()])
        run_stage(out, "evaluation/results", key, partial(_summarize, scored), tell)
    return read_results(out)


def read_results(out: Path) -> dict[str, Any]:
    """What :func:`evaluate` found."""
    stage = read_stage(out, "evaluation/results")
    if stage is None:
        raise InvalidInputError(f"{out} holds no evaluation; run evaluate({str(out)!r}) first.")
    return dict(json.loads((stage.folder / "results.json").read_text("utf-8")))


def with_truth(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results of all methods, and of the true distribution where it is known."""
    found = {name: results["methods"][name] for name in METHODS if name in results["methods"]}
    return found | ({TRUTH: results[TRUTH]} if TRUTH in results else {})


def read_preset(out: Path) -> Preset:
    """The preset that the models in ``out`` were trained with."""
    try:
        saved = json.loads((out / "preset.json").read_text("utf-8"))
    except OSError:
        raise InvalidInputError(f"No trained model in {out}; run train({str(out)!r}) first.") from None
    values: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in saved.items()}
    return Preset(**values)


def _trained(out: Path, build: Build, preset: Preset) -> list[tuple[Method, Stage]]:
    """The methods trained on this build at this size, on whatever kind of device."""
    found = [(method, read_stage(out, f"models/{method.name}")) for method in METHODS.values()]
    current = [
        (method, stage)
        for method, stage in found
        if stage is not None
        and stage.key == training_key(build, preset, method, stage.summary.get("device", ""))
    ]
    if not current:
        raise InvalidInputError(f"No model in {out} was trained on this build; run train again.")
    return current


def _score_method(
    test: Callable[[], AkiRows],
    build: Build,
    method: Method,
    stage: Stage,
    preset: Preset,
    device: str,
    progress: bool,
    folder: Path,
) -> dict[str, Any]:
    model = method.load(stage.folder / "model.safetensors", device)
    rows = test()
    draws = method.sample(model, rows.X, preset.members, preset.seed, build.preprocessing)
    return _score(method.name, rows, draws, progress, folder)


def _score_truth(
    test: Callable[[], AkiRows], truth: Truth, preset: Preset, device: str, progress: bool, folder: Path
) -> dict[str, Any]:
    rows = test()
    draws = (part.to(device) for part in truth.sample(rows, preset.members, preset.seed))
    return _score(TRUTH, rows, draws, progress, folder)


def _score(name: str, rows: AkiRows, draws: Iterable[Tensor], progress: bool, folder: Path) -> dict[str, Any]:
    parts, start = [], 0
    with ProgressBar(f"evaluation/{name}", len(rows), show=progress) as bar:
        for samples in _together(draws):
            part = rows.take(slice(start, start + len(samples)))
            parts.append(score_rows(part, samples))
            start += len(part)
            bar.advance(steps=len(part))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    _write(columns, folder / "scores.parquet")
    return {"rows": len(rows)}


def _together(draws: Iterable[Tensor]) -> Iterator[Tensor]:
    """The same draws of consecutive rows, in larger parts."""
    import torch

    parts: list[Tensor] = []
    for part in draws:
        parts.append(part)
        if sum(each.numel() for each in parts) >= _AT_ONCE:
            yield torch.cat(parts)
            parts = []
    if parts:
        yield torch.cat(parts)


def score_rows(rows: AkiRows, samples: Tensor) -> Columns:
    """One line per row: losses where the row counts for them (NaN elsewhere), and risks of either AKI.

    Parameters
    ----------
    rows : AkiRows
        Test rows.
    samples : tensor, (n, m, 2)
        Draws of both remaining times in hours; the scores are computed where they are.
    """
    place = partial(_beside, samples)
    y = RightCensored(place(rows.time), place(rows.event), place(rows.censoring))
    C, at_risk = PointMass(place(rows.censoring)), place(rows.at_risk)
    # Nothing beyond C enters a localized score; cutting there keeps infinite draws out of differences.
    end = samples.new_tensor(rows.censoring)[:, None, None]
    forecast = Ensemble(place(samples.minimum(end)))
    losses: dict[str, Any] = {"joint": energy_score(y, forecast, C, fair=True, mask=at_risk)}
    for j, endpoint in enumerate(ENDPOINTS):
        losses[endpoint] = energy_score(y.marginal(j), forecast.marginal(j), C, fair=True)
    brier = brier_score(y.first(), forecast.first(), C, place(np.asarray(HORIZONS, dtype=float)))
    earliest = samples.amin(dim=2)
    for q, horizon in enumerate(HORIZONS):
        losses[f"brier_{horizon}"] = brier[:, q]
        losses[f"risk_{horizon}"] = (earliest <= horizon).double().mean(dim=1)
    return _columns(rows, {name: _as_doubles(values) for name, values in losses.items()})


def _beside(samples: Tensor, values: Any) -> Any:
    """An array on the GPU of the samples, in their precision; in NumPy where the samples are in memory."""
    if samples.device.type == "cpu":
        return np.asarray(values)
    import torch

    # mapped files are read-only
    tensor = values if isinstance(values, torch.Tensor) else torch.tensor(values)
    tensor = tensor.to(samples.device)
    return tensor.to(samples.dtype) if tensor.is_floating_point() else tensor


def _as_doubles(values: Any) -> NDArray[np.float64]:
    return np.asarray(values.cpu() if hasattr(values, "cpu") else values, dtype=np.float64)


def _columns(rows: AkiRows, values: Columns) -> Columns:
    """The table of losses, NaN where a row does not count, with keys and outcomes at the horizons."""
    at_risk, first = rows.at_risk, rows.outcome().first()
    free = at_risk.all(axis=1)
    counts = {"joint": at_risk.any(axis=1), **dict(zip(ENDPOINTS, at_risk.T, strict=True))}
    columns: Columns = {
        "subject_id": rows.subject_id,
        "stay_id": rows.stay_id,
        "elapsed_hours": rows.elapsed,
        **{name: np.where(counts.get(name, free), losses, np.nan) for name, losses in values.items()},
    }
    for horizon in HORIZONS:
        happened = first.event & (first.time <= horizon)
        known = happened | (rows.censoring > horizon)
        columns[f"observed_{horizon}"] = (free & (rows.censoring > horizon)).astype(np.float64)
        columns[f"happened_{horizon}"] = np.where(free & known, happened, np.nan).astype(np.float64)
    return columns


def _write(columns: Columns, path: Path) -> None:
    import duckdb

    with writing(), duckdb.connect() as connection:
        connection.register("scores", columns)
        connection.execute(f"COPY scores TO {quoted(path)} (FORMAT parquet, COMPRESSION zstd)")


def read_scores(stage: Stage) -> Columns:
    """The columns of :func:`score_rows` for all test rows of one method."""
    import duckdb

    with duckdb.connect() as connection:
        path = path_in_sql(stage.folder / "scores.parquet")
        found = connection.execute(f"SELECT * FROM read_parquet({path})").fetchnumpy()
    return {
        name: np.ma.filled(column, np.nan) if column.dtype.kind == "f" else np.asarray(column)
        for name, column in found.items()
    }


def _summarize(scored: dict[str, Stage], folder: Path) -> dict[str, Any]:
    reference, truth = (read_scores(scored[name]) if name in scored else None for name in (REFERENCE, TRUTH))
    methods, differences, excess, rows = {}, {}, {}, {}
    for name, stage in scored.items():  # at most three tables of scores in memory
        columns = read_scores(stage)
        methods[name] = _method_results(columns)
        rows = {what: int(np.isfinite(columns[what]).sum()) for what in LOSSES}
        if reference is not None and name not in (REFERENCE, TRUTH):
            differences[name] = _less(columns, reference)
        if truth is not None and name != TRUTH:
            excess[name] = _less(columns, truth)
    results: dict[str, Any] = {"rows": rows, "methods": methods, "differences": differences}
    if truth is not None:
        results |= {"truth": methods.pop(TRUTH), "excess": excess}
    write_json(folder / "results.json", results)
    return {"methods": list(methods), "rows": rows}


def _less(columns: Columns, other: Columns) -> dict[str, Any]:
    """Mean paired differences of all losses."""
    return {what: _mean(columns, columns[what] - other[what]) for what in LOSSES}


def _method_results(columns: Columns) -> dict[str, Any]:
    results = {what: _mean(columns, columns[what]) for what in LOSSES}
    for horizon in HORIZONS:
        for share in SHARES:
            top = _top(columns, horizon, share / 100)
            results |= {f"{name}_{horizon}_{share}": value for name, value in top.items()}
    return results


def _mean(columns: Columns, losses: NDArray[Any]) -> dict[str, float | int | None]:
    counted = np.isfinite(losses)
    if not counted.any():
        return {"mean": None, "standard_error": None, "rows": 0, "patients": 0}
    patients = columns["subject_id"][counted]
    return _plain(*_share(losses[counted], np.ones(len(patients)), patients), patients)


def _share(values: NDArray[Any], weight: NDArray[Any], patients: NDArray[Any]) -> tuple[Any, Any]:
    """A weighted mean and its error over patients, which is NaN where it rests on one of them."""
    mean, influence = clustered_mean(values, weight / weight.sum(), patients)
    return mean, np.sqrt((influence**2).sum(axis=0))


def _top(columns: Columns, horizon: int, share: float) -> dict[str, Any]:
    """Predictive value and sensitivity of the highest risks; rows tied at the cut count in proportion."""
    known = np.isfinite(columns[f"happened_{horizon}"])
    names = (f"happened_{horizon}", f"risk_{horizon}", "subject_id")
    happened, risk, patients = (columns[name][known] for name in names)
    empty = {"mean": None, "standard_error": None, "rows": int(known.sum()), "patients": 0}
    if not known.any() or not happened.any():
        return {"ppv": empty, "sensitivity": empty}
    chosen = _chosen(risk, share)
    ppv = _share(happened, chosen, patients)
    sensitivity = _share(chosen, happened, patients)
    # A share rests on those among whom it is taken.
    return {
        "ppv": _plain(*ppv, patients[chosen > 0]),
        "sensitivity": _plain(*sensitivity, patients[happened > 0]),
    }


def _chosen(risk: NDArray[Any], share: float) -> NDArray[np.float64]:
    """Weights between 0 and 1 that pick the ``share`` of rows with the highest risk.

    >>> _chosen(np.array([0.9, 0.5, 0.5, 0.1]), 0.5).tolist()
    [1.0, 0.5, 0.5, 0.0]
    """
    wanted = share * len(risk)
    cut = np.sort(risk)[::-1][int(np.ceil(wanted)) - 1]
    above, tied = risk > cut, risk == cut
    return above + tied * (wanted - above.sum()) / tied.sum()


def _plain(mean: Any, error: Any, patients: NDArray[Any]) -> dict[str, float | int | None]:
    error = float(error)
    return {
        "mean": float(mean),
        "standard_error": error if np.isfinite(error) else None,
        "rows": len(patients),
        "patients": len(np.unique(patients)),
    }
