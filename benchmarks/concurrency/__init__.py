"""Everything at once at one node: parameters, requests, robots, targets, drivers and orders."""
