"""Pinocchio: the loop of its example inverse-kinematics.py in Python over its C++ kinematics.

The example's fixed damping 1e-12 and step 0.1 take hundreds of iterations. Here a step is a whole
one, damped by a tenth of the squared error, clipped to the limits, and few of them make an attempt.
"""

import numpy as np
import pinocchio as pin

from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import RESTARTS_SEED, TIMEOUT, TOLERANCE, Solver, one_by_one, until

ITERATIONS = 12  # of an attempt: the best of 8, 10, 12, 15, 20 and 30 on the WAM


class Clik:
    """The model, and what the loop needs."""

    def __init__(self, arm: Arm) -> None:
        self.model = pin.Model()
        self.arm = arm
        self.lower = np.where(arm.endless, -np.inf, arm.lower)
        self.upper = np.where(arm.endless, np.inf, arm.upper)
        joint = 0
        for i in range(arm.n):
            kind = pin.JointModelPZ() if arm.prismatic[i] else pin.JointModelRZ()
            joint = self.model.addJoint(joint, kind, pin.SE3(arm.fixed[i]), f"joint{i + 1}")
        self.joint, self.data = joint, self.model.createData()
        self.tip = pin.SE3(arm.fixed[-1]).inverse()
        self.rng, self.eye = np.random.default_rng(RESTARTS_SEED), np.eye(6)

    def given(self, T: np.ndarray, seed: np.ndarray) -> tuple[pin.SE3, np.ndarray]:
        """The pose of the last joint."""
        return pin.SE3(T) * self.tip, seed

    def solve(self, target: pin.SE3, q: np.ndarray) -> np.ndarray | None:
        """Attempts from the seed and from random values, until one succeeds or the time is up."""
        start = q
        for attempt in until(TIMEOUT):
            if attempt:
                start = self.arm.random(self.rng, 1)[0]
            found = self.attempt(target, start)
            if found is not None:
                return found
        return None

    def attempt(self, target: pin.SE3, q: np.ndarray) -> np.ndarray | None:
        """The loop."""
        model, data, joint = self.model, self.data, self.joint
        for _ in range(ITERATIONS):
            pin.forwardKinematics(model, data, q)
            difference = data.oMi[joint].actInv(target)
            error = pin.log6(difference).vector
            square = error @ error
            if square < TOLERANCE**2:
                return q
            J = pin.computeJointJacobian(model, data, q, joint)
            J = pin.Jlog6(difference.inverse()) @ J
            damped = J @ J.T + (0.1 * square) * self.eye
            q = q + J.T @ np.linalg.solve(damped, error)
            q = np.minimum(np.maximum(q, self.lower), self.upper)
        return None


def solvers(arm: Arm) -> dict[str, Solver]:
    """One row."""
    clik = Clik(arm)
    setting = f"damping 0.1 error^2, {ITERATIONS} iterations, clipped, random restarts for 50 ms"
    return {"pinocchio CLIK, restarts": Solver(one_by_one(clik.solve, clik.given), setting)}
