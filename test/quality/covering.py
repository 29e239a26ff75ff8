# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests that run a line, with their times, as ``scripts/coverage`` recorded them."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

from coverage import CoverageData

MIN_TIME = 0.05  # [s] minimum time of a test


class Covering:
    """Tests by the lines that they run."""

    def __init__(self, root: Path, record: Path):
        self.root = root
        self._data = CoverageData(str(record / "contexts"))
        self._data.read()
        self.times = {"plain": passed(record / "plain.xml")}
        self.times["compiled"] = passed(record / "compiled.xml")
        self.contexts = cache(self._contexts)

    def tests(self, path: str, line: int, seconds: float) -> list[str]:
        """Return tests of a line within a time, as many different ones as possible.

        Kernels run as plain Python, their callers with compiled kernels.
        """
        times = self.times[mode(path)]
        found = self._of(path, statement(self.root / path, line)) & times.keys()
        if not found:  # a line that importing runs
            found = set().union(*self.contexts(path).values()) & times.keys()
        return within(seconds, varied(found, times), times)

    def _of(self, path: str, lines: Iterable[int]) -> set[str]:
        contexts = self.contexts(path)
        return set().union(*(contexts.get(line, ()) for line in lines))

    def _contexts(self, path: str) -> dict[int, set[str]]:
        """Return tests by line."""
        found = self._data.contexts_by_lineno(path)
        return {line: {c.partition("|")[0] for c in all_ if c} for line, all_ in found.items()}


def mode(path: str) -> str:
    """Return how to run the tests of a file: mutants of kernels are not compiled."""
    return "plain" if path.startswith("dls_ik/core/") else "compiled"


def passed(report: Path) -> dict[str, float]:
    """Return times [s] by test, from a report of pytest."""
    cases = ET.parse(report).iter("testcase")
    return {
        node_id(case.get("classname"), case.get("name")): float(case.get("time"))
        for case in cases
        if len(case) == 0 or {child.tag for child in case} <= {"properties", "system-out"}
    }


def node_id(dotted: str, name: str) -> str:
    """Return the name of a test for pytest, from module and class."""
    module, _, classes = dotted.partition(".Test")
    parts = f"Test{classes}".split(".") if classes else []
    return "::".join([module.replace(".", "/") + ".py", *parts, name])


def varied(tests: Iterable[str], times: dict[str, float]) -> Iterator[str]:
    """Yield the shortest case of every test, then the next case of each."""
    cases = defaultdict(list)
    for test in sorted(tests, key=lambda test: (times[test], test)):
        cases[test.partition("[")[0]].append(test)
    rounds = [(k, times[test], test) for row in cases.values() for k, test in enumerate(row)]
    return (test for _, _, test in sorted(rounds))


def within(seconds: float, tests: Iterable[str], times: dict[str, float]) -> list[str]:
    """Return the first tests within a time, at least one."""
    chosen, spent = [], 0.0
    for test in tests:
        cost = times[test] + MIN_TIME
        if chosen and spent + cost > seconds:
            continue
        chosen.append(test)
        spent += cost
    return chosen


def statement(path: Path, line: int) -> range:
    """Return the lines of the innermost statement around a line; of a block, its head."""
    around = range(line, line + 1)
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            body = getattr(node, "body", None)
            end = node.end_lineno if body is None else body[0].lineno - 1
            if line <= end:
                around = range(node.lineno, end + 1)
    return around


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())
