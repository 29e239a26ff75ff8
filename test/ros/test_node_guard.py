# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The stream of a real node keeps its distance from a scene, whatever becomes of that."""

import re
from itertools import cycle, islice

import numpy as np
import pytest
from commands import Limits, assert_told
from geometry_msgs.msg import Point, Pose, PoseStamped
from moveit_msgs.msg import CollisionObject
from moveit_msgs.srv import GetPlanningScene, GetPositionFK
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from robots import URDF
from ros_client import Client, NodeProcess
from ros_guarded import ARGUMENTS, HALT, KEPT, NEAR, START, Guarded, shifted
from ros_scene import apply, box, objects_of, removed, scene_of, world
from ros_streamer import Driver, Streamer, motion, stamped
from ros_wam import WAM
from ros_watched import moveit
from sensor_msgs.msg import JointState
from shape_msgs.msg import Mesh, MeshTriangle

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.files import shipped_urdf
from dls_ik.ros.frames import matrix_from_pose

pytestmark = [pytest.mark.ros]
TIP = WAM.fk(START)[:3, 3]


def off_tip(x, y, z):
    """A point beside the tip at the start [m]."""
    return TIP + np.array([x, y, z])


WALL = box("wall", off_tip(0.0, 0.25, 0.0), size=(1.0, 0.1, 1.0))


@pytest.fixture(scope="module")
def arm(private_domain):
    with Guarded("/guarded") as arm:
        yield arm


def test_target_behind_a_wall_stops_the_arm_at_min_distance(arm):
    arm.fresh(WALL)
    arm.streamer.send_until(shifted(y=0.5), lambda: HALT in arm.codes(), "a halt")
    arm.client.spin_until(lambda: arm.figures().get("state") == "blocked", what="diagnostics")
    assert KEPT - 1e-6 < arm.least(WALL) < KEPT + 0.01
    assert NEAR in arm.codes()
    assert arm.said("wall", "mm")
    assert KEPT - 2e-3 < float(arm.figures()["nearest distance [m]"]) < 0.1
    assert "1 objects" in arm.figures()["collisions"]
    arm.client.spin_until(lambda: "nearest" in shown(arm), what="markers")
    line = shown(arm)["nearest"]
    assert line.points[0] != line.points[1]
    assert "wall" in shown(arm)["nearest distance"].text
    times, q, v = motion(arm.streamer.states)
    assert_told(times, q, v, Limits.of(WAM, 6.0), jitter=0.02)
    arm.streamer.go(WAM.fk(START))  # away from it
    assert arm.least(WALL) > KEPT - 1e-6


def num_objects(arm):
    """Return the number of objects that the stream avoids by the latest diagnostics, or None."""
    found = re.search(r"(\d+) objects", arm.figures().get("collisions", ""))
    return int(found[1]) if found else None


def shown(arm):
    markers = arm.markers[-1].markers if arm.markers else []
    return {m.ns: m for m in markers if m.action == m.ADD}


def test_arm_comes_no_closer_to_an_object_added_during_motion(arm):
    """After a box appears near the arm at any place, no command comes closer to the box."""
    arm.fresh()
    post = box("post", off_tip(0.0, 0.2, 0.0), size=(0.1, 0.1, 0.1))
    eight = lambda t: shifted(x=0.1 * np.sin(4.0 * t), y=0.25 * np.sin(2.0 * t))  # noqa: E731
    arm.streamer.stream(lambda t: eight(t), 1.5)
    arm.client.spin_until(lambda: num_objects(arm) == 0, what="a scene without objects")
    arm.streamer.stream(lambda t: eight(1.5), 0.2)
    arm.streamer.states.clear()
    publisher = arm.client.publisher(CollisionObject, "collision_object", 10)
    publisher.publish(post)
    arm.client.spin_until(lambda: objects_of(arm.client) == {"post"}, what="the post")
    arm.streamer.stream_until(eight(1.5), lambda: num_objects(arm) == 1, "the post in the stream")
    begin = len(arm.streamer.states)
    arm.streamer.stream(lambda t: eight(t + 1.5), 4.0)
    after = arm.streamer.states[begin:]
    at_first = arm.least(post, states=arm.streamer.states[begin : begin + 1])
    assert arm.least(post, states=after) > min(KEPT, at_first) - 1e-6
    assert NEAR in arm.codes()
    publisher.publish(removed("post"))
    arm.client.spin_until(lambda: not objects_of(arm.client), what="the end of the post")
    arm.client.spin_until(lambda: num_objects(arm) == 0, what="the scene without the post")
    at_end = lambda: arm.streamer.error(eight(1.0)) < 1e-3  # noqa: E731
    arm.streamer.stream_until(eight(1.0), at_end, "the tip where the post was")


