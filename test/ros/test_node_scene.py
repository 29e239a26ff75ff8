# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Scene of the node: services and topics of MoveIt's scene, and collision-free answers.

Answers are checked by coal on the shapes themselves, in a scene that the test keeps for itself.
"""

import os
import re

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose
from moveit_msgs.msg import (
    CollisionObject,
    Constraints,
    ContactInformation,
    JointConstraint,
    LinkPadding,
    LinkScale,
    PlanningScene,
    PlanningSceneComponents,
)
from moveit_msgs.srv import GetPlanningScene, GetPositionIK
from robots import URDF
from ros_client import READY, Client, ExecutedNode, NodeProcess
from ros_scene import (
    PAIRS,
    SRDF,
    apply,
    box,
    carried,
    objects_of,
    removed,
    scene_of,
    validity,
    world,
)
from ros_wam import WAM, Q, stamped
from shape_msgs.msg import Mesh, MeshTriangle
from std_msgs.msg import String

import dls_ik
from dls_ik.model.files import shipped_urdf
from dls_ik.ros.client.ik_client import ik_request
from dls_ik.ros.robot_source import DESCRIPTION_QOS as LATCHED
from fuzz.hard_meshes import bundle

pytestmark = [pytest.mark.ros]
ARM_ONLY = dls_ik.PlanningScene(WAM)
ELBOW = WAM.link_pose("wam_link4", Q)[:3, 3]
DIFFS = "mg/monitored_planning_scene"


def peak_memory(pid):
    """The largest resident memory of a process so far [MiB]."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        (line,) = (each for each in status if each.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024.0


class MoveGroup:
    """The part of move_group that publishes a scene."""

    def __init__(self, client):
        self.whole = world(box("of_move_group", (0.0, 0.0, 2.0)), is_diff=False)
        self.whole.robot_model_name = "wam7"
        self.asked = []
        client.node.create_service(GetPlanningScene, "mg/get_planning_scene", self._answer)

    def _answer(self, request, response):
        self.asked.append(request.components.components)
        response.scene = self.whole
        return response


@pytest.fixture(scope="module")
def scened(private_domain):
    """A client of a node with a WAM, its SRDF on the topic, and a move_group; and its process."""
    arguments = ["-p", "robot:=wam", "-p", f"monitored_planning_scene:={DIFFS}"]
    with Client("/scened") as client:
        srdf = client.node.create_publisher(String, "robot_description_semantic", LATCHED)
        srdf.publish(String(data=SRDF))
        client.move_group = MoveGroup(client)
        with ExecutedNode("-r", "__ns:=/scened", *arguments) as node:
            client.process = node
            node.wait_for_line("planning scene built", f"{len(PAIRS)} other pairs may touch, from")
            client.spin_until(lambda: client.move_group.asked, READY, "a question to move_group")
            client.spin_until(lambda: objects_of(client) == {"of_move_group"}, what="its scene")
            yield client


@pytest.fixture
def client(scened):
    """The same, with a world that is empty before."""
    assert apply(scened, world(is_diff=False))
    return scened


def request(q, seed=Q, avoid=True, group="", seconds=1):
    whole = GetPositionIK.Request()
    asked = whole.ik_request
    asked.group_name, asked.avoid_collisions = group, avoid
    asked.pose_stamped = stamped(WAM.fk(q))
    asked.robot_state.is_diff = True
    asked.robot_state.joint_state.name = list(WAM.joint_names)
    asked.robot_state.joint_state.position = list(map(float, seed))
    asked.timeout.sec = seconds
    return whole


def ask(client, *given, **fields):
    return client.call_in_time(GetPositionIK, "compute_ik", request(*given, **fields))


def answer_of(response):
    assert response.error_code.val == 1, response.error_code.message
    return np.array(response.solution.joint_state.position)


def collides(q, *objects):
    """Whether coal alone finds a collision, in a world of boxes by name."""
    scene = ARM_ONLY.with_snapshot(ARM_ONLY.snapshot)
    scene.load(world(*objects))
    return scene.snapshot.in_collision_by_library(q)


