"""The node: the only part of the package that knows ROS."""

import time

STARTED = time.monotonic()  # [s] as early as this package can know
