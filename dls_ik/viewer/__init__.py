# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Web page, served by the package viser, that shows an arm following a target.

``dls_ik.viewer.open(robot)`` opens the page from Python; ``dls_ik.show(robot, q)`` and
``dls_ik.play(robot, times, qs)`` show joint positions and paths on it.
"""

from typing import TYPE_CHECKING

from dls_ik.lazy import on_first_use

if TYPE_CHECKING:
    from dls_ik.viewer.window import Viewer, open_viewer, play, show

    open = open_viewer  # noqa: A001  as in dls_ik.viewer.open(robot)

__all__ = ["Viewer", "open", "open_viewer", "play", "show"]

_find, __dir__ = on_first_use(
    __name__, dict.fromkeys(("Viewer", "open_viewer", "play", "show"), "window")
)


def __getattr__(name: str) -> object:
    return _find("open_viewer" if name == "open" else name)
