"""No error bound: each step goes for the whole error."""

NAME = "none"
