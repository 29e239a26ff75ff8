"""No step bound."""

NAME = "none"
