"""``censcore compare`` and ``censcore score`` on files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import run
from tests.cli.predictions import TIMES, sample
from typer.testing import CliRunner

import censcore as cs
from censcore.cli.app import app
from censcore.exceptions import CenscoreError


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("predictions")
    test, train = sample(120, 0), sample(150, 1)
    test.to_csv(folder / "test.csv", index=False)
    test.to_parquet(folder / "test.parquet")
    train.to_csv(folder / "train.csv", index=False)
    return folder


def test_compare_reads_all_kinds_of_columns(files):
    text = run(
        "compare", files / "test.csv", "--time", "days", "--event", "died", "--train", files / "train.csv",
        "--times", "0.5,1", "--json", files / "out.json",
    )  # fmt: skip
    for word in ("exact", "quantiles", "draws", "kaplan-meier", "CRPS", "not available"):
        assert word in text
    document = json.loads((files / "out.json").read_text(encoding="utf-8"))
    assert document["settings"]["times"] == [0.5, 1.0]
    frame = sample(120, 0)
    y = cs.RightCensored(frame.days.to_numpy(), frame.died.to_numpy())
    train = sample(150, 1)
    distribution = cs.Censoring(cs.KaplanMeier()).fit(
        None, cs.RightCensored(train.days.to_numpy(), train.died.to_numpy())
    )
    F = cs.as_forecast(frame[[f"exact__sf@{t:g}" for t in TIMES]].to_numpy(), times=TIMES)
    horizon = document["settings"]["horizon"]
    expected = cs.crps(y, F, distribution.predict_distribution(), horizon=horizon).mean()
    (found,) = [
        row["mean"] for row in document["means"]
        if row["score"] == "crps" and row["model"] == "exact" and row["by"] == ""
    ]  # fmt: skip
    assert found == pytest.approx(expected, rel=1e-5)  # the tail beyond the last time is one of lines there


def test_csv_and_parquet_give_the_same(files):
    options = ["--time", "days", "--event", "died", "--scores", "crps"]
    one, two = (run("compare", files / name, *options) for name in ("test.csv", "test.parquet"))
    assert one == two


def test_an_index_of_a_parquet_file_is_a_column(tmp_path):
    """Stored as numbers or as a range; read whole or in batches."""
    table, pairs = sample(120, 0), np.arange(120) % 60
    table.assign(id=pairs).to_parquet(tmp_path / "column.parquet")
    table.set_index(pd.Index(pairs, name="id")).to_parquet(tmp_path / "index.parquet")
    table.set_index(pd.RangeIndex(240, 0, -2, name="id")).to_parquet(tmp_path / "range.parquet")
    options = ("--time", "days", "--event", "died", "--scores", "crps", "--quiet", "--json", "-")

    def errors(name, *more):
        document = json.loads(run("compare", tmp_path / f"{name}.parquet", *options, *more))
        return [row["standard_error"] for row in document["means"]]

    for more in ((), ("--batch", 50)):
        alone, by_pairs = errors("column", *more), errors("column", "--groups", "id", *more)
        assert by_pairs != pytest.approx(alone)
        assert errors("index", "--groups", "id", *more) == pytest.approx(by_pairs)
        assert errors("range", "--groups", "id", *more) == pytest.approx(alone)


def test_html_subgroups_groups_and_distributions(files):
    pytest.importorskip("matplotlib")
    page = files / "page.html"
    run(
        "compare", files / "test.parquet", "--time", "days", "--event", "died",
        "--scores", "crps,brier_score",
        "--by", "sex", "--stratify", "sex", "--html", page, "--quiet",
    )  # fmt: skip
    text = page.read_text(encoding="utf-8")
    assert "strata of" in text
    assert "sex = f" in text


def test_cox_distribution_of_c_from_covariates(files):
    text = run(
        "compare", files / "test.csv", "--time", "days", "--event", "died", "--scores", "crps", "--censoring",
        "cox", "--covariates", "x", "--reference", "exact", "--horizon", "1.5",
    )  # fmt: skip
    assert "CoxRegression" in text
    assert "influence function, with the term of the estimated censoring distribution" in text


def test_score_writes_one_loss_per_row(files):
    out = files / "losses.csv"
    run(
        "score", files / "test.csv", "--time", "days", "--event", "died",
        "--scores", "crps,brier_score", "--times",
        "0.5,1", "--out", out,
    )  # fmt: skip
    losses = pd.read_csv(out)
    assert len(losses) == 120
    assert "exact__crps" in losses
    assert "draws__brier_score@0.5" in losses
    printed = run("score", files / "test.csv", "--time", "days", "--event", "died")
    assert "exact__crps,quantiles__crps,draws__crps" in printed.splitlines()


def test_unnamed_and_cdf_columns(tmp_path):
    frame = pd.DataFrame({"t": [1.0, 2.0, 3.0], "e": [1, 1, 1], "cdf@1": [0.2] * 3, "cdf@2.5": [0.7] * 3})
    frame.to_csv(tmp_path / "p.csv", index=False)
    text = run(
        "compare",
        tmp_path / "p.csv",
        "--time",
        "t",
        "--event",
        "e",
        "--censoring",
        "none",
        "--scores",
        "crps",
    )
    assert "forecast" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.csv"], "no file"),
        (["test.csv", "--time", "hours"], "--time hours: there is no such column"),
        (["test.csv", "--censoring", "magic"], "--censoring must be one of"),
        (["test.csv", "--times", "1,two"], "--times takes numbers"),
        (["test.csv", "--scores", "crsp"], "no score called 'crsp'"),
        (["test.csv", "--covariates", "age"], "no column age"),
        (["test.csv", "--by", "age"], "--by age"),
        (["test.csv", "--time", "sex"], "must hold numbers"),
        (["test.csv", "--censoring", "none"], "censoring distribution is missing"),
        (["test.csv", "--censoring", "cox"], "--censoring cox: got no --covariates"),
        (["test.csv", "--censoring", "weibull"], "--censoring weibull: got no --covariates"),
    ],
)
def test_errors_are_sentences(files, arguments, message):
    name, *options = arguments
    defaults = [] if "--time" in options else ["--time", "days"]
    with pytest.raises(CenscoreError, match=message):
        run("compare", files / name, *defaults, "--event", "died", *options)


def test_tables_that_are_no_forecasts(tmp_path):
    pd.DataFrame({"t": [1.0], "e": [1]}).to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(CenscoreError, match="No columns of forecasts"):
        run("compare", tmp_path / "p.csv", "--time", "t", "--event", "e")
    mixed = pd.DataFrame({"t": [1.0], "e": [1], "a__sf@1": [0.5], "a__q@0.5": [1.0]})
    mixed.to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(CenscoreError, match="several kinds"):
        run("compare", tmp_path / "m.csv", "--time", "t", "--event", "e")
    (tmp_path / "x.xlsx").write_text("", encoding="utf-8")
    with pytest.raises(CenscoreError, match=r"\.csv, \.tsv or \.parquet"):
        run("compare", tmp_path / "x.xlsx", "--time", "t", "--event", "e")


def test_wrong_usage_and_help():
    result = CliRunner().invoke(app, ["compare"])
    assert result.exit_code == 2
    text = CliRunner().invoke(app, ["compare", "--help"], terminal_width=200).output
    assert "cox__sf@365" in text
    assert "censcore compare predictions.parquet" in text


def test_a_covariate_that_resembles_a_forecast_is_none(files, tmp_path):
    frame = pd.read_csv(files / "test.csv").assign(sample_1=0.5, q_1=2.0)
    frame.to_csv(tmp_path / "p.csv", index=False)
    options = ["--time", "days", "--event", "died", "--scores", "crps"]
    assert run("compare", tmp_path / "p.csv", *options) == run("compare", files / "test.csv", *options)
    frame.assign(cox__sf_365=0.5).to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(CenscoreError, match=r"'cox__sf_365' is almost named as a forecast.*cox__sf@365"):
        run("compare", tmp_path / "m.csv", *options)


def test_strata_belong_to_kaplan_meier(files):
    with pytest.raises(CenscoreError, match="--stratify belongs to --censoring kaplan-meier; got 'cox'"):
        run(
            "score", files / "test.csv", "--time", "days", "--event", "died", "--censoring", "cox",
            "--stratify", "sex",
        )  # fmt: skip


def test_losses_as_parquet(files):
    pytest.importorskip("pyarrow")
    out = files / "losses.parquet"
    run("score", files / "test.csv", "--time", "days", "--event", "died", "--out", out)
    assert list(pd.read_parquet(out)) == ["exact__crps", "quantiles__crps", "draws__crps"]


def test_the_value_that_is_no_number_is_named(files, tmp_path):
    frame = pd.read_csv(files / "test.csv")
    frame["days"] = frame["days"].astype(str)
    frame.loc[3, "days"] = "12 months"
    frame.to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(CenscoreError, match="--time days must hold numbers; got '12 months' in entry 3"):
        run("compare", tmp_path / "p.csv", "--time", "days", "--event", "died")


def test_covariates_with_text_and_gaps(files, tmp_path):
    options = ["--time", "days", "--event", "died", "--scores", "crps", "--censoring", "cox"]
    for name, gap in (("test", 3), ("train", 5)):
        frame = pd.read_csv(files / f"{name}.csv")
        frame.loc[::gap, "x"] = np.nan
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    text = run(
        "compare", tmp_path / "test.csv", "--train", tmp_path / "train.csv", *options,
        "--covariates", "x,sex", "--quiet", "--json", tmp_path / "out.json",
    )  # fmt: skip
    assert "text in sex became indicators and missing numbers in x the median" in text
    settings = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["settings"]
    assert settings["censoring distribution"].startswith("CoxRegression")


def grid_file(folder: Path, columns: int, n: int = 3000, **changes: float) -> Path:
    """True curves on a grid, and those of times that are 10 % too short."""
    rng = np.random.default_rng(2)
    scale = np.exp(0.5 * rng.normal(size=n))
    T, C = scale * rng.weibull(1.5, n), rng.uniform(0, 4, n)
    frame = pd.DataFrame({"days": np.minimum(T, C), "died": (T <= C).astype(int)})
    times = np.linspace(0, 4, columns + 1)[1:]
    for name, factor in (("true", 1.0), ("short", 0.9)):
        sf = cs.Weibull(1.5, factor * scale).sf(times[None, :])
        names = [f"{name}__sf@{t:g}" for t in times]
        frame = pd.concat([frame, pd.DataFrame(sf, columns=names)], axis=1)
    for name, change in changes.items():
        frame.loc[0, name.replace("_at_", "__sf@")] += change
    frame.to_csv(folder / "grid.csv", index=False)
    return folder / "grid.csv"


def test_files_are_read_as_comparisons_read_matrices(tmp_path):
    path = grid_file(tmp_path, 40)
    options = [
        "--time",
        "days",
        "--event",
        "died",
        "--scores",
        "crps,brier_score",
        "--json",
        tmp_path / "o.json",
    ]
    text = run("compare", path, *options)
    assert "survival matrix of 40 times: linear between the times" in text
    document = json.loads((tmp_path / "o.json").read_text(encoding="utf-8"))
    assert "linear between the times" in document["settings"]["survival matrices"]["true"]
    assert all(
        line["difference"] < 0 for line in document["differences"] if line["score"] in ("crps", "brier_score")
    )
    assert all(np.isclose(t * 10, round(t * 10)) for t in document["settings"]["times"])
    run("score", path, "--time", "days", "--event", "died", "--out", tmp_path / "losses.csv")
    losses = pd.read_csv(tmp_path / "losses.csv")
    (mean,) = [
        line["mean"] for line in document["means"] if (line["score"], line["model"]) == ("crps", "true")
    ]
    assert losses["true__crps"].mean() == pytest.approx(mean, rel=1e-9)


def test_readings_by_option(tmp_path):
    path = grid_file(tmp_path, 4)
    options = ["--time", "days", "--event", "died", "--scores", "crps"]
    found = {
        how: run("compare", path, *options, *how.split())
        for how in ("", "--interpolation step", "--interpolation linear --tail infinity", "--tail last")
    }
    assert len(set(found.values())) == 4
    assert "too few to tell" in found[""]
    with pytest.raises(CenscoreError, match="interpolation must be one of"):
        run("compare", path, *options, "--interpolation", "cubic")


def test_curves_in_files_are_repaired_on_request(tmp_path):
    path = grid_file(tmp_path, 4, true_at_3=0.3)
    options = ["--time", "days", "--event", "died", "--scores", "crps"]
    with pytest.raises(CenscoreError, match=r"Model 'true': .*at time 2 to .*at time 3 in subject 0"):
        run("compare", path, *options)
    assert "'true': curves of 1 subject (0) were made monotone" in run("compare", path, *options, "--repair")
    noisy = grid_file(tmp_path, 4, true_at_3=1e-9)
    assert "made monotone" not in run("compare", noisy, *options)


def test_weights_and_groups_are_those_of_the_training_file_too(files, tmp_path):
    """As with train=Sample(None, y, weight=, groups=); without the columns it is an error that names them."""
    rng, tables = np.random.default_rng(5), {}
    for name, seed in (("test", 0), ("train", 1)):
        frame = sample(120, seed)
        tables[name] = frame.assign(clinic=np.arange(120) // 4, w=rng.uniform(0.2, 3.0, 120).round(2))
        tables[name].to_csv(tmp_path / f"{name}.csv", index=False)
    y = {name: cs.RightCensored(t.days.to_numpy(), t.died.to_numpy()) for name, t in tables.items()}
    options = ("--time", "days", "--event", "died", "--scores", "crps", "--horizon", "1.5", "--quiet")
    arguments = (*options, "--weights", "w", "--groups", "clinic", "--json", "-")

    def found(*more):
        means = json.loads(run("compare", tmp_path / "test.csv", *arguments, *more))["means"]
        (row,) = [x for x in means if x["score"] == "crps" and x["model"] == "exact"]
        return row["mean"], row["standard_error"]

    test, train = tables["test"], tables["train"]
    F = cs.as_forecast(test[[f"exact__sf@{t:g}" for t in TIMES]].to_numpy(), times=TIMES)
    expected = cs.compare(
        {"exact": F}, y["test"], cs.Censoring(cs.KaplanMeier()), scores="crps", horizon=1.5,
        sample_weight=test.w.to_numpy(), groups=test.clinic.to_numpy(),
        train=cs.Sample(None, y["train"], train.w.to_numpy(), train.clinic.to_numpy()),
    ).frame()  # fmt: skip
    row = expected[(expected.score == "crps") & (expected.model == "exact")].iloc[0]
    assert found("--train", tmp_path / "train.csv") == pytest.approx(
        (row["mean"], row.standard_error), rel=1e-4
    )
    weighted = ("--batch", 50, "--train", tmp_path / "train.csv")
    assert found(*weighted) == pytest.approx(found(*weighted[2:]), rel=1e-11)
    for more in ((), ("--batch", 50)):
        with pytest.raises(CenscoreError, match=r"train.csv: there is no column w, clinic, which --weights"):
            run("compare", tmp_path / "test.csv", *arguments, *more, "--train", files / "train.csv")
