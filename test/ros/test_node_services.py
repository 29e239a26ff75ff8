# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The services of the running node, over the wire, and its parameters, changed while it serves."""

import numpy as np
import pytest
from out_of_grasp import out_of_grasp
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from ros_client import ENOUGH, SOON
from ros_wam import WAM, bad_pose, ik, stamped

from dls_ik.ros.client import IkClient

pytestmark = [pytest.mark.ros, pytest.mark.installed]


def kdl_pose(q):
    """Forward kinematics by PyKDL."""
    kdl = pytest.importorskip("PyKDL", reason="needs PyKDL")
    from dls_ik.model.kdl import kdl_chain

    chain = kdl_chain(WAM)
    joints = kdl.JntArray(WAM.n)
    for i, value in enumerate(q):
        joints[i] = value
    frame = kdl.Frame()
    kdl.ChainFkSolverPos_recursive(chain).JntToCart(joints, frame)
    T = np.eye(4)
    T[:3] = [[frame[i, j] for j in range(4)] for i in range(3)]
    return T


def test_random_poses_are_solved_within_tolerance_and_limits(client):
    for q in WAM.random(50, np.random.default_rng(5)):
        T = WAM.fk(q)
        response = ik(client, stamped(T))
        assert response.error_code.val == 1, response.error_code.message
        assert response.error_code.source == "dls_ik"
        joint_state = response.solution.joint_state
        assert tuple(joint_state.name) == WAM.joint_names
        assert joint_state.header.frame_id == "wam_base"
        assert WAM.within_limits(joint_state.position)
        np.testing.assert_allclose(kdl_pose(joint_state.position), T, atol=2e-6)


def test_parameters_are_refused_and_nothing_changes(client):
    for values, words in (
        ({"method": "nope"}, "ctp+sd+svf"),
        ({"method_options.nu": 0.001}, "nu > sigma0"),
        ({"method_options.lambda": "big"}, "finite number"),
        ({"initial_positions": [0.0, 0.0]}, "7 joint values"),
        ({"rate": 50.0}, "read-only"),
        ({"alpha": 0.5}, "parameter 'alpha' is now 'method_options.alpha'"),
    ):
        result = client.set_parameters(**{"method_options.mu": 0.33, **values})
        assert not result.successful
        assert words in result.reason
    assert client.get_parameter("method_options.mu").double_value == 0.2
    assert ik(client).error_code.val == 1


def test_parameters_change_live(client):
    pose = stamped(out_of_grasp(WAM, np.random.default_rng(1)))
    before = ik(client, pose, timeout=1.0).error_code.message
    try:
        assert client.set_parameters(timeout=0.2, method="SVF+SD", group_name=["x"]).successful
        assert ik(client, group_name="arm").error_code.val == -15
        assert ik(client, group_name="x").error_code.val in (1, -31)
        after = ik(client, bad_pose(position=(5.0, 0.0, 0.0))).error_code.message
        assert "within the timeout" in before
        assert "no attempt reached the pose; solver time" in after
    finally:
        result = client.set_parameters(timeout=0.05, method="auto", group_name="arm, wam")
        assert result.successful, result.reason


def test_broken_parameter_message_does_not_end_the_node(client, wam_node):
    message = ParameterMessage(name="method_options.mu", value=ParameterValue(type=200))
    with pytest.raises(AssertionError, match="waited"):
        client.set_raw_parameter(message, timeout=1.0)
    assert ik(client).error_code.val == 1
    assert wam_node.process.poll() is None


def test_kdl_methods_can_be_selected_live_and_solve_requests(wam_node, client):
    pytest.importorskip("PyKDL", reason="needs PyKDL")
    names, rng = WAM.joint_names, np.random.default_rng(2)
    with IkClient(joint_names=names, patience=SOON) as asker:
        try:
            for method in ("kdl_lma", "kdl_nr_jl"):
                assert client.set_parameters(method=method).successful
                assert client.get_parameter("method").string_value == method
                for q in WAM.random(5, rng):
                    seed = WAM.clip(q + 0.05 * rng.standard_normal(WAM.n))
                    answer = asker.solve(WAM.fk(q), seed, timeout=ENOUGH)
                    assert answer.success, f"{method}: {answer.message}"
                    found = answer.array(names)
                    np.testing.assert_allclose(WAM.fk(found), WAM.fk(q), atol=1e-5)
                    assert WAM.within_limits(found) or method == "kdl_lma"
            link = WAM.tree.links[4]  # moved by four joints
            answer = asker.solve(asker.fk(None, [link]).poses[link], link=link, timeout=ENOUGH)
            assert not answer.success
            assert "kdl_nr_jl" in answer.message
            assert "at least 6 joints" in answer.message
        finally:
            assert client.set_parameters(method="auto").successful
