# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sphinx's settings: Markdown pages as a forge shows them, and the API from the docstrings.

``scripts/docs`` builds the site; CONTRIBUTING.md says how it is put together.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_extensions")]

from dls_ik import __version__  # noqa: E402  (found by the line above)

project = "dls_ik"
author = "The dls_ik developers"
copyright = f"{author}. Apache-2.0"  # noqa: A001  (Sphinx's name)
release = version = __version__

extensions = [
    "fields",
    "mathml",
    "myst_parser",
    "repository_links",
    "signatures",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "tables",
]
exclude_patterns = ["_build", "_extensions"]
smartquotes_action = "D"  # dashes, as autodoc counts on; quotes stay as typed
highlight_language = "none"  # blocks without a language are formulas and output

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4  # links such as solver.md#batches, as forges make them
myst_dmath_allow_digits = False  # $5 and 6$ is no formula
myst_fence_as_directive = ["math"]  # as forges take them
html_math_renderer = "mathml"

# Docstrings
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # signatures.py has them as in the source
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Fields", "params_style")]
napoleon_use_rtype = False
napoleon_attr_annotations = False  # autodoc would evaluate them to lines of NumPy internals
default_role = "code"
add_module_names = False

# A name that is linked must be there, but for those of other projects: a build needs no network.
nitpicky = True
OTHERS = (
    "Executor",
    "Figure",
    "NDArray",
    "Node",
    "Path",
    "PoseStamped",
    "enum.IntEnum",
    "optional",
)
INNER = (
    "Bounds",
    "DirectCycle",
    "FollowMethods",
    "FollowState",
    "Frozen",
    "Intervals",
    "JointSteps",
    "JointTarget",
    "Operation",
    "SceneSnapshot",
    "Chain",
    "ControllerKeywords",
    "ReplayPath",
    "Preset",
    "Results",
    "Session",
    "SolveType",
    "SolverKeywords",
    "Knots",
    "StackTask",
    "StopPath",
    "Tree",
    "WorkBudget",
)
nitpick_ignore = [("py:class", name) for name in OTHERS + INNER]
nitpick_ignore.append(("py:func", "open_viewer"))  # documented as dls_ik.viewer.open
nitpick_ignore_regex = [
    (
        "py:.*",
        r"(builtin_interfaces|dls_ik\.core|dls_ik\.model\.tree|collections|concurrent|geometry_msgs|np|numpy|os|rclpy)\..*",
    ),
]

# The page
html_theme = "furo"
html_title = "dls_ik"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa8", "color-brand-content": "#1f5fa8"},
    "dark_css_variables": {"color-brand-primary": "#7fb2ea", "color-brand-content": "#7fb2ea"},
}
