# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exact feasible swivel angles of arms with a spherical shoulder and a spherical wrist.

The axes of the first three joints intersect in the shoulder s, those of the last three in the wrist
w. The elbow may have offsets. For a pose of the tip, w and therefore the fourth joint are given.
The swivel angle phi turns the upper arm about the line from s to w, so that the rotations R by the
joints of the shoulder and of the wrist have the form R = C0 + Cc cos(phi) + Cs sin(phi). A joint
meets a limit where an expression x0 + xc cos(phi) + xs sin(phi) has a given value (after Shimizu et
al. 2008, who treat arms without offsets). Between two such angles, either no joint exceeds a limit
or the same joint does everywhere.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.stack import MIN_SWIVEL_RADIUS
from dls_ik.core.types import Array
from dls_ik.model.joint import TURN
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse, rotation_about
from dls_ik.solver.stack_problem import MAX_AXIS_DISTANCE, elbow_points

LIMIT_TOLERANCE = 1e-9  # [rad] excess over a limit that counts as rounding
MIN_AXIS_ANGLE = 1e-6  # [rad] smallest angle between neighbouring axes of a spherical joint
JOINING_GAP = 1e-9  # [rad] intervals that are closer are joined, shorter arcs are ignored

Intervals = NDArray[np.float64]  # (k, 2) intervals of angles [rad], see `from_arcs`


class SphericalJoint(NamedTuple):
    """Three joints whose axes intersect in a point: R = Rot(z1, q1) Rot(z2, q2) Rot(z3, q3)."""

    z: Array  # (3, 3) unit vectors z1, z2, z3 along the axes at q = 0, as rows
    turned: Array  # (2, 3, 3) Rot(z2, q2) z3 and Rot(z2, -q2) z1; rows: factors of 1, cos, sin
    across: Array  # (2, 3, 3) matrices of the cross products with z1 and z3
    lower: Array  # (3,) lower limits [rad]
    range: Array  # (3,) upper minus lower limit, plus a tolerance for rounding [rad]
    # z1 . R z3 = amplitude cos(q2 - phase) + constant
    amplitude: float
    phase: float
    constant: float
    # At an end of the range of a joint, (normals . (R z3 or R^T z1)) has a given value.
    normals: Array  # (e, 3)
    is_transposed: NDArray[np.bool_]  # (e,) whether the vector is R^T z1
    values: Array  # (e,)


class SphericalArm(NamedTuple):
    """Arm with seven joints, a spherical shoulder and a spherical wrist; base frame, q = 0."""

    shoulder: SphericalJoint
    wrist: SphericalJoint
    axis: Array  # (3,) unit vector along the axis of the fourth joint
    s: Array  # (3,) shoulder [m]
    elbow: Array  # (3,) point on the axis of joint 4 that defines the swivel angle [m]
    w: Array  # (3,) wrist [m]
    lower: float  # lower limit of the fourth joint [rad]
    upper: float  # upper limit of the fourth joint [rad]
    from_tip: Array  # (4, 4) inverse of the pose of the tip


def spherical_joint(z: Array, lower: Array, upper: Array) -> SphericalJoint | None:
    """Return a spherical joint with the axes z (3, 3); None if neighbouring axes are parallel.

    Args:
        z: (3, 3) unit vectors along the axes at q = 0, as rows.
        lower, upper: (3,) limits [rad], infinite without a limit.
    """
    z1, z2, z3 = z
    constant = float((z1 @ z2) * (z2 @ z3))
    cosine, sine = float(z1 @ z3) - constant, float(z1 @ np.cross(z2, z3))
    amplitude, phase = math.hypot(cosine, sine), math.atan2(sine, cosine)
    if amplitude < MIN_AXIS_ANGLE:
        return None
    rows = [(z1, False, constant + amplitude), (z1, False, constant - amplitude)]
    limits = np.stack([lower, upper])
    limits = np.where(np.isfinite(limits), limits, 0.0)  # an extra cut at 0 is harmless
    for first, second, third in limits.tolist():
        rows += [
            (z1, False, constant + amplitude * math.cos(second - phase)),
            (rotation_about(z1, first) @ z2, False, float(z2 @ z3)),
            (rotation_about(z3, -third) @ z2, True, float(z1 @ z2)),
        ]
    normals, is_transposed, values = zip(*rows, strict=True)
    ends = np.array(normals), np.array(is_transposed), np.array(values)
    allowed = upper - lower + 2.0 * LIMIT_TOLERANCE
    turned = np.stack([_turned(z2, z3, 1.0), _turned(z2, z1, -1.0)])
    across = np.stack([skew(z1), skew(z3)])
    return SphericalJoint(z, turned, across, lower, allowed, amplitude, phase, constant, *ends)


