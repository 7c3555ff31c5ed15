"""Accelerators: what they are, how they are, and which of them have gone."""
