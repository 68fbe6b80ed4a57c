"""Hudi tables: writes with the checkpoint, recovery from failed writes, and table services."""
