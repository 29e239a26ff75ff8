"""Tasks that ask for joint values and for poses, and check what is answered."""

import time
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from moveit_msgs.msg import JointConstraint
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from sensor_msgs.msg import JointState

from benchmarks.concurrency.checks import (
    NEAR,
    SUCCESS,
    TIGHT,
    Command,
    Heard,
    distance,
    explains,
    explains_fk,
    listed,
    states_of,
    told_in_parts,
)
from benchmarks.concurrency.world import Steps, World
from dls_ik import RobotModel
from dls_ik.ros.errors import Code
from dls_ik.ros.frames import pose_from_matrix

PAUSE = 0.05  # [s] mean, between an answer and the next request
ONE = "an answer of compute_ik is of one robot"
REFUSED = "a refusal has a reason"
FK, CURRENT = "an answer of compute_fk is of one robot", "the current state is a whole command"
INVALID_LINK = int(Code.INVALID_LINK_NAME)
SETTLED = 5.0  # [s] in which a command comes, if any comes
AGO = 5.0  # [s] before a request that its state may be from


def ask_ik(world: World, rng: np.random.Generator) -> Steps:
    """Ask for joint values again and again."""
    yield lambda: world.history.model is not None
    while True:
        yield float(rng.exponential(PAUSE))
        robot = world.history.model
        assert robot is not None  # noqa: S101
        request, link, T = ik_request(robot, rng)
        first, call = world.history.last_ready, world.call("compute_ik", request)
        response = yield call
        models = world.history.models(first)
        if response.error_code.val == SUCCESS:
            fits = any(explains(model, response, link, T) for model in models)
            state = response.solution.joint_state
            words = f"{list(state.name)} {list(state.position)} for {link} at {T.tolist()}"
            world.ledger.check(fits, ONE, words)
        else:
            _check_refusal(world, response, link, models)


def _check_refusal(world: World, response: Any, link: str, models: list[RobotModel]) -> None:
    """Check that a refusal has a code, a message and no values, and that its cause is true."""
    code, words = response.error_code.val, getattr(response.error_code, "message", "on Humble")
    world.ledger.done[f"answers with code {code}"] += 1
    good = code in {int(each) for each in Code} and words and "internal error" not in words
    world.ledger.check(bool(good) and not response.solution.joint_state.name, REFUSED, words)
    if code == INVALID_LINK:
        unknown = any(link not in model.tree.child_joints for model in models)
        world.ledger.check(unknown, REFUSED, f"{link}: {words}")


def ik_request(robot: RobotModel, rng: np.random.Generator) -> tuple[Any, str, np.ndarray]:
    """A request of any kind; the link that it is for, and its pose (4, 4)."""
    request = GetPositionIK.Request()
    asked = request.ik_request
    kind = rng.choice(
        ["tip", "link", "far", "constrained", "nonsense"], p=[0.6, 0.1, 0.1, 0.1, 0.1]
    )
    q = robot.random(rng)
    link = robot.tip if rng.random() < 0.5 else ""
    if kind == "link":
        link = str(rng.choice([name for name in robot.tree.links if name != robot.base]))
    T = robot.link_pose(link or robot.tip, q)
    if kind == "far":
        T[:3, 3] *= 3.0
    asked.ik_link_name = link
    asked.pose_stamped.pose = pose_from_matrix(T)
    asked.avoid_collisions = bool(rng.random() < 0.2)
    asked.timeout = Duration(nanosec=int(rng.choice([0, 1_000_000, 20_000_000, 100_000_000])))
    if rng.random() < 0.7:
        seed = robot.random(rng)
        asked.robot_state.joint_state = JointState(name=robot.joint_names, position=seed)
    if kind == "constrained":
        joint = int(rng.integers(robot.n))
        asked.constraints.joint_constraints = [
            JointConstraint(joint_name=robot.joint_names[joint], position=float(q[joint]),
                            tolerance_above=0.5, tolerance_below=0.5, weight=1.0)
        ]  # fmt: skip
    if kind == "nonsense":
        _spoil(asked, int(rng.integers(4)))
    return request, link, T


