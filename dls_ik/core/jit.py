# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The decorators of all kernels: compiled, cached on disk, without the GIL.

Machine code is looked for in the cache, and among what came with the package, compiled ahead of
time for any processor of its kind; a kernel that is found nowhere is compiled.

Private members of numba that this takes are in :mod:`dls_ik.compat`.
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
    """Import numba; say in one line each what it does not take of the environment.

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
    for each in heard:  # those about the environment come with a traceback
        warnings.warn_explicit(str(each.message).partition("\n")[0], each.category, "numba", 1)
    return numba


numba = _import_numba()


def _fingerprint() -> bytes:
    """Hash the names and contents of all kernel sources: a copy of them may use the same cache."""
    here, digest = Path(__file__).parent, hashlib.sha256(numba.__version__.encode())
    for path in sorted(here.rglob("*.py")):
        digest.update(f"{path.relative_to(here)} {path.stat().st_size} ".encode())
        digest.update(path.read_bytes())
    return digest.digest()


_SOURCES = _fingerprint()


def _warn(message: str) -> None:
    warnings.warn_explicit(message, RuntimeWarning, "dls_ik", 1)


_report: Report = _warn
cache_failures: dict[str, str] = {}  # messages of the first failures to "load" and to "save"


def report_cache_failures_to(report: Report) -> None:
    """Report to `report` when the cache cannot be read, or written; once each."""
    global _report
    _report = report


def _fail(action: str, message: str) -> None:
    if action not in cache_failures:
        cache_failures[action] = message
        _report(message)


class MissingKernelError(RuntimeError):
    """A kernel that neither cache nor package has, in a process that must not compile it.

    Attributes:
        function: the kernel, as it is written.
        signature: the types of its arguments.
    """

    def __init__(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        super().__init__(
            f"the kernel {function.__name__} is not compiled yet; another process compiles it, "
            "which takes up to a minute: try again then"
        )
        self.function, self.signature = function, signature


_compile_elsewhere: Callable[[MissingKernelError], object] | None = None


def compile_elsewhere(request: Callable[[MissingKernelError], object] | None) -> None:
    """Compile no kernel in this process from now on: a call of a missing one raises an error.

    Compiling takes numba's lock and much of Python's, which stops control loops. Kernels that have
    no folder on disk cannot come from another process, and are compiled all the same.

    Args:
        request: called with each error before it is raised, while numba's lock is held; None
            compiles in this process again.
    """
    global _compile_elsewhere
    _compile_elsewhere = request


# Ahead of time ------------------------------------------------------------------------------------

AHEAD = str(Path(__file__).parent / "ahead")  # kernels that came with the package
# The processor that those are made for, as LLVM names it, and what it must have.
PORTABLE = {
    "x86_64": ("x86-64-v3", {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}),
    "aarch64": ("generic", {"neon"}),
}
_ahead_folder = ""  # where to keep kernels for :data:`AHEAD`


def keep_ahead_in(folder: str) -> None:
    """Keep machine code from now on in `folder`, to become :data:`AHEAD` of a package.

    The process must have been started with the environment of :func:`portable_environment`.
    """
    global _ahead_folder
    _ahead_folder = folder


def portable_environment() -> dict[str, str] | None:
    """Return what makes numba compile for all processors of this kind; None if it is not known."""
    name, _ = PORTABLE.get(platform.machine(), (None, None))
    return None if name is None else {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}


@functools.cache
def _runs_portable() -> bool:
    """Test if this processor has all that portable machine code uses."""
    name, needed = PORTABLE.get(platform.machine(), (None, set[str]()))
    return name is not None and needed <= compat.host_features()


def _portable(key: Any) -> Any:
    """Return numba's key of a kernel (signature, target, sources) without the processor's name."""
    signature, (triple, *_), *rest = key
    return (signature, triple, "ahead", *rest)


# Files --------------------------------------------------------------------------------------------


class DamagedFileError(Exception):
    """A file of the cache differs from what was written."""


class KernelFiles:
    """The files of a kernel's cache: one for each signature, checked when it is read.

    Numba keeps an index beside the machine code. A process that is killed between writing the two,
    or two processes that write at once, may leave an index that gives one signature the machine
    code of another one or of older sources, and numba does not detect a damaged file.
    """

    def __init__(
        self, folder: str, name: str, installed: str = "", ahead: str | None = None
    ) -> None:
        """Keep files in `folder`.

        Args:
            name: of the kernel.
            installed: another folder to read from, such as that of a container's image.
            ahead: folder of kernels that were compiled ahead of time; None for :data:`AHEAD`.
        """
        self._folder, self._name, self._installed = folder, name, installed
        self._ahead = AHEAD if ahead is None else ahead

    def load(self, key: Any) -> Any:
        """Return the data of a key; None without data, or for those of other sources.

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
        """Do nothing: files of other sources are not used, and are written over."""

    def path(self, key: Any, folder: str = "") -> str:
        """The file of a key; those of other sources have the same name, and are replaced."""
        number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return os.path.join(folder or self._folder, f"{self._name}.{number}.nbc")

    def _stamp(self, key: Any) -> bytes:
        return hashlib.sha256(_SOURCES + repr(key).encode()).digest()


