"""The loop's thread goes before ordinary ones, and no other thread of the node does."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from ros_client import NodeProcess

from benchmarks.processes import real_time_priorities

pytestmark = pytest.mark.ros


@pytest.mark.parametrize("wanted", [7, 0])
def test_only_the_loop(wanted):
    with NodeProcess("-p", "robot:=wam", "-p", f"thread_priority:={wanted}") as node:
        node.wait_for_line("the loop has")
        node.wait_for_line("ready")
        permitted = f"the loop has real-time priority {wanted}" in node.output
        assert permitted or "the loop has ordinary priority" in node.output
        assert real_time_priorities(node.process.pid) == ([wanted] if permitted else [])
        assert not (permitted and wanted == 0)
        assert node.end() == 0
