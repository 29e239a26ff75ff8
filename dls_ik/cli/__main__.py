# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``python -m dls_ik.cli``."""

from dls_ik.cli.main import main

main(prog_name="dls-ik")
