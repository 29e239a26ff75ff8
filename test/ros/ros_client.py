# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Process of the node, and a client that spins until a condition holds."""

import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import numpy as np
import rclpy
from moveit_msgs.msg import ServoStatus
from prefork import EXECUTE, ForkingPopen, python_path
from rcl_interfaces.srv import DescribeParameters, GetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter

from benchmarks.processes import proc_figures

READY = 240.0  # [s] kernels may have to be compiled, by several at once
UNNAMED = "_NODE_NAMESPACE_UNKNOWN_/_NODE_NAME_UNKNOWN_"
ANEW = 20.0  # [s]
ENDED = 10.0  # [s] a node that has not exited by then is killed
SEND_AGAIN = "send it again"  # words of the status after a target that may have been queued
MAX_SENDS = 10  # times that a target is sent to a node that stalls
SOON = 120.0  # [s] all other waits, long enough for a busy machine
ENOUGH = 10.0  # [s] timeout of requests that must not time out; the longest by default
TIMED_OUT = -6  # code of a request that waited for its turn until its timeout


class NodeProcess:
    """Process of ``ik_node``, with its log lines."""

    module = "dls_ik.ros.node"
    wrapper = ()  # a command that runs the one that follows it

    def __init__(self, *ros_arguments, **environment):
        ours = {"PYTHONPATH": python_path(), "PYTHONFAULTHANDLER": "1"}
        environment = {**os.environ, **ours, **environment}
        self.process = ForkingPopen(
            [*self.wrapper, sys.executable, "-m", self.module, "--ros-args", *ros_arguments],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self):
        return self

    def __exit__(self, failure=None, *_):
        if failure is not None:  # pytest shows the output of failed tests
            print(self.output)
        self.process.terminate()  # not killed: what coverage counts is written at the end
        try:
            self.process.wait(ENDED)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        self.process.stdout.close()

    @property
    def output(self):
        return "\n".join(self.lines)

    @property
    def figures(self):
        """Return the memory, threads and open files of the process."""
        return proc_figures(self.process.pid)

    def count(self, *words):
        """Return the number of lines that contain all words."""
        return sum(all(word in line for word in words) for line in self.lines)

    def wait_for_line(self, *words, timeout=READY):
        """Wait for a line that contains all words, and return the first one."""
        with self._news:
            found = self._news.wait_for(
                lambda: self.count(*words) or self.process.poll() is not None, timeout
            )
        if not found:  # say where its threads are
            self.process.send_signal(signal.SIGABRT)
            self._reader.join(SOON)
        assert found, f"no line with {words} in {timeout} s in:\n{self.output}"
        assert self.count(*words), f"ended without a line with {words}:\n{self.output}"
        return next(line for line in self.lines if all(word in line for word in words))

    def wait_for_end(self, timeout=SOON):
        """Wait for the end of the process, and return its exit code."""
        code = self.process.wait(timeout)
        self._reader.join(timeout)
        return code

    def end(self, number=signal.SIGINT):
        """Send a signal, wait for the end, and return the exit code."""
        self.process.send_signal(number)
        return self.wait_for_end()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()
        self.process.wait()  # its output ends first
        with self._news:
            self._news.notify_all()


class ExecutedNode(NodeProcess):
    """Process of ``ik_node`` that does all its imports, for tests of its start or its memory."""

    def __init__(self, *ros_arguments, **environment):
        super().__init__(*ros_arguments, **EXECUTE, **environment)


class SimArmProcess(NodeProcess):
    """Process of ``ik_sim_arm``."""

    module = "dls_ik.ros.sim_arm.node"


