"""Maps of a workspace: which poses an arm reaches, and how well it moves there.

Public names are imported when they are first used, so that the command's help comes at once.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dls_ik.reachability.chunk import Voxels
    from dls_ik.reachability.compute import reachability_map
    from dls_ik.reachability.error import ReachabilityError
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

_FILES = {
    "ReachabilityError": "error",
    "ReachabilityMap": "map",
    "Settings": "settings",
    "Voxels": "chunk",
    "map_picture": "picture",
    "reachability_map": "compute",
}


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
