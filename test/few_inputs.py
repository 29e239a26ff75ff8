# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of the fuzzing campaigns on a few fixed inputs."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.source import Source
from fuzz.targets import build


def assert_no_defect(name, examples):
    """Check that a target raises nothing."""
    run = build(name)

    @settings(
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.binary(max_size=150))
    def check(data):
        run(Source(data))

    check()
