"""``compute_ik`` and ``compute_fk``: every request is answered within its timeout.

A thread receives requests by itself. Those for ``compute_ik`` are tried at once for a millisecond,
which is enough for nearly all of them, and cheaper than a change of threads. Those that take longer
go on in other threads, where they take turns; kernels release the GIL meanwhile. A thread that
watches deadlines answers requests whose own threads do not.
"""

import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import (
    ApplyPlanningScene,
    GetPlanningScene,
    GetPositionFK,
    GetPositionIK,
    GetStateValidity,
)
from rclpy.node import Node

from dls_ik.core.jit import MissingKernelError
from dls_ik.errors import Code, DlsIkError, RequestError, code_of
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, pose_from_matrix, quaternion_note, strip_slash
from dls_ik.ros.params import Parameters
from dls_ik.ros.receiver import MessageReceiver, Reply
from dls_ik.ros.services.constrained import solve_constrained
from dls_ik.ros.services.executor import BoundedExecutor
from dls_ik.ros.services.request import (
    BY_BOUNDS,
    MIN_TIMEOUT,
    IkProblem,
    IkRequest,
    RobotContext,
    build_problem,
    driven_joints,
    read_ik_request,
    read_state,
)
from dls_ik.ros.services.scene import (
    answer_scene,
    answer_validity,
    scene_in_state,
)
from dls_ik.ros.services.scene_monitor import PlanningSceneMonitor
from dls_ik.ros.util import Throttle, trace
from dls_ik.solver import IkResult, Status
from dls_ik.solver.calls import finished, pose_slices
from dls_ik.solver.solver import CLEARANCE
from dls_ik.solver.task import too_few_joints
from dls_ik.text import escape, listing, quoted

NAMES = ("compute_ik", "compute_fk")
VALIDITY, SCENE, APPLY = "check_state_validity", "get_planning_scene", "apply_planning_scene"
FIRST_TRY = 0.001  # [s] in the thread that receives
SCENE_DEPTH = 100  # the same, of services about the scene
DEPTH = 1000  # requests and responses that the middleware keeps at least
MAX_KINDS = 1000  # of requests that are remembered
FIRST_SOLUTION = "speed"
MAX_LINKS = 1000  # of a request for compute_fk, for robots that have fewer
LATE, SLOW = "too many requests wait", "it takes longer than max_timeout"
POSITION_ONLY = "an orientation constraint with three tolerances of pi asks for the position only"


class Solution(NamedTuple):
    """A response without its code, and the message to the code."""

    response: Any
    message: str


