# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Node with the interface of move_group and a simulated arm, as programs for move_group expect."""

import threading

import yaml
from rclpy.executors import MultiThreadedExecutor
from rclpy.node import Node
from robots import URDF
from ros_client import Client, NodeProcess, SimArmProcess
from ros_scene import PAIRS
from ros_streamer import HOME
from ros_wam import WAM

READY_STATE = "".join(
    f'<joint name="{name}" value="{value}"/>'
    for name, value in zip(WAM.joint_names, HOME, strict=True)
)
SRDF = "\n".join([
    '<robot name="wam7">',
    '<group name="arm"><chain base_link="wam_base" tip_link="wam_tip"/></group>',
    f'<group_state name="ready" group="arm">{READY_STATE}</group_state>',
    *(f'<disable_collisions link1="{a}" link2="{b}" reason="{why}"/>'
      for (a, b), why in PAIRS.items()),
    "</robot>",
])  # fmt: skip
SERVO_NAMES = {
    "target_twist": "servo_node/delta_twist_cmds",
    "~/pause": "servo_node/pause_servo",
    "~/switch_command_type": "servo_node/switch_command_type",
}


class Planning:
    """Node named move_group, the simulated arm that it moves, and a client."""

    def __init__(self, namespace, folder, **parameters):
        given = {
            "robot_description": (URDF / "wam7.urdf").read_text(),
            "robot_description_semantic": SRDF,
            "move_group_interface": True,
            "acceleration": [6.0],
            "output_type": ["joint_trajectory"],
            **parameters,
        }
        file = folder / "move_group.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": given}}))
        names = [w for a, b in SERVO_NAMES.items() for w in ("-r", f"{a}:={b}")]
        space = ["-r", f"__ns:={namespace}"]
        self.arm = SimArmProcess(*space, "-p", "robot:=wam")
        self.process = NodeProcess(
            *space, "-r", "__node:=move_group", *names, "--params-file", str(file)
        )
        self.process.wait_for_line("the stream keeps")
        self.process.wait_for_line("received joint states")
        self.client = Client(namespace)

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self.client.__exit__()
        self.process.__exit__(*failure)
        self.arm.__exit__()


class Spun:
    """Node whose callbacks run in the background, as pymoveit2 needs."""

    def __init__(self, client):
        namespace = client.node.get_namespace()
        self.node = Node(
            "user", context=client.context, namespace=namespace, use_global_arguments=False
        )
        self._executor = MultiThreadedExecutor(2, context=client.context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self.node

    def __exit__(self, *_):
        self._executor.shutdown()
        self._thread.join()
        self.node.destroy_node()
