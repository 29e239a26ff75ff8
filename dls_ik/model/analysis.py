"""Conditioning, singular configurations, axes and a ready configuration of an arm."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

LENGTH = 0.5  # [m/rad] by which rotations count, as the solver's rotation weight
VANISHING = 1e-7  # share of the largest singular value below which one counts as zero
SAMPLES = 1000  # random configurations

EVALUATIONS = 450  # starts times joints
SINGULAR = 1e-6  # share of the largest singular value
SAME = 0.02  # [rad or m] values that count as one
TRIES = 6  # of values of a joint that may not matter
NUDGE = 0.05  # [rad or m]
CALM = (0.0, 0.5, -0.5, 0.3)  # [rad or m] where joints stand that do not matter

ROUNDS = 80  # downhill
STEP = 1e-5  # [rad or m] of differences
LONGEST = 0.5  # [rad or m] step of all joints

INSTANTS = 3  # random configurations at which it has to be so
NEAR = 1e-6  # [m] or sine of an angle

Run = tuple[int, ...]  # numbers of neighbouring joints


class Conditioning(NamedTuple):
    """Singular values of the Jacobian of one tip, rotations times LENGTH."""

    rank: int  # at almost every configuration
    least: Array  # (b,) the smallest one that does not always vanish
    condition: Array  # (b,) the largest one divided by it


def scaled_jacobians(robot: RobotModel, q: Array) -> Array:
    """(b, 6, n) of the first tip at configurations (b, n), rotations times LENGTH."""
    J = robot.jacobian(q)[:, :6]
    scaled: Array = J * np.array([1.0, 1.0, 1.0, LENGTH, LENGTH, LENGTH])[:, None]
    return scaled


def conditioning(robot: RobotModel, samples: int = SAMPLES, random_seed: int = 0) -> Conditioning:
    """Measure it at configurations uniform within the limits."""
    q = robot.random(np.random.default_rng(random_seed), samples)
    s = np.linalg.svd(scaled_jacobians(robot, q), compute_uv=False)
    rank = int((s > VANISHING * s[:, :1]).sum(axis=1).max())
    least: Array = s[:, rank - 1].astype(np.float64)
    return Conditioning(rank, least, s[:, 0] / np.maximum(least, np.finfo(float).tiny))


class Loss(NamedTuple):
    """The wrench that no joint feels, in the base frame: what the tip cannot do."""

    force: Array  # (3,) unit vector, or 0: no point of this line moves along it ...
    point: Array  # (3,) [m] ... through here
    moment: Array  # (3,) without a force: the axis about which nothing turns


class Singularity(NamedTuple):
    """A family of configurations at which the tip loses a direction, by one of them."""

    joints: tuple[int, ...]  # that have to stand where they do, whatever the others do
    is_tied: bool  # each of them may move if the others follow
    q: Array  # (n,) one of the family
    rank: int  # there
    loss: Loss  # there


class Singularities(NamedTuple):
    """What was found from so many random starts."""

    rank: int  # elsewhere
    starts: int
    families: tuple[Singularity, ...]  # those of the fewest joints first
    worst: Array  # (n,) the most nearly singular configuration that was met
    least: float  # share of its largest singular value that its least one is
    weak: Loss  # what the tip does worst there


def singularities(robot: RobotModel, random_seed: int = 0) -> Singularities:
    """Look for them from random configurations; there may be more than are found."""
    rank = conditioning(robot, 200, random_seed).rank
    rng = np.random.default_rng(random_seed)
    count = int(np.clip(EVALUATIONS // robot.n, 8, 64))
    q = descend(robot, robot.random(rng, count), rank)
    shares = relative(robot, q, rank)
    found: list[Singularity] = []
    for each in q[shares < SINGULAR]:
        joints = _needed(robot, each, rank, rng)
        is_tied = len(joints) > 1 and _is_tied(robot, each, joints, rank)
        if not any(_alike(robot, each, joints, is_tied, other) for other in found):
            found.append(_singularity(robot, each, joints, is_tied, rank))
    found.sort(key=lambda family: (len(family.joints), family.joints, tuple(family.q)))
    worst = q[shares.argmin()]
    U = np.linalg.svd(scaled_jacobians(robot, worst[None])[0])[0]
    weak = _loss(robot, worst, U[:, rank - 1])
    return Singularities(rank, count, tuple(found), worst, float(shares.min()), weak)


def _needed(robot: RobotModel, q: Array, rank: int, rng: np.random.Generator) -> tuple[int, ...]:
    """The joints that keep q (n,) singular: the others may stand anywhere, all at once."""
    anywhere = robot.random(rng, TRIES)
    tries = np.repeat(q[None], TRIES, axis=0)
    needed = []
    for i in range(robot.n):
        before = tries[:, i].copy()
        tries[:, i] = anywhere[:, i]
        if relative(robot, tries, rank).max() > SINGULAR:
            tries[:, i] = before
            needed.append(i)
    return tuple(needed)


def _is_tied(robot: RobotModel, q: Array, joints: tuple[int, ...], rank: int) -> bool:
    """Whether one of the joints may move a little if the others of them follow."""
    i, others = joints[0], np.zeros(robot.n)
    others[list(joints[1:])] = 1.0
    nudged = np.repeat(q[None], 2, axis=0)
    nudged[:, i] += NUDGE, -NUDGE
    nudged = np.clip(nudged, robot.lower, robot.upper)
    followed = descend(robot, nudged, rank, others)
    near = np.abs(followed - q).max(axis=1) < 10.0 * NUDGE
    moved = np.abs(followed[:, i] - q[i]) > 0.5 * NUDGE
    return bool((near & moved & (relative(robot, followed, rank) < SINGULAR)).any())


def _alike(
    robot: RobotModel, q: Array, joints: tuple[int, ...], is_tied: bool, other: Singularity
) -> bool:
    if joints != other.joints or is_tied != other.is_tied:
        return False
    apart = q - other.q
    apart = np.where(robot.continuous, np.remainder(apart + np.pi, 2.0 * np.pi) - np.pi, apart)
    return is_tied or bool((np.abs(apart[list(joints)]) < SAME).all())


def _singularity(
    robot: RobotModel, q: Array, joints: tuple[int, ...], is_tied: bool, rank: int
) -> Singularity:
    """The family of q (n,), by a member whose other joints stand at plain values."""
    calm = q
    for value in CALM:
        calm = np.clip(np.full(robot.n, value), robot.lower, robot.upper)
        calm[list(joints)] = q[list(joints)]
        s = np.linalg.svd(scaled_jacobians(robot, calm[None])[0], compute_uv=False)
        if rank < 2 or s[rank - 2] > 1e-3 * s[0]:  # no second direction is lost
            break
    else:
        calm = q
    U, s, _ = np.linalg.svd(scaled_jacobians(robot, calm[None])[0])
    there = int((s > SINGULAR * s[0]).sum())
    return Singularity(joints, is_tied, calm, there, _loss(robot, calm, U[:, rank - 1]))


def _loss(robot: RobotModel, q: Array, u: Array) -> Loss:
    """The wrench of a left singular vector u (6,)."""
    force, moment = u[:3], LENGTH * u[3:]
    size = float(np.linalg.norm(force))
    if size < 1e-6:
        return Loss(np.zeros(3), np.zeros(3), _plain(moment / np.linalg.norm(moment)))
    tip = robot.fk(q).reshape(-1, 4, 4)[0, :3, 3]
    direction = _plain(force / size)
    point = tip + np.cross(force, moment) / size**2
    pitch = float(force @ moment) / size**2  # [m]
    return Loss(direction, point, pitch * direction)


def _plain(direction: Array) -> Array:
    """The direction with its largest component positive, and none of -0."""
    largest = direction[np.abs(direction).argmax()]
    plain: Array = np.where(np.abs(direction) < 1e-9, 0.0, direction * np.sign(largest))
    return plain


def relative(robot: RobotModel, q: Array, rank: int) -> Array:
    """(b,) the singular value of that number as a share of the largest one, at q (b, n)."""
    s = np.linalg.svd(scaled_jacobians(robot, q), compute_uv=False)
    shares: Array = s[:, rank - 1] / s[:, 0]
    return shares


def descend(robot: RobotModel, starts: Array, rank: int, moving: Array | None = None) -> Array:
    """Where the least singular value leads to from each start, within the limits.

    Args:
        starts: (b, n).
        rank: which singular value counts as the least one, from 1.
        moving: (n,) 1 for joints that may move, 0 for others; default: all.

    Returns:
        (b, n).
    """
    q, mask = starts.copy(), np.ones(robot.n) if moving is None else moving
    for _ in range(ROUNDS):
        active = np.flatnonzero(relative(robot, q, rank) > 1e-3 * VANISHING)
        if not len(active):
            break
        q[active] = _step(robot, q[active], rank, mask)
    return q


def _step(robot: RobotModel, q: Array, rank: int, mask: Array) -> Array:
    U, S, Vt = np.linalg.svd(scaled_jacobians(robot, q))
    value, u, v = S[:, rank - 1], U[:, :, rank - 1], Vt[:, rank - 1]
    g = _gradients(robot, q, u, v) * mask
    blocked = ((q <= robot.lower) & (g > 0.0)) | ((q >= robot.upper) & (g < 0.0))
    g[blocked] = 0.0
    squared = (g * g).sum(axis=1)
    length = np.divide(value, squared, out=np.zeros_like(value), where=squared > 1e-24)
    length = np.minimum(length, LONGEST / np.sqrt(np.maximum(squared, 1e-24)))
    moved: Array = np.clip(q - length[:, None] * g, robot.lower, robot.upper)
    return moved


def _gradients(robot: RobotModel, q: Array, u: Array, v: Array) -> Array:
    """(b, n) slopes of the singular value that u (b, 6) and v (b, n) belong to."""
    b, n = q.shape
    shifts = STEP * np.eye(n)
    ahead, behind = q[:, None] + shifts, q[:, None] - shifts  # (b, n, n)
    after, before = (scaled_jacobians(robot, each.reshape(-1, n)) for each in (ahead, behind))
    slopes = (after - before).reshape(b, n, 6, n) / (2.0 * STEP)
    gradients: Array = np.einsum("bi,bkij,bj->bk", u, slopes, v)
    return gradients


class Axes(NamedTuple):
    """What neighbouring revolute joints have in common."""

    meeting: tuple[Run, ...]  # in one point, three or more of them
    parallel: tuple[Run, ...]  # two or more


def joint_axes(robot: RobotModel) -> Axes:
    """Look at the axes of the first tip's chain at random configurations."""
    q = robot.random(np.random.default_rng(0), INSTANTS)
    J = robot.jacobian(q)[:, :6].swapaxes(1, 2)  # (b, n, 6)
    moments, directions = J[..., :3], J[..., 3:]
    points = np.cross(directions, moments)  # of each axis the one nearest to the tip
    turns = (np.abs(np.linalg.norm(directions, axis=2) - 1.0) < NEAR).all(axis=0)
    return Axes(
        _runs(turns, lambda run: _meets(directions[:, run], points[:, run]), 3),
        _runs(turns, lambda run: _is_parallel(directions[:, run]), 2),
    )


