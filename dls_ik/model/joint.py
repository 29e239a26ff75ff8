# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joints of a kinematic tree, and validation of joint positions and of limits given by users."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import JointValueError, LimitsError, RobotModelError
from dls_ik.model.rotations import rigid_transform, rotation_about, transform
from dls_ik.text import did_you_mean, listing, quoted

DRIVEN_KINDS = ("revolute", "continuous", "prismatic")  # kinds of joints with one joint position
JOINT_KINDS = (*DRIVEN_KINDS, "fixed", "floating", "planar")
MIN_AXIS_LENGTH = 1e-9
TURN = 2.0 * np.pi
TURN_TOLERANCE = 1e-2  # [rad] excess over a turn that counts as rounding

JointValues: TypeAlias = ArrayLike | Mapping[str, ArrayLike]  # array in joint order, or by name


class Mimic(NamedTuple):
    """Relation of a mimic joint to its master joint.

    The position of the mimic joint is multiplier * position of the master + offset.
    """

    master: str  # name of the master joint
    multiplier: float = 1.0
    offset: float = 0.0  # [rad or m]


def _z() -> Array:
    """Return the unit vector (0, 0, 1)."""
    return np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint of a kinematic tree, validated on construction.

    The axis is normalised. Position limits of a continuous joint are ignored. A velocity limit of
    0 means no limit, because many robot descriptions use 0 in this sense. A joint with a defect
    cannot be part of a chain, and its position is 0.

    Raises:
        RobotModelError: If the kind is unknown, a number is not finite, the origin is not a rigid
            transform or its translation is too large, the axis has zero length, the position limits
            of a revolute or prismatic joint are missing, the upper limit is below the lower limit,
            or the velocity limit is negative. The message names the joint.
    """

    name: str
    kind: str  # one of JOINT_KINDS
    parent: str  # name of the parent link
    child: str  # name of the child link
    origin: Array = field(default_factory=lambda: np.eye(4))  # (4, 4) T_parent_child at position 0
    axis: Array = field(default_factory=_z)  # (3,) unit vector in the joint frame
    lower: float = -math.inf  # [rad or m]
    upper: float = math.inf  # [rad or m]
    velocity: float = math.inf  # [rad/s or m/s]
    mimic: Mimic | None = None
    defect: str = ""  # reason why a chain cannot contain the joint; "" if there is no defect

    def __post_init__(self) -> None:
        """Validate and normalise the fields."""
        if self.kind not in JOINT_KINDS:
            raise self.error(f"unknown type {self.kind!r}; known types: {listing(JOINT_KINDS)}")
        try:
            self._set("origin", rigid_transform(self.origin, "its origin"))
        except ValueError as error:
            raise self.error(str(error)) from None
        self._set("axis", self._unit_axis() if self.is_driven else _z())
        if self.kind not in ("revolute", "prismatic"):
            self._set_limits(-math.inf, math.inf)
        elif self.defect:
            self._set_limits(0.0, 0.0)
        else:
            self._check_limits()
        if math.isnan(self.velocity) or self.velocity < 0.0:
            raise self.error(f"velocity limit must be at least 0; got {self.velocity}")
        self._set("velocity", float(self.velocity) or math.inf)
        if self.mimic is not None and not all(map(math.isfinite, self.mimic[1:])):
            raise self.error(f"mimic multiplier and offset must be finite; got {self.mimic[1:]}")

    @property
    def is_driven(self) -> bool:
        """Whether the joint is revolute, continuous or prismatic, so that it has one position."""
        return self.kind in DRIVEN_KINDS

    @property
    def content(self) -> tuple[Any, ...]:
        """Values of all fields, with arrays as lists, for comparison with another joint."""
        values = (getattr(self, each.name) for each in fields(self))
        return tuple((v + 0.0).tolist() if isinstance(v, np.ndarray) else v for v in values)

    def error(self, message: str) -> RobotModelError:
        """Return an error whose message names this joint."""
        return RobotModelError(f"joint {self.name!r}: {message}")

    def motion(self, value: float) -> Array:
        """Return the motion of the child link at a joint position as a transform (4, 4).

        The transform maps coordinates in the child frame at this joint position to coordinates in
        the child frame at joint position 0. Fixed, floating and planar joints return the identity.

        Args:
            value: Joint position [rad or m].
        """
        if not self.is_driven:
            return np.eye(4)
        if self.kind == "prismatic":
            return transform(translation=value * self.axis)
        return transform(rotation_about(self.axis, value))

    def _set(self, name: str, value: object) -> None:
        """Set a field of this frozen dataclass; an array becomes read-only."""
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(self, name, value)

    def _set_limits(self, lower: float, upper: float) -> None:
        self._set("lower", lower)
        self._set("upper", upper)

    def _unit_axis(self) -> Array:
        """Return the axis (3,) as a unit vector.

        Raises:
            RobotModelError: If the axis is not 3 finite numbers, or its length is zero or infinite.
        """
        axis = np.array(self.axis, np.float64)
        if axis.shape != (3,) or not np.isfinite(axis).all():
            raise self.error(f"axis must be 3 finite numbers; got {quoted(axis.tolist())}")
        length = math.hypot(*axis)
        if length < MIN_AXIS_LENGTH:
            raise self.error(f"axis must not have zero length; got {axis.tolist()}")
        if not math.isfinite(length):
            raise self.error(f"axis is too long; got {axis.tolist()}")
        return axis / length

    def _check_limits(self) -> None:
        """Check the position limits of a revolute or prismatic joint.

        Raises:
            RobotModelError: If a limit or the range is not finite, or the upper limit is below the
                lower limit.
        """
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            hint = "; use type 'continuous' for no limits" if self.kind == "revolute" else ""
            raise self.error(
                f"a {self.kind} joint needs finite limits; got {self.lower} to {self.upper}{hint}"
            )
        if not math.isfinite(self.upper - self.lower):
            raise self.error(f"the range from {self.lower} to {self.upper} is not finite")
        if self.upper < self.lower:
            raise self.error(f"upper limit {self.upper} is below lower limit {self.lower}")


def real_array(values: Any) -> Array:
    """Convert numbers to a contiguous, writable float64 array; copy them only if necessary.

    Raises:
        TypeError: If the values are not real numbers.
        ValueError: If the values are not numbers, or are nested sequences of unequal lengths.
        OverflowError: If an integer is too large for a float.
    """
    given = np.asarray(values)
    if given.dtype.kind in "cmM":  # NumPy would drop imaginary parts and convert times
        raise TypeError(f"{given.dtype} is not a real number")
    return np.require(given, np.float64, ["C", "W", "A"])


def ordered_values(q: Any, joint_names: tuple[str, ...], known: Collection[str] = ()) -> Any:
    """Return joint values that are given by name as an array (n,) or (b, n) in joint order.

    If `q` contains no names, it is returned unchanged.

    Args:
        q: Mapping of joint names to numbers or to arrays (b,); a message with ``name`` and
            ``position``, such as ``sensor_msgs/msg/JointState``; or any other value.
        joint_names: (n,) names of the joints in order.
        known: Names of other joints of the robot; their values are ignored.

    Raises:
        JointValueError: If a joint has no value, or a name is unknown.
    """
    if isinstance(q, np.ndarray):
        return q
    if not isinstance(q, Mapping):
        if not (hasattr(q, "name") and hasattr(q, "position")):
            return q
        q = dict(zip(q.name, q.position, strict=False))
    _refuse_unknown(q, joint_names, known)
    missing = [name for name in joint_names if name not in q]
    if missing:
        raise JointValueError(
            f"joint values by name need every joint of {listing(joint_names)}; missing: "
            f"{listing(missing)}"
        )
    try:
        return np.stack(np.broadcast_arrays(*(q[name] for name in joint_names)), axis=-1)
    except ValueError as error:
        raise JointValueError(f"joint values by name must be numbers or arrays: {error}") from error


def some_by_name(given: Mapping[str, Any], joint_names: tuple[str, ...], default: Any) -> list[Any]:
    """Return the values of joints as a list in joint order.

    Args:
        given: Values by joint name, for some or all joints.
        joint_names: Names of the joints in order.
        default: Value of the joints that are not in `given`.

    Raises:
        JointValueError: If a name in `given` is not in `joint_names`.
    """
    _refuse_unknown(given, joint_names)
    return [given.get(name, default) for name in joint_names]


def _refuse_unknown(
    given: Iterable[str], joint_names: tuple[str, ...], known: Collection[str] = ()
) -> None:
    """Check that all joint names in `given` are in `joint_names` or `known`.

    Raises:
        JointValueError: If a name is unknown.
    """
    for name in given:
        if name not in joint_names and name not in known:
            hint = did_you_mean(name, joint_names, "; {}")
            names = hint or f"; joints: {listing(joint_names)}"
            raise JointValueError(f"unknown joint {quoted(name)}{names}")


def checked_values(q: Any, joint_names: tuple[str, ...], known: Collection[str] = ()) -> Array:
    """Validate joint values, and return them as a contiguous, writable float64 array.

    The array has the shape (n,), or (b, n) for a batch of b configurations.

    Args:
        q: Values in joint order or by name; see :func:`ordered_values`.
        joint_names: (n,) names of the joints in order.
        known: Names of other joints of the robot; their values are ignored.

    Raises:
        JointValueError: If the values are not numbers, not finite, or of a wrong length; the
            message gives the value and names the joint.
    """
    q = ordered_values(q, joint_names, known)
    try:
        values = real_array(q)
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(
            f"joint values must be {len(joint_names)} numbers ({listing(joint_names)}), or a "
            f"mapping by name; got {quoted(q)}"
        ) from error
    if values.ndim not in (1, 2) or values.shape[-1] != len(joint_names):
        raise JointValueError(
            f"expected {len(joint_names)} joint values ({listing(joint_names)}); "
            f"got an array of shape {values.shape}"
        )
    if not np.isfinite(values).all():
        at = tuple(np.argwhere(~np.isfinite(values))[0])
        raise JointValueError(
            f"joint {joint_names[at[-1]]!r} has the value {values[at]}, which is not finite"
        )
    return values


def checked_configuration(
    q: Any, joint_names: tuple[str, ...], known: Collection[str] = ()
) -> Array:
    """Validate the joint values of a single configuration, and return them as an array (n,).

    The arguments are those of :func:`checked_values`.

    Raises:
        JointValueError: If the values are not valid, or are a batch of configurations.
    """
    values = checked_values(q, joint_names, known)
    if values.ndim != 1:
        raise JointValueError(
            f"expected one configuration of {len(joint_names)} joint values; "
            f"got an array of shape {values.shape}: give one of its rows"
        )
    return values


def intersect_limits(
    joint_names: tuple[str, ...],
    limits: tuple[Array, Array],
    turns: NDArray[np.bool_],
    intervals: tuple[JointValues, JointValues],
    near: JointValues | None,
) -> tuple[Array, Array]:
    """Intersect the limits of n joints with intervals; see :meth:`dls_ik.RobotModel.narrowed`.

    Args:
        joint_names: (n,) joints.
        limits: Lower and upper limits, (n,) each [rad or m].
        turns: (n,) whether a joint is continuous, or was continuous before earlier intersections
            limited it.
        intervals: Lower ends and upper ends of the intervals [rad or m]. The ends are (n,) numbers,
            one number for all joints, or a mapping by joint name.
        near: (n,) joint positions [rad or m]; None stands for 0. The interval of a continuous joint
            without limits is shifted by full turns to the place closest to the joint's position.

    Returns:
        Lower and upper limits, (n,) each, read-only [rad or m].

    Raises:
        LimitsError: If an intersection is empty, or the interval ends are not n numbers.
        JointValueError: If `near` is not valid.
    """
    low = _interval_ends(joint_names, intervals[0], -np.inf)
    high = _interval_ends(joint_names, intervals[1], np.inf)
    middle = np.zeros(len(low)) if near is None else checked_configuration(near, joint_names)
    columns = (each.tolist() for each in (*limits, low, high, middle, turns))
    rows = zip(joint_names, *columns, strict=True)
    ends = np.array([_intersect(*row) for row in rows]).T.copy()
    ends.flags.writeable = False
    return ends[0], ends[1]


def _interval_ends(joint_names: tuple[str, ...], given: Any, unlimited: float) -> Array:
    """Return the lower or the upper ends of intervals, one for each joint, as an array (n,).

    Args:
        joint_names: (n,) joints.
        given: Interval ends [rad or m]: one number for all joints, n numbers, or a mapping by name.
        unlimited: -inf for lower ends, inf for upper ends. Joints that are missing in a mapping get
            this value, which means no limit.

    Raises:
        LimitsError: If the ends are not n numbers, or a joint is unknown.
    """
    n = len(joint_names)
    if isinstance(given, Mapping):
        try:
            given = some_by_name(given, joint_names, unlimited)
        except JointValueError as error:
            raise LimitsError(str(error)) from None
    try:
        ends = np.array(np.broadcast_to(np.array(given, np.float64), (n,)))
    except (TypeError, ValueError, OverflowError):
        ends = np.full(n, np.nan)
    if np.isnan(ends).any() or (ends == -unlimited).any():
        raise LimitsError(
            f"limits must be one number, or one for each of the {n} joints "
            f"({listing(joint_names)}), with {unlimited} for no limit; got {quoted(given)}"
        )
    return ends


def _intersect(
    name: str, lower: float, upper: float, low: float, high: float, near: float, turns: bool
) -> tuple[float, float]:
    """Intersect the limits [lower, upper] of a joint with an interval [low, high] [rad or m].

    If `turns` is true, the joint is continuous. In this case an interval of a full turn or more is
    ignored, and a shorter interval is first shifted by full turns; :func:`_turns_to` explains the
    shift and `near`.

    Returns:
        Lower and upper end of the intersection [rad or m].

    Raises:
        LimitsError: If the intersection is empty, or the interval is not valid.
    """
    if high < low:
        raise LimitsError(f"joint {name!r}: lower limit {low} is above upper limit {high}")
    if turns and high - low >= TURN:
        return lower, upper
    # too few digits remain for the angle
    if turns and max(abs(low), abs(high)) > MAX_POSE_COORDINATE:
        raise LimitsError(
            f"joint {name!r}: interval [{low}, {high}] is outside +-{MAX_POSE_COORDINATE:g} rad, "
            "where floating-point numbers are too coarse for angles"
        )
    if turns:
        shift = _turns_to(low, high, lower, upper, near)
        low, high = low + shift, high + shift
    if max(low, lower) > min(high, upper):
        raise LimitsError(
            f"joint {name!r}: limits [{lower}, {upper}] and interval [{low}, {high}] do not overlap"
        )
    return max(low, lower), min(high, upper)


def _turns_to(low: float, high: float, lower: float, upper: float, near: float) -> float:
    """Return the multiple of 2 pi [rad] by which to shift an interval of a continuous joint.

    If the joint has limits [lower, upper], the shift gives the largest overlap of the interval
    [low, high] with the limits. Otherwise the shift moves the center of the interval as close as
    possible to the joint position `near`. All arguments are in [rad].
    """
    if not np.isfinite(upper - lower):
        return float(TURN * np.round((near - 0.5 * (low + high)) / TURN))
    nearest = np.round((0.5 * (lower + upper) - 0.5 * (low + high)) / TURN)
    shifts = TURN * (nearest + np.array([0.0, -1.0, 1.0]))
    shared = np.minimum(high + shifts, upper) - np.maximum(low + shifts, lower)
    return float(shifts[np.argmax(shared)])
