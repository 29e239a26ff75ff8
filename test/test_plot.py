"""Pictures: what they show, what they refuse, and that they need no display."""

import io
import sys

import numpy as np
import pytest
from robots import URDF, joint, urdf

from dls_ik.exceptions import DlsIkError, JointValueError, PoseError
from dls_ik.model import RobotModel

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from dls_ik.plot import joint_bands, tip_path

RAIL = '<limit lower="0" upper="0.5" effort="1" velocity="1"/>'
MIXED = urdf(
    "a b c d",
    joint("turns", "continuous", "a", "b", ""),
    joint("slides", "prismatic", "b", "c", RAIL),
    joint("swings", "revolute", "c", "d"),
)
ROBOTS = {
    "wam": RobotModel.wam(),
    "planar": RobotModel.from_urdf(URDF / "planar_2r.urdf"),
    "mixed": RobotModel.from_urdf(MIXED),
}


def swing(robot, count=50):
    """Times, and joint values that swing about mid-range."""
    times = np.linspace(0.0, 5.0, count)
    lower, upper = robot.finite_limits()
    middle, reach = 0.5 * (lower + upper), 0.3 * (upper - lower)
    return times, middle + reach * np.sin(times)[:, None]


def texts(figure):
    """All words in a figure."""
    axes = figure.axes
    titles = [axes_.get_title(loc) for axes_ in axes for loc in ("left", "center", "right")]
    return " | ".join([figure.get_suptitle(), *titles, *(axes_.get_ylabel() for axes_ in axes)])


def assert_saves(figure):
    file = io.BytesIO()
    figure.savefig(file, dpi=40)
    assert file.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ROBOTS)
def test_joint_bands_name_every_joint(name):
    robot = ROBOTS[name]
    figure = joint_bands(robot, *swing(robot), title="what it says")
    assert_saves(figure)
    assert "what it says" in texts(figure)
    for joint_name in robot.joint_names:
        assert joint_name in texts(figure)


def test_joint_bands_say_how_near_the_limits_were():
    robot = ROBOTS["mixed"]
    times = [0.0, 1.0]
    words = texts(joint_bands(robot, times, [[0.0, 0.1, -1.75], [9.0, 0.45, 1.0]]))
    assert "no limits" in words
    assert "closest: 0.05 m from its upper limit" in words
    assert "closest: 0.25 rad from its lower limit" in words
    words = texts(joint_bands(robot, times, [[0.0, 0.1, -2.25], [9.0, 0.45, 1.0]]))
    assert "BEYOND its lower limit by 0.25 rad" in words


def test_joint_bands_show_the_whole_range_and_more():
    robot = ROBOTS["wam"]
    panels = joint_bands(robot, *swing(robot)).axes[: robot.n]
    for panel, lower, upper in zip(panels, robot.lower, robot.upper, strict=True):
        bottom, top = panel.get_ylim()
        assert bottom < lower < upper < top


@pytest.mark.parametrize("name", ROBOTS)
def test_tip_path_says_how_far_the_tip_was(name):
    robot = ROBOTS[name]
    times, q = swing(robot)
    target = robot.fk(q)[:, :3, 3] + np.linspace(0.0, 0.003, len(times))[:, None] * [0.0, 0.0, 1.0]
    figure = tip_path(robot, times, q, target, title="what it says")
    assert_saves(figure)
    assert "what it says" in texts(figure)
    assert "mean 1.5 mm, greatest 3 mm" in texts(figure)


def test_tip_path_of_an_arm_at_rest_on_its_target():
    robot = ROBOTS["wam"]
    q = np.zeros((3, robot.n))
    assert_saves(tip_path(robot, [0.0, 1.0, 2.0], q, robot.fk(q)[:, :3, 3]))


@pytest.mark.parametrize(
    ("times", "q"),
    [([0.0], np.zeros((1, 7))), ([0.0, 1.0], np.zeros((3, 7))), ([0.0, 1.0], np.zeros(7))],
)
def test_arrays_that_do_not_fit_are_refused(times, q):
    with pytest.raises(JointValueError, match="two instants or more"):
        joint_bands(ROBOTS["wam"], times, q)


def test_joint_values_of_another_robot_are_refused():
    with pytest.raises(JointValueError):
        joint_bands(ROBOTS["wam"], [0.0, 1.0], np.zeros((2, 6)))


def test_a_target_that_does_not_fit_is_refused():
    with pytest.raises(PoseError, match=r"\(2, 3\), not \(3, 3\)"):
        tip_path(ROBOTS["wam"], [0.0, 1.0], np.zeros((2, 7)), np.zeros((3, 3)))


def test_missing_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(DlsIkError, match=r"dls-ik\[demo\]"):
        joint_bands(ROBOTS["wam"], [0.0, 1.0], np.zeros((2, 7)))
