"""One file for each peer: its solvers in the best settings found, and what was tried."""