def test_no_answer_is_in_collision_while_the_scene_changes(client):
    rng = np.random.default_rng(3)
    goals = [q for q in WAM.random(30, rng) if not collides(q)]
    before, answered, moved = box("thing", (5.0, 0.0, 0.0)), 0, 0
    waiting = client.answered_client(GetPositionIK, "compute_ik", request(Q))
    publisher = client.publisher(CollisionObject, "collision_object", 10)
    for k, q in enumerate(goals):
        # In the way of the seed's elbow, which most goals allow elsewhere
        center = WAM.link_pose(f"wam_link{4 + k % 2}", q)[:3, 3]
        after = box("thing", center, size=(0.04, 0.04, 0.04))
        sent = [waiting.call_async(request(q, q)) for _ in range(2)]
        publisher.publish(after)
        sent += [waiting.call_async(request(q, q)) for _ in range(2)]
        client.spin_until(lambda sent=sent: all(each.done() for each in sent), what="answers")
        for response in (each.result() for each in sent):
            if response.error_code.val == 1:
                found = np.array(response.solution.joint_state.position)
                assert not (collides(found, before) and collides(found, after))
        assert apply(client, world(after))  # the only scene from now on
        response = ask(client, q, q)
        if response.error_code.val == 1:
            found = answer_of(response)
            assert not collides(found, after)
            np.testing.assert_allclose(WAM.fk(found), WAM.fk(q), atol=3e-6)
            moved += collides(q, after)
            answered += 1
        before = after
    assert answered > 0.7 * len(goals)
    assert moved > 0.4 * len(goals), "the seed was in collision, another answer was found"


def test_pose_reachable_only_in_collision_returns_the_colliding_pair(client):
    tip = WAM.fk(Q)[:3, 3]
    assert apply(client, world(box("crate", tip, size=(0.3, 0.3, 0.3))))
    asked = ik_request(WAM.fk(Q), timeout=1.0, avoid_collisions=True)
    response = client.call_in_time(GetPositionIK, "compute_ik", asked)
    assert response.error_code.val == -31
    assert "only in collision" in response.error_code.message
    assert "'crate'" in response.error_code.message
    assert ask(client, Q, avoid=False).error_code.val == 1


def test_avoid_collisions_parameter_overrides_the_request(client):
    tip = WAM.fk(Q)[:3, 3]
    assert apply(client, world(box("crate", tip, size=(0.3, 0.3, 0.3))))
    expected = {"always": (-31, -31), "ignore": (1, 1), "request": (-31, 1)}
    for value, codes in expected.items():
        assert client.set_parameters(avoid_collisions=value, timeout=0.2).successful
        found = [ask(client, Q, avoid=each, seconds=0).error_code.val for each in (True, False)]
        assert tuple(found) == codes, value


def test_constraints_and_clearance_solve_type_respect_the_scene(client):
    pole = box("pole", ELBOW, size=(0.04, 0.04, 0.04))
    assert apply(client, world(pole))
    aside = JointConstraint(joint_name="wam_j3", position=Q[2], weight=1.0)
    aside.tolerance_above = aside.tolerance_below = 1.5
    whole = request(Q)
    whole.ik_request.constraints.joint_constraints = [aside]
    found = answer_of(client.call(GetPositionIK, "compute_ik", whole))
    assert not collides(found, pole)
    assert abs(found[2] - Q[2]) <= 1.5
    first = answer_of(ask(client, Q, found))
    assert client.set_parameters(solve_type="clearance").successful
    try:
        farthest = answer_of(ask(client, Q, found))
    finally:
        assert client.set_parameters(solve_type="speed").successful
    scene = ARM_ONLY.with_snapshot(ARM_ONLY.snapshot)
    scene.load(world(pole))
    assert scene.distance(farthest).distance > scene.distance(first).distance + 0.01


