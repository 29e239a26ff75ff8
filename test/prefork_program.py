# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Program of test_prefork.py: prints how it was started, and exits with the code that it reads."""

import json
import os
import signal
import sys

found = {
    "name": __name__,
    "arguments": sys.argv[1:],
    "path": sys.path[0],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "pid": os.getpid(),
    "parent": os.getppid(),
    "session": os.getsid(0),
    "sigint": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "files": sorted(os.listdir("/proc/self/fd")),
}
print(json.dumps(found), flush=True)
print("to standard error", file=sys.stderr)
sys.exit(int(sys.stdin.readline()))
