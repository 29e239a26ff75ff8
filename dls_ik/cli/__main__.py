# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Entry point of ``python -m dls_ik.cli``, which runs the command ``dls-ik``."""

from dls_ik.cli.main import main

main(prog_name="dls-ik")
