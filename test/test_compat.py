# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The private members of libraries that the package uses are there, and do what it expects."""

import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest
from programs import run_python

from dls_ik import RobotModel, compat


@pytest.fixture
def node(private_domain):
    rclpy = pytest.importorskip("rclpy", reason="needs rclpy")
    from rclpy.context import Context
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    context = Context()
    rclpy.init(args=[], context=context)
    given = [Parameter("rate", value=7.0)]
    node = Node("compat", context=context, use_global_arguments=False, parameter_overrides=given)
    yield node
    node.destroy_node()
    context.try_shutdown()


def test_parameter_overrides_returns_the_start_parameters(node):
    overrides = compat.parameter_overrides(node)
    assert {name: given.value for name, given in overrides.items()} == {"rate": 7.0}


def test_rcl_error_is_raised_for_a_conflicting_topic_type(node):
    from std_msgs.msg import Empty, String

    node.create_publisher(String, "topic", 1)
    with pytest.raises(compat.rcl_error()):
        node.create_publisher(Empty, "topic", 1)


def test_requests_are_waited_for_and_answered_later(node):
    from rclpy.executors import SingleThreadedExecutor
    from std_srvs.srv import Trigger

    service = node.create_service(Trigger, "ask", print)
    client = node.create_client(Trigger, "ask")
    assert client.wait_for_service(120.0)
    future = client.call_async(Trigger.Request())
    waiter, guard = compat.EntityWaiter(node.context), node.create_guard_condition(print)
    assert waiter.wait((service,), guard, 120.0) == [service]
    _, header = service.handle.service_take_request(Trigger.Request)
    assert service.handle.service_take_request(Trigger.Request)[1] is None, "there was one"
    service.send_response(Trigger.Response(message="later"), header)
    node.destroy_service(service)
    waiter.use(())
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    executor.spin_until_future_complete(future, 120.0)
    assert future.result().message == "later"
    executor.shutdown()


def test_goals_of_actions_are_served_and_ended_without_an_executor(node):
    action = pytest.importorskip("moveit_msgs.action", reason="needs moveit_msgs").ExecuteTrajectory
    from rclpy.action import ActionClient, ActionServer
    from rclpy.callback_groups import ReentrantCallbackGroup
    from rclpy.executors import SingleThreadedExecutor
    from rclpy.node import Node

    class Unserved(ReentrantCallbackGroup):
        def can_execute(self, entity):
            return False

    handles = []
    server = ActionServer(
        node, action, "act", print, callback_group=Unserved(),
        handle_accepted_callback=handles.append,
    )  # fmt: skip
    other = Node("asking", context=node.context, use_global_arguments=False)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(other)
    client = ActionClient(other, action, "act")
    waiter, guard = compat.EntityWaiter(node.context), node.create_guard_condition(print)
    assert client.wait_for_server(120.0)

    def serve_until(done):
        for _ in range(2400):
            for ready in waiter.wait((server,), guard, 0.02):
                assert ready is server
                compat.serve_waitable(ready)
            executor.spin_once(timeout_sec=0.02)
            if done():
                return
        raise AssertionError("no answer in 2400 waits")

    sent = client.send_goal_async(action.Goal())
    serve_until(sent.done)
    (handle,) = handles
    compat.begin_goal(handle)
    asked = sent.result().get_result_async()
    handle.succeed()
    compat.send_result(server, handle, action.Result())
    serve_until(asked.done)
    assert asked.result().status == 4, "succeeded"
    waiter.use(())
    client.destroy()
    server.destroy()
    executor.shutdown()
    other.destroy_node()


def test_numba_entry_gives_the_result_of_the_kernel():
    """It computes the same, in the arrays that it is given."""
    from dls_ik.core.limiter import advance
    from dls_ik.core.se3 import difference
    from dls_ik.servo.limiter import boxed_limits

    T_a, T_b = np.eye(4), np.eye(4)
    T_b[:3, 3] = 1.0, 2.0, 3.0
    direct = compat.numba_entry(difference, (T_a, T_b))
    assert np.array_equal(direct(T_a, T_b), difference(T_a, T_b))
    robot = RobotModel.wam()
    limits, q_r, v_r = (
        boxed_limits(robot, robot.velocity, np.full(7, 4.0)),
        np.full(7, 0.2),
        np.zeros(7),
    )
    moved = []
    for call in (advance, compat.EntryPoint(advance)):
        q, v = np.zeros(7), np.zeros(7)
        call(limits, q_r, v_r, 0.01, q, v)
        moved.append((q, v))
    assert np.array_equal(*moved)
    assert moved[0][0].any()


