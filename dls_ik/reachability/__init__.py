# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reachability maps: the poses in a workspace that an arm reaches, and the dexterity of the arm.

Each public name is imported at its first use, so that ``--help`` of the command line is fast.
"""

from typing import TYPE_CHECKING

from dls_ik.lazy import on_first_use

if TYPE_CHECKING:
    from dls_ik.reachability.compute import reachability_map
    from dls_ik.reachability.grid import ReachabilityError
    from dls_ik.reachability.map import ReachabilityMap
    from dls_ik.reachability.picture import map_picture
    from dls_ik.reachability.settings import MapSettings
    from dls_ik.reachability.voxels import Voxels

__all__ = [
    "MapSettings",
    "ReachabilityError",
    "ReachabilityMap",
    "Voxels",
    "map_picture",
    "reachability_map",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "ReachabilityError": "grid",
        "ReachabilityMap": "map",
        "MapSettings": "settings",
        "Voxels": "voxels",
        "map_picture": "picture",
        "reachability_map": "compute",
    },
)
