# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A robot of your own from Denavit-Hartenberg rows: a SCARA, with a joint that slides.

One row is one joint, T = Rz(theta) Tz(d) Tx(a) Rx(alpha); its value is added to theta, or to d.
Limits and velocities go with them. A SCARA has four joints, so that of a pose it reaches the place
and the turn about z: that is the `Task`. Its elbow has a formula to check the answers.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dls_ik import IkSolver, RobotModel, Task
from dls_ik.plot import joint_bands, save_picture, stroboscope

L1, L2 = 0.325, 0.225  # [m] lengths of the links
robot = RobotModel.from_dh(
    [
        {"name": "shoulder", "a": L1, "d": 0.4, "lower": -2.3, "upper": 2.3, "velocity": 6.0},
        {"name": "elbow", "a": L2, "alpha": np.pi, "lower": -2.5, "upper": 2.5, "velocity": 9.0},
        {"name": "lift", "kind": "prismatic", "lower": 0.0, "upper": 0.2, "velocity": 1.1},
        {"name": "wrist", "kind": "continuous", "velocity": 20.0},
    ],
    name="scara",
)
print(f"{robot.name}: {', '.join(robot.joint_names)}; {robot.base} to {robot.tip}")

start = np.array([0.3, 1.2, 0.05, 0.0])  # [rad, rad, m, rad]
solver = IkSolver(robot, task=Task(position="xyz", rotation="z"))
T = robot.fk(start)
T[:3, 3] = [0.20, 0.28, 0.30]
result = solver.solve(T, seed=start)
print(f"q = {np.round(result.q, 4)}, {result.status}")

x, y = T[:2, 3]
elbow = np.arccos((x * x + y * y - L1 * L1 - L2 * L2) / (2.0 * L1 * L2))
print(f"elbow by the law of cosines: {elbow:.4f} or {-elbow:.4f} rad")
both = solver.solve_all(T, count=4)
print(f"the solver finds elbows at {sorted({round(float(q[1]), 4) for q in both})} rad")

line = np.repeat(T[None], 80, axis=0)  # straight across, and down and up
line[:, 0, 3] += np.linspace(0.0, 0.25, 80)
line[:, 2, 3] -= 0.08 * np.sin(np.linspace(0.0, np.pi, 80))
path = solver.solve_path(line, seed=result.q)
print(f"{path.success.sum()} of {len(path)} poses solved, {path.jumps.sum()} jumps")
times = np.linspace(0.0, 2.0, len(path))
folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="dls_ik_"))
folder.mkdir(parents=True, exist_ok=True)
for name, figure in {
    "scara.png": stroboscope(robot, times, path.q, line[:, :3, 3]),
    "scara_joints.png": joint_bands(robot, times, path.q),
}.items():
    save_picture(folder / name, figure)
    print(f"saved {folder / name}")
