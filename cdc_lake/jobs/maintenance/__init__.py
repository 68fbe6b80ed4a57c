"""Maintenance of lake tables: sweep after a snapshot, purge of tombstones, replay of dead letters."""
