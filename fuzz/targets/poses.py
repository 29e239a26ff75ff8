"""Poses, seeds and times for solvers of one tip and of two, for one pose, batches and paths."""

from typing import Any

import numpy as np

from dls_ik import IkSolver, RobotModel, Stepper, Task
from dls_ik.errors import DlsIkError
from fuzz.anything import anything, numbers
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require, require_inside
from fuzz.targets.xml import HERE

WORK: dict[str, Any] = {"max_restarts": 2, "max_iterations": 25, "num_candidates": 3}
WAM = RobotModel.wam()
PLANAR = RobotModel.from_name("planar_2r")
TWO = RobotModel.from_urdf(HERE / "urdf" / "y_shape.urdf", tip=("E0", "E1"))
SOLVERS = (
    IkSolver(WAM, **WORK),
    IkSolver(WAM, "ctp+sd+svf", **WORK),
    IkSolver(WAM, "svf", **WORK),
    IkSolver(WAM, "jt", **WORK),
    IkSolver(WAM, **WORK, task=Task.pointing("z")),
    IkSolver(PLANAR, **WORK, task=Task.position_only()),
    IkSolver(TWO, "sdls+clamp", **WORK, task=Task.position_only()),
)
TYPES = ("speed", "distance", "manipulability")


def build() -> Run:
    """Make the target, kernels and bounds of reach loaded."""
    for solver in SOLVERS:
        robot = solver.robot
        T = robot.fk(np.full(robot.n, 0.2))
        for each in (T, T + np.eye(4, k=3)):
            solver.solve(each, np.zeros(robot.n), approximate=True)
            solver.solve_batch(np.array([each, each]), approximate=True, threads=1)
            for kind in TYPES:
                solver.solve(each, solve_type=kind)
        solver.solve_all(T, 2)
    return run


def run(source: Source) -> None:
    """Solve; answers are finite and inside the limits."""
    solver, kind = source.pick(SOLVERS), source.below(16)
    T, seed = pose(source, solver.robot), configuration(source, solver.robot)
    try:
        if kind < 13:
            check(solver, solver.solve(T, seed, **_wishes(source)))
        elif kind == 13:
            Ts = T if source.one_in(4) else [T] * source.below(4)
            threads = source.pick((1, 1, 1, 2, 0, None, "1"))
            found = solver.solve_batch(Ts, seed, threads=threads)
            good = found.success & (solver.keeps_limits or False)
            require_inside(solver.robot, found.q[good])
        elif kind == 14:
            jump = source.number() if source.one_in(2) else 0.5
            solver.solve_path([T] * (1 + source.below(3)), seed, max_joint_step=jump)
        else:
            _rare(source, solver, T, seed)
    except DlsIkError as error:
        require(str(error), "an error without words")


def _rare(source: Source, solver: IkSolver, T: Any, seed: Any) -> None:
    if source.below(2):
        count = source.pick((1, 2, 3, 0, -1, "2", None, 1.5, True))
        require_inside(solver.robot, solver.solve_all(T, count, seed))
    else:
        stepper = Stepper(solver.robot, source.pick(("svf", "sdls", "odls")), seed)
        if source.one_in(3):
            x_dot = anything(source) if source.one_in(3) else numbers(source, stepper.rows)
            stepper.rate(x_dot, anything(source) if source.one_in(3) else source.unit())
        elif source.one_in(3):
            stepper.step_for(anything(source), anything(source))
        else:
            stepper.step(T)
        require(np.isfinite(stepper.q).all(), "a step that is not finite", stepper.q)


def check(solver: IkSolver, result: Any) -> None:
    """What an answer promises."""
    if result.success and result.status == 0:
        require_inside(solver.robot, result.q)
        require(np.isfinite(result.position_error), "no error", result)
    if solver.keeps_limits and result.status != 4:
        require_inside(solver.robot, result.q)


def pose(source: Source, robot: RobotModel) -> Any:
    """A pose of the robot as it is, with some numbers changed, in another form; or anything."""
    kind = source.below(8)
    if kind == 7:
        return anything(source)
    T = robot.fk(np.random.default_rng(source.below(256)).uniform(-2.0, 2.0, robot.n))
    T = np.ascontiguousarray(T)
    if kind >= 2:
        flat = T.reshape(-1)
        for _ in range(source.below(4)):
            flat[source.below(len(flat))] = source.number(2.0)
    if kind == 3:
        T[..., :3, 3] *= source.number(10.0)
    if kind == 4:
        T[..., :3, :3] += 1e-4 * source.unit()
    if kind == 5:
        with np.errstate(all="ignore"):
            return source.pick((T.tolist(), T.astype("f4"), T.astype("O"), np.asfortranarray(T)))
    return T[None] if kind == 6 else T


def configuration(source: Source, robot: RobotModel) -> Any:
    """Joint values, or anything, or none."""
    kind = source.below(6)
    if kind == 0:
        return None
    if kind == 1:
        return anything(source)
    if kind == 2:
        return numbers(source, robot.n, 3.0)
    q = robot.random(np.random.default_rng(source.below(256)))
    if kind == 3:
        q[source.below(robot.n)] = source.number(3.0)
    return q


def _wishes(source: Source) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if source.one_in(3):
        given["timeout"] = source.pick((0.0, 0.001, source.number(), anything(source, 1)))
    if source.one_in(4):
        given["solve_type"] = source.pick((*TYPES, None, source.word()))
    if source.one_in(4):
        given["max_joint_change"] = source.pick((0.0, 0.5, source.number(), anything(source, 1)))
    if source.one_in(4):
        given["approximate"] = source.pick((True, False, None, 1, "yes"))
    return given
