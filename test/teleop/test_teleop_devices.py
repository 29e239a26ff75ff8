# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Devices of teleoperation by the bytes that their drivers deliver, and files of their settings."""

import math
import os
import pty
import struct
import termios

import pytest

from dls_ik.errors import OptionError
from dls_ik.teleop import load_config
from dls_ik.teleop.config import DEVICES, shipped_config
from dls_ik.teleop.device import DeviceError
from dls_ik.teleop.gamepad import Gamepad, find_gamepads, open_gamepad
from dls_ik.teleop.keyboard import Keyboard
from dls_ik.teleop.spacemouse import SpaceMouse, find_spacemice

# Bytes of devices


@pytest.fixture
def pipe():
    """A pipe that keeps packets apart like hidraw, and the path by which it is opened."""
    reader, writer = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
    yield writer, f"/proc/self/fd/{reader}", lambda: os.close(writer)
    os.close(reader)


def event(kind, number, value):
    return struct.pack("IhBB", 7, value, kind, number)


def test_gamepad_events_and_unplugging(pipe):
    writer, path, unplug = pipe
    pad = Gamepad(path, "pad")
    os.write(writer, event(0x82, 1, 0) + event(0x81, 4, 0))  # initial state
    state = pad.read(1.0)
    assert state.axes == {1: 0.0}
    assert not state.pressed
    os.write(writer, event(2, 1, -32767) + event(1, 4, 1) + event(1, 0, 1))
    os.write(writer, event(1, 0, 0))
    state = pad.read(2.0)
    assert state.axes == {1: -1.0}
    assert state.pressed == {4}
    assert state.received == 2.0
    unplug()
    assert "pad (/proc/self/fd" in pad.read(3.0).problem
    assert "unplugged" in pad.read(3.1).problem
    pad.close()


def test_a_gamepad_that_is_plugged_in_again_starts_without_buttons(tmp_path):
    path = tmp_path / "js0"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    pad = Gamepad(str(path))
    os.write(writer, event(1, 4, 1))
    assert pad.read(0.0).pressed == {4}
    os.close(writer)
    assert pad.read(0.1).problem
    writer = os.open(path, os.O_RDWR)
    assert pad.read(0.5).problem, "not before RETRY_PERIOD"
    assert not pad.read(1.2).problem
    assert not pad.read(1.2).pressed
    os.close(writer)
    pad.close()


def test_spacemouse_reports_of_old_and_new_models(pipe):
    writer, path, unplug = pipe
    mouse = SpaceMouse(path)
    os.write(writer, struct.pack("<B3h", 1, 350, -175, 0))
    os.write(writer, struct.pack("<B3h", 2, 0, 0, 700))
    os.write(writer, bytes([3, 0b101, 0]))
    os.write(writer, bytes([23, 80]))  # the battery
    state = mouse.read(1.0)
    assert state.axes == {0: 1.0, 1: -0.5, 2: 0.0, 3: 0.0, 4: 0.0, 5: 1.0}
    assert state.pressed == {0, 2}
    os.write(writer, struct.pack("<B6h", 1, 0, 0, 0, 35, 0, 0))
    os.write(writer, bytes([3, 0, 0]))
    state = mouse.read(1.1)
    assert state.axes == {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.1, 4: 0.0, 5: 0.0}
    assert not state.pressed
    unplug()
    assert mouse.read(2.0).problem


def test_keys_of_a_terminal():
    leader, follower = pty.openpty()
    before = termios.tcgetattr(follower)
    keys = Keyboard(follower)
    assert not keys.read(0.0).pressed
    os.write(leader, b"wA \x1b[A\x1b[1;2D+")
    assert keys.read(1.0).pressed == {"w", "a", "space", "up", "left", "+"}
    assert keys.read(1.1).pressed
    os.write(leader, b"w")
    assert keys.read(1.14).pressed >= {"w"}
    assert keys.read(1.28).pressed == {"w"}
    assert not keys.read(1.3).pressed
    os.write(leader, b"w")
    assert keys.read(2.0).pressed
    assert not keys.read(0.0).pressed, "a clock that is set back releases all keys"
    keys.close()
    assert termios.tcgetattr(follower) == before
    keys = Keyboard(follower)
    os.close(leader)
    assert "closed" in keys.read(3.0).problem
    keys.close()
    os.close(follower)


