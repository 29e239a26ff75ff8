# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arms of the shapes, names and velocities of those that have presets; nothing else of them."""

from math import pi

import numpy as np

# Standard DH rows (a, alpha, d) [m, rad, m] from the makers' data sheets.
R = pi / 2
UR = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
LINK = '<link name="{}"/>'
JOINT = (
    '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>'
    '<origin xyz="{} 0 {}" rpy="{} 0 0"/><axis xyz="0 0 1"/>'
    '<limit lower="-3.2" upper="3.2" velocity="{}" effort="1"/></joint>'
)


def _ur(d1, a2, a3, d4, d5, d6, velocity):
    rows = [(0, R, d1), (-a2, 0, 0), (-a3, 0, 0), (0, R, d4), (0, -R, d5), (0, 0, d6)]
    return [f"{name}_joint" for name in UR], "tool0", rows, np.radians(velocity), 5.0, 0.1


def _franka(name, velocity, most):
    rows = [(0, -R, 0.333), (0, R, 0), (0.0825, R, 0.316), (-0.0825, -R, 0), (0, R, 0.384)]
    rows += [(0.088, R, 0), (0, 0, 0.107)]
    return [f"{name}_joint{k}" for k in range(1, 8)], f"{name}_link8", rows, velocity, most, 0.1


def _xarm(rows):
    names = [f"joint{k}" for k in range(1, len(rows) + 1)]
    return names, "link_eef", rows, [3.14] * len(rows), 20.0, 0.1


def _iiwa(d1, d3, velocity):
    signs = [(-R, d1), (R, 0), (R, d3), (-R, 0), (-R, 0.4), (R, 0), (0, 0.126)]
    rows = [(0, alpha, d) for alpha, d in signs]
    names = [f"lbr_A{k}" for k in range(1, 8)]
    return names, "lbr_link_ee", rows, np.radians(velocity), 10.0, 0.12


def _kinova(rows, velocity, most):
    names = [f"joint_{k}" for k in range(1, len(rows) + 1)]
    return names, "end_effector_link", rows, velocity, most, 0.1


FAST, LONG, HEAVY = [180] * 6, [120, 120, *[180] * 4], [120, 120, 150, 210, 210, 210]
SMALL = [180, 180, 180, 360, 360, 360]
GEN3 = [(0, R, 0.285), (0, R, 0.012), (0, R, 0.421), (0, R, 0.013), (0, R, 0.314), (0, R, 0)]
# Names of the joints, tip, rows, velocity limits, the driver's accelerations, its lag [s].
ARMS = {
    "ur3": _ur(0.1519, 0.24365, 0.21325, 0.11235, 0.08535, 0.0819, SMALL),
    "ur3e": _ur(0.15185, 0.24355, 0.2132, 0.13105, 0.08535, 0.0921, SMALL),
    "ur5": _ur(0.089159, 0.425, 0.39225, 0.10915, 0.09465, 0.0823, FAST),
    "ur5e": _ur(0.1625, 0.425, 0.3922, 0.1333, 0.0997, 0.0996, FAST),
    "ur10": _ur(0.1273, 0.612, 0.5723, 0.163941, 0.1157, 0.0922, LONG),
    "ur10e": _ur(0.1807, 0.6127, 0.57155, 0.17415, 0.11985, 0.11655, LONG),
    "ur16e": _ur(0.1807, 0.4784, 0.36, 0.17415, 0.11985, 0.11655, LONG),
    "ur20": _ur(0.2363, 0.862, 0.7287, 0.201, 0.1593, 0.1543, HEAVY),
    "ur30": _ur(0.2363, 0.637, 0.5037, 0.201, 0.1593, 0.1543, HEAVY),
    "panda": _franka(
        "panda", [*[2.175] * 4, *[2.61] * 3], [3.75, 1.875, 2.5, 3.125, 3.75, 5.0, 5.0]
    ),
    "fr3": _franka("fr3", [2.62, 2.62, 2.62, 2.62, 5.26, 4.18, 5.26], 10.0),
    "xarm5": _xarm(
        [(0, -R, 0.267), (0.28949, 0, 0), (0.35117, 0, 0), (0.076, -R, 0), (0, 0, 0.097)]
    ),
    "xarm6": _xarm(
        [
            *((0, -R, 0.267), (0.28949, 0, 0), (0.0775, -R, 0)),
            *((0, R, 0.3425), (0.076, -R, 0), (0, 0, 0.097)),
        ]
    ),
    "xarm7": _xarm(
        [
            *((0, -R, 0.267), (0, R, 0), (0.0525, R, 0.293), (0.0775, R, 0)),
            *((0, R, 0.3425), (0.076, -R, 0), (0, 0, 0.097)),
        ]
    ),
    "lite6": _xarm(
        [(0, -R, 0.2435), (0.2, pi, 0), (0.087, R, 0), (0, R, 0.2276), (0, -R, 0), (0, 0, 0.0615)]
    ),
    "iiwa7": _iiwa(0.34, 0.4, [98, 98, 100, 130, 140, 180, 180]),
    "iiwa14": _iiwa(0.36, 0.42, [85, 85, 100, 75, 130, 135, 135]),
    "gen3": _kinova([*GEN3, (0, pi, 0.167)], [*[1.3963] * 4, *[1.2218] * 3], 8.6),
    "gen3_6dof": _kinova(
        [(0, R, 0.285), (0.41, pi, 0), (0, R, 0.013), (0, R, 0.314), (0, R, 0), (0, pi, 0.167)],
        [*[1.3963] * 3, *[1.2218] * 3],
        8.6,
    ),
    "gen3_lite": _kinova(
        [(0, R, 0.2433), (0.28, pi, 0), (0, R, 0.02), (0, R, 0.245), (0, R, 0.057), (0, 0, 0.105)],
        [*[1.6] * 5, 3.2],
        [0.86, 0.43, 0.34, 0.86, 8.6, 8.6],
    ),
}


def urdf(arm):
    """The URDF of an arm, with the names of its joints and of its tip."""
    joints, tip, rows, velocity, _, _ = ARMS[arm]
    links = ["foot", *(f"part{k}" for k in range(1, len(joints) + 1)), tip]
    placed = [(0.0, 0.0, 0.0), *rows]
    kinds, speeds = [*["revolute"] * len(joints), "fixed"], [*velocity, 0.0]
    parts = [LINK.format(link) for link in links]
    parts += [
        JOINT.format(name, kind, parent, child, a, d, alpha, v)
        for name, kind, parent, child, (a, alpha, d), v in zip(
            [*joints, "flange"], kinds, links[:-1], links[1:], placed, speeds, strict=True
        )
    ]
    return f'<robot name="{arm}">{"".join(parts)}</robot>'
