# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Selection of one solution of a pose: measures of solutions, and the best solution so far.

With a scene, the collision checks of the kernels leave some solutions undecided: neither proven
collision-free nor proven in collision. Undecided solutions are recorded, and Python decides them by
exact checks before the search continues, so that the selected solution does not depend on the
duration of these checks.
"""

from typing import NamedTuple

from dls_ik.core.attempt import write_jacobian
from dls_ik.core.jit import force_inline, kernel
from dls_ik.core.linalg import dexterity
from dls_ik.core.types import (
    AnyWorkspace,
    Array,
    Indices,
    PoseProblem,
    Rows,
    SelectionRule,
)

# Columns of Rows.counts: number of attempts, number of steps, one of the four values below, and the
# state of the random generator. With a scene, there are two columns for each counted pair, starting
# at PAIRS_COLUMN: the index of the pair plus 1, and the number of its collisions.
ATTEMPTS_COLUMN, STEPS_COLUMN, FOUND_COLUMN, RANDOM_STATE_COLUMN, PAIRS_COLUMN = range(5)
# Values of the column FOUND_COLUMN: no solution yet; a solution, but the search continues; the
# search is finished; the search is finished because a pair collides in all solutions of the pose.
FOUND_NOTHING, FOUND_SOMETHING, FOUND_ALL, FOUND_BLOCKED = range(4)
SELECT_FIRST, SELECT_NEAREST, SELECT_DEXTROUS, SELECT_CLEAREST = range(4)  # kinds of SelectionRule

SLOTS = 8  # number of colliding pairs that are counted
CANDIDATES = 8  # maximum number of undecided solutions that one attempt can record


class OpenSolutions(NamedTuple):
    """Undecided solutions of b poses, and the answers of their exact collision checks.

    Functions that handle one pose receive the arrays of this pose, without the first dimension.
    """

    candidates: Array  # (b, CANDIDATES, n + 3) q, position error, rotation error, measure
    answers: Indices  # (b, 1 + CANDIDATES) number of candidates, then 1 for each collision-free one


@force_inline
def keep(rule: SelectionRule, q: Array, error: Array, value: float, row: Rows) -> None:
    """Store a solution in the row of its pose if it is the best solution so far.

    The search of the row is finished if the selection rule needs no further solution.

    Args:
        rule: The selection rule.
        q: (n,) solution [rad or m].
        error: (2,) position error [m] and rotation error [rad] of the solution.
        value: Measure of the solution by the rule; smaller is better.
        row: State of the search for the pose, read and written.
    """
    counts, best, figures = row.counts, row.best, row.figures
    if counts[FOUND_COLUMN] == FOUND_NOTHING or value < figures[2]:
        for j in range(best.shape[0]):
            best[j] = q[j]
        figures[0], figures[1], figures[2] = error[0], error[1], value
    counts[FOUND_COLUMN] = FOUND_SOMETHING
    if rule.kind == SELECT_FIRST or (rule.kind == SELECT_NEAREST and value == 0.0):
        counts[FOUND_COLUMN] = FOUND_ALL


@force_inline
def end_if_enough(rule: SelectionRule, counts: Indices) -> None:
    """Finish the search for a pose if it has a solution and enough attempts were made.

    Args:
        rule: The selection rule, with the number of attempts `num_candidates`.
        counts: Counts of the row, read and written.
    """
    if counts[FOUND_COLUMN] == FOUND_SOMETHING and counts[ATTEMPTS_COLUMN] >= rule.num_candidates:
        counts[FOUND_COLUMN] = FOUND_ALL


@force_inline
def measure(problem: PoseProblem, q: Array, work: AnyWorkspace) -> float:
    """Return the measure of a solution by the selection rule; smaller is better.

    The measure is the distance from the seed for SELECT_NEAREST, the negative manipulability for
    SELECT_DEXTROUS, and 0 for SELECT_FIRST. The measure for SELECT_CLEAREST is computed in
    :mod:`dls_ik.core.free_solutions`.

    Args:
        problem: The pose, its seed and the selection rule.
        q: (n,) solution [rad or m], for which `work` holds the kinematics.
        work: Scratch arrays of the path.
    """
    params = problem.params
    if params.rule.kind == SELECT_NEAREST:
        return distance(params.starts.joint_weights, q, problem.seed)
    if params.rule.kind == SELECT_DEXTROUS:
        write_jacobian(problem, work)
        return -dexterity(work.J)
    return 0.0


@force_inline
def distance(weights: Array, q: Array, seed: Array) -> float:
    """Return the squared distance of two configurations in the joint metric.

    Args:
        weights: (n,) weights of the squared differences.
        q, seed: (n,) joint positions [rad or m].
    """
    total = 0.0
    for j in range(q.shape[0]):
        total += weights[j] * (q[j] - seed[j]) ** 2
    return total


# Counts of collision checks -----------------------------------------------------------------------


@kernel
def count_pair(counts: Indices, pair: int) -> None:
    """Count a collision of a pair of shapes in the limited number of slots of a row.

    If the pair has no slot, it replaces the pair with the smallest count and continues from this
    count. The pairs that collide most frequently therefore have a slot at the end (Metwally,
    Agrawal & El Abbadi 2005).

    Args:
        counts: Counts of the row, read and written.
        pair: Index of the pair.
    """
    smallest = PAIRS_COLUMN
    for at in range(PAIRS_COLUMN, counts.shape[0], 2):
        if counts[at] == pair + 1:
            counts[at + 1] += 1
            return
        if counts[at + 1] < counts[smallest + 1]:
            smallest = at
    counts[smallest] = pair + 1
    counts[smallest + 1] += 1


@force_inline
def may_be_best(value: float, row: Rows) -> bool:
    """Return whether a solution with the measure `value` would be the best of its row so far."""
    found = row.counts[FOUND_COLUMN]
    return bool(found == FOUND_NOTHING or (found == FOUND_SOMETHING and value < row.figures[2]))


@force_inline
def note_open(q: Array, error: Array, value: float, row: Rows, opened: OpenSolutions) -> None:
    """Record an undecided solution if it may be the best so far and there is an unused slot.

    Args:
        q: (n,) solution [rad or m].
        error: (2,) position error [m] and rotation error [rad] of the solution.
        value: Measure of the solution; smaller is better.
        row: State of the search for the pose.
        opened: Undecided solutions of the pose, read and written.
    """
    count, n = opened.answers[0], q.shape[0]
    if count < CANDIDATES and may_be_best(value, row):
        noted = opened.candidates[count]
        for j in range(n):
            noted[j] = q[j]
        noted[n], noted[n + 1], noted[n + 2] = error[0], error[1], value
        opened.answers[count + 1] = 0
        opened.answers[0] = count + 1


@force_inline
def forget_worse(row: Rows, opened: OpenSolutions) -> None:
    """Remove undecided solutions of a pose that are not better than its best solution so far."""
    left = 0
    for i in range(opened.answers[0]):
        noted = opened.candidates[i]
        if may_be_best(noted[noted.shape[0] - 1], row):
            for j in range(noted.shape[0]):
                opened.candidates[left, j] = noted[j]
            left += 1
    opened.answers[0] = left


@force_inline
def take_answers(rule: SelectionRule, row: Rows, opened: OpenSolutions) -> None:
    """Use the answers of the exact collision checks, and remove all undecided solutions of a pose.

    A solution that was found collision-free is stored in the row if it is the best so far.

    Args:
        rule: The selection rule.
        row: State of the search for the pose, read and written.
        opened: Undecided solutions of the pose and the answers, read and written.
    """
    n, count = row.best.shape[0], opened.answers[0]
    for i in range(count):
        noted = opened.candidates[i]
        if opened.answers[i + 1] != 0 and row.counts[FOUND_COLUMN] != FOUND_ALL:
            keep(rule, noted[:n], noted[n : n + 2], noted[n + 2], row)
    opened.answers[0] = 0
    if count > 0:
        end_if_enough(rule, row.counts)
