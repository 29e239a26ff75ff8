# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The arm with masses against closed forms and MuJoCo's own reading of a URDF; its contacts."""

import mujoco
import numpy as np
import pytest
from robots import ROOT
from scenes import bracket

from benchmarks import physical_arm as benchmark
from dls_ik import RobotModel
from dls_ik.errors import DlsIkError, JointValueError, OptionError
from dls_ik.model.files import shipped_urdf
from dls_ik.model.rotations import transform
from dls_ik.ros.sim_arm.arm import Path, SimArmParameters, joints_of, standstill
from dls_ik.ros.sim_arm.physical_arm import MAX_ADVANCE, MAX_SIMULATED_LAG, PhysicalSimulation
from dls_ik.ros.sim_arm.physics_model import RobotPhysics, mass_matrix
from dls_ik.ros.sim_arm.physics_shapes import PhysicsError
from dls_ik.scene.changes import apply_changes
from dls_ik.scene.operations import AddObject, AttachObject, MoveObject, RemoveObject
from dls_ik.scene.shapes import Box, Mesh, Plane, link_bodies
from dls_ik.scene.snapshot import SceneSnapshot

WAM = RobotModel.wam()
HOME = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
PERIOD = 0.004

HINGE = """<robot name="hinge"><link name="world"/><link name="rod">{mass}</link>
<joint name="hinge" type="revolute"><parent link="world"/><child link="rod"/><axis xyz="0 0 1"/>
<limit lower="-3" upper="3" velocity="100" effort="{effort}"/></joint></robot>"""
ROD = '<inertial><mass value="2"/><inertia ixx="0.5" iyy="0.5" izz="0.5"/></inertial>'

GRIPPER = """<robot name="gripper">
<link name="base"/>
<link name="post"><collision><geometry><box size="0.1 0.1 0.4"/></geometry></collision></link>
<link name="palm"><inertial><mass value="1"/><inertia ixx="-1" iyy="1" izz="1"/></inertial></link>
<link name="left"/><link name="right"/>
<joint name="lift" type="prismatic"><parent link="base"/><child link="post"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1" velocity="1"/></joint>
<joint name="turn" type="continuous"><parent link="post"/><child link="palm"/>
<origin xyz="0 0 0.3"/><axis xyz="0 0 1"/></joint>
<joint name="open" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="0 1 0"/>
<limit lower="0" upper="0.05" velocity="0.1" effort="20"/></joint>
<joint name="mirror" type="prismatic"><parent link="palm"/><child link="right"/><axis xyz="0 -1 0"/>
<limit lower="-0.1" upper="0.2" velocity="0.1" effort="20"/>
<mimic joint="open" multiplier="2" offset="0.01"/></joint></robot>"""


class Run:
    """A simulation that is advanced as by the node."""

    def __init__(self, robot=WAM, start=HOME, **parameters):
        bodies = link_bodies(robot.tree.description)
        self.physics = RobotPhysics(robot.tree, bodies)
        given = {"physics": True, "initial_positions": list(start), **parameters}
        parameters = SimArmParameters().changed(given)
        self.sim = PhysicalSimulation(self.physics, joints_of(robot), parameters, 0.0)
        self.scene = SceneSnapshot(robot.tree, robot.joint_names, bodies, {})
        self.t = 0.0

    def hold(self, q):
        self.sim.command(standstill(np.array(q), self.t), self.t)

    def go(self, duration):
        """Positions (c, m) in each cycle."""
        rows = []
        for _ in range(round(duration / PERIOD)):
            self.t += PERIOD
            rows.append(self.sim.cycle(self.t).positions)
        return np.array(rows)

    def change(self, *operations):
        self.scene = apply_changes(self.scene, operations, {}, self.sim.values())
        self.sim.use_scene(self.scene)

    @property
    def counts(self):
        return self.sim.contacts.with_objects, self.sim.contacts.between_links


def at(*xyz):
    return transform(translation=np.array(xyz))


def box(name, centre, size=(0.1, 0.1, 0.3)):
    return AddObject(name, ((Box(size), np.eye(4)),), "", at(*centre), {}, False)


def in_the_way(offset=0.5):
    """The tip when the first joint has turned by an offset [rad]."""
    turned = HOME.copy()
    turned[0] += offset
    return WAM.fk(turned)[:3, 3]


