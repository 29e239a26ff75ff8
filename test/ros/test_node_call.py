"""``dls-ik call`` against the running node."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from ros_wam import WAM, Q

pytestmark = pytest.mark.ros
SEED = ",".join(f"{name}={value}" for name, value in zip(WAM.joint_names, Q, strict=True))


def call(*words):
    """Exit code, stdout and stderr."""
    command = [sys.executable, "-m", "dls_ik.cli", "call", "--patience", "30", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return ended.returncode, ended.stdout, ended.stderr


def test_there_and_back(wam_node):
    code, out, err = call("--fk", SEED, "--json")
    assert code == 0, err
    T = np.array(json.loads(out)["poses"]["wam_tip"])
    np.testing.assert_allclose(T, WAM.fk(Q), atol=1e-9)
    xyz = [f"{value:.9f}" for value in T[:3, 3]]
    code, out, err = call("--xyz", *xyz, "--seed", SEED, "--timeout", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["success"]
    q = np.array([found["joints"][name] for name in WAM.joint_names])
    np.testing.assert_allclose(WAM.fk(q)[:3, :3], np.eye(3), atol=1e-5)
    np.testing.assert_allclose(WAM.fk(q)[:3, 3], T[:3, 3], atol=1e-5)


def test_no_solution(wam_node):
    code, out, err = call("--xyz", "9", "0", "0")
    assert (code, out) == (1, "")
    assert err.startswith("dls-ik: code -31: ")
    code, out, err = call("--xyz", "0.4", "0", "0.5", "--link", "nowhere")
    assert (code, out) == (1, "")
    assert "'nowhere'" in err