def _try_lock(file: int, byte: int) -> bool:
    if fcntl is None:  # Windows: each process compiles for itself
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


class Turns:
    """Has one process at a time compile a kernel, while others wait to load it.

    A lock of the system on one byte of a file for each kernel: it ends with its process, however
    that ends. Numba compiles in one thread at a time.
    """

    WAIT, POLL = 300.0, 0.05  # [s] longest wait: a process that is stopped keeps its turn

    def __init__(self) -> None:
        self._files: dict[str, int] = {}  # open as long as the process: closing gives up all turns
        self._held: tuple[int, int] | None = None

    def take(self, folder: str, kernel: str) -> None:
        """Wait for the turn to compile `kernel`, and hold it; nobody waits without locks."""
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
        """Give up the turn that is held, if any."""
        if self._held is not None and fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.lockf(self._held[0], fcntl.LOCK_UN, 1, self._held[1])
            self._held = None


_turns = Turns()


class KernelCache(compat.numba_cache()):  # type: ignore[misc]
    """The cache of a kernel. A kernel whose cache cannot be read is compiled.

    Raises:
        RuntimeError: If no folder can be used.
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
                found = super().load_overload(sig, target_context)  # another process was faster
        except Exception as error:  # noqa: BLE001  whatever a damaged file leads to
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
        _turns.release()


def cache_folder(function: Callable[..., Any]) -> str | None:
    """Return the folder of a kernel's machine code; None if it is kept in memory only."""
    return compat.numba_cache_folder(function)


PART, KERNEL = (None, None) if numba.config.DISABLE_JIT else compat.numba_compilers()


def _compile(function: F, **chosen: Any) -> F:
    """Compile `function` as a part of the kernels that call it, and as one that Python calls."""
    if numba.config.DISABLE_JIT:
        return function
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "fastmath": {"contract", "reassoc", "nsz"},  # not nnan, ninf: NaN must stay NaN
        "forceinline": False,  # else the option of the calling kernel holds, as for references
        **chosen,
    }
    part = numba.njit(no_cpython_wrapper=True, pipeline_class=PART, **options)(function)
    kernel = numba.njit(pipeline_class=KERNEL, **{**options, "forceinline": False})(function)
    compat.call_as_part(kernel, part)
    with contextlib.suppress(RuntimeError, OSError):  # compile in memory at every start
        compat.set_numba_cache(kernel, lambda: KernelCache(function))
    return cast(F, kernel)


def kernel(function: F) -> F:
    """Compile `function`, which may neither make arrays nor return them.

    References to arrays are not counted: that is a pair of atomic operations for each array that a
    call takes out of a struct, in a loop over short kernels as much time as the kernels take.
    """
    return _compile(function, **compat.UNCOUNTED)


def allocating(function: F) -> F:
    """As :func:`kernel`, with references counted: `function` makes arrays, or returns some."""
    return _compile(function, **compat.COUNTED)


def force_inline(function: F) -> F:
    """As :func:`kernel`, inserted into each of its callers.

    For what runs in every iteration of the fast path: handing over a struct of arrays takes as long
    as a short kernel.
    """
    return _compile(function, forceinline=True, **compat.UNCOUNTED)


def strict_fp(function: F) -> F:
    """As :func:`force_inline`, every sum and product rounded as it is written."""
    return _compile(function, forceinline=True, fastmath=False, **compat.UNCOUNTED)


def _first_entries(array: Any, length: int) -> tuple[Any, ...]:
    """Return the first `length` entries, a constant, of an array as a tuple."""
    return tuple(array[:length])


fixed_tuple = _first_entries if numba.config.DISABLE_JIT else compat.to_fixed_tuple()
