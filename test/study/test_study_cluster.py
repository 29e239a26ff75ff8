# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A study on a real Dask scheduler with a real worker."""

from contextlib import ExitStack

import numpy as np
import pytest
from dask_cluster import scheduler, wait_for_workers, worker

from dls_ik.study.definition import study_of
from dls_ik.study.run import run_study

STUDY = study_of({"robots": ["planar_2r"], "methods": ["auto", "jd"], "pairs": 60})


@pytest.mark.slow
def test_results_of_a_cluster_are_those_of_this_machine(tmp_path):
    with ExitStack() as stack:
        address, file, _ = stack.enter_context(scheduler(tmp_path))
        stack.enter_context(worker(file, "one"))
        wait_for_workers(address, 1)
        there = run_study(STUDY, scheduler=address)
    here = run_study(STUDY)
    for name, values in here.columns.items():
        if name != "time":
            np.testing.assert_array_equal(values, there.columns[name], err_msg=name)
