"""``dls-ik view`` as a process of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import dls_ik

ROOT = str(Path(dls_ik.__file__).resolve().parents[1])


class ViewProcess:
    """A context in which the page is served, on a port that is free."""

    def __init__(self, *arguments):
        command = [sys.executable, "-m", "dls_ik.cli", "view", "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(
            [*command, *arguments],
            env=paths(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self._line = self.process.stdout.readline()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    @property
    def url(self):
        """Where the page is."""
        found = re.match(r"http://\S+", self._line)
        assert found, f"no address, but {self._line!r}; exit code {self.process.wait()}"
        return found.group()


def paths():
    """The environment in which another process finds the package."""
    path = os.pathsep.join(filter(None, [ROOT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}
