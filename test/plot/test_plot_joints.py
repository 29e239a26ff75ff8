"""Joint positions in the bands of their limits."""

import sys

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import ROBOTS, arm_of, assert_good, swing, texts

from dls_ik.errors import DlsIkError, JointValueError
from dls_ik.plot import joint_bands


@pytest.mark.parametrize("name", ROBOTS)
def test_every_joint_is_named(name):
    robot = ROBOTS[name]
    figure = joint_bands(robot, *swing(robot), title="what it says")
    assert_good(figure)
    assert "what it says" in texts(figure)
    for joint_name in robot.joint_names:
        assert joint_name in texts(figure)


@pytest.mark.parametrize("n", [1, 7, 15, 60])
def test_any_number_of_joints_of_all_kinds(n):
    robot = arm_of(n)
    figure = joint_bands(robot, *swing(robot, 8))
    assert sum(axes.axison for axes in figure.axes) == n
    width, height = figure.get_size_inches()
    assert height < 2.0 * width  # a page, not a strip
    assert_good(figure)


def test_how_near_the_limits_were_is_said():
    robot = ROBOTS["mixed"]
    times = [0.0, 1.0]
    words = texts(joint_bands(robot, times, [[0.0, 0.1, -1.75], [9.0, 0.45, 1.0]]))
    assert "no limits" in words
    assert "0.05 m from upper limit" in words
    assert "0.25 rad from lower limit" in words
    words = texts(joint_bands(robot, times, [[0.0, 0.1, -2.25], [9.0, 0.45, 1.0]]))
    assert "0.25 rad BEYOND lower limit" in words


def test_limits_are_drawn_where_they_are():
    robot = ROBOTS["wam"]
    panels = joint_bands(robot, *swing(robot)).axes[: robot.n]
    for panel, lower, upper in zip(panels, robot.lower, robot.upper, strict=True):
        bottom, top = panel.get_ylim()
        assert bottom < lower < upper < top
        drawn = [line.get_ydata()[0] for line in panel.lines if len(set(line.get_ydata())) == 1]
        np.testing.assert_allclose(sorted(drawn), [lower, upper])
        shaded = [
            patch.get_extents().transformed(panel.transData.inverted()) for patch in panel.patches
        ]
        np.testing.assert_allclose(sorted((box.y0, box.y1) for box in shaded),
                                   [(bottom, lower), (upper, top)])  # fmt: skip


def test_the_line_is_the_motion():
    robot = ROBOTS["mixed"]
    times, q = swing(robot)
    for panel, values in zip(joint_bands(robot, times, q).axes, q.T, strict=False):
        np.testing.assert_array_equal(panel.lines[-1].get_xydata(), np.stack([times, values], 1))


@pytest.mark.parametrize(
    ("times", "q"),
    [([0.0], np.zeros((1, 7))), ([0.0, 1.0], np.zeros((3, 7))), ([0.0, 1.0], np.zeros(7))],
)
def test_arrays_that_do_not_fit_are_refused(times, q):
    with pytest.raises(JointValueError, match="two instants or more"):
        joint_bands(ROBOTS["wam"], times, q)


@pytest.mark.parametrize("times", [[0.0, np.nan], [1.0, 0.0], [1.0, 1.0], [0.0, np.inf]])
def test_times_that_do_not_rise_are_refused(times):
    with pytest.raises(JointValueError, match="finite numbers that rise"):
        joint_bands(ROBOTS["wam"], times, np.zeros((2, 7)))


@pytest.mark.parametrize("q", [np.zeros((2, 6)), np.full((2, 7), np.nan)])
def test_joint_values_that_the_robot_cannot_have_are_refused(q):
    with pytest.raises(JointValueError):
        joint_bands(ROBOTS["wam"], [0.0, 1.0], q)


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DlsIkError, match=r"dls-ik\[demo\]"):
        joint_bands(ROBOTS["wam"], [0.0, 1.0], np.zeros((2, 7)))
