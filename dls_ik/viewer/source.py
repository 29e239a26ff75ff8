# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sources of motion for the page: the interface, and arms that this process simulates.

A source is an arm that follows a target. The page uses a source through the interface
:class:`Source` only, and shows no widgets for features that a source does not have. The source for
the arm of a running node is :class:`dls_ik.ros.viewer_source.NodeSource`.
"""

import math
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import Field, fields
from typing import Any, NamedTuple, Protocol

import numpy as np

from dls_ik.core.types import Array, TaskParams
from dls_ik.errors import DlsIkError, MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.local_ik import LocalIk, default_method
from dls_ik.servo.options import HOLD, ControllerOptions, motion_limits, split_options
from dls_ik.solver.hard_paths import BARE_STEP_DURATION
from dls_ik.solver.method import AUTO_METHOD, method_names, parse_method
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.plugins import plugin_names
from dls_ik.solver.problem import clamp_bound, largest_errors
from dls_ik.solver.stepper import Stepper, paced_stepper
from dls_ik.solver.task import Tasks, is_full_pose
from dls_ik.viewer.gains import directional_gains
from dls_ik.viewer.redundancy import Redundancy


class Sample(NamedTuple):
    """State of an arm, and its target, at one time."""

    time: float  # argument of :meth:`Source.step` [s]
    q: Array  # (n,) [rad or m]
    velocity: Array  # (n,) joint velocities [rad/s or m/s]
    T_tip: Array  # (4, 4) T_base_tip, (k, 4, 4) for k tips
    T_target: Array | None  # T_base_target, with the shape of T_tip; None without a target
    position_error: float  # [m]; NaN without a target
    rotation_error: float  # [rad]; NaN without a target
    state: str  # name of a :class:`dls_ik.servo.ServoState`
    message: str  # one sentence about the state
    J: Array | None = None  # (r, n) scaled Jacobian of the task; None for the full pose of one tip


class TunableParameter(NamedTuple):
    """Parameter that a person can change on the page: a number in a range, or a choice."""

    name: str
    value: Any
    description: str
    unit: str = ""
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()  # valid values; if empty, low and high are the valid range


class Source(Protocol):
    """Arm that follows a target.

    One thread calls :meth:`step`; any thread may call the other methods. A method that rejects its
    arguments raises a DlsIkError with the reason and changes nothing.
    """

    robot: RobotModel

    @property
    def name(self) -> str:
        """Name of the arm in the legend, such as its method."""

    @property
    def methods(self) -> Sequence[str]:
        """Names of the methods that can be chosen; empty if there is no choice."""

    @property
    def method(self) -> str:
        """Name of the current method; empty if unknown."""

    @property
    def parameters(self) -> Sequence[TunableParameter]:
        """Parameters of the current method that a person can change."""

    @property
    def can_place(self) -> bool:
        """Whether :meth:`place` can set joint positions at once; False for a real arm."""

    @property
    def is_remote(self) -> bool:
        """Whether the arm is in another process.

        Such an arm can be paused, and may also receive targets from other senders.
        """

    @property
    def bare(self) -> bool | None:
        """Whether the arm makes bare steps of its method; None without a choice.

        A bare step is one step of the method itself, without the limits of a controller.
        """

    def set_bare(self, bare: bool) -> None:
        """Make bare steps (see :attr:`bare`) if `bare` is true; otherwise use a controller."""

    def set_target(self, T: Array) -> None:
        """Follow the target ``T_base_tip`` (4, 4), or (k, 4, 4) for k tips, until the next call."""

    def step(self, now: float) -> Sample | None:
        """Advance the arm to the time `now` [s] of a steady clock, and return its state.

        An arm in another process is not advanced; its latest known state is returned, or None if no
        state is known.
        """

    def set_method(self, method: str) -> None:
        """Use another method, given by name, from the current state of the arm."""

    def set_parameter(self, name: str, value: Any) -> None:
        """Change the value of one of the :attr:`parameters`."""

    def place(self, q: Array) -> None:
        """Set the joint positions (n,) [rad or m] without motion; clear velocity and target."""

    def pause(self, paused: bool) -> None:
        """Stop the arm and ignore targets if `paused` is true; otherwise resume the motion."""

    def reset(self) -> None:
        """Clear the target and faults; return to the initial configuration if ``can_place``."""

    @property
    def redundancy(self) -> Redundancy | None:
        """Levels and frozen joints of the arm; None if the page cannot change them."""

    @property
    def level_errors(self) -> tuple[float, ...]:
        """Norm of the scaled error of each level, that of the tips first; () without levels."""

    def set_redundancy(self, wanted: Redundancy) -> None:
        """Change levels and frozen joints; the motion continues from its current state."""

    def gains(self, q: Array, size: float) -> Array | None:
        """Return the gains (k,) of the current method along the singular directions at q.

        See :func:`dls_ik.viewer.gains.directional_gains`. Return None if the gains are not known.

        Args:
            q: (n,) joint positions [rad or m].
            size: Norm of the error along each singular direction [m].
        """

    def close(self) -> None:
        """Release the threads and connections of the arm."""


# Arms that this process simulates

MAX_CYCLE, MIN_CYCLE = 0.1, 1e-4  # [s] limits of the time step, which is clipped
# The arm holds, instead of planning, where a method makes no progress, so that a person sees it.
DEFAULT_PARAMETERS = {"when_stuck": HOLD}

TUNABLE = {  # options of each component of a method's name
    "ed": ("error_gain",),
    "ied": ("error_gain", "omega"),
    "dls": ("lambda_",),
    "jd": ("lambda_",),
    "odls": ("Delta",),
    "jf": ("lambda_max", "epsilon"),
    "nf": ("velocity_bound",),
    "nfd": ("lambda_", "lambda_max", "epsilon"),
    "quik": ("D_max", "lambda_"),
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
    "idv": ("margin",),
    "cns": ("margin",),
    "srtp": ("objective", "mu"),
    "sns": ("largest_change",),
    "hqp": ("largest_change",),
    AUTO_METHOD: ("error_gain",),
}
TUNABLE_ALWAYS = ("alpha",)
SLIDER_STEPS = 200  # minimum number of steps of a slider
SLIDER_SPAN = 5.0  # maximum of a slider relative to the value, even if larger values are valid
NOT_TUNABLE = ("obstacle",)  # choices that are not offered, because they need further options
NO_LEVELS = Redundancy()


class _Controlled:
    """Motion by a controller with its planner, within all limits, to full poses of one tip."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.method = controller.method

    @property
    def q(self) -> Array:
        return self.controller.command

    def seed(self, q: Array) -> None:
        self.controller.reset()
        self.controller.seed(q)

    @property
    def level_errors(self) -> tuple[float, ...]:
        return self.controller.level_errors

    def change_targets(self, swivel: float | None, posture: Mapping[str, float]) -> None:
        if swivel is not None:
            self.controller.set_swivel(swivel)
        if posture:
            self.controller.set_posture(posture)

    def step(self, T: Array | None, now: float, dt: float) -> Sample:
        """Run one cycle of the controller, and return the state of the arm.

        Args:
            T: New target T_base_tip (4, 4); None leaves the target unchanged.
            now: Time of the cycle [s].
            dt: Duration of the cycle [s].

        Raises:
            MethodError: If the method is a plug-in, and the controller is in the state FAULT.
        """
        if T is not None:
            self.controller.follow_pose(T, now)
        out = self.controller.cycle(now, dt)
        if out.state is ServoState.FAULT and parse_method(self.method).plugin is not None:
            self.controller.reset()
            raise MethodError(out.message)
        errors = (out.position_error, out.rotation_error)
        T_tip = self.controller.robot.fk(out.q)
        return Sample(
            now, out.q, out.velocity, T_tip, out.T_d, *errors, out.state.name, out.message
        )


