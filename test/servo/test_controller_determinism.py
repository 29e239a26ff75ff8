"""The same targets make the same motion; and with the solver beside the loop, the same end."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import numpy as np
from drive import DT, WAM, Drive

from dls_ik import RobotModel
from dls_ik.servo import Controller, ServoState
from dls_ik.solver.search import reach_of


def stuck_case():
    """A start and a target that local motion does not reach."""
    rng = np.random.default_rng(91)
    while True:
        q, T = WAM.random(rng), WAM.fk(WAM.random(rng))
        drive = Drive(q).pose(T)
        drive.run_until(ServoState.REACHED, 20.0)
        if ServoState.JOINT_MOTION in drive.states:
            return q, T


def test_same_targets_same_motion():
    q, T = stuck_case()
    motions = []
    for _ in range(2):
        drive = Drive(q, acceleration=8.0).pose(T)
        drive.run(6.0)
        drive.run(0.5, lambda drive: drive.twist(np.full(6, 0.1)))
        drive.run(1.0)
        motions.append(drive)
    np.testing.assert_array_equal(motions[0].q, motions[1].q)
    assert motions[0].states == motions[1].states


def test_a_controller_that_was_used_before_makes_the_same_motion():
    q, T = stuck_case()
    fresh = Drive(q).pose(T)
    fresh.run(6.0)
    used = Drive(q).pose(WAM.fk(q + 0.1))
    used.run(2.0)
    used.controller.reset()
    used.run(DT)
    used.controller.seed(q)
    used.pose(T)
    np.testing.assert_array_equal([out.q for out in used.run(6.0)], fresh.q[1:])


def stall(drive, executor, then=lambda: None):
    """Cycles until it stalls, seen while the executor is busy; then the executor's answer."""
    busy = Event()
    executor.submit(busy.wait)
    try:
        assert any(drive.run(DT)[0].state is ServoState.STALLED for _ in range(2000))
        then()
    finally:
        busy.set()
    executor.submit(lambda: None).result()  # it solves for one after the other


def test_with_an_executor_it_ends_at_the_same_pose_within_the_same_limits():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor, acceleration=8.0).pose(T)
        stall(drive, executor)
        assert drive.run_until(ServoState.REACHED, 20.0)
    drive.assert_limits(8.0)
    assert ServoState.JOINT_MOTION in drive.states
    np.testing.assert_allclose(WAM.fk(drive.last.q), T, atol=2e-6)


def test_the_seed_of_a_question_does_not_move_with_the_command():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor, acceleration=8.0).pose(T)
        planner = drive.controller._tracker._planner
        asked, busy = [], Event()
        solver, planner._solver = planner._solver, SimpleNamespace(options=planner._solver.options)
        planner._solver.solve = lambda *given: (asked.append(given), solver.solve(*given))[1]
        executor.submit(busy.wait)
        while drive.run(DT)[0].state is not ServoState.STALLED:
            pass
        before = drive.last.q
        command = drive.controller._tracker.limiter.q
        command += 0.1  # in place, as its cycles do
        busy.set()
        executor.submit(lambda: None).result()
    np.testing.assert_array_equal(asked[0][1], before)


def test_the_first_target_out_of_reach_waits_for_nothing_that_could_be_made_before():
    robot = RobotModel.wam()
    reach_of.cache_clear()
    Controller(robot, when_stuck="hold")
    assert reach_of.cache_info().misses == 0, "it is not asked for"
    drive = Drive(np.full(robot.n, 0.4), robot)
    assert reach_of.cache_info().misses == 1
    T = robot.fk(np.full(robot.n, 0.4))
    T[:3, 3] *= 3.0
    drive.pose(T)
    assert drive.run_until(ServoState.UNREACHABLE, 20.0)
    assert reach_of.cache_info().misses == 1


def test_an_answer_for_a_target_that_has_gone_is_not_used():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor).pose(T)
        stall(drive, executor, then=drive.controller.pause)
        drive.run(1.0)
        drive.controller.resume()
        drive.pose(WAM.fk(drive.last.q))
        drive.run(1.0)
    assert ServoState.JOINT_MOTION not in drive.states
    assert drive.last.state is ServoState.REACHED