def test_a_flood_of_scenes_does_not_stop_the_stream(arm):
    """An object that jumps at every message, more than a thousand times a second."""
    arm.fresh()
    publisher = arm.client.publisher(CollisionObject, "collision_object", 1000)
    asker = arm.client.answered_client(
        GetPlanningScene, "get_planning_scene", GetPlanningScene.Request()
    )
    places = np.random.default_rng(0).uniform(-0.3, 0.3, (500, 3)) + off_tip(0.5, 0.0, 0.3)
    sent = cycle(places)

    def pose_at(t):
        for place in islice(sent, 12):  # the stream has 100 targets a second
            publisher.publish(box("jumping", place, size=(0.05, 0.05, 0.05)))
        return shifted(y=0.1 * np.sin(2.0 * t))

    arm.streamer.stream(pose_at, 3.0)
    times, q, v = motion(arm.streamer.states)
    assert_told(times, q, v, Limits.of(WAM, 6.0), jitter=0.02)
    last = box("jumping", off_tip(0.0, 0.25, 0.0), size=(1.0, 0.1, 1.0))
    publisher.publish(last)
    publisher.publish(box("mark", off_tip(0.0, 0.0, 5.0)))  # far away, for diagnostics
    request = GetPlanningScene.Request()
    for _ in range(5):  # these wait behind the last change
        asker.call_async(request)
    arm.client.spin_until(lambda: place_of(arm.client) == last.pose.position, what="the last one")
    arm.client.spin_until(lambda: num_objects(arm) == 2, what="it in the stream")
    arm.streamer.states.clear()
    arm.streamer.stream(lambda t: shifted(y=0.1 * t), 4.0)
    at_first = arm.least(last, states=arm.streamer.states[:1])  # the elbow may be in it
    assert arm.least(last) > min(KEPT, at_first) - 1e-6, "the last one counts"
    assert "Traceback" not in arm.process.output


def place_of(client):
    objects = {each.id: each for each in scene_of(client).world.collision_objects}
    return objects["jumping"].pose.position if "jumping" in objects else None


@pytest.mark.slow
def test_a_mesh_of_many_triangles_is_fitted_beside_the_stream(arm):
    arm.fresh()
    mesh = grid_mesh(320, off_tip(0.0, 0.25, 0.0))
    assert len(mesh.triangles) > 200_000
    whole = CollisionObject(id="scan", meshes=[mesh], mesh_poses=[Pose()])
    whole.pose.orientation.w = 1.0
    before = len(arm.streamer.states)
    assert apply(arm.client, world(whole)), arm.process.output
    assert len(arm.streamer.states) > before
    arm.streamer.states.clear()
    arm.streamer.stream(lambda t: shifted(y=0.1 * t), 4.0)
    assert arm.least(WALL_OF_MESH) > KEPT - 0.01
    assert max(WAM.fk(motion(arm.streamer.states)[1])[:, 1, 3]) < TIP[1] + 0.25


WALL_OF_MESH = box("plate", off_tip(0.0, 0.25, 0.0), size=(1.0, 1e-4, 1.0))


def grid_mesh(count, center):
    """A plate across y of 2 count^2 triangles, 1 m wide."""
    x, z = np.meshgrid(*[np.linspace(-0.5, 0.5, count + 1)] * 2)
    points = np.column_stack([x.ravel(), np.zeros(x.size), z.ravel()]) + center
    corner = (np.arange(count)[:, None] * (count + 1) + np.arange(count)).ravel()
    a = np.column_stack([corner, corner + 1, corner + count + 1])
    b = np.column_stack([corner + 1, corner + count + 2, corner + count + 1])
    mesh = Mesh(vertices=[Point(x=p[0], y=p[1], z=p[2]) for p in points.tolist()])
    mesh.triangles = [MeshTriangle(vertex_indices=t) for t in np.vstack([a, b]).astype(np.uint32)]
    return mesh


