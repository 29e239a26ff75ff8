"""``dls-ik stream`` without a node: paths, and what is refused."""

import numpy as np
import pytest
from click.testing import CliRunner

from dls_ik.cli.main import main
from dls_ik.cli.stream import circle, sampled
from dls_ik.model.rotations import rotation_from_rpy


def test_timed_poses_are_filled_in():
    turn = np.eye(4)
    turn[:3, :3], turn[0, 3] = rotation_from_rpy(0, 0, 1.0), 1.0
    times, poses = sampled(np.array([7.0, 8.0, 8.5]), np.array([np.eye(4), turn, turn]), rate=4.0)
    np.testing.assert_allclose(times, [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5])
    np.testing.assert_allclose(poses[:, 0, 3], [0, 0.25, 0.5, 0.75, 1, 1, 1])
    np.testing.assert_allclose(poses[2, :3, :3], rotation_from_rpy(0, 0, 0.5), atol=1e-9)
    times, poses = sampled(None, np.array([np.eye(4), turn]), rate=2.0)
    np.testing.assert_allclose(times, [0, 0.5])
    times, poses = sampled(np.array([0.0]), np.eye(4)[None], rate=2.0)
    assert poses.shape == (len(times), 4, 4)


@pytest.mark.parametrize(("plane", "axes"), [("xy", (0, 1)), ("xz", (0, 2)), ("yz", (1, 2))])
def test_a_circle_begins_and_ends_at_its_centre(plane, axes):
    centre = np.eye(4)
    centre[:3, 3] = 0.3, 0.2, 0.1
    times, poses = circle(centre, 0.1, period=2.0, laps=1.5, plane=plane, rate=100.0)
    away = poses[:, :3, 3] - centre[:3, 3]
    distance = np.linalg.norm(away, axis=1)
    assert times[-1] == pytest.approx(4.0)  # and half a second before and after the laps
    np.testing.assert_allclose(distance[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(distance[(times > 0.5) & (times < 3.5)], 0.1)
    (fixed,) = {0, 1, 2} - set(axes)
    assert not away[:, fixed].any()
    np.testing.assert_allclose(poses[:, :3, :3], np.broadcast_to(np.eye(3), (len(poses), 3, 3)))
    steps = np.linalg.norm(np.diff(away, axis=0), axis=1)
    assert steps.max() < 2.0 * np.pi * 0.1 / 2.0 / 100.0 * 1.6  # no jump


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give one of"),
        (["--xyz", 1, 2, 3, "--circle", 0.1], "give one of"),
        (["--twist", 1, 2, 3, 4, 5], "--twist"),
        (["--twist", 1, 2, 3, 4, 5, "nan"], "six numbers"),
        (["--twist", 1, 2, 3, 4, 5, 6, "--for", 0], "--for"),
        (["--twist", 1, 2, 3, 4, 5, 6, "--for", "inf"], "inf s"),
        (["--circle", 0], "--circle"),
        (["--circle", 0.1, "--frame", "tool"], "without --frame"),
        (["--circle", 0.1, "--period", 1e9], "more than"),
        (["--circle", 0.1, "--rate", 0], "--rate"),
        (["--file", "/no/such/poses.csv"], "cannot read /no/such/poses.csv"),
        (["--circle", 0.1, "--plot", "x.bmp"], ".png"),
        (["--circle", 0.1, "--record", "/no/such/x.csv"], "no directory"),
        (["--circle", 0.1, "--record", "-"], "takes a file"),
    ],
)
def test_bad_input(arguments, said):
    result = CliRunner().invoke(main, ["stream", *map(str, arguments)])
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1
