"""What a map is made with where nothing else is said; apart, so that --help comes at once."""

TASKS = ("pose", "pointing", "position")
RESOLUTION = 0.1  # [m]
ORIENTATIONS = 64
TOLERANCE = 1e-4  # [m] and [rad]
RESTARTS = 50  # docs/reachability.md says what more of them find
SUFFIXES = (".npz", ".zarr")
