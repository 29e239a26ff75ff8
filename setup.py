# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Package metadata for pip and for colcon (ament_python)."""

import os
import shutil
import subprocess
import sys
from glob import glob
from importlib.util import find_spec
from pathlib import Path

from setuptools import Distribution, find_packages, setup
from setuptools.command.build_py import build_py

NAME = "dls_ik"
HERE = Path(__file__).resolve().parent
# Kernels are compiled ahead of time where numba is there, and at their first use elsewhere.
COMPILES = find_spec("numba") is not None and os.environ.get("DLS_IK_COMPILE_AHEAD", "1") != "0"


class BuildWithKernels(build_py):
    """Copies the sources, and adds machine code for any processor of this kind.

    Compiling takes 80 s of two processors, with progress on the terminal. Kernels that this user
    has compiled before from equal sources are copied, see dls_ik/shared_kernels.py.
    """

    def run(self) -> None:
        """Build; without machine code where that fails."""
        super().run()
        if not COMPILES or getattr(self, "editable_mode", False):
            return
        sources = Path(self.build_lib).resolve()
        folder = sources / NAME / "core" / "ahead"
        folder.mkdir(parents=True, exist_ok=True)
        result = subprocess.run(  # noqa: S603  our own module
            [sys.executable, "-m", f"{NAME}.warm_up", str(folder)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(sources), *sys.path])},
            cwd=sources,
        )
        if result.returncode != 0:
            self.warn("kernels will be compiled at their first use")
            shutil.rmtree(folder)


class MaybeCompiled(Distribution):
    """A distribution whose wheel is of this platform where it has machine code."""

    def has_ext_modules(self) -> bool:
        """Return True where kernels are compiled; colcon looks for pure packages only."""
        return COMPILES and "bdist_wheel" in sys.argv


setup(
    name=NAME,
    cmdclass={"build_py": BuildWithKernels},
    distclass=MaybeCompiled,
    version="0.1.0",
    description="Inverse kinematics by damped least squares: a Python library and a ROS 2 node",
    long_description=(HERE / "README.md").read_text(),
    long_description_content_type="text/markdown",
    keywords=["inverse kinematics", "damped least squares", "robotics", "ROS 2"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX :: Linux",
        "Programming Language :: Python :: 3.10",
        "Programming Language :: Python :: 3.11",
        "Programming Language :: Python :: 3.12",
        "Programming Language :: Python :: 3.13",
        "Topic :: Scientific/Engineering",
    ],
    author="The dls_ik developers",
    maintainer="The dls_ik developers",
    maintainer_email="dls-ik@example.org",
    license="Apache-2.0",
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", glob("launch/*.py")),
        (f"share/{NAME}/config", glob("config/*.*")),
        (f"share/{NAME}/config/sros2", glob("config/sros2/*.xml")),
        (f"share/{NAME}/config/moveit", glob("config/moveit/*.*")),
        (f"share/{NAME}/config/presets", glob("config/presets/*.yaml")),
        (f"share/{NAME}/config/teleop", glob("config/teleop/*.*")),
        (f"share/{NAME}/config/plotjuggler", glob("config/plotjuggler/*.xml")),
        (f"share/{NAME}/config/foxglove", glob("config/foxglove/*.json")),
        (f"share/{NAME}/urdf", glob("urdf/*.*")),
    ],
    python_requires=">=3.10",
    install_requires=[
        "click>=8.0",
        "numba>=0.59",
        "numpy>=1.22",
        "rich>=12",
        "urdf-parser-py>=0.0.4",
    ],
    extras_require={
        "ros": [
            "ros-rclpy[fastrtps]>=7.1",
            "ros-diagnostic-msgs",
            "ros-geometry-msgs",
            "ros-sensor-msgs",
            "ros-shape-msgs",
            "ros-std-msgs",
            "ros-std-srvs",
            "ros-trajectory-msgs",
            "ros-visualization-msgs",
        ],
        "collision": ["coal>=3"],
        "physics": ["mujoco>=3.5"],
        "jerk": ["ruckig>=0.12"],
        "cluster": ["dask[distributed]>=2023.1"],
        "demo": ["matplotlib>=3.5", "rich>=12"],
        "study": ["pyarrow>=12", "scipy>=1.9", "tomli>=2; python_version < '3.11'"],
        "zarr": ["zarr>=3"],
        "bag": ["rosbags>=0.10"],
        "record": ["mcap>=1.1", "rosbags>=0.10"],
        "lerobot": ["pyarrow>=12"],
        "notebook": ["ipykernel>=6", "ipywidgets>=8", "matplotlib>=3.5", "nbclient>=0.9"],
        "docs": ["furo", "latex2mathml>=3.77", "myst-parser>=2", "sphinx>=7", "ziamath>=0.12"],
        "descriptions": ["robot_descriptions>=1.20", "xacro>=2"],
        "viewer": ["viser>=1.0", "yourdfpy>=0.0.56"],
        "test": ["hypothesis>=6", "matplotlib>=3.5", "pytest>=6.2", "rich>=12"],
    },
    entry_points={
        "console_scripts": [
            f"dls-ik = {NAME}.cli.main:main",
            f"ik_node = {NAME}.ros.node:main",
            f"ik_sim_arm = {NAME}.ros.sim_arm.node:main",
        ]
    },
    zip_safe=False,
)
