"""Hudi commits: writing a table, and recovery from failed writes."""
