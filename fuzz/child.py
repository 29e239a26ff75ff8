"""One target in one process under atheris: ``python -m fuzz.child TARGET ...``.

libFuzzer never returns, so the figures are written as it goes on, and this process ends itself.
"""

import argparse
import json
import os
import sys
import time
import warnings
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1] / "dls_ik"
PERIOD = 1.0  # [s] between figures
MAX_BYTES = 4096  # of an input
HUNG, MEMORY = 300, 4096  # [s] by the clock, [MB]: then libFuzzer ends the process


class Counter:
    """Tries inputs, stores figures and defects, and ends the process at its limits."""

    def __init__(self, chosen: argparse.Namespace) -> None:
        from fuzz.targets import build

        self._run, self._chosen = build(chosen.target), chosen
        self._done = 0
        self._begin = self._written = time.perf_counter()

    def __call__(self, data: bytes) -> None:
        """Try an input."""
        from fuzz.guard import defect_of, store

        folder = self._chosen.folder
        defect = defect_of(self._run, data)
        if defect is not None:
            store(folder / "defects", defect, data)
        self._done += 1
        now = time.perf_counter()
        is_over = self._done >= self._chosen.inputs or now - self._begin > self._chosen.seconds
        if is_over or now - self._written > PERIOD:
            self._written = now
            self._write(folder, now - self._begin)
        if is_over:
            os._exit(0)  # libFuzzer has written its corpus

    def _write(self, folder: Path, seconds: float) -> None:
        figures = {"inputs": self._done, "seconds": seconds, "cpu": time.process_time()}
        part = folder / "figures.part"
        part.write_text(json.dumps(figures))
        part.replace(folder / "figures.json")


def kernels() -> list[str]:
    """Return the modules of kernels, whose caches are found by their bytecode."""
    files = (PACKAGE / "core").rglob("*.py")
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files]
    return [name.removesuffix(".__init__") for name in names]


def main() -> None:
    """Fuzz until a number of inputs, or of seconds."""
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
        run = Counter(chosen)
    from fuzz.targets import seeds

    for i, data in enumerate(seeds(chosen.target)):
        (corpus / f"seed-{i}").write_bytes(data)
    options = [
        f"-seed={chosen.seed + 1}",  # 0 is random
        f"-max_len={MAX_BYTES}",
        f"-timeout={HUNG}",
        f"-rss_limit_mb={MEMORY}",
        f"-artifact_prefix={chosen.folder}/defects/",
        f"-report_slow_units={HUNG}",  # by the clock, which says little on a busy machine
        "-len_control=20",
        "-print_final_stats=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], run, enable_python_coverage=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
