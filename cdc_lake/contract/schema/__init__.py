"""Captured schemas of source tables: columns, types, evolution."""
