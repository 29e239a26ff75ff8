# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Private members of libraries, reached from here only; test/test_compat.py has a test for each.

A library may change them in any release. Importing this module imports none of the libraries.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any, cast


def parameter_overrides(node: Any) -> Mapping[str, Any]:
    """Return the parameters that an rclpy node was started with, by name; rclpy has no public list.

    Args:
        node: of :class:`rclpy.node.Node`.
    """
    overrides: Mapping[str, Any] = node._parameter_overrides
    return overrides


def rcl_error() -> type[Exception]:
    """Return the exception that rcl raises, such as on a topic of two types; rclpy hides it."""
    # imported by name, so that kernels, which use this module too, do not depend on rclpy
    rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
    error: type[Exception] = rcl.RCLError
    return error


class EntityWaiter:
    """Waits for subscriptions and services of rclpy in the calling thread, as wait_for_message.

    That one subscribes anew for each message. The handles and wait sets of rclpy are the same from
    Humble to Kilted.

    Args:
        context: of :class:`rclpy.context.Context`.
    """

    def __init__(self, context: Any) -> None:
        self._rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
        self._context = context
        self._used: tuple[Any, ...] = ()
        self._held = ExitStack()  # keeps handles alive that others destroy
        self._subscriptions: dict[int, Any] = {}  # by pointer
        self._services: dict[int, Any] = {}
        self._wait_set: Any = None

    def use(self, entities: tuple[Any, ...]) -> None:
        """Wait for these subscriptions and services from now on, and let go of the others."""
        held, self._held, self._used = self._held, ExitStack(), entities
        self._subscriptions, self._services = {}, {}
        for entity in entities:
            kind = self._services if hasattr(entity, "srv_type") else self._subscriptions
            with suppress(self._rcl.InvalidHandle):  # it is destroyed
                self._held.enter_context(entity.handle)
                kind[entity.handle.pointer] = entity
        held.close()
        counts = len(self._subscriptions), 1, 0, 0, len(self._services), 0
        self._wait_set = self._rcl.WaitSet(*counts, self._context.handle)

    def wait(self, entities: tuple[Any, ...], guard: Any, timeout: float) -> list[Any]:
        """Return those with messages, once there is one, or the guard condition was triggered.

        Args:
            entities: the same object until they change.
            timeout: [s] at most.
        """
        if entities is not self._used or self._wait_set is None:
            self.use(entities)
        wait_set = self._wait_set
        wait_set.clear_entities()
        for subscription in self._subscriptions.values():
            wait_set.add_subscription(subscription.handle)
        for service in self._services.values():
            wait_set.add_service(service.handle)
        wait_set.add_guard_condition(guard.handle)
        wait_set.wait(max(0, int(timeout * 1e9)))
        found = [self._subscriptions[p] for p in wait_set.get_ready_entities("subscription")]
        if self._services:
            found += [self._services[p] for p in wait_set.get_ready_entities("service")]
        return found


ProcessRequest = Callable[[Any, Any], Any]  # connection, request -> response; None: go on


@contextmanager
def wrap_websocket_requests(
    wrap: Callable[[ProcessRequest], ProcessRequest],
) -> Iterator[Callable[[], int]]:
    """Put a check in front of the requests of websocket servers that are started meanwhile.

    viser 1.1 starts its server by ``websockets.asyncio.server.serve``, which it looks up at the
    call, with a process_request of its own; it offers no place for another one.

    Yields:
        A function that counts the servers.
    """
    from websockets.asyncio import server

    serve: Any = server.serve
    count = 0

    def serve_wrapped(*given: Any, process_request: ProcessRequest, **options: Any) -> Any:
        nonlocal count
        count += 1
        return serve(*given, process_request=wrap(process_request), **options)

    server.serve = serve_wrapped  # type: ignore[misc, assignment]
    try:
        yield lambda: count
    finally:
        server.serve = serve  # type: ignore[misc]


# numba --------------------------------------------------------------------------------------------