@pytest.mark.parametrize("name", ["wam", "puma560"])
def test_mass_matrix_and_bias_forces_equal_those_of_mujocos_urdf_reader(name):
    robot = RobotModel.from_urdf(shipped_urdf(name))
    ours = RobotPhysics(robot.tree, {}).build().model
    theirs = mujoco.MjModel.from_xml_string(shipped_urdf(name).read_text())
    random = np.random.default_rng(1)
    for q in robot.random(5, rng=2):
        v = random.uniform(-1.0, 1.0, robot.n)
        found = []
        for model in (ours, theirs):
            data = mujoco.MjData(model)
            dofs = [model.joint(each).dofadr[0] for each in robot.joint_names]
            data.qpos[dofs], data.qvel[dofs] = q, v
            mujoco.mj_forward(model, data)
            M = mass_matrix(model, data)
            found.append((M[np.ix_(dofs, dofs)], data.qfrc_bias[dofs]))
        for one, other in zip(*found, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("effort", "w"), [(1000.0, 2.0 * np.pi * 5.0), (1.0, 10.0)])
def test_step_response_of_a_drive_matches_its_bandwidth_or_effort(effort, w):
    """Critically damped; with little effort, as stiff as full effort at the given error allows."""
    robot = RobotModel.from_urdf(HINGE.format(mass=ROD, effort=effort))
    options = {"bandwidth": 5.0, "full_effort_error": 1.0 / (0.5 * 10.0**2)}
    run = Run(robot, [0.0], **options, rotor_acceleration=1e6, limit_velocity=False)
    run.hold([1e-3])
    rows = run.go(0.5)[:, 0]
    t = PERIOD * np.arange(1, len(rows) + 1)
    expected = 1e-3 * (1.0 - (1.0 + w * t) * np.exp(-w * t))
    assert np.abs(rows - expected).max() < 0.02e-3
    assert rows[-1] > 0.9e-3


def test_arm_sags_with_partial_compensation_or_insufficient_effort():
    run = Run()
    assert np.abs(run.go(0.5) - HOME).max() < 1e-9
    weight = run.sim.cycle(run.t).effort  # weight of the whole arm

    run = Run(gravity_compensation=0.5)
    sag = run.go(2.0)[-1] - HOME
    stiffness = (2.0 * np.pi * run.sim.bandwidths) ** 2 * (
        run.physics.loads.inertia + run.physics.loads.effort / 500.0
    )
    np.testing.assert_allclose(sag * stiffness, -0.5 * weight, rtol=0.05, atol=0.02)

    run = Run(effort_scale=0.2)
    assert np.abs(run.go(1.0)[-1] - HOME).max() > 0.1
    figures = run.sim.figures()
    assert figures.effort_share == pytest.approx(1.0)
    assert figures.weakest == "wam_j2"


def test_tracking_lag_matches_the_drive_bandwidth():
    """Without velocity feedforward a critically damped drive lags by 2 / w more."""
    lags = {}
    for feed_forward in (1.0, 0.0):
        figures = benchmark.run(8.0, feed_forward, 0.5, 1)
        row = dict(zip((c.name for c in benchmark.COLUMNS), figures, strict=True))
        lags[feed_forward] = 1e-3 * row["lag [ms]"]
    assert lags[0.0] - lags[1.0] == pytest.approx(2.0 / (2.0 * np.pi * 8.0), rel=0.05)
    assert lags[1.0] < 0.006


def sweep(t):
    """Positions and velocities (n,) of a sweep of all joints near HOME at a time [s]."""
    amplitude, w = 0.3 * np.array([1.0, -0.5, 0.7, -1.0, 0.6, 0.4, -0.8]), 2.5
    return HOME + amplitude * np.sin(w * t), amplitude * w * np.cos(w * t)


def test_sweep_is_followed_within_the_velocity_limits():
    run, cycle = Run(), 0.02
    speeds = []
    for _ in range(round(5.0 / cycle)):
        times = np.array([run.t, run.t + cycle])
        rows = zip(*map(sweep, times), strict=True)
        run.sim.command(Path(times, *map(np.array, rows)), run.t)
        run.go(cycle)
        speeds.append(run.sim.cycle(run.t).velocities)
        if run.t < 0.5:  # the sweep starts with a jump of the velocities
            run.sim.figures()
            del speeds[:]
    assert np.abs(speeds).max() < 1.1 * 0.3 * 2.5
    assert 0.0 < run.sim.figures().tracking_error < 0.02


