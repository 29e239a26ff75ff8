# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Check of configurations by Pinocchio: collisions and tip poses.

``python -m benchmarks.pinocchio_check`` reads cases as JSON and answers in JSON. It runs under any
Python that has Pinocchio with coal, without dls_ik: Pinocchio reads the URDF and its meshes itself,
and the objects come unchanged from the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from dls_ik import PlanningScene
    from dls_ik.core.types import Array

ROOT = Path(__file__).resolve().parents[1]
RANDOM = 100  # configurations in the first scene of each group, so that a check can fail
LIMIT = 1800.0  # [s]


class PinocchioCheck:
    """Groups of configurations for one run of another process.

    Args:
        urdf: File of the robot; ``package://`` refers to its folder and the folder above.
        python: Python that has Pinocchio.
    """

    def __init__(self, urdf: Path, python: str) -> None:
        self._urdf, self._python = urdf.resolve(), python
        self._cases: list[dict[str, Any]] = []
        self._tips: list[Array] = []

    def add(
        self, group: str, scene: PlanningScene, file: Path, values: dict[str, float], q: Array
    ) -> None:
        """Add configurations (b, n) in a scene that was read from a file.

        Args:
            values: Positions of the other joints [rad or m].
        """
        from dls_ik.scene.formats import read_yaml

        (content,) = read_yaml(file.read_text(encoding="utf-8"))
        robot = scene.robot
        is_first = all(case["group"] != group for case in self._cases)
        drawn = robot.random(RANDOM, rng=np.random.default_rng(0)) if is_first else q[:0]
        case = {
            "group": group,
            "objects": content["world"]["collision_objects"],
            "pairs": sorted(set(scene.snapshot.names)),
            "values": values,
            "joints": robot.joint_names,
            "ends": (robot.base, robot.tip),
            "q": q.tolist(),
            "random": drawn.tolist(),
        }
        self._cases.append(case)
        self._tips.append(robot.fk(q))

    def rows(self) -> list[list[Any]]:
        """Return group, configurations, those in collision, tip off [m], random ones in collision.

        Raises:
            DlsIkError: If Pinocchio is missing, or cannot read the robot.
        """
        from dls_ik import DlsIkError

        command = [self._python, "-m", "benchmarks.pinocchio_check"]
        text = json.dumps({"urdf": str(self._urdf), "cases": self._cases})
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, cwd=ROOT, timeout=LIMIT
        )
        if done.returncode:
            why = (done.stderr.strip().splitlines() or ["no word"])[-1]
            raise DlsIkError(f"no check by Pinocchio with {self._python} (--peers): {why}")
        found: dict[str, list[Any]] = {}
        for case, tips, (hits, poses, drawn) in zip(
            self._cases, self._tips, json.loads(done.stdout), strict=True
        ):
            row = found.setdefault(case["group"], [case["group"], 0, 0, 0.0, 0])
            row[1] += len(hits)
            row[2] += sum(hits)
            off = np.abs(np.array(poses).reshape(-1, 4, 4) - tips).max(initial=0.0)
            row[3], row[4] = max(row[3], float(off)), row[4] + sum(drawn)
        return list(found.values())


# The other process


def _shape(primitive: dict[str, Any]) -> Any:
    import coal

    kind, size = primitive["type"], primitive["dimensions"]
    number = {1: "box", 2: "sphere", 3: "cylinder"}.get(kind, kind)
    if number == "box":
        return coal.Box(*size)
    if number == "sphere":
        return coal.Sphere(size[0])
    if number == "cylinder":
        return coal.Cylinder(size[1], size[0])
    raise ValueError(f"an object has a shape {kind!r}; box, sphere and cylinder are checked")


