# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Levels and frozen joints on the page: motion of the session, refusals, the panel in a browser."""

import numpy as np
import pytest
from robots import ROOT
from viewer import pages
from viewer.browser import CLICK

pytest.importorskip("viser")

from dls_ik import (
    CouplingTask,
    FrameTask,
    PlanningScene,
    PostureTask,
    RobotModel,
    SwivelTask,
    Task,
    TaskStack,
)
from dls_ik.errors import LimitsError, OptionError
from dls_ik.model.files import shipped_urdf
from dls_ik.viewer.redundancy import Redundancy, level_names, new_level
from dls_ik.viewer.scene import node_names
from dls_ik.viewer.session import local_session
from dls_ik.viewer.shapes import load_shapes

WAM = RobotModel.wam()
HOME = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
STACK = TaskStack(Task(), SwivelTask(0.3), PostureTask(HOME))


class Run:
    """Session whose clock the test advances."""

    def __init__(self, *arguments, **options):
        self.session, _ = local_session(*arguments, has_presets=False, **options)
        self.time = 0.0

    def step(self, seconds):
        """Advance by a time [s], and return the state of the first arm."""
        for _ in range(round(100 * seconds)):
            views = self.session.step(self.time)
            self.time += 0.01
        return views[0].sample

    @property
    def errors(self):
        return self.session.sources[0].level_errors


@pytest.fixture
def running():
    made = []

    def start(*arguments, **options):
        made.append(Run(*arguments, **options))
        return made[-1]

    yield start
    for run in made:
        run.session.close()


def test_swivel_angle_moves_the_elbow_while_the_tip_stands(running):
    run = running(WAM, ["ctp+sd+svf"], STACK)
    run.step(4.0)
    assert run.errors[1] < 1e-6
    elbow, session = WAM.link_pose("wam_link4", run.session.joint_values)[:3, 3], run.session
    session.set_redundancy(session.redundancy.with_swivel(-0.3))
    errors = [run.step(0.1).position_error for _ in range(40)]
    assert run.errors[1] < 1e-6
    assert max(errors) < 1e-4
    after = WAM.link_pose("wam_link4", session.joint_values)[:3, 3]
    assert np.linalg.norm(after - elbow) > 0.1


def test_order_of_levels_decides_which_is_reached(running):
    run = running(WAM, ["ctp+sd+svf"], STACK)
    first = run.step(4.0) and run.errors
    session = run.session
    session.set_redundancy(session.redundancy.moved(0, 1))
    assert [type(level[0]) for level in session.redundancy.levels] == [PostureTask, SwivelTask]
    run.step(6.0)
    assert first[1] < 1e-6 < run.errors[2]
    assert run.errors[1] < first[2]


def test_frozen_joints_do_not_move_and_are_freed_again(running):
    run = running(WAM, ["ctp+sd+svf"], STACK, frozen={"wam_j3": 0.2})
    moved = WAM.fk(run.step(0.1).q)
    moved[:3, 3] += (0.0, 0.1, -0.1)
    run.session.drag_target(moved)
    sample = run.step(4.0)
    assert sample.q[2] == 0.2
    assert sample.position_error < 1e-5
    run.session.set_redundancy(run.session.redundancy.with_frozen("wam_j3", False))
    assert abs(run.step(2.0).q[2] - 0.2) > 0.01


def test_every_arm_has_the_levels_also_with_another_method_or_bare_steps(running):
    run = running(WAM, ["ctp+sd+svf"], STACK)
    session = run.session
    session.set_methods(["svf", "sdls+clamp"])
    assert session.sources[1].redundancy == session.redundancy
    run.step(4.0)
    assert [source.level_errors[1] < 1e-6 for source in session.sources] == [True, True]
    session.set_bare(True)
    run.step(0.1)
    assert run.errors == ()
    session.set_redundancy(session.redundancy.with_swivel(-0.2))
    session.set_bare(False)
    run.step(5.0)
    assert run.errors[1] < 1e-6
    assert session.redundancy.swivel == -0.2


def test_posture_is_followed_by_two_tips(running):
    torso = RobotModel.from_urdf(
        ROOT / "urdf" / "two_wams.urdf", tip=("left_wam_tip", "right_wam_tip")
    )
    start = dict.fromkeys(torso.joint_names, 0.1)
    run = running(torso, ["svf+sd"], TaskStack(Task.position_only(), PostureTask(start)))
    before = run.step(0.1) and run.errors[1]
    run.step(4.0)
    assert run.errors[1] < 0.9 * before
    names = torso.joint_names
    wanted = run.session.redundancy.with_posture({names[0]: 0.5}, names)
    run.session.set_redundancy(wanted)
    assert run.session.redundancy.posture(names)[names[0]] == 0.5
    assert run.step(3.0).position_error < 1e-4