def test_messages_of_subscriptions_are_waited_for(node):
    from std_msgs.msg import Empty

    waiter = compat.EntityWaiter(node.context)
    guard = node.create_guard_condition(lambda: None)
    subscriptions = tuple(node.create_subscription(Empty, name, print, 1) for name in "ab")
    assert waiter.wait(subscriptions, guard, 0.0) == []
    publisher = node.create_publisher(Empty, "b", 1)
    for _ in range(400):
        publisher.publish(Empty())
        if found := waiter.wait(subscriptions, guard, 0.05):
            break
    assert found == [subscriptions[1]]
    message, info = found[0].handle.take_message(Empty, False)
    assert message == Empty()
    assert info["source_timestamp"] > 0
    guard.trigger()
    begin = time.monotonic()
    assert waiter.wait(subscriptions[:1], guard, 600.0) == []
    assert time.monotonic() - begin < 300.0
    node.destroy_subscription(subscriptions[0])
    assert waiter.wait(subscriptions, guard, 0.0) == [], "a destroyed one is left out"
    waiter.use(())


def test_viser_starts_its_server_by_the_function_that_is_wrapped():
    viser = pytest.importorskip("viser", reason="needs viser")
    from websockets.asyncio import server as websockets_server

    serve = websockets_server.serve
    with compat.wrap_websocket_requests(lambda process_request: process_request) as count:
        server = viser.ViserServer(port=0, verbose=False)
    server.stop()
    assert count() == 1
    assert websockets_server.serve is serve


@pytest.fixture
def compiled():
    numba = pytest.importorskip("numba")
    if numba.config.DISABLE_JIT:
        pytest.skip("nothing is compiled")
    return numba.njit(cache=True)(one_more)


def one_more(x):
    return x + 1


def test_numba_cache_can_keep_its_data_in_other_files(compiled, tmp_path, monkeypatch):
    """Numba asks the cache of a function before it compiles, and hands over what it compiled."""
    kept = {}

    class Files:
        def load(self, key):
            return pickle.loads(kept[key]) if key in kept else None

        def save(self, key, data):
            kept[key] = compat.numba_serialize(data)

        def flush(self):
            kept.clear()

    def cache():
        made = compat.numba_cache()(one_more)
        made.keep_in(Files())
        return made

    compat.set_numba_cache(compiled, cache)
    assert cache().name.startswith("test_compat.one_more-")
    assert compat.numba_cache_folder(compiled) == cache().cache_path
    assert compiled(1) == 2
    assert len(kept) == 1
    again = type(compiled)(one_more)
    compat.set_numba_cache(again, cache)
    assert again(1) == 2
    assert sum(again.stats.cache_hits.values()) == 1


def test_functions_without_a_writable_cache_folder_are_compiled(compiled):
    def refuse():
        raise RuntimeError("no locator available")

    fresh = type(compiled)(one_more)
    compat.set_numba_cache(fresh, refuse)
    assert fresh(1) == 2
    assert compat.numba_cache_folder(fresh) is None


def test_functions_that_are_not_compiled_get_no_cache():
    compat.set_numba_cache(one_more, pytest.fail)
    assert compat.numba_cache_folder(one_more) is None


def test_locators_of_numba_may_be_added_to(compiled):
    from numba.core.caching import CompileResultCacheImpl

    *others, installed = compat.numba_cache()._impl_class._locator_classes
    assert others == list(CompileResultCacheImpl._locator_classes)
    for locator in (*others, installed):
        assert {"ensure_cache_path", "get_cache_path", "from_function"} <= set(dir(locator))


def test_numba_tells_when_it_compiles(compiled):
    told = []
    compat.on_numba_compilation(told.append)
    fresh = type(compiled)(one_more)
    assert fresh(1.5) == 2.5
    assert fresh in told


def test_kernels_compile_with_and_without_reference_counting(compiled):
    import numba

    for options in (compat.COUNTED_OPTIONS, compat.UNCOUNTED):
        assert numba.njit(**options)(one_more)(1) == 2


def test_to_fixed_tuple_returns_the_first_entries_of_an_array(compiled):
    import numba
    import numpy as np

    fixed_tuple = compat.to_fixed_tuple()

    @numba.njit
    def first_two(array):
        return fixed_tuple(array, 2)

    assert first_two(np.array([3.0, 4.0, 5.0])) == (3.0, 4.0)


