# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cache of the kinds of requests that the receiving thread can solve without preparation."""

import threading
from weakref import ref

from dls_ik.ros.arm import Arm
from dls_ik.ros.services.request import IkRequest

MAX_KINDS = 1000  # maximum number of kinds of requests in the cache
FIRST_SOLUTION = "speed"  # solve_type


class FastPathCache:
    """Cache of the kinds of requests that the receiving thread may try to solve at once.

    The first request of a kind is not solved at once, because it may need a new solver, which takes
    a few tenths of a second. Requests with another solve_type than `speed` are never solved at
    once, because they would lose their intermediate results when stopped early. The cache has weak
    references to solvers and scenes, because a changing scene replaces its snapshot many times a
    second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arm: ref[Arm] | None = None
        self._kinds: set[tuple[object, ...]] = set()

    def is_known(self, request: IkRequest) -> bool:
        """Return whether the solver for this kind of request is already prepared."""
        if request.arm.parameters.solve_type != FIRST_SOLUTION:
            return False
        if request.is_constrained or request.state.attached:  # both need a new solver per request
            return False
        if request.scene is not None and _has_outside_joints(request):  # 7 ms to place their links
            return False
        with self._lock:
            return self._is_of_arm(request) and _kind(request) in self._kinds

    def remember(self, request: IkRequest) -> None:
        """Add the kind of an answered request."""
        with self._lock:
            if not self._is_of_arm(request) or len(self._kinds) >= MAX_KINDS:
                self._arm, self._kinds = ref(request.arm), set()
            self._kinds.add(_kind(request))

    def _is_of_arm(self, request: IkRequest) -> bool:
        return self._arm is not None and self._arm() is request.arm


def _has_outside_joints(request: IkRequest) -> bool:
    masters = {mimic.master for mimic in request.arm.tree.mimic_of.values()}
    return len(masters) > len(request.group.solver.robot.joint_names)


def _kind(request: IkRequest) -> tuple[object, ...]:
    """Return the kind of a request: features that are equal for requests with the same solver."""
    scene = None if request.scene is None else ref(request.scene.snapshot)
    return ref(request.group.solver), request.links, request.is_constrained, scene
