"""Measured comparisons: `python -m benchmarks [NAME…]` runs the benches, prints a line each and writes docs/benchmark.md."""
