# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cached properties: computed once for each object, and without waiting for other objects."""

import threading

from dls_ik.lazy_property import cached_property

LONG = 60.0  # [s] exceeded only by a thread that waits for another one


class Slow:
    """An object whose property takes as long as another thread wants."""

    def __init__(self):
        self.begun, self.may_end, self.count = threading.Event(), threading.Event(), 0

    @cached_property
    def value(self):
        """A number of calls, which waits until it may end."""
        self.count += 1
        self.begun.set()
        assert self.may_end.wait(LONG)
        return self.count


def test_a_property_is_computed_once():
    one = Slow()
    one.may_end.set()
    assert one.value == one.value == 1
    assert Slow.value.attrname == "value"
    assert Slow.__dict__["value"].__doc__ == "A number of calls, which waits until it may end."


def test_a_property_of_one_object_does_not_wait_for_that_of_another():
    slow, quick = Slow(), Slow()
    quick.may_end.set()
    first = threading.Thread(target=lambda: slow.value, daemon=True)
    second = threading.Thread(target=lambda: quick.value, daemon=True)
    first.start()
    assert slow.begun.wait(LONG)
    second.start()
    assert quick.begun.wait(LONG / 10)
    second.join()
    slow.may_end.set()
    first.join()
    assert vars(slow)["value"] == vars(quick)["value"] == 1
