"""A node that stands in for an arm: it takes commands, and gives joint states back."""