def test_frozen_joints_stay_while_the_arm_moves_around_an_obstacle(running):
    run = running(WAM, [], None, scene=PlanningScene(WAM), frozen={"wam_j3": 0.1})
    arm = run.session.sources[0]._arm_at(run.step(0.1).q)
    np.testing.assert_array_equal((arm.lower[2], arm.upper[2]), (0.1, 0.1))
    assert (arm.upper - arm.lower)[[0, 1, 3, 4, 5, 6]].min() > 1.0


def test_refused_changes_change_nothing(running):
    run = running(WAM, ["ctp+sd+svf", "svf"], STACK)
    session, before = run.session, run.session.redundancy
    with pytest.raises(OptionError, match="unknown joint 'elbow'"):
        session.set_redundancy(before.with_level(CouplingTask({"elbow": 1.0})))
    with pytest.raises(OptionError, match="all 7 joints are frozen"):
        session.set_redundancy(before._replace(frozen=WAM.joint_names))
    with pytest.raises(OptionError, match="this level exists already"):
        before.with_level(SwivelTask(1.0))
    assert all(source.redundancy == before for source in session.sources)
    assert run.step(0.1).state != "FAULT"


def test_stacks_and_joints_that_do_not_fit_are_refused():
    grip = FrameTask("wam_link4", (0, 0, 0), Task.position_only())
    for stack in (TaskStack(grip, Task()), TaskStack([Task(), grip])):
        with pytest.raises(OptionError, match="must be the task of the tip alone; got"):
            local_session(WAM, (), stack, has_presets=False)
    with pytest.raises(OptionError, match="must have 7 positions"):
        local_session(WAM, (), TaskStack(Task(), PostureTask(np.zeros(6))), has_presets=False)
    with pytest.raises(LimitsError, match="wam_j3"):
        local_session(WAM, (), has_presets=False, frozen={"wam_j3": 9.0})


def test_levels_that_can_be_added_suit_the_robot():
    planar = RobotModel.from_name("planar_2r")
    assert level_names(planar) == ("posture", "manipulability", "limits", "centring")
    assert level_names(WAM)[0] == "swivel angle"
    for name in level_names(WAM):
        levels = Redundancy().with_level(new_level(name, WAM.named(HOME))).levels
        assert len(levels) == 1
    assert Redundancy().with_tips(None) is None
    assert Redundancy().moved(0, 1) == Redundancy()


@pytest.mark.slow
def test_panel_reorders_levels_moves_the_elbow_and_freezes_a_joint(open_page):
    links = tuple(dict.fromkeys(piece.link for piece in load_shapes(shipped_urdf("wam")).pieces))
    forearm = node_names("/arm", links)["wam_link4"]
    arguments = ("--swivel", 0.3, "--posture", "wam_j1=0", "--frozen", "wam_j5")
    with pages.view("wam", *arguments) as process, open_page(process.url) as page:

        def click(role, name):
            page.page.get_by_role(role, name=name, exact=True).first.evaluate(CLICK)

        def unfold(name):
            page.page.get_by_text(name, exact=True).first.evaluate(CLICK)

        page.wait_for_text("at the target")
        unfold("Redundancy")
        page.wait_for_text("2. swivel angle")
        click("button", "Down")
        page.wait_for_text("2. posture")
        page.wait_for_text("3. swivel angle")
        click("button", "Remove")
        page.wait_for_text("2. swivel angle")
        unfold("Frozen joints")
        frozen = page.page.locator("input[type=checkbox]:visible:checked")
        page.wait_until(lambda: frozen.count() == 1, "the joint of --frozen to be checked")
        frozen.first.evaluate(CLICK)
        page.wait_until(lambda: not frozen.count(), "the joint to be free")
        page.wait_for_node(forearm)
        before = page.settled(forearm)[:3, 3]
        field = page.page.locator(".mantine-NumberInput-input:visible").last
        field.fill("-40")
        field.press("Tab")
        moved = lambda: np.linalg.norm(page.position(forearm) - before) > 0.1  # noqa: E731
        page.wait_until(moved, "the elbow to move")
        page.screenshot("viewer-redundancy")
    assert process.returncode == 130, process.complained
