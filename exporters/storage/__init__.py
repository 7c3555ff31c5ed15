"""Disks, file systems and volumes."""
