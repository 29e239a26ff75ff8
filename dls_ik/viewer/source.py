"""Sources of motion for the page: the interface, and a controller in this process.

The page knows a source through :class:`Source` only and has no widgets for what the source lacks.
The other source is a running node, :class:`dls_ik.ros.viewer_source.NodeSource`.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import Field, fields
from typing import Any, NamedTuple, Protocol

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo import Controller
from dls_ik.servo.options import HOLD, ControllerOptions
from dls_ik.solver.method import AUTO, KDL, method_names, parse_method
from dls_ik.solver.options import SolverOptions


class Sample(NamedTuple):
    """State of an arm and of its target at a time."""

    time: float  # [s] on the clock of :meth:`Source.step`
    q: Array  # (n,) [rad or m]
    velocity: Array  # (n,) [rad/s or m/s]
    T_tip: Array  # (4, 4) T_base_tip
    T_target: Array | None  # (4, 4) T_base_target; None: no target
    position_error: float  # [m]; NaN without a target
    rotation_error: float  # [rad]; NaN without a target
    state: str  # name of a :class:`dls_ik.servo.ServoState`
    message: str  # one sentence about the state


class TunableParameter(NamedTuple):
    """A parameter to change in the page: a number in a range, or one of some choices."""

    name: str
    value: Any
    description: str
    unit: str = ""
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()  # if not empty, low and high do not count


class Source(Protocol):
    """An arm that follows a target.

    One thread calls :meth:`step`; any thread may call the rest. Methods that are refused raise a
    DlsIkError with the reason and change nothing.
    """

    robot: RobotModel

    @property
    def name(self) -> str:
        """Name in the legend, such as the method."""

    @property
    def methods(self) -> Sequence[str]:
        """Methods to choose from; empty: no choice."""

    @property
    def method(self) -> str:
        """Current method; empty: unknown."""

    @property
    def parameters(self) -> Sequence[TunableParameter]:
        """Parameters of the current method that can be changed."""

    @property
    def can_place(self) -> bool:
        """True if :meth:`place` works, as for an arm that is not real."""

    @property
    def is_remote(self) -> bool:
        """True if the arm is in another process: it can be paused, and others send targets too."""

    def set_target(self, T: Array) -> None:
        """Follow the pose ``T_base_tip`` (4, 4) until the next one."""

    def step(self, now: float) -> Sample | None:
        """Advance to a time [s] of a steady clock, or return the latest state; None: not known."""

    def set_method(self, method: str) -> None:
        """Continue with another method."""

    def set_parameter(self, name: str, value: Any) -> None:
        """Change one of :attr:`parameters`."""

    def place(self, q: Array) -> None:
        """Put the arm to joint values (n,) [rad or m], at rest and without a target."""

    def pause(self, paused: bool) -> None:
        """Stop and ignore targets, or resume."""

    def reset(self) -> None:
        """Clear target and faults; return to the start if the arm can be placed."""

    def close(self) -> None:
        """Release threads and connections."""


# A controller in this process

MAX_CYCLE, MIN_CYCLE = 0.1, 1e-4  # [s] a longer gap between steps is not caught up
DEFAULTS = {"when_stuck": HOLD}  # a dead end of a method is worth seeing

TUNABLE = {  # options by part of a method's name
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
TUNABLE_ALWAYS = ("alpha",)
SLIDER_STEPS = 200  # at least
SLIDER_SPAN = 5.0  # times the default, where the valid range is wider
NOT_TUNABLE = ("obstacle",)  # an objective that needs points


class LocalSource:
    """Follows the target with :class:`dls_ik.servo.Controller`, as a node does.

    Args:
        robot: a chain with one tip.
        method: a name from :func:`dls_ik.method_names`; default: the controller's.
        start: (n,) initial joint values [rad or m]; default: 0, or the limit next to it.
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
        self._executor = ThreadPoolExecutor(1, "solver")
        self._lock = threading.Lock()
        self._target: Array | None = None
        self._last_step: float | None = None  # [s]
        options = {**DEFAULTS, **options}
        self._use(Controller(robot, method, self._executor, **options), options)
        self._start = self._controller.command if start is None else start
        self.place(self._start)

    @property
    def name(self) -> str:
        """Current method, as the papers write it."""
        return self._controller.method

    method = name

    def set_target(self, T: Array) -> None:
        """Follow a pose (4, 4)."""
        self._target = T.copy()

    def step(self, now: float) -> Sample:
        """Run one cycle of the controller."""
        with self._lock:
            dt = MIN_CYCLE if self._last_step is None else now - self._last_step
            self._last_step = now
            controller, target = self._controller, self._target
            if target is not None:
                controller.follow_pose(target, now)
            out = controller.cycle(now, min(max(dt, MIN_CYCLE), MAX_CYCLE))
        errors = (out.position_error, out.rotation_error)
        T_tip = self.robot.fk(out.q)
        state = out.state.name
        return Sample(now, out.q, out.velocity, T_tip, out.T_d, *errors, state, out.message)

    def set_method(self, method: str) -> None:
        """Continue with another method from the current state of motion."""
        self._replace(method, self._options)

    def set_parameter(self, name: str, value: Any) -> None:
        """Change an option."""
        self._replace(self.method, {**self._options, name: value})

    def place(self, q: Array) -> None:
        """Put the arm to joint values (n,) at once."""
        values = self.robot.validated_one(q)
        with self._lock:
            self._target = None
            self._controller.reset()
            self._controller.seed(values)

    def pause(self, paused: bool) -> None:
        """Stop and ignore targets, or resume."""
        with self._lock:
            if paused:
                self._controller.pause()
            else:
                self._controller.resume()

    def reset(self) -> None:
        """Return to the start."""
        self.place(self._start)

    def close(self) -> None:
        """End the thread of the solver."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _replace(self, method: str, options: Mapping[str, Any]) -> None:
        with self._lock:
            controller = Controller(self.robot, method, self._executor, **options)
            controller.take_over(self._controller)
            self._use(controller, options)

    def _use(self, controller: Controller, options: Mapping[str, Any]) -> None:
        self._controller, self._options = controller, dict(options)
        self.parameters = tunable_parameters(controller.method, options)


def tunable_parameters(method: str, given: Mapping[str, Any]) -> tuple[TunableParameter, ...]:
    """List the options of a method, and of how the controller follows, that the page can change.

    Args:
        method: a name from :func:`dls_ik.method_names`.
        given: values by name that differ from the defaults.
    """
    choice = parse_method(method)
    names = [name for part in choice.name.split("+") for name in TUNABLE.get(part, ())]
    options = {f.name: f for f in (*fields(SolverOptions), *fields(ControllerOptions))}
    values = {**dict(choice.defaults), **given}
    rows = [_parameter(options[name], values) for name in dict.fromkeys((*names, *TUNABLE_ALWAYS))]
    return (*rows, _parameter(options["when_stuck"], given))


def _parameter(option: "Field[Any]", values: Mapping[str, Any]) -> TunableParameter:
    about = option.metadata
    value = values.get(option.name, option.default)
    if "choices" in about:
        choices = tuple(choice for choice in about["choices"] if choice not in NOT_TUNABLE)
        return TunableParameter(option.name, value, about["text"], choices=choices)
    low, high = slider_range(value, *about["range"])
    return TunableParameter(option.name, value, about["text"], about["unit"], low, high)


def slider_range(value: float, low: float, high: float) -> tuple[float, float]:
    """Return the range of a slider: the valid one, cut to a few times the value."""
    span = SLIDER_SPAN * abs(value) or 1.0
    unit = 10.0 ** math.floor(math.log10(span))
    top = min(high, round(span / unit + 0.4) * unit)
    return (0.0 if low <= 0.0 else max(low, slider_step(top))), top


def slider_step(top: float) -> float:
    """Return the step of a slider that ends at a value, a power of ten."""
    return float(10.0 ** math.floor(math.log10(top / SLIDER_STEPS)))
