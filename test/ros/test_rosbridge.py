# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A client of rosbridge calls compute_ik: JSON over a web socket, without ROS on its side."""

import ctypes.util
import json
import os
import shutil
import socket
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import moveit_msgs
import numpy as np
import pytest
from programs import LONG
from ros_client import SOON
from ros_wam import WAM

from dls_ik.model.rotations import quaternion_from_rotation

LIBRARIES = Path(sys.prefix, "lib")
MISSING = [name for name in ("roslibpy", "rosbridge_server_rs") if find_spec(name) is None]
PYTHON = ctypes.util.find_library(f"python{sys.version_info[0]}.{sys.version_info[1]}")

pytestmark = [
    pytest.mark.ros,
    pytest.mark.slow,
    pytest.mark.skipif(bool(MISSING), reason=f"needs {' and '.join(MISSING)}"),
    pytest.mark.skipif(
        LIBRARIES.parent not in Path(moveit_msgs.__file__).parents or PYTHON is None,
        reason="needs the messages of underlay/, and the shared library of Python",
    ),
]
CALLER = """
import json, sys, time
import roslibpy
from roslibpy.core import ServiceException

port, request = int(sys.argv[1]), json.loads(sys.argv[2])
ros = roslibpy.Ros("127.0.0.1", port)
ros.run(60)
service = roslibpy.Service(ros, "/compute_ik", "moveit_msgs/srv/GetPositionIK")
while True:
    try:
        answer = service.call(roslibpy.ServiceRequest(request), timeout=60)
        break
    # The server has not discovered the node yet, or called a node that was killed before.
    except ServiceException as error:
        if not any(words in str(error) for words in ("absent from ROS graph", "Timeout exceeded")):
            raise
        time.sleep(0.1)
print(json.dumps(dict(answer)), flush=True)
ros.terminate()
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The port of a rosbridge server in the domain of the tests."""
    package = Path(find_spec("rosbridge_server_rs").origin).parent
    folder = tmp_path_factory.mktemp("rosbridge")
    program = folder / "rosbridge_server"
    shutil.copy(package / "rosbridge_server_rs_jazzy", program)
    program.chmod(0o755)  # the wheel has no mark of a program
    # Kilted's wheels have one RMW, under its own name, and libraries that expect Python's.
    (folder / "librmw_implementation.so").symlink_to(LIBRARIES / "librmw_fastrtps_cpp.so")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": f"{os.environ['LD_LIBRARY_PATH']}{os.pathsep}{folder}",
        "LD_PRELOAD": PYTHON,
        "AMENT_PREFIX_PATH": sys.prefix,
        "ROS_DISTRO": "jazzy",
    }
    server = subprocess.Popen(
        [program, "--no-rosapi", "--log-ansi", "false", "--bind", f"127.0.0.1:{number}"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    try:
        lines = iter(server.stdout.readline, "")
        said = []
        for line in lines:
            said.append(line)
            if "listening" in line:
                break
        else:
            pytest.fail("".join(said))
        yield number
    finally:
        server.kill()
        server.communicate(timeout=SOON)


def test_compute_ik_is_called_through_rosbridge(wam_node, port):
    expected = WAM.fk(np.array([0.3, 0.7, 0.1, 1.6, 0.0, 0.5, 0.2]))
    xyzw = quaternion_from_rotation(expected[:3, :3])
    pose = {
        "position": dict(zip("xyz", map(float, expected[:3, 3]), strict=True)),
        "orientation": dict(zip("xyzw", map(float, xyzw), strict=True)),
    }
    request = {"ik_request": {"pose_stamped": {"pose": pose}, "timeout": {"sec": 30}}}
    done = subprocess.run(
        [sys.executable, "-c", CALLER, str(port), json.dumps(request)],
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["error_code"]["val"] == 1, answer["error_code"]
    state = answer["solution"]["joint_state"]
    q = dict(zip(state["name"], state["position"], strict=True))
    np.testing.assert_allclose(WAM.fk([q[name] for name in WAM.joint_names]), expected, atol=1e-5)
