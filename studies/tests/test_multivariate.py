"""The multivariate study: cells are pure, methods see the same subjects, tables add up."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from censcore.exceptions import InvalidInputError
from censcore.simulation import LogNormalScenario
from censcore.store import write_record
from censcore_studies import multivariate as study
from censcore_studies.multivariate import tables
from censcore_studies.multivariate.calibration import JOINT_EVENTS
from censcore_studies.multivariate.extensions import draw_extension, report_extension
from censcore_studies.multivariate.looks import COLOURS
from censcore_studies.multivariate.printed import PRINTED
from censcore_studies.multivariate.reliability import report_calibration
from censcore_studies.multivariate.study import DEFAULTS, EARLIER_NAMES, STUDY, as_frame, tag_of
from censcore_studies.multivariate.tables import report_tables

SMALL = {"n_train": 120, "n_valid": 40, "n_test": 60, "members": 40}
BLOCK = {"scenario": "mixture", "k": 2, "censoring": "uniform", "repetition": 0}


def cell(method: str, **more) -> dict:
    return study.score_cell(BLOCK | SMALL | {"method": method} | more)


def without_times(result: dict) -> dict:
    return {name: value for name, value in result.items() if "seconds" not in name}


def test_a_cell_is_a_pure_function_of_its_settings():
    first = cell("Independent Weibull")
    np.random.seed(99)  # noqa: NPY002
    np.random.random(17)  # noqa: NPY002
    assert without_times(cell("Independent Weibull")) == without_times(first)
    other = cell("Independent Weibull", repetition=1)
    assert other["censored"] != first["censored"]


def test_all_methods_are_scored_on_the_same_subjects():
    truth, model = cell("DGP"), cell("Clayton-Weibull")
    for score in ("censored", "latent"):
        assert model[f"{score}_truth"] == truth[score] == truth[f"{score}_truth"]
        assert model[f"{score}_excess"] == pytest.approx(model[score] - truth[score], abs=1e-6)
    assert truth["censored_excess"] == 0.0


def test_censoring_leaves_the_latent_times_alone():
    found = [cell("DGP", censoring=kind)["latent"] for kind in ("uniform", "administrative", "componentwise")]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("method", ["Censored engression", "Naive observed engression", "Latent engression"])
def test_engression_runs_as_a_method(method, monkeypatch):
    from censcore.learning.engression import CensoredEngression

    quick = CensoredEngression.__init__.__kwdefaults__ | {"epochs": 2}
    monkeypatch.setattr(CensoredEngression.__init__, "__kwdefaults__", quick)
    result = cell(method, k=3)
    assert result["epochs"] == 2
    assert result["censored"] > 0


@pytest.mark.parametrize("name", ["kaplan-meier", "cox"])
def test_the_censoring_distribution_may_be_estimated_in_training(name, monkeypatch):
    from censcore.learning.engression import CensoredEngression

    quick = CensoredEngression.__init__.__kwdefaults__ | {"epochs": 1}
    monkeypatch.setattr(CensoredEngression.__init__, "__kwdefaults__", quick)
    estimated = cell("Censored engression", censoring_distribution=name, censoring="conditional")
    assert estimated["censored"] != cell("Censored engression", censoring="conditional")["censored"]


def test_cells_of_the_tables():
    cells = study.multivariate_cells()
    # ten methods at k = 2 in two scenarios, eight at k = 3, 5, 10; three kinds of censoring, five repetitions
    assert len(cells) == (2 * 10 + 3 * 8) * 3 * 5
    assert len({c.key for c in cells}) == len(cells)
    assert {c.settings["k"] for c in cells if c.settings["scenario"] == "lognormal"} == {2}
    assert len(study.multivariate_cells([3], ["lognormal"], repetitions=1)) == 8 * 3
    assert study.multivariate_cells([3], methods=["Gumbel-Weibull"]) == []


def test_printed_tables_have_the_rows_of_the_methods():
    assert len(PRINTED) == 15
    for (_, k, _), block in PRINTED.items():
        assert list(block) == study.methods_for(k)


def test_an_extension_at_the_usual_settings_is_a_cell_of_the_tables():
    usual = {c.key for c in study.multivariate_cells([3], ["mixture"], repetitions=2)}
    cells = study.extension_cells("training-size", 2)
    assert sum(c.key in usual for c in cells) == 3 * 2
    assert {c.settings.get("n_train", 4000) for c in cells} == {1000, 4000, 16_000, 64_000}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cell("Magic"), "method must be one of"),
        (
            lambda: cell("Censored engression", censoring_distribution="guess"),
            "must be 'true' or",
        ),
        (lambda: study.extension_cells("depth"), "extension must be one of"),
        (lambda: study.multivariate_cells(scenarios=["flat"]), "scenario must be one of .*'flat'"),
        (lambda: study.multivariate_cells(censorings=["none"]), "censoring must be one of .*'none'"),
        (lambda: study.multivariate_cells(methods=["DGP", "Magic"]), "method must be one of .*'Magic'"),
    ],
)
def test_unknown_names_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def made_up(method: str, repetition: int, score: float, truth: float = 1.0, **more) -> dict:
    """A finished cell with given numbers."""
    return {
        "settings": {**BLOCK, "censoring": "uniform", "method": method, "repetition": repetition, **more},
        "seconds": 3.0,
        "fit_seconds": 2.0,
        "epochs": 1,
        "event_rate": 0.5,
        "censored": score,
        "censored_truth": truth,
        "censored_excess": score - truth,
        "censored_excess_se": 0.1,
        "latent": 2 * score,
        "latent_truth": 2 * truth,
        "latent_excess": 2 * (score - truth),
        "latent_excess_se": 0.1,
    }


def test_summary_by_hand():
    ours = [made_up("Censored engression", 0, 1.02), made_up("Censored engression", 1, 2.08, 2.0)]
    cells = as_frame([made_up("DGP", 0, 1.0), made_up("DGP", 1, 2.0, 2.0), *ours])
    line = study.summarise(cells).set_index("method").loc["Censored engression"]
    assert line["censored"] == pytest.approx(1.55)
    assert line["censored se"] == pytest.approx(abs(2.08 - 1.02) / 2)
    assert line["censored excess %"] == pytest.approx((2.0 + 4.0) / 2)
    assert line["censored excess se"] == pytest.approx(1.0)
    assert line["printed excess %"] == pytest.approx(100 * (0.4904 / 0.4840 - 1))
    assert line["z"] == pytest.approx((line["printed excess %"] - 3.0) / np.sqrt(2))
    assert line["repetitions"] == 2


def test_paired_differences_by_hand():
    cells = as_frame(
        [made_up("Censored engression", r, score) for r, score in enumerate((1.0, 1.1, 1.2))]
        + [made_up("Clayton-Weibull", r, score) for r, score in enumerate((1.1, 1.3, 1.3))]
        + [made_up("Latent engression", 0, 0.9)]
    )
    paired = study.paired_differences(cells)
    assert list(paired["versus"]) == ["Clayton-Weibull"]  # the latent one is not feasible
    line = paired.iloc[0]
    assert line["difference %"] == pytest.approx(-100 * (0.1 + 0.2 + 0.1) / 3)
    half = 4.302653 * np.std([10, 20, 10], ddof=1) / np.sqrt(3)
    assert line["high"] - line["difference %"] == pytest.approx(half, rel=1e-6)


def write_cells(folder, results) -> None:
    for i, result in enumerate(results):
        fixed = {"study": tag_of(result["settings"]["method"]), **DEFAULTS}
        write_record(folder / "cells" / f"{i}.json", str(i), {"fixed": fixed, **result})


def test_cells_are_gathered_from_files_and_a_table_without_doubles(tmp_path):
    results = [made_up("DGP", 0, 1.0), made_up("Censored engression", 0, 1.1)]
    write_cells(tmp_path, results)
    as_frame([made_up("DGP", 0, 1.0, device="cuda"), made_up("DGP", 1, 1.0)]).to_csv(tmp_path / "cells.csv")
    cells = study.read_cells(tmp_path)
    assert list(zip(cells["method"], cells["repetition"], strict=True)) == [
        ("DGP", 0),
        ("DGP", 1),
        ("Censored engression", 0),
    ]
    assert cells["censoring_distribution"].eq("true").all()
    assert study.read_cells(tmp_path / "nothing").empty


@pytest.mark.parametrize("name", ["n_test", "n_valid", "members", "draws", "clip"])
def test_cells_of_another_size_are_other_cells(tmp_path, name, monkeypatch):
    small = DEFAULTS[name] / 2
    assert study.multivariate_cells([2], **{name: small})[0].key != study.multivariate_cells([2])[0].key
    write_cells(tmp_path, [made_up("DGP", 0, 7.0, **{name: small}), made_up("DGP", 0, 1.0)])
    assert list(report_tables(tmp_path)[0].rows["censored"]) == [1.0]
    usual = study.multivariate_cells([2])[0].key
    monkeypatch.setitem(DEFAULTS, name, small)
    assert study.multivariate_cells([2])[0].key != usual
    assert list(report_tables(tmp_path)[0].rows["censored"]) == [7.0]


def test_cells_with_the_first_names_of_the_settings_are_read(tmp_path):
    earlier = {now: name for name, now in EARLIER_NAMES.items()}
    first = made_up("DGP", 0, 1.0)
    fixed = {"study": STUDY, **DEFAULTS}
    old = {
        **first,
        "fixed": {earlier.get(name, name): value for name, value in fixed.items()},
        "settings": {earlier.get(name, name): value for name, value in first["settings"].items()},
    }
    write_record(tmp_path / "cells" / "old.json", "old", old)
    table = as_frame([made_up("DGP", 1, 2.0)]).rename(columns=earlier)
    assert set(EARLIER_NAMES) < set(table)
    table.to_csv(tmp_path / "cells.csv", index=False)
    assert list(report_tables(tmp_path)[0].rows["censored"]) == [1.5]


def test_results_of_an_earlier_version_are_not_shown(tmp_path):
    write_cells(tmp_path, [made_up("DGP", 0, 1.0)])
    old = {"fixed": {"study": "multivariate 0", **DEFAULTS}, **made_up("DGP", 1, 5.0)}
    write_record(tmp_path / "cells" / "old.json", "old", old)
    as_frame([old]).to_csv(tmp_path / "cells.csv")
    assert list(study.read_cells(tmp_path)["censored"]) == [1.0]


def test_linear_models_that_had_not_converged_are_not_shown(tmp_path):
    """Their cells have a newer tag than those of the other methods, in files and in the table."""
    write_cells(tmp_path, [made_up("Clayton-Weibull", 0, 1.0), made_up("DGP", 0, 0.5)])
    first = {"study": STUDY, **DEFAULTS}
    old = [{"fixed": first, **made_up(name, 1, 5.0)} for name in ("Clayton-Weibull", "DGP")]
    for i, result in enumerate(old):
        write_record(tmp_path / "cells" / f"old-{i}.json", f"old-{i}", result)
    as_frame([made_up("Independent Weibull", 2, 6.0), made_up("DGP", 2, 6.0)]).to_csv(tmp_path / "cells.csv")
    found = study.read_cells(tmp_path)
    assert sorted(zip(found["method"], found["censored"], strict=True)) == [
        ("Clayton-Weibull", 1.0),
        ("DGP", 0.5),
        ("DGP", 5.0),
        ("DGP", 6.0),
    ]
    tags = {cell.settings["method"]: cell.fixed["study"] for cell in study.multivariate_cells([2])}
    assert {name for name, tag in tags.items() if tag != STUDY} == {
        "Independent Weibull",
        "Clayton-Weibull",
        "Gumbel-Weibull",
    }


def test_a_result_goes_before_a_row_of_the_table(tmp_path):
    write_cells(tmp_path, [made_up("DGP", 0, 1.0)])
    as_frame([made_up("DGP", 0, 5.0)]).drop(columns="study").to_csv(tmp_path / "cells.csv")
    assert list(study.read_cells(tmp_path)["censored"]) == [1.0]


def test_report_writes_tables_and_pictures(tmp_path):
    methods = ("DGP", "Censored engression", "Clayton-Weibull")
    results = [
        made_up(method, r, 1.0 + 0.1 * i + 0.01 * r * i, k=k)
        for i, method in enumerate(methods)
        for r in range(2)
        for k in (2, 3)
    ]
    write_cells(tmp_path, results)
    reports = report_tables(tmp_path)
    assert [report.name for report in reports] == ["mixture_k2", "mixture_k3", "paired"]
    for name in ("excess.png", "dimension.png", "cells.csv"):
        assert (tmp_path / name).stat().st_size > 0
    again = report_tables(tmp_path)
    pd.testing.assert_frame_equal(again[0].rows, reports[0].rows)


@pytest.mark.parametrize(
    ("results", "pictures"),
    [
        ([made_up("DGP", 0, 1.0)], []),
        ([made_up("Censored engression", 0, 1.0, scenario="lognormal")], ["excess.png"]),
        ([made_up("Censored engression", 0, 1.0, censoring="componentwise")], ["excess.png"]),
        (
            [
                made_up("Censored engression", 0, 1.0, censoring=kind, k=k)
                for k, kind in ((2, "uniform"), (3, "componentwise"))
            ],
            ["dimension.png", "excess.png"],
        ),
    ],
)
def test_a_report_of_any_part_of_the_study(tmp_path, results, pictures):
    write_cells(tmp_path, results)
    reports = report_tables(tmp_path)
    assert len(reports) == len({(r["settings"]["scenario"], r["settings"]["k"]) for r in results})
    assert sorted(path.name for path in tmp_path.glob("*.png")) == pictures


def test_names_of_another_version_do_not_hide_the_rest(tmp_path):
    write_cells(tmp_path, [made_up("A method of old", 0, 1.0), made_up("DGP", 0, 1.0)])
    assert list(study.read_cells(tmp_path)["method"]) == ["DGP", "A method of old"]
    assert list(report_tables(tmp_path)[0].rows["method"]) == ["DGP"]


def test_report_without_cells_says_so(tmp_path):
    with pytest.raises(InvalidInputError, match="no finished cells"):
        report_tables(tmp_path)


def test_settings_that_are_names_are_drawn_as_bars():
    names = ["true", "cox", "kaplan-meier"]
    summary = pd.DataFrame({"censoring_distribution": names, "censored excess %": [1.0, 2.0, 3.0]})
    summary = summary.assign(method=next(iter(COLOURS)), **{"censored excess se": 0.1})
    figure = draw_extension.__wrapped__(summary, "censoring_distribution", "distribution")
    (axes,) = figure.axes
    shown = [label.get_text() for label in axes.get_yticklabels()]
    assert shown == ["true distribution", "Cox, given x", "Kaplan-Meier, pooled"]


def test_extension_tables_take_one_setting_at_a_time(tmp_path):
    results = [
        made_up("Censored engression", 0, 1.0 + 0.1 * i, k=3, n_train=n) for i, n in enumerate((1000, 4000))
    ]
    results.append(made_up("Censored engression", 0, 9.0, k=3, n_train=1000, severity=2.0))
    write_cells(tmp_path, results)
    report = report_extension(tmp_path, "training-size")
    assert list(report.rows["n_train"]) == [1000, 4000]
    assert list(report.rows["censored"]) == pytest.approx([1.0, 1.1])
    assert (tmp_path / "extension_training-size.png").exists()
    assert report_calibration(tmp_path) is None


def test_the_truth_is_calibrated_and_a_forecast_without_dependence_is_not():
    scenario = LogNormalScenario(2, censoring="none")
    X = scenario.sample(800, 0).X
    F = scenario.event_distribution(X)
    truth, same, happened = F.sample(300, 1), F.sample(300, 2), F.sample(1, 3)[:, 0]
    right = study.joint_calibration(same, truth, happened)
    assert set(right) == set(JOINT_EVENTS)
    for event in right.values():
        assert event["rmse"] < 0.02
        assert abs(event["bias"]) < 0.01
        assert sum(event["rows"]) == 800
    shuffled = np.random.default_rng(4).permuted(same, axis=1)  # each coordinate of each row on its own
    wrong = study.joint_calibration(shuffled, truth, happened)
    assert wrong["one but not all by 1.5"]["bias"] > 0.05


def test_calibration_is_part_of_a_cell():
    result = cell("DGP")
    assert all(event["rmse"] == 0.0 for event in result["calibration"].values())
    assert "calibration" not in as_frame([result | {"settings": BLOCK | {"method": "DGP"}}])


def test_views_hold_text_only():
    cells = as_frame([made_up("DGP", r, 1.0) for r in range(2)])
    view = tables.block_view(study.summarise(cells))
    assert all(isinstance(value, str) for value in view.to_numpy().ravel())
