"""Whether poses are reached, by the tables of the arms and not by the solver's kinematics."""

import numpy as np
from arms import published
from published_arms import ARMS

from dls_ik import IkSolver, Status, Task

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; rounding


def check(name, Ts, seeds=None, task=None, **options):
    """Solve a batch on one of the published arms; every pose must be reached inside the limits."""
    robot = published(name)
    result = IkSolver(robot, task=task, **options).solve_batch(Ts, seeds)
    assert result.success.all(), f"{name} missed {np.flatnonzero(~result.success)}"
    assert (result.status == Status.SUCCESS).all()
    assert (result.q >= robot.lower).all()
    assert (result.q <= robot.upper).all()
    apart = errors(task or Task(), Ts, ARMS[name].pose(result.q))
    assert apart.max() <= TOLERANCE, f"{name}: {apart.max(axis=0)}"
    return result


def errors(task, wanted, reached):
    """(b, 2) norms of what counts of position [m] and rotation [rad] between (b, 4, 4) poses."""
    position = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    if task == Task.position_only():
        rotation = np.zeros(len(position))
    elif task == Task.pointing("z"):
        a, b = wanted[:, :3, 2], reached[:, :3, 2]
        rotation = np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1))
    else:
        assert task == Task.pose()
        R = np.swapaxes(wanted[:, :3, :3], 1, 2) @ reached[:, :3, :3]
        twice_sine = np.linalg.norm((R - np.swapaxes(R, 1, 2))[:, (2, 0, 1), (1, 2, 0)], axis=1)
        rotation = np.arctan2(twice_sine, np.trace(R, axis1=1, axis2=2) - 1.0)
    return np.column_stack([position, rotation])
