# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters and scenes changed while the arm moves: distances, accelerations, and faults.

A WAM moves toward a wall at 0.5 m/s, starts beside it and in front of it, and is stopped by it, by
a pause, or by a target farther back. Meanwhile controllers with the options of a row take turns, as
they do in a node whose parameters are changed. Distances are those of the exact library, of all
commands near the wall and of samples of the stops behind them.

A sphere overlaps a link by 5 mm, or is 0.5 mm away from it, when the arm starts to a random pose.
Another sphere, 6 m away, moves every cycle or stands still; neither may cause a fault.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.avoidance import MIN_DISTANCE, arm, clearance, free_start
from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.servo_runs import moving
from dls_ik import PlanningScene
from dls_ik.core.types import Array
from dls_ik.errors import HeldError
from dls_ik.model.rotations import transform
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.options import gentle_acceleration

RUNS = 30
DURATION = 2.5  # [s] duration of a run
NEAR = 0.03  # [m] bound of the distance below which commands are measured exactly
NUM_STOP_SAMPLES = 4  # samples of the stop that follows a command
BENT = (0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0)
JERK = {"jerk": 60.0}
SPEED = {"max_linear_speed": 0.3}
OVERLAP, GAP = -0.005, 0.0005  # [m] distances of a sphere at the start
PLACED = 1e-5  # [m] tolerance of the gap
FAR = np.array([6.0, 0.0, 0.0])  # [m]
CYCLES = 300  # cycles of a run next to a sphere
UNRELATED = columns("sphere 6 m away; runs :d; faults :d")
ROWS = columns(
    "options that take turns; rate [Hz] :.0f; changes [1/s] :.0f; commands :d; closer than the "
    "smallest min_distance :d; in contact :d; smallest distance less min_distance [mm] :.3f; "
    "acceleration [share of the limit] :.3f; faults :d"
)
Options = Mapping[str, Any]


class Outcome(NamedTuple):
    """Results of several runs."""

    commands: int
    closer: int  # commands closer than min_distance
    contacts: int
    smallest: float  # [m] distance of commands and stops, less min_distance
    acceleration: float  # largest, as a share of the limits of acceleration
    faults: int


CASES: Mapping[str, tuple[Options, ...]] = {
    "equal": ({}, {}),
    "scale 1 and 0.5": ({}, {"scale": 0.5}),
    "scale 1, 0, 0.3": ({}, {"scale": 0.0}, {"scale": 0.3}),
    "with and without a jerk limit": ({}, JERK),
    "jerk limit, equal": (JERK, JERK),
    "jerk 60 and 20": (JERK, {"jerk": 20.0}),
    "tip speed": ({}, SPEED),
    "acceleration 1 and 0.3": ({}, {"acceleration": 0.3}),
    "min_distance 10 and 20 mm": ({}, {"min_distance": 0.02}),
}


def simulate(
    given: Sequence[Options], rate: float, changes: float, runs: int = RUNS, seed: int = 0
) -> Outcome:
    """Simulate runs in which controllers take turns.

    Args:
        given: Options that take turns; `acceleration` is a share of the gentle limits.
        rate: Rate of the cycles [Hz].
        changes: Rate of the changes [1/s]; 0: a single change at a random time.
    """
    rng, found = np.random.default_rng(seed), []
    robot = moving("wam7")
    gentle = gentle_acceleration(robot)
    scene = PlanningScene(robot)
    scene.add_box("wall", [0.1, 2.0, 2.0], transform(translation=np.array([0.85, 0.0, 0.3])))
    shares = [options.get("acceleration", 1.0) for options in given]
    controllers = [
        Controller(
            robot,
            scene=scene,
            **{"when_stuck": "hold", **options, "acceleration": tuple(share * gentle)},
        )
        for options, share in zip(given, shares, strict=True)
    ]
    floor = min(controller.options.min_distance for controller in controllers)
    for _ in range(runs):
        q = np.array(BENT) + rng.uniform(-0.15, 0.15, 7)
        if clearance(scene, q) < 0.1:
            continue
        found.append(_run(controllers, scene, rng, q, (rate, changes), max(shares) * gentle, floor))
    parts = list(zip(*found, strict=True))
    return Outcome(*(sum(part) for part in parts[:3]), min(parts[3]), max(parts[4]), sum(parts[5]))