class ServiceServer:
    """Serves a robot that may change, or be missing.

    Args:
        arm: returns the robot at the time of a request, or raises a RequestError.
        current: returns its joint positions by name [rad or m].
        scenes: keeps its planning scene.
    """

    def __init__(
        self,
        node: Node,
        arm: Callable[[], Arm],
        current: Callable[[Arm], Mapping[str, float]],
        frames: Frames,
        parameters: Parameters,
        scenes: PlanningSceneMonitor,
    ) -> None:
        self._node, self._scenes = node, scenes
        self._arm, self._current, self._frames = arm, current, frames
        self._log = Throttle(node)
        self._executor = BoundedExecutor(parameters.service_threads, parameters.service_queue)
        self._fast_path = FastPathCache()
        self._longest = parameters.max_timeout
        self._closed = False
        depth = max(DEPTH, parameters.service_queue)
        self._receiver = MessageReceiver(node, self._log)
        self._receiver.create_service(GetPositionIK, NAMES[0], self._ik, depth)
        self._receiver.create_service(GetPositionFK, NAMES[1], self._fk, depth)
        others = GetStateValidity, GetPlanningScene, ApplyPlanningScene
        receive = self._validity, self._scene, self._apply_scene
        for kind, name, take in zip(others, (VALIDITY, SCENE, APPLY), receive, strict=True):
            self._receiver.create_service(kind, name, take, SCENE_DEPTH)
        self._thread = threading.Thread(target=self._receiver.serve, name="services", daemon=True)

    def start(self) -> None:
        """Answer requests from now on."""
        self._thread.start()

    def close(self) -> None:
        """Begin with no more requests; answers that come later may not be sent."""
        self._closed = True
        self._receiver.close()
        self._executor.close()
        if self._thread.is_alive():
            self._thread.join()

    def _fk(self, request: Any, reply: Reply) -> None:
        self._send(reply, self._answer_fk(request))

    def _answer_fk(self, request: Any) -> Any:
        try:
            arm = self._arm()
            solution = answer_fk(request, arm, self._current(arm), self._frames)
        except Exception as error:  # noqa: BLE001  a client waits for an answer
            return self._failed(GetPositionFK.Response(), error)
        now = self._node.get_clock().now().to_msg()
        for stamped in solution.response.pose_stamped:
            stamped.header.stamp = now
        return self._succeeded(solution)

    def _ik(self, message: Any, reply: Reply) -> None:
        try:
            request = read_ik_request(message.ik_request, self._arm(), self._scenes.scene)
        except Exception as error:  # noqa: BLE001  a client waits for an answer
            self._send(reply, self._failed(GetPositionIK.Response(), error))
            return
        if request.unchecked:
            self._log.once("unchecked", f"a request has avoid_collisions: {request.unchecked}")
        response = None
        if not self._executor.waiting and self._fast_path.is_known(request):
            response = self._try_at_once(request)
        if response is None and not self._submit(request, reply):
            waiting, bound = self._executor.waiting, self._executor.bound
            response = self._timed_out(
                f"{waiting} requests wait already, and the parameter service_queue is {bound}: "
                "ask again later"
            )
        if response is not None:
            self._send(reply, response)

    def _try_at_once(self, request: IkRequest) -> Any | None:
        """Return the response that is found within FIRST_TRY; None: it takes longer."""
        begin = time.perf_counter()
        response = finished(self._slices(request, FIRST_TRY))
        was_cut = request.timeout > FIRST_TRY and time.perf_counter() - begin > FIRST_TRY
        return None if was_cut and response.error_code.val == Code.NO_IK_SOLUTION else response

    def _submit(self, request: IkRequest, reply: Reply) -> bool:
        """Queue a request for a thread; return whether the queue had space."""
        give_up, cut = partial(self._give_up, request, reply), partial(self._cut, request, reply)
        return self._executor.submit(self._work(request, reply), request.deadline, give_up, cut)

    def _work(self, request: IkRequest, reply: Reply) -> Iterator[None]:
        """Answer a request with what is left of its timeout."""
        if time.perf_counter() > request.deadline:
            self._give_up(request, reply)
            return
        response = yield from self._slices(request, request.timeout)
        if response.error_code.val == Code.SUCCESS:
            self._fast_path.remember(request)
        self._send(reply, response)

    def _give_up(self, request: IkRequest, reply: Reply) -> None:
        """Answer a request that no thread took up in time."""
        busy, others = self._executor.running, self._executor.waiting
        message = (
            f"no thread was free for the request within its timeout of {request.timeout:.3g} s: "
            f"service_threads is {self._executor.threads}, {busy} requests are being solved and "
            f"{others} others wait; give a longer timeout, or more service_threads"
        )
        self._send(reply, self._timed_out(message))

    def _cut(self, request: IkRequest, reply: Reply) -> None:
        """Answer a request whose solving did not end in time; its thread goes on until it can."""
        message = (
            f"no solution was found within the timeout of {request.timeout:.3g} s: something that "
            "takes longer is computed first, such as bounds of reach or shapes of carried "
            "objects; the same request may succeed later"
        )
        if request.timeout_note:
            message = f"{message}; {request.timeout_note}"
        self._send(reply, self._with_code(GetPositionIK.Response(), Code.NO_IK_SOLUTION, message))

    def _slices(self, request: IkRequest, longest: float) -> Generator[None, None, Any]:
        """Solve a request for a time [s] at most, in slices; return the response."""
        try:
            current = self._current(request.arm)
            timeout = min(request.remaining, longest)
            solution = yield from ik_slices(request, current, self._frames, timeout)
        except Exception as error:  # noqa: BLE001  a client waits for an answer
            return self._failed(GetPositionIK.Response(), error, request.timeout_note)
        now = self._node.get_clock().now().to_msg()
        solution.response.solution.joint_state.header.stamp = now
        return self._succeeded(solution)

    def _succeeded(self, solution: Solution) -> Any:
        return self._with_code(solution.response, Code.SUCCESS, solution.message)

    def _timed_out(self, message: str) -> Any:
        return self._with_code(GetPositionIK.Response(), Code.TIMED_OUT, message)

    def _failed(self, empty: Any, error: Exception, note: str = "") -> Any:
        """Fill the empty response; the note is added where there is no solution."""
        if isinstance(error, MissingKernelError):
            return self._with_code(empty, Code.TIMED_OUT, str(error))
        if not isinstance(error, DlsIkError):
            self._node.get_logger().error(trace(error))
            return self._with_code(empty, Code.FAILURE, f"internal error: {error!r}")
        code = code_of(error)
        message = f"{error}; {note}" if note and code is Code.NO_IK_SOLUTION else str(error)
        return self._with_code(empty, code, message)

    def _with_code(self, response: Any, code: Code, message: str) -> Any:
        error_code = response.error_code
        error_code.val = int(code)
        if hasattr(error_code, "message"):  # not on Humble
            error_code.message, error_code.source = escape(message), self._node.get_name()
        return response

    def _send(self, reply: Reply, response: Any) -> None:
        try:
            reply(response)
        except Exception as error:  # noqa: BLE001  the node ends, or the client is gone; others wait
            if not self._closed:
                self._log.failed("reply", "an answer was not sent", error)

    # About the scene

    def _validity(self, request: Any, reply: Reply) -> None:
        deadline = time.perf_counter() + self._longest

        def invalid(reason: str) -> None:
            self._log.warn(VALIDITY, f"{VALIDITY} answers that a state is not valid: {reason}")
            self._send(reply, GetStateValidity.Response(valid=False))

        def work() -> Iterator[None]:
            try:
                arm = self._arm()
                given = arm, self._scenes.scene(arm.tree), self._current(arm), self._frames
                response = answer_validity(request, *given)
            except DlsIkError as error:
                invalid(str(error))
            except Exception as error:  # noqa: BLE001  a client waits for an answer
                self._node.get_logger().error(trace(error))
                invalid(f"internal error: {error!r}")
            else:
                self._send(reply, response)
            yield from ()

        late, slow = partial(invalid, LATE), partial(invalid, SLOW)
        if not self._executor.submit(work(), deadline, late, slow):
            invalid(LATE)

    def _scene(self, request: Any, reply: Reply) -> None:
        def answer() -> Any:
            arm = self._arm()
            scene = self._scenes.scene(arm.tree)
            return answer_scene(request, arm, scene, self._current(arm))

        self._in_order(answer, reply, GetPlanningScene.Response(), SCENE)

    def _apply_scene(self, request: Any, reply: Reply) -> None:
        name = self._node.resolve_service_name(APPLY)

        def answer() -> Any:
            is_taken = self._scenes.change(request.scene, name, at_once=True)
            return ApplyPlanningScene.Response(success=is_taken)

        self._in_order(answer, reply, ApplyPlanningScene.Response(success=False), APPLY)

    def _in_order(self, answer: Callable[[], Any], reply: Reply, empty: Any, name: str) -> None:
        """Answer after all changes of the scene that came before."""

        def work() -> None:
            try:
                response = answer()
            except Exception as error:  # noqa: BLE001  a client waits for an answer
                response = empty
                if isinstance(error, DlsIkError):
                    self._log.warn(name, f"{name} has no scene to answer with: {error}")
                else:
                    self._node.get_logger().error(trace(error))
            self._send(reply, response)

        if not self._scenes.submit(work):
            self._log.warn(name, f"{name} is refused: {LATE}")
            self._send(reply, empty)