def test_state_validity_reports_bodies_and_points_of_contacts(client):
    assert validity(client, Q).valid
    assert apply(client, world(box("pole", ELBOW, size=(0.05, 0.05, 0.05))))
    response = validity(client, Q)
    assert not response.valid
    contact = response.contacts[0]
    kinds = {
        contact.contact_body_1: contact.body_type_1,
        contact.contact_body_2: contact.body_type_2,
    }
    assert kinds.pop("pole") == ContactInformation.WORLD_OBJECT
    assert kinds in ({"wam_link3": 0}, {"wam_link4": 0})
    assert contact.header.frame_id == "wam_base"
    assert contact.depth > 0.01
    point = [contact.position.x, contact.position.y, contact.position.z]
    np.testing.assert_allclose(point, ELBOW, atol=0.1)


def test_state_validity_checks_the_group_and_constraints(client):
    assert apply(client, world(box("cup", ELBOW, size=(0.02, 0.02, 0.02))))
    assert not validity(client, Q, group="arm").valid
    assert validity(client, Q, group="wrist").valid, "it moves no link that touches the cup"
    assert not validity(client, Q, group="hand").valid, "an unknown group"
    assert apply(client, world(removed("cup")))
    near = JointConstraint(joint_name="wam_j4", position=Q[3] - 0.2, weight=2.0)
    near.tolerance_above = 0.1
    response = validity(client, Q, constraints=Constraints(joint_constraints=[near]))
    assert (response.valid, len(response.contacts)) == (False, 0)
    assert not response.constraint_result[0].result
    assert response.constraint_result[0].distance == pytest.approx(0.4)


def test_attached_objects_of_scene_and_request_are_checked(client):
    rod = box("rod", (0.0, 0.0, 0.2), size=(0.02, 0.02, 0.3), frame="wam_tip")
    held = carried("wam_link7", rod, "wam_tip", "wam_link6")
    T = WAM.fk(Q)
    wall = box("wall", (T @ [0.0, 0.0, 0.3, 1.0])[:3], size=(0.05, 0.05, 0.05))
    assert apply(client, world(wall))
    assert validity(client, Q).valid
    whole = request(Q)
    whole.ik_request.robot_state.attached_collision_objects = [held]
    whole.ik_request.timeout.sec = 10  # spheres are fitted to the rod, on a busy machine
    response = client.call(GetPositionIK, "compute_ik", whole)
    assert response.error_code.val == -31, "every answer has the rod in the wall"
    assert "'rod' and 'wall'" in response.error_code.message
    assert ask(client, Q).error_code.val == 1, "only that request had it"
    scene = world()
    scene.robot_state.attached_collision_objects = [held]
    assert apply(client, scene)
    contact = validity(client, Q).contacts[0]
    assert contact.contact_body_1 == "rod"
    assert contact.body_type_1 == ContactInformation.ROBOT_ATTACHED
    known = scene_of(client).robot_state.attached_collision_objects
    assert [(each.link_name, each.object.id) for each in known] == [("wam_link7", "rod")]


def test_topics_change_the_scene_in_frames_of_links(client):
    objects = client.publisher(CollisionObject, "collision_object", 10)
    objects.publish(box("plate", (0.0, 0.1, 0.0), frame="wam_link4"))
    client.spin_until(lambda: objects_of(client) == {"plate"}, what="the plate")
    scene = scene_of(client)
    plate = scene.world.collision_objects[0]
    assert plate.header.frame_id == "wam_base"
    found = [plate.pose.position.x, plate.pose.position.y, plate.pose.position.z]
    T = WAM.link_pose("wam_link4", np.array(scene.robot_state.joint_state.position))
    np.testing.assert_allclose(found, (T @ [0.0, 0.1, 0.0, 1.0])[:3], atol=1e-9)
    scenes = client.publisher(PlanningScene, "planning_scene", 10)
    scenes.publish(world(box("cup", (0.0, 0.0, 0.1), frame="wam_tip")))
    client.spin_until(lambda: "cup" in objects_of(client), what="the cup")
    objects.publish(removed("plate"))
    diffs = client.publisher(PlanningScene, DIFFS, 10)
    diffs.publish(world(box("of_a_diff", (0.0, 0.0, 2.0))))
    client.spin_until(lambda: objects_of(client) == {"cup", "of_a_diff"}, what="both")


