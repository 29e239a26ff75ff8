# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arm with masses in MuJoCo: its tracking error and lag, and the speed of the simulation.

The controller follows a figure of eight, 0.3 m wide, with the WAM at 250 Hz, within 10 rad/s^2.
Each command goes to the arm a cycle ahead, with velocities, and a stop after it, as trajectories of
the node do. Times are of the processor, without ROS: simulated time by that of the steps at 1 kHz.
"""

from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.servo_runs import moving
from benchmarks.tracking import LIMITS, errors, paths, rms
from dls_ik.ros.sim_arm.arm import Path, SimArmParameters, joints_of
from dls_ik.ros.sim_arm.physical_arm import PhysicalSimulation
from dls_ik.ros.sim_arm.physics_model import RobotPhysics
from dls_ik.scene.shapes import link_bodies
from dls_ik.servo import Controller

RATE = 250.0  # [Hz]
STOP = 0.2  # [s] duration of the stop that follows a command
BANDWIDTHS = (2.0, 4.0, 8.0, 16.0, 32.0)  # [Hz]
COLUMNS = columns(
    "bandwidth [Hz] :g; feed-forward; speed [m/s] :.2f; joint error, max [mrad] :.2f; tip behind "
    "its target, max [mm] :.2f; rms [mm] :.2f; lag [ms] :.2f; effort of its limit [%] :.0f; times "
    "real time :.0f"
)


def run(bandwidth: float, feed_forward: float, speed: float, laps: int) -> list[Any]:
    """Return a row with the results of the laps after the first lap."""
    robot, path, dt = moving("wam7"), paths()["lemniscate"], 1.0 / RATE
    start = path.start()
    controller = Controller(robot, **LIMITS["acceleration"])
    controller.seed(start)
    parameters = SimArmParameters().changed(
        {
            "physics": True,
            "initial_positions": start.tolist(),
            "bandwidth": bandwidth,
            "full_effort_error": 1e-4,
            "velocity_feedforward": feed_forward,
        }
    )
    physics = RobotPhysics(robot.tree, link_bodies(robot.tree.description))
    arm = PhysicalSimulation(physics, joints_of(robot), parameters, 0.0)
    turn = speed / path.length
    lap = round(2.0 * np.pi / (turn * dt))
    targets, qs = [], []
    for k in range((1 + laps) * lap):
        if k == lap:
            arm.figures()
        now = k * dt
        controller.follow_pose(path.pose(turn * now), now)
        output = controller.cycle(now, dt)
        arm.command(command(now, output.q, output.velocity), now)
        reading = arm.cycle(now + dt)
        targets.append(path.pose(turn * (now + dt)))
        qs.append(reading.positions)
    figures = arm.figures()
    before, last = np.array(targets[lap - 1 : -1]), np.array(targets[lap:])
    velocity = (last - before)[:, :3, 3] / dt
    position, _, lag = errors(robot.fk(np.array(qs[lap:])), last, velocity)
    tips = [1e3 * f(position) for f in (np.max, rms)]
    share, factor = 100.0 * figures.effort_share, figures.real_time_factor
    known = "yes" if feed_forward else "no"
    return [bandwidth, known, speed, 1e3 * figures.tracking_error, *tips, 1e3 * lag, share, factor]


def command(now: float, q: np.ndarray, velocity: np.ndarray) -> Path:
    """Return a path that reaches q after one cycle and then stops."""
    times = now + 1.0 / RATE + np.array([0.0, STOP])
    positions = np.array([q, q + 0.5 * STOP * velocity])
    return Path(times, positions, np.array([velocity, 0.0 * velocity]))


def main() -> None:
    """Measure and show."""
    options = parser(__doc__, repeats=2)
    options.add_argument("--speed", type=float, default=0.25, help="of the tip, greatest [m/s]")
    given = options.parse_args()
    table = Table(f"Figure of eight, WAM, {given.repeats} laps after the first", COLUMNS)
    for feed_forward in (1.0, 0.0):
        for bandwidth in BANDWIDTHS:
            table.rows.append(run(bandwidth, feed_forward, given.speed, given.repeats))
    import mujoco

    finish(given, [table], mujoco=mujoco.__version__)


if __name__ == "__main__":
    guarded(main)
