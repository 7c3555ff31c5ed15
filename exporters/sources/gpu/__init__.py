"""Readers of accelerators."""
