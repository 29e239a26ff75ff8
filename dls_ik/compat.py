# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Access to private members of other libraries; test/test_compat.py tests each private member.

A library may change its private members in any release. Therefore only this module uses private
members. Importing this module does not import the libraries.
"""

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, cached_property
from importlib import import_module
from typing import Any, cast


def parameter_overrides(node: Any) -> Mapping[str, Any]:
    """Return the parameter values with which an rclpy node was started, by name.

    rclpy has no public function for the values given on the command line or by a launch file.

    Args:
        node: An :class:`rclpy.node.Node`.
    """
    overrides: Mapping[str, Any] = node._parameter_overrides
    return overrides


def rcl_error() -> type[Exception]:
    """Return the exception type of errors in rcl, for example if a topic has two message types.

    rclpy does not export this type.
    """
    # This function imports rclpy, because kernels import this module and must not depend on rclpy.
    rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
    error: type[Exception] = rcl.RCLError
    return error


def index_source_files() -> None:
    """Tell the module ``inspect`` which files the imported modules are from.

    The logger of rclpy looks up the module of each caller. The first look-up would resolve the
    paths of all imported modules, which takes 0.1 s and blocks all threads.
    """
    known: dict[str, str] | None = getattr(inspect, "modulesbyfile", None)
    if known is None:
        return
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            known.setdefault(os.path.normcase(os.path.abspath(file)), name)


# Kinds of entities in the order of the arguments of an rclpy wait set.
WAIT_SET_KINDS = ("subscriptions", "guard_conditions", "timers", "clients", "services", "events")


class EntityWaiter:
    """Reusable wait set of rclpy that lets the calling thread wait for messages and requests.

    ``wait_for_message`` of rclpy also uses a wait set, but creates a subscription for each message.
    The private handles and wait sets of rclpy are the same from ROS 2 Humble to Kilted.

    Args:
        context: An :class:`rclpy.context.Context`.
    """

    def __init__(self, context: Any) -> None:
        self._rcl = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
        self._context = context
        self._used: tuple[Any, ...] = ()
        self._held = ExitStack()  # keeps the handles of the entities from being destroyed
        self._subscriptions: dict[int, Any] = {}  # the keys are addresses of handles
        self._services: dict[int, Any] = {}  # the keys are addresses of handles
        self._waitables: list[Any] = []
        self._wait_set: Any = None

    def use(self, entities: tuple[Any, ...]) -> None:
        """Set the entities to wait for, and release the handles of all others.

        Args:
            entities: Subscriptions, services and waitables, such as action servers.
        """
        held, self._held, self._used = self._held, ExitStack(), entities
        self._subscriptions, self._services, self._waitables = {}, {}, []
        for entity in entities:
            with suppress(self._rcl.InvalidHandle):  # raised if the entity is already destroyed
                if hasattr(entity, "add_to_wait_set"):
                    self._held.enter_context(entity)
                    self._waitables.append(entity)
                    continue
                kind = self._services if hasattr(entity, "srv_type") else self._subscriptions
                self._held.enter_context(entity.handle)
                kind[entity.handle.pointer] = entity
        held.close()
        counts = [len(self._subscriptions), 1, 0, 0, len(self._services), 0]
        for waitable in self._waitables:
            needs = waitable.get_num_entities()
            for i, kind_of_entity in enumerate(WAIT_SET_KINDS):
                counts[i] += getattr(needs, f"num_{kind_of_entity}")
        self._wait_set = self._rcl.WaitSet(*counts, self._context.handle)

    def wait(self, entities: tuple[Any, ...], guard: Any, timeout: float) -> list[Any]:
        """Wait until a message or request arrives for one of several entities.

        Args:
            entities: Subscriptions, services and waitables to wait for. While they do not change,
                pass the same tuple object at each call; a new tuple object rebuilds the wait set.
            guard: rclpy guard condition; triggering it ends the wait.
            timeout: Maximum time to wait [s].

        Returns:
            Subscriptions with a message, services with a request, and waitables that are ready. The
            list is empty if the wait ended by the timeout or by the guard condition.
        """
        if entities is not self._used or self._wait_set is None:
            self.use(entities)
        wait_set = self._wait_set
        wait_set.clear_entities()
        for subscription in self._subscriptions.values():
            wait_set.add_subscription(subscription.handle)
        for service in self._services.values():
            wait_set.add_service(service.handle)
        for waitable in self._waitables:
            waitable.add_to_wait_set(wait_set)
        wait_set.add_guard_condition(guard.handle)
        wait_set.wait(max(0, int(timeout * 1e9)))
        found = [self._subscriptions[p] for p in wait_set.get_ready_entities("subscription")]
        if self._services:
            ready = wait_set.get_ready_entities("service")  # contains services of waitables too
            found += [self._services[p] for p in ready if p in self._services]
        return found + [each for each in self._waitables if each.is_ready(wait_set)]


def serve_waitable(waitable: Any) -> None:
    """Run the callbacks of a waitable that is ready, such as an action server, in this thread."""
    _run_to_end(waitable.execute(waitable.take_data()))


def begin_goal(goal_handle: Any) -> None:
    """Set the status of an accepted goal of an action to "executing", unless it is being cancelled.

    The public function for this status also makes an executor of rclpy run the goal. An executor
    would run all callbacks of the node, and wake for each message of the node.

    Args:
        goal_handle: An :class:`rclpy.action.server.ServerGoalHandle`.
    """
    if not goal_handle.is_cancel_requested:
        events = import_module("rclpy.impl.implementation_singleton").rclpy_implementation
        goal_handle._update_state(events.GoalEvent.EXECUTE)


def send_result(server: Any, goal_handle: Any, result: Any) -> None:
    """Send the result of a goal, whose status is final, to current and later requests for it.

    Args:
        server: An :class:`rclpy.action.ActionServer`.
        goal_handle: An :class:`rclpy.action.server.ServerGoalHandle` of this server.
        result: Result message of the action.
    """
    _run_to_end(server._execute_goal(lambda _: result, goal_handle))


def _run_to_end(coroutine: Any) -> None:
    """Run a coroutine that does not wait.

    Raises:
        RuntimeError: If the coroutine waits.
    """
    with suppress(StopIteration):
        coroutine.send(None)
        raise RuntimeError(f"{coroutine!r} waits; only coroutines that do not wait are supported")


# Handler of a websocket server that takes a connection and a request. It returns a response that
# rejects the request, or None to accept the request.
ProcessRequest = Callable[[Any, Any], Any]


@contextmanager
def wrap_websocket_requests(
    wrap: Callable[[ProcessRequest], ProcessRequest],
) -> Iterator[Callable[[], int]]:
    """Context manager that replaces the request handler of each websocket server started in it.

    viser 1.1 has no option for a request handler. It starts its server by a call of
    ``websockets.asyncio.server.serve`` with its own handler ``process_request``. In the context,
    ``serve`` is replaced by a function that passes another handler to the server.

    Args:
        wrap: Function that takes the handler given to ``serve``, and returns the handler to use.

    Yields:
        A function that returns the number of servers started in the context so far.
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

