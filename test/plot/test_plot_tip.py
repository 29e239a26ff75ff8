# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The path of the tip: in its own plane, and in those of the base frame."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import ROBOTS, TWO_TIPS, WAM, arm_of, assert_good, swing, texts

from dls_ik.errors import DlsIkError, PoseError
from dls_ik.plot import tip_path, tip_planes

BOTH = pytest.mark.parametrize("draw", [tip_path, tip_planes])


@pytest.mark.parametrize("name", ROBOTS)
def test_tip_path_notes_the_distance(name):
    robot = ROBOTS[name]
    times, q = swing(robot)
    target = robot.fk(q)[:, :3, 3] + np.linspace(0.0, 0.003, len(times))[:, None] * [0.0, 0.0, 1.0]
    figure = tip_path(robot, times, q, target, title="a title")
    assert_good(figure)
    assert "a title" in texts(figure)
    assert "mean 1.5 mm, largest 3 mm" in texts(figure)


@pytest.mark.parametrize(
    ("off", "note"),
    [(2.0, "2 m"), (2e-5, "20 um"), (2e-8, "20 nm"), (1.1e-7, "110 nm"), (0.0, "0 mm")],
)
def test_distances_have_a_readable_unit(off, note):
    times, q = swing(WAM, 3)
    target = WAM.fk(q)[:, :3, 3] + [off, 0.0, 0.0]
    assert f"largest {note}" in texts(tip_path(WAM, times, q, target))
    if not off:
        for draw in (tip_path, tip_planes):  # the arm rests at its target
            assert_good(draw(WAM, times, 0.0 * q, WAM.fk(0.0 * q)[:, :3, 3]))


def test_planes_show_both_paths():
    times, q = swing(WAM)
    tip = WAM.fk(q)[:, :3, 3]
    figure = tip_planes(WAM, times, q, tip + 0.01)
    assert_good(figure)
    for axes, (i, j) in zip(figure.axes[1:], ((0, 1), (0, 2), (1, 2)), strict=True):
        assert (axes.get_xlabel(), axes.get_ylabel()) == (f"{'xyz'[i]} [m]", f"{'xyz'[j]} [m]")
        target, path = axes.lines[:2]
        np.testing.assert_allclose(path.get_xydata(), tip[:, (i, j)])
        np.testing.assert_allclose(target.get_xydata(), tip[:, (i, j)] + 0.01)
        assert axes.get_aspect() == 1.0


@pytest.mark.parametrize("n", [1, 60])
def test_tip_planes_are_drawn_without_a_target(n):
    robot = arm_of(n)
    figure = tip_planes(robot, *swing(robot))
    assert_good(figure)
    assert "target" not in texts(figure)


@BOTH
def test_bad_targets_and_robots_are_refused(draw):
    for target, message in (
        (np.zeros((3, 3)), r"\(2, 3\); got \(3, 3\)"),
        (np.full((2, 3), np.inf), "must be finite"),
    ):
        with pytest.raises(PoseError, match=message):
            draw(WAM, [0.0, 1.0], np.zeros((2, 7)), target)
    times, q = swing(TWO_TIPS)
    with pytest.raises(DlsIkError, match="one tip; got E0, E1"):
        draw(TWO_TIPS, times, q, np.zeros((len(times), 3)))
