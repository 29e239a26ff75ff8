# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Obstacles of the page: arms that avoid them, and changes by dragging, adding and removing."""

import numpy as np
import pytest

pytest.importorskip("coal")
pytest.importorskip("viser")

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.viewer.obstacles import ObstacleView
from dls_ik.viewer.server import open_server
from dls_ik.viewer.session import local_session

ROBOT, DT = RobotModel.wam(), 0.01
FORWARD = rotation_from_rpy(0.0, np.pi / 2, 0.0)


def at(x, y, z):
    return transform(FORWARD, np.array([x, y, z]))


@pytest.fixture
def scene():
    found = PlanningScene(ROBOT)
    found.add_box("wall", [0.3, 0.02, 0.6], transform(translation=[0.6, 0.0, 0.3]))
    return found


@pytest.fixture
def session(scene):
    made, _ = local_session(ROBOT, has_presets=False, scene=scene)
    yield made
    made.close()


def run(session, scene, until, steps=3000):
    """Step until a state is reached, and return the last sample; no step may collide."""
    before = getattr(session, "ticks", 0)
    was_free = False
    for k in range(before, before + steps):
        (view,) = session.step(k * DT)
        is_free = not scene.in_collision(view.sample.q)
        assert is_free or not was_free
        was_free = is_free
        waiting = session.sources[0]._search
        if waiting is not None:
            waiting.exception(timeout=300.0)
        if view.sample.state == until:
            session.ticks = k + 1
            return view.sample
    raise AssertionError(f"{view.sample.state}: {view.sample.message}")


def test_arm_moves_around_an_obstacle_and_names_it(session, scene):
    session.drag_target(at(0.6, -0.25, 0.3))
    run(session, scene, "REACHED")
    session.drag_target(at(0.6, 0.25, 0.3))  # target behind the wall
    assert "moving around: wall and wam_" in run(session, scene, "JOINT_MOTION").message
    sample = run(session, scene, "REACHED")
    np.testing.assert_allclose(sample.T_tip, at(0.6, 0.25, 0.3), atol=1e-3)
    session.drag_target(at(0.6, 0.0, 0.3))  # target inside the wall
    assert "stopped before a collision: wall and wam_" in run(session, scene, "STALLED").message


def test_preset_names_the_obstacle_that_blocks_its_path(scene):
    scene.remove("wall")
    session, presets = local_session(ROBOT, scene=scene)
    preset = presets[0]
    try:
        assert session.in_the_way(preset) is None
        middle = preset.pose(preset.period / 4)
        scene.add_box("post", [0.05, 0.05, 0.05], middle)
        pair = session.in_the_way(preset)
        assert "post" in pair
        session.play(preset)
        messages = {session.step(k * DT)[0].sample.message for k in range(500)}
        assert any("stopped before" in each and "post" in each for each in messages)
    finally:
        session.close()


def test_arm_leaves_an_obstacle_added_in_collision(session, scene):
    session.drag_target(at(0.5, -0.25, 0.4))
    q = run(session, scene, "REACHED").q
    elbow = ROBOT.link_pose("wam_link4", q)[:3, 3]
    scene.add_box("box", [0.08, 0.08, 0.08], transform(translation=elbow))
    assert scene.in_collision(q)
    sample = run(session, scene, "REACHED")
    assert not scene.in_collision(sample.q)
    assert abs(sample.q - q).max() > 0.1


def test_obstacles_are_drawn_added_dragged_and_removed(scene):
    server = open_server("localhost", 0, "test")
    try:
        scene.add_plane("floor", offset=-0.5)
        view = ObstacleView(server.scene, scene, ROBOT, 1.0)
        q = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
        assert view.show(q).names == scene.distance(q).names
        name = view.add_box([0.1, 0.1, 0.1], np.array([0.2, 0.4, 0.3]))
        assert (view.chosen, [*scene.objects]) == (name, ["wall", "floor", name])
        view.show(q)
        view._handle.position = (0.3, 0.5, 0.4)  # same effect as a drag
        view._drag()
        np.testing.assert_allclose(scene.objects[name][:3, 3], [0.3, 0.5, 0.4])
        low, high = view.corners().min(axis=0), view.corners().max(axis=0)
        np.testing.assert_allclose([low, high], [[0.25, -0.01, 0.0], [0.75, 0.55, 0.6]])
        view.remove()
        assert (view.chosen, [*scene.objects]) == (None, ["wall", "floor"])
        view.show(q)
    finally:
        server.stop()