def bad_mesh(count):
    mesh = Mesh(triangles=[MeshTriangle()] * count)
    return CollisionObject(id="mesh", meshes=[mesh])


def octomap():
    scene = world()
    scene.world.octomap.octomap.data = [1, 2, 3]
    return scene


REFUSED = {
    "unknown link 'hand'": lambda: with_carried("hand"),
    "position of the pose must be a finite number; got nan": lambda: world(
        box("x", (np.nan, 0.0, 0.0))
    ),
    "at most 500000 triangles; got 600000 vertices": lambda: world(bad_mesh(600_000)),
    "unknown frame 'moon'": lambda: world(box("x", (0.0, 0.0, 0.0), frame="moon")),
    "'wam_link3' is a link of the robot": lambda: world(box("wam_link3", (0.0, 0.0, 0.0))),
    "joint_state has 1 names and 0 positions": lambda: with_joints(["wam_j1"]),
    "a box must be x, y, z, each from 1e-06": lambda: world(
        box("x", (0.0, 0.0, 0.0), (0.1, -0.1, 0.1))
    ),
    "a mesh has no triangles": lambda: world(bad_mesh(0)),
    "no object 'y' in the world": lambda: with_carried("wam_link7", CollisionObject(id="y")),
    "padding: unknown link 'finger'": lambda: with_margins(LinkPadding(link_name="finger")),
    "scale of 'wam_link3' must be from 0.01": lambda: with_margins(
        LinkScale(link_name="wam_link3")
    ),
}


def with_carried(link, held=None):
    scene = world(box("good", (0.0, 0.0, 3.0)))
    held = held or box("x", (0.0, 0.0, 0.0))
    scene.robot_state.attached_collision_objects = [carried(link, held)]
    return scene


def with_margins(given):
    scene = world(box("good", (0.0, 0.0, 3.0)))
    scene.link_padding = [given] if isinstance(given, LinkPadding) else []
    scene.link_scale = [given] if isinstance(given, LinkScale) else []
    return scene


def with_joints(names):
    scene = world(box("good", (0.0, 0.0, 3.0)))
    scene.robot_state.joint_state.name = names
    return scene


def test_invalid_scene_is_refused_and_the_previous_scene_kept(client):
    assert apply(client, world(box("kept", (0.0, 0.0, 3.0))))
    for words, make in REFUSED.items():
        assert not apply(client, make()), words
        client.process.wait_for_line("is refused and ignored", words)
        assert objects_of(client) == {"kept"}, words


def test_unsupported_octomap_is_logged_once(client):
    for _ in range(2):
        assert apply(client, octomap())
    client.process.wait_for_line("octomap is not supported")
    assert client.process.count("octomap is not supported") == 1


def test_oversized_scene_message_is_ignored_and_a_full_scene_requested(client):
    asked = len(client.move_group.asked)
    publisher = client.publisher(CollisionObject, "collision_object", 10)
    large = box("large", (0.0, 0.0, 3.0))
    large.subframe_names = ["x" * 5_000_000]
    publisher.publish(large)
    client.process.wait_for_line("collision_object has 5000", "more than 1048576")
    client.spin_until(lambda: len(client.move_group.asked) > asked, what="a question to move_group")
    client.spin_until(lambda: objects_of(client) == {"of_move_group"}, what="its scene")


