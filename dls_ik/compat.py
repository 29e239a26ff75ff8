# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Access to private members of libraries; test/test_compat.py tests each of them.

No other module uses private members, which a library may change in any release. Importing this
module imports none of the libraries.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import import_module
from typing import Any, cast


def parameter_overrides(node: Any) -> Mapping[str, Any]:
    """Return the parameters given at the start of an rclpy node, by name.

    rclpy has no public list of these parameters.

    Args:
        node: An :class:`rclpy.node.Node`.
    """
    overrides: Mapping[str, Any] = node._parameter_overrides
    return overrides


def rcl_error() -> type[Exception]:
    """Return the exception type of rcl, raised for example for a topic of two types.

    rclpy does not export this type.
    """
    # Imported by name, because kernels use this module too and must not depend on rclpy.
    rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
    error: type[Exception] = rcl.RCLError
    return error


class EntityWaiter:
    """Wait set for rclpy subscriptions and services, used in the calling thread.

    ``wait_for_message`` of rclpy waits in the same way, but creates a subscription for each
    message. The handles and wait sets of rclpy are the same from Humble to Kilted.

    Args:
        context: An :class:`rclpy.context.Context`.
    """

    def __init__(self, context: Any) -> None:
        self._rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
        self._context = context
        self._used: tuple[Any, ...] = ()
        self._held = ExitStack()  # keeps handles alive that other code destroys
        self._subscriptions: dict[int, Any] = {}  # keyed by the handle pointer
        self._services: dict[int, Any] = {}
        self._wait_set: Any = None

    def use(self, entities: tuple[Any, ...]) -> None:
        """Wait for these subscriptions and services from now on, and release all others."""
        held, self._held, self._used = self._held, ExitStack(), entities
        self._subscriptions, self._services = {}, {}
        for entity in entities:
            kind = self._services if hasattr(entity, "srv_type") else self._subscriptions
            with suppress(self._rcl.InvalidHandle):  # the entity is destroyed
                self._held.enter_context(entity.handle)
                kind[entity.handle.pointer] = entity
        held.close()
        counts = len(self._subscriptions), 1, 0, 0, len(self._services), 0
        self._wait_set = self._rcl.WaitSet(*counts, self._context.handle)

    def wait(self, entities: tuple[Any, ...], guard: Any, timeout: float) -> list[Any]:
        """Wait for a message, the guard condition or the timeout; return the ready entities.

        Args:
            entities: Subscriptions and services to wait for. Pass the same tuple while the entities
                do not change.
            guard: Guard condition that ends the wait.
            timeout: Maximum time to wait [s].
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


ProcessRequest = Callable[[Any, Any], Any]  # connection, request -> response, or None to accept


@contextmanager
def wrap_websocket_requests(
    wrap: Callable[[ProcessRequest], ProcessRequest],
) -> Iterator[Callable[[], int]]:
    """Wrap the request handlers of websocket servers that are started within the context.

    viser 1.1 starts its server by ``websockets.asyncio.server.serve``, looked up at the call, with
    its own ``process_request``. viser has no option for another handler.

    Args:
        wrap: Returns the handler to use instead of the given one.

    Yields:
        A function that returns the number of servers started so far.
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

COUNTED = {"_nrt": True}  # options of njit: references to arrays are always counted
UNCOUNTED = {"_nrt": False}


