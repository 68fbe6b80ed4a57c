"""Parquet targets: the landed Parquet objects as tables of the catalog, with a view of the latest rows."""
