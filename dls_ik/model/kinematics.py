"""The kinematic kernels for a row of configurations: poses and Jacobians of the tips."""

import numpy as np

from dls_ik.core.types import Array, Chain


def tip_poses(chain: Chain, configurations: Array) -> Array:
    """``T_base_tip`` of k tips, for configurations (b, n): (b, k, 4, 4)."""
    from dls_ik.core.kinematics import forward  # numba takes long to import

    axes, T = _scratch(chain)
    poses = np.zeros((len(configurations), len(T), 4, 4))
    poses[..., 3, 3] = 1.0
    for q, pose in zip(configurations, poses, strict=True):
        forward(chain, q, axes, T)
        pose[:, :3] = T
    return poses


def tip_jacobians(chain: Chain, configurations: Array) -> Array:
    """Geometric Jacobians of k tips, for configurations (b, n): (b, 6 k, n), linear rows first."""
    from dls_ik.core.kinematics import forward, jacobian  # numba takes long to import

    axes, T = _scratch(chain)
    jacobians = np.empty((len(configurations), 6 * len(T), len(chain.lower)))
    for q, J in zip(configurations, jacobians, strict=True):
        forward(chain, q, axes, T)
        jacobian(chain, axes, T, J)
    return jacobians


def _scratch(chain: Chain) -> tuple[Array, Array]:
    """Room for the axes (m, 2, 3) and the tips (k, 3, 4)."""
    return np.empty((len(chain.prismatic), 2, 3)), np.empty((len(chain.first) - 1, 3, 4))
