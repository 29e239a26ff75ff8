# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The ``ros2`` commands that pages have, as ROS 2 runs them, where it is not installed."""

import queue
import re
import shlex
import threading
import time
from contextlib import closing, suppress
from importlib import import_module

import numpy as np
import yaml
from rcl_interfaces.srv import DescribeParameters, ListParameters, SetParameters
from rclpy.parameter import Parameter

from dls_ik import RobotModel
from dls_ik.model.rotations import rotation_from_quaternion, transform
from dls_ik.ros.client.connection import OwnNode

SOON, TRIES = 120.0, 6  # [s] timeout of an answer, and number of requests
NEAR = 1e-4  # [m] and of a rotation matrix


def ask(command: str) -> None:
    """Carry a command out against the nodes that are up; refusals are errors."""
    words = shlex.split(command)
    with closing(OwnNode("")) as host:
        DOES[words[1], words[2]](host.node, *words[3:])


def call(node, name, kind, values="{}"):
    service = _interface(kind)
    given = yaml.safe_load(values)
    deadline = time.monotonic() + SOON
    while True:
        response = _answer(node, service, name, filled(service.Request(), given))
        code = getattr(response, "error_code", None)
        is_late = code is not None and code.val == code.TIMED_OUT  # the machine is busy
        if not is_late or time.monotonic() > deadline:
            break
    assert code is None or code.val == code.SUCCESS, f"{code.val}: {getattr(code, 'message', '')}"
    assert getattr(response, "success", True), response.message
    if "ik_request" in given:
        state = response.solution.joint_state
        found = dict(zip(state.name, state.position, strict=True))
        robot = RobotModel.wam()
        reached = robot.fk([found[joint] for joint in robot.joint_names])
        wanted = meant(given["ik_request"]["pose_stamped"]["pose"])
        np.testing.assert_allclose(reached, wanted, atol=NEAR)


def publish(node, *words):
    topic, kind, values = [word for word in words if not re.match(r"-|[\d.]+$", word)]
    given = yaml.safe_load(values)
    message = filled(_interface(kind)(), given)
    publisher = node.create_publisher(type(message), topic, 10)
    _wait(publisher.get_subscription_count, f"a listener on {topic}")
    tips = []
    if topic == "/target_pose":
        node.create_subscription(type(message), "/dls_ik/tip_pose", lambda m: tips.append(m), 10)
        _wait(lambda: tips, "message on /dls_ik/tip_pose")
    publisher.publish(message)
    assert publisher.wait_for_all_acked()
    if tips:
        wanted = meant(given["pose"])
        _wait(lambda: _is_there(tips.pop() if tips else None, wanted), f"tip at {given['pose']}")


def meant(pose):
    """The pose (4, 4) that a reader means: numbers left out are 0, no orientation is no turn."""
    place = [pose["position"].get(axis, 0.0) for axis in "xyz"]
    turn = pose.get("orientation", {"w": 1.0})
    quaternion = np.array([turn.get(part, 0.0) for part in "xyzw"], float)
    return transform(rotation_from_quaternion(quaternion), np.array(place, float))


def _is_there(message, wanted):
    if message is None:
        return False
    p, o = message.pose.position, message.pose.orientation
    T = transform(rotation_from_quaternion((o.x, o.y, o.z, o.w)), np.array([p.x, p.y, p.z]))
    return np.allclose(T, wanted, atol=NEAR)


def set_parameter(node, target, name, value):
    wanted = Parameter(name, value=yaml.safe_load(value)).to_parameter_msg()
    request = SetParameters.Request(parameters=[wanted])
    result = _answer(node, SetParameters, f"{target}/set_parameters", request).results[0]
    assert result.successful, result.reason


def echo(node, topic, *_):
    heard = threading.Event()
    _wait(lambda: topic in dict(node.get_topic_names_and_types()), f"topic {topic}")
    kind = dict(node.get_topic_names_and_types())[topic][0]
    node.create_subscription(_interface(kind), topic, lambda _: heard.set(), 10)
    assert heard.wait(SOON), f"no message on {topic}"


def describe(node, target, name):
    request = DescribeParameters.Request(names=[name])
    found = _answer(node, DescribeParameters, f"{target}/describe_parameters", request).descriptors
    assert [each.description for each in found if each.name == name], f"no parameter {name}"


def dump(node, target):
    names = _answer(node, ListParameters, f"{target}/list_parameters", ListParameters.Request())
    assert names.result.names


def _answer(node, service, name, request):
    client, answers = node.create_client(service, name), queue.SimpleQueue()
    _wait(client.service_is_ready, f"service {name}")
    for _ in range(TRIES):  # Fast DDS drops an answer to a client it has not found within 0.1 s
        client.call_async(request).add_done_callback(answers.put)
        with suppress(queue.Empty):
            return answers.get(timeout=SOON / TRIES).result()
    raise AssertionError(f"no answer of {name}")


def _wait(condition, what):
    deadline = time.monotonic() + SOON
    while not condition():
        assert time.monotonic() < deadline, f"no {what}"
        time.sleep(0.02)


def filled(message, values):
    """The message with the fields that a mapping has, as ``rosidl_runtime_py`` does it."""
    kinds = message.get_fields_and_field_types()
    for name, value in (values or {}).items():
        assert name in kinds, f"{type(message).__name__} has no field {name}, but {list(kinds)}"
        setattr(message, name, _value(getattr(message, name), kinds[name], value))
    return message


def _value(now, kind, given):
    if hasattr(now, "get_fields_and_field_types"):
        return filled(now, given)
    if isinstance(given, list) and given and isinstance(given[0], dict):
        package, name = re.fullmatch(r"sequence<(\w+)/(\w+)(?:, \d+)?>", kind).groups()
        return [filled(_interface(f"{package}/msg/{name}")(), each) for each in given]
    return float(given) if isinstance(now, float) else given


def _interface(kind):
    package, sort, name = kind.split("/")
    return getattr(import_module(f"{package}.{sort}"), name)


DOES = {
    ("service", "call"): call,
    ("topic", "pub"): publish,
    ("topic", "echo"): echo,
    ("param", "set"): set_parameter,
    ("param", "describe"): describe,
    ("param", "dump"): dump,
}
