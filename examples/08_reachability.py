# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reachability: which places of a workspace an arm reaches, counted in voxels.

A map asks the solver for every voxel, and keeps where it found a solution and how dextrous the arm
is there. For an arm in the plane the answer is known, a disk with the radius of both links, so that
the area shows how good the count is. For a whole arm in space:

    dls-ik reachability wam --resolution 0.1 --orientations 64 --plot map.png
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dls_ik.plot import save_picture
from dls_ik.reachability import map_picture, reachability_map

RESOLUTION = 0.1  # [m] edge of a voxel
REGION = (-2.2, 2.2, -2.2, 2.2, 0.0, 0.0)  # x, y, z from and to [m]: one layer

found = reachability_map("planar_2r", RESOLUTION, task="position", region=REGION)
reached = found.index > 0.0  # (nx, ny, nz)
area = reached.sum() * RESOLUTION**2
print(f"{reached.sum()} of {reached.size} voxels are reached")
print(f"{area:.2f} m2; the disk has {np.pi * 2.0**2:.2f} m2")

for place in ((1.9, 0.3, 0.0), (2.0, 1.0, 0.0)):  # the second one is out of reach
    print(f"{place}: {'reached' if reached[found.at(place)] else 'not reached'}")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="dls_ik_"))
folder.mkdir(parents=True, exist_ok=True)
path = folder / "reachability.png"
save_picture(path, map_picture(found, "manipulability"))
print(f"saved {path}")
