# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Change lines of dls_ik one at a time and see whether a test notices.

A mutant is run in a copy of the tree, with tests that run its line, shortest first, until one
fails: of dls_ik/core as plain Python, so that nothing is compiled; elsewhere with the kernels
compiled once. `scripts/coverage --contexts` must have recorded which test runs which line.
"""

import argparse
import contextlib
import json
import random
import shlex
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from rich.console import Console
from rich.progress import track

from quality.covering import Covering, mode
from quality.mutants import Mutant, mutants
from quality.runs import replaced, run_tests, update_copy
from quality.verdicts import Verdict, changed_lines, described, explained, is_same, score_table

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".quality"
SURVIVORS = "survivors.json"
CHECKED = 5  # mutants


def options() -> argparse.Namespace:
    """Read the options."""
    first, _, rest = __doc__.partition("\n")
    taken = argparse.ArgumentParser("scripts/mutate", description=first, epilog=rest.strip())
    taken.add_argument("paths", nargs="*", metavar="PACKAGE|FILE", help="such as dls_ik/core")
    taken.add_argument("--sample", type=int, metavar="N", help="so many of each path, at random")
    taken.add_argument("--seed", type=int, default=0, help="of the sample; default %(default)s")
    taken.add_argument("--budget", type=float, default=20.0, metavar="SECONDS",
                       help="of tests for one mutant; default %(default)s")  # fmt: skip
    taken.add_argument("--tests", nargs="+", default=[], metavar="TEST", help="tried first")
    taken.add_argument("--jobs", type=int, default=1, help="at a time; default %(default)s")
    taken.add_argument("--again", action="store_true", help="those that survived last time")
    taken.add_argument("--folder", type=Path, default=FOLDER, help="of the copies of the tree")
    taken.add_argument("--record", type=Path, default=FOLDER / "record", help="of the coverage")
    given = taken.parse_args()
    missing = [path for path in given.paths if not (ROOT / path).exists()]
    if missing:
        taken.error(f"there is no {missing[0]}; give packages or files such as dls_ik/core")
    if bool(given.paths) == given.again:
        taken.error("give packages or files such as dls_ik/core, or --again")
    if not (given.record / "contexts").is_file():
        taken.error("which test runs which line is not recorded: scripts/coverage --contexts")
    return given


def drawn(given: argparse.Namespace) -> list[Mutant]:
    """Return the mutants to run, in order."""
    if given.again:
        return [Mutant(*row) for row in json.loads((given.folder / SURVIVORS).read_text())]
    rng, chosen = random.Random(given.seed), []
    for path in given.paths:
        files = sorted((ROOT / path).rglob("*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        all_ = [m for file in files for m in mutants(ROOT, str(file.relative_to(ROOT)))]
        few = given.sample is None or given.sample >= len(all_)
        print(f"{path}: {len(all_)} mutants, {len(all_) if few else given.sample} tried")
        chosen += all_ if few else rng.sample(all_, given.sample)
    return chosen


def judged(tree: Path, mutant: Mutant, tests: list[str], seconds: float) -> Verdict:
    """Run the tests of one mutant."""
    old, new = changed_lines((ROOT / mutant.path).read_text(), mutant.code(ROOT))
    if (mutant.path, old, new) in explained() or is_same(old, new):
        return Verdict(mutant, old, new, "equivalent", 0)
    if not tests:
        return Verdict(mutant, old, new, "survived", 0)
    with replaced(tree / mutant.path, mutant.code(ROOT)):
        passed, late = run_tests(tree, tests, mode(mutant.path) == "plain", seconds)
    end = "survived" if passed else "out of time" if late else "killed"
    return Verdict(mutant, old, new, end, len(tests))


def verdicts(given: argparse.Namespace, chosen: list[Mutant]) -> Iterator[Verdict]:
    """Yield the verdict on each mutant; jobs have a tree each."""
    covering, trees = Covering(ROOT, given.record), SimpleQueue()
    for k in range(given.jobs):
        trees.put(update_copy(ROOT, given.folder.resolve() / f"tree_{k}"))

    def one(mutant: Mutant) -> Verdict:
        tests = given.tests + covering.tests(mutant.path, mutant.line, given.budget)
        tree = trees.get()
        try:
            return judged(tree, mutant, tests, given.budget)
        finally:
            trees.put(tree)

    check(covering, given.folder.resolve() / "tree_0", given, chosen)
    with ThreadPoolExecutor(given.jobs) as pool:
        yield from pool.map(one, chosen)


def check(covering: Covering, tree: Path, given: argparse.Namespace, chosen: list[Mutant]) -> None:
    """Run tests of a few mutants on the unchanged tree: tests that fail would kill all mutants."""
    for plain in (True, False):
        few = [m for m in chosen if (mode(m.path) == "plain") is plain][:CHECKED]
        tests = {t for m in few for t in covering.tests(m.path, m.line, given.budget)}
        limit = given.budget * CHECKED
        if few and not run_tests(tree, [*given.tests, *sorted(tests)], plain, limit).passed:
            sys.exit(f"mutate: tests fail as the tree is, without a mutant: {tree}/last_run.log")


def main() -> None:
    """Print survivors as they are found, then the scores, also after Ctrl-C."""
    given, out = options(), Console(highlight=False, soft_wrap=True)
    out.print("scripts/mutate " + shlex.join(sys.argv[1:]), markup=False)
    chosen, found = drawn(given), []
    with contextlib.suppress(KeyboardInterrupt):
        run = verdicts(given, chosen)
        for verdict in track(run, "mutants", len(chosen), console=Console(stderr=True)):
            found.append(verdict)
            if verdict.end == "survived":
                out.print(described(verdict), markup=False)
    survivors = [verdict.mutant for verdict in found if verdict.end == "survived"]
    (given.folder / SURVIVORS).write_text(json.dumps(survivors, indent=1) + "\n")
    out.print(score_table(found))
    if len(found) < len(chosen):
        out.print(f"interrupted after {len(found)} of {len(chosen)}")
    sys.exit(130 if len(found) < len(chosen) else 1 if survivors else 0)


if __name__ == "__main__":
    main()
