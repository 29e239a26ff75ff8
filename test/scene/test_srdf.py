# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""SRDFs are read with MoveIt's meaning, and written so that MoveIt reads the same."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from robots import joint, urdf

from dls_ik.errors import SceneError
from dls_ik.model import load_urdf
from dls_ik.scene.srdf import (
    EndEffector,
    JointGroup,
    Srdf,
    VirtualJoint,
    load_srdf,
    pair_of,
    srdf_text,
)

# A rotating torso with a fixed mount and two joints on either side, and a hand on the left
JOINTS = [
    joint("turn", parent="base", child="torso"),
    *(
        each
        for side in ("left", "right")
        for each in (
            joint(f"{side}_mount", "fixed", "torso", f"{side}_0", ""),
            joint(f"{side}_1", parent=f"{side}_0", child=f"{side}_a"),
            joint(f"{side}_2", parent=f"{side}_a", child=f"{side}_b"),
            joint(f"{side}_end", "fixed", f"{side}_b", f"{side}_tip", ""),
        )
    ),
    joint("grip", "prismatic", "left_tip", "finger"),
    joint("camera", "fixed", "left_b", "lens", ""),
]
LINKS = "base torso left_0 left_a left_b left_tip right_0 right_a right_b right_tip finger lens"
TREE = load_urdf(urdf(LINKS, *JOINTS))
GROUPS = """
  <group name="left"><chain base_link="left_0" tip_link="left_tip"/></group>
  <group name="right"><joint name="right_1"/><joint name="right_2"/></group>
  <group name="right_to_tip"><link name="right_tip"/><group name="right"/></group>
  <group name="both"><group name="left"/><group name="right"/></group>
  <group name="all"><joint name="turn"/><group name="both"/><link name="lens"/></group>
  <group name="gap"><joint name="left_1"/><joint name="grip"/></group>
  <group name="still"><link name="lens"/><link name="base"/></group>
  <group name="hand"><joint name="grip"/></group>
  <end_effector name="h" group="hand" parent_link="left_tip" parent_group="left"/>
"""


def srdf(content, tree=TREE):
    return load_srdf(f'<robot name="test">{content}</robot>', tree)


@pytest.mark.parametrize(
    ("group", "base", "tips"),
    [
        ("left", "left_0", ("left_tip",)),
        ("right", "right_0", ("right_b",)),
        ("right_to_tip", "right_0", ("right_tip",)),
        ("both", "torso", ("left_tip", "right_b")),
        ("all", "base", ("left_tip", "right_b")),  # the tip is the link of the hand, not the lens
        ("hand", "left_tip", ("finger",)),
    ],
)
def test_groups_have_a_base_and_tips(group, base, tips):
    assert srdf(GROUPS).ends(TREE, group) == (base, tips)


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("gap", "'gap' is not connected: joint 'left_2', which moves 'grip', is not in the group"),
        ("still", "has no moving joints"),
        ("lefd", "did you mean left?; known groups: left, right"),
    ],
)
def test_groups_without_a_chain_are_refused(group, message):
    with pytest.raises(SceneError) as caught:
        srdf(GROUPS).ends(TREE, group)
    assert message in str(caught.value)


def test_joints_of_a_group_are_in_the_order_of_the_tree():
    joints = srdf(GROUPS).group_joints(TREE, "all")
    assert joints == ("turn", "left_1", "left_2", "left_end", "camera", "right_1", "right_2")


def test_named_poses_are_selected_by_name_and_group():
    given = srdf(
        GROUPS
        + '<virtual_joint name="v" type="floating" parent_frame="world" child_link="base"/>'
        + '<group_state name="home" group="left"><joint name="left_1" value="0.5"/>'
        + '<joint name="v" value="0 0 1 0 0 0 1"/><joint name="left_2" value=" -1 "/></group_state>'
        + '<group_state name="home" group="right"><joint name="right_1" value="1"/></group_state>'
        + '<group_state name="up" group="right"><joint name="right_1" value="2"/></group_state>'
    )
    assert given.state("home", "left") == {"left_1": 0.5, "left_2": -1.0}
    assert given.state("up") == {"right_1": 2.0}
    with pytest.raises(SceneError, match="'home'; choose one of: left, right"):
        given.state("home")
    with pytest.raises(SceneError, match=r"'hone'.*home"):
        given.state("hone", "left")


def test_allowed_pairs_combine_enabled_and_disabled_collisions():
    given = srdf(
        '<disable_default_collisions link="lens"/>'
        '<enable_collisions link1="lens" link2="base"/>'
        '<enable_collisions link1="torso" link2="lens"/>'
        '<disable_collisions link1="torso" link2="lens" reason="User"/>'
        '<disable_collisions link1="torso" link2="base" reason="Adjacent"/>'
        '<disable_collisions link1="torso" link2="finger"/>'
    )
    assert given.allowed_pairs(["base", "torso", "lens", "left_a"]) == {
        ("base", "torso"): "Adjacent",
        ("lens", "torso"): "User",  # disable_collisions has priority, as in MoveIt
        ("left_a", "lens"): "Default",
    }


