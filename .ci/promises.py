"""What an extra promises, as a program: ``promises.py EXTRA``, where the wheel has that extra alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import censcore as cs


def table(n: int = 200) -> pd.DataFrame:
    """Subjects with the survival of a model in columns, as ``censcore compare`` reads them."""
    rng = np.random.default_rng(0)
    scale = np.exp(0.5 * rng.normal(size=n))
    T, C = scale * rng.weibull(1.5, n), rng.uniform(0.0, 3.0, n)
    model = {f"weibull__sf@{t}": cs.Weibull(1.5, scale).sf(t) for t in (0.25, 0.5, 1.0, 2.0)}
    return pd.DataFrame({"days": np.minimum(T, C), "died": T <= C, "scale": scale, **model})


def plots() -> None:
    """``comparison.plot()``."""
    rows = table()
    y = cs.RightCensored(rows.days, rows.died)
    forecasts = {"with x": cs.Weibull(1.5, rows.scale.to_numpy()), "without": cs.Weibull(1.2, 1.2)}
    cs.compare(forecasts, y, cs.Uniform(0.0, 3.0)).plot().savefig("comparison.png")
    assert Path("comparison.png").stat().st_size > 10_000


def censcore(*words: str) -> str:
    """What a command prints."""
    command = [str(Path(sys.executable).parent / "censcore"), *words]
    utf8 = os.environ | {"PYTHONUTF8": "1", "COLUMNS": "120"}
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, encoding="utf-8", env=utf8).stdout


def cli() -> None:
    """``censcore compare`` and ``censcore score`` with CSV and Parquet files."""
    table().to_csv("table.csv", index=False)
    table().to_parquet("table.parquet")
    columns = ("--time", "days", "--event", "died")
    printed = [censcore("compare", f"table.{kind}", *columns) for kind in ("csv", "parquet")]
    assert "CRPS" in printed[0], printed[0]
    assert printed[0].replace("table.csv", "") == printed[1].replace("table.parquet", "")
    censcore("score", "table.parquet", *columns, "--out", "losses.parquet")
    assert len(pd.read_parquet("losses.parquet")) == 200


def dask() -> None:
    """``OutcomeTable`` of a Dask data frame, and of a file that a cluster reads."""
    import dask.dataframe as dd
    from distributed import Client

    rows = table()
    rows.to_parquet("table.parquet")

    def mean(data: object, **cluster: object) -> float:
        y = cs.OutcomeTable(data, "days", "died", rows=50, **cluster)
        found = cs.compare(["weibull"], y, cs.Censoring(cs.KaplanMeier()), scores="crps", reference=None)
        return float(found.frame()["mean"].iloc[0])

    with Client(processes=False, dashboard_address=None) as client:
        found = [
            mean(dd.from_pandas(rows, npartitions=3), dask=client),
            mean("table.parquet", dask=client),
        ]
    np.testing.assert_allclose(found, mean(rows), rtol=1e-12)


def fast() -> None:
    """The energy score by compiled kernels, as by the formula."""
    rng = np.random.default_rng(0)
    T, c = rng.exponential(size=(300, 2)), rng.uniform(0.0, 3.0, (300, 1))
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    F, C = cs.Ensemble(rng.exponential(size=(300, 40, 2))), cs.Uniform(0.0, 3.0)
    os.environ["CENSCORE_KERNELS"] = "never"
    expected = cs.energy_score(y, F, C)
    assert "numba" not in sys.modules
    os.environ["CENSCORE_KERNELS"] = "always"
    np.testing.assert_allclose(cs.energy_score(y, F, C), expected, rtol=1e-11)
    assert "numba" in sys.modules


def torch() -> None:
    """A network is trained, saved and loaded; gradients flow through a score."""
    import torch

    from censcore.simulation import LogNormalScenario

    data = LogNormalScenario(k=2, censoring="uniform").sample(400, seed=0)
    model = cs.CensoredEngression(epochs=2, random_state=0)
    model.fit(data.X, data.y, censoring=cs.Censoring(cs.KaplanMeier())).save("model.safetensors")
    draws = (
        m.predict_distribution(data.X[:3]).sample(5, seed=1) for m in (model, cs.load("model.safetensors"))
    )
    np.testing.assert_array_equal(*draws)
    scale = torch.ones(2, requires_grad=True)
    y = cs.RightCensored(torch.tensor([1.0, 2.0]), torch.tensor([True, False]))
    cs.crps(y, cs.Weibull(1.5, scale), cs.Uniform(0.0, 5.0)).sum().backward()
    assert torch.isfinite(scale.grad).all()


def demo() -> None:
    """``censcore demo``."""
    assert "integrated Brier" in censcore("demo", "--out", "demo")
    assert Path("demo/overview.png").stat().st_size > 10_000


if __name__ == "__main__":
    {"plots": plots, "cli": cli, "dask": dask, "fast": fast, "torch": torch, "demo": demo}[sys.argv[1]]()
