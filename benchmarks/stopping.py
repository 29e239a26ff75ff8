"""Time and distance to stop after the last target. Simulated, on the WAM at 2 rad/s.

The tip circles about the base with poses or twists at 100 Hz, so fast that the fastest joint is at
a share of its velocity limit; then messages end. Time to stop is from the last message
to the first cycle without motion: until the target is stale (`target_timeout`, 0.25 s), then until
brakes have done. A stream of poses ends before that: the arm stands at its last pose. The way of
braking is that of the fastest joint when braking begins, beside the shortest one from its velocity:
v^2 / (2 A), and with a limit of jerk v sqrt(v / J), or v / 2 (v / A + A / J) beyond v = A^2 / J.
"""

import math
from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.servo_runs import moving
from dls_ik.core.se3 import moved
from dls_ik.servo import Controller, ServoState

START = np.array([-2.0, 0.6, 0.2, 1.6, -0.3, -0.7, 0.2])
LIMITS = (
    {}, {"acceleration": 2.0}, {"acceleration": 5.0}, {"acceleration": 10.0},
    {"acceleration": 10.0, "jerk": 50.0},
)  # fmt: skip
MESSAGES = 100.0  # [Hz]
STANDING = 1e-9  # of a velocity limit: no motion
COLUMNS = columns(
    "targets; feed-forward; acceleration [rad/s^2] :g; jerk [rad/s^3] :g; asked [%] :.0f; at "
    "the last message [%] :.1f; when braking [%] :.1f; until stale [s] :.3f; braking [s] "
    ":.3f; standing after [s] :.3f; way of braking [rad] :.4f; shortest [rad] :.4f"
)


class Turning:
    """Poses and twists of a tip that turns about the base.

    Args:
        share: of the velocity limit that the fastest joint has, at the start.
    """

    def __init__(self, share: float) -> None:
        robot = moving("wam7")
        self.T = robot.fk(START)
        J = robot.jacobian(START)
        q_dot = np.linalg.pinv(J) @ self.twist(self.T, 1.0)
        self.rate = share * float(np.min(robot.velocity / np.abs(q_dot)))  # [rad/s]

    def pose(self, t: float) -> np.ndarray:
        """Return the target pose (4, 4)."""
        R = moved(np.eye(4), np.array([0.0, 0.0, 0.0, 0.0, 0.0, self.rate * t]))
        return R @ self.T

    def twist(self, T: np.ndarray, rate: float) -> np.ndarray:
        """Return the target twist (6,)."""
        return rate * np.array([-T[1, 3], T[0, 3], 0.0, 0.0, 0.0, 1.0])


def row(kind: str, feed_forward: bool, limits: dict, share: float, given: Any) -> list[Any]:
    """Simulate one row."""
    controller = Controller(moving("wam7"), feed_forward=feed_forward, **limits)
    controller.seed(START)
    turning, dt = Turning(share), 1.0 / given.rate
    vs, qs, states, last = [np.zeros(7)], [START], [], 0
    moving_cycles = round(given.time * given.rate)
    for k in range(moving_cycles + round(10.0 * given.rate)):
        now = k * dt
        if k <= moving_cycles and k % max(1, round(given.rate / MESSAGES)) == 0:
            last = k
            T = turning.pose(now)
            if kind == "pose":
                controller.follow_pose(T, now)
            else:
                controller.follow_twist(turning.twist(T, turning.rate), now, np.eye(3))
        out = controller.cycle(now, dt)
        vs.append(out.velocity)
        qs.append(out.q)
        states.append(out.state)
        if (
            k > moving_cycles
            and out.state is ServoState.STALE
            and np.abs(out.velocity).max() < STANDING
        ):
            break
    return [
        kind,
        "yes" if feed_forward else "no",
        *figures(limits, share, last, dt, states, vs, qs),
    ]


def figures(limits: dict, share: float, last: int, dt: float, states: Any, vs: Any, qs: Any) -> Any:
    """Return the figures of the stop after the last message, which came in cycle `last`."""
    robot = moving("wam7")
    speeds = np.abs(vs) / robot.velocity  # one more than cycles
    stale = next(k for k in range(last, len(states)) if states[k] is ServoState.STALE)
    stands = next(k for k in range(last, len(states)) if speeds[k + 1 :].max() < STANDING)
    joint = int(speeds[stale].argmax())
    v = abs(vs[stale][joint])
    way = abs(qs[-1][joint] - qs[stale][joint])
    braking = max(0.0, (stands - stale) * dt)
    return [
        limits.get("acceleration"), limits.get("jerk"), 100.0 * share,
        100.0 * speeds[last + 1].max(), 100.0 * speeds[stale].max(),
        (stale - last) * dt, braking, (stands - last) * dt, way, shortest(v, limits),
    ]  # fmt: skip


def shortest(v: float, limits: dict) -> float:
    """Return the least distance [rad] from a velocity [rad/s] to rest."""
    A, jerk = limits.get("acceleration", math.inf), limits.get("jerk", math.inf)
    if math.isinf(jerk):
        return float(v * v / (2.0 * A))
    return float(0.5 * v * (v / A + A / jerk) if v * jerk > A * A else v * math.sqrt(v / jerk))


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, rate=500.0)
    options.add_argument("--time", type=float, default=0.8, help="of the motion [s]")
    options.add_argument("--shares", nargs="+", type=float, default=(0.25, 0.5, 1.0))
    given = options.parse_args()
    table = Table(f"after {given.time:g} s of motion, {given.rate:g} Hz", COLUMNS)
    for kind, feed_forward in (("twist", False), ("pose", False), ("pose", True)):
        for limits in LIMITS:
            for share in given.shares:
                table.rows.append(row(kind, feed_forward, limits, share, given))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
