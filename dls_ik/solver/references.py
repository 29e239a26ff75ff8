# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""BibTeX entries of the papers in which the methods were published.

The keys, such as "Buss & Kim 2004", are those of docs/references.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dls_ik.solver.method import method_info

# Papers by the short citation used in docstrings. A value has the BibTeX entry type, the authors,
# the title, the journal or proceedings, the year, and further BibTeX fields.
_PAPERS: dict[str, tuple[str, str, str, str, int, dict[str, str]]] = {
    "Beeson & Ames 2015": (
        "inproceedings", "Beeson, Patrick and Ames, Barrett",
        "TRAC-IK: an open-source library for improved solving of generic inverse kinematics",
        "IEEE-RAS International Conference on Humanoid Robots", 2015, {}),
    "Buss & Kim 2004": (
        "article", "Buss, Samuel R. and Kim, Jin-Su",
        "Selectively damped least squares for inverse kinematics",
        "Journal of Graphics Tools", 2005,
        {"volume": "10", "number": "3", "pages": "37--49",
         "doi": "10.1080/2151237X.2005.10129202"}),
    "Chan & Dubey 1995": (
        "article", "Chan, Tan Fung and Dubey, Rajiv V.",
        "A weighted least-norm solution based scheme for avoiding joint limits for redundant joint "
        "manipulators", "IEEE Transactions on Robotics and Automation", 1995, {"volume": "11"}),
    "Chan & Lawrence 1988": (
        "inproceedings", "Chan, S. K. and Lawrence, P. D.",
        "General inverse kinematics with the error damped pseudoinverse",
        "IEEE International Conference on Robotics and Automation (ICRA)", 1988, {}),
    "Chiaverini 1997": (
        "article", "Chiaverini, Stefano",
        "Singularity-robust task-priority redundancy resolution for real-time kinematic control "
        "of robot manipulators", "IEEE Transactions on Robotics and Automation", 1997,
        {"volume": "13", "pages": "398--410"}),
    "Chiaverini, Siciliano & Egeland 1994": (
        "article", "Chiaverini, Stefano and Siciliano, Bruno and Egeland, Olav",
        "Review of the damped least-squares inverse kinematics with experiments on an industrial "
        "robot manipulator", "IEEE Transactions on Control Systems Technology", 1994,
        {"volume": "2", "pages": "123--134"}),
    "Colome & Torras 2012": (
        "inproceedings", "Colom{\\'e}, Adri{\\`a} and Torras, Carme",
        "Redundant inverse kinematics: experimental comparative review and two enhancements",
        "IEEE/RSJ International Conference on Intelligent Robots and Systems (IROS)", 2012, {}),
    "Deo & Walker 1993": (
        "article", "Deo, Arati S. and Walker, Ian D.",
        "Overview of damped least-squares methods for inverse kinematics of robot manipulators",
        "Journal of Intelligent and Robotic Systems", 1995,
        {"volume": "14", "pages": "43--68", "doi": "10.1007/BF01254007"}),
    "Dietrich, Albu-Schaeffer & Hirzinger 2012": (
        "inproceedings", "Dietrich, Alexander and Albu-Sch{\\\"a}ffer, Alin and Hirzinger, Gerd",
        "On continuous null space projections for torque-based, hierarchical, multi-objective "
        "manipulation", "IEEE International Conference on Robotics and Automation (ICRA)", 2012,
        {}),
    "Egeland et al. 1991": (
        "inproceedings", "Egeland, O. and Sagli, J. R. and Spangelo, I. and Chiaverini, S.",
        "A damped least-squares solution to redundancy resolution",
        "IEEE International Conference on Robotics and Automation (ICRA)", 1991, {}),
    "Flacco et al. 2012": (
        "inproceedings", "Flacco, Fabrizio and De Luca, Alessandro and Khatib, Oussama",
        "Motion control of redundant robots under joint constraints: saturation in the null space",
        "IEEE International Conference on Robotics and Automation (ICRA)", 2012,
        {"pages": "285--292"}),
    "Flacco et al. 2015": (
        "article", "Flacco, Fabrizio and De Luca, Alessandro and Khatib, Oussama",
        "Control of redundant robots under hard joint constraints: saturation in the null space",
        "IEEE Transactions on Robotics", 2015, {"volume": "31", "pages": "637--654"}),
    "Kanoun, Lamiraux & Wieber 2011": (
        "article", "Kanoun, Oussama and Lamiraux, Florent and Wieber, Pierre-Brice",
        "Kinematic control of redundant manipulators: generalizing the task-priority framework to "
        "inequality task", "IEEE Transactions on Robotics", 2011,
        {"volume": "27", "pages": "785--792"}),
    "Kraft 1988": (
        "techreport", "Kraft, Dieter", "A software package for sequential quadratic programming",
        "DFVLR", 1988, {"number": "DFVLR-FB 88-28"}),
    "Lee, Mansard & Park 2012": (
        "article", "Lee, Jaemin and Mansard, Nicolas and Park, Jaeheung",
        "Intermediate desired value approach for task transition of robots in kinematic control",
        "IEEE Transactions on Robotics", 2012, {"volume": "28"}),
    "Liegeois 1977": (
        "article", "Li{\\'e}geois, Alain",
        "Automatic supervisory control of the configuration and behavior of multibody mechanisms",
        "IEEE Transactions on Systems, Man, and Cybernetics", 1977, {"volume": "7"}),
    "Lloyd, Irani & Ahmadi 2022": (
        "article", "Lloyd, Steffan and Irani, Rishad A. and Ahmadi, Mojtaba",
        "Fast and robust inverse kinematics of serial robots using Halley's method",
        "IEEE Transactions on Robotics", 2022,
        {"volume": "38", "pages": "2768--2780", "doi": "10.1109/TRO.2022.3162954"}),
    "Maciejewski & Klein 1985": (
        "article", "Maciejewski, Anthony A. and Klein, Charles A.",
        "Obstacle avoidance for kinematically redundant manipulators in dynamically varying "
        "environments", "International Journal of Robotics Research", 1985, {"volume": "4"}),
    "Maciejewski & Klein 1988": (
        "article", "Maciejewski, Anthony A. and Klein, Charles A.",
        "Numerical filtering for the operation of robotic manipulators through kinematically "
        "singular configurations", "Journal of Robotic Systems", 1988, {"volume": "5"}),
    "Mansard, Remazeilles & Chaumette 2009": (
        "article", "Mansard, Nicolas and Remazeilles, Anthony and Chaumette, Fran{\\c{c}}ois",
        "Continuity of varying-feature-set control laws",
        "IEEE Transactions on Automatic Control", 2009, {"volume": "54"}),
    "Nakamura & Hanafusa 1986": (
        "article", "Nakamura, Yoshihiko and Hanafusa, Hideo",
        "Inverse kinematic solutions with singularity robustness for robot manipulator control",
        "ASME Journal of Dynamic Systems, Measurement, and Control", 1986, {"volume": "108"}),
    "Orocos KDL": (
        "misc", "{Orocos}", "Kinematics and Dynamics Library", "", 0,
        {"howpublished": "\\url{https://www.orocos.org/kdl}"}),
    "Phuoc et al. 2008": (
        "article", "Phuoc, Le Minh and Martinet, Philippe and Lee, Sukhan and Kim, Hunmo",
        "Damped least square based genetic algorithm with Gaussian distribution of damping "
        "factor for singularity-robust inverse kinematics",
        "Journal of Mechanical Science and Technology", 2008,
        {"volume": "22", "pages": "1330--1338"}),
    "Powell 1978": (
        "inproceedings", "Powell, M. J. D.",
        "A fast algorithm for nonlinearly constrained optimization calculations",
        "Numerical Analysis, Lecture Notes in Mathematics 630", 1978, {}),
    "Raunhardt & Boulic 2007": (
        "inproceedings", "Raunhardt, Daniel and Boulic, Ronan", "Progressive clamping",
        "IEEE International Conference on Robotics and Automation (ICRA)", 2007, {}),
    "Sugihara 2009": (
        "inproceedings", "Sugihara, Tomomichi",
        "Solvability-unconcerned inverse kinematics based on Levenberg-Marquardt method with "
        "robust damping", "IEEE-RAS International Conference on Humanoid Robots", 2009, {}),
    "Sugihara 2011": (
        "article", "Sugihara, Tomomichi",
        "Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method",
        "IEEE Transactions on Robotics", 2011,
        {"volume": "27", "pages": "984--991", "doi": "10.1109/TRO.2011.2148230"}),
    "Tabaczynski 2005": (
        "techreport", "Tabaczynski, Mike", "Jacobian solutions to the inverse kinematics problem",
        "Tufts University", 2005, {"note": "Final project, Math 128"}),
    "Wampler 1986": (
        "article", "Wampler, Charles W.",
        "Manipulator inverse kinematic solutions based on vector formulations and damped "
        "least-squares methods", "IEEE Transactions on Systems, Man, and Cybernetics", 1986,
        {"volume": "16"}),
    "Whitney 1969": (
        "article", "Whitney, Daniel E.",
        "Resolved motion rate control of manipulators and human prostheses",
        "IEEE Transactions on Man-Machine Systems", 1969, {"volume": "10"}),
    "Wolovich & Elliott 1984": (
        "inproceedings", "Wolovich, W. A. and Elliott, H.",
        "A computational technique for inverse kinematics",
        "23rd IEEE Conference on Decision and Control", 1984, {}),
    "Xiang, Zhong & Wei 2010": (
        "article", "Xiang, Ji and Zhong, Congwei and Wei, Wei",
        "General-weighted least-norm control for redundant manipulators",
        "IEEE Transactions on Robotics", 2010, {"volume": "26"}),
}  # fmt: skip
_PLACE_FIELDS = {"article": "journal", "inproceedings": "booktitle", "techreport": "institution"}


def keys_of(name: str) -> list[str]:
    """Return the keys of the papers in which a method, or the parts of its name, were published.

    Raises:
        MethodError: If the method is unknown.
    """
    source = method_info(name).source
    return [key for key in _PAPERS if any(part.startswith(key) for part in source.split("; "))]


def bibtex(names: Iterable[str]) -> str:
    """Return the BibTeX entries of the papers on the given methods, without duplicates.

    Raises:
        MethodError: If a method is unknown.
    """
    keys = dict.fromkeys(key for name in names for key in keys_of(name))
    return "\n\n".join(_entry(key) for key in keys)


def _entry(key: str) -> str:
    """Return the BibTeX entry of a paper, by its key."""
    kind, authors, title, place, year, more = _PAPERS[key]
    fields = {"author": authors, "title": f"{{{title}}}"}
    if place:
        fields[_PLACE_FIELDS[kind]] = place
    if year:
        fields["year"] = str(year)
    rows = ",\n".join(f"  {name} = {{{value}}}" for name, value in {**fields, **more}.items())
    label = re.sub(r"\W+", "", key.replace("&", "").lower())
    return f"@{kind}{{{label},\n{rows}\n}}"
