"""Panels for numbers that a person gives: joint sliders, and the pose of the target."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.rotations import rotation_from_rpy, rpy_from_rotation, transform
from dls_ik.viewer.panels import RefusalLine
from dls_ik.viewer.session import Session
from dls_ik.viewer.source import Sample

DEG, MM = "deg", "mm"
STEPS = {DEG: 0.1, MM: 0.1}


class JointPanel:
    """A slider for each joint, which puts the arms there, with the target at the tip."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        robot = session.robot
        self._scale = np.array([1e3 if unit == "m" else 180.0 / np.pi for unit in robot.units])
        self._sliders: list[Any] = []
        lower, upper = robot.finite_limits()
        can_place = session.sources[0].can_place
        with gui.add_folder("Move joints", expand_by_default=False, visible=can_place):
            self._refusal = RefusalLine(gui)
            for j, name in enumerate(robot.joint_names):
                unit = MM if robot.units[j] == "m" else DEG
                low = np.ceil(lower[j] * self._scale[j] / STEPS[unit]) * STEPS[unit]
                high = np.floor(upper[j] * self._scale[j] / STEPS[unit]) * STEPS[unit]
                slider = gui.add_slider(
                    f"{name} [{unit}]",
                    min=round(float(low), 1),
                    max=round(float(max(high, low + STEPS[unit])), 1),
                    step=STEPS[unit],
                    initial_value=round(float(low), 1),
                    disabled=bool(high <= low),
                )
                slider.on_update(partial(self._move, j))
                self._sliders.append(slider)
        self._q = np.array([float(slider.value) for slider in self._sliders]) / self._scale

    def update(self, q: Array) -> None:
        """Show joint values (n,) of the first arm."""
        self._q = q
        for slider, value in zip(self._sliders, (q * self._scale).tolist(), strict=True):
            shown = float(np.clip(value, slider.min, slider.max))
            if abs(slider.value - shown) > 0.6 * slider.step:
                slider.value = round(shown, 1)

    def _move(self, j: int, event: Any) -> None:
        if event.client is None:  # not by a person
            return
        with self._refusal.shown():
            q = self._q.copy()
            q[j] = event.target.value / self._scale[j]
            self._q = q
            self._session.place(q)


class TargetPanel:
    """The target of each tip in numbers: position [mm], and roll, pitch, yaw [deg]."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        self._fields: list[tuple[Any, Any]] = []
        self._shown: list[Array | None] = []
        robot = session.robot
        with gui.add_folder("Target in numbers", expand_by_default=False):
            self._refusal = RefusalLine(gui)
            for i, tip in enumerate(robot.tips):
                of = f" {tip}" if len(robot.tips) > 1 else ""
                xyz = gui.add_vector3(f"xyz{of} [mm]", (0.0, 0.0, 0.0), step=0.1)
                hint = "R = Rz(yaw) Ry(pitch) Rx(roll), in the base frame"
                rpy = gui.add_vector3(f"rpy{of} [deg]", (0.0, 0.0, 0.0), step=0.1, hint=hint)
                for field in (xyz, rpy):
                    field.on_update(partial(self._set, i))
                self._fields.append((xyz, rpy))
                self._shown.append(None)

    def update(self, sample: Sample) -> None:
        """Show the target, or the tip where there is no target."""
        Ts = sample.T_tip if sample.T_target is None else sample.T_target
        for i, T in enumerate(Ts.reshape(-1, 4, 4)):
            shown = self._shown[i]
            if shown is not None and np.abs(T - shown).max() < 1e-6:
                continue
            self._shown[i] = T
            xyz, rpy = self._fields[i]
            xyz.value = tuple(np.round(1e3 * T[:3, 3], 1).tolist())
            rpy.value = tuple(np.round(np.degrees(rpy_from_rotation(T[:3, :3])), 2).tolist())

    def _set(self, i: int, event: Any) -> None:
        if event.client is None:  # not by a person
            return
        xyz, rpy = self._fields[i]
        R = rotation_from_rpy(*np.radians(rpy.value).tolist())
        T = transform(R, 1e-3 * np.array(xyz.value))
        self._shown[i] = T
        with self._refusal.shown():
            self._session.drag_target(T, i)
