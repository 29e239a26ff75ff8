# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Collisions: ten poses in a shelf, answers that touch nothing, and how near they come.

A `PlanningScene` holds the shapes of the robot and the objects around it. A solver with a scene
slides along its solutions, or restarts, until no pair collides, and names the colliding pair
where that cannot be. Needs `pip install 'dls-ik[collision]'`.
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dls_ik import IkSolver, PlanningScene, RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.plot import arm_among_obstacles, save_picture

robot = RobotModel.wam()
scene = PlanningScene(robot)  # pairs of links that may touch are found; or srdf="arm.srdf"
for i, z in enumerate((0.0, 0.3, 0.6)):
    scene.add_box(f"board{i + 1}", [0.3, 0.8, 0.02], transform(translation=np.array([0.6, 0, z])))
for name, y in (("left", 0.4), ("right", -0.4)):
    scene.add_box(name, [0.3, 0.02, 0.62], transform(translation=np.array([0.6, y, 0.3])))

forward = rotation_from_rpy(0.0, np.pi / 2, 0.0)  # the tool into the shelf
places = [(0.57, y, z) for z in (0.15, 0.45) for y in np.linspace(-0.28, 0.28, 5)]  # [m]
poses = np.array([transform(forward, np.array(place)) for place in places])  # (10, 4, 4)

careless = IkSolver(robot).solve_batch(poses)
touching = scene.in_collision(careless.q) & careless.success
print(f"without the scene {np.count_nonzero(touching)} of 10 answers collide")

solver = IkSolver(robot, scene=scene)
found = solver.solve_batch(poses, solve_type="clearance")  # the answer farthest from everything
print(f"with it {np.count_nonzero(found.success)} of 10 poses are reached, all free")
for place, q, clearance in zip(places, found.q, found.clearance, strict=True):
    names = scene.distance(q).names
    print(f"{np.round(place, 2)}: {1e3 * clearance:.0f} mm between {' and '.join(names)}")

blocked = solver.solve(transform(forward, np.array([0.57, 0.0, 0.3])))  # a pose inside a board
print(solver.explain(blocked))

folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="dls_ik_"))
folder.mkdir(parents=True, exist_ok=True)
path = folder / "shelf.png"
save_picture(path, arm_among_obstacles(scene, found.q))
print(f"saved {path}")
