# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Stalls, blocked commands, joint motion by the solver, and determinism."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive

from dls_ik import RobotModel
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.limiter import AccelerationLimiter
from dls_ik.servo.stall import StallMonitor
from dls_ik.solver.unreachable import reach_of


def first_stall(errors, positions, dt=0.01, speed=0.0):
    """Return the time of the first stall [s] for a target that moves at a speed [m/s]."""
    monitor, T = StallMonitor(np.ones(1), 0.5), np.eye(4)
    motions = np.abs(np.diff(positions, prepend=0.0))
    for k, (error, q, motion) in enumerate(zip(errors, positions, motions, strict=True)):
        T[0, 3] = speed * k * dt
        if monitor.update(k * dt, error, np.array([q]), T, motion):
            return k * dt
    return None


def test_no_progress_is_a_stall_even_with_oscillation():
    assert first_stall(np.ones(100), 0.01 * (np.arange(100) % 2)) == pytest.approx(0.25)
    assert first_stall(np.ones(20), np.zeros(20), dt=1.0) == pytest.approx(5.0)
    assert first_stall(np.ones(1000), 0.11 * 0.01 * np.arange(1000)) is None, "the motion is fast"


def test_complete_rest_is_a_stall_after_a_tenth_of_a_second():
    assert first_stall(np.ones(100), np.zeros(100)) == pytest.approx(0.1)
    errors = 1.0 + 1e-12 * (np.arange(100) < 50)  # the target moves until then
    assert first_stall(errors, np.zeros(100)) == pytest.approx(0.1)
    errors = 1.0 + 1e-12 * (np.arange(100) % 2)
    assert first_stall(errors, np.zeros(100)) == pytest.approx(0.25), "the target never rests"


@pytest.mark.parametrize("rate", [2.0, 50.0])
def test_changing_error_is_no_stall(rate):
    times = np.arange(300) * 0.01
    assert first_stall(np.exp(-rate * times), np.zeros(300)) is None
    assert first_stall(np.exp(rate * times), np.zeros(300)) is None


def test_keeping_up_with_a_slow_target_is_no_stall():
    slow = 0.05 * 0.01 * np.arange(100)
    assert first_stall(np.full(100, 0.01), slow, speed=0.1) is None
    assert first_stall(np.full(100, 0.1), slow, speed=0.1) == pytest.approx(0.25)


def test_stall_has_lasted_after_two_seconds_until_reset():
    monitor = StallMonitor(np.ones(1), 0.5)
    lasted = []
    for k in range(250):
        monitor.update(k * 0.01, 1.0, np.zeros(1), np.eye(4), 0.0)
        lasted.append(monitor.has_lasted(k * 0.01))
    assert lasted.index(True) == 200
    monitor.reset()
    monitor.update(2.51, 1.0, np.zeros(1), np.eye(4), 0.0)
    assert not monitor.has_lasted(2.51)


class BlockingLimiter(AccelerationLimiter):
    """A limiter that only brakes while it blocks."""

    is_blocking = True

    def advance(self, q_r, v_r, dt):
        if self.is_blocking:
            self.brake(dt)
        else:
            super().advance(q_r, v_r, dt)


@pytest.mark.parametrize("amplitude", [0.0, 0.2], ids=["static", "moving"])
def test_command_blocked_by_limits_is_reported_as_stalled(amplitude):
    drive = Drive(BENT)
    tracker = drive.controller._tracker
    tracker.limiter = limiter = BlockingLimiter(WAM, np.full(WAM.n, 10.0))
    tracker._direct = None  # the kernel of a whole cycle would use the previous limiter
    drive.controller.seed(BENT)

    def each(drive):
        T = WAM.fk(BENT + np.array([0.3, 0, 0, 0, 0, 0, 0]))
        T[2, 3] += amplitude * np.sin(drive.now)
        drive.pose(T)

    drive.run(1.0, each)
    assert drive.last.state is ServoState.STALLED
    assert drive.last.message.startswith("stalled: limits keep joint 'wam_j")
    limiter.is_blocking = False
    drive.run(0.1, each)
    assert drive.last.state is ServoState.FOLLOWING
    drive.assert_limits(10.0)
    slow = Drive(BENT, acceleration=0.05).pose(WAM.fk(BENT + 0.3))
    slow.run(3.0)
    assert ServoState.STALLED not in slow.states


def stuck_case():
    """Return a start and a target that local motion does not reach."""
    rng = np.random.default_rng(91)
    while True:
        q, T = WAM.random(rng=rng), WAM.fk(WAM.random(rng=rng))
        drive = Drive(q).pose(T)
        drive.run_until(ServoState.REACHED, 20.0)
        if ServoState.JOINT_MOTION in drive.states:
            return q, T


def test_joint_motion_continues_to_a_target_that_moves():
    """The hand moves on during the joint motion, on the branch of solutions of its goal."""
    q, T = stuck_case()
    drive = Drive(q, acceleration=8.0).pose(T)
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(DT)
    hand = drive.controller._tracker._request.goal.copy()
    inward = np.sign(0.5 * (WAM.lower + WAM.upper) - hand)

    def move_hand(drive):
        nonlocal hand
        hand = hand + 0.2 * DT * inward
        drive.pose(WAM.fk(hand))

    first = len(drive.outputs)
    drive.run(1.5, move_hand)
    moves = [state is ServoState.JOINT_MOTION for state in drive.states[first:]]
    end = moves.index(False)
    assert end > 10
    assert not any(moves[end:]), "no second joint motion"
    assert drive.last.position_error < 1e-3, "the tip follows the hand"
    drive.assert_limits(8.0)


