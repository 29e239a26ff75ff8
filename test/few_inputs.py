# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A target of the fuzzing campaigns on a few inputs, the same ones every time."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.source import Source
from fuzz.targets import build


def assert_no_defect(name, examples):
    """The target of a name raises nothing."""
    run = build(name)

    @settings(
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )
    @given(data=st.binary(max_size=150))
    def check(data):
        run(Source(data))

    check()