# The workspace


BOUNDS = {
    "bounds": "cell, above",
    "bound.cell.box": [0.4, 0.4, 0.4],
    "bound.cell.position": off_tip(0.0, 0.0, 0.05).tolist(),
    "bound.above.half_space": [0.0, 0.0, 2.0, float(2.0 * TIP[2] - 0.2)],
    "bound.above.links": "wam_tip, wam_link7",
}


def tip_offset(arm):
    """Return the position of the tip relative to its start (3,) [m]."""
    return WAM.fk(arm.q)[:3, 3] - TIP


def test_tip_stays_inside_workspace_bounds_shown_as_markers(private_domain):
    with Guarded("/bounded", **BOUNDS) as arm:
        assert "stays inside cell, above" in arm.process.wait_for_line("the stream keeps")
        arm.streamer.stream(lambda t: shifted(y=0.2 * t), 2.0)
        at_wall = lambda: tip_offset(arm)[1] > 0.19 and arm.said("cell")  # noqa: E731
        arm.streamer.stream_until(shifted(y=0.4), at_wall, "the tip at the side of the cell")
        arm.streamer.go(WAM.fk(START))
        arm.streamer.stream(lambda t: shifted(z=-0.1 * t), 2.0)
        at_floor = lambda: tip_offset(arm)[2] < -0.09 and arm.said("above")  # noqa: E731
        arm.streamer.stream_until(shifted(z=-0.2), at_floor, "the tip at the lower bound")
        _, q, _ = motion(arm.streamer.states)
        tips = WAM.fk(q)[:, :3, 3] - TIP
        assert tips[:, 1].max() < 0.2 + 1e-6
        assert tips[:, 2].min() > -0.1 - 1e-6
        arm.client.spin_until(lambda: "bound cell" in shown(arm), what="markers of bounds")
        assert shown(arm)["bound above"].pose.position.z == pytest.approx(TIP[2] - 0.1)
        assert not {"bound cell", "bound above"} - set(shown(arm))
        assert arm.figures()["bounds of the workspace"] == "cell, above"


# The start, and the other joints


def node(namespace, **parameters):
    given = {**ARGUMENTS, **parameters}
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    return NodeProcess("-r", f"__ns:={namespace}", *words)


def test_min_distance_that_links_cannot_keep_holds_targets_with_a_reason(private_domain):
    with (
        Client("/far") as client,
        node("/far", min_distance=0.5, influence_distance=0.6) as process,
    ):
        process.wait_for_line("ERROR", "the stream accepts no targets", "min_distance", "wam_")
        statuses = client.listen(moveit.ServoStatus, "dls_ik/status")
        states = client.listen(JointState, "joint_states", 1000)  # none may be lost
        client.publisher(PoseStamped, "target_pose", 1).publish(stamped(shifted(y=0.1)))
        client.spin_until(lambda: len(states) > 50, what="the arm at rest")
        assert all(not any(state.velocity) for state in states)
        said = lambda: any("targets wait: min_distance" in s.message for s in statuses)  # noqa: E731
        client.spin_until(said, what="the reason in a status")


@pytest.mark.parametrize("mode", ["required", "auto"])
def test_without_geometry_required_avoidance_holds_and_auto_follows(mode, private_domain, tmp_path):
    file = tmp_path / "bare.urdf"
    urdf = shipped_urdf("wam").read_text()
    file.write_text(re.sub("<collision>.*?</collision>", "", urdf, flags=re.DOTALL))
    with (
        Client(f"/{mode}") as client,
        node(f"/{mode}", robot=file, stream_avoid_collisions=mode) as process,
    ):
        statuses = client.listen(moveit.ServoStatus, "dls_ik/status", 100)
        states = client.listen(JointState, "joint_states", 1000)  # none may be lost
        targets = client.publisher(PoseStamped, "target_pose", 1)
        process.wait_for_line("has no <collision> geometry")
        words = {"required": "is required, and there is no scene", "auto": "at the target"}[mode]
        client.send_until(
            lambda: targets.publish(stamped(shifted(y=0.1))),
            lambda: any(words in s.message for s in statuses),
            words,
        )
        assert any(any(state.velocity) for state in states) is (mode == "auto")


