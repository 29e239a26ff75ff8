# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Maps of a workspace: the poses that an arm reaches, and its dexterity there.

Public names are imported on first use, so that the help of the command is fast.
"""

from typing import TYPE_CHECKING

from dls_ik.lazy import on_first_use

if TYPE_CHECKING:
    from dls_ik.reachability.chunks import Voxels
    from dls_ik.reachability.compute import reachability_map
    from dls_ik.reachability.map import ReachabilityMap, map_picture
    from dls_ik.reachability.settings import MapSettings, ReachabilityError

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
        "ReachabilityError": "settings",
        "ReachabilityMap": "map",
        "MapSettings": "settings",
        "Voxels": "chunks",
        "map_picture": "map",
        "reachability_map": "compute",
    },
)
