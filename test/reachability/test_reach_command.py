"""``dls-ik reachability`` in this process: what it says, writes and refuses."""

import json

import pytest
from click.testing import CliRunner
from reach_maps import WAM_OPTIONS, assert_same

from dls_ik.cli.main import main
from dls_ik.model.files import shipped_names
from dls_ik.reachability import ReachabilityMap
from dls_ik.reachability.settings import TASKS

PLANAR = ["planar_2r", "--task", "position", "--region", "-2", "2", "-2", "2", "0", "0"]


def invoke(*arguments):
    return CliRunner().invoke(main, ["reachability", *map(str, arguments)])


def test_the_help_names_robots_and_tasks():
    text = " ".join(invoke("--help").output.split())
    for word in (*shipped_names(), *TASKS, "[default: 64]"):
        assert word in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "ROBOT"),
        (["nosuch"], "wam, planar_2r, puma560"),
        (["no/such.urdf"], "there is no file"),
        (["wam", "--tip", "hand"], "unknown tip link 'hand'"),
        (["wam", "--resolution", "0"], "edge of a voxel"),
        (["wam", "--resolution", "-0.1"], "not -0.1"),
        (["wam", "--resolution", "wide"], "wide"),
        (["wam", "--resolution", "0.0001"], "at most"),
        (["wam", "--orientations", "0"], "not 0"),
        (["wam", "--orientations", "-3"], "not -3"),
        (["wam", "--task", "position", "--orientations", "3"], "orientation free"),
        (["wam", "--task", "grasp"], "grasp"),
        (["wam", "--tolerance", "0"], "tolerance"),
        (["wam", "--restarts", "-1"], "max_restarts"),
        (["wam", "--seed", "-1"], "random_seed"),
        (["wam", "--region", "1", "0", "0", "1", "0", "1"], "x0 x1 y0 y1 z0 z1"),
        (["wam", "--region", "1", "0"], "--region"),
        (["wam", "--out", "map.csv"], ".npz or .zarr"),
        (["wam", "--out", "/no/such/folder/map.npz"], "no directory"),
        (["wam", "--plot", "map.bmp"], ".png, .svg, .pdf"),
        (["wam", "--plot", "/no/such/folder/map.png"], "no directory"),
        (["wam", "--json", "/no/such/folder/x.json"], "no directory"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert said in result.stderr
    assert not list(tmp_path.iterdir())


def test_a_map_a_picture_and_a_summary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [*PLANAR, "--resolution", "0.1", "--plot", "map.png", "--json", "summary.json"]
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
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
    wam.save(out)  # so that there is nothing left to do
    result = invoke("wam", *WAM_OPTIONS, "--out", out, "--json", "-")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["poses_reached"] == wam.summary()["poses_reached"]
    assert result.stderr == ""
    assert_same(ReachabilityMap.load(out), wam)


def test_another_map_is_not_written_over(wam, tmp_path):
    out = tmp_path / "map.npz"
    wam.save(out)
    result = invoke("wam", "--out", out)
    assert result.exit_code == 2
    assert "other settings" in result.stderr
