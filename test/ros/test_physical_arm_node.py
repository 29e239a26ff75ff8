# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The node drives an arm with masses that simulates itself in MuJoCo, each in its own process."""

import signal
import subprocess
import sys

import mujoco
import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray
from isolation import SESSION_PROCESSES
from moveit_msgs.msg import CollisionObject
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from ros_client import SOON, Client, NodeProcess, SimArmProcess
from ros_faulted import CONTROLLER, sweep
from ros_scene import apply, box, world
from ros_streamer import HOME, points, positions
from ros_wam import WAM
from ros_watched import ACCELERATION, arguments, pose
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from dls_ik.model.rotations import transform
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.sim_arm.arm import Drive, Path
from dls_ik.ros.sim_arm.physics_model import RobotPhysics, mass_matrix

pytestmark = [pytest.mark.ros, pytest.mark.slow]

SPACE = "physical"
TRAJECTORIES = "joint_trajectory_controller/joint_trajectory"
WALL = transform(translation=WAM.fk(HOME)[:3, 3] + np.array([0.0, 0.11, 0.0]))


def error_bound():
    """How far [rad] the drives are behind a stream without gaps: to accelerate, they need an error.

    The limits of acceleration hold for all joints at once, and each moves the others. A sudden
    acceleration takes a damped drive no farther than a lasting one. A command that comes late finds
    a reference that began to stop, and so changes its velocity v at once, which takes the drive to
    v / (e w). A factor of 2 is for what the joints do to each other beside.
    """
    robot = RobotPhysics(WAM.tree, {})
    built = robot.build()
    data, rows = mujoco.MjData(built.model), []
    for q in HOME + np.random.default_rng(0).uniform(-0.4, 0.4, (100, WAM.n)):
        data.qpos[:] = robot.values(q, built)
        mujoco.mj_forward(built.model, data)
        rows.append(np.abs(mass_matrix(built.model, data)).sum(axis=1))
    rotor = robot.loads.effort / Drive().rotor_acceleration
    w = 2.0 * np.pi * Drive().bandwidth
    stiffness = w**2 * (robot.loads.inertia + rotor)
    by_acceleration = (ACCELERATION * (np.max(rows, axis=0) + rotor) / stiffness).max()
    by_velocity = WAM.velocity.max() / (np.e * w)
    return 2.0 * float(by_acceleration + by_velocity)


