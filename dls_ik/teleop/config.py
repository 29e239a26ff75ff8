# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Configuration of teleoperation, one YAML file for each device."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any

from dls_ik.errors import DlsIkError, OptionError
from dls_ik.model.files import read_file, share_file
from dls_ik.teleop.device import Control
from dls_ik.text import did_you_mean, listing, quoted

# Kinds of devices and their requirements; config/teleop/KIND.yaml has the defaults of a kind.
DEVICES = {
    "keyboard": "a terminal",
    "gamepad": "a gamepad or joystick as /dev/input/js*",
    "joy": "sensor_msgs/Joy of a driver, such as ros2 run joy joy_node",
    "spacemouse": "a 3Dconnexion device as /dev/hidraw*",
    "tracker": "geometry_msgs/PoseStamped of a tracker, and sensor_msgs/Joy with its buttons",
    "page": "a phone or headset with WebXR, and pip install 'dls-ik[viewer]'",
}
POSE_DEVICES = ("tracker", "page")
AXES_OF_TWIST = ("x", "y", "z", "roll", "pitch", "yaw")  # components of a twist
ACTIONS = ("open", "close", "faster", "slower", "frame", "stop")
BASE_FRAME, TOOL_FRAME = "base", "tool"
MAX_CONFIG_BYTES = 2**16

Axes = Mapping[str, tuple[Control, Control | float]]


@dataclass(frozen=True)
class TeleopConfig:
    """Configuration of teleoperation with one device.

    Attributes:
        device: Kind of the device, a key of `DEVICES`.
        source: Device file, topic, or port of the page; empty, for device files: the only connected
            device.
        buttons_topic: Topic of ``sensor_msgs/Joy`` with the buttons of a tracker.
        axes: Source of each component x, y, z, roll, pitch and yaw of the twist: the number of an
            axis and a factor, or the keys of the positive and the negative direction. Empty for
            devices with a pose.
        hold: Buttons of the deadman switch: the arm moves only while at least one of these buttons
            is held. Empty: no deadman switch.
        buttons: Buttons or keys of the actions in `ACTIONS`.
        frame: Frame along whose axes the device moves the tip: ``"base"`` is the root of the robot,
            ``"tool"`` is the tip; devices with axes may also use a link or a TF frame, such as the
            frame of a camera.
        rpy: Roll, pitch and yaw [rad] of the device's axes in `frame`.
        linear_speed: Speed at full deflection, and maximum speed of the target [m/s].
        angular_speed: Angular speed at full deflection, and maximum of the target [rad/s].
        deadzone: Share of the deflection that counts as rest, from 0 to below 1.
        stuck_after: Time after which an axis that is deflected and does not change is ignored until
            it has been at rest [s]; 0: never.
        timeout: Time without data after which the device counts as lost [s].
        scale: Translation of the tip per translation of the device.
        rotation_scale: Rotation of the tip per rotation of the device.
        median: Number of poses in the median filter; 1: no filter.
        min_cutoff: Cutoff frequency of the one-euro filter at rest [Hz]; ``.inf``: no filter.
        beta: Increase of the cutoff frequency with the speed [Hz per m/s, or per rad/s].
        jump: Maximum translation of the device between two poses [m]; a larger translation is a
            jump, which does not move the target.
        jump_angle: Maximum rotation of the device between two poses [rad]; a larger rotation is a
            jump.
        freeze_time: Time without a change of the pose after which the device counts as frozen [s];
            the step to its next pose is ignored. 0: never.
        lead: Maximum distance of the target from the tip [m].
        lead_angle: Maximum angle between the target and the tip [rad].
        gripper_topic: Topic of the gripper, ``std_msgs/Float64MultiArray``.
        gripper_open: Value sent by the action ``open``.
        gripper_closed: Value sent by the action ``close``.
        rate: Rate of the targets [Hz].
    """

    device: str
    source: str = ""
    buttons_topic: str = ""
    axes: Axes = field(default_factory=dict)
    hold: tuple[Control, ...] = ()
    buttons: Mapping[str, Control] = field(default_factory=dict)
    frame: str = BASE_FRAME
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    linear_speed: float = 0.1
    angular_speed: float = 0.4
    deadzone: float = 0.1
    stuck_after: float = 0.0
    timeout: float = 0.25
    scale: float = 1.0
    rotation_scale: float = 1.0
    median: int = 3
    min_cutoff: float = 2.0
    beta: float = 10.0
    jump: float = 0.2
    jump_angle: float = 1.0
    freeze_time: float = 0.5
    lead: float = 0.1
    lead_angle: float = 0.5
    gripper_topic: str = "gripper_controller/commands"
    gripper_open: float = 0.04
    gripper_closed: float = 0.0
    rate: float = 50.0

    @property
    def has_pose(self) -> bool:
        """Whether the device has a pose instead of axes."""
        return self.device in POSE_DEVICES


def shipped_config(device: str) -> Path:
    """Return the file with the defaults of a kind of device.

    Raises:
        OptionError: If the kind is unknown.
    """
    if device not in DEVICES:
        hint = did_you_mean(device, DEVICES, "; {}")
        raise OptionError(f"device must be one of {listing(DEVICES)}; got {quoted(device)}{hint}")
    return share_file("config", "teleop", f"{device}.yaml")


