"""Collision geometry of a robot and of the objects around it, and distances between them."""
