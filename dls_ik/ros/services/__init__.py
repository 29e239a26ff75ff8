"""Answering requests: ``compute_ik`` and ``compute_fk``."""
