# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of scenes: mesh files, collision geometry, SRDF, messages and files."""

import copy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik.errors import DlsIkError
from dls_ik.model import load_urdf
from dls_ik.scene.formats import read_scene, scene_text
from dls_ik.scene.operations import AddObject, SceneChange
from dls_ik.scene.shapes import Body, Mesh, link_bodies
from dls_ik.scene.sphere_fit import SURFACE_LEAVES, fit_spheres
from dls_ik.scene.srdf import load_srdf, srdf_text
from fuzz.guard import refusals, require
from fuzz.hard_meshes import KINDS, points_on
from fuzz.source import Source, anything
from fuzz.targets.robots import NUMBERS, YAML_TOKENS, robot_text, with_tokens

FOLDER = Path(tempfile.mkdtemp(prefix="dls_ik_fuzz_"))
FINITE = 1e7  # [m] bound on all that is read

# Mesh files, and the URDFs that name them

COLLADA = (
    "<COLLADA>", "<asset><unit meter='0.1'/></asset>",
    "<library_geometries><geometry id='g'><mesh>",
    "<source id='s'><float_array>0 0 0 1 0 0 0 1 0 0 0 1</float_array><technique_common>"
    "<accessor count='4' stride='3'/></technique_common></source>",
    "<vertices id='v'><input semantic='POSITION' source='#s'/></vertices>",
    "<triangles><input semantic='VERTEX' source='#v' offset='0'/><p>0 1 2 0 2 3</p></triangles>",
    "<polylist><input semantic='VERTEX' source='#v' offset='1'/><vcount>3</vcount>"
    "<p>0 0 0 1 0 2</p></polylist>",
    "</mesh></geometry></library_geometries>", "<library_nodes><node id='n'>",
    "<translate>0 0 1</translate>", "<rotate>0 0 1 90</rotate>", "<scale>1 1 -1</scale>",
    "<matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix>", "<instance_geometry url='#g'/>",
    "</node></library_nodes>", "<library_visual_scenes><visual_scene id='w'><node>",
    "<instance_node url='#n'/>", "<instance_geometry url='#g'/>",
    "</node></visual_scene></library_visual_scenes>",
    "<scene><instance_visual_scene url='#w'/></scene>", "</COLLADA>",
)  # fmt: skip
TEXTS = {
    ".stl": (
        b"solid a\n", b"facet normal 0 0 1\nouter loop\n", b"vertex 0 0 0\n", b"vertex 1 0 0\n",
        b"vertex 0 1 0\n", b"endloop\nendfacet\n", b"endsolid a\n", b"x" * 80, b"\1\0\0\0",
        b"\0" * 50, b"\0\0\x80\x3f" * 12 + b"\0\0", b"nan ", b"1e400 ",
    ),
    ".obj": (
        b"v 0 0 0\n", b"v 1 0 0\n", b"v 0 1 0\n", b"f 1 2 3\n", b"f -1 -2 -3\n", b"f 1//1 2/2 3\n",
        b"f 1 2 3 1 2\n", b"\\\n", b"v nan 0 0\n", b"f 99999999999999999999 1 2\n", b"o x\n", b"f ",
    ),
    ".dae": tuple(each.encode() for each in COLLADA),
}  # fmt: skip


def fuzz_meshes(source: Source) -> None:
    """Read a mesh, as bytes or as COLLADA with missing, repeated and changed elements."""
    suffix = source.pick((*TEXTS, ".dae"))
    path = FOLDER / f"mesh{suffix}"
    scale = " ".join(source.pick(("1", "1", "-1", *NUMBERS)) for _ in range(3))
    if suffix == ".dae" and not source.one_in(4):
        path.write_bytes(_collada(source).encode("utf-8", "replace"))
    else:
        path.write_bytes(with_tokens(source.rest(), TEXTS[suffix]))
    mesh = f'<mesh filename="{path}" scale="{scale}"/>'
    text = f'<robot name="r"><link name="a"><collision><geometry>{mesh}</geometry></collision>'
    with refusals(in_one_line=True):
        for body in link_bodies(f"{text}</link></robot>", [FOLDER]).values():
            for shape, _ in body.parts:
                require(isinstance(shape, Mesh), "not a mesh", shape)
                _require_sound(shape)


def _collada(source: Source) -> str:
    parts = []
    for part in COLLADA:
        copies = source.pick((0, 2)) if source.one_in(12) else 1
        for _ in range(copies):
            words = part.split(" ")
            if source.one_in(6):
                given = (*NUMBERS, "#g", "#n", "url='#n'", "count='9'", "offset='7'")
                words[source.below(len(words))] = source.pick(given)
            parts.append(" ".join(words))
    return "\n".join(parts)


