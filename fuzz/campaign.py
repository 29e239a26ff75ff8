"""The processes of a campaign, one target after the other, and the table of what came of it."""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import Column, Table, finish, machine
from fuzz.targets import SHARES

DEATHS = 5  # processes of a target that may be ended by a crash or by libFuzzer
COLUMNS = [
    Column("target"),
    Column("inputs", ",d"),
    Column("inputs/s", ",.0f"),
    Column("CPU [s]", ",.0f"),
    Column("edges", ",d"),
    Column("corpus", ",d"),
    Column("defects", "d"),
]


def campaign(chosen: argparse.Namespace) -> int:
    """Fuzz the targets chosen; return how many defects were found."""
    before, total = machine(), sum(SHARES[name] for name in chosen.targets)
    rows, notes = [], []
    for name in chosen.targets:
        inputs = max(1, round(chosen.inputs * SHARES[name] / total))
        figures = fuzzed(name, inputs, chosen)
        rows.append([name, *(figures[key] for key in ("inputs", "rate", "cpu", "edges", "corpus"))])
        rows[-1].append(len(figures["found"]))
        notes += [f"{name}: {place}" for place in figures["found"]]
        print(f"{name}: {figures['inputs']:,} inputs, {len(figures['found'])} defects", flush=True)
    every = sum(row[1] for row in rows)
    table = Table(f"{every:,} inputs, seed {chosen.seed}", COLUMNS, rows)
    finish(chosen.json, before, [table], notes)
    return len(notes)


def fuzzed(name: str, inputs: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """The figures of a target: a process that dies is followed by another one."""
    folder = (chosen.folder / name).resolve()
    defects = folder / "defects"
    defects.mkdir(parents=True, exist_ok=True)
    known = {path.name for path in defects.iterdir()}
    total = {"inputs": 0, "seconds": 0.0, "cpu": 0.0, "edges": 0}
    for death in range(DEATHS):
        left = inputs - total["inputs"], chosen.seconds - total["seconds"]
        (folder / "figures.json").unlink(missing_ok=True)
        code = _process(name, folder, *left, chosen.seed + death)
        for key, value in _figures(folder).items():
            total[key] = max(total[key], value) if key == "edges" else total[key] + value
        if code == 0 or left[0] <= total["inputs"] or not total["inputs"]:
            break
    new = sorted(p for p in defects.iterdir() if p.suffix != ".txt" and p.name not in known)
    if not total["inputs"]:
        new.append(folder / "log.txt")  # it did not even begin
    rate = total["inputs"] / total["seconds"] if total["seconds"] else 0.0
    corpus = sum(1 for _ in (folder / "corpus").glob("*"))
    return {**total, "rate": rate, "corpus": corpus, "found": new}


def _process(name: str, folder: Path, inputs: int, seconds: float, seed: int) -> int:
    command = [sys.executable, "-m", "fuzz.child", name, "--folder", str(folder)]
    command += ["--inputs", str(inputs), "--seconds", str(seconds), "--seed", str(seed)]
    with (folder / "log.txt").open("w") as log:
        return subprocess.run(command, stdout=log, stderr=log, check=False).returncode


def _figures(folder: Path) -> dict[str, Any]:
    try:
        figures = json.loads((folder / "figures.json").read_text())
    except FileNotFoundError:
        return {}
    covered = re.findall(r"cov: (\d+)", (folder / "log.txt").read_text(errors="replace"))
    edges = int(covered[-1]) if covered else 0
    return {key: figures[key] for key in ("inputs", "seconds", "cpu")} | {"edges": edges}
