"""The pictures of concepts.md, by what they need: an arm in the plane, numbers, joint limits."""
