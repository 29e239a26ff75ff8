"""Everything there is to find out, in the order of the report."""

from __future__ import annotations

from collections.abc import Callable

from dls_ik.cli.doctor import surroundings
from dls_ik.cli.doctor.catalogue import (
    CORE_THINGS,
    EXTRA_THINGS,
    PART_THINGS,
    Thing,
    node_things,
    ros_things,
)
from dls_ik.cli.doctor.finding import MISSING, OK, Finding
from dls_ik.cli.doctor.trial import tried


def examine(tell: Callable[[str], None]) -> list[Finding]:
    """Try everything; `tell` hears the name of each before."""
    things, of_ros = [*CORE_THINGS, *EXTRA_THINGS, *PART_THINGS], ros_things()
    found = tried([thing.name for thing in (*things, *of_ros)], tell)
    before = [surroundings.python(), *(_finding(thing, found) for thing in things)]
    ros = [*surroundings.ros(), *(_finding(thing, found) for thing in of_ros)]
    broken = [finding for finding in ros if finding.state != OK and _is_needed(finding)]
    if broken:
        node = [
            Finding(t.section, t.name, MISSING, f"without {broken[0].name}", broken[0].mend)
            for t in node_things()
        ]
    else:
        states = tried([thing.name for thing in node_things()], tell)
        node = [_finding(thing, states) for thing in node_things()]
    return [*before, *ros, *node]


def _is_needed(finding: Finding) -> bool:
    return finding.name == "rclpy" or "_msgs" in finding.name or "interfaces" in finding.name


def _finding(thing: Thing, found: dict[str, tuple[str, str]]) -> Finding:
    state, words = found[thing.name]
    name = thing.name.partition(".")[0] if thing.name.endswith((".msg", ".srv")) else thing.name
    if state == OK:
        return Finding(thing.section, name, state, words)
    what = f"{words}; for {thing.use}" if thing.use and state == MISSING else words
    return Finding(thing.section, name, state, what, thing.mend)
