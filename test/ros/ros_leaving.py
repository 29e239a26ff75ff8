# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Separate client process that sends many requests and is killed before the answers."""

import sys

import numpy as np
from out_of_grasp import out_of_grasp
from ros_client import READY, Client
from ros_wam import WAM

from dls_ik.ros.client import IkClient

TIMEOUT = 0.4  # [s] that each request takes, as there is no solution


def main():
    """Send the given number of requests in a namespace, print a line, and wait to be killed."""
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
