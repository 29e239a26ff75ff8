# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters as a struct: what they take and refuse, and what the pages say of them."""

import importlib.util
import re
import xml.etree.ElementTree as ET
from dataclasses import fields

import numpy as np
import pytest
import yaml
from robots import ROOT, URDF
from ros_arms import flat

from dls_ik import RobotModel
from dls_ik.errors import FrameError, MethodError, OptionError
from dls_ik.model.rotations import transform
from dls_ik.ros.bounds import build_workspace
from dls_ik.ros.params import DECLARED, Parameters
from dls_ik.ros.process import descriptor
from dls_ik.ros.robot_source import RefusedError, robot_from_parameters
from dls_ik.solver import IkSolver


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("rate", 250, 250.0),
        ("rate", 1.0, 1.0),
        ("timeout", 0, 0.0),
        ("random_seed", 7, 7),
        ("method_options.lambda", 1, 1.0),
        ("group_name", "arm", ("arm",)),
        ("group_name", " arm, hand ,", ("arm", "hand")),
        ("group_name", ["arm", "hand"], ("arm", "hand")),
        ("group_name", [], ()),
        ("group_name", "", ()),
        ("initial_positions", [1, 2.5], (1.0, 2.5)),
        ("initial_positions", [], ()),
        ("avoid_collisions", "ignore", "ignore"),
        ("method", "SD+CTP", "SD+CTP"),
        ("max_linear_speed", float("inf"), float("inf")),
        ("max_angular_speed", 1e9, 1e9),
        ("acceleration", [float("inf")], (float("inf"),)),
    ],
)
def test_valid_parameter_values_are_accepted(name, given, kept):
    assert getattr(Parameters().changed({name: given}), DECLARED[name].name) == kept


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("method", "nope", "ctp+sd+svf"),
        ("stream_method", "nope", "ctp+sd+svf"),
        ("stream_method", "kdl_nr", "can follow targets"),
        ("method", 1, "a string"),
        ("rate", 0.5, "from 1 to 1000 \\[Hz\\]"),
        ("rate", 1001, "from 1 to 1000"),
        ("rate", True, "finite number"),
        ("rate", None, "finite number"),
        ("rate", float("nan"), "finite number"),
        ("timeout", -1e-9, "timeout must be from 0"),
        ("timeout", float("inf"), "finite number"),
        ("position_tolerance", 0.0, "position_tolerance must be from"),
        ("random_seed", 1.5, "whole number"),
        ("random_seed", -1, "random_seed must be from"),
        ("output_type", "pose", "joint_state, joint_trajectory, position_array"),
        ("avoid_collisions", "maybe", "request, always, ignore"),
        ("avoid_collisions", True, "request, always, ignore"),
        ("group_name", 3, "list of strings"),
        ("group_name", ["x"] * 1001, "at most 1000 names"),
        ("group_name", "x" * 257, "names of 256 characters"),
        ("initial_positions", [0.0] * 1001, "numbers, at most 1000"),
        ("max_timeout", 3601.0, "from 0.001 to 3600"),
        ("group_name", ["arm", 3], "list of strings"),
        ("initial_positions", "1 2", "list of numbers"),
        ("initial_positions", [float("nan")], "finite number"),
        ("initial_positions", None, "list of numbers"),
        ("initial_positions", np.array(1.0), "list of numbers"),
        ("feedback_mode", "maybe", "auto, required, none"),
        ("acceleration", [-1.0], "acceleration.*-1"),
        ("acceleration", [float("nan")], "finite"),
        ("when_stuck", "panic", "joint_motion, hold"),
        ("target_timeout", 0.0, "target_timeout"),
        ("stamp_tolerance", -1.0, "stamp_tolerance"),
        ("trajectory_period", 0.0, "trajectory_period"),
        ("max_deviation", float("inf"), "max_deviation"),
        ("measurement_timeout", -0.5, "measurement_timeout"),
        ("max_linear_speed", -float("inf"), "from 1e-06 to .inf \\[m/s\\]"),
        ("lambda", 1.0, "parameter 'lambda' is now 'method_options.lambda'"),
        ("gamma_max", 1.0, "parameter 'gamma_max' is now 'method_options.gamma_max'"),
        ("lambda_", 1.0, "unknown parameter 'lambda_'; known: robot, "),
    ],
)
def test_invalid_parameter_values_are_refused(name, given, words):
    with pytest.raises((OptionError, MethodError), match=words.replace("+", "\\+")):
        Parameters().changed({name: given})


