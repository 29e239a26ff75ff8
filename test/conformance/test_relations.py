"""Methods that become each other for some options, whatever the oracle says."""

import numpy as np
import pytest
from cases import ARMS, WAM, generic, jacobian_with
from ours import options_of, our_quick_step, our_step

FAR = 1e6
SAME = {
    "tpinv of all singular values is jp": (("tpinv", {"truncation": 0.0}), ("jp", {})),
    "jf without damping is jp": (("jf", {"lambda_max": 0.0}), ("jp", {})),
    "nf without a bound is jp": (("nf", {"velocity_bound": 1e9}), ("jp", {})),
    "jd without damping is jp": (("jd", {"lambda_": 0.0}), ("jp", {})),
    "ied without omega is ed": (("ied", {"omega": 0.0}), ("ed", {})),
    "policy error is ed": (("jd", {"policy": "error"}), ("ed", {})),
    "svf+ed without error damping is svf": (("svf+ed", {"error_gain": 0.0}), ("svf", {})),
    "dls is jd": (("dls", {}), ("jd", {"lambda_": 0.1})),
    "odls is jd": (("odls", {}), ("jd", {"policy": "optimal"})),
    "odls with room is jp": (("odls", {"Delta": FAR}), ("jp", {})),
    "clamp of nothing": (("dls+clamp", {"D_max": FAR}), ("dls", {})),
    "adaptive clamp at first": (("dls+clamp", {"adaptive": True, "D_max": 0.01}), ("dls", {})),
    "halve within reach": (("dls+halve", {}), ("dls", {})),
    "max of nothing": (("dls+max", {"largest_change": FAR}), ("dls", {})),
    "norm of nothing": (("dls+norm", {"Delta": FAR}), ("dls", {})),
    "gp without a gain": (("gp+dls", {"mu": 0.0}), ("dls", {})),
    "jc away from limits": (("jc+dls", {}), ("dls", {})),
    "accuracy away from singularities": (
        ("jd", {"policy": "accuracy", "epsilon": 1e-9}),
        ("jp", {}),
    ),
    "manipulability away from singularities": (
        ("jd", {"policy": "manipulability", "w_t": 1e-12}),
        ("jp", {}),
    ),
    "rate at first": (("jd", {"policy": "rate"}), ("jp", {})),
    "mayorga-rank at first": (("jd", {"policy": "mayorga-rank"}), ("jp", {})),
    "(23) with alpha1 = lambda is (24)": (
        ("gp+jd", {"form": 23, "alpha1": 0.2, "lambda_": 0.2}),
        ("gp+jd", {"form": 24, "lambda_": 0.2}),
    ),
    "(22) with A = I is (23)": (
        ("gp+jd", {"form": 22, "alpha1": 0.3, "alpha2": 0.4}),
        ("gp+jd", {"form": 23, "alpha1": 0.3, "lambda_": 0.5}),
    ),
}
QUICK = ["jp", "jd", "ed", "jc", "jc+jd", "jc+ed", "auto"]


@pytest.mark.parametrize("what", SAME)
def test_becomes(what):
    one, other = SAME[what]
    rng = np.random.default_rng(1)
    for robot in (WAM, ARMS["9"]):
        for _ in range(4):
            q, J, e, _ = generic(robot, rng)
            steps = [our_step(name, robot, q, J, e, **options) for name, options in (one, other)]
            scale = np.abs(steps[1]).max()
            np.testing.assert_allclose(steps[0], steps[1], rtol=0.0, atol=1e-11 * scale)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("arm", ARMS)
def test_the_quick_step_and_the_general_one_agree(name, arm):
    robot, rng = ARMS[arm], np.random.default_rng(2)
    for _ in range(4):
        q, J, e, _ = generic(robot, rng)
        quick = our_quick_step(name, robot, q, J, e)
        general = our_step(name, robot, q, J, e)
        np.testing.assert_allclose(general, quick, rtol=0.0, atol=1e-11 * np.abs(quick).max())


@pytest.mark.parametrize("lambda_", [1e-3, 0.1, 1.0])
def test_cholesky_and_singular_values_give_the_same_damped_inverse(lambda_):
    rng = np.random.default_rng(3)
    q = np.zeros(7)
    for least in (0.0, 1e-9, 1e-3, 0.5):
        J, U, V = jacobian_with([2.0, 1.0, 0.7, 0.5, 0.3, least], 7, rng)
        e = rng.normal(size=6)
        s = np.array([2.0, 1.0, 0.7, 0.5, 0.3, least])
        by_values = V @ (s / (s**2 + lambda_**2) * (U.T @ e))
        L = np.linalg.cholesky(J @ J.T + lambda_**2 * np.eye(6))
        by_factor = J.T @ np.linalg.solve(L.T, np.linalg.solve(L, e))
        close = {"rtol": 0.0, "atol": 1e-9 * np.abs(by_values).max()}
        np.testing.assert_allclose(by_factor, by_values, **close)
        for name in ("jd", "jd+norm", "jd+max"):
            bounds = {"Delta": FAR, "largest_change": FAR}
            ours = our_step(name, WAM, q, J, e, lambda_=lambda_, **bounds)
            np.testing.assert_allclose(ours, by_values, **close)


@pytest.mark.parametrize("name", ["jp", "jt", "dls", "svf", "sdls", "ed+max", "jw", "gp+dls", "ta"])
def test_steps_do_not_depend_on_the_frame_of_the_task(name):
    """Turning e and the rows of J alike turns nothing of the step."""
    rng = np.random.default_rng(4)
    q, J, e, _ = generic(WAM, rng)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turn = np.kron(np.eye(2), R)
    expected = our_step(name, WAM, q, J, e)
    ours = our_step(name, WAM, q, turn @ J, turn @ e)
    np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-10 * np.abs(expected).max())


def test_names_bring_their_defaults_and_options_come_first():
    assert options_of("dls").lambda_ == 0.1
    assert options_of("dls", lambda_=0.3).lambda_ == 0.3
    assert options_of("odls").policy == "optimal"
    assert options_of("jd").lambda_ == 0.005
