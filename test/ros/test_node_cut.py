# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The network between a client and the node is cut while the arm moves, and mended."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.slow]
HERE = Path(__file__).parent
CABLE = ("ip", "link", "add", "near", "type", "veth", "peer", "name", "far")


def apart():
    """The command that runs another on a network of its own; skips where that is not allowed."""
    missing = [name for name in ("unshare", "nsenter", "ip") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} (util-linux, iproute2) to cut a network")
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    command = ["unshare", *as_root, "--net"]
    tried = subprocess.run([*command, *CABLE], capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(f"may not make networks here: {tried.stderr.strip()}")
    return command


def test_arm_stops_when_the_network_is_cut_and_resumes_when_restored():
    """Once for a moment, and once for so long that each side forgets the other."""
    command = [*apart(), sys.executable, str(HERE / "ros_cut.py"), "1", "4"]
    paths = [str(HERE.parents[1]), str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