def _obj(path: Path, scale: Any) -> Any:
    """Return the triangles of an OBJ file; Pinocchio 4.1 adds triangles of its own."""
    import coal

    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line]
    vertices = [[float(x) for x in words[1:4]] for words in lines if words[0] == "v"]
    corners = [[int(x.split("/")[0]) - 1 for x in words[1:]] for words in lines if words[0] == "f"]
    triangles = [[face[0], *face[i : i + 2]] for face in corners for i in range(1, len(face) - 1)]
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(triangles), len(vertices))
    mesh.addVertices(np.array(vertices) * np.asarray(scale))
    mesh.addTriangles(np.array(triangles, np.int64))
    mesh.endModel()
    return mesh


def _pose(fields: dict[str, Any] | None) -> Any:
    import pinocchio as pin

    if not fields:
        return pin.SE3.Identity()

    def numbers(given: Any, names: str) -> list[float]:
        return [given[k] for k in names] if isinstance(given, dict) else given

    x, y, z, w = numbers(fields["orientation"], "xyzw")
    place = np.array(numbers(fields["position"], "xyz"), float)
    turn = pin.Quaternion(float(w), float(x), float(y), float(z)).normalized()
    return pin.SE3(turn.matrix(), place)


def _answers(urdf: str, cases: list[dict[str, Any]]) -> list[Any]:
    import pinocchio as pin

    model = pin.buildModelFromUrdf(urdf)
    folder = Path(urdf).parent
    folders = [str(folder), str(folder.parent)]
    robot = pin.buildGeomFromUrdf(model, urdf, pin.GeometryType.COLLISION, package_dirs=folders)
    own: dict[str, list[int]] = {}
    for i, each in enumerate(robot.geometryObjects):
        if each.meshPath.lower().endswith(".obj"):
            each.geometry = _obj(Path(each.meshPath), each.meshScale)
        own.setdefault(model.frames[each.parentFrame].name, []).append(i)
    return [_answer(model, robot.copy(), own, case) for case in cases]


def _answer(model: Any, shapes: Any, own: dict[str, list[int]], case: dict[str, Any]) -> Any:
    import pinocchio as pin

    bodies = dict(own)
    for thing in case["objects"]:
        name, place = thing["id"], _pose(thing.get("pose"))
        if thing.get("meshes") or thing.get("planes"):
            raise ValueError(f"object {name!r} has meshes or planes, which are not checked")
        parts = zip(thing["primitives"], thing["primitive_poses"], strict=True)
        bodies[name] = [
            shapes.addGeometryObject(
                pin.GeometryObject(f"{name} {i}", 0, place * _pose(pose), _shape(primitive))
            )
            for i, (primitive, pose) in enumerate(parts)
        ]
    for a, b in case["pairs"]:
        for i in bodies[a]:
            for j in bodies[b]:
                one, other = shapes.geometryObjects[i], shapes.geometryObjects[j]
                if one.parentJoint != other.parentJoint:
                    shapes.addCollisionPair(pin.CollisionPair(min(i, j), max(i, j)))
    data, found = model.createData(), pin.GeometryData(shapes)
    base, tip = (model.getFrameId(name) for name in case["ends"])

    def placed(q: list[float]) -> tuple[bool, Any]:
        values = {**case["values"], **dict(zip(case["joints"], q, strict=True))}
        full = pin.neutral(model)
        for name, value in values.items():
            if model.existJointName(name):
                joint = model.joints[model.getJointId(name)]
                turn = [np.cos(value), np.sin(value)] if joint.nq == 2 else [value]
                full[joint.idx_q : joint.idx_q + joint.nq] = turn
        hit = pin.computeCollisions(model, data, shapes, found, full, True)
        pin.updateFramePlacements(model, data)
        return bool(hit), (data.oMf[base].inverse() * data.oMf[tip]).homogeneous.tolist()

    seen = [placed(q) for q in case["q"]]
    drawn = [placed(q)[0] for q in case["random"]]
    return [hit for hit, _ in seen], [T for _, T in seen], drawn


def main() -> None:
    """Check the cases on stdin, and print the answers."""
    asked = json.load(sys.stdin)
    json.dump(_answers(asked["urdf"], asked["cases"]), sys.stdout)


if __name__ == "__main__":
    main()