def test_method_conditions_apply_to_all_parameters_together():
    with pytest.raises(MethodError, match="nu"):
        Parameters().changed({"method_options.nu": 0.005})
    given = {"method_options.nu": 0.005, "method_options.sigma0": 0.001}
    assert Parameters().changed(given).nu == 0.005


@pytest.mark.parametrize("none", [float("inf"), 1e9])
def test_infinite_or_huge_limits_mean_no_limit(none):
    given = {"max_linear_speed": none, "max_angular_speed": none, "acceleration": [none]}
    options = Parameters().changed(given).controller_options()
    assert all(options[name] == float("inf") for name in given)
    assert Parameters().controller_options()["max_linear_speed"] == float("inf")


def test_robot_and_robot_description_together_are_refused():
    with pytest.raises(OptionError, match="give one"):
        Parameters().changed({"robot": "wam", "robot_description": "<robot/>"})


def test_chain_error_names_the_group_parameters_to_set():
    given = {"robot": "wam", "groups": "arm", "group.arm.tip": "hand"}
    with pytest.raises(RefusedError, match=r"-p group\.arm\.base:=LINK and"):
        robot_from_parameters(Parameters().changed(given))


CELL = {"bounds": "cell, floor", "bound.cell.box": [1.0, 2.0, 3.0], "bound.cell.frame": "elbow"}
FLOOR = {"bound.floor.half_space": [0, 0, 2, 0.2], "bound.floor.position": [0, 0, 0.3]}
FIXED = {"bound.cell.frame": "/base", "bound.cell.position": [1.0, 0.0, 0.0]}


def workspace(given, lookup=None):
    tree = RobotModel.from_urdf(URDF / "planar_2r.urdf").tree
    return build_workspace(Parameters().changed(given).bound_details, tree, lookup)


def test_workspace_bounds_are_read_with_frame_and_orientation():
    cell, floor = workspace({**CELL, **FLOOR, **FIXED, "bound.floor.links": "tip"})
    assert (cell.name, floor.name, cell.links, floor.links) == ("cell", "floor", (), ("tip",))
    np.testing.assert_allclose(cell.size, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(cell.T[:3, 3], [1.0, 0.0, 0.0])
    np.testing.assert_allclose(floor.normal, [0.0, 0.0, 1.0])
    assert floor.offset == pytest.approx(0.4)
    turned = {"bound.floor.orientation": [0, np.pi / 2, 0], "bound.floor.frame": "table"}
    T_table = transform(translation=np.array([5.0, 0.0, 0.0]))
    _, floor = workspace({**CELL, **FLOOR, **FIXED, **turned}, lambda frame: T_table)
    np.testing.assert_allclose(floor.normal, [1.0, 0.0, 0.0], atol=1e-12)
    assert floor.offset == pytest.approx(5.1)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bounds": "cell"}, "bound 'cell' must have exactly one shape, bound.cell.box, "),
        ({"bounds": "cell", "bound.cell.box": [1.0, 1.0]}, "box must be 3 numbers; got 2"),
        ({"bounds": "cell", "bound.cell.box": [1.0, 1.0, 0.0]}, "lengths above 0"),
        ({**FLOOR, "bounds": "floor", "bound.floor.sphere": 1.0}, "got sphere, half_space"),
        ({"bounds": "a", "bound.a.half_space": [0, 0, 0, 1]}, "must not have length 0"),
        ({"bounds": "a", "bound.a.sphere": -1.0}, "sphere must be from 0 to 1000"),
        ({"bounds": "a, a", "bound.a.sphere": 1.0}, "bounds contains a more than once"),
        ({"bound.a.sphere": 1.0}, "unknown parameter 'bound.a.sphere'"),
    ],
)
def test_invalid_workspace_bounds_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        Parameters().changed(given)


