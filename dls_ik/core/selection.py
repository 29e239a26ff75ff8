"""Solutions of one pose: their measure, the best one that is kept, and those that are noted.

With a scene, solutions that the bounds of shapes leave open are noted, and decided by exact checks
in Python before the search goes on, so that the answer does not depend on when that happens.
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

ATTEMPTS, STEPS, FOUND, STATE, PAIRS = range(5)  # columns of Rows.counts: begun, made, see below,
# random; with a scene pairs in the way from there on, each a number from 1 and its count
NOTHING, SOMETHING, ALL, BLOCKED = range(
    4
)  # found: no solution; one, and the search goes on; it is
# over; it is over since the pose alone brings a pair in collision
FIRST, NEAREST, DEXTROUS, CLEAREST = range(4)  # kinds of SelectionRule

SLOTS = 8  # pairs in the way that are counted
CANDIDATES = 8  # open solutions of an attempt that are noted


class OpenSolutions(NamedTuple):
    """Solutions of b poses that bounds leave open, and what exact checks say of them."""

    candidates: Array  # (b, CANDIDATES, n + 3) q, position and rotation error, the rule's measure
    answers: Indices  # (b, 1 + CANDIDATES) how many; for each 1 where it is free, else 0


@force_inline
def keep(rule: SelectionRule, q: Array, error: Array, value: float, row: Rows) -> None:
    """Keep a solution (n,) of a row if it is the best one.

    Args:
        error: (2,) position [m] and rotation error [rad], value: the rule's measure.
        row: in and out.
    """
    counts, best, figures = row.counts, row.best, row.figures
    if counts[FOUND] == NOTHING or value < figures[2]:
        for j in range(best.shape[0]):
            best[j] = q[j]
        figures[0], figures[1], figures[2] = error[0], error[1], value
    counts[FOUND] = SOMETHING
    if rule.kind == FIRST or (rule.kind == NEAREST and value == 0.0):
        counts[FOUND] = ALL


@force_inline
def end_if_enough(rule: SelectionRule, counts: Indices) -> None:
    """End the search of a row with a solution after as many attempts as the rule compares."""
    if counts[FOUND] == SOMETHING and counts[ATTEMPTS] >= rule.num_candidates:
        counts[FOUND] = ALL


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
    """Measure the solution last observed by the rule, CLEAREST apart: the less the better."""
    if params.rule.kind == NEAREST:
        return distance(params.starts.joint_weights, q, seed)
    if params.rule.kind == DEXTROUS:
        write_jacobian(chain, params.stop, table, general, T_d, work)
        return -dexterity(work.J)
    return 0.0


@force_inline
def distance(weights: Array, q: Array, seed: Array) -> float:
    """Squared distance of two configurations (n,) in the joint metric."""
    total = 0.0
    for j in range(q.shape[0]):
        total += weights[j] * (q[j] - seed[j]) ** 2
    return total


# With a scene -------------------------------------------------------------------------------------


@kernel
def count_pair(counts: Indices, pair: int) -> None:
    """Count a pair that is in the way, among the few that are most often.

    A pair without a slot takes the one of the least count, and goes on from that (Metwally, Agrawal
    & El Abbadi 2005).
    """
    least = PAIRS
    for at in range(PAIRS, counts.shape[0], 2):
        if counts[at] == pair + 1:
            counts[at + 1] += 1
            return
        if counts[at + 1] < counts[least + 1]:
            least = at
    counts[least] = pair + 1
    counts[least + 1] += 1


@force_inline
def may_be_best(value: float, row: Rows) -> bool:
    """Test if a solution with this measure would be kept."""
    found = row.counts[FOUND]
    return bool(found == NOTHING or (found == SOMETHING and value < row.figures[2]))


@force_inline
def note_open(q: Array, error: Array, value: float, row: Rows, opened: OpenSolutions) -> None:
    """Note an open solution of a row, if there is room and it may be the best one."""
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
    """Leave out noted solutions that are not better than the best free one."""
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
    """Keep the noted solutions that exact checks found free."""
    n, count = row.best.shape[0], opened.answers[0]
    for i in range(count):
        noted = opened.candidates[i]
        if opened.answers[i + 1] != 0 and row.counts[FOUND] != ALL:
            keep(rule, noted[:n], noted[n : n + 2], noted[n + 2], row)
    opened.answers[0] = 0
    if count > 0:
        end_if_enough(rule, row.counts)
