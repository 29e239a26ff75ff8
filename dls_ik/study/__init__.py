# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Studies: methods compared on the same pairs of start and goal of several robots, with statistics.

Each public name is imported at its first use, so that ``--help`` of the command line is fast.
"""

from typing import TYPE_CHECKING

from dls_ik.lazy import on_first_use

if TYPE_CHECKING:
    from dls_ik.study.definition import Study, StudyMethod, StudyRobot, read_study
    from dls_ik.study.pairs import Pairs, study_pairs, write_pairs
    from dls_ik.study.pictures import study_pictures, tuning_picture
    from dls_ik.study.results import StudyResults
    from dls_ik.study.run import run_study
    from dls_ik.study.statistics import Comparison, Summary, comparisons, summaries
    from dls_ik.study.tuning import Tuning, TuningCheck, TuningPoint, TuningResult, tune

__all__ = [
    "Comparison",
    "Pairs",
    "Study",
    "StudyMethod",
    "StudyResults",
    "StudyRobot",
    "Summary",
    "Tuning",
    "TuningCheck",
    "TuningPoint",
    "TuningResult",
    "comparisons",
    "read_study",
    "run_study",
    "study_pairs",
    "study_pictures",
    "summaries",
    "tune",
    "tuning_picture",
    "write_pairs",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "Comparison": "statistics",
        "Pairs": "pairs",
        "Study": "definition",
        "StudyResults": "results",
        "StudyRobot": "definition",
        "Summary": "statistics",
        "StudyMethod": "definition",
        "comparisons": "statistics",
        "read_study": "definition",
        "run_study": "run",
        "study_pairs": "pairs",
        "study_pictures": "pictures",
        "summaries": "statistics",
        "Tuning": "tuning",
        "TuningCheck": "tuning",
        "TuningPoint": "tuning",
        "TuningResult": "tuning",
        "tune": "tuning",
        "tuning_picture": "pictures",
        "write_pairs": "pairs",
    },
)
