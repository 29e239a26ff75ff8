# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""How methods differ near a singularity: an arm that is asked to reach just beyond its length.

A planar arm with two links of 1 m starts bent and goes straight out. The pseudoinverse (jp) swings
about, what only bounds its steps goes on swinging, what is damped comes to rest. A `Stepper` makes
the steps of any of `dls_ik.method_names()` one by one; the solver takes the same steps.

    python examples/03_compare_methods.py [FOLDER]
"""

import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dls_ik import RobotModel, Stepper, Task
from dls_ik.plot import compare_methods, save_picture

METHODS = {
    "jp": {},
    "jt": {},
    "tpinv+max": {},
    "dls": {"lambda_": 0.3},
    "svf": {"sigma0": 0.1},
    "svf+sd": {"sigma0": 0.1},
    "sdls+clamp": {},
    "odls": {"Delta": 0.3},
}
STEPS = 60

robot = RobotModel.from_name("planar_2r")
plane = Task(position="xy", rotation="")  # only x and y of the tip count
reach = np.linalg.norm(robot.fk(np.zeros(2))[:3, 3])
T = np.eye(4)
T[:3, 3] = 1.05 * reach * np.array([np.cos(0.5), np.sin(0.5), 0.0])  # 5 % too far

traces = {}
for name, options in METHODS.items():
    traces[name] = Stepper(robot, name, [0.2, 1.2], task=plane, **options).run(T, STEPS)
    error = np.linalg.norm(traces[name].error[-1])
    step = np.linalg.norm(traces[name].q[-1] - traces[name].q[-2])
    print(f"{name:12s} error at the end {error:.4f} m, last step {step:.1e} rad")
print(f"nearest there is: {0.05 * reach:.4f} m")

folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp(prefix="dls_ik_"))
folder.mkdir(parents=True, exist_ok=True)
path = folder / "compare_methods.png"
save_picture(path, compare_methods(traces, title="A target 5 % beyond the arm's reach"))
print(f"saved {path}")
