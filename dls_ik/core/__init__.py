"""Numba kernels: free functions of arrays and NamedTuples. No ROS, no logging, no strings."""
