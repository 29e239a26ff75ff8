# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Line that the WAM cannot follow from a start configuration, but from other joint positions."""

import numpy as np

from dls_ik import RobotModel

WAM = RobotModel.wam()
START = np.array([2.304, 0.045, 2.667, -0.577, -1.095, -0.395, 1.328])  # [rad]
NUM_POSES = 20


def line(T, end, count=NUM_POSES):
    """Return poses (count, 4, 4) on a line from the pose T by the vector `end` [m]."""
    Ts = np.tile(T, (count, 1, 1))
    Ts[:, :3, 3] += np.linspace(0.0, 1.0, count)[:, None] * np.asarray(end)
    return Ts


LINE = line(
    WAM.fk(START), [0.027, -0.295, 0.044]
)  # joint 3 stops an arm that starts at START before pose 6
