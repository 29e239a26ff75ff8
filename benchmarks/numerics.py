"""Robustness: a million configurations at and around singularities and limits by method.

One step from each, and a short solve from every twentieth. A violation is a joint value or an error
that is not finite, a step longer than its published bound, a limit that was not kept by a method
that keeps them, a row that was refused, a success that forward kinematics of another library
denies, or an exception.
"""

import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from benchmarks.chain_runs import forward, library
from benchmarks.common import (
    Table,
    columns,
    finish,
    guarded,
    parser,
    positive,
    robot_from,
)
from benchmarks.numerics_cases import configurations, places, targets
from benchmarks.numerics_checks import StepChecks
from dls_ik import IkSolver, RobotModel, method_names
from dls_ik.core.damping_policies import IDS as POLICIES
from dls_ik.errors import MethodError

CHUNK, SHARE, SHORT = 20_000, 20, 8  # rows at a time; every so many is solved too; steps of that
FURTHER = (
    "jf+max", "nf+norm", "ied+clamp", "svf+ed+sdls", "jc+svf", "jc+sd", "tp+sd", "ctp+dls",
    "ctp+sdls", "jw+sd", "gp+sd", "ta+sd", "ta+odls", "gp+tpinv+max", "jt+halve+norm",
)  # fmt: skip
COLUMNS = columns(
    "method; steps :d; longest [rad] :.3g; bound; of it :.6f; not finite :d; too long :d; "
    "beyond limits :d; refused :d; solves :d; solved [%] :.1f; violations :d; exceptions :d; "
    "processor [s] :.1f"
)  # fmt: skip


class Variant(NamedTuple):
    """A method with its options."""

    name: str
    options: dict[str, Any]

    @property
    def label(self) -> str:
        """Its name in the table."""
        return " ".join([self.name, *(f"{key}={value}" for key, value in self.options.items())])


class Case(NamedTuple):
    """Configurations and targets."""

    q: np.ndarray  # (b, n)
    Ts: np.ndarray  # (b, 4, 4)


def variants(only: list[str] | None) -> Iterator[Variant]:
    """Yield every method, further combinations, and every policy; or only those named."""
    for name in only or (*method_names(), *FURTHER):
        yield Variant(name, {})
    for policy in POLICIES:
        if not only and policy not in ("constant", "optimal"):
            yield Variant("jd", {"policy": policy})


def cases(robot: RobotModel, count: int, seed: int) -> list[Case]:
    """Return configurations of a robot, with a target each."""
    rng = np.random.default_rng(seed)
    at, found = places(robot, rng), []
    for first in range(0, count, CHUNK):
        q = configurations(at, min(CHUNK, count - first), rng)
        found.append(Case(q, targets(at, q, rng)))
    return found


def look(variant: Variant, robot: RobotModel, which: list[Case], seen: StepChecks) -> None:
    """Check one method on one robot."""
    name, options = variant
    again = 16 if name == "auto" else 0
    one = IkSolver(robot, name, max_iterations=1, max_restarts=0, **options)
    few = IkSolver(robot, name, max_iterations=SHORT, max_restarts=again, **options)
    truth = forward(robot)
    for q, Ts in which:
        seen.look(one, few, truth, q, Ts, SHARE)


def row(
    variant: Variant,
    known: dict[RobotModel, list[Case]],
    count: int,
    threads: int | None = None,
) -> tuple[Any, ...]:
    """Check one method on the robots that it serves, and return a row of the table.

    Args:
        known: cases of each robot, enough for a method that it alone can serve.
        count: of configurations, rounded up to whole cases.
    """
    seen, begin = StepChecks(threads), time.process_time()
    served = [robot for robot in known if _serves(variant, robot)]
    for robot in served:
        look(variant, robot, known[robot][: -(-count // (CHUNK * len(served)))], seen)
    solved = 100.0 * seen.solved / max(seen.solves, 1)
    broken = (seen.not_finite, seen.too_long, seen.outside, seen.refused)
    shown = (seen.longest, seen.what, seen.share, *broken, seen.solves, solved)
    last = (seen.violations, seen.exceptions, time.process_time() - begin)
    return (variant.label, seen.steps, *shown, *last)


def main() -> None:
    """Check every method and show."""
    options = parser(__doc__, samples=1_000_000, seed=0)
    options.add_argument("--robot", type=robot_from, nargs="+", help="names or URDF files")
    options.add_argument("--method", nargs="+", help="only these; default: every one")
    options.add_argument("--kdl", type=positive, default=100_000, help="of each of KDL's methods")
    options.add_argument("--threads", type=positive, help="of a batch; default: one for each core")
    given = options.parse_args()
    robots = given.robot or [robot_from("wam"), robot_from("puma560")]
    known = {robot: cases(robot, given.samples, given.seed) for robot in robots}
    names = ", ".join(robot.name for robot in robots)
    table = Table(f"{given.samples} steps of each method on {names}", COLUMNS)
    notes = [f"successes are checked by {library()}"]
    try:
        for variant in variants(given.method):
            count = given.kdl if variant.name.startswith("kdl") else given.samples
            table.rows.append(row(variant, known, count, given.threads))
            print(f"{variant.label}: {table.rows[-1][-1]:.1f} s", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        notes.append("interrupted: other methods were not looked at")
    finish(given, [table], notes)


def _serves(variant: Variant, robot: RobotModel) -> bool:
    try:
        IkSolver(robot, variant.name, **variant.options)
    except MethodError:
        return False
    return True


if __name__ == "__main__":
    guarded(main)
