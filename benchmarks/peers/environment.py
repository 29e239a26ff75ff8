"""The environment that the peers are installed in, apart from that of dls_ik."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from dls_ik import DlsIkError

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements" / "peers.txt"
FOLDER = Path("~/.cache/dls_ik/peers").expanduser()
STAMP = "dls_ik_peers.json"


def requirements() -> list[str]:
    """The pinned lines."""
    lines = (line.partition("#")[0].strip() for line in REQUIREMENTS.read_text().splitlines())
    return [line for line in lines if line]


def prepared(folder: Path, say: Callable[[str], None]) -> tuple[str, dict[str, str]]:
    """Make the environment, or find it made.

    Returns:
        Its Python, and why requirements that could not be installed were not, by name.

    Raises:
        DlsIkError: the environment cannot be made.
    """
    python, stamp = folder / "bin" / "python", folder / STAMP
    key = hashlib.sha256(f"{sys.base_prefix} {sys.version} {requirements()}".encode()).hexdigest()
    if stamp.is_file():
        made = json.loads(stamp.read_text())
        if made["key"] == key:
            return str(python), made["missing"]
    elif folder.exists() and any(folder.iterdir()):
        raise DlsIkError(f"{folder} is no environment of the peers: name an empty or a new folder")
    say(f"peers: installing {REQUIREMENTS.name} into {folder}, 1.4 GB, about a minute")
    _make(folder)
    _mark(stamp, "", {})  # an install that is interrupted is made anew
    missing = _installed(python)
    _mark(stamp, "" if missing else key, missing)
    return str(python), missing


def _mark(stamp: Path, key: str, missing: dict[str, str]) -> None:
    stamp.write_text(json.dumps({"key": key, "missing": missing}, indent=2) + "\n")


def _make(folder: Path) -> None:
    base = str(getattr(sys, "_base_executable", sys.executable))
    command = [base, "-m", "venv", "--clear", "--system-site-packages", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DlsIkError(f"cannot make {folder}: {_last(done.stderr or done.stdout)}")


def _installed(python: Path) -> dict[str, str]:
    """Install all at once; one after the other where that fails, to know which it is."""
    if not _refused(python, requirements()):
        return {}
    reasons = {line: _refused(python, [line]) for line in requirements()}
    return {line: reason for line, reason in reasons.items() if reason}


def _refused(python: Path, lines: list[str]) -> str:
    command = [str(python), "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    command += ["--only-binary", ":all:", *lines]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return _last(done.stderr) or "pip failed" if done.returncode else ""


def _last(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if "ERROR" in line] or text.splitlines()
    return lines[-1].strip() if lines else ""
