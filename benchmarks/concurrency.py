# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random concurrent inputs: parameters, requests, robots, targets, pause and reset.

docs/lab/benchmarks.md, section Concurrency, lists the invariants. The actions of each task are
drawn from the seed; their times also depend on the machine. The exit code is 1 if an invariant was
violated. If a call is not answered within a minute, the node dumps the stacks of its threads.
"""

import math
import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import QoSProfile
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from benchmarks.client import Awaited, Inbox, Steps, Task, client_node
from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.concurrency_checks import (
    ACCELERATION,
    Commands,
    History,
    Ledger,
    broken_robots,
    explains_fk,
    explains_ik,
    good_robots,
    is_fk_refusal,
    is_ik_refusal,
)
from benchmarks.processes import STARTING, Process, proc_figures, ros_node
from dls_ik import DlsIkError, RobotModel
from dls_ik.ros.client.ik_client import IK_ANSWER_QUEUE_DEPTH
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.robot_source import DESCRIPTION_QOS

NAME, RATE = "concurrency", 200.0  # namespace, [Hz]
ANSWER_TIMEOUT = 60.0  # [s] maximum wait for an answer or an event
DUMP_TIME = 3.0  # [s] time in which the node dumps the stacks of its threads
FAULTS = (
    "Traceback",
    "internal error",
    "FATAL",
    "a callback failed",
    "cycle of the servo loop failed",
)
SERVICES = {
    "compute_ik": GetPositionIK,
    "compute_fk": GetPositionFK,
    "dls_ik/pause": SetBool,
    "dls_ik/reset": Trigger,
    "dls_ik/get_parameters": GetParameters,
    "dls_ik/set_parameters_atomically": SetParametersAtomically,
}
TARGETS = {"target_pose": PoseStamped, "target_twist": TwistStamped, "target_trajectory": PoseArray}
SUCCESS = 1
ASK, CHANGE, SWAP, ORDER, PERIOD = (
    0.05,
    0.2,
    0.7,
    1.5,
    0.03,
)  # [s] mean pauses of the tasks, period of targets

GOOD: tuple[Mapping[str, Sequence[Any]], ...] = (
    {
        "method": ["auto", "auto", "svf+sd", "sdls"],
        "timeout": [0.02, 0.05, 0.1],
        "position_tolerance": [1e-6, 1e-5, 1e-4],
        "rotation_tolerance": [1e-6, 1e-5, 1e-4],
        "solve_type": ["speed", "speed", "distance"],
        "random_seed": [0, 1, 7],
        "method_options.margin": [0.05, 0.1],
        "avoid_collisions": ["request", "always", "ignore"],
        "group_name": ["", "", "arm"],
    },
    {
        "stream_method": ["ctp+sd+svf", "svf+sd", "sdls"],
        "when_stuck": ["joint_motion", "hold"],
        "feed_forward": [True, False],
        "target_timeout": [0.1, 0.25, 0.5],
        "when_stream_ends": ["settle", "stop", "finish"],
        "stamp_tolerance": [0.1, 1.0],
        "twist_lookahead": [0.005, 0.02],
        "trajectory_period": [0.05, 0.1],
        "method_options.mu": [0.1, 0.2],
        "method_options.gamma_max": [0.5, 0.8],
    },
)
BAD: tuple[Mapping[str, Sequence[Any]], ...] = (
    {
        "method": ["nope", "", 3],
        "timeout": [-1.0, math.nan, "long"],
        "position_tolerance": [0.0, math.inf],
        "random_seed": [-5, 0.5],
        "avoid_collisions": ["perhaps", "refuse"],
        "solve_type": ["nearest"],
        "rate": [50.0],
        "robot": ["puma560"],
        "no_such_parameter": [1.0],
    },
    {
        "stream_method": ["nope", "kdl_nr"],
        "when_stuck": ["panic"],
        "feed_forward": ["yes"],
        "target_timeout": [0.0],
        "twist_lookahead": [math.inf],
        "acceleration": [[4.0]],
        "feedback_mode": ["none"],
        "base": ["elsewhere"],
    },
)


class World:
    """Context with the running node and the tasks that use it."""

    def __init__(self) -> None:
        self.ledger, self.history, self.log = Ledger(), History(), []  # type: Any, Any, list[str]
        self.commands = Commands(self.history, self.ledger, 1.0 / RATE)
        command = ros_node("dls_ik.ros.node", NAME, rate=RATE, acceleration=[ACCELERATION])
        self.process = Process(command, PYTHONFAULTHANDLER="1")
        self._tasks: list[Task] = []

    def __enter__(self) -> "World":
        """Start the node; it waits for a robot."""
        self._stack = ExitStack()
        self._stack.enter_context(self.process)
        self.node, self._executor = self._stack.enter_context(client_node(namespace=NAME))
        self._inbox = Inbox(self.node, JointState, "joint_states")
        ways = QoSProfile(depth=IK_ANSWER_QUEUE_DEPTH)
        self._clients = {
            n: self.node.create_client(k, n, qos_profile=ways) for n, k in SERVICES.items()
        }
        return self

    def __exit__(self, *_: Any) -> None:
        """Stop the node."""
        self._stack.close()
        self._read_log()

    def wait_ready(self) -> None:
        """Wait for the services of the node, and for its first log line."""
        deadline = time.monotonic() + STARTING
        while not (self.log and all(each.service_is_ready() for each in self._clients.values())):
            if time.monotonic() > deadline or not self.process.is_running:
                raise DlsIkError(f"the node is not ready; it said: {' | '.join(self.log[-5:])}")
            self._turn(())

    def add(self, task: Callable[..., Steps], *arguments: Any) -> None:
        """Start a task."""
        self._tasks.append(Task(task(self, *arguments), ANSWER_TIMEOUT))

    def call(self, service: str, request: Any) -> Future:
        """Send a request, and return its future for the task to yield."""
        self.ledger.done[f"calls of {service}"] += 1
        return self._clients[service].call_async(request)

    def parameters(self, names: Sequence[str]) -> Generator[Awaited, Any, dict[str, Any]]:
        """Read parameters."""
        request = GetParameters.Request(names=list(names))
        response = yield self.call("dls_ik/get_parameters", request)
        return dict(zip(names, map(parameter_value_to_python, response.values), strict=True))

    def run(self, duration: float, enough: Callable[[Ledger], bool] = lambda _: True) -> None:
        """Run the tasks for a time [s], or longer until the counts suffice; then await all answers.

        A task that times out stops the run; the log of the node then has the stacks of its threads.
        """
        end = time.monotonic() + duration
        try:
            while self.process.is_running:
                now = time.monotonic()
                if now > end and (enough(self.ledger) or now > end + 300.0):
                    break
                self._turn(self._tasks)
            while self.process.is_running and (left := [t for t in self._tasks if t.awaits_answer]):
                self._turn(left)
        except KeyboardInterrupt:
            pass
        except TimeoutError as error:
            self.process.signal(signal.SIGABRT)
            time.sleep(DUMP_TIME)
            self._read_log()
            dump = "\n".join(self.log[-200:])
            self.ledger.check(False, "every call is answered", f"{error};\n{dump}")

    def _turn(self, tasks: Sequence[Task]) -> None:
        self._executor.spin_once(timeout_sec=0.002)
        self._read_log()
        for message in self._inbox.take():
            self.commands.take(message)
        for task in tasks:
            task.step()

    def _read_log(self) -> None:
        for line in self.process.lines():
            self.log.append(line)
            self.history.read(line)


# Readers


def ask_ik(world: World, rng: np.random.Generator) -> Steps:
    """Request inverse kinematics repeatedly."""
    yield lambda: world.history.model is not None
    while True:
        yield float(rng.exponential(ASK))
        request, link, T = ik_request(world.history.model, rng)
        first = world.history.last_ready
        response = yield world.call("compute_ik", request)
        models = world.history.since(first).values()
        if response.error_code.val == SUCCESS:
            fits = any(explains_ik(model, response, link, T) for model in models)
            state = response.solution.joint_state
            words = f"{list(state.name)} {list(state.position)} for {link} at {T.tolist()}"
            world.ledger.check(fits, "an answer of compute_ik is of one robot", words)
        else:
            _refused(world, response, is_ik_refusal(response, [link], models))


def ask_fk(world: World, rng: np.random.Generator) -> Steps:
    """Request forward kinematics repeatedly."""
    yield lambda: world.history.model is not None
    while True:
        yield float(rng.exponential(ASK))
        robot, first = world.history.model, world.history.last_ready
        links = rng.choice(robot.tree.links, 2).tolist() if rng.random() < 0.5 else [robot.tip]
        q = dict(zip(robot.joint_names, robot.random(rng=rng).tolist(), strict=True))
        request = GetPositionFK.Request(fk_link_names=links)
        request.robot_state.joint_state = JointState(name=list(q), position=list(q.values()))
        response = yield world.call("compute_fk", request)
        models = world.history.since(first).values()
        if response.error_code.val == SUCCESS:
            fits = any(explains_fk(model, response, links, q) for model in models)
            world.ledger.check(fits, "an answer of compute_fk is of one robot", f"{links} at {q}")
        else:
            _refused(world, response, is_fk_refusal(response, links, models))


def _refused(world: World, response: Any, is_right: bool) -> None:
    code = response.error_code
    world.ledger.done[f"answers with code {code.val}"] += 1
    world.ledger.check(is_right, "a refusal has a reason", str(code))


def ik_request(robot: RobotModel, rng: np.random.Generator) -> tuple[Any, str, np.ndarray]:
    """Return a random request, its link, and its pose (4, 4)."""
    request = GetPositionIK.Request()
    asked = request.ik_request
    kind = rng.choice(["tip", "link", "far", "nonsense"], p=[0.7, 0.1, 0.1, 0.1])
    q = robot.random(rng=rng)
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
        seed = robot.random(rng=rng)
        asked.robot_state.joint_state = JointState(name=robot.joint_names, position=seed)
    if kind == "nonsense":
        how = int(rng.integers(3))
        if how == 0:
            asked.pose_stamped.pose.orientation.w = math.nan
        elif how == 1:
            asked.pose_stamped.header.frame_id = "nowhere"
        else:
            asked.timeout = Duration(sec=-1)
    return request, link, T


# Writers


def change(world: World, rng: np.random.Generator, part: int) -> Steps:
    """Change random parameters of a group that no other task changes."""
    names = list(GOOD[part])
    truth = yield from world.parameters(names)
    while True:
        yield float(rng.exponential(CHANGE))
        changes = _some(rng, GOOD[part], 3)
        is_good = rng.random() < 0.6
        if not is_good:
            bad = _some(rng, BAD[part], 1)
            if part and rng.random() < 0.2:
                bad = {"stream_method": "svf+sd", "method_options.nu": 1e-9}  # contradictory
            changes = {**changes, **bad} if rng.random() < 0.5 else {**bad, **changes, **bad}
        world.ledger.done["good changes" if is_good else "bad changes"] += 1
        request = SetParametersAtomically.Request(
            parameters=[Parameter(n, value=v).to_parameter_msg() for n, v in changes.items()]
        )
        result = (yield world.call("dls_ik/set_parameters_atomically", request)).result
        words, what = f"{changes}: {result.reason}", "a change is taken or refused as it must be"
        world.ledger.check(result.successful == is_good, what, words)
        if result.successful:
            truth.update(changes)
        found = yield from world.parameters(names)
        wrong = {n: (found[n], truth[n]) for n in names if found[n] != truth[n]}
        world.ledger.check(not wrong, "a parameter is what was taken last", f"{wrong}")


def _some(rng: np.random.Generator, of: Mapping[str, Sequence[Any]], most: int) -> dict[str, Any]:
    """Return random parameters with random values."""
    count = int(rng.integers(1, most + 1))
    names = [list(of)[i] for i in rng.choice(len(of), count, replace=False)]
    return {name: of[name][int(rng.integers(len(of[name])))] for name in names}


def swap_robots(world: World, rng: np.random.Generator) -> Steps:
    """Send descriptions, and sometimes wait until a valid one is in use."""
    publisher = world.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
    while True:
        count = int(rng.integers(2, 5)) if rng.random() < 0.2 else 1
        for _ in range(count):
            is_broken = rng.random() < 0.25 and bool(world.history.sent)
            robots = broken_robots() if is_broken else good_robots()
            robot = robots[int(rng.integers(len(robots)))]
            world.ledger.done["broken robots" if is_broken else "robots"] += 1
            publisher.publish(String(data=world.history.send(robot)))
            if count > 1:
                yield float(rng.exponential(0.02))
        if robot.model is not None:  # a later one takes its place, but only this task sends them
            last = len(world.history.sent) - 1
            yield lambda last=last: world.history.last_ready >= last
        yield float(rng.exponential(SWAP))


def send_targets(world: World, rng: np.random.Generator) -> Steps:
    """Send streams of poses and twists, single trajectories, invalid targets, and nothing."""
    publishers = {kind: world.node.create_publisher(kind, t, 1) for t, kind in TARGETS.items()}
    yield lambda: world.history.model is not None
    while True:
        kind = str(rng.choice([*TARGETS, "nonsense", "silence"], p=[0.45, 0.2, 0.15, 0.1, 0.1]))
        make = _maker(kind, world.history.model, rng)
        for k in range(1 if kind == "target_trajectory" else int(rng.integers(1, 40))):
            if (message := make(k * PERIOD)) is not None:
                publishers[type(message)].publish(message)
                world.ledger.done[f"{kind} sent"] += 1
            yield PERIOD


def _maker(kind: str, robot: RobotModel, rng: np.random.Generator) -> Callable[[float], Any]:
    """Return a function from time to messages, for a robot that may be replaced soon."""
    middle = 0.5 * (robot.random(rng=rng) + robot.clip(np.zeros(robot.n)))
    swing, speed = 0.3 * rng.standard_normal(robot.n), rng.uniform(1.0, 4.0)

    def pose(t: float) -> Any:
        return pose_from_matrix(robot.fk(robot.clip(middle + swing * np.sin(speed * t))))

    if kind == "target_pose":
        return lambda t: PoseStamped(pose=pose(t))
    if kind == "target_trajectory":
        return lambda _: PoseArray(poses=[pose(0.1 * k) for k in range(10)])
    if kind == "silence":
        return lambda _: None
    message = TwistStamped() if kind == "target_twist" else PoseStamped()
    message.header.frame_id = str(rng.choice(["", robot.tip, robot.base]))
    if kind == "nonsense":
        message.pose.position.x = math.nan
    else:
        v, w = message.twist.linear, message.twist.angular
        v.x, v.y, v.z, w.x, w.y, w.z = (0.2 * rng.standard_normal(6)).tolist()
    return lambda _: message


def order(world: World, rng: np.random.Generator) -> Steps:
    """Reset, or pause and check that the arm rests until it resumes."""
    yield lambda: world.history.model is not None
    while True:
        yield float(rng.exponential(ORDER))
        if rng.random() < 0.7:
            yield from _ordered(world, "dls_ik/pause", SetBool.Request(data=True))
            since = time.time()
            yield lambda since=since: _standstill(world, since) < math.inf
            stands = _standstill(world, since)
            yield float(rng.exponential(0.5))
            moved = [c for c in world.commands.received if c.time > stands and c.v.any()]
            words = f"{len(moved)} commands move, the first {moved[0] if moved else ''}"
            world.ledger.check(not moved, "a paused arm stands", words)
            if rng.random() < 0.5:
                yield from _ordered(world, "dls_ik/pause", SetBool.Request(data=False))
                continue
        yield from _ordered(world, "dls_ik/reset", Trigger.Request())


def _ordered(world: World, service: str, request: Any) -> Steps:
    answer = yield world.call(service, request)
    world.ledger.check(answer.success, "an order is taken", answer.message)


def _standstill(world: World, since: float) -> float:
    """Return the stamp of the first command at rest after a time [s]."""
    rest = (c.time for c in world.commands.received if c.time > since and not c.v.any())
    return next(rest, math.inf)


# Run


def run(duration: float, seed: int, enough: Callable[[Ledger], bool] = lambda _: True) -> World:
    """Run all tasks on one node for a time [s], or longer until the counts suffice."""
    good_robots(), broken_robots()  # built before the node waits for a robot
    rngs = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(20))
    with World() as world:
        world.wait_ready()
        for task in (swap_robots, *[ask_ik] * 4, *[ask_fk] * 2, send_targets, order):
            world.add(task, next(rngs))
        for part in range(len(GOOD)):
            world.add(change, next(rngs), part)
        world.run(duration, enough)
        if world.process.is_running:
            size = round(proc_figures(world.process.process.pid).rss)
            world.ledger.done["memory at the end [MiB]"] = size
            for _ in range(8):  # requests that take long, just before the node ends
                request, _, _ = ik_request(RobotModel.wam(), np.random.default_rng(0))
                request.ik_request.pose_stamped.pose.position.x = 100.0
                request.ik_request.timeout = Duration(sec=1)
                world.call("compute_ik", request)
    ledger, code = world.ledger, world.process.exit_code
    ledger.check(code == 0, "the node ends with exit code 0", f"it is {code}")
    faults = [line for line in world.log if any(fault in line for fault in FAULTS)]
    ledger.check(not faults, "no fault in the log", "\n".join(world.log[-100:]))
    ledger.done["robots that were in force"] = sum(" ready after " in line for line in world.log)
    ledger.done["robots refused"] = world.history.refused
    return world


def main() -> None:
    """Run the tasks, and print the results."""
    options = parser(__doc__, seed=0)
    options.add_argument("--minutes", type=float, default=10.0, help="of the run")
    given = options.parse_args()
    ledger = run(60.0 * given.minutes, given.seed).ledger
    done = Table("What was done", columns("done; count :d"), sorted(ledger.done.items()))
    checked = Table("Invariants", columns("must hold; checked :d; violated :d"))
    checked.rows = [[n, count, ledger.violations[n]] for n, count in sorted(ledger.checked.items())]
    notes = [f"{given.minutes:g} minutes, seed {given.seed}"]
    finish(given, [done, checked], notes + [f"VIOLATED: {words}" for words in ledger.words])
    sys.exit(1 if ledger.violations else 0)


if __name__ == "__main__":
    guarded(main)
