"""The parameters of the running node, changed while it serves."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from out_of_grasp import out_of_grasp
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterValue
from ros_wam import WAM, bad_pose, ik, stamped, state

pytestmark = [pytest.mark.ros, pytest.mark.installed]


def test_collisions_are_ignored_with_one_warning_or_refused(client, wam_node):
    for _ in range(2):
        assert ik(client, avoid_collisions=True).error_code.val == 1
    wam_node.wait_for_line("WARN", "avoid collisions")
    assert wam_node.count("WARN", "avoid collisions") == 1
    try:
        assert client.set_parameters(avoid_collisions="refuse").successful
        assert ik(client, avoid_collisions=True).error_code.val == -31
        assert ik(client).error_code.val == 1
    finally:
        assert client.set_parameters(avoid_collisions="ignore").successful


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"method": "nope"}, "ctp+sd+svf"),
        ({"nu": 0.001}, "nu > sigma0"),
        ({"lambda_": "big"}, "finite number"),
        ({"initial_positions": [0.0, 0.0]}, "7 joint values"),
        ({"rate": 50.0}, "read-only"),
    ],
)
def test_parameter_is_refused_and_nothing_changes(client, values, words):
    result = client.set_parameters(mu=0.33, **values)
    assert not result.successful
    assert words in result.reason
    assert client.get_parameter("mu").double_value == 0.2
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
        assert "no attempt reached the pose, tried" in after
    finally:
        result = client.set_parameters(timeout=0.05, method="auto", group_name="arm, wam")
        assert result.successful, result.reason


def test_solve_type_says_which_solution(client):
    rng = np.random.default_rng(2)
    tasks = [(stamped(WAM.fk(WAM.random(rng))), WAM.random(rng)) for _ in range(5)]

    def distances():
        for pose, seed in tasks:
            answer = ik(client, pose, timeout=1.0, **state(WAM.joint_names, seed.tolist()))
            assert answer.error_code.val == 1, answer.error_code.message
            yield np.linalg.norm(np.array(answer.solution.joint_state.position) - seed)

    first = list(distances())
    try:
        assert client.set_parameters(solve_type="distance").successful
        nearest = list(distances())
    finally:
        assert client.set_parameters(solve_type="speed").successful
    assert (np.array(nearest) <= np.array(first) + 1e-6).all()
    assert sum(nearest) < 0.9 * sum(first)
    refused = client.set_parameters(solve_type="nearest")
    assert not refused.successful
    assert "speed, distance, manipulability" in refused.reason


def test_parameters_are_described(client):
    rate, group, positions, method = client.describe_parameters(
        "rate", "group_name", "initial_positions", "method"
    )
    assert rate.read_only
    assert rate.floating_point_range[0].to_value == 1000.0
    assert "Hz" in rate.description
    assert "string array" in group.additional_constraints
    assert positions.type == 8
    assert method.description


def test_broken_parameter_message_does_not_end_the_node(client, wam_node):
    message = ParameterMessage(name="mu", value=ParameterValue(type=200))
    with pytest.raises(AssertionError, match="waited"):
        client.set_raw_parameter(message, timeout=1.0)
    assert ik(client).error_code.val == 1
    assert wam_node.process.poll() is None
