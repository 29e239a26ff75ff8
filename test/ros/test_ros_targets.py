"""Messages and parameters with anything in them on a few inputs each; see test/fuzz."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from few_inputs import assert_no_defect

INPUTS = {"parameters": 200, "requests": 60, "stream": 40}


@pytest.mark.parametrize("name", INPUTS)
def test_nothing_but_answers_and_refusals(name):
    assert_no_defect(name, INPUTS[name])