@pytest.mark.parametrize("seed", [165, 214, 335])
def test_target_that_moves_out_of_reach_during_a_joint_motion_is_unreachable(seed):
    """The planner is asked again, because its answer was for the target before it moved."""
    q, T = stuck_case()
    drive = Drive(q, acceleration=8.0).pose(T)
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(DT)
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=3)
    for _ in range(int(rng.integers(3, 40))):
        T = T.copy()
        T[:3, 3] += 0.01 * direction / np.linalg.norm(direction)
        drive.pose(T)
        drive.run(DT)
    drive.run(4.0, lambda drive: drive.pose(T))
    assert drive.last.state is ServoState.UNREACHABLE


def test_jump_of_the_target_ends_a_joint_motion():
    q, T = stuck_case()
    drive = Drive(q, acceleration=8.0).pose(T)
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(DT)
    drive.pose(WAM.fk(drive.last.q))
    drive.run(DT)
    assert drive.last.state is not ServoState.JOINT_MOTION
    assert drive.run_until(ServoState.REACHED, 5.0)


def test_equal_targets_give_equal_motion():
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


def test_reused_controller_gives_equal_motion():
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


def run_until_stall(drive, executor, then=lambda: None):
    """Run until a stall while the executor is busy; then wait for the executor."""
    busy = Event()
    executor.submit(busy.wait)
    try:
        assert any(drive.run(DT)[0].state is ServoState.STALLED for _ in range(2000))
        then()
    finally:
        busy.set()
    executor.submit(lambda: None).result()  # the executor solves one request at a time


def test_planner_in_executor_reaches_the_pose_within_limits():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor, acceleration=8.0).pose(T)
        run_until_stall(drive, executor)
        assert drive.run_until(ServoState.REACHED, 20.0)
    drive.assert_limits(8.0)
    assert ServoState.JOINT_MOTION in drive.states
    np.testing.assert_allclose(WAM.fk(drive.last.q), T, atol=2e-6)


def test_seed_of_a_request_is_a_copy_of_the_command():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor, acceleration=8.0).pose(T)
        planner = drive.controller._tracker._planner
        requests, busy = [], Event()
        solver, planner._solver = planner._solver, SimpleNamespace(options=planner._solver.options)
        planner._solver.solve = lambda *given: (requests.append(given), solver.solve(*given))[1]
        executor.submit(busy.wait)
        while drive.run(DT)[0].state is not ServoState.STALLED:
            pass
        before = drive.last.q
        command = drive.controller._tracker.limiter.q
        command += 0.1  # changed in place, as in a cycle
        busy.set()
        executor.submit(lambda: None).result()
    np.testing.assert_array_equal(requests[0][1], before)


def test_solver_tables_are_built_with_the_controller():
    robot = RobotModel.wam()
    reach_of.cache_clear()
    Controller(robot, when_stuck="hold")
    assert reach_of.cache_info().misses == 0, "no table is built"
    drive = Drive(np.full(robot.n, 0.4), robot)
    assert reach_of.cache_info().misses == 1
    T = robot.fk(np.full(robot.n, 0.4))
    T[:3, 3] *= 3.0
    drive.pose(T)
    assert drive.run_until(ServoState.UNREACHABLE, 20.0)
    assert reach_of.cache_info().misses == 1


def test_solution_for_a_replaced_target_is_discarded():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor).pose(T)
        run_until_stall(drive, executor, then=drive.controller.pause)
        drive.run(1.0)
        drive.controller.resume()
        drive.pose(WAM.fk(drive.last.q))
        drive.run(1.0)
    assert ServoState.JOINT_MOTION not in drive.states
    assert drive.last.state is ServoState.REACHED


def test_pending_requests_are_cancelled():
    q, T = stuck_case()
    requests, busy = [], Event()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor).pose(T)
        planner = drive.controller._tracker._planner
        solver, planner._solver = planner._solver, SimpleNamespace()
        planner._solver.solve = lambda *given: (requests.append(given), solver.solve(*given))[1]
        executor.submit(busy.wait)
        for _ in range(3):
            while drive.run(DT)[0].state is not ServoState.STALLED:
                pass
            drive.controller.reset()
            drive.run(1.0)
            drive.pose(T)
        busy.set()
        executor.submit(lambda: None).result()
    assert not requests


def test_failed_planner_is_a_fault_until_reset():
    q, T = stuck_case()
    with ThreadPoolExecutor(1) as executor:
        drive = Drive(q, executor=executor).pose(T)
        planner = drive.controller._tracker._planner
        kept, planner._solver = planner._solver, SimpleNamespace(solve=lambda *_: 1 / 0)
        assert drive.run_until(ServoState.FAULT, 20.0)
        assert "the planner failed: ZeroDivisionError" in drive.last.message
        drive.run(1.0)
        assert not drive.last.velocity.any()
        planner._solver = kept
        drive.controller.reset()
        drive.pose(T)
        assert drive.run_until(ServoState.REACHED, 20.0)
