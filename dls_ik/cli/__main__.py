"""``python -m dls_ik.cli``."""

from dls_ik.cli.main import main

main(prog_name="dls-ik")
