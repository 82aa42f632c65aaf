"""Studies of engression: real data, folds, tables, ablations."""

import numpy as np
import pandas as pd
import pytest

from censcore.exceptions import InvalidInputError
from censcore_studies.engression import ablations
from censcore_studies.real_data import comparison as real_data
from censcore_studies.real_data.data import DATA, load_survival_data

TINY = {"width": 16, "depth": 2, "noise_dim": 8, "epochs": 2, "n_samples": 64}


@pytest.mark.parametrize(
    ("name", "n", "rates"),
    [
        ("colon", 929, [0.545, 0.487]),
        ("retinopathy", 197, [0.513, 0.274]),
        ("rhDNase", 647, [0.376, 0.125, 0.043]),
        ("nafld", 7482, [0.038, 0.109, 0.183, 0.059]),
    ],
)
def test_data_are_built_as_published(survival_data, name, n, rates):
    data = load_survival_data(name, survival_data)
    assert len(data.y) == len(data.X) == n
    np.testing.assert_allclose(data.y.event.mean(axis=0), rates, atol=6e-4)
    assert data.y.shares_censoring
    assert len(data.endpoints) == data.y.k
    assert (data.y.censoring_time is not None) == (name in ("rhDNase", "nafld"))


def test_lymph_node_data():
    data = load_survival_data("lymph node")
    assert data.y.event.sum(axis=0).tolist() == [299, 171]
    assert not data.X.isna().any(axis=None)
    with pytest.raises(InvalidInputError, match="lymph node"):
        load_survival_data("lymphoma")


def test_folds_partition_the_subjects_and_gaps_are_filled_from_training_data():
    folds = [real_data._fold(23, fold, 0) for fold in range(5)]
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(23))
    assert all(not set(train) & set(test) for train, test in folds)
    train = pd.DataFrame({"a": [1.0, np.nan, 3.0, 8.0], "b": [0.0, 1.0, 0.0, 1.0]})
    test = pd.DataFrame({"a": [np.nan, 100.0], "b": [1.0, 0.0]})
    filled = real_data._without_gaps(train, test)[1]
    assert filled.to_numpy().tolist() == [[3.0, 1.0, 1.0], [100.0, 0.0, 0.0]]


@pytest.mark.usefixtures("brief_members")
def test_a_fold_of_real_data():
    cell = {"data": "lymph node", "fold": 0, "repetition": 0, "engression": {"epochs": 1, "n_samples": 32}}
    methods = ["Censored engression", "Independent Kaplan-Meier", "Independent Weibull"]
    results = [
        real_data.score_fold(cell | {"censoring_distribution": name, "methods": methods})
        | {"settings": cell | {"censoring_distribution": name}}
        for name in ("kaplan-meier", "cox")
    ]
    assert all(len(losses) == 138 for losses in results[0]["losses"].values())
    with pytest.raises(InvalidInputError, match="no data called"):
        real_data.real_data_cells(["lymphoma"])


def test_the_summary_pairs_subjects_and_averages_repetitions():
    def part(fold, repetition, rows, own, other):
        settings = {"data": "colon", "censoring_distribution": "cox", "fold": fold, "repetition": repetition}
        losses = {"Censored engression": own, "Independent Weibull": other}
        return {"settings": settings, "rows": rows, "losses": losses}

    results = [
        part(0, 0, [0, 2], [1.0, 2.0], [1.5, 2.0]),
        part(1, 0, [1, 3], [1.0, 4.0], [1.0, 4.5]),
        part(0, 1, [0, 1], [3.0, 1.0], [3.5, 1.0]),
        part(1, 1, [2, 3], [2.0, 4.0], [2.0, 5.5]),
    ]
    row = real_data.summarise(results).set_index("method").loc["Independent Weibull"]
    own, other = np.array([2.0, 1.0, 2.0, 4.0]), np.array([2.5, 1.0, 2.0, 5.0])
    gap = (other - own) / own.mean()
    assert row["energy score"] == pytest.approx(other.mean())
    assert row["behind %"] == pytest.approx(100 * gap.mean())
    assert row["error %"] == pytest.approx(100 * gap.std(ddof=1) / 2)
    assert row["folds"] == "4/4"
    view = real_data.report_real_data(real_data.summarise(results)).view
    assert view.iloc[0].to_dict()["Independent Weibull"].startswith("+16.7 ±")


def test_cells_of_real_data_know_where_c_is_known():
    cells = real_data.real_data_cells()
    blocks = {(cell.settings["data"], cell.settings["censoring_distribution"]) for cell in cells}
    assert blocks == {
        (d, w) for d in DATA for w in ("kaplan-meier", "cox") if d not in ("rhDNase", "nafld")
    } | {
        ("rhDNase", "known"),
        ("nafld", "known"),
    }
    assert len(cells) == 5 * len(blocks)


def test_ablations(monkeypatch):
    monkeypatch.setitem(ablations.VARIANTS, "default", TINY)
    monkeypatch.setitem(ablations.VARIANTS, "naive", TINY | {"objective": "naive"})
    small = {"n_train": 300, "n_valid": 100, "n_test": 200, "members": 64}
    table = ablations.run_ablations(
        variants=["default", "naive"], repetitions=2, settings=small, progress=False
    )
    assert table["variant"].tolist() == ["default", "naive"]
    assert table["repetitions"].tolist() == [2, 2]
    assert (table["excess %"] > 0).all()
    assert "±" in ablations.report_ablations(table).view.iloc[0, 1]
    with pytest.raises(InvalidInputError, match="no variant"):
        ablations.ablation_cells(["best"])


def test_data_are_looked_for_where_the_user_says_and_nowhere_else(monkeypatch, tmp_path, survival_data):
    monkeypatch.delenv("CENSCORE_DATA")
    with pytest.raises(InvalidInputError, match=r"CENSCORE_DATA: got None, expected a folder that holds"):
        load_survival_data("colon")
    monkeypatch.setenv("CENSCORE_DATA", str(tmp_path))
    with pytest.raises(InvalidInputError, match="CENSCORE_DATA: got"):
        load_survival_data("colon")
    named = load_survival_data("colon", survival_data)
    monkeypatch.setenv("CENSCORE_DATA", str(survival_data.parent))
    assert load_survival_data("colon").fingerprint == named.fingerprint
    assert load_survival_data("retinopathy").fingerprint != named.fingerprint
