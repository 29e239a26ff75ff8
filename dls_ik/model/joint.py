"""Joints of a tree, and joint values and intervals checked against them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import JointValueError, LimitsError, RobotModelError
from dls_ik.model.rotations import (
    EXACT,
    nearest_rotation,
    not_a_rotation,
    rotation_about,
    roughness,
    transform,
)
from dls_ik.text import listing, quoted

DRIVEN_KINDS = ("revolute", "continuous", "prismatic")  # moved by one value
KINDS = (*DRIVEN_KINDS, "fixed", "floating", "planar")
SHORTEST_AXIS = 1e-9
ROUGHNESS = 1e-6  # how far from orthonormal the rotation of an origin may be
FARTHEST = 1e9  # [m] of an origin, as of a pose in core/se3.py, which needs numba


class Mimic(NamedTuple):
    """value = multiplier * value of the master + offset."""

    master: str
    multiplier: float = 1.0
    offset: float = 0.0  # [rad or m]


def _z() -> Array:
    return np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Joint:
    """One joint of a tree, checked on construction.

    The axis is normalised. A continuous joint has no position limits, whatever is given. A
    velocity of 0 means that none is known, as in many robot descriptions: no limit.

    Raises:
        RobotModelError: an unknown kind, a number that is not finite, an origin that is not rigid
            or too far away, a zero-length axis, limits that are missing or crossed, a negative
            velocity. The message names the joint.
    """

    name: str
    kind: str  # one of KINDS
    parent: str  # link
    child: str  # link
    origin: Array = field(default_factory=lambda: np.eye(4))  # (4, 4) T_parent_joint at value 0
    axis: Array = field(default_factory=_z)  # (3,) unit, in the joint's frame
    lower: float = -math.inf  # [rad or m]
    upper: float = math.inf  # [rad or m]
    velocity: float = math.inf  # [rad/s or m/s]
    mimic: Mimic | None = None
    flaw: str = ""  # why no chain can move it: it stands at 0, and limits count for nothing

    def __post_init__(self) -> None:
        """Check and normalise."""
        if self.kind not in KINDS:
            raise self.error(f"unknown type {self.kind!r}; known: {listing(KINDS)}")
        self._set("origin", self._finite("origin", self.origin, (4, 4)))
        if np.abs(self.origin).max() > FARTHEST:
            raise self.error(f"its origin is beyond {FARTHEST:g} m: {self.origin[:3, 3].tolist()}")
        self._set("origin", self._rigid(self.origin))
        self._set("axis", self._unit_axis() if self.is_driven else _z())
        self._set_limits()
        self._set_velocity()
        if self.mimic is not None and not all(map(math.isfinite, self.mimic[1:])):
            raise self.error("mimic multiplier and offset must be finite")

    @property
    def is_driven(self) -> bool:
        """Whether one value moves this joint."""
        return self.kind in DRIVEN_KINDS

    def error(self, message: str) -> RobotModelError:
        """An error that names this joint."""
        return RobotModelError(f"joint {self.name!r}: {message}")

    def motion(self, value: float) -> Array:
        """The (4, 4) motion of the child by ``value`` [rad or m], in the joint's frame."""
        if not self.is_driven:
            return np.eye(4)
        if self.kind == "prismatic":
            return transform(translation=value * self.axis)
        return transform(rotation_about(self.axis, value))

    def _set(self, name: str, value: object) -> None:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(self, name, value)

    def _finite(self, what: str, given: Array, shape: tuple[int, ...]) -> Array:
        values = np.array(given, dtype=np.float64)
        if values.shape != shape or not np.isfinite(values).all():
            raise self.error(
                f"{what} must be {shape} finite numbers, given {quoted(values.tolist())}"
            )
        return values

    def _rigid(self, T: Array) -> Array:
        """The origin with an exact rotation."""
        off = roughness(T[:3, :3])
        if not off <= ROUGHNESS or (T[3] != (0.0, 0.0, 0.0, 1.0)).any():
            reason = "" if off <= ROUGHNESS else f": {not_a_rotation(T[:3, :3], ROUGHNESS)}"
            raise self.error(
                f"its origin is a rigid transform (4, 4), not {quoted(T.tolist())}{reason}"
            )
        return T if off <= EXACT else transform(nearest_rotation(T[:3, :3]), T[:3, 3])

    def _unit_axis(self) -> Array:
        axis = self._finite("axis", self.axis, (3,))
        length = math.hypot(*axis)
        if length < SHORTEST_AXIS:
            raise self.error(f"zero-length axis {axis.tolist()}")
        if not math.isfinite(length):
            raise self.error(f"axis {axis.tolist()} is too long")
        return axis / length

    def _set_limits(self) -> None:
        if self.kind not in ("revolute", "prismatic"):
            self._set("lower", -math.inf)
            self._set("upper", math.inf)
            return
        if self.flaw:
            self._set("lower", 0.0)
            self._set("upper", 0.0)
            return
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            hint = "; without limits it is 'continuous'" if self.kind == "revolute" else ""
            raise self.error(
                f"a {self.kind} joint needs finite limits, given {self.lower} to {self.upper}{hint}"
            )
        if not math.isfinite(self.upper - self.lower):
            raise self.error(f"the range {self.lower} to {self.upper} is not finite")
        if self.upper < self.lower:
            raise self.error(f"upper limit {self.upper} is below lower limit {self.lower}")

    def _set_velocity(self) -> None:
        if math.isnan(self.velocity) or self.velocity < 0.0:
            raise self.error(f"velocity limit {self.velocity} must not be negative or nan")
        self._set("velocity", float(self.velocity) or math.inf)