def _run(
    controllers: Sequence[Controller],
    scene: PlanningScene,
    rng: np.random.Generator,
    q: Array,
    rates: tuple[float, float],
    limit: Array,
    floor: float,
) -> Outcome:
    """Simulate one run from a configuration q (n,)."""
    (rate, changes), dt, used = rates, 1.0 / rates[0], 0
    now, active = 0.0, controllers[0]
    for controller in controllers:
        controller.reset()
        controller.seed(q)
    forward = np.array([0.5, *rng.uniform(-0.2, 0.2, 2), 0.0, 0.0, 0.0])
    single, turn = rng.uniform(0.5, 1.5), rng.uniform(0.6, 1.6)
    before, v, found, accelerations, contacts, faults = q, np.zeros_like(q), [], [0.0], 0, 0
    for i in range(round(DURATION * rate)):
        due = int(now * changes) if changes > 0.0 else int(now > single)
        if due > used:
            used, other = due, controllers[due % len(controllers)]
            other.take_over(active)
            active = other
        _steer(active, now, forward if now < turn else -0.5 * forward)
        now += dt
        out = active.cycle(now, dt)
        faults += out.state is ServoState.FAULT
        change, v, before = (out.q - before) / dt - v, (out.q - before) / dt, out.q
        accelerations.append(float((np.abs(change) / (limit * dt)).max()))
        if out.nearest is not None and out.nearest.distance < NEAR:
            stop = active.stop_path(dt)
            found.append(clearance(scene, out.q))
            if i % 5 == 0:
                times = np.linspace(0.0, stop.duration, NUM_STOP_SAMPLES + 1)[1:]
                found += [clearance(scene, each) + 1e-9 for each in stop.at(times)[0]]
    low = np.array([*found, np.inf])
    contacts = int((low <= 0.0).sum())
    closer = int((low < floor - 1e-6).sum())
    return Outcome(
        round(DURATION * rate), closer, contacts, low.min() - floor, max(accelerations), faults
    )


def _steer(controller: Controller, now: float, twist: Array) -> None:
    try:
        controller.follow_twist(twist, now, R=np.eye(3))
    except HeldError:
        controller.reset()


def touch(scene: PlanningScene, rng: np.random.Generator, q: Array, distance: float) -> None:
    """Add a sphere at a distance [m], which may be negative, from a random link at q (n,)."""
    while True:
        point = scene.robot.link_pose(f"wam_link{rng.integers(3, 8)}", q)[:3, 3]
        away = rng.normal(size=3)
        away /= np.linalg.norm(away)
        at = 0.5
        scene.add_sphere("near", 0.05)
        for _ in range(60):
            place = point + at * away
            scene.move("near", transform(translation=place))
            closest = scene.distance(q)
            if closest is None or "near" not in closest.names:
                break
            if abs(closest.distance - GAP) < PLACED:
                normal = closest.normal if closest.names[0] == "near" else -closest.normal
                scene.move("near", transform(translation=place + (GAP - distance) * normal))
                return
            at -= 0.9 * (closest.distance - GAP)


def leave_sphere(
    seed: int, moves: bool, cycles: int = CYCLES, *, is_taken_back: bool = False
) -> str:
    """Move away from a touched sphere, and return the message of a fault, or an empty string.

    Args:
        moves: Move another sphere, 6 m away, in every cycle.
        is_taken_back: Roll back every second command, as the node does if a command is too late.
    """
    rng = np.random.default_rng(seed)
    robot, scene = arm("wam7")
    q = free_start(scene, rng)
    touch(scene, rng, q, OVERLAP if seed % 2 else GAP)
    scene.add_sphere("far", 0.1, transform(translation=FAR))
    controller = Controller(robot, scene=scene, acceleration=5.0, when_stuck="hold")
    controller.seed(q)
    controller.follow_pose(robot.fk(robot.random(rng=rng)), 0.0)
    for i in range(cycles):
        if moves:
            scene.move("far", transform(translation=FAR + np.array([0.0, 0.01 * (i % 7), 0.0])))
        stop = controller.stop_path(0.01)
        out = controller.cycle(0.01 * (i + 1), 0.01)
        if out.state is ServoState.FAULT:
            return out.message
        if is_taken_back and i % 2:
            controller.go_back(stop)
    return ""


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, seed=0)
    given = options.parse_args()
    table = Table(f"min_distance = {1e3 * MIN_DISTANCE:g} mm", ROWS)
    for name, case in CASES.items():
        for rate, changes in ((100.0, 10.0), (100.0, 60.0), (100.0, 0.0), (30.0, 10.0)):
            found = simulate(case, rate, changes, seed=given.seed)
            table.rows.append([name, rate, changes, *found[:3], 1e3 * found.smallest, *found[4:]])
    unrelated = Table("an arm that leaves a contact", UNRELATED)
    for words, moves in (("moves", True), ("stands still", False)):
        seeds = range(given.seed, given.seed + 50)
        faults = sum(bool(leave_sphere(seed, moves)) for seed in seeds)
        unrelated.rows.append([words, len(seeds), faults])
    finish(given, [table, unrelated], ["0 changes/s: a single one at a random time"])


if __name__ == "__main__":
    guarded(main)
