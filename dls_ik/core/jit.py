# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Decorators that compile kernels by Numba, release the GIL, and cache machine code on disk.

Machine code is loaded from the cache on disk. The package may also contain machine code that was
compiled ahead of time for all processors of this architecture. A kernel that is found in neither
place is compiled.

The private members of Numba that this module needs are in :mod:`dls_ik.compat`.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import platform
import re
import secrets
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np

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
    """Import numba, and repeat each warning of the import in one line.

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
            raise NumbaStartError(f"numba cannot be imported{with_what}: {error}") from error
    for each in heard:  # warnings about NUMBA_* environment variables include a traceback
        warnings.warn_explicit(str(each.message).partition("\n")[0], each.category, "numba", 1)
    return numba


numba = _import_numba()


_FOLDER = Path(__file__).parent
_IMPORT = re.compile(r"^\s*from dls_ik\.core(?:\.([\w.]+))? import (\([^)]*\)|.*)", re.MULTILINE)


class KernelSources:
    """Hashes by which machine code on disk is recognised as compiled from the present sources.

    The hash of a kernel covers the file of the kernel, all files of :mod:`dls_ik.core` that this
    file imports, directly or through other files, and the version of numba. Installations with
    equal sources can use the same cache files, and a changed file invalidates only the kernels
    that can depend on the file.
    """

    def __init__(self) -> None:
        self._common = hashlib.sha256(
            numba.__version__.encode() + Path(__file__).read_bytes()
        ).digest()
        self._texts = {
            ".".join(path.relative_to(_FOLDER).with_suffix("").parts): path.read_text("utf-8")
            for path in sorted(_FOLDER.rglob("*.py"))
        }
        self._hash = functools.cache(self._compute_hash)

    def hash(self, module: str) -> bytes:
        """Return the hash of a kernel.

        Args:
            module: Full name of the module that defines the kernel. For a module outside
                :mod:`dls_ik.core`, the hash covers all files of :mod:`dls_ik.core`.
        """
        return self._hash(module)

    def imported(self, module: str) -> set[str]:
        """Return the modules that a module imports, directly or not, and the module itself.

        Args:
            module: Name of a module in :mod:`dls_ik.core`, such as "fast.step".

        Returns:
            Names of modules in :mod:`dls_ik.core`.
        """
        found, pending = {module}, [module]
        while pending:
            for package, names in _IMPORT.findall(self._texts[pending.pop()]):
                prefix = f"{package}." if package else ""
                used = {package, *(prefix + name for name in re.findall(r"\w+", names))}
                new = (used & self._texts.keys()) - found
                found |= new
                pending += new
        return found

    def _compute_hash(self, module: str) -> bytes:
        name = module.removeprefix("dls_ik.core.")
        digest = hashlib.sha256(self._common)
        for each in sorted(self.imported(name) if name in self._texts else self._texts):
            content = self._texts[each].encode()
            digest.update(f"{each} {len(content)} ".encode() + content)
        return digest.digest()


_sources = KernelSources()


def _warn(message: str) -> None:
    """Issue a RuntimeWarning that does not show a source line."""
    warnings.warn_explicit(message, RuntimeWarning, "dls_ik", 1)


_report: Report = _warn
cache_failures: dict[str, str] = {}  # first messages for the keys "load" and "save"


def report_cache_failures_to(report: Report) -> None:
    """Set the function that is called with a message if the cache cannot be used.

    The function is called at the first failure to read the cache and at the first failure to write
    it.
    """
    global _report
    _report = report


def _fail(action: str, message: str) -> None:
    """Report a cache failure, unless a failure of the same action was already reported.

    Args:
        action: "load" or "save".
        message: Text of the report.
    """
    if action not in cache_failures:
        cache_failures[action] = message
        _report(message)


class MissingKernelError(RuntimeError):
    """A kernel has no machine code on disk, and this process must not compile it.

    Attributes:
        function: The Python function of the kernel.
        signature: The Numba types of the arguments.
    """

    def __init__(self, function: Callable[..., Any], signature: tuple[Any, ...]) -> None:
        super().__init__(
            f"the kernel {function.__name__} is not compiled yet; another process is compiling "
            "it, which takes up to a minute: try again after that time"
        )
        self.function, self.signature = function, signature


_compile_elsewhere: Callable[[MissingKernelError], object] | None = None


def compile_elsewhere(request: Callable[[MissingKernelError], object] | None) -> None:
    """Forbid compilation in this process: calling a missing kernel raises MissingKernelError.

    Compilation holds the lock of Numba, and most of the time also the GIL, which blocks control
    loops. Kernels without a cache folder on disk are compiled in any case, because no other process
    can provide their machine code.

    Args:
        request: Called with each MissingKernelError before it is raised, while the lock of Numba is
            held; it should let another process compile the kernel. None allows compilation in this
            process again.
    """
    global _compile_elsewhere
    _compile_elsewhere = request


# Compilation of kernels for the installed package, ahead of their first call ----------------------

PACKAGED_KERNEL_FOLDER = str(
    Path(__file__).parent / "ahead"
)  # folder of the package with compiled kernels
# For each architecture, the name of the LLVM processor for which the kernels of the package are
# compiled, and the features that a processor needs to run these kernels.
PORTABLE = {
    "x86_64": ("x86-64-v3", {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}),
    "aarch64": ("generic", {"neon"}),
}


class SharedStore(Protocol):
    """Kernels of other installations of the same user, see :mod:`dls_ik.shared_kernels`."""

    @property
    def folder(self) -> Path:
        """Folder of the kernels."""

    def read(self, kernel: str, stamp: bytes) -> bytes | None:
        """Return the content of the cache file of a kernel, or None."""

    def write(self, kernel: str, stamp: bytes, content: bytes) -> None:
        """Keep the content of the cache file of a kernel."""


class KernelBuild(NamedTuple):
    """Storage and processor type of the kernels that a process compiles in advance."""

    folder: str = ""  # folder that replaces all cache folders; empty: each kernel's cache folder
    is_portable: bool = False  # whether to compile for the processors of `PORTABLE`
    shared: SharedStore | None = None  # store from which kernels are copied instead of compiled


_build = KernelBuild()  # a process that does not compile in advance


def compile_in_advance(build: KernelBuild) -> None:
    """Set where this process stores kernels, and for which processors it compiles, from now on.

    For portable machine code, the process must have been started with the environment of
    :func:`portable_environment`. The package ships the folder of such a build as
    :data:`PACKAGED_KERNEL_FOLDER`.
    """
    global _build
    _build = build


def portable_environment() -> dict[str, str] | None:
    """Return the environment variables with which Numba compiles portable machine code.

    None is returned for architectures that are not in :data:`PORTABLE`.
    """
    name, _ = PORTABLE.get(platform.machine(), (None, None))
    return None if name is None else {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": ""}


@functools.cache
def runs_portable() -> bool:
    """Return whether this processor can run portable machine code of its architecture."""
    name, needed = PORTABLE.get(platform.machine(), (None, set[str]()))
    return name is not None and needed <= compat.host_features()


def _portable(key: Any) -> Any:
    """Return a cache key of Numba (signature, target, sources) without the processor's name."""
    signature, (triple, *_), *rest = key
    return (signature, triple, "ahead", *rest)