class PhysicalRig:
    """An arm with masses, a node, and a client that streams."""

    def __init__(self, **parameters):
        initial = f"initial_positions:={HOME.tolist()}"
        self.arm = SimArmProcess(
            *("-r", f"__ns:=/{SPACE}", "-p", "robot:=wam", "-p", "physics:=true", "-p", initial)
        )
        self.parameters = {**CONTROLLER, "initial_positions": HOME.tolist(), **parameters}
        self.node = NodeProcess(*arguments(SPACE, **self.parameters))
        self.client = Client(SPACE)
        quick = qos_profile_sensor_data
        self.states, self.reports = [], []
        make = self.client.node.create_subscription
        make(JointState, "joint_states", self.states.append, quick)
        make(DiagnosticArray, "/diagnostics", self._hear, 10)
        self.trajectories = self.client.listen(JointTrajectory, TRAJECTORIES, 1000)
        self.t = 0.0

    def __enter__(self):
        self.arm.wait_for_line("ready", "wam_j7")
        self.node.wait_for_line("ready")
        self.client.spin_until(lambda: self.states and self.reports, what="arm and node")
        self.targets = self.client.publisher(type(pose(np.eye(4))), "target_pose", 1)
        return self

    def __exit__(self, *_):
        for each in (self.client, self.node, self.arm):
            each.__exit__()

    def _hear(self, message):
        for status in message.status:
            if status.hardware_id == f"/{SPACE}/sim_arm":
                self.reports.append(status)

    def report(self):
        """The values of a diagnostic that is all of the time from now on."""
        del self.reports[:]
        self.client.spin_until(lambda: len(self.reports) > 1, what="diagnostics")
        return {each.key: each.value for each in self.reports[-1].values}

    def report_of_stream(self):
        """The same, while targets come."""
        del self.reports[:]
        self.stream_until(lambda: len(self.reports) > 2, "diagnostics of the stream")
        return {each.key: each.value for each in self.reports[-1].values}

    def stream_until(self, condition, what, pose_at=sweep):
        """Send targets until something holds."""

        def send():
            self.targets.publish(pose(pose_at(self.t)))
            self.t += 0.04
            self.client.spin_for(0.04)
            return condition()

        self.client.spin_until(send, what=what)

    def follows(self):
        """Stream until the tip went along most of the sweep, to both sides."""
        del self.states[:]

        def is_swept():
            tips = WAM.fk(np.array([positions(s) for s in self.states[::5]] or [HOME]))[:, 1, 3]
            return tips.max() > 0.08 and tips.min() < -0.08

        self.stream_until(is_swept, "the arm going to and fro")

    def contacts(self):
        """How many there were with objects."""
        self.report()
        return _contacts(self.reports[-1])

    def tips(self):
        """Where the tip was along y [m]."""
        return WAM.fk(np.array([positions(s) for s in self.states]))[:, 1, 3]

    def start_again(self, **parameters):
        """Start another node, at rest."""
        self.node.__exit__()
        self.rests()
        self.node = NodeProcess(*arguments(SPACE, **{**self.parameters, **parameters}))
        SESSION_PROCESSES.add(self.node.process.pid)  # the fixture ends this node
        self.node.wait_for_line("ready")
        self.targets = self.client.publisher(type(pose(np.eye(4))), "target_pose", 1)

    def rests(self):
        """Wait until the arm stands; return where."""

        def is_still():
            recent = np.array([positions(s) for s in self.states[-50:]])
            return len(recent) == 50 and np.ptp(recent, axis=0).max() < 1e-6

        del self.states[:]
        self.client.spin_until(is_still, what="the arm at rest")
        return positions(self.states[-1])

    def set_arm(self, **values):
        parameters = [Parameter(name, value=v).to_parameter_msg() for name, v in values.items()]
        request = SetParametersAtomically.Request(parameters=parameters)
        name = "sim_arm/set_parameters_atomically"
        assert self.client.call(SetParametersAtomically, name, request).result.successful

    def wall(self, operation=CollisionObject.ADD):
        """Put a wall beside the tip, for the arm and the node, or take it away."""
        message = CollisionObject(id="wall", operation=operation)
        if operation == CollisionObject.ADD:
            shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.6, 0.02, 0.6])
            message.primitives, message.pose = [shape], pose_from_matrix(WALL)
        publisher = self.client.publisher(CollisionObject, "collision_object")
        self.client.spin_until(lambda: publisher.get_subscription_count() == 2, what="both nodes")
        publisher.publish(message)


def _contacts(report):
    return int({value.key: value.value for value in report.values}["contacts with objects"])


@pytest.fixture(scope="module")
def physical_rig(private_domain):
    with PhysicalRig() as rig:
        yield rig


@pytest.fixture
def rig(physical_rig):
    """The same at rest, with the tip at home."""
    rig = physical_rig
    rig.set_arm(bandwidth=Drive().bandwidth, effort_scale=1.0)
    rig.rests()
    assert rig.client.call(Trigger, "dls_ik/reset", Trigger.Request()).success
    home = WAM.fk(HOME)
    rig.stream_until(
        lambda: np.abs(WAM.fk(positions(rig.states[-1])) - home).max() < 1e-3,
        "the tip at home",
        lambda _: home,
    )
    rig.rests()
    return rig


def test_tracking_error_is_bounded_by_the_drive_bandwidth(rig):
    effort = np.array(rig.states[-1].effort)
    assert 10.0 < abs(effort[1]) < 60.0, "the weight of the arm"
    rig.follows()
    bound = error_bound()
    assert bound < 0.1
    del rig.reports[:]
    rig.stream_until(
        lambda: len(rig.reports) > 2 and 0.0 < tracking_error(rig.reports[-1]) < bound,
        "a report of a stream without gaps",
    )
    values = rig.report_of_stream()
    assert values["contacts with objects"] == values["contacts between links"] == "0"
    rig.set_arm(bandwidth=0.2)
    rig.stream_until(lambda: tracking_error(rig.reports[-1]) > bound, "the bound passed")


def tracking_error(report):
    values = {value.key: value.value for value in report.values}
    return float(values["maximum tracking error [rad or m]"])


def test_insufficient_effort_causes_a_warning_and_a_sagging_arm(rig):
    before = rig.rests()
    rig.set_arm(effort_scale=0.2)

    def is_told():
        return any("effort limit" in each.message and each.level == b"\1" for each in rig.reports)

    rig.client.spin_until(is_told, what="a warning")
    rig.client.spin_until(
        lambda: np.abs(positions(rig.states[-1]) - before).max() > 0.05, what="an arm that sags"
    )


