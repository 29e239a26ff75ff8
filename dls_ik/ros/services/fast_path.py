# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cache of the kinds of requests that the thread that receives them can solve immediately."""

import threading
from weakref import ref

from dls_ik.ros.arm import Arm
from dls_ik.ros.services.request import IkRequest

MAX_KINDS = 1000  # maximum number of kinds of requests in the cache
FIRST_SOLUTION = "speed"  # value of the parameter solve_type that returns the first solution


class FastPathCache:
    """Cache of the kinds of requests that the receiving thread may try to solve immediately.

    Requests of the same kind use the same solver and scene. The first request of a kind is left to
    a worker thread, because it may need a new solver, which takes a few tenths of a second. So are
    all requests if the parameter solve_type is not `speed`, because intermediate results would be
    lost if the receiving thread stopped them early. The cache has only weak references to solvers
    and scenes, because a changing scene is replaced by a new snapshot many times a second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._arm: ref[Arm] | None = None
        self._kinds: set[tuple[object, ...]] = set()

    def is_known(self, request: IkRequest) -> bool:
        """Return whether a request can be solved immediately, because its solver is prepared."""
        if request.arm.parameters.solve_type != FIRST_SOLUTION:
            return False
        if request.is_constrained or request.state.attached:  # both need a new solver per request
            return False
        # Placing the links that joints outside the chain move in the scene takes 7 ms.
        if request.scene is not None and _has_outside_joints(request):
            return False
        with self._lock:
            return self._is_of_arm(request) and _kind(request) in self._kinds

    def remember(self, request: IkRequest) -> None:
        """Add the kind of a request that was solved, so that its solver is prepared."""
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
    """Return the kind of a request, as a tuple that is equal for all requests of this kind."""
    scene = None if request.scene is None else ref(request.scene.snapshot)
    return ref(request.group.solver), request.links, request.is_constrained, scene