class FastPathCache:
    """Remembers the kinds of requests that may be tried at once, in the thread that receives.

    The first request of a kind may have to make a solver, which takes some tenths of a second; and
    only if the first solution is wanted does an early end without a solution lose nothing. Solvers
    and scenes are referred to weakly: a changed scene replaces its snapshot, often many times a
    second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arm: ref[Arm] | None = None
        self._kinds: set[tuple[object, ...]] = set()

    def is_known(self, request: IkRequest) -> bool:
        """Return whether a request is of a kind that takes no preparation."""
        if request.arm.parameters.solve_type != FIRST_SOLUTION:
            return False
        if request.is_constrained or request.state.attached:  # each such request makes a solver
            return False
        if request.scene is not None and _has_joints_beside(request):  # 7 ms wherever they move
            return False
        with self._lock:
            return self._is_of_arm(request) and _kind(request) in self._kinds

    def remember(self, request: IkRequest) -> None:
        """Remember the kind of a request that was answered."""
        with self._lock:
            if not self._is_of_arm(request) or len(self._kinds) >= MAX_KINDS:
                self._arm, self._kinds = ref(request.arm), set()
            self._kinds.add(_kind(request))

    def _is_of_arm(self, request: IkRequest) -> bool:
        return self._arm is not None and self._arm() is request.arm


def _has_joints_beside(request: IkRequest) -> bool:
    masters = {mimic.master for mimic in request.arm.tree.mimic_of.values()}
    return len(masters) > len(request.group.solver.robot.joint_names)


def _kind(request: IkRequest) -> tuple[object, ...]:
    """Return the common features of requests that are answered with the same solver."""
    scene = None if request.scene is None else ref(request.scene.snapshot)
    return ref(request.group.solver), request.links, request.is_constrained, scene


# Answers: functions of request, robot and state


def ik_slices(
    request: IkRequest, current: Mapping[str, float], frames: Frames, timeout: float
) -> Generator[None, None, Solution]:
    """Solve a request within a time [s], preparations included, and yield about every 10 ms.

    Args:
        current: joint positions by name [rad or m], which the state of the request overlays.

    Raises:
        RequestError: a request that is not valid, or has no solution.
        FrameError, PoseError: a frame or a pose that is not valid.
    """
    arm, state, begin = request.arm, request.state, time.perf_counter()
    context = RobotContext(arm, frames, state.overlay(arm.tree, current))
    problem = build_problem(request, context)
    if request.scene is not None:
        robot, attached = problem.solver.robot, (state.attached, state.keeps_attached)
        scene = scene_in_state(request.scene, robot, context, attached)
        context = context._replace(scene=scene)
    left = max(timeout - (time.perf_counter() - begin), MIN_TIMEOUT)
    if request.is_constrained:
        solving = solve_constrained(problem, request.constraints, context, left)
    else:
        solving = _solve(problem, context, left)
    result, note = yield from solving
    note = _join(note, request.unchecked)
    note = _join(note, *request.state.notes, _normalization_note(request))
    if not result.success:
        if request.scene is not None and not request.scene.snapshot.exact:
            note = _join(note, BY_BOUNDS)
        raise RequestError(Code.NO_IK_SOLUTION, _join(_failure(result), note))
    found = problem.solver.robot.named(result.q)
    response = _ik_response(arm.tree, {**context.values, **found})
    return Solution(response, _join(_success(result), note))


def _solve(
    problem: IkProblem, context: RobotContext, timeout: float
) -> Generator[None, None, tuple[IkResult, str]]:
    """Solve without constraints; the second result is a note on a failure."""
    solver, given = problem.solver, (problem.targets[None], problem.seed[None])
    search = solver.search
    if context.scene is not None:
        search = search.within(context.scene.snapshot)
        if context.arm.parameters.solve_type == CLEARANCE:
            search = search.wanting(CLEARANCE, None, None)
    result = yield from pose_slices(search, *given, True, timeout, time.perf_counter())
    few = "" if result.success else too_few_joints(solver.robot, None)
    return result, f"{few}: {POSITION_ONLY}" if few else ""


def _normalization_note(request: IkRequest) -> str:
    given = request.constraints.orientation_constraints
    return quaternion_note([stamped.pose for stamped in request.poses] + list(given))


def _ik_response(tree: Tree, values: Mapping[str, float]) -> Any:
    """Fill a response with all joints that one value moves, in the order of the model."""
    response = GetPositionIK.Response()
    complete = tree.values(values)
    solution = response.solution.joint_state
    solution.header.frame_id = tree.root
    solution.name = driven_joints(tree)
    solution.position = [complete[name] for name in solution.name]
    return response


def _errors(result: IkResult) -> str:
    return f"{result.position_error:.2g} m and {result.rotation_error:.2g} rad"


def _success(result: IkResult) -> str:
    return f"solved to {_errors(result)} in {1e3 * result.duration:.3g} ms"


def _failure(result: IkResult) -> str:
    why, tried = result.status.explanation, f"tried for {1e3 * result.duration:.3g} ms"
    if result.pair_in_the_way is not None:
        pair = " and ".join(map(quoted, result.pair_in_the_way))
        return f"{why}, most often of {pair}, {tried}"
    where = "" if result.status is Status.OUTSIDE_LIMITS else f"; nearest: {_errors(result)}"
    return f"{why}, {tried}{where}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def answer_fk(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Solution:
    """Compute poses of links in the frame of the header; an empty frame is the root.

    Args:
        request: ``moveit_msgs/srv/GetPositionFK`` request; without links: the tip that follows
            targets.
        current: joint positions by name [rad or m], which the state of the request overlays.

    Raises:
        RequestError: unknown links, or a state that is not valid.
        FrameError: an unknown frame.
    """
    tree = arm.tree
    asked = list(request.fk_link_names) or [arm.robot.tip]
    links = [strip_slash(link) for link in asked]
    _check_links(links, tree)
    state = read_state(tree, request.robot_state)
    values = state.overlay(tree, current)
    frame = strip_slash(request.header.frame_id) or tree.root
    T_frame_root = inverse(frames.T_root_frame(frame, tree, values, request.header.stamp))
    poses = {link: T_frame_root @ tree.pose(link, values) for link in set(links)}
    response = GetPositionFK.Response(fk_link_names=asked)
    for link in links:
        stamped = PoseStamped(pose=pose_from_matrix(poses[link]))
        stamped.header.frame_id = frame
        response.pose_stamped.append(stamped)
    return Solution(response, _join(f"{len(links)} poses in {quoted(frame)}", *state.notes))


def _check_links(links: list[str], tree: Tree) -> None:
    most = max(MAX_LINKS, len(tree.links))
    if len(links) > most:
        message = f"at most {most} links in a request, given {len(links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)
    unknown = [link for link in dict.fromkeys(links) if link not in tree.child_joints]
    if unknown:
        message = f"unknown link {listing(map(quoted, unknown))}; links: {listing(tree.links)}"
        raise RequestError(Code.INVALID_LINK_NAME, message)