class Client:
    """Node of the test that talks to ``ik_node`` and keeps all messages."""

    def __init__(self, namespace="", name="test_client"):
        self.context = Context()
        rclpy.init(context=self.context)
        self.node = Node(
            name, context=self.context, namespace=namespace, use_global_arguments=False
        )
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self._clients = {}
        self._statuses = None  # messages of the status topic, once a target was sent

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.executor.shutdown()
        self.node.destroy_node()
        self.context.try_shutdown()

    def spin_until(self, condition, timeout=SOON, what="the condition"):
        """Run callbacks until a condition holds."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"waited {timeout} s for {what}{self._told()}"
            self.executor.spin_once(timeout_sec=0.05)

    def spin_for(self, duration):
        """Run callbacks for a time [s] in which nothing should happen."""
        deadline = time.monotonic() + duration
        while (left := deadline - time.monotonic()) > 0.0:
            self.executor.spin_once(timeout_sec=left)

    def send_until(self, send, condition, what):
        """Send a single target until a condition holds; again only if the status asks for that.

        A node that stalled ignores a target that may have been queued meanwhile, and its status
        says so for half a second.
        """
        if self._statuses is None:
            self._statuses = self.listen(ServoStatus, "dls_ik/status")
        for _ in range(MAX_SENDS):
            self.spin_for(0.6 if self._statuses else 0.0)
            del self._statuses[:]
            send()
            self.spin_until(lambda: condition() or self._asks_again(), what=what)
            if condition():
                return
        raise AssertionError(f"the node ignored {MAX_SENDS} targets")

    def _told(self):
        """Return the last status, to be appended to a failure."""
        return f"; the last status is {self._statuses[-1].message!r}" if self._statuses else ""

    def _asks_again(self):
        return any(SEND_AGAIN in status.message for status in self._statuses)

    def call(self, service, name, request, timeout=SOON):
        """Return the response of a service."""
        client, what = self._clients.get(name), f"an answer of {name}"
        if client is None:
            client = self._clients[name] = self._ready_client(service, name)
            return self._first_answer(lambda: client.call_async(request), timeout, what)
        future = client.call_async(request)
        self.spin_until(future.done, timeout, what)
        return future.result()

    def call_in_time(self, service, name, request):
        """Return the response to a request; repeat the request if it times out before it starts.

        This is for requests with a short timeout, because their solver uses all of it.
        """
        for _ in range(MAX_SENDS):
            response = self.call(service, name, request)
            if response.error_code.val != TIMED_OUT:
                return response
        raise AssertionError(f"{MAX_SENDS} requests timed out: {response.error_code.message}")

    def answered_client(self, service, name, request):
        """Return a client that the service has answered once, so that no request is lost."""
        client = self._ready_client(service, name)
        self._first_answer(lambda: client.call_async(request), READY, f"an answer of {name}")
        return client

    def reach(self, asker):
        """Wait until an IkClient on this node is answered, as a first request may be lost."""
        self.spin_until(lambda: asker.is_served, READY, "compute_ik")
        for send in (partial(asker.solve_async, np.eye(4)), asker.fk_async):
            self._first_answer(send, READY, "an answer to an IkClient")

    def listen(self, message_type, topic, qos=10):
        """Return a list that receives the messages of a topic."""
        inbox = []
        self.node.create_subscription(message_type, topic, inbox.append, qos)
        return inbox

    def publisher(self, message_type, topic, qos=10):
        """Return a publisher with a known subscriber."""
        publisher = self.node.create_publisher(message_type, topic, qos)
        self.spin_until(publisher.get_subscription_count, what=f"a listener on {topic}")
        self.spin_until(lambda: UNNAMED not in self._listeners(topic), what="the names of nodes")
        for node in self._listeners(topic) - {self.node.get_fully_qualified_name()}:
            self._greet(node)
        return publisher

    def _listeners(self, topic):
        name = self.node.resolve_topic_name(topic)
        found = self.node.get_subscriptions_info_by_topic(name)
        return {f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in found}

    def _greet(self, node):
        """Exchange a message with a node through a new client.

        A node hears of all that another makes in the order in which it was made, so once it answers
        it knows of what came before. Without that a best-effort listener may lose a first message.
        """
        service = f"{node}/get_parameters"
        client = self.answered_client(GetParameters, service, GetParameters.Request())
        self.node.destroy_client(client)

    def _first_answer(self, send, timeout, what):
        """Return the response to a new client; responses to undiscovered clients are lost."""
        calls, asked = [], -ANEW

        def is_answered():
            nonlocal asked
            if time.monotonic() - asked >= ANEW:
                calls.append(send())
                asked = time.monotonic()
            return any(map(_has_result, calls))

        self.spin_until(is_answered, timeout, what)
        return next(call.result() for call in calls if _has_result(call))

    def _ready_client(self, kind, service):
        """Return a client of an existing service; replaced if it never finds the service."""
        for _ in range(round(READY / ANEW)):
            client, deadline = self.node.create_client(kind, service), time.monotonic() + ANEW
            while time.monotonic() < deadline:
                if client.service_is_ready():
                    return client
                self.executor.spin_once(timeout_sec=0.05)
            self.node.destroy_client(client)
        raise AssertionError(f"waited {READY} s for service {service}")

    def set_parameters(self, **values):
        """Set parameters of ``ik_node`` all at once."""
        request = SetParametersAtomically.Request()
        request.parameters = [
            Parameter(name.rstrip("_"), value=value).to_parameter_msg()
            for name, value in values.items()
        ]
        return self.call(
            SetParametersAtomically, "dls_ik/set_parameters_atomically", request
        ).result

    def set_raw_parameter(self, message, timeout):
        request = SetParametersAtomically.Request(parameters=[message])
        return self.call(
            SetParametersAtomically, "dls_ik/set_parameters_atomically", request, timeout
        )

    def get_parameter(self, name):
        request = GetParameters.Request(names=[name])
        return self.call(GetParameters, "dls_ik/get_parameters", request).values[0]

    def describe_parameters(self, *names):
        request = DescribeParameters.Request(names=list(names))
        return self.call(DescribeParameters, "dls_ik/describe_parameters", request).descriptors


def _has_result(call):
    return call.done() and call.exception() is None
