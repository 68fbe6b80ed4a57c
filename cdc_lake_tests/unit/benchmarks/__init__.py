"""Tests of the benchmarks: what they judge and write, without running them."""
