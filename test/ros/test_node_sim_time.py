"""The running node under simulated time, which starts late, stands still, and jumps back."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
moveit = pytest.importorskip("moveit_msgs.msg", reason="needs moveit_msgs")
if not hasattr(moveit, "ServoStatus"):
    pytest.skip("this moveit_msgs has no ServoStatus", allow_module_level=True)

from ros_streamer import positions
from ros_wam import WAM
from ros_watched import Watched, pose, shifted
from rosgraph_msgs.msg import Clock

pytestmark = [pytest.mark.ros, pytest.mark.slow]


class Time:
    """Publishes /clock."""

    def __init__(self, client):
        self.now = 100.0
        self._publisher = client.node.create_publisher(Clock, "/clock", 10)
        self._timer = client.node.create_timer(0.01, self._tick)

    def stamp(self):
        return int(self.now), round(self.now % 1.0 * 1e9)

    def _tick(self):
        self.now += 0.01
        message = Clock()
        message.clock.sec, message.clock.nanosec = self.stamp()
        self._publisher.publish(message)


def test_time_that_starts_late_and_jumps_back():
    with Watched("simulated", feedback_mode="none", use_sim_time=True) as arm:
        arm.stream_until(  # no clock yet
            lambda t: pose(shifted(0.0, 0.1 * min(t, 1.0), 0.0)),
            lambda: bool(arm.commands) and moved(arm) > 0.01,
        )
        arm.send(pose(shifted(), stamp=(100, 0)))
        arm.says("passed over", "there is no clock yet")
        time = Time(arm.client)
        arm.client.spin_until(lambda: arm.commands[-1].header.stamp.sec >= 100)
        for _ in range(2):
            follow(arm, time)
            time.now -= 20.0
            back = time.now + 10.0  # between the time before and all that comes in this round
            arm.client.spin_until(lambda back=back: arm.commands[-1].header.stamp.sec < back)
        follow(arm, time)
        arm.send(pose(shifted(), stamp=(int(time.now) + 60, 0)))
        arm.says("passed over", "future")
        assert_steps_are_small(arm)
        assert "Traceback" not in arm.node.output
        assert arm.node.end() == 0


def follow(arm, time):
    """The arm goes where a stream with the stamps of the clock leads it."""
    for T in (shifted(0.0, 0.05, 0.0), shifted()):
        arm.stream_until(
            lambda _, T=T: pose(T, stamp=time.stamp()), lambda T=T: arm.error(T) < 1e-3
        )


def moved(arm):
    return np.linalg.norm(WAM.fk(arm.q)[:3, 3] - shifted()[:3, 3])


def assert_steps_are_small(arm):
    """By the velocity, as stamps jump and stand."""
    q = np.array([positions(c) for c in arm.commands])
    assert WAM.within_limits(q, 1e-9).all()
    assert (np.abs(np.diff(q, axis=0)) <= WAM.velocity * 0.1).all()