def _turned(axis: Array, x: Array, sign: float) -> Array:
    """Return the coefficients (3, 3) of Rot(axis, sign q) x: rows that belong to 1, cos and sin."""
    along = (axis @ x) * axis
    return np.stack([along, x - along, sign * np.cross(axis, x)])


def skew(x: Array) -> Array:
    """Return the matrix (3, 3) of the cross product x times y, for x (3,)."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


@lru_cache(maxsize=16)
def spherical_arm(robot: RobotModel) -> SphericalArm | None:
    """Return the geometry of an arm; None if its shoulder or its wrist is not spherical.

    Raises:
        OptionError: If the robot is not a serial arm with seven revolute joints and one tip.
    """
    points = elbow_points(robot)
    q = np.zeros(robot.n)
    s, elbow, w = ((robot.link_pose(link, q) @ [*point, 1.0])[:3] for link, point in points)
    tip, J = robot.fk(q), robot.jacobian(q)
    z, origins = J[3:].T, tip[:3, 3] + np.cross(J[3:].T, J[:3].T)
    for point, joints in ((s, slice(0, 3)), (w, slice(4, 7))):
        distances = np.linalg.norm(np.cross(point - origins[joints], z[joints]), axis=1)
        if distances.max() > MAX_AXIS_DISTANCE:
            return None
    ends = [
        spherical_joint(z[joints], robot.lower[joints], robot.upper[joints])
        for joints in (slice(0, 3), slice(4, 7))
    ]
    if ends[0] is None or ends[1] is None:
        return None
    limits = float(robot.lower[3]), float(robot.upper[3])
    return SphericalArm(ends[0], ends[1], z[3], s, elbow, w, *limits, inverse(tip))


def exact_angles(arm: SphericalArm, T: Array, up: Array) -> list[Intervals]:
    """Return the feasible swivel angles of each branch of solutions.

    A branch is given by one of two solutions for each of the fourth, the second and the sixth
    joint.

    Args:
        arm: Geometry of the arm.
        T: (4, 4) pose of the tip.
        up: (3,) unit vector; its projection is the direction of the angle 0.

    Returns:
        Intervals (k, 2) of each branch that has any [rad].
    """
    G = T @ arm.from_tip
    line = G[:3, :3] @ arm.w + G[:3, 3] - arm.s
    length = float(np.linalg.norm(line))
    frame = _frame(line, up)
    if frame is None:
        return []
    found = []
    for q4 in _elbow_angles(arm, length):
        R4 = rotation_about(arm.axis, q4)
        origin = arm.elbow
        body = _frame(R4 @ (arm.w - origin) + origin - arm.s, arm.elbow - arm.s)
        if body is None:
            continue
        R0, a = frame @ body.T, frame[:, 2]
        C0 = np.outer(a, a @ R0)
        turning = np.stack([C0, R0 - C0, skew(a) @ R0])  # C0, Cc, Cs of the shoulder
        others = R4.T @ turning.swapaxes(1, 2) @ G[:3, :3]
        joints = (arm.shoulder, turning), (arm.wrist, others)
        cuts = np.sort(np.concatenate([[-math.pi], *(_end_angles(*joint) for joint in joints)]))
        cuts = cuts[np.append(cuts[1:], math.pi) - cuts > JOINING_GAP]  # arcs of a positive length
        middles = 0.5 * (cuts + np.append(cuts[1:], cuts[0] + TURN))
        feasible = [_within_limits(joint, turning, middles) for joint, turning in joints]
        for of_shoulder in feasible[0]:
            for of_wrist in feasible[1]:
                arcs = from_arcs(cuts, of_shoulder & of_wrist)
                if len(arcs):
                    found.append(arcs)
    return found


def _frame(line: Array, side: Array) -> Array | None:
    """Return a frame (3, 3) with z along a line and x toward a side; None if both are parallel."""
    length = math.sqrt(line @ line)
    if length < MIN_SWIVEL_RADIUS:
        return None
    z = line / length
    x = side - (side @ z) * z
    size = math.sqrt(x @ x)
    if size < MIN_SWIVEL_RADIUS:
        return None
    x = x / size
    return np.stack([x, skew(z) @ x, z], axis=1)


def _elbow_angles(arm: SphericalArm, length: float) -> list[float]:
    """Return the angles of the fourth joint for a distance of the wrist from the shoulder.

    Args:
        arm: Geometry of the arm.
        length: Distance [m].

    Returns:
        At most two angles within the limits [rad].
    """
    before, after = arm.elbow - arm.s, arm.w - arm.elbow
    constant = float((before @ arm.axis) * (after @ arm.axis))
    along = float(before @ after) - constant
    across = float(before @ np.cross(arm.axis, after))
    size = math.hypot(along, across)
    wanted = 0.5 * (length**2 - float(before @ before) - float(after @ after)) - constant
    if size == 0.0 or abs(wanted) > size * (1.0 + LIMIT_TOLERANCE):
        return []
    phase, half = math.atan2(across, along), math.acos(max(-1.0, min(1.0, wanted / size)))
    angles = [phase + half, phase - half] if half > 0.0 else [phase]
    return [angle for angle in angles if _is_within(angle, arm.lower, arm.upper)]


def _is_within(angle: Array | float, lower: Array | float, upper: Array | float) -> bool:
    """Return whether angles, plus any number of turns, are within limits; all are in [rad]."""
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return True
    beyond = (angle - lower + LIMIT_TOLERANCE) % TURN
    return bool(beyond <= upper - lower + 2.0 * LIMIT_TOLERANCE)


def _vectors(joint: SphericalJoint, turning: Array) -> tuple[Array, Array]:
    """Return the coefficients (3, 3) of R z3 and of R^T z1, whose rows belong to 1, cos and sin."""
    return turning @ joint.z[2], joint.z[0] @ turning


def _end_angles(joint: SphericalJoint, turning: Array) -> Array:
    """Return the swivel angles in [-pi, pi) at which a joint meets a limit or two branches meet.

    Args:
        joint: Shoulder or wrist.
        turning: (3, 3, 3) matrices C0, Cc and Cs of the rotation R by the joint.
    """
    forward, backward = _vectors(joint, turning)
    x = np.where(
        joint.is_transposed[:, None], joint.normals @ backward.T, joint.normals @ forward.T
    )  # (e, 3)
    size = np.hypot(x[:, 1], x[:, 2])
    with np.errstate(divide="ignore", invalid="ignore"):
        cosine = (joint.values - x[:, 0]) / size
    meets = (size > LIMIT_TOLERANCE) & (np.abs(cosine) <= 1.0)
    phase, half = np.arctan2(x[meets, 2], x[meets, 1]), np.arccos(cosine[meets])
    angles = np.concatenate([phase + half, phase - half])
    return np.asarray((angles + math.pi) % TURN - math.pi)


def _within_limits(joint: SphericalJoint, turning: Array, angles: Array) -> NDArray[np.bool_]:
    """Return (2, m) whether both solutions of a spherical joint are within the limits.

    Args:
        joint: Shoulder or wrist.
        turning: (3, 3, 3) matrices C0, Cc and Cs of the rotation R by the joint.
        angles: (m,) swivel angles [rad].
    """
    forward, backward = _vectors(joint, turning)
    basis = _basis(angles)
    v, u = basis @ forward, basis @ backward  # R z3 and R^T z1, (m, 3)
    cosine = (v @ joint.z[0] - joint.constant) / joint.amplitude
    half = np.arccos(np.minimum(np.maximum(cosine, -1.0), 1.0))
    q = np.empty((2, len(angles), 3))
    q[0, :, 1], q[1, :, 1] = joint.phase + half, joint.phase - half
    of_second = _basis(q[:, :, 1])
    q[:, :, 0] = _turn_about(joint.z[0], joint.across[0], of_second @ joint.turned[0], v)
    q[:, :, 2] = -_turn_about(joint.z[2], joint.across[1], of_second @ joint.turned[1], u)
    with np.errstate(invalid="ignore"):  # infinite limits
        inside = (q - joint.lower + LIMIT_TOLERANCE) % TURN <= joint.range
    inside |= ~np.isfinite(joint.range)
    found: NDArray[np.bool_] = inside.all(axis=2) & (np.abs(cosine) <= 1.0 + LIMIT_TOLERANCE)
    return found


def _basis(angles: Array) -> Array:
    """Return 1, cos and sin (..., 3) of angles (...,)."""
    basis = np.ones((*angles.shape, 3))
    np.cos(angles, out=basis[..., 1])
    np.sin(angles, out=basis[..., 2])
    return basis


def _turn_about(axis: Array, across: Array, start: Array, end: Array) -> Array:
    """Return the angles (2, m) [rad] by which an axis turns vectors into other vectors.

    Args:
        axis: (3,) unit vector.
        across: (3, 3) matrix of the cross product with the axis.
        start: (2, m, 3) vectors.
        end: (m, 3) vectors.
    """
    sine = (start * (end @ across)).sum(axis=-1)
    cosine = (start * end).sum(axis=-1) - (start @ axis) * (end @ axis)
    return np.asarray(np.arctan2(sine, cosine))


# Intervals on the circle --------------------------------------------------------------------------


def from_arcs(cuts: Array, feasible: NDArray[np.bool_]) -> Intervals:
    """Return the intervals (k, 2) of the feasible arcs of a circle, joined where they meet.

    An interval starts in [-pi, pi) and ends less than a turn later, possibly above pi. The whole
    circle is (-pi, pi).

    Args:
        cuts: (m,) angles in ascending order, less than a turn apart; arc i is from cut i to cut
            i + 1, the last one to the first cut [rad].
        feasible: (m,) whether each arc is feasible.
    """
    if feasible.all():
        return np.array([[-math.pi, math.pi]])
    starts = feasible & ~np.roll(feasible, 1)
    ends = feasible & ~np.roll(feasible, -1)
    lows, highs = cuts[starts], np.roll(cuts, -1)[ends]
    if len(lows) and highs[0] <= lows[0]:
        highs = np.roll(highs, -1)
    return np.column_stack([lows, np.where(highs <= lows, highs + TURN, highs)])


def union(branches: list[Intervals]) -> Intervals:
    """Return the union of intervals of angles, as :func:`from_arcs` describes them."""
    every = np.concatenate(branches) if branches else np.empty((0, 2))
    if not len(every):
        return every
    if (every[:, 1] - every[:, 0] >= TURN - JOINING_GAP).any():
        return np.array([[-math.pi, math.pi]])
    lows = (every[:, 0] + math.pi) % TURN - math.pi
    every = np.column_stack([lows, lows + every[:, 1] - every[:, 0]])
    joined: list[list[float]] = []
    for low, high in every[np.argsort(every[:, 0])].tolist():
        if joined and low <= joined[-1][1] + JOINING_GAP:
            joined[-1][1] = max(joined[-1][1], high)
        else:
            joined.append([low, high])
    # The last interval may reach beyond pi into the first ones.
    while len(joined) > 1 and joined[0][0] + TURN <= joined[-1][1] + JOINING_GAP:
        joined[-1][1] = max(joined[-1][1], joined[0][1] + TURN)
        joined.pop(0)
    if joined[-1][1] - joined[-1][0] >= TURN - JOINING_GAP:
        return np.array([[-math.pi, math.pi]])
    return np.array(joined)
