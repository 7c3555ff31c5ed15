"""Readers of the kernel's log."""
