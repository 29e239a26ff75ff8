"""Maps of a workspace: which poses an arm reaches, and how well it moves there.

Public names are imported when they are first used, so that the command's help comes at once.
"""

from typing import TYPE_CHECKING

from dls_ik.first_use import on_first_use

if TYPE_CHECKING:
    from dls_ik.reachability.chunk import Voxels
    from dls_ik.reachability.compute import reachability_map
    from dls_ik.reachability.grid import ReachabilityError
    from dls_ik.reachability.map import ReachabilityMap
    from dls_ik.reachability.picture import map_picture
    from dls_ik.reachability.settings import Settings

__all__ = [
    "ReachabilityError",
    "ReachabilityMap",
    "Settings",
    "Voxels",
    "map_picture",
    "reachability_map",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "ReachabilityError": "grid",
        "ReachabilityMap": "map",
        "Settings": "settings",
        "Voxels": "chunk",
        "map_picture": "picture",
        "reachability_map": "compute",
    },
)
