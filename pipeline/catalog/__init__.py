"""The vocabulary as data: metrics, events, faults, actions, layers. Standard library only."""
