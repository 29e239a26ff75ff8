# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint positions and velocities in the bands of their limits."""

import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import ROBOTS, arm_of, assert_good, swing, texts

from dls_ik.errors import DlsIkError, JointValueError
from dls_ik.plot import joint_bands, joint_velocities

WAM, MIXED = ROBOTS["wam"], ROBOTS["mixed"]  # velocity limits of mixed: none, 1 m/s, 1.5 rad/s


@pytest.mark.parametrize("name", ROBOTS)
def test_every_joint_is_named(name):
    robot = ROBOTS[name]
    figure = joint_bands(robot, *swing(robot), title="a title")
    assert_good(figure)
    for words in ("a title", *robot.joint_names):
        assert words in texts(figure)


@pytest.mark.parametrize(
    ("draw", "n"), [(joint_bands, n) for n in (1, 15, 60)] + [(joint_velocities, 7)]
)
def test_each_of_1_to_60_joints_gets_a_panel(draw, n):
    robot = arm_of(n)
    figure = draw(robot, *swing(robot, 8))
    assert sum(axes.axison for axes in figure.axes) == n
    width, height = figure.get_size_inches()
    assert height < 2.0 * width  # a page, not a strip
    assert_good(figure)


def test_distances_to_limits_are_noted():
    times = [0.0, 1.0]
    words = texts(joint_bands(MIXED, times, [[0.0, 0.1, -1.75], [9.0, 0.45, 1.0]]))
    for note in ("no limits", "0.05 m from upper limit", "0.25 rad from lower limit"):
        assert note in words
    words = texts(joint_bands(MIXED, times, [[0.0, 0.1, -2.25], [9.0, 0.45, 1.0]]))
    assert "0.25 rad BEYOND lower limit" in words


def test_position_limits_are_drawn_and_shaded():
    panels = joint_bands(WAM, *swing(WAM)).axes[: WAM.n]
    for panel, lower, upper in zip(panels, WAM.lower, WAM.upper, strict=True):
        bottom, top = panel.get_ylim()
        assert bottom < lower < upper < top
        drawn = [line.get_ydata()[0] for line in panel.lines if len(set(line.get_ydata())) == 1]
        np.testing.assert_allclose(sorted(drawn), [lower, upper])
        inverted = panel.transData.inverted()
        shaded = [patch.get_extents().transformed(inverted) for patch in panel.patches]
        expected = [(bottom, lower), (upper, top)]
        np.testing.assert_allclose(sorted((box.y0, box.y1) for box in shaded), expected)


def test_velocity_limits_are_drawn():
    panels = joint_velocities(MIXED, *swing(MIXED)).axes
    lines = [[line.get_ydata()[0] for line in panel.lines[:-1]] for panel in panels]
    assert [sorted(each) for each in lines[:3]] == [[], [-1.0, 1.0], [-1.5, 1.5]]


def test_joint_bands_draw_the_given_motion():
    times, q = swing(MIXED)
    for panel, values in zip(joint_bands(MIXED, times, q).axes, q.T, strict=False):
        np.testing.assert_array_equal(panel.lines[-1].get_xydata(), np.stack([times, values], 1))


def test_velocities_are_means_between_instants():
    figure = joint_velocities(
        MIXED, [0.0, 1.0, 3.0], [[0.0, 0.0, 0.0], [0.5, 0.1, 1.2], [0.5, 0.5, -1.8]]
    )
    line = figure.axes[2].lines[-1]
    np.testing.assert_allclose(line.get_xdata(), [0.0, 1.0, 1.0, 3.0])
    np.testing.assert_allclose(line.get_ydata(), [1.2, 1.2, -1.5, -1.5])
    assert "at most 20 % of its limit" in texts(figure)
    assert "at most 0.5 rad/s, no limit" in texts(figure)


def test_known_velocities_are_drawn_as_they_are():
    times, q = swing(MIXED)
    velocity = np.full(q.shape, 1.2)
    figure = joint_velocities(MIXED, times, q, velocity)
    np.testing.assert_array_equal(figure.axes[1].lines[-1].get_ydata(), velocity[:, 1])
    assert "120 % of its limit: BEYOND" in texts(figure)
    assert "at most 80 % of its limit" in texts(figure)


def test_bad_motions_and_velocities_are_refused():
    for times, q, message in [
        ([0.0], np.zeros((1, 7)), "at least 2 instants"),
        ([0.0, 1.0], np.zeros((3, 7)), "at least 2 instants"),
        ([0.0, 1.0], np.zeros(7), "at least 2 instants"),
        ([0.0, np.nan], np.zeros((2, 7)), "must be finite, not decrease"),
        ([1.0, 0.0], np.zeros((2, 7)), "must be finite, not decrease"),
        ([1.0, 1.0], np.zeros((2, 7)), "must be finite, not decrease"),
        ([0.0, np.inf], np.zeros((2, 7)), "must be finite, not decrease"),
        ([0.0, 1.0], np.zeros((2, 6)), "expected 7"),
        ([0.0, 1.0], np.full((2, 7), np.nan), "not finite"),
    ]:
        with pytest.raises(JointValueError, match=message):
            joint_bands(WAM, times, q)
    times, q = swing(MIXED)
    with pytest.raises(JointValueError, match=r"got \(49, 3\)"):
        joint_velocities(MIXED, times, q, q[1:])
    with pytest.raises(JointValueError, match="must increase strictly"):
        joint_velocities(MIXED, [0.0, 1.0, 1.0], np.zeros((3, 3)))


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DlsIkError, match=r"dls-ik\[demo\]"):
        joint_bands(WAM, [0.0, 1.0], np.zeros((2, 7)))
