# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Analysis of an arm: conditioning, singular configurations, axes, and a ready configuration.

Singular configurations are found by minimising the smallest singular value s of the Jacobian J from
random starts; s is zero at configurations at which J loses rank. The gradient of s is
g = u' dJ/dq v, where u and v are the left and right singular vectors of s. Each descent step
changes q by -g s / |g|^2. This is a step of Newton's method if the sign of s changes at the
singularity, and a Polyak step if s has a cone-shaped minimum of zero there.

J has the six rows of the pose, or the three rows of the position only (:func:`analysed_rows`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

POSE_ROWS, POSITION_ROWS = 6, 3  # number of rows of the Jacobian that are analysed
ROTATION_WEIGHT = 0.5  # [m/rad] weight of rotation rows, equal to the solver's default
RANK_TOLERANCE = 1e-7  # singular values below this ratio to the largest one count as zero
NUM_SAMPLES = 1000  # number of random configurations at which the conditioning is computed

STARTS_TIMES_JOINTS = 450  # product of the number of starts of the search and the number of joints
# A configuration counts as singular if the smallest singular value that is not zero everywhere,
# divided by the largest one, is less than this tolerance.
SINGULAR_TOLERANCE = 1e-6
MAX_JOINT_DIFFERENCE = 0.02  # [rad or m] maximum difference of joint positions that count as equal
NUM_TRIALS = 6  # number of random positions that test whether a joint affects the singularity
NUDGE = 0.01  # [rad or m] motion of a joint that tests whether other joints restore the singularity
NUM_RANK_SAMPLES = 200  # number of random configurations at which the rank is computed
PLAIN_VALUES = (0.0, 0.5, -0.5, 0.3)  # [rad or m] positions of joints without effect

MAX_DESCENT_ROUNDS = 80
DIFFERENCE = 1e-5  # [rad or m] step of finite differences
MAX_DESCENT_STEP = 0.5  # [rad or m] maximum norm of a descent step

NUM_INSTANTS = 3  # number of random configurations at which relations between axes must hold
AXIS_TOLERANCE = 1e-6  # [m] tolerance of distances; also the tolerance of the sines of angles

# Search for a ready configuration, which bends joints (moves them away from 0):
MIN_CONDITIONING = 0.05  # no joint is bent if smallest / largest singular value is at least this
MAX_BENT_JOINTS = 60  # arms with more joints are not bent; the work grows with the square of n
BEND_ANGLES = np.linspace(1.8, -1.8, 19)  # [rad] candidates; the first of equally good ones wins
MAX_BEND_ROUNDS = 3  # maximum number of passes over all joints
BEND_DAMPING = 0.02  # number added to singular values, so that their logarithm is finite
BEND_WEIGHT = 0.1  # [1/rad^2] weight of squared joint angles relative to log manipulability
BEND_MARGIN = 0.1  # minimum distance from a joint limit, divided by the range of the joint

Run = tuple[int, ...]  # indices of successive joints
Jacobians = Callable[[Array], Array]


class Conditioning(NamedTuple):
    """Rank, smallest singular value and condition number of a Jacobian at b configurations.

    The rotation rows of the Jacobian, if analysed, are multiplied by a weight in [m/rad].
    """

    rank: int  # rank at almost every configuration
    least: Array  # (b,) smallest of the singular values that are not zero at every configuration
    condition: Array  # (b,) largest singular value divided by `least`


class Loss(NamedTuple):
    """Direction in which the tip cannot move at a singular configuration, as a wrench.

    The wrench (force and moment in the base frame) acts on the tip and causes no joint torque,
    because the structure of the arm balances the wrench. No joint motion does work against the
    wrench.
    """

    force: Array  # (3,) unit vector: tip points on the line of action cannot move along it; or 0
    point: Array  # (3,) a point on the line of action of the force [m]
    moment: Array  # (3,) moment; if the force is zero, the axis about which the tip cannot rotate


class Singularity(NamedTuple):
    """A set of singular configurations with the same cause, and one of them as an example.

    The cause is the positions of the joints `joints`; the arm is singular at these positions for
    any positions of its other joints. The joints `tied` can also move, but only together.
    """

    joints: tuple[int, ...]  # indices of the joints whose positions make the arm singular
    tied: tuple[int, ...]  # indices of joints that can only move together if the arm stays singular
    q: Array  # (n,) example [rad or m]
    rank: int  # rank of the Jacobian at q
    loss: Loss  # direction in which the tip cannot move at q


class Singularities(NamedTuple):
    """Families of singular configurations that a search from random starts found.

    The arm may have other singular configurations.
    """

    rank: int  # rank at almost every configuration
    starts: int  # number of random starts
    families: tuple[Singularity, ...]  # sorted by the number of joints that make the arm singular
    worst: Array  # (n,) configuration found with the smallest ratio `least` [rad or m]
    least: float  # ratio of the smallest singular value to the largest one at `worst`
    weak: Loss  # direction in which the tip moves least at `worst`


class Axes(NamedTuple):
    """Successive revolute joints whose axes meet in a point or are parallel."""

    meeting: tuple[Run, ...]  # runs of three or more joints whose axes pass through one point
    parallel: tuple[Run, ...]  # runs of two or more joints whose axes are parallel


def analysed_rows(robot: RobotModel) -> tuple[int, ...]:
    """Return the numbers of Jacobian rows for which singular configurations are meaningful.

    An arm of few joints cannot reach a pose in general. If its orientation follows from its
    position, as that of two links in a plane, rotation rows would hide the singularities of the
    position, and only the position is analysed.

    Args:
        robot: Robot; only the first tip is analysed.

    Returns:
        (POSE_ROWS,) if the tip moves in all six directions, or does not change its position;
        (POSITION_ROWS,) if the rotation adds no direction to those of the position; otherwise
        (POSE_ROWS, POSITION_ROWS).
    """
    rank = conditioning(robot, NUM_RANK_SAMPLES).rank
    position_rank = conditioning(robot, NUM_RANK_SAMPLES, rows=POSITION_ROWS).rank
    if rank == POSE_ROWS or position_rank == 0:
        return (POSE_ROWS,)
    return (POSITION_ROWS,) if position_rank == rank else (POSE_ROWS, POSITION_ROWS)


def conditioning(
    robot: RobotModel, samples: int = NUM_SAMPLES, random_seed: int = 0, rows: int = POSE_ROWS
) -> Conditioning:
    """Return the conditioning of the Jacobian at random configurations within the joint limits.

    Args:
        robot: Robot; only the first tip is analysed.
        samples: Number of configurations.
        random_seed: Seed of the random configurations.
        rows: Number of rows of the Jacobian, POSE_ROWS or POSITION_ROWS.
    """
    q = robot.random(samples, np.random.default_rng(random_seed))
    s = singular_values(robot, q, rows)
    is_used = (s > RANK_TOLERANCE * s[:, :1]) & (s > RANK_TOLERANCE * ROTATION_WEIGHT)
    rank = int(is_used.sum(axis=1).max())
    least: Array = s[:, rank - 1].astype(np.float64)
    return Conditioning(rank, least, s[:, 0] / np.maximum(least, np.finfo(float).tiny))


def singular_values(robot: RobotModel, q: Array, rows: int = POSE_ROWS) -> Array:
    """Return the singular values (b, k) of the first tip's Jacobian, in descending order.

    The three rotation rows of the Jacobian are multiplied by ROTATION_WEIGHT [m/rad]. The number k
    of singular values is min(rows, n).

    Args:
        robot: Robot with n joints.
        q: (b, n) configurations [rad or m].
        rows: POSE_ROWS for all six rows of the Jacobian, POSITION_ROWS for the first three.
    """
    return np.asarray(np.linalg.svd(_scaled_jacobians(robot, rows, q), compute_uv=False))


def _scaled_jacobians(robot: RobotModel, rows: int, q: Array) -> Array:
    """Return Jacobians (b, rows, n) of the first tip at configurations q (b, n).

    The three rotation rows, if included, are multiplied by a weight in [m/rad].
    """
    weights = np.array([1.0, 1.0, 1.0, ROTATION_WEIGHT, ROTATION_WEIGHT, ROTATION_WEIGHT])
    return np.asarray(robot.jacobian(q)[:, :rows] * weights[:rows, None])


def singularities(robot: RobotModel, rows: int = POSE_ROWS) -> Singularities:
    """Search for singular configurations of the first tip, starting at random configurations.

    The search may miss some singular configurations.

    Args:
        robot: Robot.
        rows: Number of rows of the Jacobian, POSE_ROWS or POSITION_ROWS.
    """
    rank = conditioning(robot, NUM_RANK_SAMPLES, rows=rows).rank
    search = _Search(robot, rows, rank)
    rng = np.random.default_rng(0)
    count = int(np.clip(STARTS_TIMES_JOINTS // robot.n, 8, 64))
    q = descend(search.jacobians, robot, robot.random(count, rng), rank)
    shares = search.shares(q)
    found: list[Singularity] = []
    for each in q[shares < SINGULAR_TOLERANCE]:
        joints = _needed_joints(search, each, rng)
        tied = _tied_joints(search, each, joints)
        family = _family(search, each, joints, tied)
        if not any(_is_part(robot, family, other) for other in found):
            found = [other for other in found if not _is_part(robot, other, family)]
            found.append(family)
    found.sort(key=lambda family: (len(family.joints), family.joints, tuple(family.q)))
    worst = q[shares.argmin()]
    U = np.linalg.svd(search.jacobians(worst[None])[0])[0]
    weak = _loss(robot, worst, U[:, rank - 1])
    return Singularities(rank, count, tuple(found), worst, float(shares.min()), weak)


class _Search(NamedTuple):
    """Robot, rows of its Jacobian, and their rank at almost every configuration."""

    robot: RobotModel
    rows: int
    rank: int

    def jacobians(self, q: Array) -> Array:
        """Return scaled Jacobians (b, rows, n) at configurations q (b, n)."""
        return _scaled_jacobians(self.robot, self.rows, q)

    def shares(self, q: Array) -> Array:
        """Return (b,) the ratio of the singular value number `rank` to the largest, at q (b, n)."""
        s = singular_values(self.robot, q, self.rows)
        return np.asarray(s[:, self.rank - 1] / s[:, 0])


def _needed_joints(search: _Search, q: Array, rng: np.random.Generator) -> tuple[int, ...]:
    """Return the indices of the joints whose positions make a configuration singular.

    The arm remains singular at random positions of all other joints.

    Args:
        search: Robot and rows of its Jacobian.
        q: (n,) singular configuration [rad or m].
        rng: Random generator.
    """
    anywhere = search.robot.random(NUM_TRIALS, rng)
    trials = np.repeat(q[None], NUM_TRIALS, axis=0)
    needed = []
    for i in range(search.robot.n):
        before = trials[:, i].copy()
        trials[:, i] = anywhere[:, i]
        if search.shares(trials).max() > SINGULAR_TOLERANCE:
            trials[:, i] = before
            needed.append(i)
    return tuple(needed)


def _tied_joints(search: _Search, q: Array, joints: tuple[int, ...]) -> tuple[int, ...]:
    """Return those joints that can move together with others such that the arm remains singular.

    Each of the joints is moved by a small amount. A descent then moves the others of `joints` to
    make the arm singular again. If the descent succeeds, the joints that it moved are tied too.

    Args:
        search: Robot and rows of its Jacobian.
        q: (n,) singular configuration [rad or m].
        joints: Indices of the joints whose positions make q singular.
    """
    if len(joints) < 2:
        return ()
    robot, count = search.robot, 2 * len(joints)
    moved_joint = np.repeat(joints, 2)  # each joint is moved in both directions
    starts, others = np.repeat(q[None], count, axis=0), np.zeros((count, robot.n))
    starts[np.arange(count), moved_joint] += np.tile([NUDGE, -NUDGE], len(joints))
    others[:, list(joints)] = 1.0
    others[np.arange(count), moved_joint] = 0.0
    starts = np.clip(starts, robot.lower, robot.upper)
    followed = descend(search.jacobians, robot, starts, search.rank, others)
    is_near = np.abs(followed - q).max(axis=1) < 10.0 * NUDGE
    moved = np.abs(followed - q)  # (b, n)
    has_left = moved[np.arange(count), moved_joint] > 0.5 * NUDGE
    is_tie = is_near & has_left & (search.shares(followed) < SINGULAR_TOLERANCE)
    return tuple(np.flatnonzero((moved[is_tie] > 0.1 * NUDGE).any(axis=0)).tolist())


def _is_part(robot: RobotModel, family: Singularity, other: Singularity) -> bool:
    """Return whether a family of singular configurations is part of another family.

    Positions of revolute joints that differ by full turns count as equal. Tied joints of the other
    family may have any positions, also those at a joint limit, where they are not found to be tied.
    """
    if family.joints != other.joints or not set(family.tied) <= set(other.tied):
        return False
    apart = family.q - other.q
    turns = np.array([unit == "rad" for unit in robot.units])
    apart = np.where(turns, np.remainder(apart + np.pi, 2.0 * np.pi) - np.pi, apart)
    fixed = [i for i in family.joints if i not in other.tied]
    return bool((np.abs(apart[fixed]) < MAX_JOINT_DIFFERENCE).all())


def _family(
    search: _Search, q: Array, joints: tuple[int, ...], tied: tuple[int, ...]
) -> Singularity:
    """Return the family of a singular configuration, with a simple example configuration.

    A family is the set of configurations that the positions of the same joints make singular. In
    the example, all joints without effect on the singularity have one of `PLAIN_VALUES` as their
    position. If the tip loses more than one direction of motion at each of these values, the
    example is q.

    Args:
        search: Robot and rows of its Jacobian.
        q: (n,) singular configuration [rad or m].
        joints: Indices of the joints whose positions make q singular.
        tied: Result of :func:`_tied_joints` for q.
    """
    robot, rank = search.robot, search.rank
    member = q
    for value in PLAIN_VALUES:
        member = np.clip(np.full(robot.n, value), robot.lower, robot.upper)
        member[list(joints)] = q[list(joints)]
        s = singular_values(robot, member[None], search.rows)[0]
        if rank < 2 or s[rank - 2] > 1e-3 * s[0]:  # the tip loses only one direction of motion
            break
    else:
        member = q
    U, s, _ = np.linalg.svd(search.jacobians(member[None])[0])
    rank_there = int((s > SINGULAR_TOLERANCE * s[0]).sum())
    return Singularity(joints, tied, member, rank_there, _loss(robot, member, U[:, rank - 1]))


def _loss(robot: RobotModel, q: Array, u: Array) -> Loss:
    """Return the wrench that describes the direction in which the tip cannot move.

    Args:
        robot: Robot.
        q: (n,) singular configuration [rad or m].
        u: (6,) left singular vector of the scaled Jacobian for the smallest singular value; (3,) of
            its position rows, which no moment at the tip affects.
    """
    force, moment = u[:3], ROTATION_WEIGHT * u[3:] if len(u) == POSE_ROWS else np.zeros(3)
    size = float(np.linalg.norm(force))
    if size < 1e-6:
        return Loss(np.zeros(3), np.zeros(3), _positive(moment / np.linalg.norm(moment)))
    tip = robot.fk(q).reshape(-1, 4, 4)[0, :3, 3]
    direction = _positive(force / size)
    point = tip + np.cross(force, moment) / size**2
    pitch = float(force @ moment) / size**2  # [m]
    return Loss(direction, point, pitch * direction)


def _positive(direction: Array) -> Array:
    """Return the direction (3,), or -direction if its component of largest magnitude is negative.

    Components with a magnitude below 1e-9 become 0.
    """
    largest = direction[np.abs(direction).argmax()]
    return np.asarray(np.where(np.abs(direction) < 1e-9, 0.0, direction * np.sign(largest)))


def descend(
    jacobians: Jacobians, robot: RobotModel, starts: Array, rank: int, moving: Array | None = None
) -> Array:
    """Minimise one singular value of a Jacobian by gradient descent from each start.

    A descent ends where the singular value is approximately 0, or after MAX_DESCENT_ROUNDS steps.
    Joint positions stay within the joint limits.

    Args:
        jacobians: Function that returns Jacobians (b, r, n) at configurations (b, n).
        robot: Robot with the joint limits.
        starts: (b, n) start configurations [rad or m].
        rank: Which singular value to minimise: 1 for the largest, 2 for the next one, and so on.
        moving: (b, n) array with 1 for joints that may move and 0 for other joints; None if all
            joints may move.

    Returns:
        Final configurations (b, n) [rad or m].
    """
    q, mask = starts.copy(), np.ones_like(starts) if moving is None else moving
    for _ in range(MAX_DESCENT_ROUNDS):
        U, S, Vt = np.linalg.svd(jacobians(q))
        active = S[:, rank - 1] > 1e-3 * RANK_TOLERANCE * S[:, 0]
        if not active.any():
            break
        value, u, v = S[active, rank - 1], U[active, :, rank - 1], Vt[active, rank - 1]
        g = _gradients(jacobians, q[active], u, v) * mask[active]
        at_lower, at_upper = q[active] <= robot.lower, q[active] >= robot.upper
        g[(at_lower & (g > 0.0)) | (at_upper & (g < 0.0))] = 0.0
        squared = (g * g).sum(axis=1)
        length = np.divide(value, squared, out=np.zeros_like(value), where=squared > 1e-24)
        length = np.minimum(length, MAX_DESCENT_STEP / np.sqrt(np.maximum(squared, 1e-24)))
        q[active] = np.clip(q[active] - length[:, None] * g, robot.lower, robot.upper)
    return q


def _gradients(jacobians: Jacobians, q: Array, u: Array, v: Array) -> Array:
    """Return the derivatives (b, n) of a singular value with respect to each joint position.

    The derivative with respect to joint k is u^T (dJ/dq_k) v.

    Args:
        jacobians: Function that returns Jacobians (b, r, n) at configurations (b, n).
        q: (b, n) configurations [rad or m].
        u: (b, r) left singular vectors of the singular value.
        v: (b, n) right singular vectors of the singular value.
    """
    b, n = q.shape
    shifts = DIFFERENCE * np.eye(n)
    ahead, behind = q[:, None] + shifts, q[:, None] - shifts  # (b, n, n)
    after, before = (jacobians(each.reshape(-1, n)) for each in (ahead, behind))
    slopes = (after - before).reshape(b, n, -1, n) / (2.0 * DIFFERENCE)
    return np.asarray(np.einsum("bi,bkij,bj->bk", u, slopes, v))


def joint_axes(robot: RobotModel) -> Axes:
    """Find successive joints whose axes meet in a point or are parallel at every configuration.

    Only the joints between the base and the first tip are examined.
    """
    q = robot.random(NUM_INSTANTS, np.random.default_rng(0))
    J = robot.jacobian(q)[:, :6].swapaxes(1, 2)  # (b, n, 6)
    moments, directions = J[..., :3], J[..., 3:]
    points = np.cross(directions, moments)  # point of each axis closest to the tip
    lengths = np.linalg.norm(directions, axis=2)
    turns = (np.abs(lengths - 1.0) < AXIS_TOLERANCE).all(axis=0)
    return Axes(
        _runs(turns, lambda run: _meets(directions[:, run], points[:, run]), 3),
        _runs(turns, lambda run: _is_parallel(directions[:, run]), 2),
    )


def _runs(turns: Any, has: Callable[[list[int]], bool], minimum: int) -> tuple[Run, ...]:
    """Return the longest runs of successive revolute joints whose axes have a property.

    Args:
        turns: (n,) whether a joint is revolute.
        has: Function that returns whether the joints with the given indices have the property.
        minimum: Minimum number of joints in a run.
    """
    runs: list[Run] = []
    first = 0
    for after in range(1, len(turns) + 1):
        while first < after and not (turns[first:after].all() and has([*range(first, after)])):
            first += 1
        run = tuple(range(first, after))
        if runs and runs[-1] == run[:-1]:
            runs[-1] = run
        elif len(run) >= 1 and not (runs and set(run) <= set(runs[-1])):
            runs.append(run)
    return tuple(run for run in runs if len(run) >= minimum)


def _is_parallel(directions: Array) -> bool:
    """Return whether k axis directions (b, k, 3) are parallel at each of b configurations."""
    return float(np.abs(np.cross(directions, directions[:, :1])).max()) < AXIS_TOLERANCE


def _meets(directions: Array, points: Array) -> bool:
    """Return whether k lines have exactly one common point at each of b configurations.

    Args:
        directions: (b, k, 3) unit vectors.
        points: (b, k, 3) a point of each line [m].
    """
    if directions.shape[1] < 2:
        return True
    for a, p in zip(directions, points, strict=True):
        across = np.eye(3) - a[:, :, None] * a[:, None]  # (k, 3, 3)
        normal, side = across.sum(axis=0), (across @ p[:, :, None]).sum(axis=0)[:, 0]
        if np.linalg.eigvalsh(normal)[0] < AXIS_TOLERANCE:
            return False
        middle = np.linalg.solve(normal, side)
        if np.abs(across @ middle - (across @ p[:, :, None])[:, :, 0]).max() > AXIS_TOLERANCE:
            return False
    return True


@lru_cache(maxsize=8)
def ready_configuration(robot: RobotModel) -> Array:
    """Return a start configuration (n,) [rad or m] away from singularities, read-only.

    The search starts with all joints at 0, or at the limit closest to 0. If this configuration is
    close to a singularity, revolute joints are moved one after the other to the angle with the best
    compromise between high manipulability and little motion. The result is deterministic.
    """
    q = robot.clip(np.zeros(robot.n))
    J = robot.jacobian(q)
    unit = max(float(np.abs(J[:3]).max()), 1e-6)  # [m/rad] makes linear and angular rows comparable
    if robot.n <= MAX_BENT_JOINTS:
        s = np.linalg.svd(_unitless(J[None], unit)[0], compute_uv=False)
        if s[-1] < MIN_CONDITIONING * s[0]:
            q = _bend(robot, q, unit)
    q.flags.writeable = False
    return q


def _bend(robot: RobotModel, q0: Array, unit: float) -> Array:
    """Return the configuration (n,) with the largest merit, optimised one joint at a time.

    The merit (see :func:`_merit`) is maximised over a set of angles of each revolute joint in turn.

    Args:
        robot: Robot.
        q0: (n,) start configuration [rad or m].
        unit: Length by which linear rows of the Jacobian are divided [m].
    """
    lower, upper = robot.finite_limits()
    margin = BEND_MARGIN * (upper - lower)
    prismatic = set(robot.chain.variable[robot.chain.prismatic].tolist())
    q = q0
    for _ in range(MAX_BEND_ROUNDS):
        before = q
        for j in set(range(robot.n)) - prismatic:
            candidates = np.repeat(q[None], len(BEND_ANGLES) + 1, axis=0)  # (b, n)
            values = np.clip(q0[j] + BEND_ANGLES, lower[j] + margin[j], upper[j] - margin[j])
            candidates[1:, j] = values
            q = candidates[np.argmax(_merit(robot, candidates, q0, unit))]
        if np.array_equal(q, before):
            break
    return q.copy()


def _merit(robot: RobotModel, q: Array, q0: Array, unit: float) -> Array:
    """Return a merit (b,) of configurations; it is larger farther from singularities, closer to q0.

    The merit is the sum of log(s + BEND_DAMPING) over the singular values s of the Jacobian, minus
    BEND_WEIGHT times the squared distance from q0.

    Args:
        robot: Robot with the Jacobian.
        q: (b, n) configurations [rad or m].
        q0: (n,) start configuration [rad or m].
        unit: Length by which linear rows of the Jacobian are divided [m].
    """
    s = np.linalg.svd(_unitless(robot.jacobian(q), unit), compute_uv=False)
    manipulability = np.log(s + BEND_DAMPING).sum(axis=1)
    merit: Array = manipulability - BEND_WEIGHT * ((q - q0) ** 2).sum(axis=1)
    return merit.round(9)  # rounding errors differ between machines and must not decide


def _unitless(J: Array, unit: float) -> Array:
    """Return Jacobians (b, 6 k, n) with linear rows divided by a length `unit` [m]."""
    rows = np.arange(J.shape[1]) % 6 < 3
    return np.where(rows[:, None], J / unit, J)
