"""Everything at once at one node, for a while; `benchmarks.concurrency` does it for ten minutes."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from benchmarks.concurrency.run import run

pytestmark = [pytest.mark.ros, pytest.mark.slow]

DURATION, SEED = 10.0, 8  # [s]
DONE = ("calls of compute_ik", "calls of compute_fk", "good changes", "bad changes")
CHECKED = ("an answer of compute_ik is of one robot", "limits kept", "no jump")


def enough(ledger):
    """How often at least, however slow the machine is."""
    return (
        ledger.done["robots"] > 2
        and all(ledger.done[what] > 5 for what in DONE)
        and all(ledger.checked[what] > 5 for what in CHECKED)
    )


def test_robots_parameters_requests_and_targets_at_once(private_domain):
    found = run(DURATION, SEED, enough)
    assert found.ledger.words == []
    assert enough(found.ledger), (found.ledger.done, found.ledger.checked)
