"""What figure 4 of Buss & Kim 2004 prints, of 10 000 targets."""

from dls_ik.reproduce.report import Row

METHODS = ("SDLS", "DLS", "DLS'", "DLS*", "J^T")
GROUPS = ("reached", "not reached")  # by any of the methods
ACCURACIES = (0.1, 0.01, 0.001, 0.0001)  # above what a method attains
KEYS = ("wins", "excess", "steps_1e-1", "steps_1e-2", "steps_1e-3", "steps_1e-4")
TARGETS, REACHED = 10_000, 2972  # SDLS wins wherever a target is reached, so its wins count them

# wins, mean excess, mean steps to each accuracy
_REACHED = (
    (2972, 0.0, 39.3, 48.7, 52.2, 53.5),
    (0, 0.00015, 61.5, 231.6, 467.1, 635.2),
    (0, 0.00007, 29.7, 110.9, 228.3, 327.2),
    (0, 0.00015, 63.3, 222.9, 448.0, 609.4),
    (0, 2.362, 44.0, 51.6, 53.4, 53.9),
)
_NOT_REACHED = (
    (940, 0.182, 173.5, 336.0, 548.1, 686.0),
    (52, 0.106, 116.1, 448.9, 1166.7, 1706.2),
    (6097, 0.00011, 75.2, 318.7, 863.6, 1289.5),
    (123, 0.00097, 63.3, 647.3, 1748.5, 2429.8),
    (0, 4.907, 44.0, 142.27, 142.30, 142.30),
)


def printed_rows(gain: float) -> list[Row]:
    """The printed rows, wins in percent of the group, beside the runs ended by one rule."""
    groups = zip(GROUPS, ((REACHED, _REACHED), (TARGETS - REACHED, _NOT_REACHED)), strict=True)
    rows: list[Row] = []
    for group, (count, figures) in groups:
        share = 100.0 * count / TARGETS
        for method, (wins, *others) in zip(METHODS, figures, strict=True):
            values = dict(zip(KEYS, (100.0 * wins / count, *others), strict=True))
            rows.append({"gain": gain, "group": group, "method": method, "share": share, **values})
    return rows
