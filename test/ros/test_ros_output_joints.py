"""The order and the names of the joints in the outputs, and lists that do not fit."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.errors import OptionError
from dls_ik.ros.params import DECLARED, Parameters
from dls_ik.ros.params.live import descriptor
from dls_ik.ros.servo.outputs import arrange

CHAIN = ("j1", "j2", "j3")


def test_the_chain_itself():
    joints = arrange(CHAIN)
    assert joints.order.tolist() == [0, 1, 2]
    assert joints.names == CHAIN
    assert joints.robot_names == {}


def test_another_order_and_other_names():
    joints = arrange(CHAIN, ("j3", "j1", "j2"), ("c", "a", "j2"))
    assert joints.order.tolist() == [2, 0, 1]
    assert joints.names == ("c", "a", "j2")
    assert joints.robot_names == {"c": "j3", "a": "j1"}


def test_names_without_an_order():
    assert arrange(CHAIN, (), ("a", "b", "c")).names == ("a", "b", "c")


@pytest.mark.parametrize(
    ("joints", "names", "words"),
    [
        (("j1", "j2"), (), "joints: j1, j2, j3"),
        (("j1", "j2", "j3", "grip"), (), "grip.*joints: j1, j2, j3"),
        (("j1", "j2", "x"), (), "j1, j2, x.*joints: j1, j2, j3"),
        ((), ("a", "b"), "2 names .a, b. for 3 joints"),
        (CHAIN, ("a", "b", "c", "d"), "4 names .* for 3 joints .j1, j2, j3."),
    ],
)
def test_joints_that_do_not_fit_the_chain_are_refused(joints, names, words):
    with pytest.raises(OptionError, match=words):
        arrange(CHAIN, joints, names)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("output_type", "joint_state", ("joint_state",)),
        ("output_type", "position_array, joint_state", ("position_array", "joint_state")),
        ("output_type", ["joint_trajectory"] * 2, ("joint_trajectory",) * 2),
        ("output_topic", "commands", ("commands",)),
        ("output_topic", "", ()),
        ("output_names", "wam_j1,wam_j2", ("wam_j1", "wam_j2")),
        ("trajectory_points", 100, 100),
        ("trail", 0, 0.0),
    ],
)
def test_parameters_are_taken(name, given, kept):
    assert getattr(Parameters().changed({name: given}), name) == kept


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"output_type": ""}, "output_type is empty"),
        ({"output_type": "joint_state, pose"}, "joint_state, joint_trajectory, position_array"),
        ({"output_type": ["joint_state"] * 2, "output_topic": "a"}, "1 topics .a. for 2 of"),
        ({"output_topic": "a, b"}, "2 topics .a, b. for 1 of output_type .joint_state."),
        ({"output_joints": "a, b, a"}, "output_joints has a more than once"),
        ({"output_names": ["b", "b"]}, "output_names has b more than once"),
        ({"trajectory_points": 0}, "from 1 to 100"),
        ({"trajectory_points": 101}, "from 1 to 100"),
        ({"trajectory_points": 2.0}, "whole number"),
        ({"trail": 61.0}, "from 0 to 60 \\[s\\]"),
    ],
)
def test_parameters_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        Parameters().changed(given)


def test_descriptions_tell_of_types_and_of_lists():
    text = descriptor(DECLARED["output_type"]).additional_constraints
    assert "joint_trajectory" in text
    assert "string array" in text
