"""Messages and parameters with anything in them on a few inputs each; see test/fuzz."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.source import Source
from fuzz.targets import built

INPUTS = {"parameters": 200, "requests": 60, "stream": 40}


@pytest.mark.parametrize("name", INPUTS)
def test_nothing_but_answers_and_refusals(name):
    run = built(name)

    @settings(
        max_examples=INPUTS[name],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.binary(max_size=150))
    def check(data):
        run(Source(data))

    check()
