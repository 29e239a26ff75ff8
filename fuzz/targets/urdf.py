"""Robots by grammar: trees, cycles, mimics, limits and numbers of all kinds, loaded and used."""

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.errors import DlsIkError, MethodError
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require, require_inside, require_line

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "screw", "")
NUMBERS = (
    "0", "1", "-1", "0.5", "1.5707963", "-0", "1e-9", "1e400", "-1e400", "nan", "inf", "1e308",
    "1e9", "1e160", "1e-320", "0x1", "1_0", "", "x", "\u0661", "1e-400", "6.5e5", "1" * 200,
)  # fmt: skip
METHODS = ("auto", "svf", "ctp+sd+svf", "sdls", "jt")
ENCODED = {ord(c): f"&#{ord(c)};" for c in "&<>\"'\n\r\t"}


def build() -> Run:
    """Make the target, kernels loaded."""
    robot = RobotModel.wam()
    for method in METHODS:
        IkSolver(robot, method, max_restarts=0).solve(np.eye(4))
    return run


def run(source: Source) -> None:
    """Load a robot; where it is one, go through its kinematics."""
    text = robot_text(source)
    base = source.pick((None, None, None, "l0", "l1", "l2", "x"))
    tip = source.pick((None, None, None, "l1", "l2", "l3", ("l1", "l2"), "x", ()))
    try:
        robot = RobotModel.from_urdf(text, base, tip)
    except DlsIkError as error:
        require_line(error)
        return
    use(robot, source)


def use(robot: RobotModel, source: Source) -> None:
    """Poses and Jacobians are finite; answers keep the limits."""
    q = robot.random(np.random.default_rng(source.below(256)))
    require_inside(robot, q)
    T, J = robot.fk(q), robot.jacobian(q)
    require(np.isfinite(T).all() and np.isfinite(J).all(), "kinematics not finite", T, J)
    if not source.one_in(16):  # a solver takes a hundred times longer to make
        return
    try:
        solver = IkSolver(robot, source.pick(METHODS), max_restarts=1, max_iterations=20)
    except MethodError as error:  # methods by limits, where there are none
        require_line(error)
        return
    try:
        result = solver.solve(T, robot.random(np.random.default_rng(1)))
    except DlsIkError as error:
        require_line(error)
        return
    if result.success:
        require_inside(robot, result.q)
    require(np.isfinite(result.q).all(), "an answer that is not finite", result)


def robot_text(source: Source) -> str:
    """A robot that is one, more or less."""
    count = 1 + source.below(7)
    names = [_name(source, f"l{i}") for i in range(count)]
    joints = [_joint(source, i, count) for i in range(1, count)]
    if source.one_in(16):
        joints.append(_joint(source, source.below(count), count))
    links = [f'<link name="{name}"/>' for name in names]
    noise = source.pick(("", "", "", "<a/>", "text", "<!--x-->", "<joint/>", "<xacro:x/>"))
    return "\n".join([f'<robot name="{_name(source, "r")}">', *links, *joints, noise, "</robot>"])


def _joint(source: Source, i: int, count: int) -> str:
    kind = source.pick((*KINDS[:3], *KINDS))
    parent = f"l{max(0, i - 1 - source.below(2))}" if not source.one_in(16) else f"l{i}"
    details = [f'<parent link="{parent}"/>', f'<child link="l{i}"/>']
    if not source.one_in(4):
        details.append(f'<axis xyz="{_triple(source, "0 0 1")}"/>')
    if not source.one_in(4):
        xyz, rpy = _triple(source, "0.3 0 0.1"), _triple(source, "0 0.5 0")
        details.append(f'<origin xyz="{xyz}" rpy="{rpy}"/>')
    if not source.one_in(8):
        lower, upper, speed = _word(source, "-2"), _word(source, "2"), _word(source, "1")
        details.append(f'<limit lower="{lower}" upper="{upper}" velocity="{speed}" effort="1"/>')
    if source.one_in(6):
        scale, shift = _word(source, "2"), _word(source, "0.5")
        master = f"j{source.below(count)}"
        details.append(f'<mimic joint="{master}" multiplier="{scale}" offset="{shift}"/>')
    if source.one_in(16):
        del details[source.below(len(details))]
    return f'<joint name="{_name(source, f"j{i}")}" type="{kind}">{"".join(details)}</joint>'


def _name(source: Source, usual: str) -> str:
    return source.word().translate(ENCODED) if source.one_in(24) else usual


def _triple(source: Source, usual: str) -> str:
    kind = source.below(4)
    if kind < 2:
        return usual
    if kind == 2:
        return " ".join(f"{source.unit():.4g}" for _ in range(3))
    return " ".join(source.pick(NUMBERS) for _ in range(source.pick((3, 3, 3, 2, 4, 0))))


def _word(source: Source, usual: str) -> str:
    return source.pick(NUMBERS) if source.one_in(4) else usual
