"""Rigorous bounds on the poses that an arm reaches, built once for a robot."""
