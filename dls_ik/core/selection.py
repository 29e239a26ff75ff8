# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Selection among the solutions of one pose: measure, best solution, undecided solutions.

With a scene, bounds of distances leave some solutions undecided: neither proven collision-free nor
proven in collision. These are recorded, and Python decides them by exact checks before the search
continues, so that the answer does not depend on the time of these checks.
"""

from typing import NamedTuple

from dls_ik.core.attempt import write_jacobian
from dls_ik.core.jit import force_inline, kernel
from dls_ik.core.linalg import dexterity
from dls_ik.core.types import (
    AnyChain,
    AnyWorkspace,
    Array,
    ChainTable,
    GeneralProblem,
    Indices,
    Rows,
    SearchParams,
    SelectionRule,
)

# Columns of Rows.counts: number of attempts, number of steps, one of the four values below, random
# state. With a scene, the columns from PAIRS_COLUMN on hold the number of a colliding pair plus 1
# and its count, in turn.
ATTEMPTS_COLUMN, STEPS_COLUMN, FOUND_COLUMN, RANDOM_STATE_COLUMN, PAIRS_COLUMN = range(5)
# Values of the column FOUND_COLUMN: no solution yet; a solution, and the search continues; the
# search is finished; the search is finished because a pair collides in all solutions of the pose.
FOUND_NOTHING, FOUND_SOMETHING, FOUND_ALL, FOUND_BLOCKED = range(4)
SELECT_FIRST, SELECT_NEAREST, SELECT_DEXTROUS, SELECT_CLEAREST = range(4)  # kinds of SelectionRule

SLOTS = 8  # number of colliding pairs that are counted
CANDIDATES = 8  # maximum number of undecided solutions recorded per attempt


class OpenSolutions(NamedTuple):
    """Undecided solutions of b poses, and the answers of their exact collision checks."""

    candidates: Array  # (b, CANDIDATES, n + 3) q, position and rotation error, the rule's measure
    answers: Indices  # (b, 1 + CANDIDATES) number of candidates; for each 1 if collision-free


@force_inline
def keep(rule: SelectionRule, q: Array, error: Array, value: float, row: Rows) -> None:
    """Store a solution in a row if it is the best so far.

    Args:
        q: (n,) solution [rad or m].
        error: (2,) position error [m] and rotation error [rad].
        value: Measure of the rule; smaller is better.
        row: State of the pose, read and written.
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
    """Finish the search of a row that has a solution once the rule's `num_candidates` are made."""
    if counts[FOUND_COLUMN] == FOUND_SOMETHING and counts[ATTEMPTS_COLUMN] >= rule.num_candidates:
        counts[FOUND_COLUMN] = FOUND_ALL


@force_inline
def measure(
    chain: AnyChain,
    params: SearchParams,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    seed: Array,
    q: Array,
    work: AnyWorkspace,
) -> float:
    """Return the rule's measure of the solution evaluated last; smaller is better.

    The rule SELECT_CLEAREST is measured in :mod:`dls_ik.core.free_solutions`.
    """
    if params.rule.kind == SELECT_NEAREST:
        return distance(params.starts.joint_weights, q, seed)
    if params.rule.kind == SELECT_DEXTROUS:
        write_jacobian(chain, params.stop, table, general, T_d, work)
        return -dexterity(work.J)
    return 0.0


@force_inline
def distance(weights: Array, q: Array, seed: Array) -> float:
    """Return the squared distance of two configurations (n,) in the joint metric."""
    total = 0.0
    for j in range(q.shape[0]):
        total += weights[j] * (q[j] - seed[j]) ** 2
    return total


# With a scene -------------------------------------------------------------------------------------


@kernel
def count_pair(counts: Indices, pair: int) -> None:
    """Count a collision of a pair; the most frequent pairs stay among the counted ones.

    A pair without a slot takes the slot with the smallest count and continues from that count
    (Metwally, Agrawal & El Abbadi 2005).
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
    """Return whether a solution with this measure would be the best so far."""
    found = row.counts[FOUND_COLUMN]
    return bool(found == FOUND_NOTHING or (found == FOUND_SOMETHING and value < row.figures[2]))


@force_inline
def note_open(q: Array, error: Array, value: float, row: Rows, opened: OpenSolutions) -> None:
    """Record an undecided solution of a row if a slot is unused and it may be the best so far."""
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
    """Remove recorded solutions that are not better than the best collision-free solution."""
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
    """Keep the recorded solutions that the exact checks proved collision-free."""
    n, count = row.best.shape[0], opened.answers[0]
    for i in range(count):
        noted = opened.candidates[i]
        if opened.answers[i + 1] != 0 and row.counts[FOUND_COLUMN] != FOUND_ALL:
            keep(rule, noted[:n], noted[n : n + 2], noted[n + 2], row)
    opened.answers[0] = 0
    if count > 0:
        end_if_enough(rule, row.counts)