def test_a_mesh_of_thin_triangles_does_not_fill_the_memory(client):
    """One message of 144 kB once took the node from 245 MB to 3 GB."""
    mesh = bundle(np.random.default_rng(0), 2000)
    thin = CollisionObject(id="thin", operation=CollisionObject.ADD)
    thin.header.frame_id = WAM.tree.root
    corners = [Point(x=x, y=y, z=z + 10.0) for x, y, z in mesh.vertices.tolist()]
    rows = [MeshTriangle(vertex_indices=row) for row in mesh.triangles.tolist()]
    thin.meshes, thin.mesh_poses = [Mesh(vertices=corners, triangles=rows)], [Pose()]
    thin.pose.orientation.w = thin.mesh_poses[0].orientation.w = 1.0
    before = client.process.figures.rss
    client.publisher(CollisionObject, "collision_object", 10).publish(thin)
    client.spin_until(lambda: objects_of(client) == {"thin"}, what="the object")
    assert peak_memory(client.process.process.pid) < before + 300.0  # [MiB]


def test_only_requested_scene_components_are_returned(client):
    assert apply(client, world(box("kept", (0.0, 0.0, 3.0))))
    parts = PlanningSceneComponents
    names = scene_of(client, parts.WORLD_OBJECT_NAMES)
    assert [each.id for each in names.world.collision_objects] == ["kept"]
    assert not names.world.collision_objects[0].primitives
    assert not names.robot_state.joint_state.name
    matrix = scene_of(client, parts.ALLOWED_COLLISION_MATRIX).allowed_collision_matrix
    i, j = (matrix.entry_names.index(each) for each in ("wam_link3", "wam_link4"))
    assert matrix.entry_values[i].enabled[j]
    whole = scene_of(client)
    assert list(whole.robot_state.joint_state.name) == list(WAM.joint_names)
    assert apply(client, world(is_diff=False))
    assert apply(client, whole), "what is told is taken back"
    assert scene_of(client).world == whole.world


def test_groups_of_the_srdf_are_served(client):
    assert answer_of(ask(client, Q, group="arm")).shape == (7,)
    whole = request(Q, group="forearm")
    whole.ik_request.pose_stamped = stamped(WAM.link_pose("wam_link5", Q))
    response = client.call(GetPositionIK, "compute_ik", whole)
    np.testing.assert_allclose(
        WAM.link_pose("wam_link5", answer_of(response)),
        WAM.link_pose("wam_link5", Q),
        atol=3e-6,
    )
    response = ask(client, Q, group="hand")
    assert response.error_code.val == -15
    assert "'hand'; known: arm, forearm, wrist" in response.error_code.message
    response = ask(client, Q, group="nothing")
    assert response.error_code.val == -15
    assert "no moving joints" in response.error_code.message


def test_the_scene_is_replaced_with_the_robot(private_domain):
    """Descriptions with a mesh that cannot be read, of a WAM, of a planar arm, in turn."""
    wam = shipped_urdf("wam").read_text()
    sphere = '<sphere radius="0.1"/>'
    unreadable = wam.replace(sphere, '<mesh filename="package://nowhere/x.stl"/>')
    planar = (URDF / "planar_2r.urdf").read_text()
    arguments = [
        "monitored_planning_scene:=monitored_planning_scene",
        "robot_description_semantic:=arm.srdf",
        "feedback_mode:=none",
    ]
    options = [word for each in arguments for word in ("-p", each)]
    with (
        Client("/replaced") as client,
        NodeProcess("-r", "__ns:=/replaced", *options) as node,
    ):
        robots = client.node.create_publisher(String, "robot_description", LATCHED)
        node.wait_for_line("remap the service of this node")
        robots.publish(String(data=unreadable))
        node.wait_for_line("SRDF refused", "'arm.srdf'")
        node.wait_for_line("collisions are not checked", "wam_link2", "nowhere")
        response = ask(client, Q)
        assert response.error_code.val == -22, "nothing is answered that is not checked"
        assert "nowhere" in response.error_code.message
        assert not apply(client, world(box("x", (0.0, 0.0, 3.0))))
        robots.publish(String(data=wam))
        node.wait_for_line("planning scene built: collisions of 8 links", "found by sampling")
        assert apply(client, world(box("pole", ELBOW)))
        assert not validity(client, Q).valid
        robots.publish(String(data=planar))
        node.wait_for_line("another root link: 1 objects")
        client.spin_until(lambda: objects_of(client) == set(), what="the scene of the planar arm")
        assert validity(client, (0.1, 0.2), names=("joint1", "joint2")).valid
        assert "Traceback" not in node.output