def _runs(turns: Any, holds: Callable[[list[int]], bool], least: int) -> tuple[Run, ...]:
    """The longest runs of joints that turn and of which something holds."""
    runs: list[Run] = []
    first = 0
    for after in range(1, len(turns) + 1):
        while first < after and not (turns[first:after].all() and holds([*range(first, after)])):
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
    """Whether lines (b, k) have a point in common that is one only, at each instant."""
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


READY_SINGULAR = 0.05  # least by greatest singular value, below which an arm is bent
MOST_JOINTS = 60  # of an arm that is bent: the work grows with their square
READY_STEPS = np.linspace(1.8, -1.8, 19)  # [rad] that are tried of each joint, the first of equals
READY_ROUNDS = 3  # over all joints
DAMPING = 0.02  # of singular values, so that those of 0 count as well
NEARNESS = 0.1  # [1/rad^2] how much the way from 0 counts beside the logarithm of manipulability
INSIDE = 0.1  # of a range, which is kept from its ends


@lru_cache(maxsize=8)
def ready_configuration(robot: RobotModel) -> Array:
    """Joint values (n,) [rad or m], read-only: 0, or the limit next to it.

    Where that is near a singularity revolute joints are bent, one after the other, by what makes
    the arm move well in all directions, and no farther; the same each time.
    """
    q = robot.clip(np.zeros(robot.n))
    J = robot.jacobian(q)
    unit = max(float(np.abs(J[:3]).max()), 1e-6)  # [m/rad] so that rows of both kinds compare
    if robot.n <= MOST_JOINTS and _conditioning(_scaled(J[None], unit))[0] < READY_SINGULAR:
        q = _bent(robot, q, unit)
    q.flags.writeable = False
    return q