def test_a_bound_in_a_frame_that_moves_or_is_unknown_is_refused():
    def unknown(frame):
        raise FrameError(f"unknown frame {frame!r}")

    tip = {"bounds": "a", "bound.a.sphere": 1.0, "bound.a.frame": "tip"}
    with pytest.raises(OptionError, match=r"'tip' moves; fixed links: base"):
        workspace(tip)
    with pytest.raises(OptionError, match=r"bound\.a\.frame.*'table'"):
        workspace({**tip, "bound.a.frame": "table"}, unknown)


def test_every_parameter_is_described():
    assert "method_options.lambda" in DECLARED
    for name, field in DECLARED.items():
        message = descriptor(field)
        assert message.description, name
        assert (len(message.floating_point_range) + len(message.integer_range) == 1) == bool(
            field.metadata["range"]
        )
    assert descriptor(DECLARED["rate"]).read_only
    assert "[Hz]" in descriptor(DECLARED["rate"]).description
    assert not descriptor(DECLARED["method_options.nu"]).read_only
    assert "ignore" in descriptor(DECLARED["avoid_collisions"]).additional_constraints


def test_defaults_are_those_of_the_solver_and_of_each_method():
    planar = RobotModel.from_urdf(URDF / "planar_2r.urdf")
    given = IkSolver(planar, **Parameters().solver_options()).options
    assert given == IkSolver(planar).options
    assert {f.name for f in fields(Parameters)} >= set(Parameters().solver_options())
    for name in ("dls", "auto", "svf"):
        given = IkSolver(planar, name, **Parameters().solver_options()).options
        assert given == IkSolver(planar, name).options
    heavier = Parameters().changed({"method_options.lambda": 0.3}).solver_options()
    assert IkSolver(planar, "dls", **heavier).options.lambda_ == 0.3


SECURITY = (ROOT / "docs" / "security.md").read_text()
LIVE = SECURITY.partition("| live | why |\n")[2].partition("\n\n")[0]


def test_documented_live_parameters_are_the_writable_ones():
    listed = re.findall(r"`([\w.]+)`", "".join(row.split(" | ")[0] for row in LIVE.splitlines()))
    fixed = {name for name, field in DECLARED.items() if field.metadata["read_only"]}
    assert sorted(listed) == sorted(DECLARED.keys() - fixed)


PAGE = ROOT / "docs" / "topics_and_services.md"
TEXT = PAGE.read_text()
POLICY = ROOT / "config" / "sros2" / "dls_ik_policy.xml"  # compared with the graph elsewhere
OF_EVERY_NODE = {"/rosout", "/parameter_events"}


def script():
    spec = importlib.util.spec_from_file_location("script", ROOT / "docs" / "make_parameters.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def allowed(kind, permission):
    groups = ET.parse(POLICY).getroot().iter(f"{kind}s")
    return {e.text for group in groups if group.get(permission) for e in group.iter(kind)}


def test_documented_parameter_tables_are_up_to_date():
    """If not: python docs/make_parameters.py."""
    assert script().page(TEXT) == TEXT


def test_documented_topics_and_services_equal_the_policy():
    rows = re.findall(r"^\| (`.*`) \| `\w+/msg/\w+` \| (in|out) \|", TEXT, re.MULTILINE)
    for way, permission in (("in", "subscribe"), ("out", "publish")):
        listed = {name for cell, at in rows if at == way for name in re.findall(r"`(.+?)`", cell)}
        assert listed == allowed("topic", permission) - OF_EVERY_NODE
    rows = re.findall(r"^\| `(.+?)` \| `\w+/srv/\w+` \|", TEXT, re.MULTILINE)
    of_parameters = {name for name in allowed("service", "reply") if "param" in name}
    assert set(rows) == allowed("service", "reply") - of_parameters - {"~/get_type_description"}


def blocks():
    """The parameters of the node in YAML on every page."""
    for page in sorted((ROOT / "docs").glob("*.md")):
        for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            given = yaml.safe_load(text).get("/**", {}).get("ros__parameters")
            if given:
                yield pytest.param(dict(flat(given)), id=page.name)


@pytest.mark.parametrize("given", list(blocks()))
def test_yaml_parameters_in_the_docs_are_valid(given):
    changed = Parameters().changed(given)
    assert changed != Parameters()
