"""Step bounds: how far a step may go. One file each; told apart here."""

from dls_ik.core.step import none, sd

NONE, SD = range(2)
IDS = {none.NAME: NONE, sd.NAME: SD}
