"""The path of the tip: in its own plane, and in those of the base frame."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import ROBOTS, TWO_TIPS, arm_of, assert_good, swing, texts

from dls_ik.errors import DlsIkError, PoseError
from dls_ik.plot import tip_path, tip_planes

WAM = ROBOTS["wam"]


@pytest.mark.parametrize("name", ROBOTS)
def test_tip_path_says_how_far_the_tip_was(name):
    robot = ROBOTS[name]
    times, q = swing(robot)
    target = robot.fk(q)[:, :3, 3] + np.linspace(0.0, 0.003, len(times))[:, None] * [0.0, 0.0, 1.0]
    figure = tip_path(robot, times, q, target, title="what it says")
    assert_good(figure)
    assert "what it says" in texts(figure)
    assert "mean 1.5 mm, greatest 3 mm" in texts(figure)


@pytest.mark.parametrize(
    ("off", "said"),
    [
        (2.0, "greatest 2 m"),
        (2e-5, "greatest 20 um"),
        (2e-8, "greatest 20 nm"),
        (1.1e-7, "greatest 110 nm"),
        (0.0, "greatest 0 mm"),
    ],
)
def test_distances_have_a_unit_that_is_easy_to_read(off, said):
    times, q = swing(WAM)
    target = WAM.fk(q)[:, :3, 3] + [off, 0.0, 0.0]
    assert said in texts(tip_path(WAM, times, q, target))


@pytest.mark.parametrize("draw", [tip_path, tip_planes])
def test_an_arm_at_rest_on_its_target(draw):
    q = np.zeros((3, WAM.n))
    assert_good(draw(WAM, [0.0, 1.0, 2.0], q, WAM.fk(q)[:, :3, 3]))


def test_planes_show_both_paths():
    times, q = swing(WAM)
    tip = WAM.fk(q)[:, :3, 3]
    figure = tip_planes(WAM, times, q, tip + 0.01)
    assert_good(figure)
    for axes, (i, j) in zip(figure.axes[1:], ((0, 1), (0, 2), (1, 2)), strict=True):
        assert (axes.get_xlabel(), axes.get_ylabel()) == (f"{'xyz'[i]} [m]", f"{'xyz'[j]} [m]")
        target, path = axes.lines[:2]
        np.testing.assert_allclose(path.get_xydata(), tip[:, (i, j)])
        np.testing.assert_allclose(target.get_xydata(), tip[:, (i, j)] + 0.01)
        assert axes.get_aspect() == 1.0


@pytest.mark.parametrize("n", [1, 60])
def test_planes_of_few_and_many_joints_without_a_target(n):
    robot = arm_of(n)
    figure = tip_planes(robot, *swing(robot))
    assert_good(figure)
    assert "target" not in texts(figure)


@pytest.mark.parametrize("draw", [tip_path, tip_planes])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        (np.zeros((3, 3)), r"\(2, 3\), all finite, not \(3, 3\)"),
        (np.full((2, 3), np.inf), "not finite"),
    ],
)
def test_a_target_that_does_not_fit_is_refused(draw, target, said):
    with pytest.raises(PoseError, match=said):
        draw(WAM, [0.0, 1.0], np.zeros((2, 7)), target)


@pytest.mark.parametrize("draw", [tip_path, tip_planes])
def test_several_tips_are_refused_by_name(draw):
    times, q = swing(TWO_TIPS)
    with pytest.raises(DlsIkError, match="one tip, not E0, E1"):
        draw(TWO_TIPS, times, q, np.zeros((len(times), 3)))