COUNTED = {"_nrt": True}  # options of njit: references to arrays are counted, whoever calls
UNCOUNTED = {"_nrt": False}


def numba_cache() -> type:
    """Return numba's cache of a function, with files that a subclass can replace.

    Its folder is the first that can be written: beside the sources, of the user, or set by
    NUMBA_CACHE_DIR. Without one, kernels beside the sources are read.
    """
    from llvmlite.binding import add_symbol
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.runtime import _nrt_python

    @cache
    def add_runtime_symbols() -> None:
        """Name the functions that kernels call to make arrays and to count references.

        Initialising numba's runtime does so too, and compiles what callers take in.
        """
        for name, address in _nrt_python.c_helpers.items():
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)

    user_provided, in_tree, *others = CompileResultCacheImpl._locator_classes

    class ReadOnlyLocator(in_tree):  # type: ignore[misc,valid-type]
        """The folder beside the sources, not writable."""

        def ensure_cache_path(self) -> None:
            if not os.path.isdir(self.get_cache_path()):
                raise FileNotFoundError

    class CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (user_provided, in_tree, *others, ReadOnlyLocator)

    class NumbaCache(FunctionCache):  # type: ignore[misc]
        _impl_class = CacheImpl

        @property
        def name(self) -> str:
            """The kernel's part of the names of its files."""
            return cast(str, self._impl.filename_base)

        def keep_in(self, files: Any) -> None:
            """Load from and save to other files: an object with ``load``, ``save``, ``flush``."""
            self._cache_file = files

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Load without what only compilation needs, and imports: numba's implementations.

            They take as long to import as numba, with SciPy twice as long.
            """
            add_runtime_symbols()
            return self._load_overload(sig, target_context)

    return NumbaCache


def host_features() -> set[str]:
    """Return what this processor has, as LLVM names it."""
    from llvmlite.binding import get_host_cpu_features

    return {name for name, has in get_host_cpu_features().items() if has}


def numba_entry(compiled: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the code of a compiled function for arguments of these types, compiled if need be.

    A call of the function itself looks at the type of each field of its arguments, which takes as
    long as the work where there are a hundred. The code does not: arguments of any other type, or
    arrays of another layout, are read as if they were of these.
    """
    if not hasattr(compiled, "typeof_pyval"):  # NUMBA_DISABLE_JIT is set
        return cast(Callable[..., Any], compiled)
    types = tuple(compiled.typeof_pyval(each) for each in args)
    return cast(Callable[..., Any], compiled.compile(types))


def numba_serialize(data: Any) -> bytes:
    """Serialise the data of a compiled kernel, for ``pickle.loads``."""
    from numba.core.serialize import dumps

    return cast(bytes, dumps(data))


def set_numba_cache(compiled: Any, make: Callable[[], Any]) -> None:
    """Give a compiled function another cache; a function that is not compiled stays as it is."""
    if hasattr(compiled, "_cache"):  # not where NUMBA_DISABLE_JIT is set
        compiled._cache = make()


def numba_cache_folder(compiled: Any) -> str | None:
    """Return the folder of a compiled function's cache; None for one in memory."""
    return cast("str | None", getattr(getattr(compiled, "_cache", None), "cache_path", None))


def to_fixed_tuple() -> Any:
    """Return numba's intrinsic that makes a tuple of an array's first entries in a kernel."""
    from numba.np.unsafe.ndarray import to_fixed_tuple

    return to_fixed_tuple


