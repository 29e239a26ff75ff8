"""What there is to say about a robot, as plain dicts: of the whole, and of a chain."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dls_ik.model.analysis import LENGTH, Singularity, conditioning, joint_axes, singularities
from dls_ik.model.joint import Joint
from dls_ik.model.reach.bounds import tip_extent
from dls_ik.model.robot import RobotModel
from dls_ik.model.tips import moving_tips
from dls_ik.model.tree import Tree


def robot_facts(tree: Tree, given: str, base: str) -> dict[str, Any]:
    """Name, links, and every joint that moves."""
    kinds = [joint.kind for joint in tree.joints]
    return {
        "name": tree.name,
        "robot": given,
        "links": len(tree.links),
        "fixed_joints": kinds.count("fixed"),
        "root": tree.root,
        "base": base,
        "tips": moving_tips(tree, base),
        "joints": [_joint(tree, joint) for joint in tree.joints if joint.kind != "fixed"],
    }


def _joint(tree: Tree, joint: Joint) -> dict[str, Any]:
    drive = tree.drives.get(joint.name)
    follows = None
    if drive is not None and drive.master != joint.name:
        follows = {
            "joint": drive.master,
            "multiplier": drive.multiplier,
            "offset": drive.offset,
        }
    return {
        "name": joint.name,
        "kind": joint.kind,
        "parent": joint.parent,
        "child": joint.child,
        "lower": joint.lower,
        "upper": joint.upper,
        "velocity": joint.velocity,
        "mimic": follows,
    }


def chain_facts(robot: RobotModel, quick: bool) -> dict[str, Any]:
    """Of a chain to one tip: its joints, and unless it is to be quick its reach and rank."""
    facts: dict[str, Any] = {"base": robot.base, "tip": robot.tip, "joints": robot.joint_names}
    facts["velocity_known"] = bool(np.isfinite(robot.velocity).all())
    if quick:
        return facts
    axes = joint_axes(robot)
    named = {"meeting": axes.meeting, "parallel": axes.parallel}
    facts["axes"] = {
        what: [[robot.joint_names[i] for i in run] for run in runs] for what, runs in named.items()
    }
    extent = tip_extent(robot)
    facts["reach"] = {
        "from": extent.point,
        "at_least": extent.least,
        "at_most": extent.most,
        "seen": extent.seen,
    }
    return {**facts, **_dexterity(robot)}


def _dexterity(robot: RobotModel) -> dict[str, Any]:
    measured, found = conditioning(robot), singularities(robot)
    return {
        "rank": measured.rank,
        "redundancy": robot.n - measured.rank,
        "conditioning": {
            "metres_per_radian": LENGTH,
            "samples": len(measured.least),
            "least_singular_value": _quantiles(measured.least),
            "condition_number": _quantiles(measured.condition),
        },
        "singularities": {
            "starts": found.starts,
            "families": [_family(robot, family) for family in found.families],
            "most_nearly_singular": {
                "q": dict(zip(robot.joint_names, found.worst.tolist(), strict=True)),
                "share_of_largest": found.least,
                **found.weak._asdict(),
            },
        },
    }


def _quantiles(values: Any) -> dict[str, float]:
    shares = {"p5": 0.05, "median": 0.5, "p95": 0.95}
    return {name: float(np.quantile(values, share)) for name, share in shares.items()}


def _family(robot: RobotModel, family: Singularity) -> dict[str, Any]:
    q = np.where(
        robot.continuous, np.remainder(family.q + math.pi, 2.0 * math.pi) - math.pi, family.q
    )
    q = np.where(np.abs(q) < 1e-9, 0.0, q)
    names = robot.joint_names
    return {
        "joints": {names[i]: float(q[i]) for i in family.joints},
        "tied": family.is_tied,
        "example": dict(zip(names, q.tolist(), strict=True)),
        "rank": family.rank,
        **family.loss._asdict(),
    }
