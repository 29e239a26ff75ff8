# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A node that is killed under a stream and started again, and one that is ended in motion."""

import signal

import numpy as np
import pytest
from ros_client import ENOUGH
from ros_faulted import Rig
from ros_streamer import positions
from ros_wam import WAM, Q
from trajectory_msgs.msg import JointTrajectory

from dls_ik.ros.client import IkClient

pytestmark = [pytest.mark.ros, pytest.mark.slow]


def test_killed_or_terminated_node_restarts_at_the_held_position():
    with Rig("killed", feedback_mode="auto") as rig, IkClient(rig.client.node) as asker:
        trajectories = rig.client.listen(
            JointTrajectory, "joint_trajectory_controller/joint_trajectory", 10
        )
        assert answer(rig, asker).success
        rig.stream()
        rig.follows()
        rig.node.process.kill()
        rig.node.wait_for_end()
        held = rig.rests()
        ends = np.array([ending(message) for message in trajectories[-3:]])
        assert np.abs(ends - held).max(axis=1).min() < 1e-9, "the stop that was sent last"
        starts_again(rig, held, "required")
        assert answer(rig, asker).success, "through the same client"
        starts_again(rig, end_while_moving(rig, signal.SIGTERM, trajectories), "auto")
        rig.assert_alive()
        end_while_moving(rig, signal.SIGINT, trajectories)


def starts_again(rig, held, feedback_mode):
    """Another node begins where the arm came to rest, and follows the stream."""
    rig.client.spin_for(0.1)
    rig.start_again(feedback_mode=feedback_mode)
    rig.assert_begins_at(held)
    rig.follows()
    rig.assert_calm()


def answer(rig, asker):
    rig.client.reach(asker)
    pending = asker.solve_async(WAM.fk(Q), timeout=ENOUGH)
    rig.client.spin_until(pending.done, what="an answer")
    return pending.result()


def ending(trajectory):
    """Where a trajectory ends (n,)."""
    assert tuple(trajectory.joint_names) == WAM.joint_names
    return np.array(trajectory.points[-1].positions)


def end_while_moving(rig, number, trajectories):
    """The last command stands still, and the arm is there; return where (n,)."""
    rig.until(lambda: np.abs(rig.commands[-1].velocity).max() > 0.2, "a command of motion")
    rig.node.process.send_signal(number)
    assert rig.node.wait_for_end() == 0
    held = rig.rests()
    assert "Traceback" not in rig.node.output, rig.node.output
    rig.until(lambda: not np.any(rig.commands[-1].velocity), "a last command that stands still")
    np.testing.assert_allclose(positions(rig.commands[-1]), held, atol=1e-9)
    assert not np.any([point.velocities for point in trajectories[-1].points])
    rig.assert_calm()
    return held
