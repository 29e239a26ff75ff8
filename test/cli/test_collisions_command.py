# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik collisions``: the same answers as the scene, and SRDFs that can be read again."""

import pytest
from cli_runner import MISSING, document, refusal, run

from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import transform
from dls_ik.scene.srdf import load_srdf

pytest.importorskip("coal")
Q = [0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0]
WORDS = ",".join(map(str, Q))
SHELF = "shelf\n* board\n1\nbox\n0.3 1 0.02\n0.6 0 {}\n0 0 0 1\n0 0 0 0\n.\n"


@pytest.fixture(scope="module")
def scene():
    return PlanningScene(RobotModel.wam())


def test_collisions_output_matches_the_planning_scene(scene, tmp_path):
    far, near = tmp_path / "far.scene", tmp_path / "near.scene"
    far.write_text(SHELF.format(2.0))
    near.write_text(SHELF.format(0.5))
    facts = document("collisions", "wam", "--scene", far, "--q", WORDS, "--samples", 200)
    own = scene.distance(Q)
    assert facts["now"]["closest"]["names"] == [*own.names]
    assert facts["now"]["closest"]["distance"] == pytest.approx(own.distance)
    assert facts["may_touch"] == [[*pair, reason] for pair, reason in sorted(scene.pairs.items())]
    assert facts["objects"] == ["board"]
    facts = document("collisions", "wam", "--scene", near, "--q", WORDS, "--samples", 200)
    board = PlanningScene(scene.robot)
    board.add_box("board", [0.3, 1.0, 0.02], transform(translation=[0.6, 0.0, 0.5]))
    assert facts["now"]["in_collision"] == board.in_collision(Q)
    names = [each["names"] for each in facts["now"]["contacts"]]
    assert names == [[*each.names] for each in board.contacts(Q)]
    share, most = facts["random"]["share"], facts["random"]["most_often"]
    assert share == facts["random"]["colliding"] / 200 > 0.0
    assert most[0]["share_of_colliding"] == max(each["share_of_colliding"] for each in most) <= 1.0
    shown = run("collisions", "wam", "--scene", near, "--q", WORDS, "--samples", 200).stdout
    assert "1: board" in shown
    assert f"{share:.1%} of 200" in shown


def test_written_srdf_can_be_read_back(scene, tmp_path):
    first, second = tmp_path / "a.srdf", tmp_path / "b.srdf"
    run("collisions", "wam", "--samples", 0, "--write-srdf", first)
    srdf = load_srdf(first, scene.robot.tree)
    assert srdf.unknown == ()
    assert dict(srdf.disabled) == scene.pairs
    assert srdf.ends(scene.robot.tree, "arm") == (scene.robot.base, scene.robot.tips)
    kept = first.read_text().replace('name="arm"', 'name="main"').replace("Never", "User")
    first.write_text(kept)
    facts = document("collisions", "wam", "--srdf", first, "--samples", 0, "--write-srdf", second)
    assert facts["random"] is None
    assert {reason for *_, reason in facts["may_touch"]} == {"Adjacent", "User"}
    again = load_srdf(second, scene.robot.tree)
    assert [*again.groups] == ["main"]
    assert dict(again.disabled) == scene.pairs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["wam", "--srdf", "no.srdf"], "neither SRDF text nor an existing file"),
        (["wam", "--scene", "no.scene"], "No such file"),
        (["wam", "--write-srdf", "no/such.srdf"], "does not exist"),
        (["wam", "--q", "1,2"], "expected 7 joint positions"),
        (["config/wam7_dh.yaml"], "has no collision geometry"),
    ],
)
def test_invalid_input_is_refused_with_the_reason(words, message):
    assert message in refusal("collisions", *words)


def test_missing_coal_is_reported_with_the_extra_to_install(monkeypatch):
    monkeypatch.setattr("dls_ik.cli.options.find_spec", lambda name: None)
    assert "pip install 'dls_ik[collision]'" in refusal("collisions", "wam", code=MISSING)
