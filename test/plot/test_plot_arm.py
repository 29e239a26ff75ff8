# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The arm at many instants."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import PLANAR, ROBOTS, TWO_TIPS, WAM, arm_of, assert_good, swing, texts

from dls_ik.errors import OptionError, PoseError
from dls_ik.plot import configurations, stroboscope
from dls_ik.plot.arm import arm_points, instants

ALL = {**ROBOTS, "two tips": TWO_TIPS, "60 joints": arm_of(60)}


@pytest.mark.parametrize("robot", ALL.values(), ids=ALL)
def test_every_arm_can_be_drawn_with_skeletons_that_end_at_the_tips(robot):
    assert_good(stroboscope(robot, *swing(robot)))
    robots = [robot]
    if robot is WAM:
        robots.append(robot.with_tip("wam_link4", np.eye(4) + 0.1 * np.eye(4, k=3)))
    for each in robots:
        _, q = swing(each, 4)
        poses = each.fk(q).reshape(4, -1, 4, 4)
        for i, points in enumerate(arm_points(each, q)):
            np.testing.assert_allclose(points[:, -1], poses[:, i, :3, 3], atol=1e-12)


@pytest.mark.parametrize(("view", "seen"), [("xy", [0, 1]), ("xz", [0, 2]), ("yz", [1, 2])])
def test_drawn_tips_match_forward_kinematics(view, seen):
    times, q = swing(WAM)
    figure = stroboscope(WAM, times, q, view=view, count=5)
    left = figure.axes[0]
    shown = [0, 12, 24, 37, 49]
    assert "at 5 instants" in texts(figure)
    tips = np.array([line.get_xydata()[-1] for line in left.lines[:5]])
    nearest = np.abs(tips[:, None] - WAM.fk(q)[None, :, seen, 3]).max(axis=2).argmin(axis=1)
    assert np.abs(nearest - shown).max() <= 1
    np.testing.assert_allclose(tips, WAM.fk(q)[nearest][:, seen, 3], atol=1e-12)


def test_a_flat_arm_is_drawn_in_its_plane():
    flat, space = stroboscope(PLANAR, *swing(PLANAR)), stroboscope(WAM, *swing(WAM))
    assert [axes.name for axes in flat.axes[:2]] == ["rectilinear"] * 2
    assert flat.axes[0].get_xlabel() == "x [m]"
    assert [axes.name for axes in space.axes[:2]] == ["3d"] * 2


def test_instants_are_even_in_time():
    t = np.concatenate([np.linspace(0.0, 1.0, 1000), [2.0, 3.0, 4.0]])
    np.testing.assert_allclose(t[instants(t, 5)], [0.0, 1.0, 2.0, 3.0, 4.0])
    assert instants(np.array([0.0, 1.0]), 24).tolist() == [0, 1]


def test_stroboscope_draws_the_target_point_or_path():
    figure = stroboscope(PLANAR, *swing(PLANAR), target=[1.2, 0.5, 0.0])
    for axes in figure.axes[:2]:
        assert any(line.get_xydata().tolist() == [[1.2, 0.5]] for line in axes.lines)
    path = np.linspace([0.0, 0.0, 0.0], [1.0, 1.0, 0.0], 20)
    figure = stroboscope(PLANAR, *swing(PLANAR), target=path)
    assert any(len(line.get_xydata()) == 20 for line in figure.axes[0].lines)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"view": "above"}, OptionError, "auto, space, xy, xz, yz; got 'above'"),
        ({"count": 1}, OptionError, "at least 2 instants; got 1"),
        ({"target": [1.0, 2.0]}, PoseError, r"\(3,\) or \(j, 3\) finite numbers; got shape \(2,\)"),
        ({"target": [1.0, 2.0, np.nan]}, PoseError, "finite numbers"),
    ],
)
def test_bad_arguments_are_refused(given, error, said):
    with pytest.raises(error, match=said):
        stroboscope(WAM, *swing(WAM), **given)


@pytest.mark.parametrize("robot", ALL.values(), ids=ALL)
def test_alternative_configurations_are_drawn_without_a_time(robot):
    _, q = swing(robot, 3)
    figure = configurations(robot, q, title="Three answers")
    assert_good(figure)
    said = texts(figure)
    assert not any(word in said for word in ("time", "instant", "path"))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["1", "2", "3"]
    ends = [line.get_data_3d() if hasattr(line, "get_data_3d") else line.get_data()
            for line in figure.axes[0].lines if line.get_linewidth() == 2.2]  # fmt: skip
    assert len(ends) == 3 * len(robot.tips)


def test_configurations_need_one_label_each():
    _, q = swing(WAM, 2)
    figure = configurations(WAM, q, labels=["elbow up", "elbow down"])
    assert "elbow up" in [text.get_text() for text in figure.legends[0].get_texts()]
    with pytest.raises(OptionError, match="2 names"):
        configurations(WAM, q, labels=["one"])