# Files --------------------------------------------------------------------------------------------


class DamagedFileError(Exception):
    """The content of a cache file differs from the data that were written."""


class KernelFiles:
    """Cache files of a kernel, one per signature, with a checksum that is verified on reading.

    These files replace those of Numba, which writes an index file and separate files of machine
    code. If a process is killed between writing the two files, or if two processes write at the
    same time, the index may refer to the machine code of another signature or of older sources.
    Numba also does not detect damaged files.
    """

    def __init__(
        self,
        folder: str,
        name: str,
        installed: str = "",
        ahead: str | None = None,
        module: str = "",
    ) -> None:
        """Initialise the files of a kernel.

        Args:
            folder: Folder that files are read from and written to.
            name: Name of the kernel.
            installed: Second folder to read from, such as that of a container image; empty for no
                second folder.
            ahead: Folder of kernels that were compiled ahead of time; None for
                :data:`PACKAGED_KERNEL_FOLDER`.
            module: Full name of the module that defines the kernel.
        """
        self._folder, self._name, self._installed = folder, name, installed
        self._ahead = PACKAGED_KERNEL_FOLDER if ahead is None else ahead
        self._module = module

    def load(self, key: Any) -> Any:
        """Return the machine code of a cache key; None if no folder has it for these sources.

        Raises:
            DamagedFileError: If the file is truncated or was changed.
            OSError: If the file cannot be read.
        """
        keys = [] if _build.is_portable else [key]
        if _build.is_portable or runs_portable():
            keys.append(_portable(key))
        for each in keys:
            found = self._load(self.path(each, _build.folder), each)
            if found is not None:
                return found
        elsewhere = [] if _build.folder else [(self._ahead, keys[-1])]
        if self._installed and not _build.folder:
            elsewhere = [*((self._installed, each) for each in keys), *elsewhere]
        for folder, its_key in elsewhere:
            with contextlib.suppress(OSError, DamagedFileError):
                found = self._load(self.path(its_key, folder), its_key)
                if found is not None:
                    return found
        return self._load_shared(_build.shared, keys[0]) if _build.shared is not None else None

    def _load(self, path: str, key: Any) -> Any:
        """Return the machine code in the file `path`.

        None is returned if the file does not exist, or belongs to another key or other sources.

        Raises:
            DamagedFileError: If the checksum of the file is wrong.
        """
        try:
            with open(path, "rb") as file:
                content = memoryview(file.read())
        except FileNotFoundError:
            return None
        return self._unpack(content, key, path)

    def _load_shared(self, shared: SharedStore, key: Any) -> Any:
        """Copy the file of a key from another installation, and return its machine code, or None.

        Raises:
            OSError: If the copy cannot be written.
        """
        content = shared.read(self._name, _shared_stamp(self._stamp(key)))
        if content is None:
            return None
        try:
            found = self._unpack(memoryview(content), key, str(shared.folder))
        except DamagedFileError:
            return None
        if found is not None:
            _write(self.path(key, _build.folder), content)
        return found

    def _unpack(self, content: memoryview, key: Any, path: str) -> Any:
        """Return the machine code in the content of a file; None if it belongs to other sources.

        Raises:
            DamagedFileError: If the checksum of the content is wrong.
        """
        digest, rest = content[:DIGEST], content[DIGEST:]
        if hashlib.sha256(rest).digest() != digest:
            raise DamagedFileError(f"{path} is damaged")
        if rest[:DIGEST] != self._stamp(key):
            return None
        return pickle.loads(rest[DIGEST:])  # noqa: S301  docs/security.md: writers of the folder

    def save(self, key: Any, data: Any) -> None:
        """Write the machine code `data` of a cache key to its file atomically.

        Raises:
            OSError: If the file cannot be written.
        """
        if _build.is_portable:
            key = _portable(key)
        stamp = self._stamp(key)
        rest = stamp + compat.numba_serialize(data)
        content = hashlib.sha256(rest).digest() + rest
        if _build.shared is not None:
            _build.shared.write(self._name, _shared_stamp(stamp), content)
        _write(self.path(key, _build.folder), content)

    def flush(self) -> None:
        """Do nothing; Numba calls this method when the sources change.

        Files of other sources are ignored by :meth:`load` and overwritten by :meth:`save`.
        """

    def path(self, key: Any, folder: str = "") -> str:
        """Return the path of the file of a cache key in `folder`, or in the folder of the kernel.

        The path does not depend on the sources.
        """
        number = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return os.path.join(folder or self._folder, f"{self._name}.{number}.nbc")

    def _stamp(self, key: Any) -> bytes:
        """Return a hash of the kernel sources and a cache key, by which files are recognised."""
        return hashlib.sha256(_sources.hash(self._module) + repr(key).encode()).digest()