COUNTED_OPTIONS = {"_nrt": True}  # options of njit: the function counts references to arrays
UNCOUNTED = {"_nrt": False}  # options of njit: the function does not count references to arrays


def numba_cache() -> type:
    """Return a class of disk caches for compiled Numba functions (kernels).

    The cache folder is the first writable folder of these: NUMBA_CACHE_DIR, the folder next to the
    sources, and a folder in the user's home. If none is writable, the cache only reads kernels from
    the folder next to the sources. The method ``keep_in`` replaces the folder by another store.
    """
    from llvmlite.binding import add_symbol
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.runtime import _nrt_python

    @cache
    def add_runtime_symbols() -> None:
        """Register the functions of Numba's runtime with LLVM, so that loaded kernels find them.

        The runtime creates arrays and counts references to arrays. Numba's own initialisation of
        the runtime would also compile functions, which takes time.
        """
        for name, address in _nrt_python.c_helpers.items():
            add_symbol(name if name.startswith("_") else f"NRT_{name}", address)

    user_provided, in_tree, *others = CompileResultCacheImpl._locator_classes

    class ReadOnlyLocator(in_tree):  # type: ignore[misc,valid-type]
        """Locator of the cache folder next to the sources, which need not be writable."""

        def ensure_cache_path(self) -> None:
            if not os.path.isdir(self.get_cache_path()):
                raise FileNotFoundError

    class CacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
        _locator_classes = (user_provided, in_tree, *others, ReadOnlyLocator)

    class NumbaCache(FunctionCache):  # type: ignore[misc]
        _impl_class = CacheImpl

        @property
        def name(self) -> str:
            """First part of the names of all cache files of the kernel."""
            return cast(str, self._impl.filename_base)

        def keep_in(self, files: Any) -> None:
            """Replace the cache folder by another store for compiled kernels.

            Args:
                files: Object with the methods ``load``, ``save`` and ``flush`` of Numba's
                    ``IndexDataCacheFile``.
            """
            self._cache_file = files

        def load_overload(self, sig: Any, target_context: Any) -> Any:
            """Load a compiled kernel from the cache, or return None if the cache does not have it.

            Unlike the overridden method, this method does not import the modules that only
            compilation needs. Their import takes as long as the import of Numba, and twice as long
            if SciPy is installed.

            Args:
                sig: Signature of the kernel.
                target_context: Numba's target context.
            """
            add_runtime_symbols()
            return self._load_overload(sig, target_context)

    return NumbaCache


