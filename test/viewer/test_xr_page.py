# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The page of a phone or headset: its requests, and messages that are not valid."""

import json
import time
import urllib.error
import urllib.request

import numpy as np
import pytest

pytest.importorskip("viser", reason="needs viser")

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from dls_ik.errors import OptionError
from dls_ik.viewer.server import PortError
from dls_ik.viewer.xr_page import XrPage


@pytest.fixture
def page():
    page = XrPage("127.0.0.1", "0")
    yield page
    page.close()


def socket(page, **options):
    return connect(f"ws{page.name.removeprefix('http')}/poses", **options)


def until(condition):
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def status(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def message(p=(0, 0, 0), q=(0, 0, 0, 1), held=()):
    return json.dumps({"p": p, "q": q, "held": list(held)})


def test_the_page_is_served_to_this_machine_only(page):
    code, text = status(page.name)
    assert code == 200
    assert "navigator.xr" in text
    assert status(f"{page.name}/other")[0] == 404
    assert status(page.name, Host="evil.example")[0] == 403
    assert status(page.name, Origin="http://evil.example")[0] == 403
    with pytest.raises(Exception, match="403"):
        socket(page, origin="http://evil.example")


def test_a_pose_and_its_buttons(page):
    assert "waiting for a device" in page.read(5.0).problem
    with socket(page) as device:
        device.send(message((1, 2, 3), (0, 0, -2, 0), ["squeeze"]))
        until(lambda: not page.read(0.0).problem)
        state = page.read(0.0)
        np.testing.assert_allclose(state.pose[:3, 3], [1, 2, 3])
        np.testing.assert_allclose(state.pose[:3, :3], np.diag([-1, -1, 1]), atol=1e-12)
        assert state.pressed == {"squeeze"}
        assert state.num_poses == 1
        with socket(page) as second, pytest.raises(ConnectionClosed, match="another device"):
            second.recv()
    until(lambda: page.read(0.0).problem)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "1",
        "[" * 1000,
        '{"p": [0, 0, 0]}',
        message((0, 0)),
        message((0, 0, 1e9)),
        message((0, 0, 10**400)),
        message(q=(0, 0, 0, 0)),
        '{"p": [0, 0, NaN], "q": [0, 0, 0, 1], "held": []}',
        '{"p": "abc", "q": [0, 0, 0, 1], "held": []}',
        '{"p": [0, 0, 0], "q": [0, 0, 0, 1], "held": 3}',
        b"\xff\xfe",
    ],
)
def test_messages_that_are_not_valid_are_ignored(page, text):
    with socket(page) as device:
        device.send(message())
        device.send(text)
        device.send(message((0, 0, 1)))
        until(lambda: page.read(0.0).num_poses == 2)
        assert page.read(0.0).pose[2, 3] == 1.0


def test_ports(page):
    with pytest.raises(OptionError, match="port from 0 to 65535; got 'abc'"):
        XrPage("127.0.0.1", "abc")
    with pytest.raises(PortError, match="cannot listen"):
        XrPage("127.0.0.1", page.name.rpartition(":")[2])
