# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of inverse kinematics: one step of every method, from the papers' formulas.

NumPy's singular values, all 2^n terms of the continuous inverse, nothing of the kernels. Colome &
Torras 2012, Deo & Walker 1993, Buss & Kim 2004; the parts are in the other ``oracle_*`` files.
"""

from functools import partial
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import oracle_bounds as bounds
import oracle_laws as laws
import oracle_objectives as objectives
import oracle_policies as policies
import oracle_saturation as saturation
import oracle_strategies as strategies
from oracle_laws import continuous_inverse
from oracle_strategies import activation
from oracle_task import Rows, error_and_jacobian, pose_error, rotation_vector

__all__ = [
    "Oracle",
    "Parts",
    "activation",
    "attempt",
    "continuous_inverse",
    "error_and_jacobian",
    "joint_step",
    "parts_of",
    "pose_error",
    "rotation_vector",
]

LAWS = ("jp", "jt", "tpinv", "jd", "jf", "nf", "nfd", "ed", "ied", "lm", "gdls", "svf")
STRATEGIES = (
    *("jw", "gp", "jc", "ta", "tp", "ctp", "gwln", "sns", "hqp"),
    *("srtp", "avoid", "idv", "cns"),
)
REACHES = ("clamp", "halve")
BOUNDS = ("max", "norm", "sd", "sdls", "sdls_near")
CLIPPING = ("jc", "active", "sns", "hqp")  # strategies that clip to the limits after a step


class Parts(NamedTuple):
    """The four choices in a method's name."""

    law: str
    strategy: str
    reach: str
    bound: str


def parts_of(name):
    """What a name such as ``ctp+sd+svf`` says, and what it leaves unsaid."""
    words = {"dls": "jd", "odls": "jd", "jp_near": "sdls_near"}
    words = [words.get(word, word) for word in name.split("+")]
    if words == ["auto"]:
        return Parts("ed", "active", "none", "none")
    law = "svf+ed" if {"svf", "ed"} <= set(words) else _one(words, LAWS, "jp")
    return Parts(law, *(_one(words, room, "none") for room in (STRATEGIES, REACHES, BOUNDS)))


def _one(words, room, otherwise):
    return next((word for word in words if word in room), otherwise)


def _with_clamp(o, robot):
    """Return the options `o`, in which a D_max of None is half the length of a typical link."""
    if getattr(o, "D_max", 0.0) is not None or not hasattr(robot, "tree"):
        return o
    lengths = []
    for tip, offset in zip(robot.tips, robot.offsets, strict=True):
        T, points = np.eye(4), []
        for joint in robot.tree.path(robot.base, tip):
            T = T @ joint.origin
            if joint.kind != "fixed":
                points.append(T[:3, 3])
        points.append((T @ offset)[:3, 3])
        lengths += np.linalg.norm(np.diff(points, axis=0), axis=1).tolist()
    typical = np.average(lengths, weights=lengths) if any(lengths) else np.inf
    return SimpleNamespace(**{**vars(o), "D_max": 0.5 * typical / getattr(o, "length_unit", 1.0)})


