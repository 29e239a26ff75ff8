"""Time of one step of CTP: the kernel, and the sum over all 2^n sets of joints in NumPy.

Both make the same steps, from random joint values toward random reachable poses, one after the
other in one run; that they agree is checked. The sum is the definition, with one pseudoinverse a
set; the kernel branches only on joints that are in a margin. Processor time of the thread.
"""

import time
from itertools import product

import numpy as np

from benchmarks.common import Column, Table, finish, guarded, parser, positive, quartiles, spread
from benchmarks.machine import machine
from dls_ik import RobotModel, Stepper
from dls_ik.core.limits import activation

PUBLISHED = 7007.0 / 184.6 * 1e3  # [us] an iteration of CTP in Table V, MATLAB of 2012
CLOSE = 1e-9  # largest difference of the two steps, relative to the step
COLUMNS = [
    Column("margin", ".2f"),
    Column("terms, of 128", ".1f"),
    Column("kernel, median [us]", ".2f"),
    Column("quartiles [us]"),
    Column("all terms in NumPy [us]", ".0f"),
    Column("times faster"),
    Column("than the paper", ".0f"),
]


def all_terms(J: np.ndarray, h: np.ndarray) -> np.ndarray:
    """J^{(I-H)+} as it is defined (Mansard, Remazeilles & Chaumette 2009)."""
    P = np.zeros(J.T.shape)
    for free in product((False, True), repeat=len(h)):
        chosen = np.array(free)
        weight = np.prod(np.where(chosen, 1.0 - h, h))
        P += weight * np.linalg.pinv(J * chosen)
    return P


def numpy_step(stepper: Stepper, e: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, float]:
    """(6) of Colome & Torras 2012; and the time it took [us]."""
    robot, options = stepper.robot, stepper.options
    begin = time.thread_time()
    limits = zip(stepper.q, robot.lower, robot.upper, strict=True)
    h = np.array([activation(q, low, up, options.margin) for q, low, up in limits])
    z = -h * options.mu * (stepper.q - 0.5 * (robot.lower + robot.upper))
    dq = z + all_terms(J, h) @ (e - J @ z)
    return dq, 1e6 * (time.thread_time() - begin)


def measured(robot: RobotModel, margin: float, samples: int, seed: int) -> tuple[object, ...]:
    """One row of the table."""
    rng = np.random.default_rng(seed)
    stepper = Stepper(robot, "ctp", margin=margin)
    repeats = 200  # steps in one call of the kernel, of which the median is one's own
    ours, theirs, branching = [], [], []
    for T in robot.fk(robot.random(rng, samples)):
        stepper.reset(robot.random(rng))
        e, J = stepper.error(T), stepper.jacobian(T)
        dq, took = numpy_step(stepper, e, J)
        away = np.abs(stepper.step_for(e, J) - dq).max()
        if away > CLOSE * max(1.0, np.abs(dq).max()):
            raise SystemExit(f"the kernel's step differs from the definition's by {away:.1e}")
        theirs.append(took)
        limits = zip(stepper.q, robot.lower, robot.upper, strict=True)
        h = np.array([activation(q, low, up, margin) for q, low, up in limits])
        branching.append(2.0 ** np.count_nonzero((h > 0.0) & (h < 1.0)))
        begin = time.thread_time()
        stepper.run(T, repeats)
        ours.append(1e6 * (time.thread_time() - begin) / repeats)
    middle, low, high = quartiles(np.array(ours))
    slow = float(np.median(theirs))
    ratio = spread(np.array(theirs) / np.array(ours))
    between = f"{low:.2f} to {high:.2f}"
    return margin, np.mean(branching), middle, between, slow, ratio, PUBLISHED / middle


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__)
    options.add_argument("--samples", type=positive, default=200, help="poses")
    options.add_argument("--seed", type=int, default=0, help="of the random poses and seeds")
    given, before = options.parse_args(), machine()
    robot = RobotModel.wam()
    table = Table(f"CTP on {robot.name}, {given.samples} random poses", COLUMNS)
    measured(robot, 0.05, 2, 1)  # loads the kernels
    for margin in (0.05, 0.1, 0.2):
        table.rows.append(measured(robot, margin, given.samples, given.seed))
    finish(given.json, before, [table])


if __name__ == "__main__":
    guarded(main)