def _bent(robot: RobotModel, q0: Array, unit: float) -> Array:
    lower, upper = robot.finite_limits()
    edge = INSIDE * (upper - lower)
    prismatic = set(robot.chain.variable[robot.chain.prismatic].tolist())
    q = q0
    for _ in range(READY_ROUNDS):
        before = q
        for j in set(range(robot.n)) - prismatic:
            tried = np.repeat(q[None], len(READY_STEPS) + 1, axis=0)  # (b, n)
            tried[1:, j] = np.clip(q0[j] + READY_STEPS, lower[j] + edge[j], upper[j] - edge[j])
            q = tried[np.argmax(_merit(robot, tried, q0, unit))]
        if np.array_equal(q, before):
            break
    return q.copy()


def _merit(robot: RobotModel, q: Array, q0: Array, unit: float) -> Array:
    """(b,) of joint values (b, n)."""
    s = np.linalg.svd(_scaled(robot.jacobian(q), unit), compute_uv=False)
    merit: Array = np.log(s + DAMPING).sum(axis=1) - NEARNESS * ((q - q0) ** 2).sum(axis=1)
    return merit.round(9)  # of equals the first, on all machines


def _scaled(J: Array, unit: float) -> Array:
    """Jacobians (b, 6 k, n) whose linear rows are without a unit."""
    rows = np.arange(J.shape[1]) % 6 < 3
    return np.where(rows[:, None], J / unit, J)


def _conditioning(J: Array) -> Array:
    """(b,) least by greatest singular value."""
    s = np.linalg.svd(J, compute_uv=False)
    ratio: Array = s[:, -1] / s[:, 0]
    return ratio
