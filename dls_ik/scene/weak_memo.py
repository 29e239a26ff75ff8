# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cache decorator for functions whose results are deleted together with an argument object."""

from collections.abc import Callable, Hashable
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
MAX_RESULTS = 16  # maximum number of cached results for one object


def kept_with_owner(
    function: Callable[Concatenate[Owner, Rest], Result],
) -> Callable[Concatenate[Owner, Rest], Result]:
    """Decorate a function to cache its results for the lifetime of its first argument.

    The first argument is compared by identity. ``functools.lru_cache`` is not suitable, because it
    would keep thousands of unused snapshots or meshes in memory. Results must not refer to the
    first argument. At most `MAX_RESULTS` results are cached for an object that is a first argument;
    the oldest result is dropped.
    """
    known: WeakKeyDictionary[Owner, dict[Hashable, Any]] = WeakKeyDictionary()
    lock = Lock()

    @wraps(function)
    def find(owner: Owner, /, *rest: Rest.args, **named: Rest.kwargs) -> Result:
        with lock:
            results = known.setdefault(owner, {})
        key = (rest, *sorted(named.items()))
        if key not in results:
            result = function(owner, *rest, **named)
            if len(results) >= MAX_RESULTS:
                results.pop(next(iter(results)), None)
            results[key] = result
            return result
        found: Result = results[key]
        return found

    find.__dict__["known"] = known  # read by tests
    return find
