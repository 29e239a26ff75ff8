"""Environments in which the package is installed and tried: ``scripts/matrix``."""