def host_features() -> set[str]:
    """Return the features of this processor, such as vector instructions, by their LLVM names."""
    from llvmlite.binding import get_host_cpu_features

    return {name for name, has in get_host_cpu_features().items() if has}


def numba_entry(compiled: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """Return a Numba function compiled for the types of given arguments, without type checks.

    A normal call of a Numba function inspects the types of all arguments, including the fields of
    structs, to select the compiled code. For a hundred fields, this takes as long as the
    computation. The returned function skips this inspection. Therefore it gives wrong results for
    an argument of another type, or an array of another memory layout.

    Args:
        compiled: Function decorated by ``numba.njit``; it is compiled here if necessary.
        args: Arguments whose types select the compiled code; their values are not used.
    """
    if not hasattr(compiled, "typeof_pyval"):  # NUMBA_DISABLE_JIT is set
        return cast(Callable[..., Any], compiled)
    types = tuple(compiled.typeof_pyval(each) for each in args)
    return cast(Callable[..., Any], compiled.compile(types))


class EntryPoint:
    """Callable that runs a Numba function without type checks, see :func:`numba_entry`.

    The first call compiles the function for the types of its arguments. All later calls must have
    arguments of the same types and memory layouts; otherwise the results are wrong.

    Args:
        compiled: Function decorated by ``numba.njit``.
    """

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._entry: Callable[..., Any] | None = None  # compiled function, set at the first call

    def __call__(self, *args: Any) -> Any:
        """Call the Numba function with these arguments, and return its result."""
        if self._entry is None:
            self._entry = numba_entry(self._compiled, args)
        return self._entry(*args)


def numba_serialize(data: Any) -> bytes:
    """Serialise data of a compiled kernel with Numba, to bytes that ``pickle.loads`` can read."""
    from numba.core.serialize import dumps

    return cast(bytes, dumps(data))


class _CacheOnFirstUse:
    """Cache of a Numba function that is made when one of its attributes is first read.

    Args:
        make: Function that makes the cache.
        otherwise: Cache that is used instead if `make` raises a RuntimeError or OSError.
    """

    def __init__(self, make: Callable[[], Any], otherwise: Any) -> None:
        self._make, self._otherwise = make, otherwise

    @cached_property
    def _made(self) -> Any:
        try:
            return self._make()
        except (RuntimeError, OSError):
            return self._otherwise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made, name)


def set_numba_cache(compiled: Any, make: Callable[[], Any]) -> None:
    """Replace the cache of a Numba function by the result of `make`, called at the first use.

    If `make` raises a RuntimeError or OSError, because no cache folder is writable, machine code is
    not saved, and every process compiles the function.

    Do nothing if `compiled` is a Python function, because NUMBA_DISABLE_JIT is set.
    """
    if hasattr(compiled, "_cache"):  # missing if NUMBA_DISABLE_JIT is set
        compiled._cache = _CacheOnFirstUse(make, compiled._cache)


def numba_cache_folder(compiled: Any) -> str | None:
    """Return the cache folder of a Numba function; None if the function has no cache on disk."""
    return cast("str | None", getattr(getattr(compiled, "_cache", None), "cache_path", None))


def to_fixed_tuple() -> Any:
    """Return Numba's intrinsic function that converts the first entries of an array to a tuple."""
    from numba.np.unsafe.ndarray import to_fixed_tuple

    return to_fixed_tuple


def on_numba_compilation(tell: Callable[[Any], None]) -> None:
    """Make Numba call `tell` whenever it starts to compile a function in this process.

    `tell` is not called for functions that are loaded from the cache.

    Args:
        tell: Function that takes the Numba dispatcher of the function to be compiled.
    """
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            tell(event.data["dispatcher"])

        def on_end(self, event: Any) -> None:
            """Do nothing; Numba calls this method when a compilation ends."""

    event.register("numba:compile", Listener())