def _require_sound(mesh: Mesh) -> None:
    require((np.abs(mesh.vertices) < FINITE).all(), "vertices not finite")
    corners = mesh.triangles
    require(corners.min() >= 0 and corners.max() < len(mesh.vertices), "no such vertex")
    require(mesh.is_watertight in (True, False), "neither open nor closed")


def fuzz_fits(source: Source) -> None:
    """Fit spheres to a hard mesh; require that a bounded number of spheres contains it."""
    rng = np.random.default_rng(source.below(65536))
    count, leaves = 1 + source.below(300), 1 + source.below(64)
    with refusals(in_one_line=True):
        mesh = source.pick(tuple(KINDS.values()))(rng, count)
        scale = np.array([10.0 ** (3.0 * source.unit()) for _ in range(3)])
        mesh = Mesh(mesh.vertices * scale, mesh.triangles)
        tree = fit_spheres(mesh, max_leaves=leaves)
        leaf = tree.node[tree.child < 0]
        require(len(leaf) <= SURFACE_LEAVES * leaves, "too many leaves", len(leaf))
        require(np.isfinite(leaf[:, :4]).all(), "spheres not finite")
        away = points_on(mesh, rng, 200)[:, None] - leaf[:, :3]
        gaps = np.linalg.norm(away, axis=2) - leaf[:, 3]
        require(gaps.min(axis=1).max() <= 1e-9, "a point outside all spheres", gaps.min(1).max())


SHAPES = (
    "<box size='{} {} {}'/>", "<sphere radius='{}'/>", "<cylinder radius='{}' length='{}'/>",
    "<capsule radius='{}' length='{}'/>", "<mesh filename='{}.stl'/>", "<x/>", "",
)  # fmt: skip


# SRDF

TREE = load_urdf(
    '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>'
    '<joint name="i" type="continuous"><parent link="a"/><child link="b"/></joint>'
    '<joint name="j" type="continuous"><parent link="b"/><child link="c"/></joint></robot>'
)
SRDF_TAGS = (
    "<group name='{}'>", "</group>", "<chain base_link='{}' tip_link='{}'/>", "<joint name='{}'/>",
    "<link name='{}'/>", "<group name='{}'/>", "<group_state name='{}' group='{}'>",
    "</group_state>", "<joint name='{}' value='1'/>", "<joint name='{}' value='1 2 x'/>",
    "<end_effector name='{}' group='{}' parent_link='{}'/>", "<passive_joint name='{}'/>",
    "<virtual_joint name='{}' type='fixed' parent_frame='{}' child_link='{}'/>",
    "<disable_collisions link1='{}' link2='{}' reason='{}'/>",
    "<enable_collisions link1='{}' link2='{}'/>", "<disable_default_collisions link='{}'/>",
    "<link_sphere_approximation link='{}'>", "<sphere center='0 0 0' radius='1'/>",
    "</link_sphere_approximation>", "<joint_property joint_name='{}' property_name='{}'/>", "<x>",
)  # fmt: skip


def fuzz_srdf(source: Source) -> None:
    """Read an SRDF, query its groups and poses, write it and read it back."""
    words = ["<robot name='r'>"]
    for _ in range(source.below(24)):
        tag = source.pick(SRDF_TAGS)
        names = [source.pick(("a", "b", "c", "i", "j", "g", "h", "x")) for _ in range(3)]
        words.append(tag.format(*names))
    words.append(source.word() if source.one_in(8) else "")
    with refusals(in_one_line=True):
        srdf = load_srdf("\n".join([*words, "</robot>"]), TREE)
        again = load_srdf(srdf_text(srdf), TREE)
        require(again.groups == srdf.groups and again.states == srdf.states, "changed", again)
        require(again.allowed_pairs("abc") == srdf.allowed_pairs("abc"), "pairs changed", again)
        for _, name in srdf.states:
            try:
                srdf.state(name)
            except DlsIkError:  # noqa: PERF203  of several groups
                continue
        for group in srdf.groups:
            with refusals(in_one_line=True):
                base, tips = srdf.ends(TREE, group)
                require(base in TREE.links and tips, "ends", base, tips)


# Messages and files

