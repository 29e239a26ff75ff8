# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Evaluation of a soak: lateness, growth, verdicts, the picture."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import assert_good, texts

from benchmarks import soak_report
from benchmarks.idle_loop import Lateness, missed
from benchmarks.soak_report import deadlines, draw_soak, growth, memory, steady, verdicts

PERIOD, RATE = 0.002, 500
COUNTS = {
    "calls sent": 10,
    "calls answered": 10,
    "wrong answers": 0,
    "commands out of bounds": 0,
    "faults in the log": 0,
}


def test_lateness_deadlines_restart_after_a_missed_deadline():
    found = Lateness(PERIOD).of([0.0001, 0.002, 0.0045, 0.006, 0.0111, 0.0132])
    np.testing.assert_allclose(found, [0.0, 0.0, 0.0005, 0.0, 0.0031, 0.0001], atol=1e-12)
    assert missed(np.array(found), PERIOD) == 1


def test_lateness_of_consecutive_parts_equals_that_of_the_whole():
    times = np.cumsum(PERIOD + 1e-3 * np.random.default_rng(0).random(1000))
    whole, parts = Lateness(PERIOD), Lateness(PERIOD)
    assert whole.of(times) == [*parts.of(times[:300]), *parts.of(times[300:])]


def samples(minutes=10, slope=0.0, **other):
    """One a second, with memory that rises by so many MiB a minute."""
    times = np.arange(1.0, 60.0 * minutes)
    fixed = {"threads": 22, "files": 18, "sent": 25, "waiting": 1, "load": 0.5, "priority": 50}
    fixed |= {"node_worst": 0.001, "idle_worst": 0.0005, **other}
    sizes = {"rss": 280.0, "pss": 180.0, "uss": 160.0}
    return [
        {"time": t, **fixed, **{name: size + slope * t / 60.0 for name, size in sizes.items()}}
        for t in times.tolist()
    ]


def test_memory_that_grows_by_a_percent_fails():
    flat, rising = samples(), samples(slope=0.4)
    assert memory(flat).holds
    assert growth(rising, "rss").slope == pytest.approx(60.0 * 0.4)
    assert not memory(rising).holds
    assert "1.14 %" in str(memory(rising))


def late(node, idle, count=10_000):
    """Lateness of loops that were two periods late so often."""
    pairs = {"node": node, "idle": idle}
    return {n: np.r_[np.zeros(count), np.full(k, 2.0 * PERIOD)] for n, k in pairs.items()}


def test_more_missed_deadlines_than_the_idle_loop_fail_at_low_load(monkeypatch):
    monkeypatch.setattr(soak_report.os, "sched_getaffinity", lambda _: {0, 1})
    assert deadlines(samples(), late(1, 1), RATE).holds
    assert deadlines(samples(), late(2, 1), RATE).holds is False
    assert deadlines(samples(priority=0), late(3, 1), RATE).holds
    assert deadlines(samples(priority=0), late(4, 1), RATE).holds is False
    assert deadlines(samples(load=3.0), late(4, 1), RATE).holds is None


def test_thread_count_may_rise_early_but_not_later():
    assert steady("threads", [22] * 30 + [23] * 70).holds
    assert not steady("threads", [22] * 60 + [23] * 40).holds


@pytest.mark.parametrize("name", ["calls answered", "wrong answers", "commands out of bounds"])
def test_each_wrong_count_fails_one_verdict(name):
    good = verdicts(samples(), late(0, 0), COUNTS, RATE)
    assert all(verdict.holds is not False for verdict in good)
    bad = verdicts(samples(), late(0, 0), {**COUNTS, name: 9}, RATE)
    assert sum(verdict.holds is False for verdict in bad) == 1


def test_soak_picture_has_four_labelled_panels():
    figure = draw_soak(samples(3), RATE, "3 minutes")
    assert len(figure.axes) == 4
    for words in ("Memory of the node", "its own pages", "idle loop", "a period"):
        assert words in texts(figure)
    assert_good(figure)