def resolve_mimics(joints: Mapping[str, Joint]) -> tuple[dict[str, Mimic], dict[str, str]]:
    """The independent joint behind every driven joint, itself where it follows nothing.

    Returns:
        That by joint; and, for joints without one, why: they have a flaw, or follow an unknown
        joint, one that no value moves, or themselves.
    """
    drives: dict[str, Mimic] = {}
    broken: dict[str, str] = {}
    for joint in joints.values():
        if joint.is_driven:
            _resolve(joint, joints, drives, broken)
    return drives, broken


def _resolve(
    joint: Joint, joints: Mapping[str, Joint], drives: dict[str, Mimic], broken: dict[str, str]
) -> None:
    """Climb from a joint to a resolved master, then fill in the drives on the way back."""
    waiting: dict[str, Joint] = {}
    try:
        while joint.name not in drives:
            if joint.flaw:
                broken.setdefault(joint.name, str(joint.error(joint.flaw)))
            if joint.name in broken:
                raise RobotModelError(broken[joint.name])
            if joint.mimic is None:
                drives[joint.name] = Mimic(joint.name)
                break
            if joint.name in waiting:
                raise joint.error(f"mimic cycle through {listing(waiting)}")
            waiting[joint.name] = joint
            joint = _master(joint, joint.mimic, joints)
        for follower in reversed(waiting.values()):
            drives[follower.name] = _compose(follower, drives)
    except RobotModelError as error:
        broken.update({name: str(error) for name in waiting if name not in drives})


def _master(joint: Joint, mimic: Mimic, joints: Mapping[str, Joint]) -> Joint:
    master = joints.get(mimic.master)
    if master is None:
        raise joint.error(f"mimics the unknown joint {mimic.master!r}; joints: {listing(joints)}")
    if not master.is_driven:
        raise joint.error(f"mimics {mimic.master!r}, a {master.kind} joint, which has no value")
    return master


def _compose(joint: Joint, drives: Mapping[str, Mimic]) -> Mimic:
    if joint.mimic is None:
        return Mimic(joint.name)
    name, multiplier, offset = joint.mimic
    above = drives[name]
    scale, shift = multiplier * above.multiplier, multiplier * above.offset + offset
    if not (abs(scale) <= FARTHEST and abs(shift) <= FARTHEST):
        raise RobotModelError(
            f"joint {joint.name!r}: mimic multiplier or offset overflows: beyond {FARTHEST:g}"
        )
    return Mimic(above.master, scale, shift)


TURN = 2.0 * np.pi


