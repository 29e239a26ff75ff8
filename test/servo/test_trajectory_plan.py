# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trajectories of poses that are planned before the arm follows them."""

from concurrent.futures import Executor, Future

import numpy as np
import pytest
from branch_line import LINE, START, line
from drive import WAM, Drive

from dls_ik import PlanningScene, RobotModel
from dls_ik.core.jit import MissingKernelError
from dls_ik.errors import SceneError
from dls_ik.model.rotations import transform
from dls_ik.servo import ServoState
from dls_ik.servo.targets import TrajectoryTarget
from dls_ik.servo.trajectory_plan import JointGuide, TrajectoryPlan, TrajectoryPlanner

PUMA = RobotModel.from_name("puma560")
MAX_PATH_ERROR = 2e-3  # [m and rad] limit of the sum of both errors


class Later(Executor):
    """Executor that works only when it is asked to."""

    def __init__(self):
        self.works = []

    def submit(self, work):
        future = Future()
        self.works.append((future, work))
        return future

    def work(self):
        while self.works:
            future, work = self.works.pop(0)
            if future.set_running_or_notify_cancel():
                future.set_result(work())


def moving_errors(outputs):
    """Return the errors (m,) of the cycles outside of joint motions [m and rad, summed]."""
    cycles = [out for out in outputs if out.state is not ServoState.JOINT_MOTION]
    return np.array([out.position_error + out.rotation_error for out in cycles])


def test_arm_moves_to_the_branch_on_which_it_follows_all_poses():
    q, Ts = START, LINE
    drive = Drive(q).trajectory(Ts, 0.2)
    assert drive.run(0.01)[0].state is ServoState.JOINT_MOTION
    assert "pose" in drive.last.message
    assert "not reachable on the current branch of solutions; moving to" in drive.last.message
    drive.run(10.0)
    assert drive.last.state is ServoState.REACHED
    assert drive.last.message == ServoState.REACHED.message()
    np.testing.assert_allclose(WAM.fk(drive.last.q), Ts[-1], atol=1e-4)
    assert moving_errors(drive.outputs).max() < MAX_PATH_ERROR
    drive.assert_limits()


def test_arm_that_may_not_make_joint_motions_reports_the_pose_at_once():
    q, Ts = START, LINE
    drive = Drive(q, when_stuck="hold").trajectory(Ts, 0.2)
    assert drive.run(0.01)[0].state is not ServoState.JOINT_MOTION
    assert "not reachable on the current branch of solutions; a joint" in drive.last.message
    drive.run(6.0)
    assert ServoState.JOINT_MOTION not in drive.states
    assert moving_errors(drive.outputs).max() > 10.0 * MAX_PATH_ERROR


def test_pose_out_of_reach_is_reported_before_the_arm_gets_there():
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    Ts = line(WAM.fk(q), [1.0, 0.0, 0.0], 11)
    drive = Drive(q).trajectory(Ts, 0.5)
    drive.run(0.01)
    assert drive.last.state in (ServoState.FOLLOWING, ServoState.REACHED)
    assert "pose" in drive.last.message
    assert "(of 0 to 10) is" in drive.last.message


def test_trajectory_on_the_current_branch_is_followed_without_a_note():
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    Ts = line(WAM.fk(q), [0.0, 0.15, 0.0], 11)
    drive, plain = (Drive(q).trajectory(Ts, 0.1) for _ in range(2))
    plain.controller._tracker._trajectories = None
    drive.run(1.5)
    plain.run(1.5)
    np.testing.assert_array_equal(drive.q, plain.q)
    assert {out.message for out in drive.outputs} == {out.message for out in plain.outputs}


def test_cycles_do_not_wait_for_the_plan_and_the_arm_returns_to_the_start():
    q, Ts = START, LINE
    executor = Later()
    drive = Drive(q, executor=executor).trajectory(Ts, 0.2)
    drive.run(0.5)
    assert ServoState.JOINT_MOTION not in drive.states
    assert len(executor.works) == 1, "one request for a trajectory"
    executor.work()
    drive.run(0.01)
    assert drive.last.message.endswith("searching for other branches")
    executor.work()
    drive.run(0.01)
    assert drive.last.state is ServoState.JOINT_MOTION
    late = len(drive.outputs)
    drive.run(10.0)
    assert drive.last.state is ServoState.REACHED
    np.testing.assert_allclose(WAM.fk(drive.last.q), Ts[-1], atol=1e-4)
    assert moving_errors(drive.outputs[late:]).max() < MAX_PATH_ERROR
    drive.assert_limits()


def test_plan_of_a_replaced_trajectory_is_cancelled():
    q, Ts = START, LINE
    executor = Later()
    drive = Drive(q, executor=executor).trajectory(Ts, 0.2)
    drive.run(0.1)
    drive.trajectory(Ts[:1].repeat(3, axis=0), 0.2)
    drive.run(0.1)
    first, second = (future for future, _ in executor.works)
    assert first.cancelled()
    executor.work()
    assert second.done()
    drive.run(2.0)
    assert drive.last.state is ServoState.REACHED


def test_abandoned_search_ends_with_an_empty_plan():
    executor = Later()
    planner = TrajectoryPlanner(WAM, executor)
    first = planner.request_search(LINE, START)
    planner.abandon()
    second = planner.request_search(LINE, START)
    executor.work()
    assert first.result() == TrajectoryPlan()
    assert second.result().guide is not None


