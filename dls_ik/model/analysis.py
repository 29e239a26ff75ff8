"""Analysis of an arm: conditioning, singular configurations, axes, and a configuration to start at.

Singular configurations are found from random starts by descending on the least singular value,
which is zero where the Jacobian loses rank. With its gradient g (u' dJ/dq v of the singular
vectors) a step of value / |g|^2 along -g is Newton's method where the value crosses zero, and
Polyak's step where it has a cone there.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

LENGTH = 0.5  # [m/rad] weight of rotations, as the solver's rotation weight
VANISHING = 1e-7  # share of the largest singular value below which one counts as zero
SAMPLES = 1000  # random configurations

STARTS_TIMES_JOINTS = 450
SINGULAR = 1e-6  # share of the largest singular value
SAME = 0.02  # [rad or m] joint values that count as one
TRIES = 6  # random values of a joint that may not matter
NUDGE = 0.05  # [rad or m]
PLAIN_VALUES = (0.0, 0.5, -0.5, 0.3)  # [rad or m] for joints that do not matter

DESCENT_ROUNDS = 80
DIFFERENCE = 1e-5  # [rad or m] of finite differences
LONGEST_STEP = 0.5  # [rad or m] of all joints

INSTANTS = 3  # random configurations at which axes have to meet or be parallel
NEAR = 1e-6  # [m] or sine of an angle

READY_CONDITIONING = 0.05  # least by greatest singular value, below which an arm is bent
READY_JOINTS = 60  # at most, of an arm that is bent: the work grows with their square
READY_VALUES = np.linspace(1.8, -1.8, 19)  # [rad] tried for each joint, the first of equals taken
READY_ROUNDS = 3  # over all joints
READY_DAMPING = 0.02  # added to singular values, so that zeros count too
READY_NEARNESS = 0.1  # [1/rad^2] weight of the distance from 0 against log manipulability
READY_MARGIN = 0.1  # share of a range, kept from its ends

Run = tuple[int, ...]  # numbers of neighbouring joints
Jacobians = Callable[[Array], Array]


class Conditioning(NamedTuple):
    """Singular values of the Jacobian of one tip, rotations times LENGTH, at b configurations."""

    rank: int  # at almost every configuration
    least: Array  # (b,) the smallest one that does not always vanish
    condition: Array  # (b,) the largest one divided by it


class Loss(NamedTuple):
    """The wrench that no joint balances, in the base frame: the motion that the tip lost."""

    force: Array  # (3,) unit vector along which no point of a line moves, or 0 ...
    point: Array  # (3,) [m] ... on that line
    moment: Array  # (3,) without a force: the axis about which the tip cannot turn


class Singularity(NamedTuple):
    """A family of configurations at which the tip loses a direction, by one member."""

    joints: tuple[int, ...]  # whose values matter
    is_tied: bool  # each of them may move if the others follow
    q: Array  # (n,) one of the family
    rank: int  # there
    loss: Loss  # there


class Singularities(NamedTuple):
    """Singular configurations found from random starts; there may be more."""

    rank: int  # elsewhere
    starts: int
    families: tuple[Singularity, ...]  # those of the fewest joints first
    worst: Array  # (n,) the most nearly singular configuration that was met
    least: float  # its least singular value as a share of the largest one
    weak: Loss  # the direction that the tip moves least there


class Axes(NamedTuple):
    """Relations between neighbouring revolute joints."""

    meeting: tuple[Run, ...]  # in one point, three or more of them
    parallel: tuple[Run, ...]  # two or more


def conditioning(robot: RobotModel, samples: int = SAMPLES, random_seed: int = 0) -> Conditioning:
    """Measure the conditioning at configurations uniform within the limits."""
    q = robot.random(np.random.default_rng(random_seed), samples)
    s = singular_values(robot, q)
    rank = int((s > VANISHING * s[:, :1]).sum(axis=1).max())
    least: Array = s[:, rank - 1].astype(np.float64)
    return Conditioning(rank, least, s[:, 0] / np.maximum(least, np.finfo(float).tiny))


def singular_values(robot: RobotModel, q: Array) -> Array:
    """Compute those of the Jacobian (b, k), in falling order, at q (b, n)."""
    return np.asarray(np.linalg.svd(_scaled_jacobians(robot, q), compute_uv=False))


def _scaled_jacobians(robot: RobotModel, q: Array) -> Array:
    """Compute Jacobians (b, 6, n) of the first tip at q (b, n), rotations times LENGTH."""
    weights = np.array([1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH])
    return np.asarray(robot.jacobian(q)[:, :6] * weights[:, None])


def singularities(robot: RobotModel) -> Singularities:
    """Search for singular configurations from random starts; there may be more than are found."""
    rank = conditioning(robot, 200).rank
    rng = np.random.default_rng(0)
    count = int(np.clip(STARTS_TIMES_JOINTS // robot.n, 8, 64))
    q = descend(partial(_scaled_jacobians, robot), robot, robot.random(rng, count), rank)
    shares = _shares(robot, q, rank)
    found: list[Singularity] = []
    for each in q[shares < SINGULAR]:
        joints = _needed_joints(robot, each, rank, rng)
        is_tied = len(joints) > 1 and _is_tied(robot, each, joints, rank)
        if not any(_is_same(robot, each, joints, is_tied, other) for other in found):
            found.append(_family(robot, each, joints, is_tied, rank))
    found.sort(key=lambda family: (len(family.joints), family.joints, tuple(family.q)))
    worst = q[shares.argmin()]
    U = np.linalg.svd(_scaled_jacobians(robot, worst[None])[0])[0]
    weak = _loss(robot, worst, U[:, rank - 1])
    return Singularities(rank, count, tuple(found), worst, float(shares.min()), weak)


def _shares(robot: RobotModel, q: Array, rank: int) -> Array:
    """Compute (b,) the singular value of that number as a share of the largest one."""
    s = singular_values(robot, q)
    return np.asarray(s[:, rank - 1] / s[:, 0])


def _needed_joints(
    robot: RobotModel, q: Array, rank: int, rng: np.random.Generator
) -> tuple[int, ...]:
    """Find the joints that keep q (n,) singular, wherever all others stand."""
    anywhere = robot.random(rng, TRIES)
    tries = np.repeat(q[None], TRIES, axis=0)
    needed = []
    for i in range(robot.n):
        before = tries[:, i].copy()
        tries[:, i] = anywhere[:, i]
        if _shares(robot, tries, rank).max() > SINGULAR:
            tries[:, i] = before
            needed.append(i)
    return tuple(needed)


def _is_tied(robot: RobotModel, q: Array, joints: tuple[int, ...], rank: int) -> bool:
    """Check if one of the joints may move a little while the others of them follow."""
    i, others = joints[0], np.zeros(robot.n)
    others[list(joints[1:])] = 1.0
    nudged = np.repeat(q[None], 2, axis=0)
    nudged[:, i] += NUDGE, -NUDGE
    nudged = np.clip(nudged, robot.lower, robot.upper)
    followed = descend(partial(_scaled_jacobians, robot), robot, nudged, rank, others)
    near = np.abs(followed - q).max(axis=1) < 10.0 * NUDGE
    moved = np.abs(followed[:, i] - q[i]) > 0.5 * NUDGE
    return bool((near & moved & (_shares(robot, followed, rank) < SINGULAR)).any())


def _is_same(
    robot: RobotModel, q: Array, joints: tuple[int, ...], is_tied: bool, other: Singularity
) -> bool:
    """Check if q (n,) is of a family that is known already."""
    if joints != other.joints or is_tied != other.is_tied:
        return False
    apart = q - other.q
    apart = np.where(robot.continuous, np.remainder(apart + np.pi, 2.0 * np.pi) - np.pi, apart)
    return is_tied or bool((np.abs(apart[list(joints)]) < SAME).all())


def _family(
    robot: RobotModel, q: Array, joints: tuple[int, ...], is_tied: bool, rank: int
) -> Singularity:
    """Describe the family of q (n,) by a member whose other joints stand at plain values."""
    member = q
    for value in PLAIN_VALUES:
        member = np.clip(np.full(robot.n, value), robot.lower, robot.upper)
        member[list(joints)] = q[list(joints)]
        s = singular_values(robot, member[None])[0]
        if rank < 2 or s[rank - 2] > 1e-3 * s[0]:  # no second direction is lost
            break
    else:
        member = q
    U, s, _ = np.linalg.svd(_scaled_jacobians(robot, member[None])[0])
    rank_there = int((s > SINGULAR * s[0]).sum())
    return Singularity(joints, is_tied, member, rank_there, _loss(robot, member, U[:, rank - 1]))


def _loss(robot: RobotModel, q: Array, u: Array) -> Loss:
    """Convert a left singular vector u (6,) to a wrench."""
    force, moment = u[:3], LENGTH * u[3:]
    size = float(np.linalg.norm(force))
    if size < 1e-6:
        return Loss(np.zeros(3), np.zeros(3), _positive(moment / np.linalg.norm(moment)))
    tip = robot.fk(q).reshape(-1, 4, 4)[0, :3, 3]
    direction = _positive(force / size)
    point = tip + np.cross(force, moment) / size**2
    pitch = float(force @ moment) / size**2  # [m]
    return Loss(direction, point, pitch * direction)


def _positive(direction: Array) -> Array:
    """Turn a direction so that its largest component is positive, without -0."""
    largest = direction[np.abs(direction).argmax()]
    return np.asarray(np.where(np.abs(direction) < 1e-9, 0.0, direction * np.sign(largest)))


def descend(
    jacobians: Jacobians, robot: RobotModel, starts: Array, rank: int, moving: Array | None = None
) -> Array:
    """Descend on the least singular value of a Jacobian from each start, within the limits.

    Args:
        jacobians: Computes (b, r, n) at configurations (b, n).
        starts: (b, n).
        rank: Number of the singular value that counts as the least one, from 1.
        moving: (n,) 1 for joints that may move, 0 for others; default: all.

    Returns:
        (b, n).
    """
    q, mask = starts.copy(), np.ones(robot.n) if moving is None else moving
    for _ in range(DESCENT_ROUNDS):
        U, S, Vt = np.linalg.svd(jacobians(q))
        active = S[:, rank - 1] > 1e-3 * VANISHING * S[:, 0]
        if not active.any():
            break
        value, u, v = S[active, rank - 1], U[active, :, rank - 1], Vt[active, rank - 1]
        g = _gradients(jacobians, q[active], u, v) * mask
        at_lower, at_upper = q[active] <= robot.lower, q[active] >= robot.upper
        g[(at_lower & (g > 0.0)) | (at_upper & (g < 0.0))] = 0.0
        squared = (g * g).sum(axis=1)
        length = np.divide(value, squared, out=np.zeros_like(value), where=squared > 1e-24)
        length = np.minimum(length, LONGEST_STEP / np.sqrt(np.maximum(squared, 1e-24)))
        q[active] = np.clip(q[active] - length[:, None] * g, robot.lower, robot.upper)
    return q


def _gradients(jacobians: Jacobians, q: Array, u: Array, v: Array) -> Array:
    """Compute gradients (b, n) of the singular value of the vectors u (b, r) and v (b, n)."""
    b, n = q.shape
    shifts = DIFFERENCE * np.eye(n)
    ahead, behind = q[:, None] + shifts, q[:, None] - shifts  # (b, n, n)
    after, before = (jacobians(each.reshape(-1, n)) for each in (ahead, behind))
    slopes = (after - before).reshape(b, n, -1, n) / (2.0 * DIFFERENCE)
    return np.asarray(np.einsum("bi,bkij,bj->bk", u, slopes, v))


def joint_axes(robot: RobotModel) -> Axes:
    """Find axes of the first tip's chain that meet or are parallel at random configurations."""
    q = robot.random(np.random.default_rng(0), INSTANTS)
    J = robot.jacobian(q)[:, :6].swapaxes(1, 2)  # (b, n, 6)
    moments, directions = J[..., :3], J[..., 3:]
    points = np.cross(directions, moments)  # of each axis the one nearest to the tip
    turns = (np.abs(np.linalg.norm(directions, axis=2) - 1.0) < NEAR).all(axis=0)
    return Axes(
        _runs(turns, lambda run: _meets(directions[:, run], points[:, run]), 3),
        _runs(turns, lambda run: _is_parallel(directions[:, run]), 2),
    )


