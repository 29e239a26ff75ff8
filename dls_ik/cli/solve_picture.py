"""The picture of ``dls-ik solve``: how each method goes about it, and what comes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dls_ik.cli.answers import Answers
from dls_ik.plot import compare_methods
from dls_ik.solver.method import KDL
from dls_ik.solver.stepper import Stepper, Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_STEPS = 200


def comparison(answers: Answers) -> Figure:
    """Error and step of each iteration from the seed, of methods that step; and all results."""
    traces = {name: _trace(answers, name) for name in answers.results if name not in KDL}
    many = len(answers.results) > 1
    title = "One pose by several methods" if many else "One pose"
    return compare_methods(traces, answers.results, f"{title}: {answers.question.robot.name}")


def _trace(answers: Answers, method: str) -> Trace:
    """The first attempt: restarts are not drawn."""
    question = answers.question
    stepper = Stepper(
        question.robot, method, question.seed, task=question.task, **question.settings
    )
    steps = min(answers.results[method].iterations, stepper.options.max_iterations, MOST_STEPS)
    return stepper.run(question.T, max(1, steps))
