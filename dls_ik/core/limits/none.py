"""No limit strategy: every joint is free."""

NAME = "none"
