"""Answers of several methods to one question, and all that one method finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.cli.pose_text import pose_facts
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.result import IkResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task, too_few_joints


class Question(NamedTuple):
    """A pose to reach, and how."""

    robot: RobotModel
    T: Array  # (4, 4) [m]
    seed: Array | None  # (n,) [rad or m]
    task: Task | None
    settings: dict[str, Any]  # options of the solver
    asked: dict[str, Any]  # timeout, solve_type, approximate

    def about(self) -> dict[str, Any]:
        """The question as a document."""
        names = self.robot.joint_names
        seed = None if self.seed is None else dict(zip(names, self.seed.tolist(), strict=True))
        return {
            "robot": self.robot.name,
            "base": self.robot.base,
            "tip": self.robot.tip,
            "target": pose_facts(self.T),
            "seed": seed,
        }


class Answers(NamedTuple):
    """What each method answered."""

    question: Question
    results: dict[str, IkResult]  # by method

    def facts(self) -> dict[str, Any]:
        """All of it as a document."""
        answers = [_answer(self.question, name, each) for name, each in self.results.items()]
        return {**self.question.about(), "answers": answers}

    def reasons(self) -> list[str]:
        """Why methods that did not reach the pose did not, a line each."""
        many = len(self.results) > 1
        return [
            f"{name + ': ' if many else ''}{result.status}: {result.status.explanation}; "
            f"{_nearest(self.question.robot, result)}{_ask_less(self.question)}"
            for name, result in self.results.items()
            if not result.success
        ]


def _ask_less(question: Question) -> str:
    """What a robot with too few joints for the task may be asked for instead."""
    few = too_few_joints(question.robot, question.task)
    return f"; {few}: --task position or --task pointing asks for less" if few else ""


def _nearest(robot: RobotModel, result: IkResult) -> str:
    """How far off the best that was found is, or which joints are beyond their limits there."""
    rooms = zip(robot.joint_names, room(robot, result.q), strict=True)
    beyond = [f"{name} by {-left:.3g}" for name, left in rooms if left < 0.0]
    if result.status == Status.OUTSIDE_LIMITS and beyond:
        return f"beyond them: {', '.join(beyond)}"
    return f"nearest found: {result.position_error:.3g} m and {result.rotation_error:.3g} rad off"


class Solutions(NamedTuple):
    """Distinct solutions of one question, the nearest to the seed first."""

    question: Question
    method: str
    solutions: Array  # (s, n) [rad or m]

    def facts(self) -> dict[str, Any]:
        """All of it as a document."""
        names = self.question.robot.joint_names
        joints = [dict(zip(names, q.tolist(), strict=True)) for q in self.solutions]
        return {**self.question.about(), "method": self.method, "solutions": joints}


def answers_of(question: Question, methods: Sequence[str]) -> Answers:
    """Ask each method once, kernels loaded before, so that times compare."""
    solvers = [IkSolver(question.robot, name, **question.settings) for name in methods]
    return Answers(question, {each.method: _asked(each, question) for each in solvers})


def all_solutions(question: Question, method: str, count: int) -> Solutions:
    """Ask one method for so many solutions at most."""
    solver = IkSolver(question.robot, method, **question.settings)
    found = solver.solve_all(question.T, count, question.seed, question.task)
    return Solutions(question, solver.method, found)


def _asked(solver: IkSolver, question: Question) -> IkResult:
    given = {name: value for name, value in question.asked.items() if value not in (None, False)}
    solver.solve(question.T, question.seed, timeout=0.0, task=question.task)  # loads kernels
    return solver.solve(question.T, question.seed, task=question.task, **given)


def _answer(question: Question, method: str, result: IkResult) -> dict[str, Any]:
    robot = question.robot
    return {
        "method": method,
        "success": result.success,
        "status": str(result.status),
        "explanation": Status(result.status).explanation,
        "joints": dict(zip(robot.joint_names, result.q.tolist(), strict=True)),
        "distance_to_limit": dict(zip(robot.joint_names, room(robot, result.q), strict=True)),
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
        "iterations": result.iterations,
        "restarts": result.restarts,
        "duration": result.duration,
        "largest_change": largest_change(question, result.q),
    }


def room(robot: RobotModel, q: Array) -> Any:
    """(n,) how far joints are from their nearest limits [rad or m], below 0 beyond them."""
    return np.minimum(q - robot.lower, robot.upper - q).tolist()


def largest_change(question: Question, q: Array) -> float | None:
    """Of a joint from the seed [rad or m]; None without a seed."""
    return None if question.seed is None else float(np.abs(q - question.seed).max())
