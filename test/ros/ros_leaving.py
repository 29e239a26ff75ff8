# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A client that asks for much, as a process of its own, and is gone before the answers."""

import sys

import numpy as np
from out_of_grasp import out_of_grasp
from ros_client import READY, Client
from ros_wam import WAM

from dls_ik.ros.client import IkClient

TIMEOUT = 0.4  # [s] that each request takes, as there is no solution


def main():
    """Ask so many times in a namespace, and say so; then stay until it is killed."""
    namespace, count = sys.argv[1], int(sys.argv[2])
    hard = out_of_grasp(WAM, np.random.default_rng(3))
    with Client(namespace, "leaving") as client, IkClient(client.node) as asker:
        client.spin_until(lambda: asker.is_served, READY, "compute_ik")
        asked = [asker.solve_async(hard, timeout=TIMEOUT * count) for _ in range(count)]
        client.spin_until(asked[0].done, READY, "the first answer")
        print("asked", flush=True)
        client.spin_for(READY)


if __name__ == "__main__":
    main()
