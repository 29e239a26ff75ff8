"""The picture of ``dls-ik solve``: how each method goes about it, and what comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from dls_ik.cli.answers import Answers
from dls_ik.plot import compare_methods
from dls_ik.solver.method import KDL
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import Stepper, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STEPS = 5000


def comparison(answers: Answers) -> Figure:
    """Error and step of each iteration from the seed, of methods that step; and all results."""
    drawn = [name for name in answers.results if name not in KDL]
    traces = {name: _trace(answers, name) for name in drawn}
    many = len(answers.results) > 1
    title = "One pose by several methods" if many else "One pose"
    figure_title = f"{title}: {answers.question.robot.name}"
    return compare_methods(traces, answers.results, figure_title, _lengths(answers, traces))


def _lengths(answers: Answers, traces: Mapping[str, Trace]) -> dict[str, str]:
    """What of a method's work its line shows, where that is not all of it."""
    parts = {}
    for name, trace in traces.items():
        result, steps = answers.results[name], len(trace.q) - 1
        if _begins_elsewhere(answers, name):
            parts[name] = "an attempt from mid-range"
        elif result.restarts:
            parts[name] = f"attempt 1 of {result.restarts + 1}"
        elif steps < result.iterations:
            parts[name] = f"the first {steps} of {result.iterations}"
    return parts


def _begins_elsewhere(answers: Answers, method: str) -> bool:
    """Whether the solver began near the pose, as it does without a seed, which is not drawn."""
    question = answers.question
    options = IkSolver(question.robot, method, **question.settings).options
    return question.seed is None and options.starts == "table"


def _trace(answers: Answers, method: str) -> Trace:
    """The first attempt from the seed or from mid-range, up to where the solver ends it."""
    question = answers.question
    settings = {**question.settings, "max_restarts": 0}
    solver = IkSolver(question.robot, method, **settings)
    stepper = Stepper(question.robot, method, question.seed, task=question.task, **settings)
    first = solver.solve(question.T, stepper.q, task=question.task)
    return stepper.run(question.T, max(1, min(first.iterations, MOST_STEPS)))
