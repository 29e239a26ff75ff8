# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium with a viser page: its drawing, a mouse, and its log."""

import contextlib
import os
import shutil
import time

import numpy as np
import pytest

SOON = 600.0  # [s] only a dead page takes longer
FLAGS = (
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    # GPU compositing would use the same slow renderer, and a frame would take ten times as long
    "--disable-gpu-compositing",
)
SIZE = {"width": 1280, "height": 800}  # [px]

# Access of tests to viser's scene: three.js objects by the names of their nodes in Python
NODE = "(name) => window.__viserMutable?.nodeRefFromName[name]"
DRAWN = f"""(name) => {{
    const shown = (node) => node === null || (node.visible && shown(node.parent));
    const node = ({NODE})(name);
    return Boolean(node) && shown(node);
}}"""
PIXEL = f"""([name, offset]) => {{
    const node = ({NODE})(name), {{camera, canvas}} = window.__viserMutable;
    node.updateWorldMatrix(true, false);
    camera.updateMatrixWorld();
    const p = camera.position.clone().fromArray(offset);
    p.applyMatrix4(node.matrixWorld).project(camera);
    const box = canvas.getBoundingClientRect();
    return [box.left + box.width * (1 + p.x) / 2, box.top + box.height * (1 - p.y) / 2];
}}"""
TRANSFORM = f"""([name, base]) => {{
    const node = ({NODE})(name), from = ({NODE})(base);
    node.updateWorldMatrix(true, false);
    from.updateWorldMatrix(true, false);
    return from.matrixWorld.clone().invert().multiply(node.matrixWorld).toArray();
}}"""
CLICK = "element => element.click()"  # does not wait for frames, which software renders slowly
FRAMES = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
    requestAnimationFrame(done))))"""
# A page asks for frames all the time; a pause before each leaves the processor to other tests
FEW_FRAMES = """(() => {
    const pause = 60, draw = window.requestAnimationFrame.bind(window);  // [ms]
    const cancel = window.cancelAnimationFrame.bind(window);
    const timers = new Map(), frames = new Map();
    let last = 0;
    window.requestAnimationFrame = (callback) => {
        const id = ++last;
        timers.set(id, setTimeout(() => {
            timers.delete(id);
            frames.set(id, draw((time) => { frames.delete(id); callback(time); }));
        }, pause));
        return id;
    };
    window.cancelAnimationFrame = (id) => {
        clearTimeout(timers.get(id));
        if (frames.has(id)) cancel(frames.get(id));
        timers.delete(id);
        frames.delete(id);
    };
})()"""
# Length of an arrow [m]
ARROW = "(name) => window.__viserSceneTree.getState()[name].message.props.scale"


@contextlib.contextmanager
def chromium():
    """Return a browser that renders WebGL in software."""
    path = shutil.which("chromium") or pytest.skip("needs chromium: apt-get install -y chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def open_page(browser, url, folder, name="page", size=SIZE):
    """Open the page at a URL until the end of the context; an error in its log fails the test.

    The window has the given size. If the test fails, a picture ``name``-failed.png is kept.
    """
    context = browser.new_context(viewport=size)
    context.add_init_script(FEW_FRAMES)
    page = Page(context.new_page(), folder)
    try:
        page.goto(url)
        yield page
    except BaseException:
        with contextlib.suppress(Exception):
            page.screenshot(f"{name}-failed")
        raise
    finally:
        context.close()
    assert not page.errors, "the page logged:\n" + "\n".join(page.errors)


class Page:
    """Viser page. Nodes of the scene are named as in Python; lengths are in [m]."""

    def __init__(self, page, folder):
        self.page = page  # page object of Playwright
        self.folder = folder
        self.errors = []
        page.set_default_timeout(1000 * SOON)
        page.on("pageerror", lambda error: self.errors.append(f"exception: {error}"))
        page.on("console", self._keep_error)

    def goto(self, url):
        """Load the page and wait for viser's scene."""
        self.page.goto(url)
        self.wait_for_node("")
        self._close_notice("Software WebGL rendering detected")

    def wait_until(self, condition, what="the condition", timeout=SOON):
        """Wait until `condition` returns a true value, and return this value."""
        deadline = time.monotonic() + timeout
        while not (value := condition()):
            assert time.monotonic() < deadline, f"waited {timeout} s for {what}"
            self.page.wait_for_timeout(50)
        return value

    def wait_for_node(self, name):
        """Wait until a node of the scene is drawn."""
        self.wait_until(lambda: self.is_drawn(name), f"{name!r} to be drawn")

    def wait_for_text(self, text):
        """Wait until the page shows a text."""
        self.page.get_by_text(text).first.wait_for(timeout=1000 * SOON)

    def is_drawn(self, name):
        return self.page.evaluate(DRAWN, name)

    def pose(self, name, base=""):
        """Return the drawn pose (4, 4) of a node in the frame of another one, or of the world."""
        return np.reshape(self.page.evaluate(TRANSFORM, [name, base]), (4, 4)).T

    def position(self, name, base=""):
        """Return the drawn position (3,) of a node."""
        return self.pose(name, base)[:3, 3]

    def settled(self, name, polls=10):
        """Return the drawn pose (4, 4) of a node after it was constant for `polls` polls."""
        poses = [self.pose(name)]

        def is_still():
            poses.append(self.pose(name))
            return np.ptp(poses[-polls:], axis=0).max() < 1e-9 and len(poses) >= polls

        self.wait_until(is_still, f"{name!r} at rest")
        return poses[-1]

    def pixel(self, name, offset=(0.0, 0.0, 0.0)):
        """Return the position (2,) [px] on the page of a point, given in the frame of a node."""
        return np.array(self.page.evaluate(PIXEL, [name, [float(x) for x in offset]]))

    def press(self, name):
        """Click a button."""
        self.page.get_by_role("button", name=name, exact=True).evaluate(CLICK)

    def drag(self, start, end, steps=5):
        """Drag with the mouse from one point of the page [px] to another."""
        self._expect_canvas(start)
        self.page.mouse.move(*start)
        self.page.wait_for_timeout(200)
        self.page.evaluate(FRAMES)  # the page finds the object under the mouse in its next frame
        self.page.mouse.down()
        for x, y in np.linspace(start, end, steps + 1)[1:]:
            self.page.mouse.move(x, y)
            self.page.wait_for_timeout(30)
        self.page.mouse.up()

    def drag_gizmo(self, name, axis, distance, steps=5):
        """Drag a transform control by its arrow "x", "y" or "z"; return its final pose (4, 4).

        The mouse takes the cone; on the shaft, from 0.65 of its length inwards, it would take the
        arcs for rotation. A page that draws rarely lags behind the mouse, and may not notice that
        the mouse took the arrow.
        """
        direction, before = np.eye(3)["xyz".index(axis)], self.pose(name)
        grip = 0.9 * self.page.evaluate(ARROW, name) * direction
        for _ in range(3):
            self.drag(self.pixel(name, grip), self.pixel(name, grip + distance * direction), steps)
            after = self.settled(name)
            if np.abs(after - before).max() > 0.5 * abs(distance):
                break
        return after

    def screenshot(self, name):
        """Save a picture in $DLS_IK_ARTEFACTS or in the folder of the test; return its path."""
        folder = type(self.folder)(os.environ.get("DLS_IK_ARTEFACTS", self.folder))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.png"
        self.page.screenshot(path=path)
        return path

    def _close_notice(self, title):
        notice = self.page.locator(".mantine-Notification-root", has_text=title)
        if notice.count():
            notice.get_by_role("button").evaluate("button => button.click()")

    def _keep_error(self, message):
        if message.type == "error":
            self.errors.append(f"console: {message.text} ({message.location.get('url')})")

    def _expect_canvas(self, place):
        there = self.page.evaluate(
            "([x, y]) => document.elementFromPoint(x, y)?.outerHTML.slice(0, 80)", list(place)
        )
        assert there is not None, f"{place} is outside the page"
        assert there.startswith("<canvas"), f"at {place} the canvas is covered by {there}"
