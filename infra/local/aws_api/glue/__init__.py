"""Glue's Data Catalog: moto's catalog, which is saved to disk before each change is acknowledged."""
