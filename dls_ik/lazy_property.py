# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A cached property without a lock."""

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # type checkers know the class of functools
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801  the name of the base class
        """A property that is computed once for each object, without a lock.

        Before Python 3.12, ``functools.cached_property`` holds one lock for all objects of a class:
        a thread that needs the property of one scene would wait until another thread has computed
        the property of another scene. Without the lock, threads that need a property of the same
        object at the same time may compute it twice; one of the equal results is kept.
        """

        def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
            """Return the cached value; compute and cache it at the first use."""
            if instance is None:
                return self
            values, name = instance.__dict__, self.attrname
            if name not in values:
                values[name] = self.func(instance)
            return values[name]
