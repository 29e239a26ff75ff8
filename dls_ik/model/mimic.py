"""Who drives a joint in the end: mimic joints followed up to their masters."""

from collections.abc import Mapping

from dls_ik.exceptions import RobotModelError
from dls_ik.model.joint import FARTHEST, Joint, Mimic
from dls_ik.model.names import listing


def resolve_mimics(joints: Mapping[str, Joint]) -> tuple[dict[str, Mimic], dict[str, str]]:
    """The independent joint behind every driven joint, itself where it follows nothing.

    Returns:
        That by joint; and, for joints without one, why: they have a flaw, or follow an unknown
        joint, one that no value moves, or themselves.
    """
    drives: dict[str, Mimic] = {}
    broken: dict[str, str] = {}
    for joint in joints.values():
        if joint.is_driven:
            _resolve(joint, joints, drives, broken)
    return drives, broken


def _resolve(
    joint: Joint, joints: Mapping[str, Joint], drives: dict[str, Mimic], broken: dict[str, str]
) -> None:
    """Climb from a joint to a resolved master, then fill in the drives on the way back."""
    waiting: dict[str, Joint] = {}
    try:
        while joint.name not in drives:
            if joint.flaw:
                broken.setdefault(joint.name, str(joint.error(joint.flaw)))
            if joint.name in broken:
                raise RobotModelError(broken[joint.name])
            if joint.mimic is None:
                drives[joint.name] = Mimic(joint.name)
                break
            if joint.name in waiting:
                raise joint.error(f"mimic cycle through {listing(waiting)}")
            waiting[joint.name] = joint
            joint = _master(joint, joint.mimic, joints)
        for follower in reversed(waiting.values()):
            drives[follower.name] = _compose(follower, drives)
    except RobotModelError as error:
        broken.update({name: str(error) for name in waiting if name not in drives})


def _master(joint: Joint, mimic: Mimic, joints: Mapping[str, Joint]) -> Joint:
    master = joints.get(mimic.master)
    if master is None:
        raise joint.error(f"mimics the unknown joint {mimic.master!r}; joints: {listing(joints)}")
    if not master.is_driven:
        raise joint.error(f"mimics {mimic.master!r}, a {master.kind} joint, which has no value")
    return master


def _compose(joint: Joint, drives: Mapping[str, Mimic]) -> Mimic:
    if joint.mimic is None:
        return Mimic(joint.name)
    name, multiplier, offset = joint.mimic
    above = drives[name]
    scale, shift = multiplier * above.multiplier, multiplier * above.offset + offset
    if not (abs(scale) <= FARTHEST and abs(shift) <= FARTHEST):
        raise RobotModelError(
            f"joint {joint.name!r}: mimic multiplier or offset overflows: beyond {FARTHEST:g}"
        )
    return Mimic(above.master, scale, shift)
