"""The decorators of all kernels: compiled, cached on disk, without the GIL."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def _fingerprint() -> str:
    """Hash the names and contents of all kernel sources: a copy of them may use the same cache."""
    here, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(here.rglob("*.py")):
        digest.update(f"{path.relative_to(here)} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


_SOURCES = _fingerprint()


def _compile(function: F, **chosen: Any) -> F:
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,  # nobody takes their address; a fifth of the compilation
        "fastmath": {"contract", "reassoc", "nsz"},  # not nnan, ninf: NaN must stay what it is
        **chosen,
    }
    try:
        compiled = njit(cache=True, **options)(function)
    except RuntimeError:  # no folder that can be written: compile in memory at every start
        return cast(F, njit(**options)(function))
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _SOURCES
    return cast(F, compiled)


def kernel(function: F) -> F:
    """Compile `function`; keep the machine code on disk for the next process.

    Numba's own cache looks at the file of the function alone, and would go on using the old code
    of a kernel that it calls from another file. Here the stamp covers all of ``core``.
    """
    return _compile(function, _nrt=True)  # said, or it would be as in the kernel that calls it


def borrowing(function: F) -> F:
    """As :func:`kernel`, for what makes no array: references to those it is given are not counted.

    Otherwise every array that is taken out of a struct is counted in and out by a call, which in
    a loop over short kernels takes as long as they do.
    """
    return _compile(function, _nrt=False)


def inlined(function: F) -> F:
    """Compile `function` into each of its callers.

    For short kernels of arrays on the path of every iteration.
    """
    return _compile(function, forceinline=True)


def exact(function: F) -> F:
    """As :func:`inlined`, every sum and product rounded as it is written."""
    return _compile(function, forceinline=True, fastmath=False)


def spliced(function: F) -> F:
    """Make `function` part of each of its callers before they are compiled.

    For what takes structs of arrays: handing one over costs more than a short kernel does (half of
    an iteration, measured), and to compile, seconds. What is called is optimised anew as a part of
    its caller, and of the caller's caller, so that a tree of few levels compiles in a fraction of
    the time of a deep one; but a kernel of hundreds of lines takes longer again.
    """
    return _compile(function, inline="always")
