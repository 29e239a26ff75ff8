# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik doctor``: its findings, none of which stops it."""

import json
import mmap
import os
import re
import stat
import sys

import pytest
from programs import run_command
from robots import URDF

from dls_ik.cli import doctor_checks
from dls_ik.cli.doctor import check_robot, run_checks
from dls_ik.cli.doctor_checks import (
    CHECK_BROKEN,
    CHECK_MISSING,
    CHECK_OK,
    Check,
    checks,
    run_check,
)
from dls_ik.shared_kernels import others_can_write

EVERYBODY = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO


def results(*names, tell=lambda name: None, **settings):
    """Return state and words of each check."""
    checks = [Check("", name, "", **settings) for name in names]
    return {finding.name: (finding.state, finding.words) for finding in run_checks(checks, tell)}


def test_crashing_and_failing_modules_are_reported_as_broken(tmp_path, monkeypatch):
    modules = {
        "dies": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
        "leaves": "import os, sys; print('last words', file=sys.stderr); os._exit(7)",
        "raises": "raise RuntimeError('two\\nlines')",
        "exits": "raise SystemExit(3)",
        "lacks": "import nowhere_to_be_found",
        "prints": "print('noise'); __version__ = '1.2'",
    }
    for name, code in modules.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    seen = []
    found = results(*modules, "nowhere_to_be_found", "json", tell=seen.append)
    assert found["dies"] == (CHECK_BROKEN, "the check ended its process with SIGSEGV")
    assert found["leaves"] == (CHECK_BROKEN, "the check ended its process with code 7: last words")
    assert found["raises"] == (CHECK_BROKEN, "RuntimeError: two lines")
    assert found["exits"] == (CHECK_BROKEN, "SystemExit: 3")
    assert found["lacks"] == (CHECK_BROKEN, "No module named 'nowhere_to_be_found'")
    assert found["prints"] == (CHECK_OK, "1.2")
    assert found["nowhere_to_be_found"] == (CHECK_MISSING, "not installed")
    assert found["json"][0] == CHECK_OK
    assert list(dict.fromkeys(seen)) == list(found)


def test_hanging_check_times_out_and_is_broken(tmp_path, monkeypatch):
    (tmp_path / "hangs.py").write_text("import time; time.sleep(1000)")
    monkeypatch.syspath_prepend(tmp_path)
    assert results("hangs", timeout=1.0) == {"hangs": (CHECK_BROKEN, "no result within 1 s")}


def test_ports_that_killed_nodes_left_are_told_from_those_in_use(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor_checks, "SHARED", tmp_path)
    for name in ("fastdds_port7411", "fastrtps_port7413", "fastdds_port7411_el", "fastdds_1a2b"):
        (tmp_path / name).write_bytes(bytes(4096))
    assert doctor_checks.abandoned_ports() == ["fastdds_port7411", "fastrtps_port7413"]
    with (tmp_path / "fastdds_port7411").open("r+b") as file, mmap.mmap(file.fileno(), 0):
        assert doctor_checks.abandoned_ports() == ["fastrtps_port7413"]
        state, words = run_check("shared memory")
    assert state == CHECK_OK
    assert "1 ports of killed nodes" in words


def test_solve_follow_and_collisions_checks_are_ok():
    found = results("solve", "follow", "collisions")
    assert {state for state, _ in found.values()} == {CHECK_OK}, found


def test_parts_of_extras_that_are_not_installed_are_missing_and_not_broken(tmp_path, monkeypatch):
    parts = {"coal": "collisions", "matplotlib": "pictures", "PyKDL": "PyKDL's methods"}
    names = [*parts, *parts.values()]
    code = f"import sys\nsys.modules.update(dict.fromkeys({[*parts]}))"
    (tmp_path / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, sys.path)]))
    found = results(*names)
    assert [found[name] for name in parts] == [(CHECK_MISSING, "not installed")] * 3
    assert [found[part] for part in parts.values()] == [
        (CHECK_MISSING, f"needs {p}") for p in parts
    ]