def test_suspended_arm_process_resumes_motion(rig):
    rig.follows()
    rig.arm.process.send_signal(signal.SIGSTOP)
    rig.client.spin_for(1.5)
    del rig.states[:]
    rig.arm.process.send_signal(signal.SIGCONT)
    rig.follows()


def test_stream_avoids_a_wall_added_during_motion_without_contact(rig):
    """Nothing touches, though the arm goes as near as it may; the last test has the other case."""
    rig.wall()
    rig.client.spin_for(0.5)
    del rig.states[:]
    begin = rig.t
    rig.stream_until(lambda: rig.t > begin + 4.0 * np.pi / 2.5, "two periods of the sweep")
    tips = rig.tips()
    assert -0.14 < tips.min() < -0.08, "it follows on the other side"
    assert 0.0 < tips.max() < 0.08, "and waits at the wall"
    assert rig.contacts() == 0
    rig.wall(CollisionObject.REMOVE)
    rig.follows()


def test_killed_node_leaves_the_arm_on_its_last_stop_trajectory(rig):
    rig.follows()
    rig.stream_until(
        lambda: np.abs(rig.trajectories[-1].points[0].velocities).max() > 0.3, "a fast command"
    )
    rig.node.process.send_signal(signal.SIGKILL)
    rig.node.wait_for_end()
    rig.client.spin_for(0.2)
    before = positions(rig.states[-1])
    end = rig.rests()
    times, q, v = points(rig.trajectories[-1])  # now the last has come
    assert v[0].any()
    np.testing.assert_allclose(end, q[-1], atol=1e-4)
    path = Path(times, q, v)
    way = np.array([path.at(t)[0] for t in np.linspace(times[0], times[-1], 2000)])
    bound = error_bound()
    for state in [before, *map(positions, rig.states)]:
        assert np.abs(way - state).max(axis=1).min() < bound
    rig.start_again()
    rig.follows()


def test_without_avoidance_the_arm_runs_into_the_wall_and_contacts_are_counted(rig):
    rig.start_again(stream_avoid_collisions="none")
    rig.wall()
    rig.client.spin_for(0.5)
    del rig.states[:]
    rig.stream_until(lambda: any(_contacts(each) for each in rig.reports), "contacts")
    rig.arm.wait_for_line("WARN", "contact", "wall")
    assert rig.tips().max() < 0.1, "it stopped there"
    count = rig.contacts()
    assert rig.arm.end() == 0
    line = rig.arm.wait_for_line("contacts: ", " with objects", "0 between links")
    assert int(line.partition("contacts: ")[2].split()[0]) >= count > 0


def test_scene_file_is_loaded_and_a_missing_file_ends_the_start(private_domain, tmp_path):
    """A post in the shoulder of the arm; then no file, with the option of the command line."""
    scene = tmp_path / "cell.scene"
    scene.write_text("cell\n* post\n1\nbox\n0.1 0.1 2\n0.4 0.0 0.5\n0 0 0 1\n0 0 0 0\n.\n")
    where = ("-r", "__ns:=/file", "-p", "robot:=wam", "-p", "physics:=true", "-p")
    start = ("-p", f"initial_positions:={HOME.tolist()}")
    with SimArmProcess(*where, f"scene:={scene}", *start) as arm:
        arm.wait_for_line("objects of", "post")
        arm.wait_for_line("contact", "post")
        assert arm.end() == 0
    command = [sys.executable, "-m", SimArmProcess.module, "--physics", "--ros-args", "-p"]
    command += ["robot:=wam", "-p", f"scene:={tmp_path}/none.scene"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SOON, check=False)
    assert done.returncode == 1
    assert "cannot start: cannot read" in done.stderr
    assert "Traceback" not in done.stderr


def test_arm_started_late_requests_the_objects_of_the_node(private_domain, tmp_path):
    """What was published before, beside what only the file of the arm has."""
    file = tmp_path / "floor.scene"
    file.write_text(
        "f\n* floor\n0 0 -1.5\n0 0 0 1\n1\nbox\n1 1 0.1\n0 0 0\n0 0 0 1\n0 0 0 0\n0\n.\n"
    )
    space = ("-r", "__ns:=/later", "-p", "robot:=wam")
    with NodeProcess(*space) as node, Client("/later") as client:
        node.wait_for_line("planning scene built")
        assert apply(client, world(box("shelf", (0.0, 0.0, 2.0))))
        physics = ("-p", "physics:=true", "-p", f"scene:={file}")
        with SimArmProcess(*space, *physics) as arm:
            arm.wait_for_line("scene of /later/get_planning_scene", "floor, shelf")
