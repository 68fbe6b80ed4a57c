"""Benchmark results: result files, comparison with the goals, and the HTML page."""
