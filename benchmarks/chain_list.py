# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Chains of `benchmarks.chains`: file, base, tip and task of each.

Files without a folder belong to this repository, the others to the folder `robots` of the package
`example-robot-data`.
"""

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from dls_ik import DlsIkError, RobotModel, Task

ROOT = Path(__file__).resolve().parents[1]
OURS = (ROOT / "urdf", ROOT / "test" / "urdf")
DATA = "example-robot-data"
MISSING = (
    f"the robots of {DATA} are not installed: pip install -r requirements/benchmarks.txt (414 MB), "
    "or name chains of ours, see --list"
)
POSE, POSITION, POINTING = Task.pose(), Task.position_only(), Task.pointing("z")
TASKS = {POSE: "pose", POSITION: "position", POINTING: "pointing"}


class ChainRow(NamedTuple):
    """Chain and its task."""

    name: str
    file: str
    base: str = ""  # empty: the root
    tip: str = ""  # empty: the only tip
    task: Task = POSE

    def robot(self) -> RobotModel:
        """Load the chain.

        Raises:
            DlsIkError: If the package is missing, or its file differs from the expected one.
        """
        folders = (_data(),) if "/" in self.file else OURS
        paths = [folder / self.file for folder in folders if (folder / self.file).is_file()]
        if not paths:
            raise DlsIkError(f"{self.name}: no file {self.file} in {', '.join(map(str, folders))}")
        return RobotModel.from_urdf(paths[0], self.base or None, self.tip or None)


def _data() -> Path:
    """Return the folder of robots of the package; importing the package needs pinocchio."""
    try:
        found = distribution(DATA)
    except PackageNotFoundError as error:
        raise DlsIkError(MISSING) from error
    return Path(str(found.locate_file(f"cmeel.prefix/share/{DATA}/robots")))


_UR = "ur_description/urdf/{}.urdf"
_PANDA = "panda_description/urdf/panda.urdf"
_KINOVA = "kinova_description/robots/kinova.urdf"
_TIAGO = "tiago_description/robots/tiago.urdf"
_TIAGO_PRO = "tiago_pro_description/robots/tiago_pro.urdf"
_PR2 = "pr2_description/urdf/pr2.urdf"
_BAXTER = "baxter_description/urdf/baxter.urdf"
_CENTAURO = "centauro_description/urdf/centauro.urdf"
_TALOS = "talos_data/robots/talos_full_v2.urdf"
_ROMEO = "romeo_description/urdf/romeo.urdf"
_ICUB = "icub_description/robots/icub.urdf"
_ALEX = "alex_description/urdf/alex_nub_hands.urdf"
_G1 = "g1_description/urdf/g1_29dof_rev_1_0.urdf"
_SO = "so_arm_description/urdf/so101.urdf"
_ALLEGRO = "allegro_hand_description/urdf/allegro_right_hand.urdf"
_FLYING = "hextilt_description/urdf/hextilt_flying_arm_5.urdf"

CHAINS = (
    # Arms of 7 joints.
    ChainRow("wam", "wam7.urdf"),
    ChainRow("panda", _PANDA, "panda_link0", "panda_hand_tcp"),
    ChainRow("xarm7", "xarm_description/urdf/xarm7.urdf", "link_base", "link_eef"),
    ChainRow("tiago arm", _TIAGO, "torso_lift_link", "hand_tool_link"),
    ChainRow("pr2 arm", _PR2, "torso_lift_link", "r_gripper_tool_frame"),
    ChainRow("baxter arm", _BAXTER, "torso", "right_gripper"),
    ChainRow("talos arm", _TALOS, "torso_2_link", "gripper_left_base_link"),
    ChainRow("romeo arm", _ROMEO, "torso", "l_gripper"),
    ChainRow("icub arm", _ICUB, "chest", "l_hand_dh_frame"),
    ChainRow("alex arm", _ALEX, "Torso", "leftNub"),
    ChainRow("g1 arm", _G1, "torso_link", "left_rubber_hand"),
    ChainRow("fr3", "fr3.urdf"),
    ChainRow("iiwa14", "iiwa14.urdf"),
    ChainRow("gen3", "gen3.urdf"),
    ChainRow("sawyer", "sawyer.urdf"),
    # Arms of 6 joints, and legs.
    ChainRow("puma560", "puma560.urdf"),
    ChainRow("ur3", _UR.format("ur3_robot"), "base_link", "tool0"),
    ChainRow("ur5", _UR.format("ur5_robot"), "base_link", "tool0"),
    ChainRow("ur10", _UR.format("ur10_robot"), "base_link", "tool0"),
    ChainRow("ur3 limited", _UR.format("ur3_joint_limited_robot"), "base_link", "tool0"),
    ChainRow("ur5 limited", _UR.format("ur5_joint_limited_robot"), "base_link", "tool0"),
    ChainRow("ur10 limited", _UR.format("ur10_joint_limited_robot"), "base_link", "tool0"),
    ChainRow("ur5e", "ur5e.urdf"),
    ChainRow("ur10e", "ur10e.urdf"),
    ChainRow("irb140", "irb140.urdf"),
    ChainRow("tx60", "tx60.urdf"),
    ChainRow("stanford", "stanford.urdf"),
    ChainRow("kinova j2s6", _KINOVA, "base", "j2s6s200_end_effector"),
    ChainRow("z1", "z1_description/urdf/z1.urdf", "link00", "gripperStator"),
    ChainRow("talos leg", _TALOS, "base_link", "left_sole_link"),
    ChainRow("icub leg", _ICUB, "base_link", "l_sole"),
    ChainRow("g1 leg", _G1, "pelvis", "left_ankle_roll_link"),
    # Arms with a torso: 8 to 13 joints, prismatic ones among them.
    ChainRow("fetch", "fetch.urdf"),
    ChainRow("lwr + column", "column_lwr.urdf"),
    ChainRow("tiago + torso", _TIAGO, "base_footprint", "hand_tool_link"),
    ChainRow("tiago pro + torso", _TIAGO_PRO, "base_footprint", "arm_left_tool_link"),
    ChainRow("pr2 + torso", _PR2, "base_footprint", "l_gripper_tool_frame"),
    ChainRow("centauro + torso", _CENTAURO, "pelvis", "arm1_8"),
    ChainRow("romeo + trunk", _ROMEO, "base_link", "r_gripper"),
    ChainRow("talos + torso", _TALOS, "base_link", "gripper_right_base_link"),
    ChainRow("icub + torso", _ICUB, "base_link", "l_hand_dh_frame"),
    ChainRow("alex + torso", _ALEX, "Pelvis", "leftNub"),
    ChainRow("g1 + waist", _G1, "pelvis", "right_rubber_hand"),
    ChainRow("human + trunk", "human_description/robots/human.urdf", "", "left_hand"),
    # Fewer than six joints: the poses that they reach, and what they can always do.
    ChainRow("cobra600", "cobra600.urdf"),
    ChainRow("youbot", "youbot.urdf"),
    ChainRow("youbot, pointing", "youbot.urdf", task=POINTING),
    ChainRow("so101", _SO, "base_link", "gripper_frame_link"),
    ChainRow("so101, pointing", _SO, "base_link", "gripper_frame_link", POINTING),
    ChainRow("so101, position", _SO, "base_link", "gripper_frame_link", POSITION),
    ChainRow("flying arm", _FLYING, "", "flying_arm_5__gripper", POINTING),
    ChainRow("romeo gaze", _ROMEO, "base_link", "gaze", POINTING),
    ChainRow("allegro finger", _ALLEGRO, "palm_link", "link_3.0_tip", POSITION),
    ChainRow("allegro thumb", _ALLEGRO, "palm_link", "link_15.0_tip", POSITION),
    ChainRow("a1 leg", "a1_description/urdf/a1.urdf", "", "FR_foot", POSITION),
    ChainRow("solo12 leg", "solo_description/robots/solo12.urdf", "", "FL_FOOT", POSITION),
    ChainRow(
        "anymal c leg", "anymal_c_simple_description/urdf/anymal.urdf", "", "LF_FOOT", POSITION
    ),
    ChainRow("hyq leg", "hyq_description/robots/hyq_no_sensors.urdf", "", "lf_foot", POSITION),
    ChainRow("planar_2r", "planar_2r.urdf", task=POSITION),
    # Redundant for their task.
    ChainRow("wam, position", "wam7.urdf", task=POSITION),
    ChainRow("ur10, pointing", _UR.format("ur10_robot"), "base_link", "tool0", POINTING),
)
