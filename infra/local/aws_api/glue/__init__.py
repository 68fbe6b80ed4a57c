"""Glue's Data Catalog: moto's, with every change on disk before it is acknowledged."""
