"""A node that simulates an arm: it takes commands and publishes joint states."""
