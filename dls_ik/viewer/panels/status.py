"""The line at the top: which arm is which, and what each does."""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from dls_ik.viewer.colours import ARMS, css
from dls_ik.viewer.session import Seen

LOOKS = ("solid", "ghost")
BOX = "<div style='padding:6px 12px 2px;font-size:12.5px;line-height:1.35'>{}</div>"
ARM = (
    "<div style='display:flex;gap:7px;min-height:54px'>"
    "<span style='flex:none;width:11px;height:11px;border-radius:6px;margin-top:3px;"
    "background:{colour}'></span><span><b>{letter}: {name}</b> ({look}){numbers}<br>"
    "<span style='color:#6b7280'>{words}</span></span></div>"
)
NOTE = "<div style='color:#92400e;margin-bottom:4px'>{}</div>"


class StatusLine:
    """What goes on, in words."""

    def __init__(self, gui: Any, note: str = "") -> None:
        self._note = NOTE.format(escape(note)) if note else ""
        self._html = gui.add_html("")
        self.say("starting ...")

    def say(self, words: str) -> None:
        """Words in place of the arms."""
        self._show(escape(words))

    def show(self, seen: Sequence[Seen]) -> None:
        """What the arms do."""
        self._show("".join(_arm(i, arm) for i, arm in enumerate(seen)))

    def _show(self, content: str) -> None:
        html = BOX.format(self._note + content)
        if html != self._html.content:
            self._html.content = html


def _arm(i: int, arm: Seen) -> str:
    errors = arm.sample.position_error, np.degrees(arm.sample.rotation_error)
    numbers = ""
    if np.isfinite(errors[0]):
        numbers = f" &nbsp;{_length(errors[0])}, {errors[1]:.2f}&deg; off"
    return ARM.format(
        colour=css(ARMS[i]),
        letter="AB"[i],
        look=LOOKS[i],
        name=escape(arm.name),
        numbers=numbers,
        words=escape(arm.sample.words),
    )


def _length(metres: float) -> str:
    return f"{metres:.2f} m" if metres >= 1.0 else f"{1000.0 * metres:.1f} mm"
