"""The command ``dls-ik``."""
