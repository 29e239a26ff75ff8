"""Campaigns of hostile input against every door of the package: ``python -m fuzz --help``."""
