"""What the singular configurations of a robot have in common: which joints have to stand where."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.conditioning import LENGTH, conditioning, scaled_jacobians
from dls_ik.model.robot import RobotModel
from dls_ik.model.singular import descend, relative

EVALUATIONS = 450  # starts times joints
SINGULAR = 1e-6  # share of the largest singular value
SAME = 0.02  # [rad or m] values that count as one
TRIES = 6  # of values of a joint that may not matter
NUDGE = 0.05  # [rad or m]
CALM = (0.0, 0.5, -0.5, 0.3)  # [rad or m] where joints stand that do not matter


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
