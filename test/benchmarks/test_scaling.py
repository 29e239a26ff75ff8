"""The benchmarks of growth and memory, run for real at the smallest size."""

import argparse
import json
import subprocess
import sys

import numpy as np
import pytest
from robots import ROOT

from benchmarks.common import add_plot, thread_counts
from benchmarks.million import poses
from benchmarks.scaling import LIMIT, chain
from dls_ik import IkSolver, RobotModel


def figures(tool, tmp_path, *options):
    """Run a tool and read its JSON."""
    target = tmp_path / "figures.json"
    command = [sys.executable, "-m", f"benchmarks.{tool}", "--json", str(target), *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(target.read_text())["tables"]


def test_scaling_has_a_row_for_every_size_and_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    picture = tmp_path / "scaling.png"
    sizes = ["--joints", "6", "12", "60", "--repeats", "1", "--samples", "4", "--batch", "20"]
    joints, tolerances, threads = figures("scaling", tmp_path, *sizes, "--plot", str(picture))
    assert [row["joints"] for row in joints["rows"]] == [6, 12, 60]
    assert [row["tolerance"] for row in tolerances["rows"]] == pytest.approx(
        [10.0**-k for k in range(3, 11)]
    )
    for row in joints["rows"] + tolerances["rows"]:
        assert row["solved [%]"] == 100.0
        assert row["iterations a pose"] > 0.0
        assert row["pose [us]"] == pytest.approx(
            row["iterations a pose"] * row["iteration [us]"], rel=1e-6
        )
    assert [row["threads"] for row in threads["rows"]] == thread_counts()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_million_states_its_arrays(tmp_path):
    (table,) = figures("million", tmp_path, "--samples", "3000")
    assert [row["threads"] for row in table["rows"]] == thread_counts()
    for row in table["rows"]:
        assert row["solved [%]"] == 100.0
        assert row["poses [MiB]"] == pytest.approx(3000 * 16 * 8 / 2**20)
        assert row["answer [MiB]"] >= 3000 * 7 * 8 / 2**20
        assert row["poses a second"] * row["time [s]"] == pytest.approx(3000)


@pytest.mark.parametrize("n", [6, 7, 60])
def test_a_generated_chain_has_its_joints_and_its_length(n):
    robot = chain(n)
    assert robot.n == n
    assert np.allclose([robot.lower, robot.upper], [[-LIMIT] * n, [LIMIT] * n])
    T = robot.fk(robot.random(np.random.default_rng(0), 200))
    assert (np.linalg.norm(T[:, :3, 3], axis=1) <= 1.0 + 1e-12).all()
    axes = robot.chain.fixed[1:-1, :3, 2]
    assert np.allclose(axes[:, 2], 0.0)  # the next axis is at right angles


def test_poses_made_by_parts_are_reachable():
    robot = RobotModel.from_name("planar_2r")
    Ts = poses(robot, 10_001, np.random.default_rng(0))
    assert Ts.shape == (10_001, 4, 4)
    assert np.allclose(Ts[:, 3], [0.0, 0.0, 0.0, 1.0])
    assert np.allclose(Ts[-1, :3, :3] @ Ts[-1, :3, :3].T, np.eye(3))


def test_any_number_of_threads_gives_the_same_answers():
    robot = RobotModel.wam()
    rng = np.random.default_rng(5)
    Ts, solver = robot.fk(robot.random(rng, 600)), IkSolver(robot)
    one, every = (solver.solve_batch(Ts, threads=threads).q for threads in (1, None))
    assert np.array_equal(one, every)


def test_a_file_that_is_no_picture_is_refused_before_anything_is_measured(capsys):
    options = argparse.ArgumentParser()
    add_plot(options, "it")
    with pytest.raises(SystemExit):
        options.parse_args(["--plot", "figures.csv"])
    assert "one of .png, .svg, .pdf, not figures.csv" in capsys.readouterr().err