class _Limited:
    """Motion by the local step of the controller, without its planner; any task, several tips."""

    def __init__(self, local_ik: LocalIk, probe: Stepper) -> None:
        self._local_ik, self._probe = local_ik, probe
        self.method = local_ik.method

    @property
    def q(self) -> Array:
        return self._local_ik.q

    def seed(self, q: Array) -> None:
        self._local_ik.reset(q)

    @property
    def level_errors(self) -> tuple[float, ...]:
        lower = self._local_ik.lower_levels
        return () if lower is None else lower.residuals

    def change_targets(self, swivel: float | None, posture: Mapping[str, float]) -> None:
        lower = self._local_ik.lower_levels
        if lower is not None and swivel is not None:
            lower.set_swivel(swivel)
        if lower is not None and posture:
            lower.set_posture(posture)

    def step(self, T: Array | None, now: float, dt: float) -> Sample:
        before = self._local_ik.q
        out = self._local_ik.step(T, dt)
        errors = out.position_error, out.rotation_error
        state = ServoState.WAITING if T is None else ServoState.FOLLOWING
        if self._local_ik.is_reached(*errors):
            state = ServoState.REACHED
        return sample_at(self._probe, now, out.q, (out.q - before) / dt, T, state)


class _Bare:
    """Motion by one bare step of the method per call, without the limits of a controller."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self.method = stepper.method

    @property
    def q(self) -> Array:
        return self._stepper.q

    def seed(self, q: Array) -> None:
        self._stepper.reset(q)

    @property
    def level_errors(self) -> tuple[float, ...]:
        return ()

    def change_targets(self, swivel: float | None, posture: Mapping[str, float]) -> None:
        pass  # a step of a method knows no levels

    def step(self, T: Array | None, now: float, dt: float) -> Sample:
        before = self._stepper.q
        if T is not None:
            self._stepper.step(T)
        q = self._stepper.q
        state = ServoState.WAITING if T is None else ServoState.FOLLOWING
        message = "" if T is None else BARE
        return sample_at(self._stepper, now, q, (q - before) / dt, T, state, message)


_Motion = _Controlled | _Limited | _Bare  # kinds of motion toward a target
BARE = "bare steps, without limits"


def sample_at(
    probe: Stepper,
    now: float,
    q: Array,
    velocity: Array,
    T: Array | None,
    state: ServoState,
    message: str = "",
) -> Sample:
    """Compute the state of an arm, with the errors and the Jacobian of its task.

    Args:
        probe: Stepper with the task of the arm, used for errors and Jacobian only.
        now: Time [s].
        q: Joint positions (n,) [rad or m].
        velocity: Joint velocities (n,) [rad/s or m/s].
        T: Target (4, 4), or (k, 4, 4) for k tips; None without a target.
        state: State to show.
        message: Sentence about the state.
    """
    probe.q = q
    errors = (math.nan, math.nan)
    if T is not None:
        errors = task_errors(probe.details.task, probe.error(T))
    T_tip, J = probe.robot.fk(q), probe.jacobian(T)
    return Sample(now, q, velocity, T_tip, T, *errors, state.name, message or state.message(""), J)


def task_errors(task: TaskParams, e: Array) -> tuple[float, float]:
    """Return the maximum position error [m] and rotation error [rad] over all tips.

    The error is NaN for a component, position or rotation, that is not part of the task.

    Args:
        task: Task with k tips.
        e: (r,) scaled error of the task.
    """
    counts = np.isin((0, 1), task.component // 3)
    position, rotation = np.where(counts, largest_errors(task, e), np.nan).tolist()
    return position, rotation


# methods of this package
FOLLOWERS = tuple(name for name in method_names() if not parse_method(name).follows_no_target)


def follower_names() -> tuple[str, ...]:
    """Return the names of all methods that can follow a target, including registered plug-ins."""
    return (*FOLLOWERS, *plugin_names())


class LocalSource:
    """Arm that is simulated in this process, and follows the target by a method.

    A :class:`dls_ik.servo.Controller` follows full poses of one tip, as in the node. For other
    tasks, or several tips, only the local step of the controller is used, without its planner. If
    bare steps are chosen, each call of ``step`` makes one step of a :class:`dls_ik.Stepper`,
    without limits, levels and frozen joints.

    Args:
        robot: Kinematic chain.
        method: Name from :func:`dls_ik.method_names`; default: the default of the controller.
        start: (n,) initial joint positions [rad or m]; default: 0, or the limit closest to 0.
        task: Task of the tips, see :class:`dls_ik.IkSolver`.
        redundancy: Levels below the task of the tips, and frozen joints.
        options: Options of the controller and its method.

    Raises:
        MethodError, OptionError, JointValueError: If :class:`dls_ik.servo.Controller` raises it.
    """

    can_place = True
    is_remote = False

    def __init__(
        self,
        robot: RobotModel,
        method: str | None = None,
        start: Array | None = None,
        task: Tasks = None,
        redundancy: Redundancy = NO_LEVELS,
        **options: Any,
    ) -> None:
        self.robot, self.task = robot, task
        self.bare = False
        self.redundancy: Redundancy = redundancy
        self._executor = ThreadPoolExecutor(1, "solver")
        self._lock = threading.Lock()
        self._target: Array | None = None
        self._last_step: float | None = None  # [s] time of the last step
        self._gain_stepper: Stepper | None = None  # stepper of `gains`; created when first needed
        self._failure = ""  # error of a plug-in that failed and was replaced by the default method
        options = {**DEFAULT_PARAMETERS, **options}
        self._use(self._build(method, options, bare=False), options)
        self._start = self._motion.q if start is None else start
        self.place(self._start)

    @property
    def methods(self) -> Sequence[str]:
        """Names of all methods that can follow a target, including plug-ins registered so far."""
        return follower_names()

    @property
    def method(self) -> str:
        """Name of the current method."""
        return self._motion.method

    name = method

    def set_target(self, T: Array) -> None:
        """Follow the target T_base_tip (4, 4), or (k, 4, 4) for k tips."""
        self._target = T.copy()

    def step(self, now: float) -> Sample:
        """Run one cycle at the time `now` [s] of a steady clock, and return the new state."""
        with self._lock:
            dt = MIN_CYCLE if self._last_step is None else round(now - self._last_step, 9)
            self._last_step = now
            if self.bare and dt <= MIN_CYCLE:
                dt = BARE_STEP_DURATION
            dt = min(max(dt, MIN_CYCLE), MAX_CYCLE)
            try:
                sample = self._move(now, dt)
            except MethodError as error:  # a plug-in failed; continue with the default method
                self._failure = f"{error}; using {default_method(self.robot)} instead"
                self._use_method(default_method(self.robot), self._options, self.bare)
                sample = self._move(now, dt)
            return sample._replace(message=self._failure) if self._failure else sample

    def _move(self, now: float, dt: float) -> Sample:
        """Advance the arm by `dt` [s] to the time `now` [s], and return its new state."""
        return self._motion.step(self._target, now, dt)

    def set_method(self, method: str) -> None:
        """Use another method from the current state of motion."""
        self._replace(method, self._options, self.bare)

    def set_parameter(self, name: str, value: Any) -> None:
        """Set an option of the method or of the controller."""
        self._replace(self.method, {**self._options, name: value}, self.bare)

    def set_bare(self, bare: bool) -> None:
        """Make bare steps if `bare` is true; otherwise use a controller with limits.

        The motion continues from the current joint positions.
        """
        if bare != self.bare:
            self._replace(self.method, self._options, bare)

    @property
    def level_errors(self) -> tuple[float, ...]:
        """Norm of the scaled error of each level, that of the tips first; () without levels."""
        return self._motion.level_errors

    def set_redundancy(self, wanted: Redundancy) -> None:
        """Change levels and frozen joints; the motion continues from its current state."""
        with self._lock:
            before, self.redundancy = self.redundancy, wanted
            if wanted.has_form_of(before):
                posture = wanted.posture(self.robot.joint_names)
                self._motion.change_targets(wanted.swivel, posture)
                return
            try:
                self._use_method(self.method, self._options, self.bare)
            except DlsIkError:
                self.redundancy = before
                raise

    def place(self, q: Array) -> None:
        """Set the joint positions (n,) [rad or m] without motion, and discard the target."""
        values = self.robot.validated_one(q)
        with self._lock:
            self._target = None
            self._motion.seed(values)

    def pause(self, paused: bool) -> None:
        """Do nothing; a session pauses a simulated arm by stopping the session's clock."""

    def reset(self) -> None:
        """Return to the initial configuration without motion, and discard the target."""
        self.place(self._start)

    def gains(self, q: Array, size: float) -> Array | None:
        """Return the gains (k,) of the current method along the singular directions at q.

        See :func:`dls_ik.viewer.gains.directional_gains`. Return None if a plug-in method fails.

        Args:
            q: (n,) joint positions [rad or m].
            size: Norm of the error along each singular direction [m].
        """
        with self._lock:
            if self._gain_stepper is None:
                self._gain_stepper = self._stepper(self.method, self._options)
            with suppress(MethodError):
                return directional_gains(self._gain_stepper, q, size)
            return None

    def wait_for_planner(self) -> None:
        """Wait until the thread in which the arm solves and plans has finished its work so far."""
        if isinstance(self._motion, _Controlled):
            self._executor.submit(lambda: None).result()

    def close(self) -> None:
        """Stop the thread in which the arm solves and plans."""
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _replace(self, method: str, options: Mapping[str, Any], bare: bool) -> None:
        with self._lock:
            self._use_method(method, options, bare)
            self._failure = ""

    def _use_method(self, method: str, options: Mapping[str, Any], bare: bool) -> None:
        old, new = self._motion, self._build(method, options, bare)
        if isinstance(old, _Controlled) and isinstance(new, _Controlled):
            new.controller.take_over(old.controller)
        else:
            new.seed(old.q)
        self.bare = bare
        self._use(new, options)

    def _use(self, motion: _Motion, options: Mapping[str, Any]) -> None:
        self._motion, self._options = motion, dict(options)
        self._gain_stepper = None
        shown = {**dict(parse_method(motion.method).defaults), **options}
        if shown.get("D_max") is None:
            bound = clamp_bound(self.robot, SolverOptions())
            shown["D_max"] = bound if math.isfinite(bound) else None  # None: no slider
        rows = tunable_parameters(motion.method, shown)
        has_planner = isinstance(motion, _Controlled)
        self.parameters = tuple(row for row in rows if has_planner or row.name != "when_stuck")

    def _build(self, method: str | None, options: Mapping[str, Any], bare: bool) -> _Motion:
        robot, task = self.robot, self.task
        name = method or default_method(robot)
        wanted: Any = self.redundancy.with_tips(task)
        more: dict[str, Any] = {"task": wanted, "frozen_joints": self.redundancy.frozen}
        if not bare and is_full_pose(robot, task):
            return _Controlled(Controller(robot, name, self._executor, **more, **options))
        stepper = self._stepper(name, options)
        if bare:
            return _Bare(stepper)
        own, method_options = split_options(options)
        acceleration, _ = motion_limits(own, robot)
        local_ik = LocalIk(robot, name, acceleration=acceleration, **more, **method_options)
        return _Limited(local_ik, stepper)

    def _stepper(self, method: str, options: Mapping[str, Any]) -> Stepper:
        """Return a stepper that makes steps of a method without the controller around it.

        The stepper starts at joint positions 0, clipped to the joint limits.

        Args:
            method: Name of the method.
            options: Options of the controller and the method; the controller's are ignored.
        """
        q = self.robot.clip(np.zeros(self.robot.n))
        own = split_options(options)[1]
        return paced_stepper(self.robot, method, q, BARE_STEP_DURATION, self.task, own)


