"""One cycle of the stream: from the target that arrived to the command that goes out."""

import time
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.codes import RequestError
from dls_ik.ros.follower import Follower, Motion
from dls_ik.ros.frames import Frames
from dls_ik.ros.joint_states import JointStates
from dls_ik.ros.logs import Throttle
from dls_ik.ros.targets import Arrival
from dls_ik.servo import ServoCode


class Outcome(NamedTuple):
    """What came of a cycle."""

    motion: Motion | None  # None: nothing goes out
    code: ServoCode
    words: str  # other than the code's own, where there are any


class Stream:
    """Follows targets with the arm that it is given, which may change between cycles.

    Args:
        shows: the commands are for display, and go out before the first target too, so that a
            viewer has an arm to draw; unless there is a driver, or was no time to find one.
        shares: the commands go out on the topic that drivers publish on.
    """

    def __init__(
        self, states: JointStates, frames: Frames, log: Throttle, shows: bool, shares: bool
    ) -> None:
        self._states, self._frames, self._log = states, frames, log
        self._shows, self._shares = shows, shares
        self._next: Arm | None = None  # written by `use`, taken up by the next cycle
        self._arm: Arm | None = None
        self._follower: Follower | None = None
        self._pending: Arrival | None = None

    def use(self, arm: Arm) -> None:
        """Go on with this arm from the next cycle."""
        self._next = arm

    @property
    def robot(self) -> RobotModel | None:
        """The robot of the last cycle."""
        return None if self._follower is None else self._follower.robot

    def current(self, arm: Arm) -> dict[str, float]:
        """Joint values by name: as drivers publish them, else as they are commanded."""
        values = self._states.values()
        names = arm.robot.joint_names
        if self._states.measured(names, time.monotonic()) is None:
            follower = self._follower
            known = follower is not None and follower.robot is arm.robot
            q = follower.command if follower is not None and known else arm.start
            values.update(zip(names, q.tolist(), strict=True))
        return values

    def cycle(self, now: float, dt: float, arrival: Arrival | None) -> Outcome:
        """Advance by `dt` [s], with the target that arrived since the last cycle."""
        self._take_up()
        if self._arm is None or self._follower is None:
            if arrival is not None:
                self._log.warn("robot", "a target arrived, but there is no robot yet")
            return Outcome(None, ServoCode.INVALID, "no robot yet")
        measured = self._states.measured(self._arm.robot.joint_names, now)
        self._pending = arrival or self._pending
        if self._pending is not None and self._may_start(now, measured):
            self._aim(self._arm, self._follower, now, measured)
        if not self._follower.started:
            return self._idle(self._follower, now, dt, measured)
        if measured is not None and self._shares:
            self._warn_of_driver()
        motion = self._follower.cycle(now, dt)
        return Outcome(motion, motion.code, "")

    def _take_up(self) -> None:
        arm = self._next
        if arm is None or arm is self._arm:
            return
        if self._follower is not None and arm.robot is self._follower.robot:
            self._follower.use(arm.servo)
        else:
            self._follower = Follower(arm.servo, self._start(arm))
            self._pending = None
        self._arm = arm

    def _start(self, arm: Arm) -> Array:
        """Where the command of another robot begins: joints that were there stay where they are."""
        if self._follower is None:
            return arm.start
        before = zip(self._follower.robot.joint_names, self._follower.command, strict=True)
        known = dict(before)
        pairs = zip(arm.robot.joint_names, arm.start, strict=True)
        return np.array([known.get(name, start) for name, start in pairs])

    def _may_start(self, now: float, measured: Array | None) -> bool:
        """Whether it is known where the arm is, or that nobody says."""
        started = self._follower is not None and self._follower.started
        return started or measured is not None or self._states.settled(now)

    def _aim(self, arm: Arm, follower: Follower, now: float, measured: Array | None) -> None:
        arrival, self._pending = self._pending, None
        if arrival is None:
            return
        known = self._known(arm, follower)
        try:
            T_root_tip = self._frames.pose_in_root(arrival.message, arm.tree, known)
            T_base_tip = arm.base_from_root(T_root_tip, arm.robot.base, known)
            follower.aim(T_base_tip, now, measured)
        except (RequestError, PoseError) as error:
            follower.hold()
            self._log.warn("target", f"target refused, the arm holds: {error}")

    def _known(self, arm: Arm, follower: Follower) -> dict[str, float]:
        """The values of all joints of the robot, those of the chain as they are commanded."""
        heard = {n: p for n, p in self._states.values().items() if n in arm.tree.drives}
        commanded = zip(follower.robot.joint_names, follower.command.tolist(), strict=True)
        return {**heard, **dict(commanded)}

    def _idle(self, follower: Follower, now: float, dt: float, measured: Array | None) -> Outcome:
        refused = follower.refused
        code = ServoCode.INVALID if refused else ServoCode.OK
        words = "" if refused else "no target yet"
        if measured is not None:
            follower.rest(measured)
        if measured is not None or not self._shows or not self._states.settled(now):
            return Outcome(None, code, words)
        return Outcome(follower.cycle(now, dt), code, words)

    def _warn_of_driver(self) -> None:
        self._log.once(
            "driver",
            f"commands go out on {self._states.topic}, where a driver publishes joint states: "
            "whoever listens gets both; set the parameter output_topic to another topic, and "
            "output_type to what the driver takes",
        )
