# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint trajectories that a controller follows: exactness, limits, tolerances and ends."""

import numpy as np
import pytest

from dls_ik import PlanningScene, RobotModel
from dls_ik.errors import HeldError
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.joint_target import JointTarget, MotionEnd, Tolerances

WAM = RobotModel.wam()
HOME = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
PERIOD = 0.01
ANY, CLOSE = np.full(7, np.inf), np.full(7, 0.01)


class Followed:
    """Controller at HOME that follows a trajectory to a goal, cycle by cycle."""

    def __init__(self, goal, duration=1.5, tolerances=None, scene=None, delay=0.0, start=HOME):
        self.controller = Controller(WAM, acceleration=6.0, scene=scene)
        self.controller.seed(HOME)
        self.now, self.ends, self.q = 0.0, [], []
        spline = JointSpline(np.array([0.0, duration]), np.array([start, goal]))
        self.target = self.new_target(spline, tolerances, delay)
        self.controller.follow_joints(self.target, 0.0)

    def new_target(self, spline, tolerances=None, delay=0.0):
        kept = tolerances or Tolerances(ANY, CLOSE, 1.0)
        on_end = lambda *end: self.ends.append(end)  # noqa: E731
        return JointTarget(spline, WAM.joint_names, WAM.velocity, kept, on_end, delay)

    def run(self, seconds, measured=None):
        """Run cycles until the trajectory ends, for at most some time, and return the output."""
        for _ in range(round(seconds / PERIOD)):
            self.now += PERIOD
            self.output = self.controller.cycle(self.now, PERIOD, measured)
            self.q.append(self.output.q)
            if self.ends:
                break
        return self.output

    @property
    def end(self):
        (end,) = self.ends
        return end


def test_trajectory_is_followed_to_its_goal():
    followed = Followed(HOME + 0.4)
    output = followed.run(3.0)
    assert followed.end == (MotionEnd.DONE, "")
    assert followed.now == pytest.approx(1.5, abs=0.03)
    np.testing.assert_allclose(output.q, HOME + 0.4, atol=1e-6)
    assert output.state is ServoState.REACHED
    for k, q in enumerate(followed.q[:140]):
        np.testing.assert_allclose(q, followed.target.spline.at((k + 1) * PERIOD)[0], atol=1e-3)
    followed.controller.follow_pose(WAM.fk(HOME), followed.now)
    assert len(followed.ends) == 1, "the end is told once"


def test_delayed_trajectory_starts_at_its_time():
    followed = Followed(HOME + 0.4, delay=0.5)
    followed.run(0.49)
    np.testing.assert_allclose(followed.q[-1], HOME, atol=1e-9)
    followed.run(3.0)
    assert followed.end[0] is MotionEnd.DONE
    assert followed.now == pytest.approx(2.0, abs=0.05)


def test_trajectory_that_is_too_fast_is_followed_within_the_limits():
    followed = Followed(HOME + 0.8, duration=0.1, tolerances=Tolerances(ANY, CLOSE, 5.0))
    followed.run(5.0)
    velocity = np.diff([HOME, *followed.q], axis=0) / PERIOD
    assert (np.abs(velocity) <= WAM.velocity + 1e-9).all()
    assert (np.abs(np.diff(velocity, axis=0)) / PERIOD <= 6.0 * 1.05).all()


def test_measurement_off_the_path_aborts_and_stops():
    followed = Followed(HOME + 0.4, tolerances=Tolerances(np.full(7, 0.05), CLOSE, 1.0))
    followed.run(3.0, measured=HOME)
    reason, message = followed.end
    assert reason is MotionEnd.PATH_TOLERANCE
    assert "path tolerance is 0.05" in message
    followed.ends.append(None)  # run on
    del followed.ends[:]
    output = followed.run(1.0, measured=HOME)
    assert output.state is ServoState.WAITING
    assert not output.velocity.any()


def test_goal_that_the_measured_arm_does_not_reach_in_time_aborts():
    followed = Followed(HOME + 0.4, tolerances=Tolerances(ANY, CLOSE, 0.2))
    followed.run(5.0, measured=HOME)
    reason, message = followed.end
    assert reason is MotionEnd.GOAL_TOLERANCE
    assert "0.2 s after the end" in message
    assert followed.now == pytest.approx(1.7, abs=0.05)


def test_obstacle_blocks_the_trajectory_before_a_contact():
    scene = PlanningScene(WAM)
    goal = HOME.copy()
    goal[0] = 0.8
    followed = Followed(goal, duration=2.0, scene=scene)
    followed.run(0.2)
    scene.add_box("post", [0.1, 0.1, 0.1], WAM.fk(0.5 * (HOME + goal))[:3, 3])
    followed.run(5.0)
    reason, message = followed.end
    assert reason is MotionEnd.BLOCKED
    assert "post" in message
    assert all(scene.distance(q).distance > 0.009 for q in followed.q[::5])


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("pose", MotionEnd.PREEMPTED),
        ("joints", MotionEnd.PREEMPTED),
        ("pause", MotionEnd.STOPPED),
        ("reset", MotionEnd.STOPPED),
        ("stop", MotionEnd.STOPPED),
        ("refuse", MotionEnd.STOPPED),
    ],
)
def test_other_targets_and_events_end_a_trajectory(by, reason):
    followed = Followed(HOME + 0.4)
    followed.run(0.5)
    controller = followed.controller
    if by == "pose":
        controller.follow_pose(WAM.fk(HOME), followed.now)
    elif by == "joints":
        at = controller.command
        spline = JointSpline(np.array([0.0, 1.0]), np.array([at, HOME]))
        other = followed.new_target(spline)
        controller.follow_joints(other, followed.now)
        assert controller.is_following(other)
    elif by in ("stop", "refuse"):
        getattr(controller, by)("because")
    else:
        getattr(controller, by)()
    assert followed.end[0] is reason
    assert not controller.is_following(followed.target)


def test_start_elsewhere_and_a_paused_controller_refuse_a_trajectory():
    followed = Followed(HOME, start=HOME + 0.1)
    assert followed.end[0] is MotionEnd.REFUSED
    assert "the arm is at" in followed.end[1]
    followed.controller.pause()
    spline = JointSpline(np.array([0.0, 1.0]), np.array([HOME, HOME]))
    with pytest.raises(HeldError):
        followed.controller.follow_joints(followed.new_target(spline), 0.0)


def test_controller_of_the_same_joints_takes_the_trajectory_over():
    followed = Followed(HOME + 0.4)
    followed.run(0.5)
    other = Controller(WAM, acceleration=6.0)
    other.take_over(followed.controller)
    followed.controller = other
    followed.run(3.0)
    assert followed.end == (MotionEnd.DONE, "")
