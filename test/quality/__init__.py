"""Measures of the tests for ``scripts/coverage`` and ``scripts/mutate``."""