def _runs(turns: Any, has: Callable[[list[int]], bool], least: int) -> tuple[Run, ...]:
    """Find the longest runs of revolute joints that have a property."""
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
    return tuple(run for run in runs if len(run) >= least)


def _is_parallel(directions: Array) -> bool:
    return float(np.abs(np.cross(directions, directions[:, :1])).max()) < NEAR


def _meets(directions: Array, points: Array) -> bool:
    """Check if lines (b, k) have exactly one point in common, at each instant."""
    if directions.shape[1] < 2:
        return True
    for a, p in zip(directions, points, strict=True):
        across = np.eye(3) - a[:, :, None] * a[:, None]  # (k, 3, 3)
        normal, side = across.sum(axis=0), (across @ p[:, :, None]).sum(axis=0)[:, 0]
        if np.linalg.eigvalsh(normal)[0] < NEAR:
            return False
        middle = np.linalg.solve(normal, side)
        if np.abs(across @ middle - (across @ p[:, :, None])[:, :, 0]).max() > NEAR:
            return False
    return True


@lru_cache(maxsize=8)
def ready_configuration(robot: RobotModel) -> Array:
    """Choose joint values (n,) [rad or m] to start at, read-only: 0, or the limit next to it.

    If that is near a singularity, revolute joints are bent one after the other so that the arm
    moves well in all directions, and no farther than that; the result is always the same.
    """
    q = robot.clip(np.zeros(robot.n))
    J = robot.jacobian(q)
    unit = max(float(np.abs(J[:3]).max()), 1e-6)  # [m/rad] to compare rows of both kinds
    if robot.n <= READY_JOINTS:
        s = np.linalg.svd(_unitless(J[None], unit)[0], compute_uv=False)
        if s[-1] < READY_CONDITIONING * s[0]:
            q = _bent(robot, q, unit)
    q.flags.writeable = False
    return q


