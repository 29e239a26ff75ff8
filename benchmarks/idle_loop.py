"""A loop at a rate that does nothing: ``python -m benchmarks.idle_loop RATE``.

It sleeps as the stream of the node does, in a thread, until deadlines of the same kind. What it
misses is the machine's own. Says that it is ready, then once a second when its cycles began, as
JSON: microseconds since the first.
"""

import json
import signal
import sys
import threading
import time

from dls_ik.ros.stream.pacing import Pacer
from dls_ik.ros.stream.targets import Targets


def run(rate: float, targets: Targets, starts: list[float]) -> None:
    """Cycle until the targets are closed; note when each cycle began [s]."""
    pacer = Pacer(rate, time.monotonic())
    while targets.wait(*pacer.window()):
        now = time.monotonic()
        pacer.began(now, targets.take())
        starts.append(now)


def main() -> None:
    """Cycle, and tell, until a signal."""
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: over.set())
    targets, starts, told = Targets(), [time.monotonic()], 1
    thread = threading.Thread(target=run, args=(float(sys.argv[1]), targets, starts))
    thread.start()
    print("ready", flush=True)
    first = starts[0]
    while not over.wait(1.0):
        count = len(starts)
        new, told = starts[told:count], count
        print(json.dumps([round(1e6 * (start - first)) for start in new]), flush=True)
        if told > 100_000:
            del starts[1:told]
            told = 1
    targets.close()
    thread.join()


if __name__ == "__main__":
    main()
