# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""All damping laws, by their words in method names."""

from dls_ik.core import damping

ALSO = {"jd": ("dls", "odls")}  # methods with additional options
LAWS = {
    "": damping.JP,
    **{word: i for name, i in damping.DAMPING_IDS.items() for word in (name, *ALSO.get(name, ()))},
}
NEAR = ("sdls_near", "jp_near")  # step bounds that replace the law near the target


def is_legal(law, strategy, bound=""):
    """Return whether a law, a limit strategy and a step bound can be combined."""
    if strategy in ("sns", "hqp") and (law == "jt" or bound in ("sd", "sdls", *NEAR)):
        return False
    if strategy in ("avoid", "idv", "cns") and bound in ("sd", "sdls", *NEAR):
        return False
    if law == "jt" and strategy in ("srtp", "avoid", "idv"):
        return False
    if law == "odls" and bound in NEAR:
        return False
    if law == "odls":
        return strategy in ("", "gp", "jc", "ta")
    return (law, strategy) != ("jt", "gp")
