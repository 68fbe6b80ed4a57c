"""Parquet targets: the landed objects as tables of the catalog, with a view of the latest rows."""
