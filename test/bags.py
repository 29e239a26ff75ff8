# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bags, read by the independent library rosbags."""

import pytest


def recorded(folder):
    """Return the times [s] and the messages of each topic with a standard type."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")
    from rosbags.typesys import Stores, get_typestore

    store, found = get_typestore(Stores.ROS2_HUMBLE), {}
    with rosbag2.Reader(folder) as bag:
        known = [each for each in bag.connections if each.msgtype in store.types]
        for connection, stamp, raw in bag.messages(known):
            message = store.deserialize_cdr(raw, connection.msgtype)
            found.setdefault(connection.topic, []).append((stamp * 1e-9, message))
    return found
