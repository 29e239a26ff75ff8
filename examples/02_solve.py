# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solving: one pose, the nearest solution, all solutions, many poses, and a pose out of reach.

`IkSolver` finds joint values inside the limits for a pose of the tip. Not finding any is an answer
too, with a reason, never an exception; exceptions are for input that is no pose, robot or option.
The first solve ever compiles the kernels (half a minute); they are kept on disk.
"""

import numpy as np

from dls_ik import IkSolver, RobotModel

robot = RobotModel.wam()  # alternative: .from_urdf("arm.urdf", tip="tool0")
q_before = np.array([0.1, 0.6, 0.0, 1.6, 0.0, 0.5, 0.2])  # (7,) current configuration [rad]
T = robot.fk([0.5, 0.8, -0.3, 1.2, 0.4, -0.2, 1.0])  # (4, 4) T_base_tip [m]

solver = IkSolver(robot)
result = solver.solve(T)
print(f"one solution: {np.round(result.q, 3)}, off by {result.position_error:.1e} m")

near = solver.solve(T, seed=q_before, solve_type="distance")  # the nearest to the seed
moved, least = (np.linalg.norm(each.q - q_before) for each in (result, near))
print(f"from where the arm is, that is {moved:.2f} rad away, the nearest {least:.2f} rad")

# A seventh joint leaves the elbow free, so that there are endlessly many: some that differ. The arm
# can move between those of one family while the tip stays.
several = solver.solve_all(T, count=12)
print(f"{len(several)} solutions in {several.num_families} families")
for k, q in enumerate(several.representatives):
    angles = several[several.families == k, 2]
    print(f"family {k}: elbow {q[3]:.3f} rad, joint 3 at {np.round(angles, 2)}")

goals = robot.fk(robot.random(1000, np.random.default_rng(0)))  # (1000, 4, 4)
batch = solver.solve_batch(goals)  # uses all cores
print(f"{batch.success.mean():.1%} of {len(batch)} poses in {batch.duration:.3f} s")

far = T + 2.0 * np.eye(4, k=3)  # two metres too far
failed = solver.solve(far)
print(f"out of reach: {failed.status}, {failed.status.explanation}")
nearest = solver.solve(far, approximate=True)
print(f"as near as it comes: {nearest.position_error:.2f} m")