def _shared_stamp(stamp: bytes) -> bytes:
    """Extend the stamp of a kernel by the version of NumPy, which may differ between environments.

    Numba compiles calls of NumPy by the rules of the version that it finds.
    """
    return stamp + np.__version__.encode()


def _write(path: str, content: bytes) -> None:
    """Write a file atomically.

    Raises:
        OSError: If the file cannot be written.
    """
    part = f"{path}.{secrets.token_hex(8)}.part"
    try:
        with open(part, "wb") as file:
            file.write(content)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _try_lock(file: int, byte: int) -> bool:
    """Try to lock one byte of an open file; return False if another process holds the lock.

    Args:
        file: File descriptor.
        byte: Offset of the byte.
    """
    if fcntl is None:  # Windows, where processes compile independently of each other
        return True
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
    except (BlockingIOError, PermissionError):
        return False
    return True


class CompileLocks:
    """Locks by which one process compiles a kernel while other processes wait for its machine code.

    The locks are file locks of the operating system on one byte of a file per kernel. The system
    releases the locks of a process when the process ends, even if it is killed. A process holds at
    most one lock, because Numba compiles in one thread at a time.
    """

    # Maximum wait [s], which is needed because a suspended process does not release its lock, and
    # polling interval [s].
    WAIT, POLL = 300.0, 0.05

    def __init__(self) -> None:
        self._files: dict[str, int] = {}  # files stay open, because closing releases their locks
        self._held: tuple[int, int] | None = None

    def acquire(self, folder: str, kernel: str) -> None:
        """Wait for the lock of a kernel and hold it.

        The method returns without the lock after `WAIT` seconds, or if locks are unavailable.

        Args:
            folder: Cache folder of the kernel.
            kernel: Name and signature of the kernel.
        """
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
        """Release the lock that this process holds, if any."""
        if self._held is not None and fcntl is not None:
            with contextlib.suppress(OSError):
                fcntl.lockf(self._held[0], fcntl.LOCK_UN, 1, self._held[1])
            self._held = None