def numba_cache() -> type:
    """Return the class of Numba's cache of a function, with files that a subclass can replace.

    The cache folder is the first writable one: next to the sources, in the home of the user, or as
    set by NUMBA_CACHE_DIR. Without a writable folder, the cache reads kernels next to the sources.
    """
    from llvmlite.binding import add_symbol
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.runtime import _nrt_python

    @cache
    def add_runtime_symbols() -> None:
        """Register the symbols of functions that create arrays and count references.

        Initialising the runtime of Numba would also compile functions for inlining.
        """
        for name, address in _nrt_python.c_helpers.items():
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)

    user_provided, in_tree, *others = CompileResultCacheImpl._locator_classes

    class ReadOnlyLocator(in_tree):  # type: ignore[misc,valid-type]
        """Read-only cache folder next to the sources."""

        def ensure_cache_path(self) -> None:
            if not os.path.isdir(self.get_cache_path()):
                raise FileNotFoundError

    class CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (user_provided, in_tree, *others, ReadOnlyLocator)

    class NumbaCache(FunctionCache):  # type: ignore[misc]
        _impl_class = CacheImpl

        @property
        def name(self) -> str:
            """Part of the file names that identifies the kernel."""
            return cast(str, self._impl.filename_base)

        def keep_in(self, files: Any) -> None:
            """Replace the store of kernels, an object with ``load``, ``save`` and ``flush``."""
            self._cache_file = files

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Load a kernel without importing the implementations that only compilation needs.

            Their import takes as long as that of Numba, and twice as long with SciPy.
            """
            add_runtime_symbols()
            return self._load_overload(sig, target_context)

    return NumbaCache


def host_features() -> set[str]:
    """Return the features of this processor, as named by LLVM."""
    from llvmlite.binding import get_host_cpu_features

    return {name for name, has in get_host_cpu_features().items() if has}


def numba_entry(compiled: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return the entry point of a compiled function for the types of these arguments.

    The function is compiled if necessary. A call of the function itself inspects the type of each
    field of its arguments; for a hundred fields, this takes as long as the work. The entry point
    does not inspect types: arguments of other types, or arrays of another layout, are misread.

    Args:
        compiled: The compiled function.
        args: Arguments of the types to use.
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
    """Replace the cache of a compiled function; ignore functions that are not compiled."""
    if hasattr(compiled, "_cache"):  # missing if NUMBA_DISABLE_JIT is set
        compiled._cache = make()


def numba_cache_folder(compiled: Any) -> str | None:
    """Return the cache folder of a compiled function; None for a cache in memory."""
    return cast("str | None", getattr(getattr(compiled, "_cache", None), "cache_path", None))


def to_fixed_tuple() -> Any:
    """Return the intrinsic of Numba that converts the first entries of an array to a tuple."""
    from numba.np.unsafe.ndarray import to_fixed_tuple

    return to_fixed_tuple


def on_numba_compilation(tell: Callable[[Any], None]) -> None:
    """Call `tell` with each Numba function whose compilation starts.

    Functions loaded from the cache are not reported.
    """
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            tell(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            """Ignore the end of a compilation."""

    event.register("numba:compile", Listener())


def numba_compilers() -> tuple[Any, Any]:
    """Return compilers of parts and of kernels, for the option ``pipeline_class`` of njit.

    By default, Numba optimises every function with all its callees and generates its machine code,
    although callers include the function and optimise it again. This takes most of the compile time
    of a tree of functions. A part stays unoptimised, as lowered, for its callers; Python cannot
    call it. A kernel, which Python calls, is optimised once with all its parts. Loops of kernels
    are not vectorised, because for 6 rows and 7 joints both compilation and execution would take
    longer.
    """
    from llvmlite.binding import Linkage, parse_assembly
    from numba.core import config
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, register_pass
    from numba.core.typed_passes import AnnotateTypes

    PUBLIC = (Linkage.external, Linkage.linkonce_odr, Linkage.weak_odr)

    class NoEnvironment:
        """Code generator that omits the environments of functions without machine code."""

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def set_env(self, name: str, env: Any) -> None:
            """Do nothing, because the function is not in memory."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

    class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code of a part and of its callees, as lowered."""

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def finalize(self) -> None:
            """Link the callees without optimising."""
            self._raise_if_finalized()
            for library in dict.fromkeys(self._linking_libraries):
                if hasattr(library, "_reload_init"):  # numba 0.60 and later
                    self._reload_init.update(library._reload_init)
                linked = library._get_module_for_linking()
                self._final_module.link_in(linked, preserve=True)
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            """Return 0, because a part has no wrapper to call."""
            self._ensure_finalized()
            return 0

    class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code of a kernel with all its parts, optimised once."""

        def serialize_using_object_code(self) -> Any:
            """Return the machine code and the names that it defines.

            Numba adds the LLVM code for callers. No caller includes a kernel, and parsing the LLVM
            code would take as long as the rest of loading.
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
            """Pass that creates the library before Numba creates its own."""

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
                """Return the passes of Numba and the pass that creates the library."""
                passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
                passes.add_pass_after(MakeLibrary, AnnotateTypes)
                passes.finalize()
                return [passes]

        return Compiler

    return compiler(PartLibrary), compiler(KernelLibrary)


def call_as_part(kernel: Any, part: Any) -> None:
    """Make kernels that call `kernel` include `part`, compiled from the same function, instead."""
    kernel.get_call_template = part.get_call_template
    kernel.get_overload = part.get_overload


@contextmanager
def xacro_packages(find: Callable[[str], str]) -> Iterator[None]:
    """Resolve the packages of ``$(find NAME)`` in xacro files by `find`.

    xacro only asks ament, which is missing without ROS 2 and does not know packages that are cloned
    but not installed.

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