def checked_values(q: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    """Joint values as contiguous, writable float64: (n,), or a batch (b, n).

    Raises:
        JointValueError: not numbers, the wrong length, or not finite; the message says what was
            given, and names the joint.
    """
    try:
        given = np.asarray(q)
        if given.dtype.kind in "cmM":  # NumPy would leave out the imaginary part, or count seconds
            raise TypeError(f"{given.dtype} is no real number")
        values = np.require(given, np.float64, ["C", "W", "A"])
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"joint values must be numbers: {error}") from error
    if values.ndim not in (1, 2) or values.shape[-1] != len(joint_names):
        raise JointValueError(
            f"expected {len(joint_names)} joint values ({listing(joint_names)}), "
            f"given the shape {values.shape}"
        )
    if not np.isfinite(values).all():
        at = tuple(np.argwhere(~np.isfinite(values))[0])
        raise JointValueError(
            f"joint {joint_names[at[-1]]!r} has the value {values[at]}, which is not finite"
        )
    return values


def checked_configuration(q: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    """One configuration (n,), as :func:`checked_values` has it.

    Raises:
        JointValueError: as :func:`checked_values`; a batch.
    """
    values = checked_values(q, joint_names)
    if values.ndim != 1:
        raise JointValueError(
            f"expected one configuration of {len(joint_names)} joint values, "
            f"given the shape {values.shape}"
        )
    return values


def narrowed_limits(
    joint_names: tuple[str, ...],
    limits: tuple[Array, Array],
    turns: NDArray[np.bool_],
    lower: ArrayLike,
    upper: ArrayLike,
    near: ArrayLike | None,
) -> tuple[Array, Array]:
    """What limits and intervals have in common, (n,) each, read-only.

    Args:
        limits: (n,) each [rad or m].
        turns: (n,) joints that turn freely, or did before they were narrowed.
        lower: As of :meth:`dls_ik.RobotModel.narrowed`, and so are upper and near.

    Raises:
        LimitsError: as :meth:`dls_ik.RobotModel.narrowed`.
    """
    low, high = _bounds(joint_names, lower, -np.inf), _bounds(joint_names, upper, np.inf)
    n = len(joint_names)
    middle = np.zeros(n) if near is None else checked_configuration(near, joint_names)
    columns = (each.tolist() for each in (*limits, low, high, middle, turns))
    narrowed = np.array([_common(*row) for row in zip(joint_names, *columns, strict=True)]).T.copy()
    narrowed.flags.writeable = False
    return narrowed[0], narrowed[1]


def _bounds(joint_names: tuple[str, ...], values: Any, none: float) -> Array:
    """(n,) of one number or n."""
    n = len(joint_names)
    try:
        bounds = np.array(np.broadcast_to(np.array(values, np.float64), (n,)))
    except (TypeError, ValueError, OverflowError):
        bounds = np.full(n, np.nan)
    if np.isnan(bounds).any() or (bounds == -none).any():
        raise LimitsError(
            f"limits are one number, or one for each of the {n} joints "
            f"({listing(joint_names)}), {none} for none, not {quoted(values)}"
        )
    return bounds


def _common(
    name: str, lower: float, upper: float, low: float, high: float, near: float, turns: bool
) -> tuple[float, float]:
    """What a joint keeps of its limits: where [low, high], or that some turns on, is too."""
    if high < low:
        raise LimitsError(f"joint {name!r}: the lower limit {low} is above the upper one {high}")
    if turns and high - low >= TURN:
        return lower, upper
    if turns and max(abs(low), abs(high)) > FARTHEST:  # a turn has few digits left
        raise LimitsError(
            f"joint {name!r}: the interval [{low}, {high}] is beyond {FARTHEST:g} rad, where "
            "numbers are too coarse for angles"
        )
    if turns:
        shift = _shift(low, high, lower, upper, near)
        low, high = low + shift, high + shift
    if max(low, lower) > min(high, upper):
        raise LimitsError(
            f"joint {name!r}: its limits [{lower}, {upper}] and the interval [{low}, {high}] have "
            "nothing in common"
        )
    return max(low, lower), min(high, upper)


def _shift(low: float, high: float, lower: float, upper: float, near: float) -> float:
    """Whole turns [rad] that bring an interval to a value, or to limits that are there already."""
    if not np.isfinite(upper - lower):
        return float(TURN * np.round((near - 0.5 * (low + high)) / TURN))
    nearest = np.round((0.5 * (lower + upper) - 0.5 * (low + high)) / TURN)
    shifts = TURN * (nearest + np.array([0.0, -1.0, 1.0]))
    shared = np.minimum(high + shifts, upper) - np.maximum(low + shifts, lower)
    return float(shifts[np.argmax(shared)])
