"""The answer to ``compute_ik``: a function of the request, the robot and its state."""

from collections.abc import Generator, Mapping
from typing import Any, NamedTuple

from moveit_msgs.srv import GetPositionIK

from dls_ik.ros.arm import Arm
from dls_ik.ros.constraints.solve import are_given, solve_constrained
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import Frames, quaternion_note
from dls_ik.ros.params import Parameters
from dls_ik.ros.params.ik_node import REFUSE
from dls_ik.ros.services.problem import build_problem, solve
from dls_ik.ros.services.state import driven_joints, overlaid
from dls_ik.ros.services.wanted import wanted
from dls_ik.solver import IkResult, Status
from dls_ik.solver.single import finished
from dls_ik.solver.task import too_few_joints

POSITION_ONLY = "an orientation constraint with three tolerances of pi asks for the position only"


class Answer(NamedTuple):
    """A response without its code, and the words to the code."""

    response: Any
    message: str


def answer_ik(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Answer:
    """Solve a request at once, see :func:`ik_slices`."""
    return finished(ik_slices(request, arm, current, frames))


def ik_slices(
    request: Any, arm: Arm, current: Mapping[str, float], frames: Frames
) -> Generator[None, None, Answer]:
    """Solve a ``moveit_msgs/PositionIKRequest``, and yield about every 10 ms.

    Args:
        current: the joint values that the state of the request overlays.

    Raises:
        RequestError: a request that is not valid, or has no solution.
    """
    _check_wishes(request, arm.parameters)
    state = overlaid(arm.tree, current, request.robot_state)
    problem = build_problem(request, arm, state, frames)
    if are_given(request.constraints):
        given = request.constraints
        result, note = yield from solve_constrained(problem, given, arm, state.values, frames)
    else:
        result, note = (yield from solve(problem)), ""
        few = "" if result.success else too_few_joints(problem.solver.robot, None)
        note = f"{few}: {POSITION_ONLY}" if few else note
    note = _join(note, state.note, _length_note(request))
    if not result.success:
        raise RequestError(Code.NO_IK_SOLUTION, _join(_failure(result), note))
    names = problem.solver.robot.joint_names
    found = dict(zip(names, result.q.tolist(), strict=True))
    return Answer(_response(arm, {**state.values, **found}), _join(_success(result), note))


def _length_note(request: Any) -> str:
    """A sentence about a quaternion of the request that was normalised."""
    given = request.constraints.orientation_constraints
    return quaternion_note([stamped.pose for stamped in wanted(request).poses] + list(given))


def _check_wishes(request: Any, parameters: Parameters) -> None:
    """Refuse what this node cannot do, rather than seem to have done it."""
    if request.avoid_collisions and parameters.avoid_collisions == REFUSE:
        raise RequestError(
            Code.NO_IK_SOLUTION,
            "this node cannot see collisions, and its parameter avoid_collisions is 'refuse'",
        )


def _response(arm: Arm, values: Mapping[str, float]) -> Any:
    """All joints that one value moves, in the order of the model."""
    response = GetPositionIK.Response()
    complete = arm.tree.values(values)
    solution = response.solution.joint_state
    solution.header.frame_id = arm.tree.root
    solution.name = driven_joints(arm.tree)
    solution.position = [complete[name] for name in solution.name]
    return response


def _errors(result: IkResult) -> str:
    return f"{result.position_error:.2g} m and {result.rotation_error:.2g} rad"


def _success(result: IkResult) -> str:
    return f"solved to {_errors(result)} in {1e3 * result.duration:.3g} ms"


def _failure(result: IkResult) -> str:
    where = "" if result.status is Status.OUTSIDE_LIMITS else f"; nearest: {_errors(result)}"
    return f"{result.status.explanation}, tried for {1e3 * result.duration:.3g} ms{where}"


def _join(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