WITHOUT = "import sys\nsys.modules['coal'] = None\n"


def test_without_coal_spheres_decide_collisions_and_a_warning_is_logged(tmp_path, private_domain):
    """The library judges here, where it is installed."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with (
        Client("/uncollided") as client,
        NodeProcess("-r", "__ns:=/uncollided", "-p", "robot:=wam", PYTHONPATH=path) as node,
    ):
        node.wait_for_line("WARN", "within a few mm count as colliding", "dls_ik[collision]")
        node.wait_for_line("the stream keeps distances of 0.01 m")
        assert node.count("not checked") == 0
        assert validity(client, Q).valid
        found = 0
        for q in WAM.random(12, np.random.default_rng(4)):
            thing = box("thing", WAM.link_pose("wam_link4", q)[:3, 3] + [0.0, 0.0, 0.25])
            assert apply(client, world(thing))
            assert not (validity(client, q).valid and collides(q, thing))
            response = ask(client, q)
            assert response.error_code.val in (1, -31)
            if response.error_code.val == 1:
                assert not collides(answer_of(response), thing)
                found += 1
        assert found > 6
        tip = WAM.fk(Q)[:3, 3]
        assert apply(client, world(box("crate", tip, size=(0.3, 0.3, 0.3))))
        response = ask(client, Q)
        assert response.error_code.val == -31
        assert "without the library coal" in response.error_code.message
        assert not validity(client, Q).valid


def test_answers_report_that_a_robot_has_no_collision_geometry(private_domain, tmp_path):
    file = tmp_path / "bare.urdf"
    file.write_text(re.sub(r"(?s)<collision>.*?</collision>", "", shipped_urdf("wam").read_text()))
    with (
        Client("/bare") as client,
        NodeProcess("-r", "__ns:=/bare", "-p", f"robot:={file}") as node,
    ):
        node.wait_for_line("WARN", "no <collision> geometry: nothing is checked for collisions")
        for _ in range(2):
            response = ask(client, Q)
            assert response.error_code.val == 1
            assert "nothing was checked for collisions" in response.error_code.message
            assert "nothing was checked" not in ask(client, Q, avoid=False).error_code.message
        assert node.count("WARN", "a request has avoid_collisions") == 1


def test_scene_file_is_loaded_at_the_start_or_holds_the_stream(private_domain, tmp_path):
    """A file that does not fit keeps the stream from moving, and both name file and object."""
    table = "table\n* table\n0 0 -0.6\n0 0 0 1\n1\nbox\n1 1 0.1\n0 0 0\n0 0 0 1\n0 0 0 0\n0\n.\n"
    good, bad = tmp_path / "table.scene", tmp_path / "cup.yaml"
    good.write_text(table)
    bad.write_text(
        "robot_state: {is_diff: true, attached_collision_objects: [{link_name: hand, object: {"
        "id: cup, primitives: [{type: 2, dimensions: [0.05]}], primitive_poses: [{}]}}]}\n"
        "is_diff: true\n"
    )
    given = ("-p", "robot:=wam", "-p")
    with (
        NodeProcess("-r", "__ns:=/good", *given, f"scene:={good}") as process,
        NodeProcess("-r", "__ns:=/bad", *given, f"scene:={bad}") as refused,
        NodeProcess(*given, f"scene:={tmp_path}/none.yaml") as missing,
        Client("/good") as client,
    ):
        process.wait_for_line(f"objects of '{good}': table")
        client.spin_until(lambda: objects_of(client) == {"table"}, what="the table")
        refused.wait_for_line("the stream accepts no targets")
        assert f"'{bad}': object 'cup': unknown link 'hand'" in refused.output
        missing.wait_for_line(f"cannot start: cannot read '{tmp_path}/none.yaml'")
