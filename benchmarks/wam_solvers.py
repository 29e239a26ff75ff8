"""Random reachable poses solved by dls_ik and by KDL: how many, how fast.

Poses are those of joint values uniform within the limits, by KDL's kinematics, and so is the check
of every answer: solved is a position error within 1e-6 m and a rotation error within 1e-6 rad; in
limits is solved with every joint inside, where answers of KDL are helped by whole turns.
Every solver starts from the same random joint values. Poses come in blocks, and all solvers take a
block one after the other, so that what else happens on the machine meets all of them; the ratio is
that of the mean times in a block. Times are of calls from Python; batches have but a mean.
"""

from typing import Any

import numpy as np

from benchmarks.common import Column, Table, finish, guarded, parser, positive, robot_from, spread
from benchmarks.contestants import NAMES, Answers, Poses, poses, runs
from benchmarks.kdl import Kdl
from benchmarks.machine import machine

BLOCK = 1000  # poses; enough for a batch to use all cores
TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; another library rounds differently
COLUMNS = [
    Column("solver"),
    Column("solved [%]", ".2f"),
    Column("in limits [%]", ".2f"),
    Column("mean [us]", ".1f"),
    Column("median [us]", ".1f"),
    Column("99 % [us]", ".1f"),
    Column("99.9 % [us]", ".1f"),
    Column("iterations", ".1f"),
    Column("restarts", ".2f"),
    Column("mean, as a multiple of the first row's"),
]


def judged(kdl: Kdl, block: Poses, answers: Answers) -> np.ndarray:
    """(b, 2) solved, and also in limits."""
    verdicts = []
    for frame, q in zip(block.frames, answers.q, strict=True):
        solved = max(kdl.errors(frame, q)) <= TOLERANCE
        verdicts.append((solved, solved and bool(kdl.robot.within_limits(q))))
    return np.array(verdicts)


def row(name: str, verdicts: list[np.ndarray], done: list[Answers], ratios: Any) -> list[Any]:
    """The figures of one solver over all blocks."""
    solved, inside = 100.0 * np.concatenate(verdicts).mean(axis=0)
    times = np.concatenate([answers.times for answers in done])
    single = len(times) > len(done)
    tail = np.percentile(times, (50, 99, 99.9)).tolist() if single else [None] * 3
    iterations = [a.iterations for a in done if a.iterations is not None]
    mean = float(np.mean(iterations)) if iterations else None
    restarts = float(np.mean([a.restarts for a in done]))
    return [name, solved, inside, times.mean(), *tail, mean, restarts, spread(ratios)]


def main() -> None:
    """Solve, and show."""
    options = parser(__doc__)
    options.add_argument("--robot", type=robot_from, default="wam", help="a name or a URDF file")
    options.add_argument("--samples", type=positive, default=10_000, help="poses")
    options.add_argument("--seed", type=int, default=0, help="of the random poses and seeds")
    given, before = options.parse_args(), machine()
    rng, kdl = np.random.default_rng(given.seed), Kdl(given.robot)
    solvers = runs(given.robot, kdl, rng)
    done: dict[str, list[Answers]] = {name: [] for name in solvers}
    verdicts: dict[str, list[np.ndarray]] = {name: [] for name in solvers}
    for run in solvers.values():
        run(poses(kdl, rng, 10))  # loads what is to be loaded
    for first in range(0, given.samples, BLOCK):
        block = poses(kdl, rng, min(BLOCK, given.samples - first))
        for name, run in solvers.items():
            done[name].append(run(block))
            verdicts[name].append(judged(kdl, block, done[name][-1]))
    means = {name: np.array([a.times.mean() for a in all_]) for name, all_ in done.items()}
    title = f"{given.samples} random poses of {given.robot.name}, seed {given.seed}"
    table = Table(title, COLUMNS)
    for name in solvers:
        ratios = means[name] / means[NAMES[0]]
        table.rows.append(row(name, verdicts[name], done[name], ratios))
    finish(given.json, before, [table])


if __name__ == "__main__":
    guarded(main)