def test_a_file_is_no_terminal(tmp_path):
    with (
        (tmp_path / "file").open("w") as file,
        pytest.raises(DeviceError, match="needs a terminal"),
    ):
        Keyboard(file.fileno())


# Connected devices


def test_lists_of_gamepads_and_spacemice(tmp_path):
    devices, sys = tmp_path / "input", tmp_path / "sys"
    devices.mkdir()
    for k in range(2):
        (devices / f"js{k}").touch()
        (sys / f"js{k}" / "device").mkdir(parents=True)
        (sys / f"js{k}" / "device" / "name").write_text(f"Pad {k}\n")
    assert find_gamepads(devices, sys) == {
        str(devices / "js0"): "Pad 0",
        str(devices / "js1"): "Pad 1",
    }
    raw = tmp_path / "hidraw"
    ids = ["0003:0000256F:0000C635", "0003:0000046D:0000C626", "0003:0000046D:0000C52B"]
    for k, name in enumerate(ids):
        (raw / f"hidraw{k}" / "device").mkdir(parents=True)
        text = f"DRIVER=hid-generic\nHID_ID={name}\nHID_NAME=3Dconnexion Mouse {k}\nHID_PHYS=u\n"
        (raw / f"hidraw{k}" / "device" / "uevent").write_text(text)
    assert find_spacemice(tmp_path, raw) == {
        str(tmp_path / "hidraw0"): "3Dconnexion Mouse 0",
        str(tmp_path / "hidraw1"): "3Dconnexion Mouse 1",
    }


def test_two_gamepads_need_a_choice(tmp_path):
    for k in range(2):
        (tmp_path / f"js{k}").touch()
    with pytest.raises(DeviceError, match=r"several devices.*js0.*js1.*--source FILE"):
        open_gamepad(devices=tmp_path)
    with pytest.raises(DeviceError, match="no gamepad is connected"):
        open_gamepad(devices=tmp_path / "none")
    with pytest.raises(DeviceError, match=r"cannot open .*js7: No such file"):
        open_gamepad(str(tmp_path / "js7"), tmp_path)
    open_gamepad(str(tmp_path / "js1"), tmp_path).close()


# Files


@pytest.mark.parametrize("device", DEVICES)
def test_shipped_files_are_valid(device):
    config = load_config(device)
    assert config.device == device
    assert config.has_pose != bool(config.axes)
    assert load_config("", shipped_config(device)) == config


def test_a_file_overrides_defaults(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("device: tracker\nlinear_speed: 0.5\nhold: []\nmin_cutoff: .inf\n")
    config = load_config(file=file)
    assert (config.linear_speed, config.hold, config.scale) == (0.5, (), 1.0)
    assert config.min_cutoff == math.inf


BAD = {
    "speed: 1": "unknown key 'speed'",
    "linear_sped: 1": "did you mean linear_speed",
    "linear_speed: fast": "linear_speed must be a number from 0.001 to 10; got 'fast'",
    "linear_speed: .nan": "linear_speed must be a number",
    "median: 2.5": "median must be an integer from 1 to 31; got 2.5",
    "axes: {forward: [0, 1]}": "axes must be a mapping with keys of x, y, z, roll",
    "axes: {x: [0]}": r"axes.x must be \[number of an axis, factor\]",
    "axes: {x: [-1, 1.0]}": r"axes.x\[0\] must be the number of a button",
    "hold: 4": "hold must be a list; got 4",
    "rpy: [0, 0]": "rpy must be a list of 3 values",
    "device: gamped": "did you mean gamepad",
    "device: joy": "is for the device 'joy', not for tracker",
    "frame: camera": "frame must be base or tool for a device with a pose",
    "- 1": "the file must be one mapping",
    "a: [": "not YAML",
}


@pytest.mark.parametrize("text", BAD)
def test_errors_of_a_file_name_the_key_and_what_is_valid(tmp_path, text):
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(OptionError, match=BAD[text]):
        load_config("tracker", file)


def test_a_missing_file_and_a_missing_device(tmp_path):
    with pytest.raises(OptionError, match=r"cannot read .*none\.yaml: No such file"):
        load_config("joy", tmp_path / "none.yaml")
    with pytest.raises(OptionError, match="name a device: keyboard"):
        load_config()