SCENE: dict[str, Any] = {
    "is_diff": False,
    "robot_state": {
        "joint_state": {"name": ["j"], "position": [0.5]},
        "multi_dof_joint_state": {
            "joint_names": ["v"], "transforms": [{"rotation": [0, 0, 0, 1]}],
        },
        "attached_collision_objects": [
            {
                "link_name": "a",
                "object": {"id": "o", "primitives": [{"type": 2, "dimensions": [1]}]},
            },
        ],
    },
    "fixed_frame_transforms": [{"child_frame_id": "f", "transform": {"translation": [0, 0, 1]}}],
    "allowed_collision_matrix": {
        "entry_names": ["a", "b"],
        "entry_values": [[False, True], {"enabled": [True, False]}],
        "default_entry_names": ["c"],
        "default_entry_values": [True],
    },
    "link_padding": [{"link_name": "a", "padding": 0.1}],
    "world": {
        "collision_objects": [
            {
                "id": "w",
                "operation": 0,
                "header": {"frame_id": "f"},
                "pose": {"position": {"x": 1.0}, "orientation": {"w": 1.0}},
                "primitives": [
                    {"type": 1, "dimensions": [1, 2, 3]},
                    {"type": "cone", "dimensions": [1, 2]},
                    {"type": 5, "dimensions": [1], "polygon": {"points": [[0, 0, 0], [1, 0, 0],
                                                                          [0, 1, 0]]}},
                ],
                "primitive_poses": [{"position": [1, 2, 3]}],
                "meshes": [
                    {"vertices": [[0, 0, 0], [1, 0, 0], {"y": 1}], "triangles": [[0, 1, 2]]},
                ],
                "planes": [{"coef": [0, 0, 1, 2]}],
                "subframe_names": ["s"],
                "subframe_poses": [{}],
            }
        ],
        "octomap": {"octomap": {"data": []}},
    },
}  # fmt: skip
SCENE_TOKENS = (
    b"name\n", b"* a\n", b"1\n", b"2\n", b"box\n", b"sphere\n", b"cylinder\n", b"cone\n", b"mesh\n",
    b"plane\n", b"1 2 3\n", b"0.5 1\n", b"3 1\n0 0 0\n1 0 0\n0 1 0\n0 1 2\n", b"0 0 0\n0 0 0 1\n",
    b"0 0 0 0\n", b"0\n", b".\n", b"nan 0 0\n", b"1e400\n", b"id: a\n", b"primitives:\n",
    b"- {type: 1, dimensions: [1, 2, 3]}\n", b"world: {}\n", b"is_diff: true\n",
)  # fmt: skip


def fuzz_scenes(source: Source) -> None:
    """Read a scene, a changed message or text, and write its objects."""
    kind = source.below(4)
    given: Any = copy.deepcopy(SCENE)
    if kind == 3:
        tokens = SCENE_TOKENS + YAML_TOKENS
        given = "x\n" + with_tokens(source.rest(), tokens).decode("utf-8", "replace")
    else:
        for _ in range(source.below(4)):
            _change(source, given)
        given = anything(source) if source.one_in(24) else given
        if isinstance(given, str) and "\n" not in given:
            return  # a path
    with refusals(in_one_line=True):
        _require_usable(read_scene(given))


def _change(source: Source, given: Any) -> None:
    """Change a value somewhere in nested mappings and lists."""
    while True:
        keys = [*given] if isinstance(given, dict) else [*range(len(given))]
        if not keys:
            return
        key = source.pick(keys)
        inner = given[key]
        if isinstance(inner, (dict, list)) and inner and not source.one_in(6):
            given = inner
            continue
        if isinstance(given, dict) and source.one_in(6):
            del given[key]
        else:
            given[key] = source.number() if source.below(2) else anything(source)
        return


def _require_usable(change: SceneChange) -> None:
    objects = {}
    for each in change.operations:
        if isinstance(each, AddObject):
            require(np.isfinite(each.T).all(), "a pose that is not finite", each.T)
            objects[each.name] = (Body(each.name, each.parts), each.T)
            for shape, T in each.parts:
                require(np.isfinite(T).all(), "a pose that is not finite", T)
                if isinstance(shape, Mesh):
                    _require_sound(shape)
    names = [name for name in objects if name == " ".join(name.split()) != ""]
    kept = {name: objects[name] for name in names}
    read = read_scene(scene_text(kept)).operations[1:]
    require([each.name for each in read] == [*kept], "other objects are read back", read)


def fuzz_geometry(source: Source) -> None:
    """Read the collision geometry of a robot with defects."""
    parts = []
    for _ in range(source.below(4)):
        numbers = [source.pick(("1", "0.5", *NUMBERS)) for _ in range(6)]
        origin = "<origin xyz='{} {} {}' rpy='{} {} {}'/>".format(*numbers)
        shape = source.pick(SHAPES).format(*numbers)
        parts.append(f"<collision>{origin}<geometry>{shape}</geometry></collision>")
    text = robot_text(source).replace("/>", f">{''.join(parts)}</link>", 1)
    with refusals(in_one_line=True):
        for body in link_bodies(text).values():
            for _, T in body.parts:
                require((np.abs(T) < FINITE).all(), "a pose that is not finite", T)