def numba_compilers() -> tuple[Any, Any]:
    """Return two compilers for the option ``pipeline_class`` of njit: for parts and for kernels.

    A kernel is a function that Python calls. A part is a function that only kernels and other parts
    call. By default, Numba optimises each function together with all functions that it calls, and
    generates machine code. A function that is called by other functions is therefore optimised
    again in each caller, which takes most of the compile time. The compiler of parts does not
    optimise and does not generate machine code, so Python cannot call a part. The compiler of
    kernels optimises a kernel and all its parts once. Loops are not vectorised, because for 6 rows
    and 7 joints vectorised loops take longer to compile and to run.
    """
    from llvmlite.binding import Linkage, parse_assembly
    from numba.core import config
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import LoweringPass, register_pass
    from numba.core.typed_passes import AnnotateTypes

    PUBLIC = (Linkage.external, Linkage.linkonce_odr, Linkage.weak_odr)

    class NoEnvironment:
        """Numba's code generator with a ``set_env`` that does nothing, for parts of kernels.

        A part is a function that is compiled to LLVM code but not to machine code.
        """

        def __init__(self, codegen: Any) -> None:
            self._codegen = codegen

        def set_env(self, name: str, env: Any) -> None:
            """Do nothing, because a part has no machine code whose environment could be set."""

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codegen, name)

    class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Unoptimised LLVM code of a part and of all functions that the part calls.

        A part is a function that only kernels and other parts call, not Python.
        """

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def finalize(self) -> None:
            """Link the code of the functions that the part calls; do not optimise the result."""
            self._raise_if_finalized()
            for library in dict.fromkeys(self._linking_libraries):
                if hasattr(library, "_reload_init"):  # numba 0.60 and later
                    self._reload_init.update(library._reload_init)
                linked = library._get_module_for_linking()
                self._final_module.link_in(linked, preserve=True)
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            """Return 0 instead of the address of a function.

            Only Python needs the address, and Python does not call the function.
            """
            self._ensure_finalized()
            return 0

    class KernelLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code of a kernel (a function that Python calls) and of all functions that it calls.

        The code of these functions is optimised only once, together with the kernel.
        """

        def serialize_using_object_code(self) -> Any:
            """Return the data of the kernel for the cache: machine code, and LLVM stubs.

            By default, Numba also stores the full LLVM code, so that other functions can include
            the function. No function includes a kernel, and parsing the LLVM code would double the
            time to load the kernel. Therefore the LLVM code has only empty functions.
            """
            self._ensure_finalized()
            here = [each for each in self._final_module.functions if not each.is_declaration]
            names = [each.name for each in here if each.linkage in PUBLIC]
            stubs = [f'define void @"{name}"() {{ unreachable }}' for name in names]
            module = parse_assembly("\n".join(stubs))
            return self.name, "object", (self._get_compiled_object(), module.as_bitcode())

        def _optimize_final_module(self) -> None:
            vectorize = config.LOOP_VECTORIZE
            config.LOOP_VECTORIZE = 0  # safe, because numba compiles in one thread at a time
            try:
                super()._optimize_final_module()
            finally:
                config.LOOP_VECTORIZE = vectorize

    def compiler(library: type) -> type:
        @register_pass(mutates_CFG=False, analysis_only=True)
        class MakeLibrary(LoweringPass):  # type: ignore[misc]
            """Compiler pass that creates the code library of a function as an object of `library`.

            The pass runs before the pass of Numba that would create a library of another type.
            """

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
                """Return Numba's compiler passes with the pass MakeLibrary inserted."""
                passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
                passes.add_pass_after(MakeLibrary, AnnotateTypes)
                passes.finalize()
                return [passes]

        return Compiler

    return compiler(PartLibrary), compiler(KernelLibrary)


def call_as_part(kernel: Any, make_part: Callable[[], Any]) -> None:
    """Make other compiled functions that call `kernel` include the code of a part instead.

    A part can be included in its callers; a kernel can only be called by Python.

    Args:
        kernel: Function compiled by the compiler of kernels (see :func:`numba_compilers`).
        make_part: Function that returns the same Python function compiled by the compiler of parts;
            called when a caller is first compiled, while Numba holds its lock.
    """
    part = cache(make_part)
    kernel.get_call_template = lambda *given: part().get_call_template(*given)
    kernel.get_overload = lambda *given: part().get_overload(*given)


@contextmanager
def xacro_packages(find: Callable[[str], str]) -> Iterator[None]:
    """Context manager in which xacro resolves ``$(find NAME)`` by the function `find`.

    By default, xacro searches packages with ament. But ament is missing without ROS 2, and does not
    find packages that are cloned but not installed.

    Args:
        find: Function that takes the name of a ROS package and returns its folder.
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