def check_follows(method: str) -> str:
    """Check that a method can follow a target, and return its name.

    Raises:
        MethodError: If the method is unknown, or can only solve for a pose.
    """
    choice = parse_method(method)
    if choice.follows_no_target:
        raise MethodError(f"method {choice.name!r} can only solve for poses; it follows no target")
    return choice.name


def tunable_parameters(method: str, given: Mapping[str, Any]) -> tuple[TunableParameter, ...]:
    """Return the options of a method and of the controller that a person can change on the page.

    Args:
        method: Name from :func:`dls_ik.method_names`.
        given: Values of options that differ from the defaults, by name. Options whose
            value would be None, because the robot determines it, are omitted.
    """
    choice = parse_method(method)
    names = [name for part in choice.name.split("+") for name in TUNABLE.get(part, ())]
    options = {f.name: f for f in (*fields(SolverOptions), *fields(ControllerOptions))}
    values = {**dict(choice.defaults), **given}
    chosen = dict.fromkeys((*names, *TUNABLE_ALWAYS))
    rows = [
        _parameter(options[name], values)
        for name in chosen
        if values.get(name, options[name].default) is not None
    ]
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
    """Return the range of a slider for a parameter.

    The range is that of the valid values, from `low` to `high`, but extends at most to SLIDER_SPAN
    times the current value.
    """
    span = SLIDER_SPAN * abs(value) or 1.0
    unit = 10.0 ** math.floor(math.log10(span))
    top = min(high, round(span / unit + 0.4) * unit)
    return (0.0 if low <= 0.0 else max(low, slider_step(top))), top


def slider_step(top: float) -> float:
    """Return the step of a slider whose maximum is `top`; the step is a power of ten."""
    return float(10.0 ** math.floor(math.log10(top / SLIDER_STEPS)))
