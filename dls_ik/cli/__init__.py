# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Implementation of the command line tool ``dls-ik``, one module per subcommand."""
