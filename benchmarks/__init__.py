"""Benchmarks against other implementations and against the limits of the machine."""