def load_config(device: str = "", file: str | os.PathLike[str] | None = None) -> TeleopConfig:
    """Return the defaults of a kind of device, overridden by a file.

    Args:
        device: Kind of the device, a key of `DEVICES`; empty: the one that `file` names.
        file: YAML file whose keys are attributes of :class:`TeleopConfig`, or None.

    Raises:
        OptionError: If the kind is unknown, the file cannot be read, or a value is not valid. The
            message names the file and the key.
    """
    given = {} if file is None else _read(Path(file))
    named = given.get("device", device)
    if device and named != device:
        raise OptionError(
            f"{file} is for the device {quoted(named)}, not for {device}; name the same device, or "
            "none"
        )
    if not named:
        raise OptionError(f"name a device: {listing(DEVICES)}; or set the key device in a file")
    config = replace(TeleopConfig(**_read(shipped_config(str(named)))), **given)
    if config.has_pose and config.frame not in (BASE_FRAME, TOOL_FRAME):
        raise OptionError(
            f"frame must be {BASE_FRAME} or {TOOL_FRAME} for a device with a pose; "
            f"got {config.frame!r}; give the orientation of a camera by rpy"
        )
    return config


def _read(file: Path) -> dict[str, Any]:
    """Return the validated values of a file.

    Raises:
        OptionError: If the file cannot be read, or a value is not valid.
    """
    from dls_ik.scene.formats import read_yaml  # reads all formats of scenes; few calls need it

    try:
        text = read_file(file, MAX_CONFIG_BYTES).decode("utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise OptionError(f"cannot read {file}: {reason}") from error
    try:
        documents = list(read_yaml(text))
        if len(documents) != 1 or not isinstance(documents[0], Mapping):
            raise OptionError("the file must be one mapping, such as {device: gamepad}")
        return {key: _value(key, value) for key, value in documents[0].items()}
    except DlsIkError as error:
        raise OptionError(f"{file}: {error}") from error


def _value(key: Any, value: Any) -> Any:
    if key not in READERS:
        hint = did_you_mean(key, READERS, "; {}")
        raise OptionError(f"unknown key {quoted(key)}; keys: {listing(READERS)}{hint}")
    return READERS[key](value, key)


# Values

Reader = Callable[[Any, str], Any]  # arguments: value, its place in the file


def _number(low: float, high: float, count: type[float] | type[int] = float) -> Reader:
    """Return a reader of a number from `low` to `high`."""

    def read(value: Any, place: str) -> float:
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if not is_number or not low <= value <= high or count(value) != value:
            kind = "an integer" if count is int else "a number"
            raise OptionError(
                f"{place} must be {kind} from {low:g} to {high:g}; got {quoted(value)}"
            )
        return count(value)

    return read


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        raise OptionError(f"{place} must be a text; got {quoted(value)}")
    return value


def _control(value: Any, place: str) -> Control:
    is_index = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 256
    if not is_index and not (isinstance(value, str) and value):
        raise OptionError(
            f"{place} must be the number of a button, from 0 to 255, or the name of a key; "
            f"got {quoted(value)}"
        )
    return value  # type: ignore[no-any-return]


def _axis(value: Any, place: str) -> tuple[Control, Control | float]:
    """Return the source of a component: an axis and its factor, or two keys."""
    if isinstance(value, list) and len(value) == 2:
        first, second = value
        if isinstance(first, str) and isinstance(second, str):
            return first, second
        if isinstance(first, int):
            number = _number(-100.0, 100.0)(second, f"{place}[1]")
            return _control(first, f"{place}[0]"), number
    raise OptionError(
        f"{place} must be [number of an axis, factor], or [key, key of the opposite direction]; "
        f"got {quoted(value)}"
    )


def _mapping(names: tuple[str, ...], reader: Reader) -> Reader:
    """Return a reader of a mapping with some of the given names as keys."""

    def read(value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, Mapping) or not set(value) <= set(names):
            raise OptionError(
                f"{place} must be a mapping with keys of {listing(names)}; got {quoted(value)}"
            )
        return {name: reader(each, f"{place}.{name}") for name, each in value.items()}

    return read


def _list(reader: Reader, count: int | None = None) -> Reader:
    """Return a reader of a list, of `count` values if this is given."""

    def read(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or count not in (None, len(value)):
            amount = "a list" if count is None else f"a list of {count} values"
            raise OptionError(f"{place} must be {amount}; got {quoted(value)}")
        return tuple(reader(each, f"{place}[{k}]") for k, each in enumerate(value))

    return read


def _device(value: Any, place: str) -> str:
    shipped_config(_text(value, place))
    return str(value)


READERS: dict[str, Reader] = {
    "device": _device,
    "source": _text,
    "buttons_topic": _text,
    "axes": _mapping(AXES_OF_TWIST, _axis),
    "hold": _list(_control),
    "buttons": _mapping(ACTIONS, _control),
    "frame": _text,
    "rpy": _list(_number(-2.0 * math.pi, 2.0 * math.pi), 3),
    "linear_speed": _number(1e-3, 10.0),
    "angular_speed": _number(1e-3, 50.0),
    "deadzone": _number(0.0, 0.9),
    "stuck_after": _number(0.0, 3600.0),
    "timeout": _number(0.02, 10.0),
    "scale": _number(1e-3, 100.0),
    "rotation_scale": _number(0.0, 100.0),
    "median": _number(1, 31, int),
    "min_cutoff": _number(1e-3, math.inf),
    "beta": _number(0.0, 1e4),
    "jump": _number(1e-3, 100.0),
    "jump_angle": _number(1e-3, math.pi),
    "freeze_time": _number(0.0, 3600.0),
    "lead": _number(1e-3, 10.0),
    "lead_angle": _number(1e-3, math.pi),
    "gripper_topic": _text,
    "gripper_open": _number(-1e3, 1e3),
    "gripper_closed": _number(-1e3, 1e3),
    "rate": _number(5.0, 500.0),
}
