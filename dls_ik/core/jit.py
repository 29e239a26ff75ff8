"""The decorators of all kernels: compiled, cached on disk, without the GIL.

The only place that uses private members of numba; test/core/test_jit.py fails where they change.
"""

import contextlib
import hashlib
import os
import pickle
import secrets
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from dls_ik.core import NumbaStartError

F = TypeVar("F", bound=Callable[..., Any])
Report = Callable[[str], object]
DIGEST = hashlib.sha256().digest_size


def _import_numba() -> ModuleType:
    """Import numba; say in one line each what it does not take of the environment.

    Raises:
        NumbaStartError: it does not start; what is wrong is often in its environment variables.
    """
    with warnings.catch_warnings(record=True) as heard:
        try:
            import numba
        except ModuleNotFoundError:
            raise
        except Exception as error:
            given = [f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_")]
            with_what = f" with {' '.join(given)}" if given else ""
            raise NumbaStartError(f"numba does not start{with_what}: {error}") from error
    for each in heard:  # those about the environment come with a traceback
        warnings.warn_explicit(str(each.message).partition("\n")[0], each.category, "numba", 1)
    return numba


numba = _import_numba()
from numba.core.caching import (  # noqa: E402  after what says why it cannot
    CompileResultCacheImpl,
    FunctionCache,
)
from numba.core.serialize import dumps  # noqa: E402


def _fingerprint() -> bytes:
    """Hash the names and contents of all kernel sources: a copy of them may use the same cache."""
    here, digest = Path(__file__).parent, hashlib.sha256(numba.__version__.encode())
    for path in sorted(here.rglob("*.py")):
        digest.update(f"{path.relative_to(here)} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    return digest.digest()


_SOURCES = _fingerprint()


def _warn(words: str) -> None:
    warnings.warn_explicit(words, RuntimeWarning, "dls_ik", 1)


_report: Report = _warn
cache_failures: dict[str, str] = {}  # the first that was met on "load" and on "save", in words


def report_cache_failures_to(report: Report) -> None:
    """Have the one line about a cache that cannot be read, or written, go elsewhere."""
    global _report
    _report = report


def _fail(what: str, words: str) -> None:
    if what not in cache_failures:
        cache_failures[what] = words
        _report(words)


class DamagedFileError(Exception):
    """A file of the cache that is not as it was written."""


class KernelFiles:
    """The files of a kernel's cache: one for each signature, checked when it is read.

    Numba's own have an index beside the machine code. A process that is killed between writing
    the two, or two processes that write at once, may leave an index that gives one signature the
    machine code of another one or of older sources, and nothing there detects a damaged file.
    """

    def __init__(self, folder: str, name: str, installed: str = "") -> None:
        """Keep files in `folder`.

        Args:
            name: of the kernel.
            installed: another folder to look into, which may not be writable: such as that of a
                container's image.
        """
        self._folder, self._name, self._installed = folder, name, installed

    def load(self, key: Any) -> Any:
        """The data of a key; None where there are none, or they are of other sources.

        Raises:
            DamagedFileError: the file was torn, or changed.
            OSError: it cannot be read.
        """
        found = self._load(self.path(key), key)
        if found is None and self._installed:
            with contextlib.suppress(OSError, DamagedFileError):
                found = self._load(self.path(key, self._installed), key)
        return found

    def _load(self, path: str, key: Any) -> Any:
        try:
            with open(path, "rb") as file:
                content = memoryview(file.read())
        except FileNotFoundError:
            return None
        digest, rest = content[:DIGEST], content[DIGEST:]
        if hashlib.sha256(rest).digest() != digest:
            raise DamagedFileError(f"{path} is damaged")
        if rest[:DIGEST] != self._stamp(key):
            return None
        return pickle.loads(rest[DIGEST:])  # noqa: S301  docs/security.md says who can write there

    def save(self, key: Any, data: Any) -> None:
        """Write the data of a key, whole or not at all.

        Raises:
            OSError: they cannot be written.
        """
        path = self.path(key)
        rest = self._stamp(key) + dumps(data)
        part = f"{path}.{secrets.token_hex(8)}.part"
        try:
            with open(part, "wb") as file:
                file.write(hashlib.sha256(rest).digest())
                file.write(rest)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise

    def flush(self) -> None:
        """Forget nothing: files of other sources are not used, and are written over."""

    def path(self, key: Any, folder: str = "") -> str:
        """The file of a key; those of other sources have the same name, and are replaced."""
        number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return os.path.join(folder or self._folder, f"{self._name}.{number}.nbc")

    def _stamp(self, key: Any) -> bytes:
        return hashlib.sha256(_SOURCES + repr(key).encode()).digest()


_UserProvided, _InTree, *_others = CompileResultCacheImpl._locator_classes


class _Installed(_InTree):  # type: ignore[misc,valid-type]
    """The folder beside the sources, to be read where no folder can be written."""

    def ensure_cache_path(self) -> None:
        if not os.path.isdir(self.get_cache_path()):
            raise FileNotFoundError


class _CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_UserProvided, _InTree, *_others, _Installed)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """The cache of a kernel; where it cannot be read the kernel is compiled, as without one.

    Raises:
        RuntimeError: there is no folder for it.
    """

    _impl_class = _CacheImpl

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        beside = os.path.join(os.path.dirname(function.__code__.co_filename), "__pycache__")
        installed = "" if numba.config.CACHE_DIR or beside == self.cache_path else beside
        self._cache_file = KernelFiles(self.cache_path, self._impl.filename_base, installed)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel for a signature, or None."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001  whatever a damaged file leads to
            reason = " ".join(str(error).split()) or type(error).__name__
            _fail("load", f"compiling kernels again, which takes up to a minute: {reason}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  such as a full disk
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            _fail(
                "save",
                "compiling kernels, which takes up to a minute, at every start: they cannot be "
                f"kept in {self.cache_path} ({reason}); set NUMBA_CACHE_DIR to a folder with room",
            )


def cache_folder(function: Callable[..., Any]) -> str | None:
    """The folder that a kernel's machine code is kept in; None if in memory alone."""
    folder: str | None = getattr(getattr(function, "_cache", None), "cache_path", None)
    return folder


def _compile(function: F, **chosen: Any) -> F:
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,  # nobody takes their address; a fifth of the compilation
        "fastmath": {"contract", "reassoc", "nsz"},  # not nnan, ninf: NaN must stay what it is
        **chosen,
    }
    compiled = numba.njit(**options)(function)
    if hasattr(compiled, "_cache"):  # a function where NUMBA_DISABLE_JIT is set
        with contextlib.suppress(RuntimeError, OSError):  # compile in memory at every start
            compiled._cache = KernelCache(function)
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
