# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Maps and robots for the tests of reachability."""

import os
import subprocess
import sys
import time

import numpy as np
from robots import joint, urdf

from dls_ik.model import RobotModel
from dls_ik.reachability import reachability_map

WAM = {"resolution": 0.25, "orientations": 128, "max_restarts": 5}  # 93312 poses in 46 chunks
WAM_OPTIONS = ["--resolution", "0.25", "--orientations", "128", "--restarts", "5"]
COMMAND = [sys.executable, "-m", "dls_ik.cli", "reachability", "wam", *WAM_OPTIONS]


def wam_map(**options):
    return reachability_map("wam", **{**WAM, **options})


def assert_same(a, b):
    """Check that two maps are equal bit by bit, including NaN."""
    assert a.settings == b.settings
    for name, one, other in zip(a.voxels._fields, a.voxels, b.voxels, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, err_msg=name)


def start(*arguments, **options):
    """Start the command as a process."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def chunks_of(out):
    """Return the finished chunks next to a map."""
    folder = out.with_name(f"{out.name}.parts")
    return (
        sorted(name for name in os.listdir(folder) if name.endswith(".npz"))
        if folder.is_dir()
        else []
    )


def wait_for_chunks(process, out, count):
    """Wait until there are `count` chunks, or the process has ended."""
    while process.poll() is None and len(chunks_of(out)) < count:
        time.sleep(0.01)


def planar_arm(first, second):
    """Return a robot of two links about z without limits, which reaches a ring."""
    turning = [
        joint("j1", "continuous", "a", "b", ""),
        _behind("j2", "continuous", "b", "c", first),
    ]
    return RobotModel.from_urdf(
        urdf("a b c tip", *turning, _behind("t", "fixed", "c", "tip", second))
    )


def gantry(x, y, z):
    """Return a robot of three slides, which reaches a box with one orientation."""
    ends = zip("xyz", (x, y, z), ("a b", "b c", "c d"), ("1 0 0", "0 1 0", "0 0 1"), strict=True)
    slides = [
        joint(name, "prismatic", *links.split(), _limit(*limits), axis)
        for name, limits, links, axis in ends
    ]
    return RobotModel.from_urdf(urdf("a b c d", *slides))


def _behind(name, kind, parent, child, length):
    return joint(name, kind, parent, child, f'<origin xyz="{length} 0 0"/>')


def _limit(lower, upper):
    return f'<limit lower="{lower}" upper="{upper}" effort="1" velocity="1"/>'