def test_late_commands_cause_no_jump():
    """The drives catch up at the velocity limits; braking links turn the others a little faster."""
    run = Run()
    before = run.go(0.1)[-1]
    goal, now, speeds = HOME + 0.8, run.t + 1.5, []
    run.sim.command(standstill(goal, run.t), run.t)  # 1.5 s before the process runs again
    rows = [before]
    for k in range(200):
        reading = run.sim.cycle(now + k * PERIOD)
        rows.append(reading.positions)
        speeds.append(reading.velocities)
    assert np.abs(np.diff(rows, axis=0)).max() < 2.0 * WAM.velocity.max() * MAX_ADVANCE
    assert 0.9 * WAM.velocity.max() < np.abs(speeds).max() < 2.0 * WAM.velocity.max()
    assert np.abs(rows[-1] - goal).max() < 1e-3


def test_hard_stops_are_at_the_position_limits():
    run = Run(limit_velocity=False)
    run.hold([3.0, *HOME[1:]])
    assert WAM.upper[0] < run.go(1.5)[-1, 0] < WAM.upper[0] + 0.05


def test_arm_stops_at_a_box_and_each_contact_is_counted_once():
    run = Run()
    goal = HOME + np.array([1.0, 0, 0, 0, 0, 0, 0])
    run.hold(goal)
    assert np.abs(run.go(2.0)[-1] - goal).max() < 1e-6
    assert run.counts == (0, 0)

    run = Run()
    run.change(box("post", in_the_way()))
    run.hold(goal)
    q = run.go(1.0)[-1]
    assert 0.2 < q[0] < 0.45
    pairs = {event.names for event in run.sim.contacts.events}
    assert run.counts == (len(pairs), 0)
    assert all("post" in pair for pair in pairs)
    assert run.sim.contacts.deepest < 0.02
    assert run.sim.contacts.strongest > 20.0
    assert run.sim.figures().effort_share == pytest.approx(1.0)

    run.change(MoveObject("post", "", at(0.0, 0.0, -2.0)))  # no new model is built
    assert np.abs(run.go(2.0)[-1] - goal).max() < 1e-6
    before = run.counts
    assert not run.sim.contacts.now
    run.change(RemoveObject("post"), box("low", (0.0, 0.0, -3.0)))
    run.sim.reset()
    assert np.abs(run.go(0.1)[-1] - HOME).max() < 1e-6
    assert run.counts == before


def test_attached_object_contacts_the_world_but_not_its_touch_links():
    run = Run()
    tip = WAM.fk(HOME)
    held = tuple(box("held", (0, 0, 0), (0.02, 0.02, 0.5)).parts)
    forward = tip @ at(0.0, 0.0, 0.27)
    run.change(AttachObject("held", "wam_link7", held, "", forward, ("wam_link6",), False))
    run.go(0.1)
    assert run.counts == (0, 0)
    beside = tip @ at(0.0, 0.0, 0.5)  # the tip cannot reach it
    run.change(box("wall", beside[:3, 3]))
    run.go(0.1)
    assert {event.names for event in run.sim.contacts.events} == {("held", "wall")}


