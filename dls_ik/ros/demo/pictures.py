"""Part three: pictures of the motion."""

from pathlib import Path

from matplotlib.figure import Figure

from dls_ik.model.robot import RobotModel
from dls_ik.plot import joint_bands, tip_path
from dls_ik.ros.demo.tracking import Motion, Tracking


def save_pictures(
    robot: RobotModel, motion: Motion, tracking: Tracking, folder: Path
) -> list[Path]:
    """Draw and save them; return where."""
    following = (
        f"A figure of eight streamed to the WAM: the tip is {1e3 * tracking.lag:.1f} ms behind "
        f"and {1e3 * tracking.path_error.mean:.2f} mm off the path"
    )
    inside = "The same motion, joint by joint, and the limits of each"
    figures: dict[str, Figure] = {
        "tip_path.png": tip_path(robot, motion.times, motion.q, motion.goal, following),
        "joint_positions.png": joint_bands(robot, motion.times, motion.q, inside),
    }
    for name, figure in figures.items():
        figure.savefig(folder / name, dpi=150)
    return [folder / name for name in figures]
