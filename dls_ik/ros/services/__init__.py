"""Services of the node, and its planning scene."""
