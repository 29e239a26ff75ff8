# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of maps: drawn without a display, and not empty."""

import io

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import assert_good
from reach_maps import planar_arm

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import transform
from dls_ik.plot.scene import sections
from dls_ik.reachability import ReachabilityError, map_picture, reachability_map
from dls_ik.reachability.picture import _blocks


def drawn(figure):
    """Return the pixels (h, w, 3), from 0 to 1."""
    from matplotlib.image import imread

    file = io.BytesIO()
    figure.savefig(file, format="png")
    file.seek(0)
    return imread(file)[:, :, :3]


def colourful(pixels):
    """Return the share of pixels that are neither white nor grey."""
    return (np.ptp(pixels, axis=2) > 0.2).mean()


@pytest.mark.parametrize("show", ["index", "manipulability"])
def test_map_picture_shows_three_titled_slices_in_colour(wam, show):
    figure = map_picture(wam, show)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [t for t in titles if t][:3] == [
        "from above, at z = 0.00 m",
        "from the side, at y = 0.00 m",
        "from the front, at x = 0.00 m",
    ]
    assert colourful(drawn(figure)) > 0.15
    assert_good(figure, units=False)
    words = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert wam.settings.base in words


def test_colours_of_a_slice_are_the_reachability_index(wam):
    figure = map_picture(wam)
    layer = wam.at(wam.shoulder)[2]
    shown = np.ma.filled(figure.axes[0].collections[0].get_array(), np.nan)
    expected = 100.0 * wam.index[:, :, layer].T
    np.testing.assert_allclose(np.nan_to_num(shown).reshape(expected.shape), expected)


def test_obstacles_are_outlined_in_the_base_frame():
    robot = RobotModel.from_name("wam", base="wam_link1")
    T_root_base = robot.tree.pose("wam_link1")
    scene = PlanningScene(robot)
    scene.add_box("box", [0.2, 0.4, 0.6], T_root_base @ transform(translation=[0.5, 0.0, 0.0]))
    scene.add_sphere("ball", 0.5, T_root_base @ transform(translation=[-1.0, 0.0, -0.2]))
    pieces = sections(scene, 2, 0.1)
    np.testing.assert_allclose(pieces[..., 2], 0.1)
    box = pieces[:, :, 0].min(axis=1) > 0.0
    bounds = pieces[box].min(axis=(0, 1)), pieces[box].max(axis=(0, 1))
    np.testing.assert_allclose(bounds, [[0.4, -0.2, 0.1], [0.6, 0.2, 0.1]])
    lengths = np.linalg.norm(np.diff(pieces[:, :, :2], axis=1), axis=2)
    np.testing.assert_allclose(lengths[box].sum(), 1.2)
    np.testing.assert_allclose(lengths[~box].sum(), 0.8 * np.pi, rtol=0.03)  # circle of radius 0.4
    with pytest.raises(ReachabilityError, match="another scene"):
        map_picture(reachability_map(robot, 0.8, 2, scene=scene), scene=PlanningScene(robot))
    scene.clear()
    scene.add_plane(
        "floor", T_root_base[:3, 1], 0.3 + float(T_root_base[:3, 1] @ T_root_base[:3, 3])
    )
    np.testing.assert_allclose(sections(scene, 2, 0.1)[0][:, 1], 0.3, atol=1e-12)


def test_a_flat_map_is_one_slice():
    flat = reachability_map(
        planar_arm(1.0, 0.5), 0.2, region=(-1.6, 1.6, -1.6, 1.6, 0, 0), task="position"
    )
    figure = map_picture(flat)
    assert len(figure.axes) == 2  # one of them is the colour bar
    assert colourful(drawn(figure)) > 0.1


def test_map_without_reached_voxels_can_be_drawn():
    far = reachability_map("wam", 1.0, 2, region=(9, 11, 9, 11, 9, 11), max_restarts=0)
    assert far.voxels.reached.sum() == 0
    assert far.summary()["mean_index"] == 0.0
    for show in ("index", "manipulability"):
        assert drawn(map_picture(far, show)).size
    with pytest.raises(ReachabilityError, match="index, manipulability"):
        map_picture(far, "beauty")


def test_fine_maps_are_drawn_by_the_mean():
    values = np.full((5, 4, 2), np.nan)
    values[0, 0] = 0.5, 1.0
    values[4, 3, 1] = 0.25
    coarse = _blocks(values, 2)
    assert coarse.shape == (3, 2, 1)
    assert coarse[0, 0, 0] == 0.75
    assert coarse[2, 1, 0] == 0.25
    assert np.isnan(coarse).sum() == 4
