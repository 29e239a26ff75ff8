# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Every damping law, by the words that name it in a method."""

from dls_ik.core import damping

ALSO = {"jd": ("dls", "odls")}  # with options of their own
LAWS = {
    "": damping.JP,
    **{word: i for name, i in damping.IDS.items() for word in (name, *ALSO.get(name, ()))},
}


def is_legal(law, strategy):
    """Whether a law and a limit strategy may be combined."""
    if law == "odls":
        return strategy in ("", "gp", "jc", "ta")
    return (law, strategy) != ("jt", "gp")
