"""Send targets at a steady rate, and record what comes back."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import DlsIkError
from dls_ik.ros.demo.client import Client, State, now
from dls_ik.ros.demo.path import Targets

PATIENCE = 5.0  # [s] for the first joint states
LINGER = 0.25  # [s] for the last ones


class Recording(NamedTuple):
    """What was sent and what came, on one steady clock that is 0 where counting begins."""

    sent: Array  # (k,) [s] below 0 on the way to where counting begins
    targets: Array  # (k, 4, 4) T_base_tip
    received: Array  # (m,) [s]
    stamps: Array  # (m,) [s] when the node says that it computed
    q: Array  # (m, n)


def starting_point(client: Client) -> Array:
    """Where the node says that the arm is, (n,).

    Raises:
        DlsIkError: the node sends no joint states.
    """
    deadline = now() + PATIENCE
    while not client.states:
        if now() > deadline:
            raise DlsIkError(f"no joint_states came from the node within {PATIENCE:g} s")
        client.spin_until(now() + 0.05)
    return client.states[-1].q


def stream(
    client: Client, targets: Targets, rate: float, every_second: Callable[[], None]
) -> Recording:
    """Send every target at its time; joint states are recorded where counting begins.

    Raises:
        DlsIkError: no joint states came meanwhile.
    """
    client.states.clear()
    begin = now()
    sent = []
    for k, T in enumerate(targets.poses):
        client.spin_until(begin + k / rate)
        sent.append(client.publish(T))
        if k % round(rate) == 0:
            every_second()
    client.spin_until(now() + LINGER)
    return _recording(np.array(sent), targets, client.states)


def _recording(sent: Array, targets: Targets, states: list[State]) -> Recording:
    zero = sent[targets.counted]
    counted = [state for state in states if state.received >= zero]
    if len(counted) < 2:
        raise DlsIkError("the node stopped sending joint_states while the targets were streamed")
    return Recording(
        sent - zero,
        targets.poses,
        np.array([state.received for state in counted]) - zero,
        np.array([state.stamp for state in counted]) - zero,
        np.array([state.q for state in counted]),
    )
