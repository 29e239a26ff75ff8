# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Two arms at once: both hands hold a bar, which moves.

A robot may have several tips: poses then are (2, 4, 4), one for each hand, and all joints are
solved for together. Here 14 joints of two WAMs; with a torso that both arms hang on, its joints
would be shared. Methods that need no full pose of each tip take a `Task`, or one for each tip.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.plot import error_and_conditioning, save_picture, stroboscope

urdf = Path(__file__).resolve().parents[1] / "urdf" / "two_wams.urdf"
robot = RobotModel.from_urdf(urdf, tip=("left_wam_tip", "right_wam_tip"))
print(f"{robot.n} joints, tips {', '.join(robot.tips)}")

bent = {"j1": 0.0, "j2": 0.7, "j3": 0.0, "j4": 1.6, "j5": 0.0, "j6": -0.7, "j7": 0.0}  # [rad]
start = np.array([bent[name.split("_")[-1]] for name in robot.joint_names])
hands = robot.fk(start)  # (2, 4, 4) T_base_tip [m]
bar = np.eye(4)  # the middle between the hands
bar[:3, 3] = hands[:, :3, 3].mean(axis=0)
grips = np.linalg.inv(bar) @ hands  # T_bar_tip: the hands do not slip

poses = []
for phase in np.linspace(0.0, 2.0 * np.pi, 120):
    tilt = 0.3 * np.sin(phase)  # [rad] rotation about x while the bar goes up and down
    moved = bar.copy()
    moved[1:3, 1:3] = [[np.cos(tilt), -np.sin(tilt)], [np.sin(tilt), np.cos(tilt)]]
    moved[2, 3] += 0.1 * (1.0 - np.cos(phase))
    poses.append(moved @ grips)
T = np.array(poses)  # (120, 2, 4, 4)

path = IkSolver(robot).solve_path(T, seed=start)
print(f"{path.success.sum()} of {len(path)} poses solved, {path.jumps.sum()} jumps")
apart = np.linalg.norm(np.diff(robot.fk(path.q)[:, :, :3, 3], axis=1)[:, 0], axis=1)
print(f"the hands stay {apart.mean():.3f} m apart, to {1e6 * np.ptp(apart):.2f} um")

times = np.linspace(0.0, 6.0, len(T))
folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="dls_ik_"))
folder.mkdir(parents=True, exist_ok=True)
for name, figure in {
    "two_arms.png": stroboscope(robot, times, path.q, count=12),
    "two_arms_errors.png": error_and_conditioning(robot, times, path.q, T),
}.items():
    save_picture(folder / name, figure)
    print(f"saved {folder / name}")
