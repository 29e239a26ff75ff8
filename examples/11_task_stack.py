# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks: the elbow moves while the tool stays, and two hands hold an object.

A `TaskStack` has levels of strict priority. A lower level uses the freedom that the levels above
leave, and never changes their errors.
"""

from pathlib import Path

import numpy as np

from dls_ik import FrameTask, IkSolver, PostureTask, RobotModel, SwivelTask, Task, TaskStack
from dls_ik.servo import Controller

robot = RobotModel.wam()
home = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])  # [rad]
T = robot.fk(home)

print("the tool keeps its pose; elbow at:")
for angle in (-1.0, 0.0, 1.0):  # [rad] swivel angle, 0: elbow up
    stack = TaskStack(Task(), SwivelTask(angle), PostureTask(home))
    result = IkSolver(robot, task=stack).solve(T, seed=home)
    elbow = robot.link_pose("wam_link4", result.q)[:3, 3]
    print(f"{angle:4.1f} rad: {elbow.round(3)} m, errors of the levels {result.level_errors}")

controller = Controller(robot, task=TaskStack(Task(), SwivelTask(0.0)), acceleration=5.0)
controller.seed(home)
controller.follow_pose(T, now=0.0)
controller.set_swivel(1.0)  # the tip stands still, but could follow a stream, too
out = [controller.cycle(now=0.002 * k, dt=0.002) for k in range(4000)]
print(
    f"in a stream the joints move by {np.ptp([each.q for each in out], axis=0).max():.2f} rad and "
    f"the tip by {1e6 * max(each.position_error for each in out):.1f} um"
)

urdf = Path(__file__).resolve().parents[1] / "urdf" / "two_wams.urdf"
both = RobotModel.from_urdf(urdf, tip=("left_wam_tip", "right_wam_tip"))
start = np.tile(home, 2)
left, right = both.fk(start)
grip = np.linalg.inv(left) @ right  # pose of the right hand relative to the left hand
hold = FrameTask("right_wam_tip", grip, reference="left_wam_tip")
stack = TaskStack(hold, [Task(), Task.free()], PostureTask(start))
for height in (0.1, 2.0):  # [m] the second target is out of reach: the place yields, not the grip
    up = left.copy()
    up[2, 3] += height
    result = IkSolver(both).solve([up, right], start, task=stack)
    hands = both.fk(result.q)
    slip = np.abs(np.linalg.inv(hands[0]) @ hands[1] - grip).max()
    print(f"lifted by {hands[0, 2, 3] - left[2, 3]:.2f} of {height} m, grip exact to {slip:.0e}")
