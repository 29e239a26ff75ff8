# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Order of tests in which the workers of pytest-xdist finish at the same time.

With ``--dist worksteal`` each worker first gets an equal, contiguous part of the tests; an idle
worker takes the last tests of another one. Each part starts with its early tests: those marked
`slow` or `campaign`, and those with an expensive common fixture, which are marked `xdist_group`.
The early tests of a file are in one part, so that a fixture of their module is made once. The quick
tests that remain to the end fill the gaps.

With ``--dist loadfile`` the files with early tests come first. The order of the tests of a file
does not change.
"""

from itertools import groupby

EARLY = ("slow", "campaign", "xdist_group")  # marks


def order_tests(items, worker):
    """Reorder the collected tests in place, in a worker of pytest-xdist.

    Args:
        items: Collected tests, those of a file next to each other.
        worker: `workerinput` of pytest-xdist, with its option ``--dist`` as `dist`; empty without
            pytest-xdist. Other values than worksteal and loadfile keep the order.
    """
    dist = worker.get("dist")
    if dist == "worksteal":
        items[:] = equal_parts(items, worker["workercount"])
    elif dist == "loadfile":
        files = [list(tests) for _, tests in groupby(items, file_of)]
        files.sort(key=lambda tests: not any(map(is_early, tests)))
        items[:] = [test for tests in files for test in tests]


def equal_parts(items, workers):
    """Return the tests in the order of the parts of all workers."""
    parts = [[] for _ in range(workers)]
    for _, tests in groupby(filter(is_early, items), file_of):
        min(parts, key=len).extend(tests)
    others = [item for item in items if not is_early(item)]
    ordered, left = [], len(items)
    for k, part in enumerate(parts):
        size = left // (workers - k)  # tests that pytest-xdist gives to this worker
        missing = max(size - len(part), 0)
        ordered += [*part, *others[:missing]]
        del others[:missing]
        left -= size
    return ordered


def is_early(item):
    return any(item.get_closest_marker(mark) for mark in EARLY)


def file_of(item):
    return item.nodeid.partition("::")[0]
