"""Everything at once, at random: parameters, requests, robots, targets, drivers and orders.

One node in a process of its own. All actions are drawn from the seed, for each task its own; their
times depend on the machine too. Checked all the time: every call is answered; an answer
of compute_ik or compute_fk is right for a robot that was in force between request and answer; a
command has the names of one robot, in the order in which robots were sent, is inside its limits
and follows from the command before; a change of parameters is taken or refused as it must be, and
what was taken last is read back; a paused arm stands. At the end the node exits with 0, and its log
has no fault. The exit code is 1 where anything of this did not hold; where a call is not answered
within a minute the node writes down where its threads are.
"""

import sys

from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.concurrency.run import Found, run
from dls_ik.ros.util import stay_alone

DONE = columns("done; count :d")
CHECKED = columns("must hold; checked :d; violated :d")


def tables(found: Found) -> list[Table]:
    """Return the counts of actions and of checks."""
    ledger = found.ledger
    done = Table("What was done", DONE, [[n, int(c)] for n, c in sorted(ledger.done.items())])
    checked = Table("Invariants", CHECKED)
    for name, count in sorted(ledger.checked.items()):
        checked.rows.append([name, count, ledger.violations[name]])
    return [done, checked]


def sizes(found: Found) -> list[str]:
    """Describe memory, threads and files of the node over time."""
    last, steps = len(found.sizes) - 1, 5
    shown = [found.sizes[round(i * last / steps)] for i in range(steps + 1)]
    rss = ", ".join(f"{each.rss:.0f}" for each in shown)
    threads = ", ".join(str(each.threads) for each in shown)
    files = ", ".join(str(each.files) for each in shown)
    return [f"the node, at begin, four times between, and at the end: {rss} MiB; {threads} "
            f"threads; {files} open files"]  # fmt: skip


def main() -> None:
    """Run and show."""
    options = parser(__doc__, seed=0)
    options.add_argument("--minutes", type=float, default=10.0, help="of the run")
    given = options.parse_args()
    stay_alone()
    found = run(60.0 * given.minutes, given.seed)
    notes = [
        f"{given.minutes:g} minutes, seed {given.seed}",
        *sizes(found),
        *(f"VIOLATED: {words}" for words in found.ledger.words),
    ]
    finish(given, tables(found), notes)
    sys.exit(1 if found.ledger.violations else 0)


if __name__ == "__main__":
    guarded(main)
