"""Wait for the node, showing what it says meanwhile."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

from dls_ik.exceptions import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.demo.client import Client, now
from dls_ik.ros.demo.node_process import NodeProcess, node_command
from dls_ik.ros.demo.options import Options
from dls_ik.ros.demo.path import READY

PATIENCE = 240.0  # [s] the very first start compiles for about 35 s, longer on a busy machine
REMINDER = 10.0  # [s]
LOGGED = re.compile(r"\[(?:INFO|WARN|ERROR|FATAL)\] \[[\d.]+\] \[[\w.]+\]: (.*)")


@contextmanager
def running_node(
    options: Options, robot: RobotModel, console: Console
) -> Iterator[tuple[Client, int]]:
    """Start the node, and hand over a client of it once it is ready, and its process id.

    Raises:
        DlsIkError: it did not become ready, or something failed later; the end of its log is added
            to the message when the node has ended.
    """
    parameters = {"robot": "wam", "rate": options.rate, "initial_positions": list(READY)}
    if options.method is not None:
        parameters["stream_method"] = options.method
    log = options.output / "ik_node.log"

    def echo(line: str) -> None:
        if logged := LOGGED.match(line):  # the rest is in the log file
            console.print(f"[dim]ik_node: {escape(logged[1])}[/]", soft_wrap=True)

    with NodeProcess(node_command(parameters), log, echo) as node, Client(robot) as client:
        try:
            wait_until_ready(node, client, console)
            yield client, node.process.pid
            if not node.is_running:
                raise DlsIkError("the node is gone")
        except DlsIkError as error:
            client.spin_until(now() + 0.5)  # for the last lines
            if node.is_running:
                raise DlsIkError(f"{error} (its log: {log})") from error
            ending = "\n  ".join([f"{error}; ik_node ended with code {node.exit_code}", *node.tail])
            raise DlsIkError(f"{ending}\n  (its log: {log})") from error


def wait_until_ready(
    node: NodeProcess, client: Client, console: Console, patience: float = PATIENCE
) -> None:
    """Return when the service and both topics are there.

    Raises:
        DlsIkError: the node has ended, or took too long; the message says what is missing.
    """
    begin = now()
    reminder = REMINDER
    while not (client.is_served and client.is_heard):
        client.spin_until(now() + 0.05)
        waited = now() - begin
        if not node.is_running:
            raise DlsIkError("the node did not start")
        if waited > patience:
            what = "the topics target_pose and joint_states" if client.is_served else "compute_ik"
            raise DlsIkError(f"the node has not offered {what} within {patience:.0f} s")
        if waited > reminder:
            reminder += REMINDER
            console.print(f"[dim]still starting after {waited:.0f} s ...[/]")
    node.hush()
    console.print(f"ready after {now() - begin:.1f} s")
