"""Motion through joint space: where to, which way, and when to be where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.scene.ways import NODES, Way, find_way, way_limits, way_out
from dls_ik.solver import IkResult, IkSolver

GOALS = 12  # most solutions that are tried


class MotionPlan(NamedTuple):
    """A way to a target, or the reason why there is none."""

    way: Array  # (m, n) configurations from the start on, joined by straight paths; (0, n): none
    result: IkResult  # of the solver, for the target
    names: Pair | None = None  # in the way, where no free way leads to the target


def plan_motion(
    solver: IkSolver,
    world: SceneSnapshot | None,
    q: Array,
    T: Array,
    *,
    min_distance: float = 0.0,
    max_nodes: int = NODES,
    seed: int = 0,
) -> MotionPlan:
    """Find a way from q (n,) to a target that is free of collisions.

    To the nearest solution, straight if that is free; else to any of several solutions, around
    things. Where the target cannot be reached and q is too near to something, out of there.

    Args:
        solver: With the scene, if there is one.
        world: As the scene stands; None: every way is free.
        T: (4, 4), (k, 4, 4) for k tips.
        min_distance: That pairs keep [m], at the target too.
        seed: Of random configurations.
    """
    result = solver.solve(T, q)
    if world is None:
        return MotionPlan(np.array([q, result.q]), result)
    robot = solver.robot
    start = way_limits(robot, q, q[None], min_distance, max_nodes, seed)
    try:
        near = (
            _kept(world, result.q[None], min_distance) if result.success else np.empty((0, robot.n))
        )
        if len(near) and world.block_of_path(q, near[0], _margins(world, min_distance)) is None:
            return MotionPlan(np.array([q, near[0]]), result)
        goals = near
        if result.success:
            clearest = solver.solve(T, q, solve_type="clearance")
            others = [clearest.q[None]] if clearest.success else []
            some = np.concatenate([solver.solve_all(T, GOALS, q), *others])
            goals = np.concatenate([near, _kept(world, some, min_distance)])
        limits = way_limits(robot, q, np.concatenate([q[None], goals]), *start[2:])
        way = find_way(world, q, goals, limits) if len(goals) else None
        if way is not None and way.success:
            return MotionPlan(way.q, result)
        names = _names(world, result, way)
        if (world.least_distances(q, min_distance) <= min_distance).any():
            return MotionPlan(way_out(world, q, start).q, result, names)
    except SceneError:  # an exact check that needs a library
        names = None
    return MotionPlan(np.empty((0, robot.n)), result, names)


def _names(world: SceneSnapshot, result: IkResult, way: Way | None) -> Pair | None:
    """Return the pair in the way."""
    if way is not None:
        return way.names
    if not result.success:
        return result.pair_in_the_way
    return world.names[int(world.least_distances(result.q).argmin())] if world.names else None


def _margins(world: SceneSnapshot, min_distance: float) -> Array:
    return np.full(len(world.names), max(min_distance, 1e-6))


def _kept(world: SceneSnapshot, q: Array, min_distance: float) -> Array:
    """Return those of configurations (g, n) in which all pairs keep a distance [m]."""
    if min_distance <= 0.0:
        return q
    kept = [(world.least_distances(each, min_distance) > min_distance).all() for each in q]
    chosen: Array = q[np.array(kept, bool)]
    return chosen
