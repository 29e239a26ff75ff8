"""Joint velocities in the bands of their limits."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import ROBOTS, arm_of, assert_good, swing, texts

from dls_ik.errors import JointValueError
from dls_ik.plot import joint_velocities

MIXED = ROBOTS["mixed"]  # without a limit, 1 m/s, 1.5 rad/s


@pytest.mark.parametrize("n", [1, 7])
def test_any_number_of_joints_of_all_kinds(n):
    robot = arm_of(n)
    assert_good(joint_velocities(robot, *swing(robot)))


def test_limits_are_drawn_where_they_are():
    panels = joint_velocities(MIXED, *swing(MIXED)).axes
    lines = [[line.get_ydata()[0] for line in panel.lines[:-1]] for panel in panels]
    assert [sorted(each) for each in lines[:3]] == [[], [-1.0, 1.0], [-1.5, 1.5]]


def test_found_velocities_are_those_between_instants():
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


def test_velocities_of_another_shape_are_refused():
    times, q = swing(MIXED)
    with pytest.raises(JointValueError, match=r"\(50, 3\) has that shape, not \(49, 3\)"):
        joint_velocities(MIXED, times, q, q[1:])


def test_times_that_stand_still_have_no_velocity():
    with pytest.raises(JointValueError, match="rise from each to the next"):
        joint_velocities(MIXED, [0.0, 1.0, 1.0], np.zeros((3, 3)))
