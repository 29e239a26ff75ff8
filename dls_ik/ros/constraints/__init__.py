"""Constraints of requests: joints, orientations and positions of links, solved for or checked."""