@pytest.mark.parametrize(
    "error",
    [SceneError("no library"), MissingKernelError(lambda: None, ())],
    ids=["scene", "kernel"],
)
def test_trajectory_is_followed_without_a_plan_if_planning_is_not_possible(error, monkeypatch):
    def refuse(*_):
        raise error

    monkeypatch.setattr(TrajectoryPlanner, "search", refuse)
    drive = Drive(START).trajectory(LINE, 0.2)
    drive.run(1.0)
    assert drive.last.message.endswith(f"the trajectory was not planned: {error}")
    assert ServoState.FAULT not in drive.states
    assert drive.last.velocity.any()


def test_target_that_replaces_a_trajectory_cancels_its_plan():
    executor = Later()
    drive = Drive(START, executor=executor).trajectory(LINE, 0.2)
    drive.run(0.1)
    drive.pose(LINE[0]).run(0.1)
    assert [future.cancelled() for future, _ in executor.works] == [True]


def test_pause_and_resume_while_the_plan_waits():
    executor = Later()
    drive = Drive(START, executor=executor).trajectory(LINE, 0.2)
    drive.run(0.1)
    drive.controller.pause()
    drive.run(0.1)
    drive.controller.resume()
    drive.trajectory(LINE, 0.2).run(0.1)
    for _ in range(3):
        executor.work()
        drive.run(0.01)
    assert drive.last.state is ServoState.JOINT_MOTION


def test_trajectory_replaces_a_joint_motion_while_its_plan_waits():
    executor = Later()
    drive = Drive(START, executor=executor).trajectory(LINE, 0.2)
    for _ in range(3):
        executor.work()
        drive.run(0.01)
    assert drive.last.state is ServoState.JOINT_MOTION
    drive.trajectory(LINE[::-1].copy(), 0.2).run(0.1)
    assert drive.last.state is not ServoState.FAULT


def test_another_controller_continues_the_motion_to_the_start():
    q, Ts = START, LINE
    drive = Drive(q).trajectory(Ts, 0.2)
    drive.run(0.2)
    other = Drive(q, when_stuck="joint_motion")
    other.controller.take_over(drive.controller)
    other.start, other.now = drive.last.q, drive.now
    other.run(10.0)
    assert other.last.state is ServoState.REACHED
    assert moving_errors(other.outputs).max() < MAX_PATH_ERROR
    other.assert_limits()


def test_path_to_the_start_avoids_obstacles():
    q, Ts = START, LINE
    scene = PlanningScene(WAM)
    scene.add_box("far away", [0.1, 0.1, 0.1], transform(None, np.array([0.0, 0.0, 3.0])))
    drive = Drive(q, scene=scene).trajectory(Ts, 0.2)
    drive.run(12.0)
    assert ServoState.JOINT_MOTION in drive.states
    assert drive.last.state is ServoState.REACHED
    assert not scene.in_collision(np.array([out.q for out in drive.outputs[::20]])).any()


def test_reason_names_the_colliding_pair():
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    Ts = line(WAM.fk(q), [0.0, 0.3, 0.0], 11)
    scene = PlanningScene(WAM)
    scene.add_sphere("ball", 0.08, transform(None, Ts[-1, :3, 3]))
    planner = TrajectoryPlanner(WAM, None, scene=scene)
    assert "(of 0 to 10) is not reachable" in planner.follow(Ts, q).reason
    plan = planner.search(Ts, q)
    assert plan.guide is None
    assert "in collision" in plan.reason


def test_guide_interpolates_cubics_exactly():
    at = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    guide = JointGuide(at, np.stack([2.0 * at + 1.0, 0.5 * at**2], axis=1))
    for t in (1.0, 1.3, 2.5, 2.9):
        np.testing.assert_allclose(guide.positions(t), [2.0 * t + 1.0, 0.5 * t**2], atol=1e-12)
    np.testing.assert_array_equal(guide.positions(-1.0), guide.q[0])
    np.testing.assert_array_equal(guide.positions(9.0), guide.q[-1])


def test_waiting_trajectory_starts_only_after_its_release():
    Ts = line(np.eye(4), [0.1, 0.0, 0.0], 3)
    target = TrajectoryTarget(Ts, 0.5, 0.0)
    target.wait()
    for now in (0.0, 1.0, 2.0):
        np.testing.assert_array_equal(target.pose(now, 0.01, lambda: Ts[0]), Ts[0])
    target.release(True)
    target.pose(2.0, 0.01, lambda: Ts[0])
    np.testing.assert_allclose(target.pose(2.5, 0.01, lambda: Ts[0]), Ts[1], atol=1e-12)


@pytest.mark.parametrize("count", [2, 500, 3000])
def test_long_legs_are_divided_and_many_poses_are_kept(count):
    planner = TrajectoryPlanner(PUMA, None)
    Ts = line(np.eye(4), [1.0, 0.0, 0.0], count)
    poses, at = planner._densified(Ts)
    np.testing.assert_array_equal(poses[np.isin(at, np.arange(count))], Ts)
    assert (np.diff(at) > 0.0).all()
    assert len(poses) == {2: 51, 500: 500, 3000: 3000}[count]