_compile_locks = CompileLocks()


class KernelCache(compat.numba_cache()):  # type: ignore[misc]
    """The cache of a kernel, which reports failures and lets only one process compile.

    If the cache cannot be read, the kernel is compiled.

    Raises:
        RuntimeError: If no cache folder is writable.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._function = function
        beside = os.path.join(os.path.dirname(function.__code__.co_filename), "__pycache__")
        installed = "" if numba.config.CACHE_DIR or beside == self.cache_path else beside
        self.keep_in(KernelFiles(self.cache_path, self.name, installed, module=function.__module__))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature, or None to let Numba compile the kernel.

        Raises:
            MissingKernelError: If machine code is missing and this process must not compile.
        """
        try:
            found = super().load_overload(sig, target_context)
            if found is None and _compile_elsewhere is None:
                folder = self.cache_path if _build.shared is None else str(_build.shared.folder)
                _compile_locks.acquire(folder, f"{self.name} {sig}")
                # Another process may have compiled the kernel while this process waited.
                found = super().load_overload(sig, target_context)
        except Exception as error:  # noqa: BLE001  damaged files cause errors of many types
            reason = " ".join(str(error).split()) or type(error).__name__
            _fail("load", f"compiling kernels again, which takes up to a minute: {reason}")
            found = None
        if found is not None:
            _compile_locks.release()
        elif _compile_elsewhere is not None:
            missing = MissingKernelError(self._function, sig)
            _compile_elsewhere(missing)
            raise missing
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled kernel of a signature; report a failure instead of raising an error."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # noqa: BLE001  for example a full disk
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            _fail(
                "save",
                "compiling kernels, which takes up to a minute, at every start, because they "
                f"cannot be kept in {self.cache_path} ({reason}); set NUMBA_CACHE_DIR to a "
                "writable folder on a disk with enough free space",
            )
        _compile_locks.release()


def cache_folder(function: Callable[..., Any]) -> str | None:
    """Return the cache folder of a kernel; None if its machine code is not saved on disk."""
    return compat.numba_cache_folder(function)


PART_COMPILER, KERNEL_COMPILER = (
    (None, None) if numba.config.DISABLE_JIT else compat.numba_compilers()
)


def _compile(function: F, **chosen: Any) -> F:
    """Compile `function` twice: for calls from other kernels, and for calls from Python.

    Args:
        function: The Python function.
        chosen: Options of ``numba.njit`` that differ from the common options.
    """
    if numba.config.DISABLE_JIT:
        return function
    options: dict[str, Any] = {
        "nogil": True,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "fastmath": {"contract", "reassoc", "nsz"},  # nnan and ninf are not used: NaN must stay NaN
        "forceinline": False,  # explicit, because the default is the option of the calling kernel
        **chosen,
    }
    kernel = numba.njit(pipeline_class=KERNEL_COMPILER, **{**options, "forceinline": False})(
        function
    )
    # Most processes neither compile a kernel nor call most of the kernels from Python. The function
    # for calls from other kernels and the cache are therefore made at their first use.
    compat.call_as_part(
        kernel,
        lambda: numba.njit(no_cpython_wrapper=True, pipeline_class=PART_COMPILER, **options)(
            function
        ),
    )
    compat.set_numba_cache(kernel, lambda: KernelCache(function))
    return cast(F, kernel)


def kernel(function: F) -> F:
    """Compile `function`, which must neither create nor return arrays.

    The compiled kernel does not count references to arrays. Counting would need two atomic
    operations for each array that a call reads from a struct, which takes as long as the
    computation of a short kernel.
    """
    return _compile(function, **compat.UNCOUNTED)


def allocating(function: F) -> F:
    """Compile like :func:`kernel`, for a `function` that creates or returns arrays."""
    return _compile(function, **compat.COUNTED_OPTIONS)


def force_inline(function: F) -> F:
    """Compile like :func:`kernel`, but inline the function into each calling kernel.

    The functions that run in every iteration of the fast path are inlined, because passing a struct
    of arrays to a function takes as long as a short kernel.
    """
    return _compile(function, forceinline=True, **compat.UNCOUNTED)


def strict_fp(function: F) -> F:
    """Compile like :func:`force_inline`, but without reordering of floating-point operations."""
    return _compile(function, forceinline=True, fastmath=False, **compat.UNCOUNTED)


def _first_entries(array: Any, length: int) -> tuple[Any, ...]:
    """Return the first `length` entries of an array as a tuple; `length` must be a constant."""
    return tuple(array[:length])


fixed_tuple = _first_entries if numba.config.DISABLE_JIT else compat.to_fixed_tuple()
