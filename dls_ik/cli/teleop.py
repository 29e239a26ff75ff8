# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik teleop``: moving the arm of a running node by a device of the operator."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from dls_ik.cli import output
from dls_ik.cli.options import node_options, text_option
from dls_ik.cli.terminal import status_line, stdout_console
from dls_ik.tables import print_table
from dls_ik.text import listing

if TYPE_CHECKING:
    from dls_ik.ros.client.target_publisher import TargetPublisher
    from dls_ik.ros.teleop_node import Update
    from dls_ik.teleop import Device, Teleop, TeleopCommand, TeleopConfig


LISTING_TIME = 1.0  # [s] time in which publishers of topics are discovered
WITHOUT_ROS = (
    "dls-ik view moves a simulated arm on a web page; dls_ik.teleop moves a Controller in Python, "
    "with every device except joy and tracker (docs/teleop.md#without-ros)"
)
TOPIC_TYPES = {"joy": "sensor_msgs/msg/Joy", "tracker": "geometry_msgs/msg/PoseStamped"}


@click.command(
    epilog="DEVICE is one of keyboard, gamepad, joy, spacemouse, tracker, page. docs/teleop.md "
    "describes them. Ctrl-C stops the arm. Exit codes: 0 after Ctrl-C, 2 bad input, 3 no node."
)
@click.argument("device", default="")
@click.option("--config", "file", metavar="FILE.yaml", help="File that overrides the defaults.")
@text_option("--source", metavar="NAME", help="File, topic or port of the device.")
@click.option("--list", "is_list", is_flag=True, help="List the connected devices, and exit.")
@click.option("--show-config", is_flag=True, help="Print the defaults of the device, and exit.")
@node_options
@click.option("--host", default="127.0.0.1", help="Address on which the page is served.")
def teleop(
    device: str,
    file: str | None,
    source: str,
    is_list: bool,
    show_config: bool,
    namespace: str,
    node: str,
    patience: float,
    host: str,
) -> None:
    """Move the arm of a running node by a keyboard, gamepad, SpaceMouse, tracker or phone."""
    from dls_ik.teleop.config import load_config, shipped_config

    if is_list:
        _print_devices(namespace)
        return
    if show_config:
        click.echo(shipped_config(device).read_text(encoding="utf-8"), nl=False)
        return
    config = load_config(device, file)
    config = replace(config, source=source or config.source)
    with output.ros_imports(WITHOUT_ROS):
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.teleop_node import open_publisher, run
    opened = None if config.device in TOPIC_TYPES else _open(config, host)
    try:
        with (
            output.record_sigint() as ended,
            open_publisher(namespace, node, patience) as publisher,
            closing(opened or _open_topics(config, publisher)) as used,
        ):
            click.echo(f"{_usage(config)}; device: {used.name}; Ctrl-C ends", err=True)
            with _status_updates() as update:
                run(publisher, used, config, ended, update)
    except NOT_THERE as error:
        output.exit_with(str(error), output.EXIT_MISSING)
    except KeyboardInterrupt:
        click.echo("dls-ik: stopped", err=True)
    finally:
        if opened is not None:
            opened.close()


def _open(config: TeleopConfig, host: str) -> Device:
    """Open a device that is not a topic."""
    return OPENERS[config.device](config, host)


def _open_topics(config: TeleopConfig, publisher: TargetPublisher) -> Device:
    from dls_ik.ros.teleop_node import TopicDevice

    return TopicDevice(publisher.node, config)


def _open_keyboard(*_: Any) -> Device:
    from dls_ik.teleop.keyboard import Keyboard

    return Keyboard()


def _open_gamepad(config: TeleopConfig, *_: Any) -> Device:
    from dls_ik.teleop.gamepad import open_gamepad

    return open_gamepad(config.source)


def _open_spacemouse(config: TeleopConfig, *_: Any) -> Device:
    from dls_ik.teleop.spacemouse import open_spacemouse

    return open_spacemouse(config.source)


