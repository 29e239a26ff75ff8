"""PyKDL's solvers in place of ours, on the same services."""

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
pytest.importorskip("PyKDL", reason="needs PyKDL")

from ros_client import SOON, Client, NodeProcess
from ros_wam import WAM

from dls_ik.ros.client import IkClient

pytestmark = [pytest.mark.ros, pytest.mark.slow]
METHODS = ("kdl_lma", "kdl_nr_jl", "auto")


@pytest.fixture(scope="module")
def node():
    arguments = ("-r", "__ns:=/kdl", "-p", "robot:=wam", "-p", f"method:={METHODS[0]}")
    with NodeProcess(*arguments) as node:
        node.wait_for_line("ready", METHODS[0])
        yield node


def test_any_method_serves_and_changes_while_it_runs(node):
    names, rng = WAM.joint_names, np.random.default_rng(2)
    with (
        Client("kdl") as client,
        IkClient(namespace="kdl", joint_names=names, patience=SOON) as asker,
    ):
        for method in METHODS:
            if method != METHODS[0]:
                assert client.set_parameters(method=method).successful
            assert client.get_parameter("method").string_value == method
            for q in WAM.random(rng, 5):
                seed = WAM.clip(q + 0.05 * rng.standard_normal(WAM.n))
                answer = asker.solve(WAM.fk(q), seed, timeout=5.0)
                assert answer.success, f"{method}: {answer.message}"
                found = answer.array(names)
                np.testing.assert_allclose(WAM.fk(found), WAM.fk(q), atol=1e-5)
                assert WAM.within_limits(found) or method == "kdl_lma"
        assert "Traceback" not in node.output


def test_what_kdl_cannot_serve_is_refused_with_the_reason(node):
    link = WAM.tree.links[4]  # moved by four joints
    with Client("kdl") as client, IkClient(namespace="kdl", patience=SOON) as asker:
        assert client.set_parameters(method="kdl_nr_jl").successful
        answer = asker.solve(asker.fk(None, [link]).poses[link], link=link, timeout=5.0)
        assert not answer.success
        assert "kdl_nr_jl" in answer.message
        assert "at least 6 joints" in answer.message
