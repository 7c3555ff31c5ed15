"""Readers of disks, file systems and volumes."""
