"""One target in one process under atheris: ``python -m fuzz.child TARGET ...``; see fuzz.campaign.

libFuzzer never returns, so the figures are written as it goes on, and this process ends itself.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import NoReturn

PACKAGE = Path(__file__).resolve().parents[1] / "dls_ik"
EVERY = 1.0  # [s] between figures
LONGEST = 4096  # bytes of an input
HUNG, MEMORY = 300, 4096  # [s] by the clock, [MB]: then libFuzzer ends the process


class Figures:
    """Counts inputs and defects, and ends the process when it is enough."""

    def __init__(self, target: str, folder: Path, inputs: int, seconds: float) -> None:
        from fuzz.targets import built

        self._run = built(target)
        self._folder, self._inputs, self._seconds = folder, inputs, seconds
        self._done = 0
        self._defects: dict[str, int] = {}
        self._begin = self._said = time.perf_counter()

    def __call__(self, data: bytes) -> None:
        """Try an input."""
        from fuzz.guard import defect_of, stored

        defect = defect_of(self._run, data)
        self._done += 1
        if defect is not None:
            self._defects[defect.name] = self._defects.get(defect.name, 0) + 1
            stored(self._folder / "defects", defect, data)
        now = time.perf_counter()
        over = self._done >= self._inputs or now - self._begin > self._seconds
        if over or now - self._said > EVERY:
            self._said = now
            self._write(now)
        if over:
            os._exit(0)  # libFuzzer keeps nothing that is not on the disk yet

    def _write(self, now: float) -> None:
        figures = {
            "inputs": self._done,
            "seconds": now - self._begin,
            "cpu": time.process_time(),
            "defects": self._defects,
        }
        part = self._folder / "figures.part"
        part.write_text(json.dumps(figures))
        part.replace(self._folder / "figures.json")


def kernels() -> list[str]:
    """Modules that are left as they are: caches of kernels are found by their bytecode."""
    files = (PACKAGE / "core").rglob("*.py")
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files]
    return [name.removesuffix(".__init__") for name in names]


def main() -> NoReturn:
    """Fuzz until there were so many inputs, or so many seconds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--inputs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    chosen = parser.parse_args()

    import atheris

    warnings.simplefilter("ignore")
    corpus = chosen.folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    with atheris.instrument_imports(include=["dls_ik"], exclude=kernels()):
        run = Figures(chosen.target, chosen.folder, chosen.inputs, chosen.seconds)
    from fuzz.targets import seeds

    for i, data in enumerate(seeds(chosen.target)):
        (corpus / f"seed-{i}").write_bytes(data)
    options = [
        f"-seed={chosen.seed + 1}",  # 0 is random
        f"-max_len={LONGEST}",
        f"-timeout={HUNG}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={chosen.folder}/defects/",
        f"-report_slow_units={HUNG}",  # by the clock, which says little on a busy machine
        "-len_control=20",
        "-print_final_stats=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], run, enable_python_coverage=True)
    atheris.Fuzz()
    sys.exit(0)


if __name__ == "__main__":
    main()