def _bent(robot: RobotModel, q0: Array, unit: float) -> Array:
    """Maximise the merit over one revolute joint after the other."""
    lower, upper = robot.finite_limits()
    margin = READY_MARGIN * (upper - lower)
    prismatic = set(robot.chain.variable[robot.chain.prismatic].tolist())
    q = q0
    for _ in range(READY_ROUNDS):
        before = q
        for j in set(range(robot.n)) - prismatic:
            tried = np.repeat(q[None], len(READY_VALUES) + 1, axis=0)  # (b, n)
            values = np.clip(q0[j] + READY_VALUES, lower[j] + margin[j], upper[j] - margin[j])
            tried[1:, j] = values
            q = tried[np.argmax(_merit(robot, tried, q0, unit))]
        if np.array_equal(q, before):
            break
    return q.copy()


def _merit(robot: RobotModel, q: Array, q0: Array, unit: float) -> Array:
    """Rate joint values (b, n): damped log manipulability, less the distance from q0; (b,)."""
    s = np.linalg.svd(_unitless(robot.jacobian(q), unit), compute_uv=False)
    manipulability = np.log(s + READY_DAMPING).sum(axis=1)
    merit: Array = manipulability - READY_NEARNESS * ((q - q0) ** 2).sum(axis=1)
    return merit.round(9)  # so that the first of equals is taken on all machines


def _unitless(J: Array, unit: float) -> Array:
    """Divide the linear rows of Jacobians (b, 6 k, n) by a length."""
    rows = np.arange(J.shape[1]) % 6 < 3
    return np.where(rows[:, None], J / unit, J)
