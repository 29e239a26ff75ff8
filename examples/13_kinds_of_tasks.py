# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Every kind of task on the second level of a stack, while the tool keeps its pose.

The first column is the error of the task in the posture `home`, the second column its error on the
second level of a stack. A task keeps a part of its error if the tool leaves too little freedom.
Objectives have no error: their columns are the distance of the joints from the middle of their
ranges.
"""

import numpy as np

from dls_ik import (
    CenterOfMassTask,
    CouplingTask,
    FrameTask,
    IkSolver,
    ObjectiveTask,
    PostureTask,
    RobotModel,
    SwivelTask,
    Task,
    TaskStack,
)

robot = RobotModel.wam()
home = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])  # [rad]
T = robot.fk(home)
elbow = robot.link_pose("wam_link4", home)
aside = elbow.copy()
aside[1, 3] += 0.1  # [m]
middle = 0.5 * (robot.lower + robot.upper)

KINDS = {
    "swivel angle of the elbow": SwivelTask(0.5),
    "posture": PostureTask(home + 0.2),
    "posture of two joints": PostureTask({"wam_j1": 0.3, "wam_j7": 0.3}),
    "position of another link": FrameTask("wam_link4", aside, Task.position_only()),
    "one coordinate of that link": FrameTask("wam_link4", aside, Task(position="y", rotation="")),
    "direction of that link": FrameTask("wam_link4", aside, Task.pointing("x")),
    "coupled joints": CouplingTask({"wam_j1": 1.0, "wam_j3": 1.0}, 0.4),
    "centre of mass": CenterOfMassTask((0.2, 0.05, 0.0), axes="y"),
}
print("task                                 home  in a stack")
for name, task in KINDS.items():
    before = IkSolver(robot, task=TaskStack(Task(), PostureTask(home), task)).solve(T, seed=home)
    result = IkSolver(robot, task=TaskStack(Task(), task)).solve(T, seed=home)
    print(f"{name:32} {before.level_errors[2]:8.4f} {result.level_errors[1]:11.4f}")
for objective in ("centring", "limits", "manipulability"):
    result = IkSolver(robot, task=TaskStack(Task(), ObjectiveTask(objective))).solve(T, seed=home)
    off = [np.linalg.norm(q - middle) for q in (home, result.q)]
    print(f"objective {objective:22} {off[0]:8.4f} {off[1]:11.4f}")
