"""Readers of schedulers."""
