"""Maintenance of lake tables: compaction, clustering, purge, sweep after a snapshot, replay of dead letters."""
