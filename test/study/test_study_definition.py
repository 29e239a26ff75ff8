# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Studies as TOML, JSON and pairs of configurations."""

import hashlib
import json

import numpy as np
import pytest
from robots import URDF

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError
from dls_ik.study.definition import CASES, read_study, study_of
from dls_ik.study.pairs import study_pairs, write_pairs

TEXT = """
robots = ["wam", {file = "arm.urdf", name = "mine"}]
methods = ["auto", {method = "dls", lambda_ = [0.1, 0.2]}, {method = "sd", label = "mild", mu = 1}]
cases = ["near", "far"]
pairs = 7
reference = "auto"
[options]
max_iterations = 50
"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "arm.urdf").write_text((URDF / "planar_2r.urdf").read_text())
    (tmp_path / "study.toml").write_text(TEXT)
    return tmp_path / "study.toml"


def test_lists_of_option_values_become_methods_with_labels(file):
    study = read_study(file)
    labels = [variant.label for variant in study.variants]
    assert labels == ["auto", "dls lambda_=0.1", "dls lambda_=0.2", "mild"]
    assert dict(study.variants[1].options) == {"max_iterations": 50, "lambda_": 0.1}
    assert [robot.name for robot in study.robots] == ["wam", "mine"]
    assert study.robots[1].source == str(file.parent / "arm.urdf")
    assert (study.pairs, study.seed, study.cases) == (7, 0, ("near", "far"))


def test_json_of_a_study_is_the_same_study(file):
    study = read_study(file)
    again = study_of(json.loads(json.dumps(study.as_json())))
    assert again == study


def test_robot_that_has_changed_is_refused(file):
    study = read_study(file)
    about = {"study": study.as_json(), "kinematics_sha256": study.digests()}
    path = file.with_suffix(".json")
    path.write_text(json.dumps(about))
    assert read_study(path) == study
    about["kinematics_sha256"]["mine"] = "0" * 64
    path.write_text(json.dumps(about))
    with pytest.raises(DlsIkError, match="'mine' has other kinematics"):
        read_study(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"robots": []}, "robots of a study must be a list with at least one"),
        ({"robots": ["wam", "wam"]}, "'wam' is given twice"),
        ({"robots": [{"name": "x"}]}, "a table with file"),
        ({"robots": ["wan"]}, "did you mean wam"),
        ({"methods": ["autoo"]}, "did you mean auto"),
        ({"methods": [{"method": "jd", "lambda": 0.1}]}, "did you mean lambda_"),
        ({"methods": [{"method": "jd", "lambda_": []}]}, "empty list"),
        ({"methods": [3]}, "a method of a study must be a name"),
        ({"cases": ["fat"]}, "did you mean far"),
        ({"metrics": ["speed"]}, "unknown metrics 'speed'; known are time"),
        ({"pairs": 0}, "pairs must be an integer from 1"),
        ({"seed": 1.5}, "seed must be an integer from 0"),
        ({"reference": "jp"}, r"one of the methods \(auto\)"),
        ({"task": "pose6"}, "did you mean pose"),
        ({"robot": "wam"}, "did you mean robots"),
    ],
)
def test_refusals_name_the_entry(change, said):
    with pytest.raises(DlsIkError, match=said):
        study_of({"robots": ["wam"], "methods": ["auto"], **change})


@pytest.mark.parametrize("text", ["robots = [", "[1]", ""])
def test_file_that_is_no_study_is_refused(tmp_path, text):
    (tmp_path / "a.toml").write_text(text)
    with pytest.raises(DlsIkError):
        read_study(tmp_path / "a.toml")


@pytest.mark.parametrize("case", CASES)
def test_first_pairs_do_not_depend_on_the_count_and_are_within_the_limits(case):
    robot = RobotModel.wam()
    few, many = (study_pairs(robot, case, count, seed=3) for count in (4, 9))
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a, b[:4])
        assert robot.within_limits(b).all()
    assert not np.array_equal(few.starts, study_pairs(robot, case, 4, seed=4).starts)


def test_cases_are_what_they_say():
    robot = RobotModel.wam()
    pairs = {case: study_pairs(robot, case, 60) for case in CASES}
    ends = (pairs["limits"].goals == robot.lower) | (pairs["limits"].goals == robot.upper)
    assert 0.4 < ends.mean() < 0.6
    for case in ("near", "singular"):
        away = pairs[case].starts - pairs[case].goals
        assert 0.1 < np.std(away) < 0.21
    smallest = {
        case: np.linalg.svd(robot.jacobian(each.goals), compute_uv=False)[:, -1]
        for case, each in pairs.items()
    }
    assert np.median(smallest["singular"]) < 0.1 * np.median(smallest["far"])


def test_files_of_pairs_have_their_checksums(tmp_path, file):
    study = read_study(file)
    sums = write_pairs(study, tmp_path / "pairs")
    assert (tmp_path / "pairs" / "SHA256SUMS").read_text() == sums
    for line in sums.splitlines():
        digest, name = line.split("  ")
        content = (tmp_path / "pairs" / name).read_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
    table = np.loadtxt(tmp_path / "pairs" / "wam_far.csv", delimiter=",", skiprows=1)
    starts, goals = study_pairs(RobotModel.wam(), "far", 7)
    np.testing.assert_array_equal(table, np.concatenate([starts, goals], axis=1))
