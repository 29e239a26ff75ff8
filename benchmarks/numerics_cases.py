"""Difficult configurations and targets: singular, at limits, tiny, far, half turns."""

from typing import NamedTuple

import numpy as np

from dls_ik import RobotModel
from dls_ik.model.analysis import conditioning, descend
from dls_ik.model.reach.bounds import tip_extent

Array = np.ndarray
SINGULAR = 400  # singular configurations found going downhill
ANGLES = (0.0, np.pi / 2, -np.pi / 2, np.pi, -np.pi)  # of joints whose axes fall together
LEAST, MOST = -16.0, -2.0  # powers of ten of offsets
TINY = (5e-324, -5e-324, 1e-310, -1e-308, -0.0)
FAR = (3.0, 15.0)  # powers of ten of joint values far away
HALF_TURNS = [np.diag(signs) for signs in ((1.0, -1.0, -1.0), (-1.0, 1.0, -1.0), (-1.0, -1.0, 1.0))]


class Places(NamedTuple):
    """Properties of a robot that its cases are made from."""

    robot: RobotModel
    singular: Array  # (s, n)
    middle: Array  # (3,) [m] that the farthest reach is from
    reach: float  # [m]


def places(robot: RobotModel, rng: np.random.Generator) -> Places:
    """Find singular configurations and the extent of the tip."""
    rank = conditioning(robot).rank
    found = descend(robot, robot.random(rng, SINGULAR), rank)
    aligned = rng.choice(ANGLES, (SINGULAR, robot.n))
    aligned = np.where(rng.random(aligned.shape) < 0.5, aligned, robot.random(rng, SINGULAR))
    extent = tip_extent(robot)
    zeros = np.zeros((1, robot.n))
    return Places(robot, np.vstack([zeros, found, aligned]), extent.point, extent.most)


def configurations(at: Places, b: int, rng: np.random.Generator) -> Array:
    """Return (b, n): a third singular, a third at limits, a third between; some tiny or far."""
    robot, kind = at.robot, rng.integers(3, size=b)
    q = robot.random(rng, b)
    which = rng.integers(len(at.singular), size=b)
    q[kind != 2] = at.singular[which[kind != 2]]
    near = rng.random((b, robot.n)) < rng.choice((0.2, 1.0), (b, 1))
    q = np.where((kind == 0)[:, None] & near, q + _offsets(rng, q.shape), q)
    limited = (kind == 1)[:, None] & (rng.random(q.shape) < rng.choice((0.2, 0.6, 1.0), (b, 1)))
    q = np.where(limited, _at_limits(robot, rng, b), q)
    rare = rng.random(b)[:, None] < 0.03
    q = np.where(rare & near, rng.choice(TINY, q.shape), q)
    far = rng.random(b)[:, None] > 0.98
    away = rng.choice((-1.0, 1.0), q.shape) * 10.0 ** rng.uniform(*FAR, q.shape)
    return np.where(far & near, away, q)


def _offsets(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Return offsets of either sign, from 1e-16 to 1e-2; a quarter of them zero."""
    sizes = 10.0 ** rng.uniform(LEAST, MOST, shape)
    return np.asarray(rng.choice((-1.0, 0.0, 1.0, 1.0), shape) * sizes)


def _at_limits(robot: RobotModel, rng: np.random.Generator, b: int) -> Array:
    """Return (b, n) at limits, an ulp or a little to either side, or far beyond."""
    limit = np.where(rng.random((b, robot.n)) < 0.5, *robot.finite_limits())
    side = rng.choice((-np.inf, np.inf), limit.shape)
    beyond = limit + np.sign(limit) * 10.0 ** rng.uniform(-2.0, 2.0, limit.shape)
    choices = (limit, np.nextafter(limit, side), limit + _offsets(rng, limit.shape), beyond)
    return np.choose(rng.choice(4, limit.shape, p=(0.4, 0.25, 0.25, 0.1)), choices)


def targets(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Return targets (b, 4, 4) for configurations (b, n): the seven kinds below in equal shares."""
    b, makers = len(q), (_reached, _same, _close, _turned, _at_edge, _beyond, _at_axis)
    Ts, kind = np.empty((b, 4, 4)), rng.integers(len(makers), size=b)
    for number, make in enumerate(makers):
        rows = kind == number
        Ts[rows] = make(at, q[rows], rng)
    return Ts


def _reached(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses of other configurations, many of them singular or at limits."""
    return at.robot.fk(at.robot.clip(configurations(at, len(q), rng)))


def _same(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses of the tip."""
    return at.robot.fk(q)


def _close(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses close to the tip."""
    return at.robot.fk(q + _offsets(rng, q.shape))


def _turned(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses half a turn from the tip about its own or any other axis; moved or not."""
    Ts = at.robot.fk(q)
    axes = rng.normal(size=(len(q), 3))
    axes /= np.linalg.norm(axes, axis=1)[:, None]
    about = 2.0 * axes[:, :, None] * axes[:, None] - np.eye(3)
    own = rng.random(len(q)) < 0.5
    about[own] = np.array(HALF_TURNS)[rng.integers(3, size=len(q))][own]
    Ts[:, :3, :3] = Ts[:, :3, :3] @ about
    Ts[:, :3, 3] += _offsets(rng, (len(q), 3)) * (rng.random((len(q), 1)) < 0.5)
    return Ts


def _at_edge(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses at the largest reach, an ulp to either side, or close."""
    distance = np.full(len(q), at.reach)
    ulp = np.nextafter(distance, rng.choice((0.0, np.inf), len(q)))
    distance = np.where(rng.random(len(q)) < 0.3, ulp, distance + _offsets(rng, distance.shape))
    return _away(at, q, distance, rng)


def _beyond(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses out of reach, up to 1e8 times."""
    return _away(at, q, at.reach * 10.0 ** rng.uniform(0.0, 8.0, len(q)), rng)


def _away(at: Places, q: Array, distance: Array, rng: np.random.Generator) -> Array:
    Ts = at.robot.fk(q)
    directions = Ts[:, :3, 3] - at.middle
    some = rng.random(len(q)) < 0.5
    directions[some] = rng.normal(size=(len(q), 3))[some]
    lengths = np.maximum(np.linalg.norm(directions, axis=1), 1e-9)
    Ts[:, :3, 3] = at.middle + directions * (distance / lengths)[:, None]
    return Ts


def _at_axis(at: Places, q: Array, rng: np.random.Generator) -> Array:
    """Poses at the base, at the shoulder, or a denormal number away."""
    Ts = at.robot.fk(q)
    places = np.array([np.zeros(3), at.middle])
    Ts[:, :3, 3] = places[rng.integers(2, size=len(q))] + rng.choice((0.0, *TINY), (len(q), 3))
    return Ts
