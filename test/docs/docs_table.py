# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""How each command of the documentation is run: the first rule whose pattern matches its beginning.

A command that no rule matches fails the test. What is not run is named here, with the reason.
"""

import re
from enum import Enum
from typing import NamedTuple


class Way(Enum):
    """Kind of run of a command."""

    RUN = "run, exit code 0"
    SERVE = "started, its ready line awaited, ended by Ctrl-C"
    ASK = "asked of a running node"
    LAUNCH = "its launch file read for the arguments"
    PARSE = "its arguments parsed, not run"
    NAME = "named in a sentence, there"
    LEAVE = "not run"


class Rule(NamedTuple):
    pattern: str
    way: Way
    reason: str = ""  # reason why the command is not run as documented
    ready: str = ""  # output of a server that is ready


NODE_READY = r"ready after|waiting for|no robot yet"
RULES = (
    # What takes minutes, or another machine
    Rule(r"(\.venv/bin/)?python -m benchmarks\.", Way.PARSE, "measures for minutes"),
    Rule(r"dls-ik reproduce table-v .*", Way.PARSE, "minutes; fewer samples in test/reproduce"),
    Rule(r"dls-ik reproduce (all|table-v)$", Way.PARSE, "minutes; fewer samples in test/reproduce"),
    Rule(r"dls-ik reproduce all", Way.PARSE, "minutes; fewer samples in test/reproduce"),
    Rule(r"dls-ik reproduce figure-4 ", Way.PARSE, "minutes; fewer samples in test/reproduce"),
    Rule(r"dls-ik doctor", Way.PARSE, "see test_doctor.py"),
    Rule(r"dls-ik study .*(ten_arms|fr3)", Way.PARSE, "minutes; shorter ones are run"),
    Rule(r"dls-ik reachability wam --resolution 0.1", Way.PARSE, "seconds; coarser maps are run"),
    Rule(r"dls-ik .*--scheduler", Way.PARSE, "a cluster; see test_reach_cluster.py"),
    Rule(r"dask ", Way.LEAVE, "a cluster; see test_reach_cluster.py"),
    Rule(r"scripts/demo", Way.LEAVE, "sets up a machine; see test_demo.py"),
    Rule(r"scripts/(test|setup|docs|coverage|mutate|shape)", Way.LEAVE, "what runs this very test"),
    Rule(r"scripts/(matrix|release)", Way.LEAVE, "installs for minutes; see test_release.py"),
    Rule(r"python -m fuzz", Way.LEAVE, "minutes; test/fuzz runs its targets"),
    Rule(r"nohup ", Way.LEAVE, "an hour; see test_soak.py"),
    Rule(r"python docs/make_", Way.LEAVE, "pictures and tables of the pages, each with its test"),
    # The reader's workspace and installation of ROS 2
    Rule(r"cd ", Way.LEAVE, "the reader's folders"),
    Rule(r"git clone ", Way.LEAVE, "the reader's network"),
    Rule(r"(sudo )?apt(-get)? ", Way.LEAVE, "the reader's machine"),
    Rule(r"(\.venv/bin/)?(python -m )?pip (install|wheel) ", Way.LEAVE, "the reader's environment"),
    Rule(r"python3 -m venv ", Way.LEAVE, "the reader's environment"),
    Rule(r"rosdep ", Way.LEAVE, "comes with ROS 2"),
    Rule(r"colcon ", Way.LEAVE, "run by .ci/run"),
    Rule(r"source ", Way.LEAVE, "the reader's shell"),
    Rule(r"ssh ", Way.LEAVE, "another machine"),
    Rule(r"export ", Way.LEAVE, "the reader's shell"),
    Rule(r"ros2 bag ", Way.LEAVE, "comes with ROS 2"),
    Rule(r"xacro ", Way.LEAVE, "comes with ROS 2"),
    Rule(r"ros2 run (tf2_ros|joy|teleop_twist_joy|spacenav) ", Way.LEAVE, "comes with ROS 2"),
    Rule(r"scripts/audit", Way.LEAVE, "asks a service in the network"),
    Rule(r"ros2 security ", Way.LEAVE, "sros2 has no wheels"),
    Rule(r"ros2 action send_goal ", Way.LEAVE, "comes with ROS 2; see test_node_actions.py"),
    Rule(r"ik_node .*--params-file robot.yaml", Way.LEAVE, "the reader's; see test_pymoveit2.py"),
    Rule(r"ik_node .*--enclave ", Way.LEAVE, "needs the keys of sros2"),
    # ROS 2
    Rule(r"ros2 launch dls_ik ", Way.LAUNCH, "launch comes with ROS 2; see test/launch"),
    Rule(r"(\.venv/bin/)?ik_node\b", Way.SERVE, ready=NODE_READY),
    Rule(r"(\.venv/bin/)?ik_sim_arm\b", Way.SERVE, ready=r"ready"),
    Rule(r"ros2 (service call|topic (pub|echo|info)|param (set|describe|dump))\b", Way.ASK),
    Rule(r"dls-ik (record|replay|waypoint) ", Way.PARSE, "see test_node_recording.py"),
    Rule(r"dls-ik episode ", Way.PARSE, "the reader's data; see test_episode_command.py"),
    Rule(r"dls-ik (call|stream) ", Way.ASK),
    Rule(r"dls-ik teleop .*--(list|show-config)", Way.RUN),
    Rule(r"dls-ik teleop\b", Way.PARSE, "needs a device; see test_teleop_node.py"),
    Rule(r"adb ", Way.LEAVE, "the reader's phone"),
    Rule(r"sudo setfacl ", Way.LEAVE, "the reader's machine"),
    Rule(r"dls-ik view\b", Way.SERVE, ready=r"http://"),
    # The command
    Rule(r"(\.venv/bin/)?dls-ik\b", Way.RUN),
    Rule(r"(\.venv/bin/)?python (examples/|-c )", Way.RUN),
)

# Nodes that are up while a page is followed, with their arguments.
WAM = ("-p", "robot:=wam")
NODE, ARM = ("ik_node", *WAM), ("ik_sim_arm", *WAM)
LEFT = ("ik_node", "-r", "__ns:=/left", *WAM)
STAGES = {
    "docs/client.md": [NODE, LEFT],
    "docs/command_line.md": [NODE, LEFT],
    "docs/moveit.md": [("ik_node", "-r", "compute_ik:=/dls_ik/compute_ik", *WAM)],
    "docs/real_arm.md": [ARM, ("ik_node", "-p", "output_type:=joint_trajectory", *WAM)],
    "docs/sim_arm.md": [ARM],
    "docs/viewer.md": [NODE, LEFT],
}  # other pages that ask a node: the one above

# What is added where nobody looks on.
UNSEEN = {"dls-ik view": " --no-browser"}

# Packages that come with ROS 2 alone: where they are not, a snippet that imports one is compiled.
ONLY_WITH_ROS = ("ament_index_python", "launch", "launch_ros", "moveit_configs_utils")

# The reader's own robot, a copy of test/urdf/ur10e.urdf with the usual name for its tip.
ARM_FILE = "arm.urdf"
PLACEHOLDERS = {"/path/to/robot.urdf": ARM_FILE, "ros2 run dls_ik ": ""}
PARTIAL = re.compile(r"\b[A-Z]{4,}\b|-v$|^\S+ \S+$|^ros2 \S+ \S+$")  # not a whole command


def rule_of(text: str, inline: bool = False) -> Rule | None:
    """Return the rule for a command; a command in a sentence may lack its arguments."""
    for placeholder, word in PLACEHOLDERS.items():
        text = text.replace(placeholder, word)
    found = next((rule for rule in RULES if re.match(rule.pattern, text)), None)
    if not inline or found is None or found.way is Way.LEAVE:
        return found
    if PARTIAL.search(text):
        return Rule(found.pattern, Way.NAME, "in a sentence")
    return Rule(found.pattern, Way.PARSE, "in a sentence") if found.way is Way.RUN else found


def stage_of(page: str, rules: list[Rule]) -> list[tuple[str, ...]]:
    """Return the nodes that run while a page is followed."""
    asks = any(rule.way is Way.ASK for rule in rules)
    return STAGES.get(page, [NODE] if asks else [])
