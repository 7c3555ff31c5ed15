"""The machine itself: load and memory, its clock, its control groups, its chassis."""
