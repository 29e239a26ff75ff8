"""Figures on speed: each module is a tool of its own, ``python -m benchmarks.NAME``."""
