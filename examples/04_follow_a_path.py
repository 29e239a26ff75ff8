# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Following a path: poses in, a joint trajectory out, and pictures to judge it by.

`solve_path` solves each pose from the answer before, so that the joints move on and do not jump to
another solution; where they must, `jumps` says so. The tip draws a figure of eight and keeps its
direction; times are chosen afterwards, so that no joint is faster than 40 % of its limit.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.plot import joint_bands, joint_velocities, save_picture, tip_path

robot = RobotModel.wam()
start = np.array([0.3, 0.6, 0.2, 1.6, -0.3, -0.7, 0.2])  # (7,) [rad]

phase = np.linspace(0.0, 2.0 * np.pi, 300)
T = np.repeat(robot.fk(start)[None], len(phase), axis=0)  # (300, 4, 4)
T[:, 1, 3] += 0.20 * np.sin(phase)  # y [m]
T[:, 2, 3] += 0.12 * np.sin(2.0 * phase)  # z [m]

path = IkSolver(robot).solve_path(T, seed=start)
print(f"{path.success.sum()} of {len(path)} poses solved, {path.jumps.sum()} jumps")
print(f"largest position error {path.position_error.max():.1e} m")

step = 2.5 * np.max(np.abs(np.diff(path.q, axis=0)) / robot.velocity)  # [s] for each
times = step * np.arange(len(phase))
print(f"the eight takes {times[-1]:.1f} s")

columns = np.column_stack([times, path.q])
folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="dls_ik_"))
folder.mkdir(parents=True, exist_ok=True)
header = ",".join(["time", *robot.joint_names])
np.savetxt(folder / "path.csv", columns, "%.6f", ",", header=header)
print(f"saved {folder / 'path.csv'}")
for name, figure in {
    "tip_path.png": tip_path(robot, times, path.q, T[:, :3, 3]),
    "joint_bands.png": joint_bands(robot, times, path.q),
    "joint_velocities.png": joint_velocities(robot, times, path.q),
}.items():
    save_picture(folder / name, figure)
    print(f"saved {folder / name}")
