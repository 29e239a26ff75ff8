# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A node and a client on two networks with one cable, which is cut and mended: run in a network
namespace of its own, as ``unshare --net python ros_cut.py``.

Prints a line of figures for each cut; ends with an AssertionError where something is not as it
should be.
"""

import json
import math
import os
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np

SPEED = 0.05  # [m/s] linear speed of the twist
LAG = 2.0  # [s] maximum delay of a message on a busy machine
NAMESPACE, DOMAIN = "cut", "1"
ADDRESS = "10.77.0.{}/24"
LEASE = 2  # [s] a participant that is silent for this time is dropped; default 20
PROFILE = f"""<dds xmlns="http://www.eprosima.com"><profiles>
<participant profile_name="lease" is_default_profile="true"><rtps><builtin><discovery_config>
<leaseDuration><sec>{LEASE}</sec></leaseDuration>
<leaseAnnouncement><sec>0</sec><nanosec>500000000</nanosec></leaseAnnouncement>
</discovery_config></builtin></rtps></participant></profiles></dds>"""


def use_cable(folder):
    """Restrict discovery of this process and its children to the cable."""
    from prefork import EXECUTE  # memory is measured

    profile = Path(folder) / "lease.xml"
    profile.write_text(PROFILE)
    os.environ.pop("ROS_LOCALHOST_ONLY", None)
    os.environ.update(
        ROS_DOMAIN_ID=DOMAIN,  # the networks are nobody else's
        ROS_AUTOMATIC_DISCOVERY_RANGE="SUBNET",
        FASTDDS_BUILTIN_TRANSPORTS="UDPv4",  # memory is shared by networks, and no cable
        FASTDDS_DEFAULT_PROFILES_FILE=str(profile),
        **EXECUTE,
    )


def far():
    """Send a twist and FK requests continuously, and report the results."""
    sys.stdin.readline()  # the cable is there
    from dls_ik.errors import DlsIkError
    from dls_ik.ros.client import IkClient
    from dls_ik.ros.client.target_publisher import TargetPublisher

    def stream():
        with TargetPublisher(NAMESPACE, patience=240.0) as publisher:
            publisher.wait()
            begin = time.monotonic()
            while True:
                publisher.send_twist((0, SPEED * math.cos(time.monotonic() - begin), 0, 0, 0, 0))
                time.sleep(0.02)

    threading.Thread(target=stream, daemon=True).start()
    with IkClient(namespace=NAMESPACE, patience=1.0) as client:
        while True:
            try:
                client.fk()
                words = ""
            except DlsIkError as error:
                words = f"{type(error).__name__}: {error}"
            print(json.dumps(words), flush=True)
            time.sleep(0.1)


class Far:
    """Remote program in a separate network, and the cable to it."""

    def __init__(self):
        self.answers = []  # outcomes of the calls; empty for answered calls
        self._process = subprocess.Popen(
            ["unshare", "--net", sys.executable, __file__, "far"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self):
        self._wait_for_its_network()
        number = str(self._process.pid)
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", number)
        _ip("addr", "add", ADDRESS.format(1), "dev", "near")
        _ip("link", "set", "near", "up")
        self._ip("link", "set", "lo", "up")
        self._ip("addr", "add", ADDRESS.format(2), "dev", "far")
        self.mend()
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()

    def begin(self):
        print("go", file=self._process.stdin, flush=True)

    def cut(self):
        self._ip("link", "set", "far", "down")

    def mend(self):
        self._ip("link", "set", "far", "up")

    def _ip(self, *words):
        _run("nsenter", "--target", str(self._process.pid), "--net", "ip", *words)

    def _wait_for_its_network(self):
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self._process.pid}/ns/net") == own:
            time.sleep(0.01)

    def _read(self):
        for line in self._process.stdout:
            self.answers.append(json.loads(line))


def _ip(*words):
    _run("ip", *words)


def _run(*words):
    subprocess.run(words, check=True)


def tip(message):
    from ros_wam import WAM

    return WAM.fk(np.array(message.position))[:3, 3]


def survive_a_cut(arm, cable, duration):
    """Cut the cable for a time [s] while the arm moves, and mend it; return the figures."""
    from ros_streamer import seconds

    arm.moves(0.05)
    del arm.heard[:]
    begun = time.time()
    cable.cut()
    arm.says_that_the_stream_ended()
    arm.stands()
    commands = [c for c in arm.commands if seconds(c) >= begun]
    still = next(seconds(c) for c in commands if not any(c.velocity))
    way = np.max([np.linalg.norm(tip(c) - tip(commands[0])) for c in commands])
    assert way < SPEED * (0.25 + LAG), f"{way:.3f} m after the cable was cut"
    held = arm.q
    arm.client.spin_for(max(0.0, begun + duration - time.time()))
    np.testing.assert_array_equal(arm.q, held)
    arm.client.spin_until(lambda: cable.answers[-1], what="a call that says it is not answered")
    words = cable.answers[-1]
    cable.mend()
    mended = time.time()
    arm.moves(0.02)
    resumed = time.time() - mended
    wait_for_an_answer(arm, cable)
    answered = time.time() - mended
    arm.assert_calm()
    return (
        f"cut for {mended - begun:.1f} s: at rest {still - begun:.2f} s after it, {1e3 * way:.1f} "
        f"mm on; moved on {resumed:.2f} s after it was mended, answered after {answered:.2f} s; "
        f"meanwhile: {words}"
    )


def wait_for_an_answer(arm, cable):
    """Wait for an answered call, or fail with the results of the last calls."""
    before = len(cable.answers)
    try:
        arm.client.spin_until(lambda: not cable.answers[-1], 60.0, "a call that is answered")
    except AssertionError as error:
        calls = f"{len(cable.answers) - before} calls since, the last: {cable.answers[-3:]}"
        raise AssertionError(f"{error}; {calls}\n{arm.node.output}") from None


def main(cuts):
    """Cut the cable for each of these times [s]."""
    from tempfile import TemporaryDirectory

    with ExitStack() as stack:
        use_cable(stack.enter_context(TemporaryDirectory()))
        cable = stack.enter_context(Far())
        from ros_watched import Watched

        arm = stack.enter_context(Watched(NAMESPACE, feedback_mode="none"))
        cable.begin()
        arm.client.spin_until(lambda: "" in cable.answers, 60.0, "a first answer")
        sizes = []
        for duration in cuts:
            print(survive_a_cut(arm, cable, duration), flush=True)
            sizes.append(arm.node.figures)
            print(f"{sizes[-1].threads} threads, {sizes[-1].rss:.1f} MiB", flush=True)
        assert sizes[-1].threads <= sizes[0].threads, f"threads grow: {sizes}"
        assert sizes[-1].rss < sizes[0].rss + 20.0, f"memory grows: {sizes}"
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


if __name__ == "__main__":
    if sys.argv[1:] == ["far"]:
        far()
    else:
        main([float(word) for word in sys.argv[1:]] or [1.0, 2.0 * LEASE])