def _spoil(asked: Any, how: int) -> None:
    if how == 0:
        asked.pose_stamped.pose.orientation.w = np.nan
    elif how == 1:
        asked.group_name = "nobody"
    elif how == 2:
        asked.pose_stamped.header.frame_id = "nowhere"
    else:
        asked.timeout = Duration(sec=-1)


def leave_unanswered(world: World, count: int = 8) -> None:
    """Send requests that take long, just before the node is to end."""
    robot = world.history.model
    for k in range(count if robot is not None else 0):
        request, _, _ = ik_request(robot, np.random.default_rng(k))
        request.ik_request.pose_stamped.pose.position.x = 100.0
        request.ik_request.timeout = Duration(sec=1)
        world.call("compute_ik", request, "left alone")


def ask_fk(world: World, rng: np.random.Generator) -> Steps:
    """Ask where links are, at joint values given and at those of now."""
    yield lambda: world.history.model is not None
    while True:
        yield float(rng.exponential(PAUSE))
        robot = world.history.model
        assert robot is not None  # noqa: S101
        request, first = GetPositionFK.Request(), world.history.last_ready
        q: dict[str, float] = {}
        if rng.random() < 0.5:
            request.fk_link_names = [str(n) for n in rng.choice(robot.tree.links, 2)]
            q = dict(zip(robot.joint_names, robot.random(rng).tolist(), strict=True))
            state = JointState(name=list(q), position=list(q.values()))
            request.robot_state.joint_state = state
        last = world.commands.last
        response = yield world.call("compute_fk", request)
        models = world.history.models(first)
        if response.error_code.val != SUCCESS:
            link = next((n for n in request.fk_link_names if n not in robot.tree.child_joints), "")
            code = response.error_code.val
            others = any(
                n not in m.tree.child_joints for m in models for n in request.fk_link_names
            )
            world.ledger.check(code == INVALID_LINK and others, REFUSED, f"code {code} {link}")
        elif q:
            links = list(request.fk_link_names)
            fits = any(explains_fk(model, response, links, q) for model in models)
            world.ledger.check(fits, FK, f"{links} at {q}")
        else:
            stamp = response.pose_stamped[0].header.stamp
            told, latest = stamp.sec + 1e-9 * stamp.nanosec, time.monotonic() + SETTLED
            yield partial(_has_heard, world, told, latest)
            _check_current(world, response, models, last)


def _has_heard(world: World, told: float, latest: float) -> bool:
    """Test if all commands up to a time are received, by their stamps, or none arrive."""
    last = world.commands.last
    return (last is not None and last.time > told) or time.monotonic() > latest


def _check_current(
    world: World, response: Any, models: list[RobotModel], last: Command | None
) -> None:
    """Check that the tip is at a command or at a state of the driver, of one robot.

    Args:
        last: the command that was the newest when the request went out.
    """
    tips = [model for model in models if response.fk_link_names == [model.tip]]
    world.ledger.check(bool(tips), FK, f"{response.fk_link_names}")
    if last is None:
        return  # nothing was commanded yet
    heard: list[Heard] = [(c.names, c.q) for c in world.commands.heard if c.time > last.time - AGO]
    heard += world.commands.measured
    away = np.inf
    for model in tips:
        others = {each.joint_names for each in models} | {last.names}
        states = states_of(model, heard, is_new=others != {model.joint_names})
        states += told_in_parts(model, world.commands.measured)
        away = min(away, distance(model, response, states))
    world.ledger.done["states of now, exactly a command"] += away < TIGHT
    words = f"{response.fk_link_names} {away:.4g} from the nearest command, {listed(last)} before"
    world.ledger.check(away < NEAR, CURRENT, words)
