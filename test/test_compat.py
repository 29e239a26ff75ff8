"""The private members of libraries that the package uses are there, and do what it expects."""

import pytest

from dls_ik import compat


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


def test_parameters_that_a_node_was_started_with(node):
    overrides = compat.parameter_overrides(node)
    assert {name: given.value for name, given in overrides.items()} == {"rate": 7.0}


def test_the_error_of_rcl(node):
    from std_msgs.msg import Empty, String

    node.create_publisher(String, "topic", 1)
    with pytest.raises(compat.rcl_error()):
        node.create_publisher(Empty, "topic", 1)


def test_a_service_passes_its_results_on(node):
    from rclpy.executors import SingleThreadedExecutor
    from std_srvs.srv import Trigger

    service = node.create_service(Trigger, "ask", lambda request, response: (request, response))
    held = []
    send = compat.intercept_responses(service, lambda pair, header: held.append((pair, header)))
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    client = node.create_client(Trigger, "ask")
    assert client.wait_for_service(20.0)
    future = client.call_async(Trigger.Request())
    for _ in range(400):
        executor.spin_once(timeout_sec=0.05)
        if held:
            break
    (_, response), header = held.pop()
    assert not future.done()
    response.message = "later"
    send(response, header)
    executor.spin_until_future_complete(future, 20.0)
    assert future.result().message == "later"
    executor.shutdown()


def test_viser_starts_its_server_by_the_function_that_is_wrapped():
    viser = pytest.importorskip("viser", reason="needs viser")
    from websockets.asyncio import server as websockets_server

    serve = websockets_server.serve
    with compat.wrap_websocket_requests(lambda process_request: process_request) as count:
        server = viser.ViserServer(port=0, verbose=False)
    server.stop()
    assert count() == 1
    assert websockets_server.serve is serve
