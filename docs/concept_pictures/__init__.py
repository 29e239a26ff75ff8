"""Pictures of concepts.md: planar arms, singular values and restarts, joint limits."""
