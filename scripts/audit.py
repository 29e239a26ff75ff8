# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Check of all files of pins, and of the installed environment, for known vulnerabilities.

pip-audit ignores packages that its service does not know, so a service without data would look like
one without findings. Therefore a release with public vulnerabilities is checked first, and ignored
packages are listed.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KNOWN_BAD = "jinja2==2.4.1"
OWN = ("dls-ik",)  # is in no registry
FOUND, NOT_ASKED = 1, 3


class AuditAnswer(NamedTuple):
    """Answer of the service about a set of packages."""

    fine: tuple[str, ...] = ()
    found: tuple[str, ...] = ()  # vulnerable packages with their vulnerabilities
    unknown: tuple[str, ...] = ()
    complaint: str = ""  # reason of no answer


def main(options: Sequence[str]) -> int:
    """Check all files, and return the exit code."""
    control = of_pins([KNOWN_BAD], options)
    if not control.found:
        why = control.complaint or f"it knows no vulnerability of {KNOWN_BAD}, which has several"
        print(f"audit: NOT AUDITED: the service of vulnerabilities does not answer: {why}")
        return NOT_ASKED
    answers = {path.name: of_pins(pins(path), options) for path in files()}
    for folder in sorted(ROOT.glob(".venv/lib/python*/site-packages")):
        answers[".venv, with all dependencies"] = run_audit(["--path", str(folder)], options)
    print("\n".join(line for name, answer in answers.items() for line in lines(name, answer)))
    if any(answer.found for answer in answers.values()):
        return FOUND
    whole = all(not answer.unknown and not answer.complaint for answer in answers.values())
    return 0 if whole else NOT_ASKED


def files() -> Iterable[Path]:
    """Return the files with pins; the other files use packages of a distribution."""
    return (path for path in sorted(ROOT.glob("requirements/*.txt")) if pins(path))


def pins(path: Path) -> list[str]:
    """Return the lines that pin one version, with their markers."""
    texts = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [text for text in texts if "==" in text.partition(";")[0]]


def of_pins(lines: Iterable[str], options: Sequence[str]) -> AuditAnswer:
    """Check releases without their dependencies."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pins.txt"
        file.write_text("\n".join(lines))
        return run_audit(["--requirement", str(file), "--no-deps", "--disable-pip"], options)


def run_audit(arguments: Sequence[str], options: Sequence[str]) -> AuditAnswer:
    """Run pip-audit."""
    command = [sys.executable, "-m", "pip_audit", "--progress-spinner", "off", "--format", "json"]
    ended = subprocess.run(
        [*command, *arguments, *options], capture_output=True, text=True, check=False, cwd=ROOT
    )
    try:
        rows = json.loads(ended.stdout)["dependencies"]
    except (ValueError, KeyError):
        output = ended.stderr.strip().splitlines() or ["no output"]
        return AuditAnswer(complaint=output[-1][:300])
    return AuditAnswer(
        tuple(row["name"] for row in rows if "vulns" in row and not row["vulns"]),
        tuple(f"{row['name']} {row['version']}: {ids(row)}" for row in rows if row.get("vulns")),
        tuple(row["name"] for row in rows if "skip_reason" in row and row["name"] not in OWN),
    )


def ids(row: dict[str, list[dict[str, str]]]) -> str:
    """Return the names of the vulnerabilities of a package."""
    return ", ".join(each["id"] for each in row["vulns"])


def lines(name: str, answer: AuditAnswer) -> Iterable[str]:
    """Yield the lines of the report about one file."""
    if answer.complaint:
        yield f"audit: {name}: NOT AUDITED: {answer.complaint}"
        return
    counts = f"{len(answer.fine)} without known vulnerabilities, {len(answer.found)} with"
    yield f"audit: {name}: {counts}"
    yield from (f"  {each}" for each in answer.found)
    if answer.unknown:
        yield f"  NOT AUDITED, the service does not know them: {', '.join(answer.unknown)}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