def test_unknown_names_are_left_out_and_named(caplog):
    given = load_srdf(
        '<robot name="other"><group name="g"><link name="base"/><link name="none"/>'
        '<group name="missing"/></group><disable_collisions link1="base" link2="gone" reason="x"/>'
        '<group_state name="s" group="g"><joint name="no" value="1"/></group_state>'
        '<passive_joint name="nothing"/><end_effector name="e" group="x" parent_link="base"/>'
        "</robot>",
        TREE,
    )
    words = " ".join(given.unknown)
    for name in ("'other'", "'none'", "'missing'", "'gone'", "'no'", "'nothing'", "group 'x'"):
        assert name in words
    assert given.groups["g"] == ((), (), ("base",), ())
    assert not given.disabled
    assert "SRDF of other" in caplog.text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<group/>", "line 2: <group> has no attribute 'name'"),
        ('<group name="a\u0085b"/>', "non-printable characters"),
        ('<group name="a"><group name="b"/></group><group name="b"><group name="a"/></group>',
         "groups contain each other: a, b, a"),
        ('<group name="a"><chain base_link="torso" tip_link="base"/></group>',
         "there is no chain from 'torso' down to 'base'"),
        ('<group name="a"/><group_state name="s" group="a"><joint name="turn" value="x"/>'
         "</group_state>", "value of <joint> must be a number"),
        ('<virtual_joint name="v" type="ball" parent_frame="w" child_link="base"/>', "'ball'"),
        ('<disable_collisions link1="base"/>', "has no attribute 'link2'"),
        ('<link_sphere_approximation link="base"><sphere center="0 0"/>'
"</link_sphere_approximation>",
         "center of <sphere> must be 3 numbers"),
        ("<a>" * 200, "nested deeper than"),
        ("<xacro:include/>", "with xacro first"),
        ("&e;", "line 2"),
        ("<!-- " + "x" * 5_000_000, "larger than"),
    ],
)  # fmt: skip
def test_broken_descriptions_are_refused_with_the_line(content, message):
    start = time.process_time()
    with pytest.raises(SceneError) as caught:
        load_srdf(f'<robot name="test">\n{content}</robot>', TREE)
    assert message in str(caught.value)
    assert time.process_time() - start < 5.0


def test_missing_files_and_doctype_declarations_are_refused(tmp_path):
    with pytest.raises(SceneError, match="existing file"):
        load_srdf(tmp_path / "none.srdf", TREE)
    path = tmp_path / "a.srdf"
    path.write_text('<!DOCTYPE robot [<!ENTITY e "x">]><robot name="&e;"/>')
    with pytest.raises(SceneError, match="declarations"):
        load_srdf(path, TREE)


LINK, JOINT = st.sampled_from(TREE.links), st.sampled_from(sorted(TREE.joint))
NAME = st.text("ab<&\"'>_ ", min_size=1, max_size=6).map(str.strip).filter(bool)
NUMBER = st.floats(-1e6, 1e6)
PAIRS = st.dictionaries(st.tuples(LINK, LINK).map(lambda p: pair_of(*p)), NAME, max_size=5)


@settings(max_examples=60)
@given(st.data())
def test_written_srdf_is_read_back_equal(data):
    few = lambda of: st.lists(of, max_size=3, unique=True).map(tuple)  # noqa: E731
    joints = data.draw(st.dictionaries(NAME, few(JOINT), max_size=3))
    ends = st.sampled_from([("base", "left_a"), ("torso", "finger"), ("lens", "lens")])
    groups = {
        name: JointGroup(data.draw(few(ends)), each, data.draw(few(LINK)))
        for name, each in joints.items()
    }
    groups |= {f"all {name}": JointGroup(groups=(name,)) for name in joints}
    values = st.dictionaries(JOINT, st.tuples(NUMBER), max_size=3)
    written = Srdf(
        name="test",
        groups=groups,
        states={(name, data.draw(NAME)): data.draw(values) for name in groups},
        end_effectors={"e": EndEffector(next(iter(groups)), data.draw(LINK))} if groups else {},
        virtual_joints={"v": VirtualJoint("planar", data.draw(NAME), "base")},
        passive_joints=data.draw(few(JOINT)),
        joint_properties=((data.draw(JOINT), data.draw(NAME), "3"),),
        disabled=data.draw(PAIRS),
        enabled=frozenset(data.draw(PAIRS)),
        disabled_by_default=data.draw(few(LINK)),
        spheres=data.draw(
            st.dictionaries(LINK, few(st.tuples(NUMBER, NUMBER, NUMBER, NUMBER)), max_size=2)
        ),
    )
    read = load_srdf(srdf_text(written), TREE)
    assert read.unknown == ()
    for name in Srdf.__dataclass_fields__:
        assert getattr(read, name) == getattr(written, name), name


def test_invalid_file_is_named_in_the_error(tmp_path):
    file = tmp_path / "arm.srdf"
    file.write_text("<robot><group/></robot>")
    with pytest.raises(SceneError, match="arm"):
        load_srdf(file, TREE)
