"""Shared code of the benchmarks: stacks and rows to measure, and measurements of time, CPU, memory and lag."""
