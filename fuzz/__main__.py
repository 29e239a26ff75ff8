"""Fuzz the interfaces of the package, guided by coverage: ``python -m fuzz [TARGET ...]``.

Each target runs in a process of its own under atheris (requirements/fuzz.txt). Inputs that reach
new code are kept in a folder, where the next campaign begins. An input that shows a defect is
stored with its traceback in TARGET/defects there, once for each place in the code; ``python -m
fuzz TARGET --replay FILE`` tries it again. Exit codes: 0 no defect, 1 defects, 3 no atheris.
"""

import argparse
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import Column, Table, finish, guarded, parser, positive
from fuzz.guard import defect_of
from fuzz.targets import SHARES, build

DEFECTS, MISSING = 1, 3  # exit codes
MAX_PROCESSES = 5  # of a target, which a crash or libFuzzer may end
COLUMNS = [
    Column("target"),
    Column("inputs", ",d"),
    Column("inputs/s", ",.0f"),
    Column("CPU [s]", ",.0f"),
    Column("edges", ",d"),
    Column("corpus", ",d"),
    Column("defects", "d"),
]


def main() -> None:
    """Run a campaign, or one input."""
    chosen = _options()
    if chosen.replay is not None:
        defect = defect_of(build(chosen.targets[0]), chosen.replay.read_bytes())
        print("no defect" if defect is None else defect.words)
        sys.exit(0 if defect is None else DEFECTS)
    if importlib.util.find_spec("atheris") is None:
        print("fuzz: needs atheris: pip install -r requirements/fuzz.txt", file=sys.stderr)
        sys.exit(MISSING)
    sys.exit(DEFECTS if _campaign(chosen) else 0)


def _options() -> argparse.Namespace:
    options = parser(__doc__)
    options.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(SHARES)}")
    options.add_argument("--inputs", type=positive, default=1_000_000, help="shared by the targets")
    options.add_argument("--seconds", type=positive, default=3600, help="for each target at most")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--folder", type=Path, default=Path(".fuzz"), help="corpus and defects")
    options.add_argument("--replay", type=Path, metavar="FILE", help="try this input, in place")
    chosen = options.parse_args()
    unknown = set(chosen.targets) - set(SHARES)
    if unknown:
        options.error(f"unknown target {', '.join(sorted(unknown))}; known: {', '.join(SHARES)}")
    if chosen.replay is not None and (len(chosen.targets) != 1 or not chosen.replay.is_file()):
        options.error("--replay takes an existing file, and its one target")
    chosen.targets = chosen.targets or list(SHARES)
    return chosen


def _campaign(chosen: argparse.Namespace) -> bool:
    """Fuzz the chosen targets and print a table; return True if there are defects."""
    total = sum(SHARES[name] for name in chosen.targets)
    rows, notes = [], []
    for name in chosen.targets:
        inputs = max(1, round(chosen.inputs * SHARES[name] / total))
        found = _fuzz(name, inputs, chosen)
        defects = found.pop("defects")
        rows.append([name, *found.values(), len(defects)])
        notes += [f"{name}: {path}" for path in defects]
        print(f"{name}: {found['inputs']:,} inputs, {len(defects)} defects", flush=True)
    table = Table(f"{sum(row[1] for row in rows):,} inputs, seed {chosen.seed}", COLUMNS, rows)
    finish(chosen, [table], notes)
    return bool(notes)


def _fuzz(name: str, inputs: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Fuzz a target; a process that dies is followed by another one."""
    folder = (chosen.folder / name).resolve()
    (folder / "defects").mkdir(parents=True, exist_ok=True)
    known = {*folder.glob("defects/*")}
    done, seconds, cpu, edges = 0, 0.0, 0.0, 0
    for process in range(MAX_PROCESSES):
        (folder / "figures.json").unlink(missing_ok=True)
        code = _run_child(
            name, folder, inputs - done, chosen.seconds - seconds, chosen.seed + process
        )
        if (folder / "figures.json").exists():
            figures = json.loads((folder / "figures.json").read_text())
            done, seconds = done + figures["inputs"], seconds + figures["seconds"]
            cpu += figures["cpu"]
            log = (folder / "log.txt").read_text(errors="replace")
            edges = max([edges, *map(int, re.findall(r"cov: (\d+)", log))])
        if code == 0 or done >= inputs or not done:
            break
    new = sorted(path for path in {*folder.glob("defects/*")} - known if path.suffix != ".txt")
    return {
        "inputs": done,
        "rate": done / seconds if seconds else 0.0,
        "cpu": cpu,
        "edges": edges,
        "corpus": len([*folder.glob("corpus/*")]),
        "defects": new if done else [*new, folder / "log.txt"],  # the process did not begin
    }


def _run_child(name: str, folder: Path, inputs: int, seconds: float, seed: int) -> int:
    command = [sys.executable, "-m", "fuzz.child", name, "--folder", str(folder)]
    command += ["--inputs", str(inputs), "--seconds", str(seconds), "--seed", str(seed)]
    with (folder / "log.txt").open("w") as log:
        return subprocess.run(command, stdout=log, stderr=log, check=False).returncode


if __name__ == "__main__":
    guarded(main)