@pytest.mark.parametrize(("half", "touches"), [(0.02, True), (0.0, True), (-0.5, False)])
def test_planes_and_meshes_are_touched_at_their_given_pose(half, touches):
    """A floor just above or below the lowest point of the tip; and a flat or solid mesh."""
    tip = WAM.fk(HOME)[:3, 3]
    run = Run()
    floor = ((Plane([0, 0, 1], tip[2] + half), np.eye(4)),)
    run.change(AddObject("floor", floor, "", np.eye(4), {}, False))
    run.go(0.02)
    assert (("floor", "wam_link7") in {e.names for e in run.sim.contacts.events}) == touches
    corners = 0.1 * np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0.0]])
    triangles = [[0, 1, 2], [0, 2, 3]]
    if half > 0.0:
        corners = np.vstack([corners, [[0, 0, half]]])
        triangles += [[0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
    run = Run()
    placed = at(*tip + np.array([0.0, 0.0, 0.2 if half < 0.0 else 0.0]))
    run.change(AddObject("plate", ((Mesh(corners, triangles), np.eye(4)),), "", placed, {}, False))
    run.go(0.02)
    assert any("plate" in event.names for event in run.sim.contacts.events) == touches


def test_concave_mesh_is_touched_at_its_surface_not_its_hull():
    """The tip in the notch of an L, whose convex hull contains it; the L then moves into it."""
    R = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    notch = R @ np.array([0.6, 0.6, 0.25])
    run, part = Run(), ((bracket(1.0), np.eye(4)),)
    T = transform(R, WAM.fk(HOME)[:3, 3] - notch)
    run.change(AddObject("bracket", part, "", T, {}, False))
    run.go(0.1)
    assert run.counts == (0, 0)
    run.change(MoveObject("bracket", "", at(-0.2, 0.0, 0.0) @ T))
    run.go(0.1)
    assert run.counts[0] > 0
    assert not run.physics.solids.note


def test_gripper_without_masses_efforts_or_limits_is_simulated():
    robot = RobotModel.from_urdf(GRIPPER, tip="palm")
    run = Run(robot, [0.2, 0.0], all_joints=True)
    notes = " ".join(run.physics.notes)
    assert "no mass in the description of post" in notes
    assert "inertia of palm is not positive" in notes
    assert "no effort limit in the description of lift, turn" in notes
    assert run.sim.joints.others == ("open", "mirror")
    run.hold([0.7, 9.0])
    q = run.go(12.0)[-1]
    np.testing.assert_allclose(q, [0.7, 9.0, 0.0, 0.01], atol=1e-3)
    fingers = RobotModel.from_urdf(GRIPPER, base="palm", tip="left")
    run = Run(fingers, [0.0], all_joints=True)
    run.hold([0.04])
    rows = run.go(2.0)
    assert run.sim.joints.names == ("open",)
    names = run.sim.joints.others
    mirror = rows[:, 1 + names.index("mirror")]
    assert np.abs(mirror - 2.0 * rows[:, 0] - 0.01).max() < 2e-3
    assert rows[-1, 0] == pytest.approx(0.04, abs=1e-4)


def test_simulation_catches_up_at_most_max_simulated_lag():
    run = Run()
    goal = HOME + 0.2
    run.hold(goal)
    now = 1000.0
    while run.sim.cycle(now).velocities.any() and run.sim.figures().simulated:
        pass
    found = run.sim.figures()
    assert np.abs(run.sim.cycle(now).positions - goal).max() < 1e-3
    assert found.lost == pytest.approx(now - MAX_SIMULATED_LAG)


def test_drive_parameters_and_freeze_apply_to_a_running_arm():
    run = Run()
    given = {"physics": True, "initial_positions": list(HOME)}
    run.sim.change(SimArmParameters().changed({**given, "effort_scale": 0.2}), 0.0)
    assert np.abs(run.go(1.0)[-1] - HOME).max() > 0.1
    run.sim.change(SimArmParameters().changed(given), 0.0)
    assert np.abs(run.go(3.0)[-1] - HOME).max() < 1e-3
    run.hold(HOME + 0.3)
    run.go(0.05)
    run.sim.freeze(True)
    stands = run.go(1.0)[-1]
    assert np.abs(run.go(0.5) - stands).max() < 1e-6
    with pytest.raises(JointValueError, match="7 joint values"):
        run.sim.change(SimArmParameters().changed({"initial_positions": [1.0]}), 0.0)


def test_invalid_physics_parameters_and_masses_are_refused():
    for given, words in (
        ({"physics": True, "joint_names": "a"}, "'physics' needs the links of a robot"),
        ({"scene": "cell.yaml"}, "'scene' needs physics; add --physics"),
    ):
        with pytest.raises(OptionError, match=words):
            SimArmParameters().changed(given)
    with pytest.raises(PhysicsError, match="not read from a URDF"):
        RobotPhysics(RobotModel.from_dh(ROOT / "config" / "wam7_dh.yaml").tree, {})
    for mass, words in (
        (
            '<inertial><mass value="-1"/></inertial>',
            "value of <mass> must be at least 0; got -1",
        ),
        ('<inertial><mass value="1"/><origin xyz="0 nan 0"/></inertial>', "must be finite"),
        ('<inertial><mass value="much"/></inertial>', "must be a number; got 'much'"),
    ):
        robot = RobotModel.from_urdf(HINGE.format(mass=mass, effort=1.0))
        with pytest.raises(DlsIkError, match=words):
            RobotPhysics(robot.tree, {})
