"""Fuzz the doors of the package, guided by coverage: ``python -m fuzz [TARGET ...]``.

Each target runs in a process of its own under atheris (requirements/fuzz.txt). Inputs that found
new code are kept in a folder, and are where the next campaign begins. An input that is a defect is
stored with its traceback in TARGET/defects there, once for each place in the code; tried again by
``python -m fuzz TARGET --replay FILE``. Exit codes: 0 nothing found, 1 defects, 3 no atheris.
"""

import argparse
import importlib.util
import sys
from pathlib import Path

from benchmarks.common import guarded, parser, positive
from fuzz.campaign import campaign
from fuzz.guard import defect_of
from fuzz.targets import SHARES, built

MISSING = 3


def main() -> None:
    """Run a campaign, or one input."""
    chosen = _options()
    if chosen.replay is not None:
        _replay(chosen)
    if importlib.util.find_spec("atheris") is None:
        print("fuzz: needs atheris: pip install -r requirements/fuzz.txt", file=sys.stderr)
        sys.exit(MISSING)
    sys.exit(1 if campaign(chosen) else 0)


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
        options.error("--replay takes an existing file, and the one target that it is for")
    chosen.targets = chosen.targets or list(SHARES)
    return chosen


def _replay(chosen: argparse.Namespace) -> None:
    defect = defect_of(built(chosen.targets[0]), chosen.replay.read_bytes())
    print("nothing wrong with it" if defect is None else defect.words)
    sys.exit(0 if defect is None else 1)


if __name__ == "__main__":
    guarded(main)