def on_numba_compilation(tell: Callable[[Any], None]) -> None:
    """Call `tell` with each function of numba whose compilation begins.

    Functions that are loaded from the cache are not told.
    """
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            tell(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            """Nothing to tell."""

    event.register("numba:compile", Listener())


def numba_compilers() -> tuple[Any, Any]:
    """Return two compilers for the option ``pipeline_class`` of njit: of parts, and of kernels.

    By itself numba optimises every function with all that it calls, and makes machine code of it,
    although a caller takes it in and optimises it again: most of the time that a tree of functions
    takes. A part is left as it was lowered, for its callers only; Python cannot call it. A kernel,
    which Python calls, is optimised once with all of its parts. Its loops are not vectorised: with
    6 rows and 7 joints that takes longer, to compile and to run.
    """
    from llvmlite.binding import Linkage, parse_assembly
    from numba.core import config
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, register_pass
    from numba.core.typed_passes import AnnotateTypes

    PUBLIC = (Linkage.external, Linkage.linkonce_odr, Linkage.weak_odr)

    class NoEnvironment:
        """A code generator that leaves out the environment of a function without machine code."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def set_env(self, name: str, env: Any) -> None:
            """Do nothing: the function is not in memory."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

    class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
        """The code of a part and of those that it calls, as they were lowered."""

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def finalize(self) -> None:
            """Link, without optimising."""
            self._raise_if_finalized()
            for library in dict.fromkeys(self._linking_libraries):
                if hasattr(library, "_reload_init"):  # since numba 0.60
                    self._reload_init.update(library._reload_init)
                linked = library._get_module_for_linking()
                self._final_module.link_in(linked, preserve=True)
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            """Return 0: without a wrapper there is nothing to call."""
            self._ensure_finalized()
            return 0

    class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
        """The code of a kernel with all of its parts, optimised once."""

        def serialize_using_object_code(self) -> Any:
            """Return the machine code, with the names in it only.

            Numba adds the code for LLVM, for callers. A kernel has none that would take it in, and
            parsing it takes as long as the rest of loading.
            """
            self._ensure_finalized()
            here = [each for each in self._final_module.functions if not each.is_declaration]
            names = [each.name for each in here if each.linkage in PUBLIC]
            stubs = [f'define void @"{name}"() {{ unreachable }}' for name in names]
            module = parse_assembly("\n".join(stubs))
            return self.name, "object", (self._get_compiled_object(), module.as_bitcode())

        def _optimize_final_module(self) -> None:
            vectorize = config.LOOP_VECTORIZE
            config.LOOP_VECTORIZE = 0  # numba compiles in one thread at a time
            try:
                super()._optimize_final_module()
            finally:
                config.LOOP_VECTORIZE = vectorize

    def compiler(library: type) -> type:
        @register_pass(mutates_CFG=False, analysis_only=True)
        class MakeLibrary(LoweringPass):  # type: ignore[misc]
            """Makes the library before numba would make one."""

            _name = f"make_{library.__name__}"

            def __init__(self) -> None:
                super().__init__()

            def run_pass(self, state: Any) -> bool:
                made = library(state.targetctx.codegen(), state.func_id.func_qualname)
                made.enable_object_caching()
                state.library = made
                return False

        class Compiler(CompilerBase):  # type: ignore[misc]
            def define_pipelines(self) -> list[Any]:
                """Numba's own passes, and the one that makes the library."""
                passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
                passes.add_pass_after(MakeLibrary, AnnotateTypes)
                passes.finalize()
                return [passes]

        return Compiler

    return compiler(PartLibrary), compiler(KernelLibrary)


def call_as_part(kernel: Any, part: Any) -> None:
    """Have kernels that call `kernel` take in `part` instead, another one of the same function."""
    kernel.get_call_template = part.get_call_template
    kernel.get_overload = part.get_overload


@contextmanager
def xacro_packages(find: Callable[[str], str]) -> Iterator[None]:
    """Look for the packages of ``$(find NAME)`` in xacro files by `find`.

    xacro asks ament alone, which is not there without ROS 2, and does not know a package that was
    cloned only.

    Args:
        find: Returns the folder of a package by its name.
    """
    module: Any = import_module("xacro.substitution_args")
    known = module._eval_find

    def use(function: Any) -> None:
        module._eval_find = module._eval_dict["find"] = function

    use(find)
    try:
        yield
    finally:
        use(known)