class Oracle:
    """A method, step by step, with what it remembers of the step before.

    Afterwards ``lambda2`` is the squared damping factor, ``last_J`` what was inverted, and ``size``
    the largest motion that the strategy asked for, much of which may cancel.
    """

    def __init__(self, name, robot, o, task=None):
        self.named, self.robot, self.o = parts_of(name), robot, _with_clamp(o, robot)
        self.parts = self.named
        self.rows = Rows(robot, task, getattr(o, "rotation_weight", 0.5))
        self.reset()

    def reset(self):
        self.last_e = self.last_T = self.last_J = self.last_slope = None
        self.lambda2 = self.size = 0.0

    def error_and_jacobian(self, q, T_d):
        return self.rows.error(q, T_d), self.rows.jacobian(q, T_d)

    def step(self, q, J, e, following=False, T_d=None):
        """dq (n,) for scaled J (r, n) and e (r,).

        Args:
            following: as a servo has it. T_d: of tasks in its frame, for their manipulability.
        """
        if self.named.bound == "sdls_near":
            near = np.linalg.norm(e) <= self.o.switch_distance
            law, bound = ("jp", "sdls") if near else (self.named.law, "none")
            self.parts = self.named._replace(law=law, bound=bound)
        o, (law, strategy, _, _) = self.o, self.parts
        e = self._within_reach(q, e, J, T_d)
        h, z = strategies.held(strategy, o, self.robot, q, J, e, following)
        C = self._biased(e) @ self._columns(q, J, e)
        groups, by_error = self.rows.groups, o.error_gain * (e @ e)
        task_e = e
        if strategy == "ta":
            J, e, groups = self._augmented(q, J, e, T_d)
        self.lambda2 = policies.lambda_squared(law, o, J @ C, task_e, self.last_J)
        if following and law not in ("ed", "ied", "lm", "svf+ed"):
            self.lambda2 += by_error
        self.last_J = J @ C
        if strategy == "gp":
            v = -o.mu * objectives.gradient(o, self.rows, q, T_d)
            v = -v if o.bug_compatible else v
            if law == "jd" and o.policy == "optimal":
                self.lambda2 = policies.optimal_step(o, J, e, v)[1]
                z = v / self.lambda2 if self.lambda2 > 0.0 else v
            elif o.form == 22:
                return o.alpha * self._form22(J, e, v, groups)
            else:
                scaled = o.form == 23 and self.lambda2 > 0.0
                z = o.alpha1**2 / self.lambda2 * v if scaled else v
        if strategy == "srtp":
            row = objectives.gradient(o, self.rows, q, T_d)
            z = strategies.solved_objective(o, objectives.value(o, self.rows, q, T_d), row)
        if strategy == "avoid":
            P = self._inverse(J, e, h, z, C)[0]
            z = strategies.avoiding(o, *objectives.closest(o, self.robot, q), P, J, e)
        if strategy == "idv":
            near = h > 0.0
            z = strategies.intermediate(
                h, z, J, e, lambda held: self._inverse(J, e, held * 1.0, z, C)[0]
            )
            h = near * 1.0
        if strategy in ("sns", "hqp"):
            return o.alpha * self._saturated(q, J, e)
        return o.alpha * self._bounded(q, J, e, h, z, C, groups)

    def _saturated(self, q, J, e):
        """SNS or HQP, then the step bound."""
        o, law, room = self.o, self.parts.law, saturation.step_bounds(self.robot, q, self.o)
        if self.parts.strategy == "hqp":
            dq = saturation.hqp(J, e, law, o, self.lambda2, *room)
        elif o.optimal_saturation:
            dq = saturation.best_sns(J, e, *room)
        else:
            of_columns = partial(laws.inverse, law, o=o, lambda2=self.lambda2)
            dq = saturation.sns(J, e, of_columns, *room)
        return self._shortened(np.eye(len(dq)), np.eye(len(dq)), dq, np.zeros(len(dq)), None)

    def _within_reach(self, q, e, J, T_d):
        given, last, self.last_e = e, self.last_e, e
        left = given if self.last_T is None else self.rows.error(q, self.last_T)
        self.last_T = T_d
        if self.parts.reach == "clamp":
            return bounds.clamped(self.o, given, self.rows.groups, last, left)
        return bounds.halved(self.o, given, J) if self.parts.reach == "halve" else given

    def _biased(self, e):
        """Scales of the columns by Sugihara's biases; ones for other laws."""
        E, bias = self.o.error_gain * (e @ e), np.ones(self.robot.n)
        if self.parts.law == "lm":
            bias = np.array(self.o.bias) * bias
        return np.diag(np.sqrt((E + bias.min()) / (E + bias)))

    def _columns(self, q, J, e):
        """C (n, n), by which the columns are multiplied."""
        slope, last = objectives.limits_gradient(self.robot, q), self.last_slope
        self.last_slope = slope
        if self.parts.strategy == "gwln":
            H = objectives.limits_value(self.robot, q)
            return strategies.least_norm_weighting(H, slope, J, self.o.alpha * e)
        return (
            np.diag(strategies.weighting(slope, last))
            if self.parts.strategy == "jw"
            else np.eye(len(q))
        )

    def _augmented(self, q, J, e, T_d):
        """TA: the objective's gradient as one more row, for the residual -mu H."""
        o = self.o
        row = o.w_c * objectives.gradient(o, self.rows, q, T_d)
        residual = -o.w_c * o.mu * objectives.value(o, self.rows, q, T_d)
        return np.vstack([J, row]), np.append(e, residual), np.append(self.rows.groups, 99)

    def _form22(self, J, e, v, groups):
        """(22), (J^T J + D^2)^-1 (J^T e + alpha1^2 v) with D^2 = alpha1^2 I + alpha2^2 A."""
        o = self.o
        A = np.ones(len(v)) if o.joint_weights is None else np.array(o.joint_weights)
        D2 = o.alpha1**2 + o.alpha2**2 * A
        P = np.linalg.solve(J.T @ J + np.diag(D2), J.T)
        return self._shortened(P, J, e, o.alpha1**2 / D2 * v, groups)

    def _bounded(self, q, J, e, h, z, C, groups):
        robot, strategy = self.robot, self.parts.strategy
        while True:
            P, seen, sized = self._inverse(J, e, h, z, C)
            self.size = np.abs(z).max()
            dq = self._shortened(P, seen, e, z, groups, sized)
            passed = (h == 0.0) & (robot.clip(q + dq) != q + dq)
            if strategy != "active" or not passed.any():
                return dq
            h[passed] = 1.0
            z[passed] = (robot.clip(q + dq) - q)[passed]

    def _inverse(self, J, e, h, z, C):
        """P (n, r); the Jacobian it stands for; and the one that says how far the tips move.

        With SVF these are the filtered one: for CTP both (Colome & Torras 2012, section VI), else
        only for the bounds SD and SDLS, which damp "J, or its filtered version".
        """
        o, law, strategy = self.o, self.parts.law, self.parts.strategy
        kept = h
        h = 0.0 * h if strategy == "cns" else h
        free = h < 1.0
        if not free.any():
            return np.zeros(J.T.shape), J, J
        if law in laws.FILTERS and strategy == "ctp":
            seen = laws.filtered_jacobian(J, o)
            of_columns = partial(laws.inverse, "jd", o=o, lambda2=self.lambda2)
            return laws.continuous_inverse(seen, h, of_columns), seen, seen
        W = np.eye(len(e))
        if law == "jd" and o.policy == "accuracy":
            W = policies.task_weighting(o, J @ C, len(self.rows.groups))
        if law == "jd" and o.policy == "optimal" and strategy != "gp":
            self.lambda2 = policies.optimal_step(o, (J @ C)[:, free], e - J @ z)[1]
        length = laws.step_length(J @ C, h, e - J @ z) if law == "jt" else 0.0
        of_columns = partial(laws.inverse, law, o=o, lambda2=self.lambda2, length=length)
        P = C @ laws.continuous_inverse(W @ J @ C, h, of_columns) @ W
        if strategy == "cns":
            P = np.diag(1.0 - kept) @ P
        sized = J.copy()
        if law in laws.FILTERS:
            inverse = np.linalg.inv(C)[np.ix_(free, free)]
            sized[:, free] = laws.filtered_jacobian((J @ C)[:, free], o) @ inverse
        return P, J, sized

    def _shortened(self, P, J, e, z, groups, sized=None):
        o, bound = self.o, self.parts.bound
        sized = J if sized is None else sized
        if bound == "sd":
            return bounds.selectively_damped(P, J, z, e, o, sized, self.parts.strategy == "ctp")
        if bound == "sdls":
            slides = _slides(self.robot.chain)
            return bounds.sdls(P, J, z, e, o, sized, groups, slides)
        dq = z + P @ (e - J @ z)
        every = np.ones(len(dq), bool)
        if bound == "max":
            return bounds.in_largest(dq, o.largest_change, every)
        return bounds.in_norm(dq, o.Delta) if bound == "norm" else dq


def _slides(chain):
    """The joints whose every element slides."""
    turning = chain.variable[~chain.prismatic]
    return ~np.isin(np.arange(len(chain.lower)), turning)


def joint_step(name, o, robot, q, J, e, following=False):
    """One step of a fresh attempt at a whole pose.

    Args:
        o: the options, any object with their names. J, e: scaled. following: as a servo has it.
    """
    return Oracle(name, robot, o).step(q, J, e, following)


def attempt(name, o, robot, T_d, q):
    """Steps until the pose is reached or the iterations are out: q, steps made."""
    clips = parts_of(name).strategy in CLIPPING
    oracle = Oracle(name, robot, o)
    q = robot.clip(q) if clips else q
    for made in range(o.max_iterations + 1):
        e, J = oracle.error_and_jacobian(q, T_d)
        position, rotation = np.linalg.norm(e[:3]), np.linalg.norm(e[3:]) / o.rotation_weight
        if position <= o.position_tolerance and rotation <= o.rotation_tolerance:
            break
        if made < o.max_iterations:
            q = q + oracle.step(q, J, e)
            q = robot.clip(q) if clips else q
    return q, made