def _open_page(config: TeleopConfig, host: str) -> Device:
    try:
        from dls_ik.viewer.server import LOOPBACK_HOSTS
        from dls_ik.viewer.xr_page import XrPage
    except ImportError as error:
        message = f"{error.name or error} is missing: pip install 'dls-ik[viewer]'"
        raise output.MissingPartError(message) from None
    page = XrPage(host, config.source)
    if host not in LOOPBACK_HOSTS:
        output.warn(f"anybody with access to {host} can move this arm")
    return page


OPENERS: dict[str, Callable[[Any, str], Device]] = {
    "keyboard": _open_keyboard,
    "gamepad": _open_gamepad,
    "spacemouse": _open_spacemouse,
    "page": _open_page,
}


def _usage(config: TeleopConfig) -> str:
    """Return a text that says how the arm is moved."""
    if config.device == "keyboard":
        keys = ", ".join(f"{a}/{b} {name}" for name, (a, b) in config.axes.items())
        others = ", ".join(f"{key} {name}" for name, key in config.buttons.items())
        return f"keys: {keys}, {others}"
    if config.hold:
        return f"hold button {' or '.join(map(str, config.hold))} to move the arm"
    return "the arm moves with the device, without a button to hold"


@contextmanager
def _status_updates() -> Iterator[Update]:
    """Yield a function that updates a status line on stderr.

    If stderr is no terminal, the function prints a line when the state changes.
    """
    console = Console(stderr=True)
    if console.is_terminal:
        with status_line(console) as show:
            yield lambda command, teleop: show(lambda: Text(_status_text(command, teleop)))
        return
    last = ""

    def print_change(command: TeleopCommand, teleop: Teleop) -> None:
        nonlocal last
        line = _status_text(command, teleop)
        if line != last:
            last = line
            click.echo(line, err=True)

    yield print_change


def _status_text(command: TeleopCommand, teleop: Teleop) -> str:
    """Return the status: whether the arm moves, frame, speed, and a note."""
    frame = "tool" if teleop.in_tool else "base"
    state = "moving" if command.is_active else "idle"
    note = f": {command.note}" if command.note else ""
    return f"{state} ({frame}, speed {teleop.speed:.0%}){note}"


# Connected devices


def _print_devices(namespace: str) -> None:
    """Print a table of the kinds of devices, their requirements, and the connected devices."""
    from dls_ik.teleop.config import DEVICES
    from dls_ik.teleop.gamepad import find_gamepads
    from dls_ik.teleop.spacemouse import find_spacemice

    found = {
        "keyboard": "yes" if sys.stdin is not None and sys.stdin.isatty() else "no",
        "gamepad": _names(find_gamepads()),
        "spacemouse": _names(find_spacemice()),
        **_find_topics(namespace),
    }
    rows = [(device, found.get(device, ""), needs) for device, needs in DEVICES.items()]
    print_table(stdout_console(), ("device", "connected", "needs"), rows, (0, 1, 2))


def _names(found: dict[str, str]) -> str:
    return listing(f"{path} {name}".strip() for path, name in found.items())


def _find_topics(namespace: str) -> dict[str, str]:
    """Return the published topics for each kind of device that reads topics.

    Without ROS, the texts name the missing package.
    """
    try:
        from dls_ik.ros.client.connection import OwnNode
    except ImportError as error:
        return dict.fromkeys(TOPIC_TYPES, f"unknown, {error.name or error} is missing")
    with closing(OwnNode(namespace, "dls_ik_teleop_list")) as host:
        time.sleep(LISTING_TIME)
        topics = host.node.get_topic_names_and_types()
        published = [(name, kinds) for name, kinds in topics if host.node.count_publishers(name)]
        return {
            device: listing(name for name, kinds in published if kind in kinds)
            for device, kind in TOPIC_TYPES.items()
        }