LEFT, RIGHT = (
    RobotModel.from_urdf(URDF / "two_wams.urdf", tip=f"{side}_wam_tip")
    for side in ("left", "right")
)


def turned(angle):
    """START with the first joint turned."""
    return START + angle * np.eye(7)[0]


def test_second_arm_is_avoided_at_its_measured_position(private_domain):
    """A driver moves the right arm into the way of the left one, which follows targets."""
    given = {"robot": URDF / "two_wams.urdf", "tip": "left_wam_tip"}
    with Client("/two") as client, node("/two", **given, stream_avoid_collisions="auto") as process:
        process.wait_for_line("the stream keeps")
        right = Driver(client, RIGHT.joint_names, turned(-0.5))
        streamer = Streamer(client)
        way = [LEFT.fk(turned(-a)) for a in np.linspace(0.0, 0.8, 300)]
        streamer.stream(lambda t: way[0], 1.5)
        right.message.position = turned(0.8).tolist()
        asked = GetPositionFK.Request(fk_link_names=[RIGHT.tip])
        there = RIGHT.tree.pose(RIGHT.tip, dict(zip(RIGHT.joint_names, turned(0.8), strict=True)))

        def is_measured():
            found = client.call(GetPositionFK, "compute_fk", asked).pose_stamped[0].pose
            return np.abs(matrix_from_pose(found) - there).max() < 1e-6

        client.spin_until(is_measured, what="the right arm where it is measured")
        streamer.states.clear()
        scene = PlanningScene(LEFT)
        scene.set_joints(dict(zip(RIGHT.joint_names, turned(0.8), strict=True)))

        def nearest(chosen):
            own = [s for s in streamer.states if s.name[0] in LEFT.joint_names]
            pairs = (scene.distance(motion([s])[1][0]) for s in own[chosen])
            return min(pairs, key=lambda pair: pair.distance, default=None)

        def is_near():
            pair = nearest(slice(-5, None))
            return pair is not None and pair.distance < 0.1

        streamer.stream(lambda t: way[min(int(t / 0.01), 299)], 4.0)
        streamer.stream_until(way[-1], is_near, "the left arm close to the right one")
        assert KEPT - 2e-3 < nearest(slice(None, None, 5)).distance
        pair = nearest(slice(-5, None))
        assert any("right_wam" in name for name in pair.names)


@pytest.mark.parametrize("name", ["max_linear_speed", "max_angular_speed"])
def test_tip_speed_follows_limits_changed_live(arm, name):
    """The largest speed that is reached, with the limit, with half of it, and by the scale."""
    arm.fresh()
    is_angular = name == "max_angular_speed"
    turned = START + np.array([0, 0, 0, 0, 0, 0, 0.5])
    there = WAM.fk(turned) if is_angular else shifted(y=0.15)
    limit = 0.3 if is_angular else 0.12
    try:
        for changes, expected in (
            ({name: limit}, limit),
            ({name: limit / 2}, limit / 2),
            ({name: limit, "scale": 0.5}, limit / 2),
        ):
            set_live(arm, **changes)
            for target in (there, WAM.fk(START)):
                arm.streamer.states.clear()
                arm.streamer.go(target)
                reached = tip_speeds(arm.streamer.states)[is_angular].max()
                assert 0.95 * expected < reached < 1.01 * expected
    finally:
        set_live(arm, scale=1.0, **{name: 1e9})
    arm.streamer.states.clear()
    arm.streamer.go(there)
    assert tip_speeds(arm.streamer.states)[is_angular].max() > 1.2 * limit, "without one"


def set_live(arm, **values):
    request = SetParametersAtomically.Request(
        parameters=[
            Parameter(name, value=value).to_parameter_msg() for name, value in values.items()
        ]
    )
    path = "dls_ik/set_parameters_atomically"
    assert arm.client.call(SetParametersAtomically, path, request).result.successful


def tip_speeds(states):
    """Linear and angular speeds (m,) of the tip, by the positions and velocities of the states."""
    _, q, v = motion(states)
    step = 1e-6
    now, soon = WAM.fk(q), WAM.fk(q + step * v)
    turn = (soon - now)[:, :3, :3] @ now[:, :3, :3].transpose(0, 2, 1) / step
    spin = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
    return np.linalg.norm((soon - now)[:, :3, 3] / step, axis=1), np.linalg.norm(spin, axis=1)
