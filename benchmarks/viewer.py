"""The viewer: time to a usable page, frames a second and latency while its target is dragged.

A new `dls-ik view`, kernels compiled before, and a page in a headless Chromium that runs already.
The page is usable when it draws the arm where it is, the target and the list of methods. For
latency the mouse, which holds the target by an arrow, jumps by some pixels: the time is that from
the frame that draws the target elsewhere to the first one that draws the hand elsewhere, on the
clock of the page. Frames are those that the page's renderer drew meanwhile. Without a graphics card
everything is drawn by the processor: the renderer is named beside the figures.
"""

import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Column, Table, finish, guarded, parser, positive, quartiles
from benchmarks.machine import machine
from benchmarks.processes import ROOT, Process, ros_node
from dls_ik import DlsIkError
from dls_ik.ros.child import stay_alone

sys.path.insert(0, str(ROOT / "test"))

from viewer import browser as browsers

NAMESPACE, HOME = "viewed", "[0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0]"
JUMP = 0.03  # [m]
REST = 0.7  # [s] between jumps, for the arm to come to rest
PATIENCE = 240.0  # [s]
COLUMNS = [
    Column("what is shown"),
    Column("page usable after [s]", ".1f"),
    Column("of it the process [s]", ".1f"),
    Column("frames a second", ".1f"),
    Column("latency, median [ms]", ".0f"),
    Column("quartiles [ms]"),
    Column("in frames, median", ".1f"),
]
RENDERER = """() => {
    const gl = document.createElement('canvas').getContext('webgl2');
    return gl.getParameter(gl.getExtension('WEBGL_debug_renderer_info').UNMASKED_RENDERER_WEBGL);
}"""
HAND = """() => Object.keys(__viserMutable.nodeRefFromName)
    .filter((name) => /^.arm.link[0-9]+$/.test(name))
    .sort((a, b) => a.length - b.length || (a < b ? -1 : 1)).pop()"""
# Notes for each frame when it began, how many were drawn, and where target and hand are.
WATCH = """(names) => {
    const rows = window.benchmarkRows = [];
    const nodes = names.map((name) => __viserMutable.nodeRefFromName[name]);
    const look = (now) => {
        const drawn = __viserTestpoints.rendererInfo.render.frame;
        rows.push([now, drawn, ...nodes.flatMap((n) => n.matrixWorld.elements.slice(12, 15))]);
        if (window.benchmarkRows === rows) requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""
STOP = "() => { const rows = window.benchmarkRows; window.benchmarkRows = null; return rows; }"


class Figures(NamedTuple):
    """Of one page."""

    usable: float  # [s]
    process: float  # [s] of it until the address was printed
    rate: float  # [Hz] frames drawn
    latencies: list[float]  # [ms]


def measure(browser: Any, arguments: tuple[str, ...], jumps: int) -> Figures:
    """Start a viewer, open its page, and drag its target to and fro."""
    words = ["-m", "dls_ik.cli", "view", "--no-browser", "--port", "0", *arguments]
    with Process([sys.executable, *words]) as process:
        line = process.line(PATIENCE)
        if not line.startswith("http"):
            raise DlsIkError(line)
        served = time.perf_counter() - process.started
        pictures = Path(tempfile.gettempdir())  # of a page that fails
        with browsers.open_page(browser, line.split()[0], pictures) as page:
            hand = usable(page)
            ready = time.perf_counter() - process.started
            rows = np.array(watched(page, hand, jumps))
    rate = (rows[-1, 1] - rows[0, 1]) / (rows[-1, 0] - rows[0, 0]) * 1e3
    return Figures(ready, served, rate, latencies(rows))


def usable(page: Any) -> str:
    """Wait until a person could begin; the name of the arm's last link in the scene."""
    page.wait_for_node("/target")
    page.wait_for_text("Methods")
    hand = page.wait_until(lambda: page.page.evaluate(HAND), "an arm")
    near = lambda: np.linalg.norm(page.position(hand) - page.position("/target")) < 0.25  # noqa: E731
    page.wait_until(near, "the arm at its target")
    return str(hand)


def watched(page: Any, hand: str, jumps: int) -> Any:
    """Let the mouse jump to and fro; what each frame showed."""
    grip = np.array([0.0, 0.0, 0.9 * page.page.evaluate(browsers.ARROW, "/target")])
    here, there = (page.pixel("/target", grip - [0.0, 0.0, d]) for d in (0.0, JUMP))
    mouse = page.page.mouse
    mouse.move(*here)
    page.page.wait_for_timeout(1000 * REST)
    mouse.down()
    page.page.evaluate(WATCH, ["/target", hand])
    for k in range(jumps):
        mouse.move(*(here if k % 2 else there))
        page.page.wait_for_timeout(1000 * REST)
    rows = page.page.evaluate(STOP)
    mouse.up()
    return rows


def latencies(rows: Any) -> list[float]:
    """From each jump of the target to the frame in which the hand has begun to move [ms]."""
    times, target, hand = rows[:, 0], rows[:, 2:5], rows[:, 5:8]
    jumped = np.flatnonzero(np.linalg.norm(np.diff(target, axis=0), axis=1) > 0.3 * JUMP) + 1
    found = []
    for k in jumped:
        moved = np.flatnonzero(np.linalg.norm(hand[k:] - hand[k - 1], axis=1) > 1e-4)
        if len(moved):
            found.append(float(times[k + moved[0]] - times[k]))
    return found


@contextmanager
def node() -> Iterator[None]:
    """A node that has the WAM, away from singularities."""
    command = ros_node("dls_ik.ros.node", NAMESPACE, robot="wam", initial_positions=HOME)
    with Process(command) as process:
        process.wait_ready()
        yield


def row(name: str, runs: list[Figures]) -> tuple[Any, ...]:
    """Medians over runs."""
    usable, process, rate = (float(np.median([run[i] for run in runs])) for i in range(3))
    times = [time for run in runs for time in run.latencies]
    if not times:
        raise DlsIkError("the arm did not move in the page")
    middle, low, high = quartiles(times)
    return name, usable, process, rate, middle, f"{low:.0f} to {high:.0f}", middle * rate / 1e3


def main() -> None:
    """Measure, and show."""
    options = parser(__doc__)
    options.add_argument("--repeats", type=positive, default=3, help="processes and pages")
    options.add_argument("--jumps", type=positive, default=20, help="of the mouse, on each page")
    given, before = options.parse_args(), machine()
    if shutil.which("chromium") is None:
        raise DlsIkError("there is no chromium: apt-get install -y chromium")
    stay_alone()
    table = Table(f"{given.repeats} pages, {given.jumps} jumps on each", COLUMNS)
    with browsers.chromium() as browser:
        page = browser.new_page()
        renderer = page.evaluate(RENDERER)
        page.close()
        local = [measure(browser, ("wam",), given.jumps) for _ in range(given.repeats)]
        table.rows.append(row("a controller of the viewer's", local))
        with node():
            words = ("--ros", "--namespace", NAMESPACE)
            remote = [measure(browser, words, given.jumps) for _ in range(given.repeats)]
        table.rows.append(row("a node, over DDS", remote))
        about = f"Chromium {browser.version}, {browsers.SIZE['width']} x {browsers.SIZE['height']}"
    finish(given.json, before, [table], [f"{about}, drawn by: {renderer}"])


if __name__ == "__main__":
    guarded(main)
