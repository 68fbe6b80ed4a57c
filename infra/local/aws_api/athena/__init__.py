"""Athena's API over Trino."""
