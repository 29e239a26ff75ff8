"""The published tables and figures, run again: one file each, found by name in ``registry``."""
