# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Panel in which a person chooses the methods of the arms and changes their parameters."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from dls_ik.solver.plugins import plugin_names
from dls_ik.viewer.inputs import Input
from dls_ik.viewer.panels import RefusalLine
from dls_ik.viewer.plots import LETTERS
from dls_ik.viewer.session import MAX_ARMS, Session
from dls_ik.viewer.source import Source, TunableParameter, follower_names, slider_step

NO_METHOD = "none"
BARE_HINT = (
    "one step of the method every 10 ms, as in the papers, without the controller, which limits "
    "speeds, shortens steps, and replaces steps that increase the error"
)


class MethodPanel:
    """Panel with a list of methods for each arm, a switch for bare steps, and method parameters.

    A bare step is one step of the method without the limits of the controller.

    Args:
        changed: Called after a change of a method or of the number of arms.
    """

    def __init__(self, server: Any, session: Session, changed: Callable[[], None]) -> None:
        self._session, self._changed = session, changed
        self._lock = threading.Lock()  # several threads call update()
        self._lists: dict[int, Input] = {}  # key: number of the arm
        gui, first = server.gui, session.sources[0]
        with gui.add_folder("Methods"):
            self._refusal = RefusalLine(gui)
            if first.methods:
                self._add_list(server, 0, tuple(first.methods))
            if session.can_compare:
                for arm in range(1, MAX_ARMS):
                    self._add_list(server, arm, (NO_METHOD, *follower_names()))
            is_switched = session.bare is not None
            bare = gui.add_checkbox(
                "Bare steps", bool(session.bare), hint=BARE_HINT, visible=is_switched
            )
            self._bare = Input(server, bare, lambda: session.bare, self._set_bare)
            self._parameters = ParameterWidgets(server, self._refusal)
        self.update()

    def update(self) -> None:
        """Show the current method and parameters of each arm of the session."""
        with self._lock:
            sources = self._session.sources
            own = plugin_names() if not sources[0].is_remote else ()
            for arm, each in self._lists.items():
                method, handle = self._method(arm), each.handle
                fresh = [name for name in (*own, method) if name not in handle.options]
                if fresh:
                    handle.options = (*handle.options, *dict.fromkeys(fresh))
                each.update()
            self._bare.update()
            self._parameters.update(sources)

    def _method(self, arm: int) -> str:
        sources = self._session.sources
        return sources[arm].method if arm < len(sources) else NO_METHOD

    def _add_list(self, server: Any, arm: int, names: tuple[str, ...]) -> None:
        handle = server.gui.add_dropdown(f"Method {LETTERS[arm]}", names)
        method, change = partial(self._method, arm), partial(self._set_method, arm)
        self._lists[arm] = Input(server, handle, method, change)

    def _set_method(self, arm: int, name: str) -> None:
        with self._refusal.shown():
            self._session.set_method(arm, None if name == NO_METHOD else name)
            self._changed()
        self.update()

    def _set_bare(self, bare: bool) -> None:
        with self._refusal.shown():
            self._session.set_bare(bare)
            self._changed()
        self.update()


Key = tuple[int, TunableParameter]  # number of an arm, and a parameter without its value


class ParameterWidgets:
    """Widgets for the parameters of the arms' methods: a slider or a list for each parameter.

    Widgets that are not needed are hidden and reused, never removed: within one update, the page
    removes widgets before it changes values, and would log an error for each new value of a removed
    widget.
    """

    def __init__(self, server: Any, refusal: RefusalLine) -> None:
        self._server, self._refusal = server, refusal
        self._folder = server.gui.add_folder("Parameters", expand_by_default=False)
        self._inputs: dict[Key, Input] = {}
        self._bound: dict[Key, tuple[Source, Any]] = {}  # source and value of each parameter

    def update(self, sources: tuple[Source, ...]) -> None:
        """Show widgets for the parameters of all given arms, and hide the other widgets."""
        bound = {
            (arm, parameter._replace(value=None)): (source, parameter.value)
            for arm, source in enumerate(sources)
            for parameter in source.parameters
        }
        self._bound = bound
        for place, key in enumerate(bound):
            if key not in self._inputs:
                self._inputs[key] = self._add(key)
            self._inputs[key].handle.order = float(place)
        for key, each in self._inputs.items():
            each.handle.visible = key in bound
            each.update()
        self._folder.visible = bool(bound)

    def _add(self, key: Key) -> Input:
        arm, parameter = key
        label = f"{LETTERS[arm]}: {parameter.name.rstrip('_').replace('_', ' ')}"
        with self._folder:
            handle = _widget(self._server.gui, parameter, self._value(key), label)
        return Input(self._server, handle, partial(self._value, key), partial(self._change, key))

    def _value(self, key: Key) -> Any:
        """Return the value of a parameter, or None if no current arm has the parameter."""
        _, value = self._bound.get(key, (None, None))
        return value

    def _change(self, key: Key, value: Any) -> None:
        source, _ = self._bound.get(key, (None, None))
        if source is None:  # the widget has been hidden since the value was entered
            return
        with self._refusal.shown():
            source.set_parameter(key[1].name, value)
            if self._bound.get(key, (None,))[0] is source:
                self._bound[key] = source, value


def _widget(gui: Any, parameter: TunableParameter, value: Any, label: str) -> Any:
    hint = parameter.description + (f" [{parameter.unit}]" if parameter.unit else "")
    low, high = parameter.low, parameter.high
    if parameter.choices:
        return gui.add_dropdown(label, parameter.choices, initial_value=value, hint=hint)
    step = slider_step(high)
    return gui.add_slider(label, min=low, max=high, step=step, initial_value=value, hint=hint)
