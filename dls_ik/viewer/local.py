"""A source that is a controller in this process."""

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.joint_values import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.servo import Controller
from dls_ik.servo.options import HOLD
from dls_ik.solver.method import KDL, method_names
from dls_ik.viewer.options import tunable
from dls_ik.viewer.source import Sample

LONGEST, SHORTEST = 0.1, 1e-4  # [s] of a cycle: what took longer is not made up for
SHOWN = {"when_stuck": HOLD}  # a dead end of a method is what there is to see


class LocalSource:
    """Follows the target with :class:`dls_ik.servo.Controller`, as a node would.

    Args:
        robot: a chain with one tip.
        method: a name from :func:`dls_ik.method_names`; default: the controller's.
        start: (n,) where it begins [rad or m]; default: 0, or the limit next to it.
        options: of the controller and its method.

    Raises:
        MethodError, OptionError, JointValueError: as the controller.
    """

    methods = tuple(name for name in method_names() if name not in KDL)
    can_place = True
    is_remote = False

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        start: Array | None = None,
        **options: Any,
    ) -> None:
        self.robot = robot
        self._given: dict[str, Any] = {**SHOWN, **options}
        self._executor = ThreadPoolExecutor(1, "solver")
        self._lock = threading.Lock()
        self._controller = self._built(method, self._given)
        self.parameters = tunable(self.method, self._given)
        self._start = self._controller.command if start is None else start
        self._aim: Array | None = None
        self._last: float | None = None  # [s] of a step
        self.place(self._start)

    @property
    def name(self) -> str:
        """Its method."""
        return self._controller.method

    @property
    def method(self) -> str:
        """As the papers write it."""
        return self._controller.method

    def aim(self, T: Array) -> None:
        """Follow a pose (4, 4)."""
        self._aim = T.copy()

    def step(self, now: float) -> Sample:
        """One cycle of the controller."""
        with self._lock:
            dt = SHORTEST if self._last is None else now - self._last
            self._last = now
            controller, aim = self._controller, self._aim
            if aim is not None:
                controller.follow_pose(aim, now)
            out = controller.cycle(now, min(max(dt, SHORTEST), LONGEST))
        errors = (out.position_error, out.rotation_error)
        T_tip = self.robot.fk(out.q)
        return Sample(now, out.q, out.velocity, T_tip, out.T_d, *errors, out.state.name, out.words)

    def use(self, method: str) -> None:
        """Go on with another method, from where the arm is and as fast as it is."""
        self._change(method, self._given)

    def change(self, name: str, value: Any) -> None:
        """Change an option."""
        self._change(self.method, {**self._given, name: value})

    def place(self, q: Array) -> None:
        """Be there at once."""
        values = checked_configuration(q, self.robot.joint_names)
        with self._lock:
            self._aim = None
            self._controller.reset()
            self._controller.seed(values)

    def pause(self, paused: bool) -> None:
        """Stop and pass targets over, or go on."""
        with self._lock:
            if paused:
                self._controller.pause()
            else:
                self._controller.resume()

    def reset(self) -> None:
        """Go back to where it began."""
        self.place(self._start)

    def close(self) -> None:
        """End the thread that solves."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _change(self, method: str, given: Mapping[str, Any]) -> None:
        with self._lock:
            controller = self._built(method, given)
            controller.take_over(self._controller)
            self._controller, self._given = controller, dict(given)
            self.parameters = tunable(controller.method, given)

    def _built(self, method: str | None, given: Mapping[str, Any]) -> Controller:
        return Controller(self.robot, method, self._executor, **given)
