"""A source that is a controller in this process, and the options a person tunes of its method."""

import math
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import Field, fields
from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.joint import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.servo import Controller
from dls_ik.servo.options import HOLD, ControllerOptions
from dls_ik.solver.method import AUTO, KDL, method_names, parse_method
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.source import Parameter, Sample

LONGEST, SHORTEST = 0.1, 1e-4  # [s] of a cycle: what took longer is not made up for
SHOWN = {"when_stuck": HOLD}  # a dead end of a method is what there is to see

OF_PART = {  # of a method's name
    "ed": ("error_gain",),
    "ied": ("error_gain", "omega"),
    "dls": ("lambda_",),
    "jd": ("lambda_",),
    "odls": ("Delta",),
    "jf": ("lambda_max", "epsilon"),
    "nf": ("velocity_bound",),
    "svf": ("nu", "sigma0"),
    "tpinv": ("truncation",),
    "sd": ("gamma_max",),
    "sdls": ("gamma_max",),
    "max": ("largest_change",),
    "norm": ("Delta",),
    "clamp": ("D_max",),
    "halve": ("halving",),
    "gp": ("objective", "mu"),
    "ta": ("objective", "mu", "w_c"),
    "tp": ("margin", "mu"),
    "ctp": ("margin",),
    AUTO: ("error_gain",),
}
OF_ALL = ("alpha",)
STEPS = 200  # of a slider, at least
WIDE = 5.0  # times the default: how far a slider goes where the range is wider
NEEDS_MORE = ("obstacle",)  # objectives that a slider cannot tell all about


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


def tunable(method: str, given: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """What may be changed of a method and of how its controller follows.

    Args:
        method: A name from :func:`dls_ik.method_names`.
        given: Values by name that differ from the defaults.
    """
    choice = parse_method(method)
    names = [name for part in choice.name.split("+") for name in OF_PART.get(part, ())]
    declared = {f.name: f for f in fields(SolverOptions)}
    start = {**dict(choice.defaults), **given}
    rows = [_parameter(declared[name], start) for name in (*dict.fromkeys(names), *OF_ALL)]
    stuck = {f.name: f for f in fields(ControllerOptions)}["when_stuck"]
    return (*rows, _parameter(stuck, given))


def _parameter(option: "Field[Any]", given: Mapping[str, Any]) -> Parameter:
    about = option.metadata
    value = given.get(option.name, option.default)
    if "choices" in about:
        choices = tuple(choice for choice in about["choices"] if choice not in NEEDS_MORE)
        return Parameter(option.name, value, about["text"], choices=choices)
    low, high = slider_range(value, *about["range"])
    return Parameter(option.name, value, about["text"], about["unit"], low, high)


def slider_range(value: float, low: float, high: float) -> tuple[float, float]:
    """A range about a value to move a slider in: the whole one, if it is not much wider."""
    reach = WIDE * abs(value) or 1.0
    unit = 10.0 ** math.floor(math.log10(reach))
    top = min(high, round(reach / unit + 0.4) * unit)
    return (0.0 if low <= 0.0 else max(low, slider_step(top))), top


def slider_step(top: float) -> float:
    """How finely a slider moves that ends there: a power of ten."""
    return float(10.0 ** math.floor(math.log10(top / STEPS)))
