"""Each row of the table of error codes in docs/services.md, over the wire."""

import re

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from moveit_msgs.srv import GetPositionIK
from robots import ROOT
from ros_arms import request, send
from ros_client import Client, NodeProcess
from service_cases import CASES, REACHED, out_of_grasp_of_the_left, timed

pytestmark = [pytest.mark.ros, pytest.mark.slow]

NO_ROBOT = "no robot yet"


def documented():
    """Our code by case, as the table has it."""
    text = (ROOT / "docs" / "services.md").read_text()
    rows = text.split("| case | move_group | ik_node | why |\n| --- | --- | --- | --- |\n")[1]
    cells = [row.split("|")[1:4] for row in rows.split("\n\n")[0].splitlines()]
    return {case.strip(): int(code) for case, _, code in cells}


def test_the_table_has_the_cases_that_are_tested():
    assert list(documented()) == [*CASES, NO_ROBOT]


@pytest.mark.parametrize("name", CASES)
def test_code_and_words(arms_client, name):
    case = CASES[name]
    whole = case.request
    if name == "a pose not found in time":
        whole = timed(0.1, out_of_grasp_of_the_left())
    try:
        if case.parameters:
            assert arms_client.set_parameters(**dict(case.parameters)).successful
        response = send(arms_client, whole)
    finally:
        if case.parameters:
            assert arms_client.set_parameters(avoid_collisions="ignore").successful
    check(response, documented()[name], case.words)


def check(response, code, words):
    error = response.error_code
    assert error.val == code, getattr(error, "message", "")
    if hasattr(error, "message"):
        assert re.search(words, error.message), error.message
        assert error.source == "dls_ik"
    if code != 1:
        assert response == with_code(type(response)(), error)


def with_code(empty, error):
    empty.error_code = error
    return empty


def test_without_a_robot(private_domain):
    with NodeProcess("-r", "__ns:=/bare") as node, Client("/bare") as client:
        node.wait_for_line("waiting for a robot")
        check(send(client, request(REACHED)), documented()[NO_ROBOT], "no robot yet")
        empty = client.call(GetPositionIK, "compute_ik", GetPositionIK.Request())
        assert empty.error_code.val == documented()[NO_ROBOT]
