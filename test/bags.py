# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bags, read by the independent library rosbags."""

import pytest


def recorded(folder):
    """Return the times [s] and the messages of each topic."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")
    from rosbags.typesys import Stores, get_typestore

    store, found = get_typestore(Stores.ROS2_HUMBLE), {}
    with rosbag2.Reader(folder) as bag:
        for connection, stamp, raw in bag.messages():
            message = store.deserialize_cdr(raw, connection.msgtype)
            found.setdefault(connection.topic, []).append((stamp * 1e-9, message))
    return found
