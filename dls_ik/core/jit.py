# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Decorators of all kernels: compilation by Numba, a cache on disk, no GIL.

Machine code is loaded from the cache on disk, or from the package if it contains machine code
compiled ahead of time for all processors of this architecture. Other kernels are compiled.

The private members of Numba that this module needs are in :mod:`dls_ik.compat`.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import secrets
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from dls_ik import compat
from dls_ik.core import NumbaStartError

try:
    import fcntl as _fcntl

    fcntl: Any = _fcntl
except ImportError:  # Windows
    fcntl = None

F = TypeVar("F", bound=Callable[..., Any])
Report = Callable[[str], object]
DIGEST = hashlib.sha256().digest_size


def _import_numba() -> ModuleType:
    """Import numba, and shorten its warnings about the environment to one line each.

    Raises:
        NumbaStartError: If importing numba fails, often because of its environment variables.
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
    for each in heard:  # warnings about the environment include a traceback
        warnings.warn_explicit(str(each.message).partition("\n")[0], each.category, "numba", 1)
    return numba


numba = _import_numba()


def _fingerprint() -> bytes:
    """Return a hash of all kernel sources; equal copies of the sources share a cache."""
    here, digest = Path(__file__).parent, hashlib.sha256(numba.__version__.encode())
    for path in sorted(here.rglob("*.py")):
        digest.update(f"{path.relative_to(here)} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    return digest.digest()


_SOURCES = _fingerprint()


def _warn(message: str) -> None:
    """Issue a RuntimeWarning without a source line."""
    warnings.warn_explicit(message, RuntimeWarning, "dls_ik", 1)


_report: Report = _warn
cache_failures: dict[str, str] = {}  # first messages for the keys "load" and "save"


def report_cache_failures_to(report: Report) -> None:
    """Call `report` at the first failure to read the cache, and at the first failure to write."""
    global _report
    _report = report


def _fail(action: str, message: str) -> None:
    """Report the first failure of an action."""
    if action not in cache_failures:
        cache_failures[action] = message
        _report(message)


class MissingKernelError(RuntimeError):
    """A kernel without machine code on disk, in a process that must not compile.

    Attributes:
        function: The Python function of the kernel.
        signature: The types of its arguments.
    """

    def __init__(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        super().__init__(
            f"the kernel {function.__name__} is not compiled yet; another process compiles it, "
            "which takes up to a minute: try again then"
        )
        self.function, self.signature = function, signature


_compile_elsewhere: Callable[[MissingKernelError], object] | None = None


def compile_elsewhere(request: Callable[[MissingKernelError], object] | None) -> None:
    """Forbid compilation in this process: calls of missing kernels raise MissingKernelError.

    Compilation holds the lock of Numba, and the GIL for much of the time, which blocks control
    loops. Kernels without a cache folder on disk are compiled in any case, because no other process
    can provide them.

    Args:
        request: Called with each error before it is raised, while the lock of Numba is held. None
            allows compilation in this process again.
    """
    global _compile_elsewhere
    _compile_elsewhere = request


# Ahead of time ------------------------------------------------------------------------------------

PACKAGED_KERNEL_FOLDER = str(Path(__file__).parent / "ahead")  # kernels in the package
# For each architecture: the LLVM processor that these kernels target, and its required features.
PORTABLE = {
    "x86_64": ("x86-64-v3", {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}),
    "aarch64": ("generic", {"neon"}),
}
_ahead_folder = ""  # folder that kernels for :data:`PACKAGED_KERNEL_FOLDER` are written to


def keep_ahead_in(folder: str) -> None:
    """Write machine code from now on to `folder`, the PACKAGED_KERNEL_FOLDER of a package.

    The process must have been started with the environment of :func:`portable_environment`.
    """
    global _ahead_folder
    _ahead_folder = folder


def portable_environment() -> dict[str, str] | None:
    """Return environment variables for portable machine code; None for other architectures."""
    name, _ = PORTABLE.get(platform.machine(), (None, None))
    return None if name is None else {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}


@functools.cache
def _runs_portable() -> bool:
    """Return whether this processor has all features that portable machine code uses."""
    name, needed = PORTABLE.get(platform.machine(), (None, set[str]()))
    return name is not None and needed <= compat.host_features()


def _portable(key: Any) -> Any:
    """Return a cache key (signature, target, sources) without the name of the processor."""
    signature, (triple, *_), *rest = key
    return (signature, triple, "ahead", *rest)


# Files --------------------------------------------------------------------------------------------


class DamagedFileError(Exception):
    """A cache file whose content differs from the data that were written."""


class KernelFiles:
    """Cache files of a kernel: one file per signature, checked when it is read.

    These files replace those of Numba, which keeps an index next to the machine code. A process
    killed between writing the two, or two processes that write at once, may leave an index that
    refers a signature to the machine code of another signature or of older sources. Numba also does
    not detect damaged files.
    """

    def __init__(
        self, folder: str, name: str, installed: str = "", ahead: str | None = None
    ) -> None:
        """Initialise the files of a kernel.

        Args:
            folder: Folder that files are read from and written to.
            name: Name of the kernel.
            installed: Another folder to read from, such as that of a container image.
            ahead: Folder of kernels that were compiled ahead of time; None for
            :data:`PACKAGED_KERNEL_FOLDER`.
        """
        self._folder, self._name, self._installed = folder, name, installed
        self._ahead = PACKAGED_KERNEL_FOLDER if ahead is None else ahead

    def load(self, key: Any) -> Any:
        """Return the data of a key; None without data for the current sources.

        Raises:
            DamagedFileError: If the file is truncated or was changed.
            OSError: If the file cannot be read.
        """
        found = self._load(self.path(key), key)
        elsewhere = [(self._installed, key)] if self._installed else []
        if found is None and _runs_portable():
            elsewhere.append((_ahead_folder or self._ahead, _portable(key)))
        for folder, its_key in elsewhere:
            if found is None:
                with contextlib.suppress(OSError, DamagedFileError):
                    found = self._load(self.path(its_key, folder), its_key)
        return found

    def _load(self, path: str, key: Any) -> Any:
        """Return the data of a key in one file; None if it is missing or of other sources."""
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
        return pickle.loads(rest[DIGEST:])  # noqa: S301  docs/security.md: writers of the folder

    def save(self, key: Any, data: Any) -> None:
        """Write the data of a key atomically.

        Raises:
            OSError: If the file cannot be written.
        """
        if _ahead_folder:
            key = _portable(key)
        path = self.path(key, _ahead_folder)
        rest = self._stamp(key) + compat.numba_serialize(data)
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
        """Do nothing: files of other sources are ignored and overwritten."""

    def path(self, key: Any, folder: str = "") -> str:
        """Return the path of the file of a key, which does not depend on the sources."""
        number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return os.path.join(folder or self._folder, f"{self._name}.{number}.nbc")

    def _stamp(self, key: Any) -> bytes:
        """Return a hash of the sources and the key."""
        return hashlib.sha256(_SOURCES + repr(key).encode()).digest()


def _try_lock(file: int, byte: int) -> bool:
    """Try to lock a byte of a file; return whether this process holds the lock."""
    if fcntl is None:  # Windows: processes compile independently
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


class Turns:
    """Locks that let one process compile a kernel while other processes wait to load it.

    Each lock is a file lock of the operating system on one byte per kernel. The system releases the
    locks of a process that ends, however the process ends. One lock per process suffices, because
    Numba compiles in one thread at a time.
    """

    # Maximum wait [s], because a suspended process keeps its lock, and polling interval [s].
    WAIT, POLL = 300.0, 0.05

    def __init__(self) -> None:
        self._files: dict[str, int] = {}  # never closed: closing releases all locks
        self._held: tuple[int, int] | None = None

    def take(self, folder: str, kernel: str) -> None:
        """Wait for the lock of `kernel` and hold it; return at once if locks are unavailable."""
        self.release()
        byte = int.from_bytes(hashlib.sha256(kernel.encode()).digest()[:3], "big")
        with contextlib.suppress(OSError):
            if folder not in self._files:
                path = os.path.join(folder, ".compiling")
                self._files[folder] = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            file, last = self._files[folder], time.monotonic() + self.WAIT
            while not _try_lock(file, byte):
                if time.monotonic() > last:
                    return
                time.sleep(self.POLL)
            self._held = file, byte

    def release(self) -> None:
        """Release the lock that is held, if any."""
        if self._held is not None and fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.lockf(self._held[0], fcntl.LOCK_UN, 1, self._held[1])
            self._held = None


_turns = Turns()


class KernelCache(compat.numba_cache()):  # type: ignore[misc]
    """Cache of a kernel. If the cache cannot be read, the kernel is compiled.

    Raises:
        RuntimeError: If no folder is writable.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function = function
        beside = os.path.join(os.path.dirname(function.__code__.co_filename), "__pycache__")
        installed = "" if numba.config.CACHE_DIR or beside == self.cache_path else beside
        self.keep_in(KernelFiles(self.cache_path, self.name, installed))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature, or None to compile it.

        Raises:
            MissingKernelError: If this process must not compile it.
        """
        try:
            found = super().load_overload(sig, target_context)
            if found is None and _compile_elsewhere is None:
                _turns.take(self.cache_path, f"{self.name} {sig}")
                found = super().load_overload(sig, target_context)  # compiled elsewhere now?
        except Exception as error:  # noqa: BLE001  damaged files cause errors of many types
            reason = " ".join(str(error).split()) or type(error).__name__
            _fail("load", f"compiling kernels again, which takes up to a minute: {reason}")
            found = None
        if found is not None:
            _turns.release()
        elif _compile_elsewhere is not None:
            missing = MissingKernelError(self._function, sig)
            _compile_elsewhere(missing)
            raise missing
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel; report a failure instead of raising an error."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  for example a full disk
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            _fail(
                "save",
                "compiling kernels, which takes up to a minute, at every start: they cannot be "
                f"kept in {self.cache_path} ({reason}); set NUMBA_CACHE_DIR to a folder with room",
            )
        _turns.release()


def cache_folder(function: Callable[..., Any]) -> str | None:
    """Return the cache folder of a kernel; None if its machine code is in memory only."""
    return compat.numba_cache_folder(function)


PART_COMPILER, KERNEL_COMPILER = (
    (None, None) if numba.config.DISABLE_JIT else compat.numba_compilers()
)


def _compile(function: F, **chosen: Any) -> F:
    """Compile `function` both as a part of calling kernels and as a kernel called by Python."""
    if numba.config.DISABLE_JIT:
        return function
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "fastmath": {"contract", "reassoc", "nsz"},  # no nnan, no ninf: NaN must stay NaN
        "forceinline": False,  # explicit, because the default is the option of the calling kernel
        **chosen,
    }
    part = numba.njit(no_cpython_wrapper=True, pipeline_class=PART_COMPILER, **options)(function)
    kernel = numba.njit(pipeline_class=KERNEL_COMPILER, **{**options, "forceinline": False})(
        function
    )
    compat.call_as_part(kernel, part)
    with contextlib.suppress(RuntimeError, OSError):  # otherwise compiled in memory at every start
        compat.set_numba_cache(kernel, lambda: KernelCache(function))
    return cast(F, kernel)


def kernel(function: F) -> F:
    """Compile `function`, which must neither create nor return arrays.

    References to arrays are not counted. Counting costs two atomic operations for each array that a
    call reads from a struct, which takes as long as the work of short kernels.
    """
    return _compile(function, **compat.UNCOUNTED)


def allocating(function: F) -> F:
    """Compile like :func:`kernel`, for a `function` that creates or returns arrays."""
    return _compile(function, **compat.COUNTED_OPTIONS)


def force_inline(function: F) -> F:
    """Compile like :func:`kernel`, inlined into each caller.

    Functions of every iteration of the fast path are inlined, because passing a struct of arrays
    takes as long as a short kernel.
    """
    return _compile(function, forceinline=True, **compat.UNCOUNTED)


def strict_fp(function: F) -> F:
    """Compile like :func:`force_inline`, with every sum and product rounded as written."""
    return _compile(function, forceinline=True, fastmath=False, **compat.UNCOUNTED)


def _first_entries(array: Any, length: int) -> tuple[Any, ...]:
    """Return the first `length` entries of an array as a tuple; `length` must be a constant."""
    return tuple(array[:length])


fixed_tuple = _first_entries if numba.config.DISABLE_JIT else compat.to_fixed_tuple()
