"""Sliders and lists for what may be changed of one arm."""

from typing import Any

from dls_ik.viewer.options import slider_step
from dls_ik.viewer.panels.refusal import Refusal
from dls_ik.viewer.source import Parameter, Source


class ParameterPanel:
    """A widget for each parameter of a source, as they are now."""

    def __init__(self, gui: Any, source: Source, letter: str, refusal: Refusal) -> None:
        self._source, self._refusal = source, refusal
        self._shown = source.parameters
        self._handles = {
            p.name: _widget(gui, p, f"{letter}: {p.name.rstrip('_').replace('_', ' ')}")
            for p in source.parameters
        }
        for name, handle in self._handles.items():
            self._connect(name, handle)

    @property
    def is_current(self) -> bool:
        """Whether nobody else changed them."""
        return self._shown == self._source.parameters

    def remove(self) -> None:
        """Take them off the page."""
        for handle in self._handles.values():
            handle.remove()

    def _connect(self, name: str, handle: Any) -> None:
        @handle.on_update  # type: ignore[untyped-decorator]
        def _(event: Any) -> None:
            if event.client is not None:  # by a person
                with self._refusal.shown(self._show):
                    self._source.change(name, handle.value)
                    self._shown = self._source.parameters

    def _show(self) -> None:
        """As the source has them, which kept the old ones."""
        for parameter in self._source.parameters:
            handle = self._handles.get(parameter.name)
            if handle is not None and handle.value != parameter.value:
                handle.value = parameter.value


def _widget(gui: Any, parameter: Parameter, label: str) -> Any:
    hint = parameter.text + (f" [{parameter.unit}]" if parameter.unit else "")
    if parameter.choices:
        return gui.add_dropdown(label, parameter.choices, parameter.value, hint=hint)
    low, high = parameter.low, parameter.high
    step = slider_step(high)
    return gui.add_slider(
        label, min=low, max=high, step=step, initial_value=parameter.value, hint=hint
    )
