"""Readers of ports and interfaces."""
