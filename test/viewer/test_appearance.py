# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Appearance of the page in two browsers, a desktop and a phone, that show the same arms."""

import contextlib

import numpy as np
import pytest
from viewer import browser as browsers
from viewer.browser import CLICK

pytest.importorskip("viser")

import dls_ik.viewer
from dls_ik import RobotModel

pytestmark = pytest.mark.slow

ROBOT = RobotModel.wam()
METHOD = "ctp+sd+svf"
DESKTOP, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}  # [px]
PRESETS = "Through a singularity", "Out of reach", "Into a joint limit"
# Boxes [left, top, right, bottom] of the visible widgets of the panel with the presets
BOXES = """() => {
    const box = (element) => {
        const {left, top, right, bottom} = element.getBoundingClientRect();
        return [left, top, right, bottom].map(Math.round);
    };
    const button = [...document.querySelectorAll("button")].find(
        (button) => button.textContent === "Through a singularity");
    const area = button.closest(".mantine-ScrollArea-root");
    return [...area.querySelectorAll("button, input")].filter(
        (widget) => widget.offsetParent !== null).map(box);
}"""
# Space between each scroll bar and the rightmost widget, plot or table beside it [px]
SPACES = """() => [...document.querySelectorAll(".mantine-ScrollArea-root")].flatMap((area) => {
    const bar = area.querySelector(".mantine-ScrollArea-scrollbar[data-orientation=vertical]");
    if (bar === null || bar.offsetParent === null) return [];
    const parts = [...area.querySelectorAll("button, input, .uplot-container, table")];
    const ends = parts.filter((part) => part.offsetParent !== null).map(
        (part) => part.getBoundingClientRect().right);
    return [bar.getBoundingClientRect().left - Math.max(...ends)];
})"""
UNDER_THE_MOUSE = "([x, y]) => document.elementFromPoint(x, y).closest('button')?.textContent"
# Axes of each visible plot, null without ticks: the room [px] beside the longest tick label of the
# vertical axis, the free space [px] between the tick labels of the time axis, and the space [px]
# between these and the name of the time axis
AXES = """() => Object.values(window.__viserTestpoints.uplots).filter(
    ({chart}) => chart.root.offsetParent !== null && chart.root.clientWidth > 0
).map(({chart}) => {
    const [x, y] = chart.axes, ratio = window.devicePixelRatio, font = 11;
    if (!(x._values?.length > 1 && y._values?.length > 1)) return null;
    const width = (text) => {
        chart.ctx.font = x.font[0];
        return chart.ctx.measureText(text).width / ratio;
    };
    const places = x._splits.map((split) => chart.valToPos(split, "x"));
    const gaps = places.slice(1).map((place, i) => place - places[i]
        - (width(x._values[i]) + width(x._values[i + 1])) / 2);
    return [
        y._size - y.ticks.size - y.gap - Math.max(...y._values.map(width)),
        Math.min(...gaps),
        x._lpos + x.labelGap - (x._pos + x.ticks.size + x.gap + font),
    ];
})"""
# Part of the height of the first plot that is in the window
SHOWN_PLOT = """() => {
    const plot = document.querySelector(".uplot canvas");
    if (plot === null) return 0;
    const {top, bottom, height} = plot.getBoundingClientRect();
    return (Math.min(bottom, window.innerHeight) - Math.max(top, 0)) / height;
}"""
# Width of the part of the panels that is outside the window [px]
HIDDEN_WIDTH = """() => Math.max(...[...document.querySelectorAll(".mantine-ScrollArea-viewport")]
    .map((area) => area.scrollWidth - area.clientWidth))"""
IS_DARK = "() => document.documentElement.dataset.mantineColorScheme === 'dark'"


@pytest.fixture(scope="module")
def viewer():
    with dls_ik.viewer.open(ROBOT, METHOD, browser=False) as viewer:
        yield viewer


@pytest.fixture(scope="module")
def both(viewer, browser, tmp_path_factory):
    folder = tmp_path_factory.mktemp("appearance")
    with contextlib.ExitStack() as stack:
        yield tuple(
            stack.enter_context(browsers.open_page(browser, viewer.url, folder, name, size))
            for name, size in (("desktop", DESKTOP), ("phone", PHONE))
        )


@pytest.fixture(autouse=True)
def idle(viewer, both):
    """Show one arm at rest before each test; errors in the log of a page fail the test."""
    viewer.session.set_methods((METHOD,))
    viewer.session.set_bare(False)
    viewer.show(ROBOT.clip(np.full(7, 0.4)))
    for page in both:
        page.wait_for_text("at the target")
    yield
    for page in both:
        assert not page.errors, "the page logged:\n" + "\n".join(page.errors)


