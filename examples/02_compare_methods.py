"""How methods differ near a singularity: an arm that is asked to reach just beyond its length.

A planar arm with two links of 1 m starts bent and goes straight out. The pseudoinverse swings out
of the picture, what only bounds it goes on swinging, what is damped comes to rest. Each line is one
of `dls_ik.method_names()`, made step by step.

    python examples/02_compare_methods.py [PICTURE.png]
"""

import sys

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from dls_ik import RobotModel, Stepper, Task

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
plane = Task(position="xy", rotation="")
reach = np.linalg.norm(robot.fk(np.zeros(2))[:3, 3])
T = np.eye(4)
T[:3, 3] = 1.05 * reach * np.array([np.cos(0.5), np.sin(0.5), 0.0])  # 5 % too far

figure, panels = plt.subplots(3, 1, figsize=(8, 9), sharex=True, layout="constrained")
for name, options in METHODS.items():
    trace = Stepper(robot, name, [0.2, 1.2], task=plane, **options).run(T, STEPS)
    error = np.linalg.norm(trace.error, axis=1)
    motion = np.linalg.norm(np.diff(trace.q, axis=0), axis=1)
    panels[0].plot(error, label=name)
    panels[1].semilogy(motion, label=name)
    panels[2].plot(np.degrees(trace.q[:, 1]), label=name)
    print(f"{name:12s} error at the end {error[-1]:.4f} m, last step {motion[-1]:.1e} rad")

panels[0].axhline(0.05 * reach, color="black", linestyle=":", label="nearest there is")
panels[0].set(ylabel="distance from the target [m]", title="A target 5 % beyond the arm's reach")
panels[0].set_ylim(0.0, 0.8)
panels[1].set(ylabel="length of a step [rad]", ylim=(1e-6, 20.0))
panels[2].set(ylabel="elbow [deg]", xlabel="step", ylim=(-120.0, 120.0))
panels[0].legend(ncols=3, fontsize="small", loc="upper right")
for panel in panels:
    panel.grid(alpha=0.3)
path = sys.argv[1] if len(sys.argv) > 1 else "compare_methods.png"
figure.savefig(path, dpi=120)
print(f"saved {path}")
