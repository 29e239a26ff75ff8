# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks in YAML files: each kind of task, and the place and the valid values in errors."""

import math

import numpy as np
import pytest

from dls_ik import (
    CenterOfMassTask,
    CouplingTask,
    FrameTask,
    ObjectiveTask,
    PostureTask,
    SwivelTask,
    Task,
    TaskStack,
    load_stack,
)
from dls_ik.errors import OptionError
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.solver.stack_file import KINDS, parse_stack

TASKS = {
    "{kind: tip}": Task(),
    "{kind: tip, rotation: xy, frame: target, rotation_tolerance: 1e-2}": Task(
        rotation="xy", frame="target", rotation_tolerance=0.01
    ),
    '{kind: tip, position: xz, rotation: "", weights: [1, 2], position_tolerance: [1, 0, .inf]}': (
        Task("xz", "", weights=(1.0, 2.0), position_tolerance=(1.0, 0.0, math.inf))
    ),
    "{kind: free_tip}": Task.free(),
    '{kind: frame, link: elbow, target: [0, 1, 2], rotation: "", weight: 3}': FrameTask(
        "elbow", (0, 1, 2), Task.position_only(), weight=3.0
    ),
    "{kind: frame, link: a, reference: b, point: [0, 0, 1], target: {position: [1, 2, 3], "
    "rpy: [0.1, 0.2, 0.3]}}": FrameTask(
        "a",
        transform(rotation_from_rpy(0.1, 0.2, 0.3), np.array([1.0, 2.0, 3.0])),
        reference="b",
        point=(0, 0, 1),
    ),
    "{kind: frame, link: a, target: {position: [1, 2, 3], quaternion: [0, 1, 0, 0]}}": FrameTask(
        "a", transform(np.diag([-1.0, 1.0, -1.0]), np.array([1.0, 2.0, 3.0]))
    ),
    "{kind: frame, link: a, target: [[1, 0, 0, 4], [0, 1, 0, 5], [0, 0, 1, 6], [0, 0, 0, 1]]}": (
        FrameTask("a", transform(np.eye(3), np.array([4.0, 5.0, 6.0])))
    ),
    "{kind: posture, positions: {j1: 0.5}, weights: {j1: 2}}": PostureTask({"j1": 0.5}, {"j1": 2}),
    "{kind: posture, positions: [0, 1], weights: 4}": PostureTask([0.0, 1.0], 4.0),
    "{kind: swivel, angle: -0.3, up: [0, 1, 0]}": SwivelTask(-0.3, (0, 1, 0)),
    "{kind: coupling, coefficients: {left: 1, right: -1}, value: 0.2}": CouplingTask(
        {"left": 1.0, "right": -1.0}, 0.2
    ),
    "{kind: center_of_mass, position: [0, 0, 0], axes: y}": CenterOfMassTask((0, 0, 0), "y"),
    "{kind: objective, objective: centring}": ObjectiveTask("centring"),
}


def written(tmp_path, text):
    path = tmp_path / "stack.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", TASKS)
def test_each_kind_of_task_is_read(tmp_path, text):
    given = TASKS[text]
    levels = [given] if isinstance(given, Task) else [Task(), [given, SwivelTask(1.0)]]
    if isinstance(given, SwivelTask):
        levels = [Task(), given]
    lines = [f"  - {text}"]
    if len(levels) == 2 and isinstance(levels[1], list):
        lines = ["  - kind: tip", f"  - [{text}, {{kind: swivel, angle: 1}}]"]
    elif len(levels) == 2:
        lines = ["  - kind: tip", f"  - {text}"]
    found = load_stack(written(tmp_path, "\n".join(["levels:", *lines])))
    assert found == TaskStack(*levels)


def test_every_kind_is_tested():
    for kind in KINDS:
        assert any(f"kind: {kind}" in text for text in TASKS)


WRONG = {
    "levels: {kind: tip}": "levels must be a list of tasks or lists; got {'kind': 'tip'}",
    "stack: []": "a stack must be a mapping with one key, 'levels'; got stack",
    "levels: [{kind: tip}, 3]": "levels[1] must be a task, a mapping such as {kind: swivel",
    "levels: [{kind: tip}, {kind: swivl}]": "levels[1].kind must be one of tip, free_tip, frame, "
    "posture, swivel, coupling, center_of_mass, objective; got 'swivl'; did you mean swivel?",
    "levels: [{rotation: xy}]": "levels[0].kind must be one of",
    "levels: [[{kind: tip, rotatoin: xy}]]": "levels[0][0].rotatoin is not a field of a tip task; "
    "valid: position, rotation, frame, weights, position_tolerance, rotation_tolerance, round, "
    "angles, kind; did you mean rotation?",
    "levels: [{kind: tip}, {kind: swivel}]": "levels[1].angle is missing; a swivel task needs it",
    "levels: [{kind: tip}, {kind: swivel, angle: up}]": "levels[1].angle must be a number; got",
    "levels: [{kind: tip}, {kind: swivel, angle: .nan}]": "levels[1]: angle of a SwivelTask must",
    "levels: [{kind: tip}, {kind: swivel, angle: true}]": "levels[1].angle must be a number",
    "levels: [{kind: tip}, {kind: swivel, angle: 0, up: [1, 2]}]": "levels[1].up must be a list of "
    "3 numbers; got [1, 2]",
    "levels: [{kind: tip, weights: [1, x]}]": "levels[0].weights[1] must be a number; got 'x'",
    "levels: [{kind: tip, rotation: 3}]": "levels[0].rotation must be a text; got 3",
    "levels: [{kind: tip, rotation: q}]": "levels[0]: rotation of a task must",
    "levels: [{kind: tip}, {kind: posture, positions: 3}]": "levels[1].positions must be a mapping "
    "of joint names to numbers; got 3",
    "levels: [{kind: tip}, {kind: posture, positions: {j1: x}}]": "levels[1].positions.j1 must be",
    "levels: [{kind: tip}, {kind: posture, positions: {j1: 0}, weights: 0}]": "levels[1]: a weight "
    "of PostureTask must be a number from 1e-09 to 1e+09; got 0.0",
    "levels: [{kind: tip}, {kind: frame, link: a, target: {rpy: [0, 0, 0]}}]": "levels[1].target "
    "must be a position [x, y, z], four rows of a matrix, or a mapping with position and one of",
    "levels: [{kind: tip}, {kind: frame, link: a, target: {position: [0, 0, 0], "
    "quaternion: [0, 0, 0, 2]}}]": "levels[1].target.quaternion must have the norm 1",
    "levels: [{kind: tip}, {kind: frame, link: a, target: [0, 0, 0]}]": "levels[1]: a position "
    "alone needs a task without rotation",
    "levels: [{kind: swivel, angle: 0}]": "a stack needs the Task of the tip in exactly one",
    "levels: &a [{kind: tip}]": "line 1: anchors and aliases are not supported",
    "levels: [{kind: tip, kind: tip}]": "not a key, or a repeated key: 'kind'",
    "levels: [": "not YAML",
    "": "the file must have one YAML document; got",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_name_the_file_the_place_and_what_is_valid(tmp_path, text):
    path = written(tmp_path, text)
    with pytest.raises(OptionError) as error:
        load_stack(path)
    assert str(error.value).startswith(f"{path}: ")
    assert WRONG[text] in str(error.value)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(OptionError, match=r"cannot read the stack .*none\.yaml: No such file"):
        load_stack(tmp_path / "none.yaml")
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(OptionError, match="not UTF-8 text"):
        load_stack(binary)
    with pytest.raises(OptionError, match="a stack must be a mapping"):
        parse_stack(None)
