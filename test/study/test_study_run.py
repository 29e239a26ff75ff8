# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik study``: runs, interruption, folders, tables, pictures."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_runner import document, refusal
from cli_runner import run as dls_ik

from dls_ik import IkSolver, RobotModel
from dls_ik.errors import DlsIkError
from dls_ik.study.definition import read_study, study_of
from dls_ik.study.pairs import study_pairs
from dls_ik.study.run import load_results, run_study

pytest.importorskip("scipy", reason="scipy is not installed")

ENTRIES = {"robots": ["wam"], "methods": ["auto", "jd"], "cases": ["far", "near"], "pairs": 60}
STUDY = study_of(ENTRIES)


class StopError(Exception):
    pass


def without_times(results):
    return {name: values for name, values in results.columns.items() if name != "time"}


def assert_same(one, other):
    for name, values in without_times(one).items():
        np.testing.assert_array_equal(values, other.columns[name], err_msg=name)


@pytest.fixture(scope="module")
def results():
    return run_study(STUDY)


def test_figures_are_those_of_the_solver(results):
    robot = RobotModel.wam()
    starts, goals = study_pairs(robot, "near", 60)
    solver = IkSolver(robot, "jd")
    expected = [solver.solve(T, q) for T, q in zip(robot.fk(goals), starts, strict=True)]
    found = {name: results.of(name, 0, 1)[1] for name in results.columns}
    np.testing.assert_array_equal(found["solved"], [each.success for each in expected])
    np.testing.assert_array_equal(found["iterations"], [each.iterations for each in expected])
    np.testing.assert_allclose(
        found["distance"],
        [np.linalg.norm(e.q - q) for e, q in zip(expected, starts, strict=True)],
    )
    assert (found["time"] > 0.0).all()
    assert results.of("solved", 0, 0)[0].all()  # auto


def test_interrupted_study_is_continued_to_the_same_results(results, tmp_path):
    def stop(done, total):
        if done == 3:
            raise StopError

    with pytest.raises(StopError):
        run_study(STUDY, tmp_path / "out", progress=stop)
    assert (tmp_path / "out" / "results.npz.parts").is_dir()
    with pytest.raises(DlsIkError, match="unfinished study with other settings"):
        run_study(study_of({**ENTRIES, "seed": 1}), tmp_path / "out")
    seen = []
    done = run_study(STUDY, tmp_path / "out", progress=lambda done, total: seen.append(done))
    assert seen[0] >= 3
    assert_same(done, results)
    kept = {path.name for path in (tmp_path / "out").iterdir()}
    assert kept == {"study.json", "results.npz", "results.csv", "summary.csv", "comparisons.csv"}
    assert_same(load_results(tmp_path / "out"), results)
    again = run_study(STUDY, tmp_path / "out", progress=lambda *_: pytest.fail("it worked again"))
    np.testing.assert_array_equal(again.columns["time"], done.columns["time"])
    with pytest.raises(DlsIkError, match="holds another study"):
        run_study(study_of({**ENTRIES, "seed": 1}), tmp_path / "out")
    rerun = run_study(read_study(tmp_path / "out" / "study.json"), tmp_path / "second")
    assert_same(rerun, results)
    with (tmp_path / "out" / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 60 * 2
    assert {row["method"] for row in rows} == {"auto", "jd"}


def test_damaged_folder_is_refused(tmp_path):
    (tmp_path / "results.npz").write_bytes(b"PK torn")
    with pytest.raises(DlsIkError, match="holds no complete study"):
        run_study(STUDY, tmp_path)


def test_parquet_has_the_same_table_as_csv(results, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    results.write(tmp_path / "r.parquet")
    results.write(tmp_path / "r.csv")
    table = parquet.read_table(tmp_path / "r.parquet").to_pydict()
    with (tmp_path / "r.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert list(table) == list(rows[0])
    assert [float(row["time"]) for row in rows] == table["time"]
    assert [row["case"] for row in rows] == table["case"]


def test_method_that_supports_one_robot_has_rows_for_this_robot_only():
    entries = {"robots": ["wam", "puma560"], "methods": ["auto", "ta"], "pairs": 2}
    found = run_study(study_of(entries)).rows()
    there = set(zip(found["robot"], found["method"], strict=True))
    assert there == {("wam", "auto"), ("wam", "ta"), ("puma560", "auto")}
    with pytest.raises(DlsIkError, match="ta supports none of the robots"):
        run_study(study_of({**entries, "robots": ["puma560"]}))


# Command


def test_command_prints_tables_and_json(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")  # wide enough for one row per method
    words = ("study", "wam", "--method", "auto,jd", "--pairs", 20, "--case", "far,near")
    lines = [line.split() for line in dls_ik(*words).stdout.splitlines()]
    assert ["wam,", "far:", "20", "pairs,", "seed", "0"] in lines
    assert any(row[:3] == ["auto", "100.0", "%"] for row in lines), lines
    found = document(*words)
    assert found["study"]["pairs"] == 20
    assert [each["method"] for each in found["summary"]] == ["auto", "jd"] * 2
    assert found["comparisons"][0]["better"] == "auto"


def test_command_writes_pictures_and_a_decision_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- decisions of dls-ik study -->\n<!-- end of decisions -->\nafter\n"
    )
    words = ("study", "wam", "puma560", "--pairs", 4, "--method", "auto,jd", "--pictures")
    dls_ik(*words, "--out", tmp_path / "out", "--decisions", page)
    names = {path.name for path in (tmp_path / "out").glob("*.png")}
    assert names == {"share_against_time.png", "by_robot.png", "by_metric.png"}
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "| far: start and goal anywhere within the joint limits | `auto`, 100.0 % |" in text
    page.write_text("no place")
    assert "add the lines" in refusal(*words[:-1], "--decisions", page)


def test_options_change_the_entries_of_a_file(tmp_path):
    (tmp_path / "s.toml").write_text('robots = ["wam"]\nmethods = ["jd"]\npairs = 9\n')
    found = document("study", tmp_path / "s.toml", "--pairs", 2, "--method", "auto")
    assert (found["study"]["pairs"], len(found["summary"])) == (2, 1)


def test_pairs_are_written_without_a_run(tmp_path):
    said = dls_ik("study", "wam", "--pairs", 3, "--write-pairs", tmp_path / "p").stdout
    assert said == (tmp_path / "p" / "SHA256SUMS").read_text()
    assert len((tmp_path / "p" / "wam_far.csv").read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.toml", "wam"], "either one file of a study, or robots"),
        (["wam", "--pictures"], "--pictures needs --out"),
        (["wam", "puma560", "--tip", "x"], "need one robot"),
        (["nothere.toml"], "cannot read the study"),
        (["wam", "--method", "jdd"], "did you mean"),
        (["wam", "--out", "no/folder"], "cannot write"),
    ],
)
def test_refusals_of_the_command(words, said):
    assert said in refusal("study", *words)


def test_checksums_of_the_frozen_pairs(tmp_path):
    """The first checksums of the committed list; the command of its page makes all."""
    folder = Path(__file__).resolve().parents[2] / "docs" / "lab" / "ten_arms"
    study = read_study(folder / "ten_arms.toml")
    one = study_of({**study.as_json(), "robots": [{"file": "wam"}], "cases": ["far", "near"]})
    sums = (folder / "SHA256SUMS").read_text()
    words = ("study", "wam", "--case", "far,near", "--pairs", 1000, "--seed", one.seed)
    for line in dls_ik(*words, "--write-pairs", tmp_path).stdout.splitlines():
        assert line in sums
    assert len(sums.splitlines()) == 40
    assert json.dumps(one.as_json())
