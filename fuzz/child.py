# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Process of one target under atheris: ``python -m fuzz.child TARGET FOLDER [OPTION ...]``.

The options are those of libFuzzer, whose log has the statistics.
"""

import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HUNG = 300  # [s] wall-clock time
OPTIONS = [
    "-max_len=4096",  # bytes of an input
    f"-timeout={HUNG}",  # then, and
    "-rss_limit_mb=4096",  # then, libFuzzer ends the process
    f"-report_slow_units={HUNG}",  # wall-clock time, unreliable on a busy machine
    "-len_control=20",
    "-print_final_stats=0",
]


def kernels() -> list[str]:
    """Return the modules of kernels, whose caches depend on their bytecode."""
    files = (ROOT / "dls_ik" / "core").rglob("*.py")
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in files]
    return [name.removesuffix(".__init__") for name in names]


def main() -> None:
    """Fuzz until libFuzzer exits the process."""
    import atheris

    warnings.simplefilter("ignore")
    with atheris.instrument_imports(include=["dls_ik"], exclude=kernels()):
        from fuzz.guard import defect_of, store
        from fuzz.targets import build

        run = build(sys.argv[1])
    folder = Path(sys.argv[2])
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    robots = [(ROOT / "urdf" / f"{name}.urdf").read_bytes() for name in ("planar_2r", "y_shape")]
    for i, data in enumerate((bytes(64), bytes(range(256)), *robots)):
        (corpus / f"seed-{i}").write_bytes(data[:4000])

    def one_input(data: bytes) -> None:
        defect = defect_of(run, data)
        if defect is not None:
            store(folder / "defects", defect, data)

    options = [*OPTIONS, f"-artifact_prefix={folder}/defects/", *sys.argv[3:]]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input, enable_python_coverage=True)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
