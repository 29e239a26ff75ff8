# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik reachability`` in this process: output, files and refusals."""

import json

import pytest
from cli_runner import refusal, run
from reach_maps import WAM_OPTIONS, assert_same

from dls_ik.model.files import shipped_names
from dls_ik.reachability import ReachabilityMap
from dls_ik.reachability.settings import MAP_TASKS

PLANAR = ["planar_2r", "--task", "position", "--region", "-2", "2", "-2", "2", "0", "0"]


def test_the_help_names_robots_and_tasks():
    text = " ".join(run("reachability", "--help").output.split())
    for word in (*shipped_names(), *MAP_TASKS, "[default: 64]"):
        assert word in text


def test_command_writes_map_picture_and_summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*PLANAR, "--resolution", "0.1", "--plot", "map.png", "--json", "summary.json"]
    result = run("reachability", *arguments)
    assert "1600 voxels, 1600 poses in 1 chunk" in result.stderr
    found = ReachabilityMap.load("planar_2r-reachability.npz")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary == {**found.summary(), "map": "planar_2r-reachability.npz"}
    assert summary["voxels_reached"] == pytest.approx(400 * 3.14159, rel=0.02)
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    names = ["map.png", "planar_2r-reachability.npz", "summary.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_json_alone_on_standard_output(wam, tmp_path):
    out = tmp_path / "map.npz"
    wam.save(out)  # a complete map leaves no work
    result = run("reachability", "wam", *WAM_OPTIONS, "--out", out, "--json", "-")
    assert json.loads(result.stdout)["poses_reached"] == wam.summary()["poses_reached"]
    assert result.stderr == ""
    assert_same(ReachabilityMap.load(out), wam)


def test_another_map_is_not_written_over(wam, tmp_path):
    out = tmp_path / "map.npz"
    wam.save(out)
    assert "other settings" in refusal("reachability", "wam", "--out", out)