def has_ticks(page):
    axes = page.page.evaluate(AXES)
    return bool(axes) and None not in axes


def choose(page, place, option):
    """Choose an option in a list of methods; the list of speeds precedes them.

    The page hides the options of a list that is scrolled out of the window.
    """
    methods = page.page.locator("input.mantine-Select-input:visible").nth(1 + place)
    methods.evaluate("element => element.scrollIntoView({block: 'center'})")
    methods.evaluate(CLICK)
    page.page.get_by_role("option", name=option, exact=True).evaluate(CLICK)


def test_a_preset_moves_no_widget_below_the_mouse(both):
    page, _ = both
    before = page.page.evaluate(BOXES)
    box = page.page.get_by_role("button", name=PRESETS[0]).bounding_box()
    mouse = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.page.mouse.click(*mouse)
    page.wait_for_text("Watch:")
    page.wait_for_text("D: sdls+clamp")
    page.page.evaluate(browsers.FRAMES)
    assert page.page.evaluate(BOXES) == before
    assert page.page.evaluate(UNDER_THE_MOUSE, mouse) == PRESETS[0]
    assert page.page.get_by_role("tooltip").count() == 0
    page.screenshot("viewer-preset-1400")


def test_nothing_touches_a_scroll_bar(both):
    page, _ = both
    page.page.get_by_text("Conditioning", exact=True).click()
    page.wait_until(lambda: len(page.page.evaluate(SPACES)) == 2, "two scroll bars")
    assert min(page.page.evaluate(SPACES)) >= 4
    page.page.get_by_text("Motion", exact=True).click()


def test_plots_have_ticks_and_nothing_overlaps_them(both):
    page, _ = both
    for tab in ("Motion", "Conditioning"):
        page.page.get_by_text(tab, exact=True).click()
        page.wait_until(lambda: has_ticks(page), "ticks of all plots")
        page.press(PRESETS[0])
        page.wait_for_text("D: sdls+clamp")
        page.wait_until(lambda: has_ticks(page), "ticks of all plots")
        axes = np.array(page.page.evaluate(AXES))
        assert len(axes) == 3
        assert axes.min() >= 0.0, axes
        page.press("Stop")
    page.wait_for_text("Gains at the configuration of A")
    page.screenshot("viewer-conditioning-1400")
    page.page.get_by_text("Motion", exact=True).click()


def test_a_phone_shows_the_plots(both):
    _, phone = both
    phone.page.get_by_role("button", name="Expand panel Motion").click()
    phone.wait_until(lambda: phone.page.evaluate(SHOWN_PLOT) > 0.9, "a plot in the window")
    phone.wait_until(lambda: has_ticks(phone), "ticks of all plots")
    phone.screenshot("viewer-plots-390")
    phone.page.get_by_text("Conditioning", exact=True).click()
    phone.press(PRESETS[0])
    phone.wait_for_text("D: sdls+clamp")
    phone.wait_until(lambda: has_ticks(phone), "ticks of all plots")
    phone.page.evaluate(browsers.FRAMES)
    assert phone.page.evaluate(HIDDEN_WIDTH) == 0
    phone.screenshot("viewer-conditioning-390")
    phone.page.get_by_role("button", name="Collapse panel Motion").click()


def test_the_page_says_that_the_view_is_shared_and_colours_are_of_one_browser(both):
    for page in both:
        page.wait_for_text("Shared view:")
        page.wait_for_text("2 browsers are connected")
        assert page.page.title() == "dls-ik: wam7"
        assert not page.page.evaluate(IS_DARK)
    desktop, phone = both
    desktop.press("Light or dark")
    desktop.wait_until(lambda: desktop.page.evaluate(IS_DARK), "dark colours")
    desktop.screenshot("viewer-dark-1400")
    assert not phone.page.evaluate(IS_DARK)
    desktop.press("Light or dark")
    desktop.wait_until(lambda: not desktop.page.evaluate(IS_DARK), "light colours")


def test_presets_methods_and_tabs_of_two_browsers_log_no_error(both):
    desktop, phone = both
    for page, other, presets in ((desktop, phone, PRESETS), (phone, desktop, PRESETS[:1])):
        for preset in presets:
            page.press(preset)
            other.wait_for_text("B: ")
            for tab in ("Conditioning", "Motion"):
                desktop.page.get_by_text(tab, exact=True).click()
            choose(other, 1, "none")
            choose(page, 0, "sdls")
            other.wait_for_text("A: sdls")
            page.press("Reset")
            other.press("Stop")
    assert not desktop.errors + phone.errors
