# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Coverage-guided fuzzing of the package's interfaces: ``python -m fuzz [TARGET ...]``.

Each target runs in a separate process under atheris (requirements/fuzz.txt). Inputs that reach new
code are kept in a folder, from which the next campaign starts. An input that shows a defect is
stored with its traceback in TARGET/defects of that folder, once per place in the code; ``python -m
fuzz TARGET --replay FILE`` repeats it. Exit codes: 0 no defect, 1 defects, 3 no atheris.
"""

import argparse
import importlib.util
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from fuzz.guard import defect_of
from fuzz.targets import SHARES, build

DEFECTS, MISSING = 1, 3  # exit codes
MAX_PROCESSES = 5  # maximum processes per target; a crash or libFuzzer may end a process
COLUMNS = columns(
    "target; inputs :,d; inputs/s :,.0f; CPU [s] :,.0f; edges :,d; corpus :,d; defects :d"
)


def main() -> None:
    """Run a campaign, or repeat one input."""
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
    """Fuzz the chosen targets, print a table, and return whether there are defects."""
    total = sum(SHARES[name] for name in chosen.targets)
    rows, notes = [], []
    for name in chosen.targets:
        inputs = max(1, round(chosen.inputs * SHARES[name] / total))
        figures, defects = _fuzz(name, inputs, chosen)
        rows.append([name, *figures, len(defects)])
        notes += [f"{name}: {path}" for path in defects]
        print(f"{name}: {figures[0]:,} inputs, {len(defects)} defects", flush=True)
    table = Table(f"{sum(row[1] for row in rows):,} inputs, seed {chosen.seed}", COLUMNS, rows)
    finish(chosen, [table], notes)
    return bool(notes)


def _fuzz(name: str, inputs: int, chosen: argparse.Namespace) -> tuple[list[Any], list[Path]]:
    """Fuzz a target with new processes after crashes, and return statistics and defects."""
    folder = (chosen.folder / name).resolve()
    (folder / "defects").mkdir(parents=True, exist_ok=True)
    known, log = {*folder.glob("defects/*")}, folder / "log.txt"
    done, edges, begin, used = 0, 0, time.perf_counter(), _processor_time()
    for process in range(MAX_PROCESSES):
        left = chosen.seconds - (time.perf_counter() - begin)
        limits = f"-runs={inputs - done}", f"-max_total_time={max(1, round(left))}"
        seed = f"-seed={chosen.seed + process + 1}"  # 0 is random
        command = [sys.executable, "-m", "fuzz.child", name, str(folder), *limits, seed]
        with log.open("w") as file:
            code = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
        found = re.findall(r"^#(\d+)\s.*?cov: (\d+)", log.read_text(errors="replace"), re.MULTILINE)
        done += max((int(count) for count, _ in found), default=0)
        edges = max([edges, *(int(covered) for _, covered in found)])
        if code == 0 or done >= inputs or not done or left <= 0.0:
            break
    new = sorted(path for path in {*folder.glob("defects/*")} - known if path.suffix != ".txt")
    rate, cpu = done / (time.perf_counter() - begin), _processor_time() - used
    figures = [done, rate, cpu, edges, len([*folder.glob("corpus/*")])]
    return figures, new if done else [*new, log]  # else the process did not begin


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    guarded(main)
