# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds of the reach on disk: the next process reads what another one has computed."""

import numpy as np
import pytest

from dls_ik import RobotModel
from dls_ik.model.dh import DhRow
from dls_ik.model.reach import FREE_ROTATION, Budget, build_reach
from dls_ik.solver import unreachable

PLANAR = RobotModel.from_name("planar_2r")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(unreachable, "reach_folder", lambda: str(tmp_path))
    return tmp_path


def reach_of(robot, **task):
    """Return the bounds as a new process does."""
    return unreachable.reach_of.__wrapped__(robot, **task)


def shorter(length):
    rows = [DhRow(a=a, alpha=0.0, d=0.0, lower=-2.0, upper=2.0) for a in (1.0, length)]
    return RobotModel.from_dh(rows)


def assert_same(one, other):
    for name, values in one._asdict().items():
        np.testing.assert_array_equal(values, getattr(other, name))
        assert values.dtype == getattr(other, name).dtype


@pytest.mark.parametrize("pointing", [None, 2, FREE_ROTATION])
def test_bounds_from_disk_are_those_that_were_computed(folder, monkeypatch, pointing):
    for robot in (PLANAR, RobotModel.wam()):
        computed = reach_of(robot, pointing=pointing)
        assert_same(computed, build_reach(robot.chain, pointing=pointing))
        with monkeypatch.context() as changed:
            changed.setattr(unreachable, "build_reach", pytest.fail)
            assert_same(computed, reach_of(robot, pointing=pointing))
    assert len(list(folder.iterdir())) == 2


def test_other_limits_and_tasks_have_bounds_of_their_own(folder):
    reach_of(PLANAR)
    reach_of(PLANAR, pointing=2)
    reach_of(shorter(0.1))
    assert len(list(folder.iterdir())) == 3


def test_a_damaged_file_is_replaced(folder):
    computed = reach_of(PLANAR)
    (file,) = folder.iterdir()
    content = file.read_bytes()
    for damaged in (b"", content[:-9], content[:-1] + b"x"):
        file.write_bytes(damaged)
        assert_same(computed, reach_of(PLANAR))
        assert file.read_bytes() == content


def test_bounds_of_a_robot_that_needs_too_much_work_are_computed_again(folder, monkeypatch):
    """Each process logs that bounds are missing."""
    spent = Budget(0)
    monkeypatch.setattr(unreachable, "Budget", lambda: spent)
    reach_of(PLANAR)
    assert not list(folder.iterdir())


def test_the_number_of_files_is_limited(folder, monkeypatch):
    monkeypatch.setattr(unreachable, "MAX_KEPT_REACHES", 3)
    (folder / "spheres.1").write_bytes(b"")
    for k in range(5):
        reach_of(shorter(0.1 + 0.01 * k))
    assert len(list(folder.glob("reach.*"))) == 3
    assert (folder / "spheres.1").exists()


def test_bounds_are_computed_without_a_folder(monkeypatch):
    for none in (None, "/nowhere"):
        monkeypatch.setattr(unreachable, "reach_folder", lambda none=none: none)
        assert len(reach_of(PLANAR).kind) > 0
