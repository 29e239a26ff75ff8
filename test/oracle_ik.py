"""Inverse kinematics the long way: one step of every method, from the papers' formulas.

Colome & Torras 2012: (1), Tables II and III, (6) to (8); NumPy's singular values, all 2^n terms of
the continuous inverse.
"""

from itertools import product
from typing import NamedTuple

import numpy as np


class Parts(NamedTuple):
    """The three choices in a method's name."""

    law: str
    strategy: str
    bound: str


def parts_of(name):
    """What a name such as ``ctp+sd+svf`` says, and what it leaves unsaid."""
    words = name.split("+")
    if words == ["auto"]:
        return Parts("ed", "active", "none")
    law = next((word for word in words if word in ("jd", "ed", "svf")), "jp")
    strategy = next((word for word in words if word in ("jc", "ctp")), "none")
    return Parts(law, strategy, "sd" if "sd" in words else "none")


def rotation_vector(R):
    """Axis times angle; near half a turn the axis is an eigenvector of the symmetric part."""
    vee = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    cosine = 0.5 * (np.trace(R) - 1.0)
    angle = np.arctan2(np.linalg.norm(vee), cosine)
    if cosine > -0.9:
        return vee * (angle / np.linalg.norm(vee) if vee.any() else 1.0)
    axis = np.linalg.eigh(R + R.T)[1][:, -1]
    return angle * axis * (1.0 if axis @ vee >= 0.0 else -1.0)


def pose_error(T_d, T):
    """(6,): position difference, rotation vector of R_d R^T, both in the base frame."""
    return np.concatenate([T_d[:3, 3] - T[:3, 3], rotation_vector(T_d[:3, :3] @ T[:3, :3].T)])


def error_and_jacobian(robot, T_d, q, weight=0.5):
    """Both with their rotation rows scaled by ``weight`` [m/rad]."""
    scale = np.repeat([1.0, weight], 3)
    return scale * pose_error(T_d, robot.fk(q)), scale[:, None] * robot.jacobian(q)


def filtered(s, o):
    """(3)."""
    return (s**3 + o.nu * s**2 + 2 * s + 2 * o.sigma0) / (s**2 + o.nu * s + 2)


def lambda_squared(law, o, e, following):
    """What damps (Table II); the error damps too while a target is followed."""
    by_error = o.error_gain * (e @ e)
    if law == "ed":
        return by_error
    return following * by_error + (o.lambda_**2 if law == "jd" else 0.0)


def damped_inverse(J, lambda2):
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    kept = s > 1e-12 * s[0]
    gain = np.divide(s, s**2 + lambda2, where=kept, out=np.zeros_like(s))
    return Vt.T @ np.diag(gain) @ U.T


def filtered_jacobian(J, o):
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    return U @ np.diag(filtered(s, o)) @ Vt


def continuous_inverse(J, h, inverse):
    """J^{(I-H)+}: the inverses of every set of free joints, (n, 6)."""
    P = np.zeros(J.T.shape)
    for free in product((False, True), repeat=len(h)):
        free = np.array(free)
        weight = np.prod(np.where(free, 1.0 - h, h))
        if weight > 0.0 and free.any():
            P[free] += weight * inverse(J[:, free])
    return P


def activation(q, lower, upper, margin):
    """0 free, 1 held (Mansard, Remazeilles & Chaumette 2009)."""
    h = np.zeros(len(q))
    for j in np.flatnonzero(np.isfinite(upper - lower)):
        width = margin * (upper[j] - lower[j])
        u = max(q[j] - (upper[j] - width), lower[j] + width - q[j]) / width
        if 0.0 < u < 1.0:
            h[j] = 0.5 * (1.0 + np.tanh(1.0 / (1.0 - u) - 1.0 / u))
        elif u >= 1.0:
            h[j] = 1.0
    return np.where(h < 1e-6, 0.0, h)


def held(strategy, o, robot, q, J, e, following):
    """How far each joint is held, and the motion asked of it: h, z (Table III)."""
    h, z = np.zeros(robot.n), np.zeros(robot.n)
    push = J.T @ e
    outward = ((q >= robot.upper) & (push > 0)) | ((q <= robot.lower) & (push < 0))
    if strategy in ("jc", "active"):
        h[outward] = 1.0
    if strategy == "ctp":
        h = activation(q, robot.lower, robot.upper, o.margin)
        if following:
            return h * pushed_outward(robot, q, J, e), z
        near = np.flatnonzero(h)
        z[near] = -h[near] * o.mu * (q[near] - 0.5 * (robot.lower[near] + robot.upper[near]))
    return h, z


def pushed_outward(robot, q, J, e):
    """How much the error pushes each joint to its nearer limit: 1 beyond it, or from 0.1 on."""
    lower, upper = robot.finite_limits()
    outward = np.sign(q - 0.5 * (lower + upper))
    cosine = outward * (J.T @ e) / (np.linalg.norm(J, axis=0) * np.linalg.norm(e))
    return np.where(robot.clip(q) == q, np.clip(cosine / 0.1, 0.0, 1.0), 1.0)


def joint_step(name, o, robot, q, J, e, following=False):
    """dq = z + J^{(I-H)+} (e - J z), bounded, times alpha.

    Args:
        o: the options, any object with their names. J, e: scaled. following: as a servo has it.
    """
    law, strategy, bound = parts_of(name)
    h, z = held(strategy, o, robot, q, J, e, following)
    lambda2 = lambda_squared(law, o, e, following)
    if law == "svf":
        free = (h == 0.0) | (strategy == "ctp")
        J = J.copy()
        J[:, free] = filtered_jacobian(J[:, free], o)
    while True:
        P = continuous_inverse(J, h, lambda B: damped_inverse(B, lambda2))
        dq = z + P @ (e - J @ z) if bound == "none" else selectively_damped(P, J, z, e, o)
        passed = (h == 0.0) & (robot.clip(q + dq) != q + dq)
        if strategy != "active" or not passed.any():
            return o.alpha * dq
        h[passed] = 1.0
        z[passed] = (robot.clip(q + dq) - q)[passed]


def selectively_damped(P, J, z, e, o):
    """(7) and section VI: each direction bounded by gamma_s, the whole by gamma_max."""
    dq = z - P @ (J @ z)
    V, gains, Ut = np.linalg.svd(P, full_matrices=False)
    for v, g, u in zip(V.T, gains, Ut, strict=True):
        M = g * np.abs(v) @ np.linalg.norm(J, axis=0)
        gamma = o.gamma_max * min(1.0, 1.0 / M) if M > 0.0 else o.gamma_max
        w = g * v * (u @ e)
        dq += w * min(1.0, gamma / np.abs(w).max()) if w.any() else 0.0
    return dq * min(1.0, o.gamma_max / np.linalg.norm(dq)) if dq.any() else dq


def attempt(name, o, robot, T_d, q):
    """Steps until the pose is reached or the iterations are out: q, steps made."""
    clips = parts_of(name).strategy in ("jc", "active")
    q = robot.clip(q) if clips else q
    for made in range(o.max_iterations + 1):
        e, J = error_and_jacobian(robot, T_d, q, o.rotation_weight)
        position, rotation = np.linalg.norm(e[:3]), np.linalg.norm(e[3:]) / o.rotation_weight
        if position <= o.position_tolerance and rotation <= o.rotation_tolerance:
            break
        if made < o.max_iterations:
            q = q + joint_step(name, o, robot, q, J, e)
            q = robot.clip(q) if clips else q
    return q, made
