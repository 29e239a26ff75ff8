"""What a person reads and presses: each panel in its file."""
