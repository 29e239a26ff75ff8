"""The shapes of a robot and of the things around it, and their distances."""
