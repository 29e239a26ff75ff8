"""Results that are kept for as long as the object lives that they were computed from."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Rest = ParamSpec("Rest")
Result = TypeVar("Result")
MAX_RESULTS = 16  # of one object


def kept_with_owner(
    function: Callable[Concatenate[Owner, Rest], Result],
) -> Callable[Concatenate[Owner, Rest], Result]:
    """Keep the results of a function with its first argument, which is compared by identity.

    ``functools.lru_cache`` would keep that argument alive: thousands of snapshots or meshes that
    nothing else uses. Results must not refer to the argument. The oldest result of an object is
    dropped for one more than MAX_RESULTS.
    """
    known: WeakKeyDictionary[Owner, dict[Hashable, Any]] = WeakKeyDictionary()

    @wraps(function)
    def find(owner: Owner, /, *rest: Rest.args, **named: Rest.kwargs) -> Result:
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

    find.__dict__["known"] = known  # for tests
    return find
