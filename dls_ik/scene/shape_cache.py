"""Results of functions of a shape, kept for as long as the shape exists."""

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

from dls_ik.scene.shapes import Shape

S = TypeVar("S", bound=Shape)
P = ParamSpec("P")
R = TypeVar("R")


def per_shape(function: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Keep the results of a function by the identity of a shape and further arguments.

    A shape that nothing else refers to is forgotten with its results, so that scenes whose meshes
    change all the time take no more memory than the current one.
    """
    known: WeakKeyDictionary[S, dict[object, R]] = WeakKeyDictionary()
    lock = Lock()

    @wraps(function)
    def kept(shape: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        key = (args, tuple(sorted(kwargs.items())))
        with lock:
            results = known.setdefault(shape, {})
        if key not in results:
            results[key] = function(shape, *args, **kwargs)
        return results[key]

    return kept