def test_only_kernels_called_from_python_are_optimised(compiled, monkeypatch):
    """A part is taken in by a kernel as it was lowered, and cannot be called by itself."""
    import numba
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.registry import cpu_target
    from numba.core.runtime import rtsys

    rtsys.initialize(cpu_target.target_context)  # compiles numba's runtime, once in a process
    optimise, optimised = CPUCodeLibrary._optimize_final_module, []

    def record(library):
        optimised.append((library.name, numba.config.LOOP_VECTORIZE))
        optimise(library)

    monkeypatch.setattr(CPUCodeLibrary, "_optimize_final_module", record)
    of_part, of_kernel = compat.numba_compilers()
    vectorize = numba.config.LOOP_VECTORIZE
    part = numba.njit(pipeline_class=of_part, no_cpython_wrapper=True)(one_more)
    by_python = numba.njit(pipeline_class=of_kernel)(one_more)
    compat.call_as_part(by_python, lambda: part)

    @numba.njit(pipeline_class=of_kernel)
    def two_more(x):
        return by_python(by_python(x))

    assert two_more(1.5) == 3.5
    assert [(each.rpartition(".")[2], v) for each, v in optimised] == [("two_more", 0)]
    assert part.signatures
    assert not by_python.signatures
    assert by_python(1.5) == 2.5
    assert [each.rpartition(".")[2] for each, _ in optimised] == ["two_more", "one_more"]
    assert vectorize == numba.config.LOOP_VECTORIZE


def test_cached_kernels_are_loaded_without_compiler_modules(compiled, tmp_path):
    """The next process compiles afterwards all the same, as with NumPy's functions."""
    source = tmp_path / "kept.py"
    source.write_text(
        "import sys\n"
        "import numba\n"
        "import numpy as np\n"
        "from dls_ik.core.jit import allocating\n"
        "@allocating\n"
        "def twice(x):\n"
        "    return x + x\n"
        "@numba.njit\n"
        "def norm(x):\n"
        "    return np.sqrt(np.sum(twice(x) ** 2))\n"
        "x = np.array([1.5, 2.0])\n"
        "assert twice(x).tolist() == [3.0, 4.0]\n"
        "print(sum(twice.stats.cache_hits.values()), 'numba.np.arraymath' in sys.modules)\n"
        "assert norm(x) == 5.0\n"
    )
    said = [
        subprocess.run(
            [sys.executable, str(source)],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        ).stdout.split()
        for _ in range(2)
    ]
    assert said == [["0", "True"], ["1", "False"]]


def test_no_kernel_of_the_package_loads_numpy_implementations_of_numba(compiled):
    """A function of NumPy in a kernel can have numba import its implementations, and SciPy."""
    use = "from dls_ik.warm_up import *; use_kernels(USES); import sys; print(*sys.modules)"
    command = [sys.executable, "-c", use]
    unwanted = {"numba.np.arraymath", "scipy.linalg"}
    for _ in range(2):  # kernels may have to be compiled first
        loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        if not unwanted & set(loaded):
            break
    assert "numba.np.arrayobj" in loaded
    assert not unwanted & set(loaded)


def test_xacro_packages_replaces_find_and_restores_it(tmp_path):
    xacro = pytest.importorskip("xacro", reason="needs xacro")
    (tmp_path / "top.xacro").write_text('<robot name="$(find mine)" a="${1 + 1}"/>')
    with compat.xacro_packages({"mine": "/here"}.get):
        assert 'name="/here"' in xacro.process_file(str(tmp_path / "top.xacro")).toxml()
    from xacro import substitution_args

    assert substitution_args._eval_find is substitution_args._eval_dict["find"], "put back"
    assert substitution_args._eval_find.__module__ == "xacro.substitution_args"


def test_callers_in_known_files_are_found_without_a_search_of_all_modules():
    """In a new process, as the module ``inspect`` keeps what it has found."""
    done = run_python(
        "-c",
        """
import inspect, sys
from dls_ik import compat, text
compat.index_source_files()
searched = []
inspect._filesbymodname = type("Searched", (dict,), {"get": lambda *_: searched.append(1)})()
function = text.escape.__code__
assert inspect.getmodule(function, function.co_filename) is text
assert not searched
""",
    )
    assert (done.returncode, done.stderr) == (0, "")