def test_doctor_runs_without_numpy_and_rich_and_reports_them(tmp_path):
    for name in ("numpy", "rich"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('no luck')")
    ended = run_command(
        "doctor", PYTHONPATH=os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    )
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr == ""
    assert "Needed: numpy: broken: ImportError: no luck: pip install numpy" in ended.stdout
    assert "to fix: numpy" in ended.stdout.splitlines()[-1]


@pytest.mark.parametrize(
    ("variable", "value", "name", "state"),
    [
        ("ROS_DOMAIN_ID", "42", "domain", CHECK_OK),
        ("ROS_DOMAIN_ID", "233", "domain", CHECK_BROKEN),
        ("ROS_DOMAIN_ID", "-1", "domain", CHECK_BROKEN),
        ("ROS_DOMAIN_ID", "x" * 1000, "domain", CHECK_BROKEN),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST", "discovery range", CHECK_OK),
        ("ROS_AUTOMATIC_DISCOVERY_RANGE", "EVERYWHERE", "discovery range", CHECK_BROKEN),
    ],
)
def test_invalid_ros_environment_variables_are_broken(monkeypatch, variable, value, name, state):
    monkeypatch.setenv(variable, value)
    (check,) = (each for each in checks() if each.name == name)
    finding = check.finding(*run_check(name))
    assert finding.state == state
    assert (finding.mend == "") == (state == CHECK_OK)
    assert len(finding.words) < 100


def robot_findings(robot):
    found = check_robot(str(robot), lambda name: None)
    return {finding.name: finding for finding in found}


def test_a_robot_without_collision_geometry_is_reported_with_the_remedy(tmp_path):
    for name in ("y_shape.urdf", "double_y.urdf"):
        found = robot_findings(URDF / name)
        assert found["description"].state == CHECK_OK
        words = found["collision geometry"].words
        assert found["collision geometry"].state == CHECK_MISSING
        assert "no link has <collision> geometry: collisions of the arm cannot be checked" in words
        assert "add a <collision> element" in found["collision geometry"].mend
    assert robot_findings(URDF / "wam7.urdf")["collision geometry"].state == CHECK_OK
    only_base = tmp_path / "base.urdf"
    shape = '<collision><geometry><sphere radius="0.1"/></geometry></collision>'
    text = (URDF / "y_shape.urdf").read_text()
    root = re.search(r'<link name="(\w+)"\s*/>', text)
    with_shape = f'<link name="{root[1]}">{shape}</link>'
    only_base.write_text(text.replace(root[0], with_shape, 1))
    assert "no link that moves has" in robot_findings(only_base)["collision geometry"].words


def test_a_robot_that_cannot_be_read_is_broken(tmp_path):
    found = robot_findings(tmp_path / "none.urdf")
    assert {name: each.state for name, each in found.items()} == {"description": CHECK_BROKEN}


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "cache" / "inside"
    inside.mkdir(parents=True, mode=0o755)
    return inside


def test_cache_folder_that_all_users_can_write_is_reported(folder):
    assert others_can_write(folder) == ""
    for mode in (EVERYBODY, EVERYBODY | stat.S_ISVTX):  # everybody can still add files
        folder.chmod(mode)
        assert others_can_write(folder) == f"all users can write {folder}"
    folder.chmod(0o755)
    folder.parent.chmod(EVERYBODY)
    assert others_can_write(folder) == f"all users can write {folder.parent}"
    folder.parent.chmod(EVERYBODY | stat.S_ISVTX)  # sticky like /tmp: only owners can replace files
    assert others_can_write(folder) == ""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root to give it away")
def test_cache_folder_of_another_user_is_reported(folder):
    os.chown(folder, 12345, -1)
    assert others_can_write(folder) == f"{folder} belongs to another user"


def test_kernel_check_rejects_world_writable_cache_before_using_it(tmp_path, monkeypatch):
    tmp_path.chmod(EVERYBODY)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    state, words = results("kernels")["kernels"]
    assert state == CHECK_BROKEN
    assert "other users could add code to the kernel cache" in words
    assert "all users can write" in words
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.ros
@pytest.mark.slow
def test_doctor_json_report_with_ros_is_complete_and_ok():
    pytest.importorskip("rclpy", reason="needs rclpy")
    pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
    ended = run_command("doctor", "--json")
    assert ended.stderr == ""
    report = json.loads(ended.stdout)
    states = {finding["name"]: finding["state"] for finding in report["findings"]}
    assert ended.returncode == 0, report
    assert report["ok"]
    assert {"python", "numba", "viser", "rclpy", "domain", "multicast"} <= set(states)
    assert [states[name] for name in ("solve", "two processes", "ik_node")] == [CHECK_OK] * 3
